"""A lake whose ledger is lost: a new one goes on from any moment of its history, with each change
once, and reads no table from the source that has a mirror.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from random import Random

import pytest

from lockstep.pipeline.recovery import needed_commits
from lockstep.pipeline.run.recovery import recovered_structures
from lockstep.pipeline.values.errors import ForeignCommit, PositionPurged, VersionSetUnknown
from lockstep.pipeline.values.table import TableName
from tests.chance import by_chance, seed_of
from tests.e2e.test_recovery import Writer
from tests.fix_mysql import MySqlStand
from tests.hostile.histories import History, Made
from tests.hostile.test_restored import DRAWN, require_equal
from tests.mysql.logged import head
from tests.mysql.reading import server
from tests.outside import RecoveryCase, RecoveryOutcome, plan_recovery, recover
from tests.positions.fake import FakeServer
from tests.positions.follower import SOURCE, Follower
from tests.positions.foreseen import require_told
from tests.positions.interrupted import Crash, mortal
from tests.positions.one_table import NOBODY


def without_ledger(history: History, moment: int) -> Follower:
    follower = history.together(moment, moment)
    follower.lose_ledger()
    return follower


def recovered(follower: Follower, behind: int | None = None) -> RecoveryOutcome:
    foreseen = plan_recovery(follower.ports(), behind)
    with follower.leased() as lease:
        done = recover(follower.ports(), lease, author="somebody", after_batch=behind)
    assert done == foreseen, "what was shown is what was done"
    require_told(foreseen.table_plans, follower.ports())
    return done


def mirrors(follower: Follower) -> set[TableName]:
    """Those that the lake has."""
    return {TableName(*name.split("/")[1:]) for name in follower.lake.tables if "/_" not in name}


def tried(history: History, moment: int) -> None:
    history = history.branched()
    follower = without_ledger(history, moment)
    there = mirrors(follower)
    if not there:
        return
    assert not there & {table for table, _ in recovered(follower).reloads}
    history.write()
    follower.run()
    require_equal(history, follower)
    follower.lose_ledger()
    assert not recovered(follower).reloads, "lost once more"
    history.write()
    follower.run()
    require_equal(history, follower)


@pytest.mark.parametrize("drawn", [2 * DRAWN, pytest.param(None, marks=pytest.mark.soak)])
def test_from_moments(history: History, drawn: int | None) -> None:
    moments = range(len(history.moments))
    for moment in by_chance().sample(moments, drawn or len(moments)):
        tried(history, moment)


@pytest.mark.parametrize("drawn", [DRAWN, pytest.param(None, marks=pytest.mark.soak)])
def test_from_moments_of_a_real_server(real: History, drawn: int | None) -> None:
    moments = range(len(real.moments))
    for moment in by_chance().sample(moments, drawn or len(moments)):
        tried(real, moment)


# -- runs that are undone ----------------------------------------------------------------------


def undone(follower: Follower, behind: int) -> RecoveryOutcome:
    """Shown with the ledger that holds the source, and done with a new one."""
    shown = plan_recovery(follower.ports(), behind)
    assert shown.case is RecoveryCase.REFUSED
    follower.lose_ledger()
    done = recovered(follower, behind)
    assert done == replace(shown, case=RecoveryCase.FROM_LAKE)
    return done


def schema_version_shown_by(follower: Follower) -> dict[str, list[str]]:
    """The rows of each mirror, whatever order they have."""
    return {
        name: sorted(map(str, commits[-1].rows.to_pylist()))
        for name, commits in follower.lake.tables.items()
        if "/_" not in name
    }


class Undoing:
    """A source whose runs are undone by chance, and what each batch left in its lake."""

    def __init__(self, mysql: MySqlStand, name: str, seed: int) -> None:
        self.random = Random(seed)
        self.mysql, self.name = mysql, name
        start = str(head(mysql))
        self.writer = Writer(mysql, name, seed)
        self.follower = Follower(server(mysql), [f"{name}.*"], start=start)
        self.left: dict[int, dict[str, list[str]]] = {}

    def run(self) -> None:
        self.follower.run()
        [newest] = self.follower.batches(limit=1)
        self.left[newest.id] = schema_version_shown_by(self.follower)
        assert schema_version_shown_by(self.follower) == self.source()

    def source(self) -> dict[str, list[str]]:
        found = {}
        for (table,) in self.mysql.rows(f"show tables from {self.name}"):
            path = f"{SOURCE}/{self.name}/{table}"
            if path not in self.follower.lake.tables:
                continue
            columns = [str(one[0]) for one in self.mysql.rows(f"desc {self.name}.{table}")]
            rows = self.mysql.rows(f"select * from {self.name}.{table}")
            names = self.follower.lake.tables[path][-1].rows.column_names
            whole = [dict.fromkeys(names) | dict(zip(columns, row, strict=True)) for row in rows]
            found[path] = sorted(map(str, whole))
        return found

    def undo(self) -> None:
        if self.random.random() < 0.3:
            self.follower.lake.structures.clear()  # Tables that were altered since are read again.
        behind = self.random.choice(sorted(self.left))
        done = undone(self.follower, behind)
        assert done.plan is not None
        again = {f"{SOURCE}/{table.database}/{table.name}" for table, _ in done.reloads}
        then = self.left.get(done.plan.lake_end.batch, {})
        now = schema_version_shown_by(self.follower)
        kept = {mirror: rows for mirror, rows in then.items() if mirror not in again}
        assert {mirror: now[mirror] for mirror in kept} == kept
        self.left = {batch: rows for batch, rows in self.left.items() if batch <= behind}


@pytest.mark.parametrize("rounds", [2, pytest.param(30, marks=pytest.mark.soak)])
def test_runs_that_are_undone_by_chance(mysql: MySqlStand, database: str, rounds: int) -> None:
    """Structures change on the way, and some batches are merged together: each mirror that is not
    read again shows what the batch had left; behind the next run all equal the source."""
    seed = seed_of("SOAK_SEED")
    one = Undoing(mysql, database, seed)
    one.run()
    for _ in range(rounds):
        for _ in range(one.random.randint(1, 3)):
            one.writer.write()
            if one.random.random() < 0.3:
                one.follower.capture()
                one.writer.write()
            one.run()
        one.undo()
        if one.random.random() < 0.5:
            one.writer.write()
        one.run()


def test_back_behind_every_batch(history: History) -> None:
    """Named by its number; one that the lake does not tell of is refused: nobody gave it, or it had
    nothing."""
    numbers = [batch.id for batch in history.together(-1, -1).live_batches()]
    for batch in numbers[1:]:
        branch = history.branched()
        follower = branch.together(-1, -1)
        undone(follower, batch)
        branch.write()
        follower.run()
        require_equal(branch, follower)
    for batch in (numbers[0], numbers[-1] + 1):
        with pytest.raises(
            VersionSetUnknown, match=f"where batch {batch} ended: it has batches 2 to"
        ):
            plan_recovery(history.together(-1, -1).ports(), batch)


def test_back_further_than_the_commits_that_are_read_at_least(
    history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A busy source has hundreds of batches a day."""
    few = partial(needed_commits, least=1)
    monkeypatch.setattr(recovered_structures, "needed_commits", few)
    numbers = [batch.id for batch in history.together(-1, -1).live_batches()]
    for batch in numbers[1:]:
        done = undone(history.branched().together(-1, -1), batch)
        assert done.plan is not None
        assert (done.plan.lake_end.batch, done.reloads) == (batch, ())


# -- what is missing --------------------------------------------------------------------------


def lost(history: History, folder: str) -> Follower:
    """As the history ended, without its ledger and without that folder."""
    follower = without_ledger(history, -1)
    del follower.lake.tables[f"{SOURCE}/{folder}"]
    return follower


def read_again(done: RecoveryOutcome) -> list[str]:
    return [table.name for table, _ in done.reloads]


def test_a_mirror_that_is_gone_is_read_from_the_source(real: History) -> None:
    """That one alone; the others go on."""
    follower = lost(real, f"{real.source.name}/keyed")
    assert read_again(recovered(follower)) == ["keyed"]
    real.write()
    follower.run()
    require_equal(real, follower)


@pytest.mark.parametrize("folder", ["_changes/shop/t", "_transactions"])
def test_a_changelog_that_is_gone_begins_anew(history: History, folder: str) -> None:
    """A mirror needs none; what was in it is gone. Without transactions the plan says what is in
    doubt."""
    history = history.branched()
    follower = lost(history, folder)
    done = recovered(follower)
    assert read_again(done) == []
    if folder == "_transactions":
        assert done.plan is not None
        assert folder in done.plan.doubts[0]
    history.write()
    follower.run()
    require_equal(history, follower)


def test_a_log_that_ends_too_late_names_all_tables(history: History) -> None:
    """What the server purged is in no log: every table must be read, and nothing is written."""
    history = history.branched()
    assert isinstance(history.source, Made)
    history.write()
    history.source.fake.rotate()
    history.write()
    history.source.fake.purge()
    follower = without_ledger(history, -1)
    before = dict(follower.lake.tables)
    with pytest.raises(PositionPurged, match=r"read from the source: shop\.t") as caught:
        plan_recovery(follower.ports())
    assert "lockstep recover --start-over --source shop" in caught.value.hint
    assert follower.lake.tables == before


def test_a_folder_without_mirrors_is_given_up_as_the_hint_says(history: History) -> None:
    """The ledger that claimed it is lost, and refuses the runs of a new one."""
    history = history.branched()
    published = next(n for n, one in enumerate(history.moments) if one.step == "published")
    follower = without_ledger(history, published)
    assert not mirrors(follower)
    with pytest.raises(ForeignCommit, match="no mirror of shop") as caught:
        plan_recovery(follower.ports())
    assert "lockstep recover --start-over --source shop" in caught.value.hint
    with pytest.raises(ForeignCommit):
        follower.run()
    with follower.leased() as lease:
        recover(follower.ports(), lease, author="somebody", start_over=True)
    follower.run()
    require_equal(history, follower)


def test_a_ledger_that_holds_the_source_is_not_made_anew(history: History) -> None:
    """Where it agrees with the lake, nothing is done, and it has to be given up to start over."""
    follower = history.together(-1, -1)
    assert recovered(follower) == RecoveryOutcome(RecoveryCase.AGREE)
    with pytest.raises(ForeignCommit, match="holds shop already"):
        plan_recovery(follower.ports(), start_over=True)
    with follower.leased() as lease, pytest.raises(ForeignCommit, match="holds shop already"):
        recover(follower.ports(), lease, author="somebody", after_batch=2)


@pytest.mark.thin
@pytest.mark.parametrize(
    "call", ["record_capture", "note_examined_versions", "mark_merged", "acknowledge"]
)
@pytest.mark.parametrize("when", ["before", "after"])
def test_what_was_cut_off_is_done_by_the_next(history: History, call: str, when: str) -> None:
    """Wherever it ends: what it does again it does once. Runs that are undone are, too."""
    unmerged = next(
        number
        for number, one in enumerate(history.moments)
        if one.step == "published" and number > len(history.moments) // 2
    )
    for moment, behind in ((unmerged, None), (-1, 2)):
        cut_off(history.branched(), moment, behind, call, when)


def cut_off(history: History, moment: int, behind: int | None, call: str, when: str) -> None:
    follower = without_ledger(history, moment)
    with (
        follower.leased() as lease,
        pytest.raises(Crash),
        mortal(follower, call, after=when == "after"),
    ):
        recover(follower.ports(), lease, author="somebody", after_batch=behind)
    ended = (call, when) == ("acknowledge", "after")
    recovered(follower, None if ended else behind)
    history.write()
    follower.run()
    require_equal(history, follower)


# -- another log -------------------------------------------------------------------------------


def test_a_replica_that_took_over_is_gone_on_with_by_gtids(history: History) -> None:
    """The log that was read is gone with its server; another one has the same transactions."""
    history = history.branched()
    assert isinstance(history.source, Made)
    first = history.source.fake
    other = FakeServer(NOBODY.replace("9", "8"), 2)
    other.follow(first)
    history.source.fake = other
    follower = without_ledger(history, -1)
    follower.server = history.source.server()
    assert not recovered(follower).reloads
    history.write()
    follower.run()
    require_equal(history, follower)


def test_a_log_that_was_rewritten_is_refused(history: History) -> None:
    """The server's name is the same, and so is the place: the event before it is another."""
    history = history.branched()
    assert isinstance(history.source, Made)
    fake = history.source.fake
    size = fake.head.offset
    fake.reset()
    number = 100
    while fake.head.offset < size:
        fake.write(number, number)
        number += 1
    follower = without_ledger(history, -1)
    with pytest.raises(PositionPurged, match="reaches no batch"):
        plan_recovery(follower.ports())
