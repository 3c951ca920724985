"""The difference between the files that a changelog lists and those that the ledger recorded. Pure.

Not here: gathering what it compares, the commit that follows from it
(`pipeline.run.agreement.changelog_files`), whose commits those were (`foreign_commits`).

A changelog's files are segments, under the names that the ledger recorded. A compaction puts their
rows into files of other names; an append or a RESTORE brings files that were never recorded. A file
is `surplus` if it is not recorded and either another program's commit added it, or all its rows
belong to batches whose files the ledger has. A ledger that was made from a lake does not know the
earlier files: rows of batches that it does not know stay, as long as the changes of these are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from lockstep.pipeline.model.lake_commit import FileAction, LakeCommit
from lockstep.pipeline.values.segment import SegmentFile, batch_of


@dataclass(frozen=True, slots=True)
class RecordedFiles:
    """The files that a ledger has recorded for one changelog, by path. `files`: those of published
    batches whose changes are kept; `waiting`: those of batches that may or may not be published
    yet; `forgotten`: the newest batch whose changes are no longer kept."""

    files: Mapping[str, SegmentFile]
    waiting: frozenset[str] = frozenset()
    forgotten: int = 0

    @property
    def batches(self) -> frozenset[int]:
        batches = map(batch_of, (*self.files, *self.waiting))
        return frozenset(batch for batch in batches if batch is not None)


@dataclass(frozen=True, slots=True)
class ForeignFiles:
    """`came`: files that other programs' commits added and did not remove again; `gone`: files that
    they removed and did not add again."""

    came: Mapping[str, FileAction] = field(default_factory=lambda: MappingProxyType({}))
    gone: Mapping[str, FileAction] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True, slots=True)
class Difference:
    """`surplus`: files that a changelog lists and should not; `lacking`: files that it should list
    and does not."""

    surplus: tuple[str, ...] = ()
    lacking: tuple[SegmentFile, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.surplus or self.lacking)


def foreign_files(commits: Iterable[LakeCommit]) -> ForeignFiles:
    """Return what other programs' commits among these, given oldest first, changed for good."""
    came, gone = dict[str, FileAction](), dict[str, FileAction]()
    for commit in commits:
        if commit.ours or not commit.relists:
            continue
        for file in commit.removes:
            if came.pop(file.path, None) is None:
                gone[file.path] = file
        for file in commit.adds:
            if gone.pop(file.path, None) is None:
                came[file.path] = file
    return ForeignFiles(came, gone)


def difference(
    listed: Collection[str],
    recorded: RecordedFiles,
    foreign: ForeignFiles,
    batches_in: Callable[[str], frozenset[int]],
) -> Difference:
    """Compare what a changelog lists with what was recorded. `batches_in`: returns the batches of a
    file's rows, for a file whose name does not have its batch."""
    recorded_batches = recorded.batches

    def unknown(path: str) -> frozenset[int]:
        batch = batch_of(path)
        return (batches_in(path) if batch is None else frozenset({batch})) - recorded_batches

    def kept(path: str) -> bool:
        return max(unknown(path), default=-1) > recorded.forgotten or 0 in unknown(path)

    surplus = [
        path
        for path in listed
        if path not in recorded.files
        and path not in recorded.waiting
        and (path in foreign.came or not kept(path))
    ]
    lacking = [file for path, file in recorded.files.items() if path not in listed]
    lacking += [
        SegmentFile(path, file.rows or 0, file.size or 0, "")
        for path, file in foreign.gone.items()
        if path not in listed
        and path not in recorded.files
        and path not in recorded.waiting
        and max(unknown(path), default=0) > recorded.forgotten
    ]
    return Difference(tuple(sorted(surplus)), tuple(lacking))


def own_files(
    listed: Mapping[str, FileAction], newest_first: Iterable[LakeCommit]
) -> dict[str, FileAction]:
    """Return what a table would list if other programs' commits among these had not been made. For
    a lake without its ledger: what the table listed before the oldest of these commits is trusted.
    """
    commits = [commit for commit in newest_first if commit.relists]
    files = dict(listed)
    if all(commit.ours for commit in commits):
        return files
    for commit in commits:
        for file in commit.adds:
            files.pop(file.path, None)
        files |= {file.path: file for file in commit.removes}
    for commit in reversed(commits):
        if commit.ours:
            for file in commit.removes:
                files.pop(file.path, None)
            files |= {file.path: file for file in commit.adds}
    return files
