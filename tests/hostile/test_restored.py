"""A ledger of one moment and a lake of another: a run either refuses both, or ends equal to
the source, with each change once.

Both sides are kept in memory at every step of a history, tables half merged among it, while
the source's log goes on.
"""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest

from lockstep.pipeline.mirror.layout import changelog_path
from lockstep.pipeline.model.batch import BatchState
from lockstep.pipeline.model.claim import Claim, Unclaimed
from lockstep.pipeline.recovery import RecoveryCase
from lockstep.pipeline.run.abandon import abandon
from lockstep.pipeline.run.agreement.claim import claim_up_to, require_claim
from lockstep.pipeline.run.replay.segment_comparison import changelog_folder
from lockstep.pipeline.run.status.status import standing_of
from lockstep.pipeline.values.decisions import RecordedDecision
from lockstep.pipeline.values.errors import ForeignCommit
from tests.chance import by_chance
from tests.fix_ledger import LedgerOfTest
from tests.hostile.histories import History, changelog, go_on, lake_of, misread, recorded, replayed
from tests.hostile.test_foreign_files import Source
from tests.outside import RECOVERY_KIND, capture, claim_error, plan_recovery, publish, recover
from tests.positions.follower import SOURCE, Follower
from tests.positions.interrupted import interrupted
from tests.twins.claims import MemoryClaims

DRAWN = 2
"""So many moments, or pairs of them, of a real server in each `make test`, and three times as many
pairs of one that is its log alone; all of them in `make soak`."""


def require_equal(history: History, follower: Follower) -> None:
    """Each mirror is its table, and no change is in a changelog twice."""
    source = history.source
    for table in source.tables:
        mirror = follower.mirror(f"{source.name}.{table}")
        assert sorted((row["id"], row["v"]) for row in mirror) == list(source.rows(table)), table
        marks = changelog(follower, source.name, table)
        assert len(marks) == len(set(marks)), table


def require_listed(follower: Follower) -> None:
    """A changelog lists what the ledger has of it, and no more."""
    for folder, files in recorded(follower).items():
        assert (follower.ports().changelog.listed_files(folder) or {}).keys() == files, folder


def try_pair(history: History, ledger: int, lake: int) -> None:
    history = history.branched()
    follower = history.together(ledger, lake)
    signed = go_on(follower)
    together = history.moments[ledger].has_lake_of(history.moments[lake])
    history.write()
    again = go_on(follower)
    assert not ((signed or again) and together), "both sides are of one moment"
    assert not (signed and again), "a recovery is signed once"
    require_equal(history, follower)
    if history.moments[lake].step == "replayed":
        require_listed(follower)
    if any("replay" in history.moments[one].step for one in (ledger, lake)):
        replayed(follower)
        require_equal(history, follower)
        require_listed(follower)


def tried(history: History, pairs: list[tuple[int, int]]) -> None:
    for ledger, lake in pairs:
        steps = history.moments[ledger].step, history.moments[lake].step
        try:
            try_pair(history, ledger, lake)
        except Exception as error:
            error.add_note(f"ledger of moment {ledger} ({steps[0]}), lake of {lake} ({steps[1]})")
            raise


@pytest.mark.parametrize("count", [3 * DRAWN, pytest.param(None, marks=pytest.mark.soak)])
def test_pairs_of_moments(history: History, count: int | None) -> None:
    """A ledger with a lake of before or since. Some steps leave the lake as it is."""
    moments = history.moments
    numbers = range(len(moments))
    lakes = [
        number
        for number in numbers
        if not any(moments[number].has_lake_of(before) for before in moments[:number])
    ]
    assert history.source.rounds * 2 < len(lakes) < len(moments)
    pairs = list(product(numbers, lakes))
    tried(history, by_chance().sample(pairs, count or len(pairs)))


@pytest.mark.parametrize("count", [DRAWN, pytest.param(None, marks=pytest.mark.soak)])
def test_pairs_of_moments_of_a_real_server(real: History, count: int | None) -> None:
    numbers = range(len(real.moments))
    pairs = list(product(numbers, numbers))
    tried(real, by_chance().sample(pairs, count or len(pairs)))


def test_a_replay_hides_no_commit_of_others(history: History) -> None:
    """Somebody wrote to the changelog before it: the next run tells."""
    history = history.branched()
    follower = history.together(-1, -1)
    [table] = follower.states()
    commits = follower.lake.tables[changelog_path(SOURCE, table)]
    commits.append(replace(commits[-1], app_id="", user_metadata="", files=()))
    misread(follower)
    replayed(follower)
    history.write()
    follower.run()
    assert "is not Lockstep's" in (follower.states()[table].reason or "")


def test_a_replay_that_cannot_be_ended_is_taken_back(real: History) -> None:
    """It was cut off between two changelogs, and the file for the other one is lost."""

    def cut_off() -> None:
        raise KeyboardInterrupt

    follower = real.together(-1, -1)
    for at in range(2):
        misread(follower, at)
    with (
        interrupted(follower, "end_revision", cut_off),
        pytest.raises(KeyboardInterrupt),
    ):
        replayed(follower)
    recorded = follower.recorded_segments()
    last = changelog_path(SOURCE, recorded[max(recorded)][1].table)
    [new] = follower.lake.tables[last].pop().files[-1:]
    del follower.lake.files[follower.lake.path(f"{last}/{new}")]
    assert go_on(follower), "a recovery takes it back"
    require_listed(follower)
    replayed(follower)
    require_listed(follower)
    real.write()
    follower.run()
    require_equal(real, follower)


# -- two ledgers, one lake -------------------------------------------------------------------


def of_another(history: History) -> Follower:
    """A new ledger on the lake as it is now: `.lockstep` was deleted, or there is a second
    configuration."""
    follower = history.together(-1, -1)
    follower.lose_ledger()
    return follower


def refusal(follower: Follower) -> ForeignCommit:
    """A run is refused before anything is written to either side."""
    files, tables = set(follower.lake.files), dict(follower.lake.tables)
    batches = follower.batches()
    with pytest.raises(ForeignCommit) as caught:
        follower.run()
    assert set(follower.lake.files) == files
    assert follower.lake.tables == tables
    assert follower.batches() == batches
    told = claim_error(follower.ports())
    assert told is not None
    assert told.message == caught.value.message
    return caught.value


def test_a_folder_belongs_to_one_ledger(history: History) -> None:
    """The refusal names both ledgers, and where each of them is."""
    mine, follower = history.follower.ledger.identity(), of_another(history)
    error = refusal(follower)
    assert mine in error.message
    assert follower.ledger.identity() in error.message
    newest = history.follower.batches()[0]
    assert newest.end is not None
    assert f"batch {newest.id} up to {newest.end.at}" in error.message


def test_a_folder_without_a_claim_is_known_by_its_tables(history: History) -> None:
    """No ledger that captured nothing takes it, and none whose mirrors it has as of before; what
    the hint says helps."""
    follower = of_another(history)
    follower.lake.claims.clear()
    assert "this ledger has captured nothing yet" in refusal(follower).message
    history = history.branched()
    mirror = f"{SOURCE}/{history.source.name}/{history.source.tables[0]}"
    counts = [len(moment.lake.tables.get(mirror, ())) for moment in history.moments]
    follower = history.together(-1, counts.index(1))
    follower.lake.claims.clear()
    assert f"the ledger and the lake's folder {SOURCE} disagree" in refusal(follower).message
    assert go_on(follower)
    require_equal(history, follower)


def capture_in_vain(follower: Follower) -> None:
    """More often than a run looks back."""
    captured = follower.ledger.cursors(SOURCE).captured
    assert captured is not None
    with follower.leased() as lease:
        for _ in range(60):
            batch = follower.ledger.begin_batch(
                lease, captured.position, continued_batch=captured.batch, start_decision=None
            )
            follower.ledger.abandon(lease, batch.id, "it died")


def test_captures_in_vain_hide_nothing(history: History) -> None:
    """Neither a lake that is gone is taken for a new one, nor a ledger for one of before, because
    the batch that the claim names was abandoned."""
    history = history.branched()
    follower = history.together(-1, -1)
    history.write()
    with follower.leased() as lease:
        capture(follower.ports(), lease)
        batch = follower.batches()[0]
        claim_up_to(follower.ports(), batch)
        abandon(follower.ports(), lease, batch, "its files are damaged")
    capture_in_vain(follower)
    assert claim_error(follower.ports()) is None
    lake = lake_of(follower.lake)
    follower.lake = type(lake)()
    assert "the lake is behind its ledger" in refusal(follower).message
    follower.lake = lake
    follower.run()
    require_equal(history, follower)


def test_a_claim_that_cannot_be_read_is_told(history: History) -> None:
    """`status` says so beside the rest, and `recover` what it would do."""

    class Damaged(MemoryClaims):
        def read(self, source: str) -> Claim | Unclaimed:
            raise ForeignCommit("it does not say which ledger", hint="restore it")

    follower = history.branched().together(-1, -1)
    ports = replace(follower.ports(), claims=Damaged(follower.lake))
    patterns, now = ports.source.patterns, ports.clock()
    error = standing_of(SOURCE, patterns, ports.ledger, ports, now).lake_error
    assert error is not None
    assert error.message == "it does not say which ledger"
    outcome = plan_recovery(ports)
    assert (outcome.case, outcome.disagreement) == (RecoveryCase.KEEP_LEDGER, error.message)
    with pytest.raises(ForeignCommit, match="which ledger"):
        follower.steps(ports)


def test_two_copies_of_a_ledger_go_on_at_once(history: History) -> None:
    """Both give the next batch the same number. The one that publishes later is refused before it
    writes anything, although its run began before the other one claimed the folder."""
    history = history.branched()
    first, second = history.together(-1, -1), history.together(-1, -1)
    second.lake = first.lake
    history.write()
    with second.leased() as lease:
        ports = second.ports()
        capture(ports, lease)
        require_claim(ports)
        first.run()
        commits = {name: len(table) for name, table in first.lake.tables.items()}
        with pytest.raises(ForeignCommit, match="the ledger is behind its lake"):
            publish(ports, lease)
    assert {name: len(table) for name, table in second.lake.tables.items()} == commits
    history.write()
    first.run()
    require_equal(history, first)
    refusal(second)


def test_two_copies_of_a_ledger_keep_off_each_others_files(tmp_path: Path) -> None:
    """The one that is late wrote its own files beside those that the other one published
    meanwhile, although its batch has the same number, and deletes none of those."""
    first = Source(tmp_path)
    second = copy(first)
    second.follower = replace(first.follower, ledger=LedgerOfTest(clock=first.clock))
    second.follower.restore_ledger(first.follower.kept_ledger())
    first.write(3)

    def meanwhile() -> None:
        first.write(4)
        first.run()

    with (
        interrupted(second.follower, "begin_batch", meanwhile, after=True),
        pytest.raises(ForeignCommit),
    ):
        second.capture()
    [ours], [theirs] = (one.follower.batches(limit=1) for one in (first, second))
    assert (ours.id, ours.state, theirs.state) == (
        theirs.id,
        BatchState.ACKNOWLEDGED,
        BatchState.CAPTURING,
    )
    with second.follower.leased() as lease, pytest.raises(ForeignCommit):
        abandon(second.ports(), lease, theirs, "it is captured again")
    [segment] = first.follower.recorded_segments()[ours.id]
    folder = changelog_folder(first.ports(), segment)
    assert first.ports().segments.damage_sentences(folder, segment.files) == []
    assert len([*(tmp_path / folder).glob(f"batch-{ours.id:012d}-*")]) == 2


def test_a_new_ledger_that_starts_over_begins_anew(history: History) -> None:
    """What was in the folder stays, in another one; who signed, and why, is on record. The ledger
    that was left refuses from then on."""
    follower = of_another(history)
    before = follower.mirror(f"{history.source.name}.t")
    refusal(follower)
    before_it = plan_recovery(follower.ports(), start_over=True)
    with follower.leased() as lease:
        done = recover(
            follower.ports(), lease, author="somebody", reason="it is gone", start_over=True
        )
    (kept,) = done.lake_changes.moved_folders
    assert done == replace(before_it, lake_changes=done.lake_changes)
    moved = follower.lake.tables[f"{kept}/shop/t"][-1].rows.to_pylist()
    assert sorted(row["id"] for row in moved) == [row["id"] for row in before]
    (decided,) = _recoveries(follower)
    assert (decided.decision.author, decided.decision.reason) == ("somebody", "it is gone")
    old = history.together(-1, -1)
    old.lake = lake_of(follower.lake)
    assert follower.ledger.identity() in refusal(old).message
    follower.run()
    assert follower.acknowledged() is not None


def _recoveries(follower: Follower) -> list[RecordedDecision]:
    found = follower.decisions(limit=100)
    return [one for one in found if one.decision.kind == RECOVERY_KIND]
