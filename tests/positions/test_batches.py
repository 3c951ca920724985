"""Batches on their way: captures that wait, die or are overtaken, intents of the dead, merges that
wake up late, and what is asked for them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from lockstep.pipeline.model.batch import BatchState
from lockstep.pipeline.ports.lease_check import RequireHeld, no_check
from lockstep.pipeline.ports.ledger import batch_content
from lockstep.pipeline.ports.mirror_writes import MirrorWrite
from lockstep.pipeline.ports.mirrors import MirrorCommit
from lockstep.pipeline.run.acknowledge import acknowledge
from lockstep.pipeline.run.capture import capture
from lockstep.pipeline.run.context import RunPorts
from lockstep.pipeline.run.expected_log import expected_log_bytes
from lockstep.pipeline.run.merge import merge
from lockstep.pipeline.values.decisions import Lease
from lockstep.pipeline.values.errors import JavaMissing, LeaseLost
from lockstep.pipeline.values.places import Earliest, Latest
from lockstep.pipeline.values.table import TableName
from lockstep.resources.lake.changelog.segments import ParquetSegments, ParquetSegmentWriter
from lockstep.resources.lake.changelog.spool import FileSpool
from lockstep.resources.postgres.session import Session
from tests.fix_mysql import MySqlStand
from tests.mysql.reading import server
from tests.positions.follower import SOURCE, Follower
from tests.positions.interrupted import (
    Crash,
    Interrupted,
    Moments,
    at_moments,
    interrupted,
    mortal,
    noted,
)
from tests.positions.servers import prepare_xa
from tests.positions.two_tables import TABLES, Asleep, Shop, books, open_shop, overtaken
from tests.twins.lake import MemoryLake
from tests.twins.mirrors import MemoryMirrors


@pytest.fixture
def shop(mysql: MySqlStand, database: str) -> Shop:
    return open_shop(mysql, database)


# -- captures that wait ----------------------------------------------------------------------


class NoJava(MemoryMirrors):
    def require_ready(self) -> None:
        raise JavaMissing("There is no Java.", hint="install it")

    def write(self, write: MirrorWrite, held: RequireHeld = no_check) -> MirrorCommit:
        raise JavaMissing("There is no Java.", hint="install it")


def run_with(shop: Shop, mirrors: MemoryMirrors) -> None:
    """A whole run on these mirrors."""
    shop.follower.steps(replace(shop.follower.ports(), mirrors=mirrors))


def test_batches_that_wait_for_java_are_merged_at_once(shop: Shop) -> None:
    """Capture and the changelogs go on; then one commit for each mirror holds them all."""
    before, position = shop.states(), shop.follower.acknowledged()
    for _ in range(3):
        shop.write()
        with pytest.raises(JavaMissing):
            run_with(shop, NoJava(shop.follower.lake))
    assert shop.states() == [*before, *[BatchState.CAPTURED] * 3]
    assert shop.follower.acknowledged() == position
    assert shop.follower.ledger.open_intents(SOURCE) == []
    assert all(shop.commits(table) == [(1, 1)] for table in TABLES)
    assert all(len(set(shop.changelog(table))) > 6 for table in TABLES)
    shop.follower.run()
    assert all(shop.commits(table) == [(1, 1), (2, 4)] for table in TABLES)
    assert set(shop.states()) == {BatchState.ACKNOWLEDGED}
    shop.require_same()


def test_a_merged_batch_is_acknowledged_behind_the_one_before_it(shop: Shop) -> None:
    """Where one table is merged alone, a later batch without rows of the other is merged first."""
    follower, left = shop.follower, TableName(shop.name, "a")
    for write in (shop.write, shop.write_to_b):
        write()
        with follower.leased() as lease:
            capture(follower.ports(), lease)
            merge(follower.ports(), lease, frozenset({TableName(shop.name, "b")}))
            told = acknowledge(follower.ports(), lease)
        assert (told.acknowledged_batches, told.waiting_batches) == ((), {2: (left,)})
    assert shop.states()[1:] == [BatchState.CAPTURED, BatchState.MERGED]
    follower.run()
    assert set(shop.states()) == {BatchState.ACKNOWLEDGED}
    shop.require_same()


@pytest.mark.thin
@pytest.mark.parametrize("step", ["intend", "settle"])
@pytest.mark.parametrize("after", [False, True])
def test_an_intent_of_a_dead_run_is_settled_as_it_was(shop: Shop, step: str, after: bool) -> None:
    """Whatever the run died at, and however much was captured since: the same batches, the
    same version, one commit."""
    shop.write()
    with mortal(shop.follower, step, after=after), pytest.raises(Crash):
        shop.follower.run()
    left = shop.follower.ledger.open_intents(SOURCE)
    for _ in range(2):
        shop.write()
        shop.follower.capture()
    shop.follower.run()
    for intent in left:
        table = intent.table.name
        assert (intent.first_batch, intent.last_batch) == (2, 2)
        assert shop.commits(table) == [(1, 1), (2, 2), (3, 4)]
        assert shop.versions(table)[1] == intent.txn_version
    for table in TABLES:
        assert len(set(shop.versions(table))) == len(shop.versions(table))
    shop.require_same()
    assert shop.follower.ledger.open_intents(SOURCE) == []


# -- holders that wake up late ---------------------------------------------------------------


class Sleeper(MemoryMirrors):
    """Falls asleep before or after a commit, when it has been asked whether it may."""

    def __init__(self, lake: MemoryLake, asleep: Asleep, *, after: bool) -> None:
        super().__init__(lake)
        self._asleep = asleep
        self._after = after
        self.commits: list[MirrorCommit] = []

    def write(self, write: MirrorWrite, held: RequireHeld = no_check) -> MirrorCommit:
        held()
        if not self._after:
            self._asleep()
        self.commits.append(super().write(write))
        if self._after:
            self._asleep()
        return self.commits[-1]


@pytest.mark.thin
@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("more", [False, True])
def test_a_merge_that_wakes_up_late_changes_nothing(shop: Shop, after: bool, more: bool) -> None:
    """Overtaken before or after its own commit: one commit for that intent, whoever made it,
    read back by the other; the sleeper is told, and records nothing."""
    shop.write()
    shop.follower.capture()
    asleep = Asleep()
    mirrors = Sleeper(shop.follower.lake, asleep, after=after)
    ports = replace(shop.follower.ports(), mirrors=mirrors)
    recorded: list[Any] = []

    def meanwhile() -> None:
        if more:
            shop.write()
        shop.follower.run()
        recorded.extend(books(shop))

    error = overtaken(shop, asleep, merge, ports)(meanwhile)
    assert type(error) is LeaseLost
    assert books(shop) == recorded
    for table in TABLES:
        wanted = [(1, 1), (2, 2), (3, 3)] if more else [(1, 1), (2, 2)]
        assert shop.commits(table) == wanted
    shop.require_same()
    shop.write()
    shop.follower.run()
    shop.require_same()


def test_a_commit_made_while_another_holder_merges_is_read_back(shop: Shop) -> None:
    """The sleeper's commit comes when the next holder has begun the same write: Delta takes
    one of them, and the next holder records that one."""
    shop.write()
    shop.follower.capture()
    asleep = Asleep()
    sleeper = Sleeper(shop.follower.lake, asleep, after=False)
    done = Event()

    class Slow(MemoryMirrors):
        def write(self, write: MirrorWrite, held: RequireHeld = no_check) -> MirrorCommit:
            asleep.woken.set()
            assert done.wait(60)
            return super().write(write, held)

    def late(ports: RunPorts, lease: Lease) -> None:
        try:
            merge(ports, lease)
        finally:
            done.set()

    ports = replace(shop.follower.ports(), mirrors=sleeper)
    error = overtaken(shop, asleep, late, ports)(lambda: run_with(shop, Slow(shop.follower.lake)))
    assert type(error) is LeaseLost
    assert {commit.delta_version for commit in sleeper.commits} == {1}
    assert all(shop.commits(table) == [(1, 1), (2, 2)] for table in TABLES)
    shop.require_same()


# -- captures that died or were overtaken: nothing of them is recorded, no file stays ----------


@dataclass
class Folder:
    """The follower's captures go to files of a folder."""

    shop: Shop
    lake: Path

    def ports(self) -> RunPorts:
        return replace(
            self.shop.follower.ports(),
            segments=ParquetSegments(self.lake),
            spool=FileSpool(self.lake, self.lake.parent / "scratch"),
        )

    def capture(self) -> None:
        with self.shop.follower.leased() as lease:
            capture(self.ports(), lease)

    def files(self) -> tuple[int, int]:
        """Those of changes and transactions, and of prepared transactions."""
        found = [
            [path for path in (self.lake / SOURCE / part).rglob("*") if path.is_file()]
            for part in ("_changes", "_transactions", "_prepared")
        ]
        return len(found[0]) + len(found[1]), len(found[2])

    def expected(self) -> tuple[int, int]:
        ledger = self.shop.follower.ledger
        live = [
            one for one in ledger.unfinished_batches(SOURCE) if one.state is BatchState.CAPTURED
        ]
        segments = sum(
            len(segment.files)
            for batch in live
            for segment in batch_content(ledger, SOURCE, batch.id).segments
        )
        parts = sum(
            len(part.files)
            for batch in live
            for part in batch_content(ledger, SOURCE, batch.id).system_segments
        )
        return segments + parts, len([one for one in ledger.open_prepared(SOURCE) if one.file])


@pytest.fixture
def folder(shop: Shop, tmp_path: Path) -> Folder:
    return Folder(shop, tmp_path / "lake")


STEPS = ("begin_batch", "record_capture", "abandon")


@at_moments
def test_a_capture_that_died_leaves_no_files(folder: Folder, moments: Moments) -> None:
    """Segments and prepared transactions alike: after the next capture there are those of
    live batches and no others."""
    shop = folder.shop
    prepare_xa(shop.stand, shop.name, f"insert into {shop.name}.a values (-1000, 0)")
    try:
        for number, (step, after) in enumerate(moments(STEPS), start=1):
            with noted(f"killed at {step}, after it: {after}"):
                shop.write()
                with mortal(shop.follower, "record_capture", after=False), pytest.raises(Crash):
                    folder.capture()
                assert folder.files() == (3 * number, 1)
                with mortal(shop.follower, step, after=after), pytest.raises(Crash):
                    folder.capture()
                folder.capture()
                assert folder.files() == folder.expected() == (3 * number, 1)
    finally:
        shop.stand.execute(f"xa rollback '{shop.name}'")


class SleepySegments(ParquetSegments):
    """A holder that falls asleep before its first file is made."""

    def __init__(self, lake: Path, asleep: Asleep) -> None:
        super().__init__(lake)
        self._asleep = asleep

    def open(self, folder: str, **told: Any) -> ParquetSegmentWriter:
        self._asleep()
        return super().open(folder, **told)


@pytest.mark.parametrize("wrote", [False, True])
def test_a_capture_that_wakes_up_late_leaves_no_files(folder: Folder, wrote: bool) -> None:
    """Overtaken before it wrote, or before it told the ledger: it is told, and what it wrote goes
    with the next run; nothing of it is recorded."""
    asleep, ports = Asleep(), folder.ports()
    if wrote:
        ledger: Any = Interrupted(folder.shop.follower.ledger, "record_capture", asleep)
        ports = replace(ports, ledger=ledger)
    else:
        ports = replace(ports, segments=SleepySegments(folder.lake, asleep))
    _overtaken_capture(folder, asleep, ports)


def _overtaken_capture(folder: Folder, asleep: Asleep, late: RunPorts) -> None:
    shop = folder.shop
    shop.write()
    recorded: list[Any] = []

    def meanwhile() -> None:
        folder.capture()
        recorded.extend(books(shop))

    error = overtaken(shop, asleep, capture, late)(meanwhile)
    assert type(error) is LeaseLost
    assert books(shop) == recorded
    assert shop.states()[1:] == [BatchState.ABANDONED, BatchState.CAPTURED]
    shop.write()
    folder.capture()
    assert folder.files() == folder.expected()


def test_a_capture_that_was_overtaken_touches_no_files_of_the_next(folder: Folder) -> None:
    """It wakes up, finds MySQL's connection gone and begins again: the unfinished capture that
    it finds then is the next holder's, and so are its files."""
    shop = folder.shop
    ledger = shop.follower.ledger
    shop.write()
    with ledger.lock(SOURCE, "sleeper", None) as stale:
        ledger.lose_lock(SOURCE)

        def awake() -> None:
            assert folder.files() == (3, 0)
            with pytest.raises(LeaseLost):
                capture(folder.ports(), stale)

        with interrupted(shop.follower, "record_capture", awake):
            folder.capture()
    assert folder.files() == folder.expected() == (3, 0)
    assert shop.states()[1:] == [BatchState.CAPTURED]


# -- how often a merge asks the ledger ---------------------------------------------------------


def test_more_tables_are_no_more_questions(
    mysql: MySqlStand, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beside the one of each commit, whether the source is still held (`fence`)."""
    asked, ask = Counter[str](), Session.all

    def counted(session: Session, name: str, /, **values: Any) -> Any:
        asked[name] += 1
        return ask(session, name, **values)

    monkeypatch.setattr(Session, "all", counted)
    follower = Follower(server(mysql), [f"{database}.*"], start="earliest")
    questions = []
    for names in ("ab", "cdefgh"):
        for name in names:
            mysql.execute(
                f"create table {database}.{name} (id int primary key)",
                f"alter table {database}.{name} add v int",
                f"insert into {database}.{name} values (1, 2)",
            )
        follower.capture()
        asked.clear()
        with follower.leased() as lease:
            merge(follower.ports(), lease)
        assert follower.mirror(f"{database}.{names[-1]}") == [{"id": 1, "v": 2}]
        del asked["fence"]
        questions.append(dict(asked))
    assert questions[0] == questions[1]


# -- what a run may expect before it reads anything --------------------------------------------


def test_java_is_begun_early_where_it_will_probably_be_needed(
    mysql: MySqlStand, database: str
) -> None:
    """After a run with rows, once the log went on; not for a log full of other tables; and
    always for what was captured and waits. It is begun for as much of the log as was written."""
    mysql.execute(
        "create table t (id int primary key)", "create table u (id int)", database=database
    )
    follower = Follower(server(mysql), [f"{database}.t"])
    expected = []

    def ask() -> int | None:
        log_bytes = expected_log_bytes(follower.ledger, SOURCE, follower.server, Latest())
        expected.append(log_bytes is not None)
        return log_bytes

    facts = follower.server.facts()
    whole = sum(log.size for log in facts.binlogs)
    assert expected_log_bytes(follower.ledger, SOURCE, follower.server, Earliest()) == whole
    ask()
    follower.run()
    mysql.execute("insert into t values (1)", database=database)
    ask()
    follower.capture()
    assert ask() == follower.batches()[0].log_bytes
    follower.run()
    ask()
    mysql.execute("insert into u values (1)", database=database)
    ask()
    follower.run()
    mysql.execute("insert into t values (2)", database=database)
    ask()
    assert expected == [False, False, True, False, True, False]
