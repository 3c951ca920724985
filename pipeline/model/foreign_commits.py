"""Judgements about commits that were made to a Delta table since its log was last
checked, and the difference between a changelog's files and the ledger's record of them.
Pure.

A changelog is the Delta table with all changes of a source table, a mirror the one with
its current rows. Other programs can commit to both, and a ledger or a lake can be
restored from a backup. Therefore a run judges the new commits of each table before it
writes to it.

Not here: what follows from a judgement or a difference (`pipeline.run`).

| a commit | is |
|---|---|
| the write that the ledger settled last, its open intent, a step of either | ours |
| of `lockstep upkeep`, and leaves the table unchanged | neutral |
| of a Lockstep with another ledger | another ledger's |
| of a Lockstep, and the ledger has no record of it | ahead of the ledger |
| with the transaction of a write that was given up | foreign |
| of another program, and leaves the table unchanged | neutral |
| any other | foreign |

A commit leaves the table unchanged if its operation is one of `NEUTRAL`, all its files
have `dataChange = false`, it adds as many rows as it removes, and it changed no column
and no property on which Lockstep depends. Rows are counted because any program can
write `dataChange = false`. If the log lacks a fact that is needed, the commit is
foreign.

In a mirror it does not matter which files hold the rows. A changelog has to list the
files that the ledger recorded. A neutral commit that lists other files there is
`Moved`, and the next run lists the recorded files again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

from lockstep.pipeline.model.batch import Batch
from lockstep.pipeline.model.lake_commit import (
    STATISTICS_OPERATION,
    FileAction,
    LakeCommit,
    LogAbove,
)
from lockstep.pipeline.values.intent import Intent, SettledWrite
from lockstep.pipeline.values.segment import SegmentFile, batch_of

NEUTRAL: Final = frozenset(
    {
        *("OPTIMIZE", "REORG", "VACUUM START", "VACUUM END", STATISTICS_OPERATION, "CLUSTER BY"),
        *("SET TBLPROPERTIES", "UNSET TBLPROPERTIES", "Empty Commit"),
    }
)
"""Operations of Spark and delta-rs that may leave a table's content unchanged."""

_INDEPENDENT: Final = (
    "delta.autoOptimize.",
    "delta.checkpointInterval",
    "delta.dataSkipping",
    "delta.deletedFileRetentionDuration",
    "delta.logRetentionDuration",
    "delta.parquet.",
    "delta.randomizeFilePrefixes",
    "delta.randomPrefixLength",
    "delta.targetFileSize",
    "delta.tuneFileSizesForRewrites",
)
"""Delta's properties that anybody may change, because no promise depends on them.
Retention is promised, but `lockstep check` judges it (`pipeline.check.mirrors`)."""


@dataclass(frozen=True, slots=True)
class AllExpected:
    """All commits up to the version `newest`, included, are ours or neutral. `newest`:
    None if there is no table."""

    newest: int | None


@dataclass(frozen=True, slots=True)
class Behind:
    """The table's `newest` version is lower than the version that the ledger expects,
    or another table is in the folder."""

    newest: int | None
    expected_version: int


@dataclass(frozen=True, slots=True)
class Ahead:
    """A commit by a Lockstep of which this ledger has no record. `ledger`: the id of
    the other ledger, if the commit names one."""

    commit: LakeCommit
    ledger: str | None = None


@dataclass(frozen=True, slots=True)
class Foreign:
    """Another program's commit that may have changed the table's content. `effect`: a
    clause that says how, for a message."""

    commit: LakeCommit
    effect: str


@dataclass(frozen=True, slots=True)
class Moved:
    """Another program's commit that put a changelog's unchanged rows into files that
    the ledger did not record."""

    commit: LakeCommit


@dataclass(frozen=True, slots=True)
class Unknown:
    """A commit that was not checked yet and whose file is missing."""

    version: int


Judgement = AllExpected | Behind | Ahead | Foreign | Moved | Unknown


@dataclass(frozen=True, slots=True)
class MirrorRecord:
    """A mirror as the ledger knows it. `settled`: its newest settled write;
    `open_intent`: its open write. `examined_version`: the Delta version up to which its
    log was checked, or None if that was not recorded. `adopted_version`: the version at
    which this ledger took it over from another, or -1. `last_txn_version`: the highest
    transaction version (of Delta's `txn` action) that was ever intended for it."""

    ledger: str
    app_id: str
    settled: SettledWrite | None
    open_intent: Intent | None
    examined_version: int | None
    adopted_version: int = -1
    last_txn_version: int = 0

    @property
    def lowest_version(self) -> int:
        """The lowest Delta version that the mirror can be at now."""
        settled = -1 if self.settled is None else self.settled.delta_version
        return max(
            settled,
            self.adopted_version,
            -1 if self.examined_version is None else self.examined_version,
        )

    @property
    def examined_through(self) -> int:
        """The version after which its log is to be checked."""
        settled = -1 if self.settled is None else self.settled.delta_version
        return max(
            settled if self.examined_version is None else self.examined_version,
            self.adopted_version,
        )


def judge_mirror_log(log: LogAbove, expected: MirrorRecord, *, replaced: bool = False) -> Judgement:
    """Return the judgement about a mirror's commits after `expected.examined_through`.
    `log`: its log from there on. `replaced`: all its rows are about to be replaced, so
    foreign commits do not matter.
    """
    if (log.newest if log.newest is not None else -1) < expected.lowest_version:
        return Behind(log.newest, expected.lowest_version)
    settled = expected.settled
    if (
        settled is not None
        and expected.examined_through == settled.delta_version
        and log.base is not None
    ):
        if (other := _by_other_ledger(log.base, expected.ledger)) is not None:
            return other
        if log.base.transactions.get(expected.app_id) != settled.intent.txn_version:
            return Behind(log.newest, expected.lowest_version)
    first: Judgement | None = None
    for commit in log.commits:
        judgement = _judge_mirror_commit(commit, expected)
        if isinstance(judgement, Ahead):
            return judgement
        first = first or judgement
    if log.missing is not None and first is None:
        first = Unknown(log.missing)
    return AllExpected(log.newest) if first is None or replaced else first


def _judge_mirror_commit(commit: LakeCommit, expected: MirrorRecord) -> Ahead | Foreign | None:
    if not commit.is_ours:
        return judge_foreign(commit)
    if (other := _by_other_ledger(commit, expected.ledger)) is not None:
        return other
    writes = (expected.open_intent, expected.settled.intent if expected.settled else None)
    intents = [intent for intent in writes if intent is not None]
    number = _txn_version(commit, expected.app_id)
    if (
        commit.repeated_version is not None
        and number is not None
        and number <= expected.last_txn_version
    ):
        return judge_foreign(commit)
    if number is None:
        spans = [[intent.first_batch, intent.last_batch] for intent in intents]
        return None if (commit.metadata or {}).get("batches") in spans else Ahead(commit)
    if number in {intent.txn_version for intent in intents}:
        return None
    if number > expected.last_txn_version:
        return Ahead(commit)
    if expected.app_id in commit.transactions:
        return Foreign(commit, "it is a write that had been given up")
    return None


def _txn_version(commit: LakeCommit, app_id: str) -> int | None:
    """Return the transaction version of the intent that a commit of ours carries out,
    or None."""
    for name in (app_id, f"{app_id}/evolve"):
        if name in commit.transactions:
            return commit.transactions[name]
    metadata = commit.metadata or {}
    number = metadata.get("txn_version")
    return number if metadata.get("app_id") == app_id and isinstance(number, int) else None


def _by_other_ledger(commit: LakeCommit, ledger: str) -> Ahead | None:
    other = (commit.metadata or {}).get("ledger")
    return Ahead(commit, str(other)) if other is not None and other != ledger else None


def judge_changelog_log(
    log: LogAbove,
    examined_version: int | None,
    ledger: str,
    batches: Mapping[int, Batch],
    pruned_before: int = 0,
    newest_revision: int = 0,
) -> Judgement:
    """Return the judgement about the commits of a changelog, or of a system table
    (`_transactions`, `_ddl`), after the version `examined_version`. `batches`: the
    ledger's batches that the commits name, by number; a batch below `pruned_before` may
    be missing because upkeep deleted it. `newest_revision`: the number of the ledger's
    newest revision."""
    if (
        examined_version is not None
        and (log.newest if log.newest is not None else -1) < examined_version
    ):
        return Behind(log.newest, examined_version)
    first: Judgement | None = None
    moved: Judgement | None = None
    for commit in log.commits:
        if commit.is_ours:
            if (other := _by_other_ledger(commit, ledger)) is not None:
                return other
            metadata = commit.metadata or {}
            number = metadata["batches"][-1] if metadata.get("batches") else None
            batch = None if number is None else batches.get(number)
            if batch is None and number is not None and number < pruned_before:
                continue
            if not _names_batch(metadata, batch):
                return Ahead(commit)
            if metadata.get("revision", 0) > newest_revision:
                return Ahead(commit)
        else:
            first = first or judge_foreign(commit)
            moved = moved or (Moved(commit) if commit.changes_files else None)
    if log.missing is not None and first is None:
        first = Unknown(log.missing)
    return first or moved or AllExpected(log.newest)


def _names_batch(metadata: Mapping[str, Any], batch: Batch | None) -> bool:
    """Return whether a commit names this batch. The moment of capture is compared too:
    a copy of the ledger with which somebody continued gives the same batch numbers, and
    may have read up to the same place of the log."""
    if batch is None or batch.end is None or batch.captured_at is None:
        return metadata.get("position") is None
    captured_at = batch.captured_at.isoformat()
    at_the_same_moment = metadata.get("captured_at", captured_at) == captured_at
    return metadata.get("position") == str(batch.end.at) and at_the_same_moment


def changes_more_than_files(commit: LakeCommit) -> bool:
    """Return whether another program's commit changed the table's columns, a property
    on which Lockstep depends, or rows by a deletion vector. Listing the recorded files
    again does not undo such a commit."""
    change = commit.metadata_change
    if commit.is_ours:
        return False
    return any(file.deleted_rows for file in commit.adds) or (
        change is not None
        and (change.columns is not False or any(map(_is_depended_on, change.properties)))
    )


def judge_foreign(commit: LakeCommit) -> Foreign | None:
    """Return why another program's commit may have changed the table, or None if it is
    neutral."""
    change = commit.metadata_change
    if commit.operation not in NEUTRAL:
        return Foreign(commit, "it may have changed rows or columns")
    if any(file.data_change for file in (*commit.adds, *commit.removes)):
        return Foreign(commit, "it changed rows")
    before, after = _row_count(commit.removes), _row_count(commit.adds)
    if before is None or after is None or before != after:
        return Foreign(commit, "it changed the number of rows")
    if change is not None and change.columns is not False:
        return Foreign(commit, "it may have changed columns")
    depended_on = [name for name in (change.properties if change else ()) if _is_depended_on(name)]
    if depended_on:
        return Foreign(commit, f"it changed the property {depended_on[0]}")
    return None


def _row_count(files: Iterable[FileAction]) -> int | None:
    total = 0
    for file in files:
        if file.row_count is None:
            return None
        total += file.row_count
    return total


def _is_depended_on(name: str) -> bool:
    return name.startswith("delta.") and not name.startswith(_INDEPENDENT)


# -- the files that a changelog should list ----------------------------------------------------
# A changelog's files have the names that the ledger recorded. Another program's compaction puts
# their rows into files with other names; an append or a RESTORE adds files that were never
# recorded. A file is `surplus` if it is not recorded and either another program's commit added
# it, or all its rows belong to batches whose files the ledger has. A ledger that was made from a
# lake (`lockstep recover`) does not know the files of earlier batches. These files stay, as long
# as the changes of their batches are kept.


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
    """Return the files that other programs' commits among these changed. Commits are
    given oldest first, and ours are skipped."""
    came, gone = dict[str, FileAction](), dict[str, FileAction]()
    for commit in commits:
        if commit.is_ours or not commit.changes_files:
            continue
        for file in commit.removes:
            if came.pop(file.path, None) is None:
                gone[file.path] = file
        for file in commit.adds:
            if gone.pop(file.path, None) is None:
                came[file.path] = file
    return ForeignFiles(came, gone)


def file_difference(
    listed: Collection[str],
    recorded: RecordedFiles,
    foreign: ForeignFiles,
    batches_in: Callable[[str], frozenset[int]],
) -> FileDifference:
    """Return the difference between the paths that a changelog lists and those that the
    ledger recorded. `batches_in` returns the batches of a file's rows, for files of
    other programs, whose names do not say the batch."""
    recorded_batches = recorded.batches

    def unrecorded_batches(path: str) -> frozenset[int]:
        batch = batch_of(path)
        return (batches_in(path) if batch is None else frozenset({batch})) - recorded_batches

    def is_kept(path: str) -> bool:
        return max(
            unrecorded_batches(path), default=-1
        ) > recorded.deleted_through or 0 in unrecorded_batches(path)

    surplus = [
        path
        for path in listed
        if path not in recorded.files
        and path not in recorded.maybe_published
        and (path in foreign.added or not is_kept(path))
    ]
    missing = [file for path, file in recorded.files.items() if path not in listed]
    missing += [
        SegmentFile(path, file.row_count or 0, file.size or 0, "")
        for path, file in foreign.removed.items()
        if path not in listed
        and path not in recorded.files
        and path not in recorded.maybe_published
        and max(unrecorded_batches(path), default=0) > recorded.deleted_through
    ]
    return FileDifference(tuple(sorted(surplus)), tuple(missing))


def own_files(
    listed: Mapping[str, FileAction], newest_first: Iterable[LakeCommit]
) -> dict[str, FileAction]:
    """Return the files that a table would list without the commits of other programs
    among these. Used when the ledger is lost; the files listed before the oldest of
    these commits are trusted.
    """
    commits = [commit for commit in newest_first if commit.changes_files]
    files = dict(listed)
    if all(commit.is_ours for commit in commits):
        return files
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
