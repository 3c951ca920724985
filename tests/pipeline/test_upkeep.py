"""What a mirror's upkeep consists of: enough, never twice, and nothing by a clock in doubt."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from lockstep.pipeline.model.foreign_commits import (
    Ahead,
    AllExpected,
    Foreign,
    MirrorRecord,
    judge_mirror_log,
)
from lockstep.pipeline.model.lake_commit import (
    FileAction,
    LakeCommit,
    LogSince,
    WriteKind,
    metadata_of_kind,
    metadata_text,
)
from lockstep.pipeline.recovery import mirror_facts
from lockstep.pipeline.upkeep.decide import (
    DAY,
    MAX_CLOCK_SKEW,
    VERSIONS_PER_CHECKPOINT,
    Checkpoint,
    FileTotal,
    MirrorFiles,
    StepKind,
    UpkeepPolicy,
    UpkeepStep,
    checkpoints_to_delete,
    clock_doubt,
    decide,
    target_bytes,
)
from lockstep.pipeline.values.table import TableName

NOW = datetime(2026, 11, 1, tzinfo=UTC)
KEEP = timedelta(days=1)
SIZES = st.lists(st.integers(1, 1 << 31), max_size=60).map(tuple)


SAID = {
    "format": 1,
    "kind": "merge",
    "ledger": "l",
    "source": "s",
    "table": "a.b",
    "name": ["a", "b"],
    "batches": [3, 4],
    "place": "binlog.000001:90",
    "cursor": {
        "server_uuid": "server",
        "gtid_set": None,
        "by_gtid": False,
        "anchor": [1, 1, 1, "", 1],
        "sequence": 9,
    },
}
APP = "lockstep/s/a.b/mirror/2"


def a_repeat(added: int, removed: int) -> LakeCommit:
    """Version 9, which says that it shows the rows of version 7."""
    said = metadata_of_kind(
        metadata_text(SAID), WriteKind.UPKEEP, app_id=APP, txn_version=5, shows=7
    )
    adds = (FileAction("new", added, data_change=False),)
    removes = (FileAction("old", removed, data_change=False),)
    return LakeCommit(9, "OPTIMIZE", NOW, said, {}, adds, removes)


@given(added=st.integers(0, 3), removed=st.integers(0, 3), last=st.sampled_from([4, 5, 8]))
def test_a_commit_of_upkeep_is_held_to_what_it_says(added: int, removed: int, last: int) -> None:
    """It passes if it leaves the table as it was; and where the write's own commit is not in the
    log any more, it tells a new ledger what the write did."""
    commit = a_repeat(added, removed)
    expected = MirrorRecord("l", APP, None, None, examined_version=8, last_txn_version=last)
    found = judge_mirror_log(LogSince(9, None, (commit,)), expected)
    if last < 5:
        assert isinstance(found, Ahead)
    else:
        assert isinstance(found, AllExpected if added == removed else Foreign)
    facts = mirror_facts("s/a/b", [commit])
    if added != removed:
        assert facts is None
        return
    assert facts is not None
    assert (facts.table, facts.generation) == (TableName("a", "b"), 2)
    assert [(one.version, one.batch) for one in facts.shown_batches] == [(9, 4)]


@st.composite
def mirrors(draw: st.DrawFn) -> MirrorFiles:
    rows = draw(st.none() | st.integers(0, 1 << 40))
    deleted = None if rows is None else draw(st.none() | st.integers(0, rows))
    unneeded = FileTotal.of(draw(SIZES))
    untold = draw(st.none() | st.just("the log"))
    free = draw(st.none() | st.integers(0, 1 << 38))
    return MirrorFiles(draw(SIZES), rows, deleted, unneeded, untold, free)


POLICIES = st.builds(
    UpkeepPolicy,
    small_files=st.integers(2, 40),
    file_bytes=st.none() | st.integers(1 << 20, 1 << 30),
    deleted_share=st.floats(0.001, 1),
    purge=st.booleans(),
)


def compacted(found: MirrorFiles, step: UpkeepStep) -> MirrorFiles:
    """As Delta does it: small files together, each up to the size they should have."""
    small = step.target_bytes // 2
    large = tuple(size for size in found.sizes if size >= small)
    left, bins = sum(size for size in found.sizes if size < small), []
    while left:
        bins.append(min(left, step.target_bytes))
        left -= bins[-1]
    return MirrorFiles((*large, *bins), found.rows, 0)


SPANS = st.timedeltas(-MAX_CLOCK_SKEW * 3, MAX_CLOCK_SKEW * 3)


@given(ledger=SPANS, newest=SPANS, held=st.none() | st.timedeltas(timedelta(0), KEEP * 2))
def test_nothing_is_deleted_by_a_clock_in_doubt(
    ledger: timedelta, newest: timedelta, held: timedelta | None
) -> None:
    """Not by one that another contradicts, nor where nobody had the source since the promise
    began: a clock that jumped ahead makes all files old at once."""
    moment = None if held is None else NOW - held
    doubt = clock_doubt(NOW, NOW + ledger, NOW + newest, moment, KEEP)
    agree = abs(ledger) <= MAX_CLOCK_SKEW and newest <= MAX_CLOCK_SKEW
    assert (doubt is None) == (agree and held is not None and held <= KEEP)


@given(found=mirrors(), policy=POLICIES, doubt=st.none() | st.just("the clock"))
def test_upkeep_does_enough_and_comes_to_an_end(
    found: MirrorFiles, policy: UpkeepPolicy, doubt: str | None
) -> None:
    """Compacting at least halves the small files and leaves nothing to compact; commits come
    before deletion, each step once, and only where there is room; files go if and only if there are
    such and no clock is in doubt; what is not done is told."""
    plan = decide(found, policy, doubt)
    kinds = [step.kind for step in plan.steps]
    assert kinds == [kind for kind in StepKind if kind in kinds]
    assert (StepKind.VACUUM in kinds) == (found.unneeded.count > 0 and doubt is None)
    told = [found.reason_unknown is not None, found.unneeded.count > 0 and doubt is not None]
    roomy = decide(replace(found, free_bytes=None), policy, doubt)
    lacking = len(roomy.steps) - len(plan.steps)
    assert len(plan.obstacles) == sum(told) + lacking
    for step in plan.steps:
        room = (
            found.free_bytes is None
            or not step.kind.makes_commit
            or step.total.bytes * 2 <= found.free_bytes
        )
        assert room, step
    deleted, rows = found.deleted_rows or 0, found.rows or 0
    wanted = deleted > 0 and (policy.purge or deleted >= rows * policy.deleted_share)
    assert (StepKind.PURGE in [step.kind for step in roomy.steps]) == wanted
    for step in plan.steps:
        if step.kind is StepKind.COMPACT:
            assert step.total.count >= policy.small_files
            after = compacted(found, step)
            assert len(found.sizes) - len(after.sizes) >= step.total.count // 2
            again = decide(after, policy, doubt)
            assert StepKind.COMPACT not in [one.kind for one in again.steps]


@given(added=st.integers(1, 8 << 20), policy=st.builds(UpkeepPolicy, st.integers(2, 100)))
def test_a_month_of_runs_leaves_few_files_and_writes_none_of_them_often(
    added: int, policy: UpkeepPolicy
) -> None:
    """With a file from each run and upkeep after each hundred, a mirror has a few hundred files at
    most, and what was written is a small multiple of what was added."""
    sizes: tuple[int, ...] = ()
    written = 0
    for _ in range(432):
        sizes = (*sizes, *(added for _ in range(100)))
        found = MirrorFiles(sizes, None, None)
        for step in decide(found, policy).steps:
            sizes = compacted(found, step).sizes
            written += step.total.bytes
    target = target_bytes(sum(sizes), policy)
    assert len(sizes) <= 2 * sum(sizes) / target + 200
    assert written <= 20 * sum(sizes) + 432 * target


@given(gaps=st.lists(st.tuples(st.integers(1, 400), st.integers(0, 30)), max_size=80))
def test_every_version_stays_near_a_checkpoint(gaps: list[tuple[int, int]]) -> None:
    """Of old checkpoints the first of a day and of a thousand versions stays, of others all: what
    could be read can be, from a checkpoint that is not much further behind. Once is enough."""
    found, version, made_at = [], 0, NOW - timedelta(hours=sum(hours for _, hours in gaps))
    for more, hours in gaps:
        version, made_at = version + more, made_at + timedelta(hours=hours)
        found.append(Checkpoint(version, made_at, 1))
    gone = checkpoints_to_delete(found, NOW)
    kept = [one for one in found if one not in gone]
    assert checkpoints_to_delete(kept, NOW) == []
    assert kept[-2:] == found[-2:]
    assert all(NOW - one.made_at >= DAY for one in gone)
    for one in gone:
        before = max((k for k in kept if k.version < one.version), key=lambda k: k.version)
        assert one.version - before.version < VERSIONS_PER_CHECKPOINT
        assert one.made_at - before.made_at < DAY
    assert len(kept) <= 3 + version // VERSIONS_PER_CHECKPOINT + sum(
        hours for _, hours in gaps
    ) // 24 + len([one for one in found if NOW - one.made_at < DAY])
