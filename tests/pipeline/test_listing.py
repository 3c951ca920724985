"""What a changelog lists, held against what the ledger recorded."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lockstep.pipeline.model.changelog_listing import (
    ForeignFiles,
    RecordedFiles,
    file_difference,
    foreign_files,
    own_files,
)
from lockstep.pipeline.model.lake_commit import (
    STATISTICS_OPERATION,
    FileAction,
    LakeCommit,
    metadata_text,
)
from lockstep.pipeline.values.segment import SegmentFile

OURS = metadata_text({"ledger": "l"})


def name(batch: int, mark: str = "") -> str:
    return f"{mark}batch-{batch:012d}-v1-00000.parquet"


def action(path: str) -> FileAction:
    return FileAction(path, 1, False, size=10)


def commit(
    version: int, adds: set[str], removes: set[str], *, ours: bool, operation: str = "OPTIMIZE"
) -> LakeCommit:
    return LakeCommit(
        version,
        operation,
        user_metadata=OURS if ours else None,
        adds=tuple(map(action, sorted(adds))),
        removes=tuple(map(action, sorted(removes))),
    )


def compared(
    listed: set[str], files: set[str], foreign: ForeignFiles, inside: dict[str, set[int]]
) -> tuple[set[str], set[str]]:
    recorded = RecordedFiles({path: SegmentFile(path, 1, 10, "sum") for path in files})
    found = file_difference(listed, recorded, foreign, lambda path: frozenset(inside.get(path, ())))
    return {*found.surplus}, {file.path for file in found.missing}


def test_what_a_ledger_does_not_know_stays() -> None:
    """One that was made from a lake: files of batches before it are not its business, unless
    somebody else's commit brought them or took them away."""
    own, before, other = name(7), name(3), "part-1.parquet"
    inside = {other: {2, 3}}
    assert compared({own, before, other}, {own}, ForeignFiles(), inside) == (set(), set())
    assert compared({own, before, other}, {own}, ForeignFiles(), {other: {7}}) == ({other}, set())
    gone = RecordedFiles({own: SegmentFile(own, 1, 10, "sum")}, deleted_through=3)
    assert file_difference({own, before}, gone, ForeignFiles(), lambda _: frozenset()).surplus == (
        before,
    )
    moved = foreign_files([commit(1, {other}, {own, before}, ours=False)])
    assert compared({other}, {own}, moved, inside) == ({other}, {own, before})
    assert compared({name(7, "r0123456789ab-")}, {own}, moved, inside) == (
        {name(7, "r0123456789ab-")},
        {own, before},
    )


def test_statistics_move_no_file() -> None:
    found = foreign_files([commit(1, {name(1)}, set(), ours=False, operation=STATISTICS_OPERATION)])
    assert found == ForeignFiles()


@given(st.data())
def test_a_log_without_somebody_elses_commits(data: st.DataObject) -> None:
    """Whatever they compacted, and compacted again, while we published: the captured files are
    known without the ledger, from the log alone."""
    listed, ours, log = set[str](), set[str](), list[LakeCommit]()
    for version in range(data.draw(st.integers(1, 12))):
        if not listed or data.draw(st.booleans()):
            adds = {name(version)}
            log.append(commit(version, adds, set(), ours=True, operation="WRITE"))
            ours |= adds
            listed |= adds
        else:
            removes = data.draw(st.sets(st.sampled_from(sorted(listed)), min_size=1))
            adds = {f"part-{version}.parquet"} if data.draw(st.booleans()) else set()
            log.append(commit(version, adds, removes, ours=False))
            listed = (listed - removes) | adds
    known = data.draw(st.integers(0, len(log)))
    files = own_files({path: action(path) for path in listed}, reversed(log))
    assert files.keys() == ours
    before = _listed(log[:known])
    later = own_files({path: action(path) for path in listed}, reversed(log[known:]))
    own = {file.path for one in log[known:] if one.is_ours for file in one.adds}
    assert later.keys() == before | own


def _listed(log: list[LakeCommit]) -> set[str]:
    found = set[str]()
    for one in log:
        found -= {file.path for file in one.removes}
        found |= {file.path for file in one.adds}
    return found
