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
from lockstep.pipeline.model.lake_commit import STATISTICS, FileAction, LakeCommit, LogAbove
from lockstep.pipeline.values.intent import Intent, SettledWrite
from lockstep.pipeline.values.segment import SegmentFile, batch_of

NEUTRAL: Final = frozenset(
    {
        *("OPTIMIZE", "REORG", "VACUUM START", "VACUUM END", STATISTICS, "CLUSTER BY"),
        *("SET TBLPROPERTIES", "UNSET TBLPROPERTIES", "Empty Commit"),
    }
)
"""Operations of Spark and delta-rs that may leave a table's content unchanged."""

_FREE: Final = (
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
    expected: int


@dataclass(frozen=True, slots=True)
class Ahead:
    """A commit by a Lockstep of which this ledger has no record. `ledger`: the id of
    the other ledger, if the commit names one."""

    commit: LakeCommit
    ledger: str | None = None


@dataclass(frozen=True, slots=True)
class Foreign:
    """Another program's commit that may have changed the table's content. `how`: a
    clause that says how, for a message."""

    commit: LakeCommit
    how: str


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
    """A mirror as the ledger knows it. `settled`: its newest settled write; `intent`:
    its open write. `looked`: the Delta version up to which its log was checked, or None
    if that was not recorded. `begun`: the version at which this ledger took it over
    from another, or -1. `last`: the highest transaction version (of Delta's `txn`
    action) that was ever intended for it."""

    ledger: str
    app_id: str
    settled: SettledWrite | None
    intent: Intent | None
    looked: int | None
    begun: int = -1
    last: int = 0

    @property
    def version(self) -> int:
        """The lowest Delta version that the mirror can be at now."""
        settled = -1 if self.settled is None else self.settled.delta_version
        return max(settled, self.begun, -1 if self.looked is None else self.looked)

    @property
    def since(self) -> int:
        """The version after which its log is to be checked."""
        settled = -1 if self.settled is None else self.settled.delta_version
        return max(settled if self.looked is None else self.looked, self.begun)


def judge(look: LogAbove, expected: MirrorRecord, *, replaced: bool = False) -> Judgement:
    """Return the judgement about a mirror's commits after `expected.since`. `look`: its
    log from there on. `replaced`: all its rows are about to be replaced, so foreign
    commits do not matter.
    """
    if (look.newest if look.newest is not None else -1) < expected.version:
        return Behind(look.newest, expected.version)
    settled = expected.settled
    if settled is not None and expected.since == settled.delta_version and look.base is not None:
        if (other := _other(look.base, expected.ledger)) is not None:
            return other
        if look.base.transactions.get(expected.app_id) != settled.intent.txn_version:
            return Behind(look.newest, expected.version)
    first: Judgement | None = None
    for commit in look.commits:
        judgement = _mirrors(commit, expected)
        if isinstance(judgement, Ahead):
            return judgement
        first = first or judgement
    if look.missing is not None and first is None:
        first = Unknown(look.missing)
    return AllExpected(look.newest) if first is None or replaced else first


def _mirrors(commit: LakeCommit, expected: MirrorRecord) -> Ahead | Foreign | None:
    if not commit.ours:
        return foreign(commit)
    if (other := _other(commit, expected.ledger)) is not None:
        return other
    writes = (expected.intent, expected.settled.intent if expected.settled else None)
    intents = [intent for intent in writes if intent is not None]
    number = _number(commit, expected.app_id)
    if commit.repeats is not None and number is not None and number <= expected.last:
        return foreign(commit)
    if number is None:
        spans = [[intent.first_batch, intent.last_batch] for intent in intents]
        return None if (commit.said or {}).get("batches") in spans else Ahead(commit)
    if number in {intent.txn_version for intent in intents}:
        return None
    if number > expected.last:
        return Ahead(commit)
    if expected.app_id in commit.transactions:
        return Foreign(commit, "it is a write that had been given up")
    return None


def _number(commit: LakeCommit, app_id: str) -> int | None:
    """Return the transaction version of the intent that a commit of ours carries out,
    or None."""
    for name in (app_id, f"{app_id}/evolve"):
        if name in commit.transactions:
            return commit.transactions[name]
    said = commit.said or {}
    number = said.get("txn_version")
    return number if said.get("app_id") == app_id and isinstance(number, int) else None


def _other(commit: LakeCommit, ledger: str) -> Ahead | None:
    other = (commit.said or {}).get("ledger")
    return Ahead(commit, str(other)) if other is not None and other != ledger else None


def judge_changelog(
    look: LogAbove,
    looked: int | None,
    ledger: str,
    batches: Mapping[int, Batch],
    pruned: int = 0,
    revised: int = 0,
) -> Judgement:
    """Return the judgement about the commits of a changelog, or of a system table
    (`_transactions`, `_ddl`), after the version `looked`. `batches`: the ledger's
    batches that the commits name, by number; a batch below `pruned` may be missing
    because upkeep deleted it. `revised`: the number of the ledger's newest revision."""
    if looked is not None and (look.newest if look.newest is not None else -1) < looked:
        return Behind(look.newest, looked)
    first: Judgement | None = None
    moved: Judgement | None = None
    for commit in look.commits:
        if commit.ours:
            if (other := _other(commit, ledger)) is not None:
                return other
            said = commit.said or {}
            number = said["batches"][-1] if said.get("batches") else None
            batch = None if number is None else batches.get(number)
            if batch is None and number is not None and number < pruned:
                continue
            if not _names(said, batch):
                return Ahead(commit)
            if said.get("revision", 0) > revised:
                return Ahead(commit)
        else:
            first = first or foreign(commit)
            moved = moved or (Moved(commit) if commit.relists else None)
    if look.missing is not None and first is None:
        first = Unknown(look.missing)
    return first or moved or AllExpected(look.newest)


def _names(said: Mapping[str, Any], batch: Batch | None) -> bool:
    """Return whether a commit names this batch. The moment of capture is compared too:
    a copy of the ledger with which somebody continued gives the same batch numbers, and
    may have read up to the same place of the log."""
    if batch is None or batch.end is None or batch.captured_at is None:
        return said.get("position") is None
    captured_at = batch.captured_at.isoformat()
    at_the_same_moment = said.get("captured_at", captured_at) == captured_at
    return said.get("position") == str(batch.end.at) and at_the_same_moment


def reshaped(commit: LakeCommit) -> bool:
    """Return whether another program's commit changed the table's columns, a property
    on which Lockstep depends, or rows by a deletion vector. Listing the recorded files
    again does not undo such a commit."""
    altered = commit.altered
    if commit.ours:
        return False
    return any(file.deleted for file in commit.adds) or (
        altered is not None
        and (altered.columns is not False or any(map(_owned, altered.properties)))
    )


def foreign(commit: LakeCommit) -> Foreign | None:
    """Return why another program's commit may have changed the table, or None if it is
    neutral."""
    altered = commit.altered
    if commit.operation not in NEUTRAL:
        return Foreign(commit, "it may have changed rows or columns")
    if any(file.data_change for file in (*commit.adds, *commit.removes)):
        return Foreign(commit, "it changed rows")
    before, after = _rows(commit.removes), _rows(commit.adds)
    if before is None or after is None or before != after:
        return Foreign(commit, "it changed the number of rows")
    if altered is not None and altered.columns is not False:
        return Foreign(commit, "it may have changed columns")
    owned = [name for name in (altered.properties if altered else ()) if _owned(name)]
    if owned:
        return Foreign(commit, f"it changed the property {owned[0]}")
    return None


def _rows(files: Iterable[FileAction]) -> int | None:
    total = 0
    for file in files:
        if file.rows is None:
            return None
        total += file.rows
    return total


def _owned(name: str) -> bool:
    return name.startswith("delta.") and not name.startswith(_FREE)


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
    of published batches whose changes are kept. `waiting`: files of batches of which
    the ledger does not know yet whether they are published. `forgotten`: the newest
    batch whose changes are no longer kept.
    """

    files: Mapping[str, SegmentFile]
    waiting: frozenset[str] = frozenset()
    forgotten: int = 0

    @property
    def batches(self) -> frozenset[int]:
        batches = map(batch_of, (*self.files, *self.waiting))
        return frozenset(batch for batch in batches if batch is not None)


@dataclass(frozen=True, slots=True)
class ForeignFiles:
    """Files that commits of other programs changed. `came`: files that they added and
    did not remove again; `gone`: files that they removed and did not add again."""

    came: Mapping[str, FileAction] = field(default_factory=lambda: MappingProxyType({}))
    gone: Mapping[str, FileAction] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True, slots=True)
class Difference:
    """The difference between a changelog and the ledger. `surplus`: files that the
    changelog should not list but does; `lacking`: files that it should list but does
    not."""

    surplus: tuple[str, ...] = ()
    lacking: tuple[SegmentFile, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.surplus or self.lacking)


def foreign_files(commits: Iterable[LakeCommit]) -> ForeignFiles:
    """Return the files that other programs' commits among these changed. Commits are
    given oldest first, and ours are skipped."""
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
    """Return the difference between the paths that a changelog lists and those that the
    ledger recorded. `batches_in` returns the batches of a file's rows, for files of
    other programs, whose names do not say the batch."""
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
    """Return the files that a table would list without the commits of other programs
    among these. Used when the ledger is lost; the files listed before the oldest of
    these commits are trusted.
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
