"""What a mirror's upkeep consists of: enough, never twice, and nothing by a clock in doubt."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from pipeline.upkeep.decide import StepKind, UpkeepStep, decide, doubt_of, target_bytes
from pipeline.upkeep.facts import CLOCKS_APART, Clocks, MirrorFiles, Pile, UpkeepPolicy

NOW = datetime(2026, 11, 1, tzinfo=UTC)
SIZES = st.lists(st.integers(1, 1 << 31), max_size=60).map(tuple)


@st.composite
def mirrors(draw: st.DrawFn) -> MirrorFiles:
    rows = draw(st.none() | st.integers(0, 1 << 40))
    deleted = None if rows is None else draw(st.none() | st.integers(0, rows))
    unneeded = Pile.of(draw(SIZES))
    return MirrorFiles(draw(SIZES), rows, deleted, unneeded, draw(st.none() | st.just("the log")))


POLICIES = st.builds(
    UpkeepPolicy,
    small_files=st.integers(2, 40),
    file_bytes=st.none() | st.integers(1 << 20, 1 << 30),
    deleted_share=st.floats(0.001, 1),
    purge=st.booleans(),
)


def compacted(found: MirrorFiles, step: UpkeepStep) -> MirrorFiles:
    """As Delta does it: small files together, each up to the size they should have."""
    small = step.target // 2
    large = tuple(size for size in found.sizes if size >= small)
    left, bins = sum(size for size in found.sizes if size < small), []
    while left:
        bins.append(min(left, step.target))
        left -= bins[-1]
    return MirrorFiles((*large, *bins), found.rows, 0)


@given(found=mirrors(), policy=POLICIES, clock=st.timedeltas(-CLOCKS_APART * 9, CLOCKS_APART * 9))
def test_upkeep_does_enough_and_comes_to_an_end(
    found: MirrorFiles, policy: UpkeepPolicy, clock: timedelta
) -> None:
    """Compacting at least halves the small files and leaves nothing to compact; commits come
    before deletion, each step once; files go if and only if there are such and all clocks agree;
    what is not done is told."""
    doubt = doubt_of(Clocks(NOW, NOW - clock, NOW))
    assert (doubt is None) == (abs(clock) <= CLOCKS_APART)
    plan = decide(found, policy, doubt)
    kinds = [step.kind for step in plan.steps]
    assert kinds == [kind for kind in StepKind if kind in kinds]
    assert (StepKind.VACUUM in kinds) == (found.unneeded.files > 0 and doubt is None)
    assert len(plan.left) == (found.untold is not None) + (
        found.unneeded.files > 0 and doubt is not None
    )
    share = bool(found.deleted and found.rows)
    wanted = share and (policy.purge or found.deleted >= found.rows * policy.deleted_share)  # type: ignore[operator]
    assert (StepKind.PURGE in kinds) == wanted
    for step in plan.steps:
        if step.kind is StepKind.COMPACT:
            assert step.pile.files >= policy.small_files
            after = compacted(found, step)
            assert len(found.sizes) - len(after.sizes) >= step.pile.files // 2
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
            written += step.pile.bytes
    target = target_bytes(sum(sizes), policy)
    assert len(sizes) <= 2 * sum(sizes) / target + 200
    assert written <= 20 * sum(sizes) + 432 * target
