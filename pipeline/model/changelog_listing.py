"""The difference between the files that a changelog (the Delta table with all changes
of a source table) lists and those that it should list. Pure.

A changelog's files have the names that the ledger recorded. Another program's
compaction puts their rows into files with other names; an append or a RESTORE adds
files that were never recorded. A file that the ledger did not record is *surplus* if
another program's commit added it, or if all its rows are in recorded files or are no
longer kept. Any other unrecorded file stays: a ledger that was made from a lake
(`lockstep recover`) does not know the files of earlier batches.

Not here: what follows from a difference (`pipeline.run.agreement`); the judgement about
a commit (`pipeline.model.foreign_commits`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from lockstep.pipeline.model.lake_commit import FileAction, LakeCommit
from lockstep.pipeline.values.segment import SegmentFile, batch_of


@dataclass(frozen=True, slots=True)
class RecordedFiles:
    """The files that a ledger has recorded for one changelog, by path. `files`: files
    of published batches whose changes are kept. `maybe_published`: files of batches of
    which the ledger does not know yet whether they are published. `deleted_through`:
    the newest batch whose changes are no longer kept.
    """

    files: Mapping[str, SegmentFile]
    maybe_published: frozenset[str] = frozenset()
    deleted_through: int = 0

    @property
    def batches(self) -> frozenset[int]:
        batches = map(batch_of, (*self.files, *self.maybe_published))
        return frozenset(batch for batch in batches if batch is not None)


@dataclass(frozen=True, slots=True)
class ForeignFiles:
    """Files that commits of other programs changed. `added`: files that they added and
    did not remove again; `removed`: files that they removed and did not add again."""

    added: Mapping[str, FileAction] = field(default_factory=lambda: MappingProxyType({}))
    removed: Mapping[str, FileAction] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True, slots=True)
class FileDifference:
    """The difference between a changelog and the ledger. `surplus`: files that the
    changelog should not list but does; `missing`: files that it should list but does
    not."""

    surplus: tuple[str, ...] = ()
    missing: tuple[SegmentFile, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.surplus or self.missing)


def foreign_files(commits: Iterable[LakeCommit]) -> ForeignFiles:
    """Return the files that other programs' commits changed. `commits`: of any program,
    oldest first; ours are skipped."""
    added: dict[str, FileAction] = {}
    removed: dict[str, FileAction] = {}
    for commit in commits:
        if commit.is_ours or not commit.changes_files:
            continue
        for file in commit.removes:
            if added.pop(file.path, None) is None:
                removed[file.path] = file
        for file in commit.adds:
            if removed.pop(file.path, None) is None:
                added[file.path] = file
    return ForeignFiles(added, removed)


def file_difference(
    listed: Collection[str],
    recorded: RecordedFiles,
    foreign: ForeignFiles,
    batches_in: Callable[[str], frozenset[int] | None],
) -> FileDifference:
    """Return the difference between the paths that a changelog lists and those that it
    should list. A file counts as missing if the ledger recorded it, or if another
    program removed it and it has rows that are kept and that no recorded file has.
    `batches_in`: returns the batches of the rows in another program's file, whose name
    does not say them; None if the file cannot be read."""
    recorded_paths = recorded.files.keys() | recorded.maybe_published
    recorded_batches = recorded.batches

    def has_rows_to_keep(path: str, *, if_unreadable: bool) -> bool:
        batch = batch_of(path)
        batches = batches_in(path) if batch is None else frozenset({batch})
        if batches is None:
            return if_unreadable
        return any(batch > recorded.deleted_through for batch in batches - recorded_batches)

    surplus = [
        path
        for path in listed
        if path not in recorded_paths
        and (path in foreign.added or not has_rows_to_keep(path, if_unreadable=True))
    ]
    missing = [file for path, file in recorded.files.items() if path not in listed]
    missing += [
        file.as_unrecorded_segment
        for path, file in foreign.removed.items()
        if path not in listed
        and path not in recorded_paths
        and has_rows_to_keep(path, if_unreadable=False)
    ]
    return FileDifference(tuple(sorted(surplus)), tuple(missing))


def own_files(
    listed: Mapping[str, FileAction], newest_first: Iterable[LakeCommit]
) -> dict[str, FileAction]:
    """Return the files that a table would list without the commits of other programs.
    This is needed when the ledger is lost. `newest_first`: the newest commits of any
    program; the files that were listed before the oldest of them are trusted.
    """
    commits = [commit for commit in newest_first if commit.changes_files]
    files = dict(listed)
    if all(commit.is_ours for commit in commits):
        return files
    # All commits are undone, newest first; then Lockstep's are made again.
    for commit in commits:
        for file in commit.adds:
            files.pop(file.path, None)
        files |= {file.path: file for file in commit.removes}
    for commit in reversed(commits):
        if commit.is_ours:
            for file in commit.removes:
                files.pop(file.path, None)
            files |= {file.path: file for file in commit.adds}
    return files
