"""Judgements about commits that were made to a Delta table since its log was last
checked. Pure.

A changelog is the Delta table with all changes of a source table, a mirror the one with
its current rows. Other programs can commit to both, and a ledger or a lake can be
restored from a backup. Therefore a run judges the new commits of each table before it
writes to it.

Not here: what follows from a judgement (`pipeline.run.agreement`); which files a
changelog should list (`pipeline.model.changelog_listing`).

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

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from lockstep.pipeline.model.batch import Batch
from lockstep.pipeline.model.lake_commit import (
    STATISTICS_OPERATION,
    FileAction,
    LakeCommit,
    LogSince,
)
from lockstep.pipeline.values.intent import Intent, SettledWrite

NEUTRAL: Final = frozenset(
    {
        "CLUSTER BY",
        "Empty Commit",
        "OPTIMIZE",
        "REORG",
        "SET TBLPROPERTIES",
        "UNSET TBLPROPERTIES",
        "VACUUM END",
        "VACUUM START",
        STATISTICS_OPERATION,
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
        examined = -1 if self.examined_version is None else self.examined_version
        return max(self._settled_version, self.adopted_version, examined)

    @property
    def base_version(self) -> int:
        """The version after which its log is to be checked (`LogSince.base`)."""
        if self.examined_version is None:
            return max(self._settled_version, self.adopted_version)
        return max(self.examined_version, self.adopted_version)

    @property
    def _settled_version(self) -> int:
        return -1 if self.settled is None else self.settled.delta_version


def judge_mirror_log(
    log: LogSince, expected: MirrorRecord, *, will_be_replaced: bool = False
) -> Judgement:
    """Return the judgement about a mirror's commits after `expected.base_version`.
    `log`: its log from there on. `will_be_replaced`: all its rows are about to be
    replaced, so foreign commits do not matter.
    """
    if _newest(log) < expected.lowest_version:
        return Behind(log.newest, expected.lowest_version)
    settled = expected.settled
    base = log.base
    if settled and base and expected.base_version == settled.delta_version:
        if (ahead := _by_other_ledger(base, expected.ledger)) is not None:
            return ahead
        if base.transactions.get(expected.app_id) != settled.intent.txn_version:
            return Behind(log.newest, expected.lowest_version)
    judgements = [
        judgement
        for commit in log.commits
        if (judgement := _judge_mirror_commit(commit, expected)) is not None
    ]
    for judgement in judgements:
        if isinstance(judgement, Ahead):
            return judgement
    if not will_be_replaced and judgements:
        return judgements[0]
    if not will_be_replaced and log.missing_version is not None:
        return Unknown(log.missing_version)
    return AllExpected(log.newest)


def _newest(log: LogSince) -> int:
    return -1 if log.newest is None else log.newest


def _judge_mirror_commit(commit: LakeCommit, expected: MirrorRecord) -> Ahead | Foreign | None:
    """Return the judgement about a commit, or None if it is ours or neutral."""
    if not commit.is_ours:
        return judge_foreign(commit)
    if (ahead := _by_other_ledger(commit, expected.ledger)) is not None:
        return ahead
    writes = (expected.open_intent, expected.settled.intent if expected.settled else None)
    intents = [intent for intent in writes if intent is not None]
    txn_version = _txn_version(commit, expected.app_id)
    if txn_version is None:
        spans = [[intent.first_batch, intent.last_batch] for intent in intents]
        return None if (commit.metadata or {}).get("batches") in spans else Ahead(commit)
    if commit.copied_version is not None and txn_version <= expected.last_txn_version:
        # Upkeep repeats the metadata of any earlier write, so only what it changed can
        # show whether it belongs here.
        return judge_foreign(commit)
    if txn_version in {intent.txn_version for intent in intents}:
        return None
    if txn_version > expected.last_txn_version:
        return Ahead(commit)
    if expected.app_id in commit.transactions:
        return Foreign(commit, "it is a write that had been given up")
    return None  # a step (ALTER) before a write that was given up: it changed no rows


def _txn_version(commit: LakeCommit, app_id: str) -> int | None:
    """Return the transaction version of the intent that a commit of ours carries out,
    or None."""
    for name in (app_id, f"{app_id}/evolve"):
        if name in commit.transactions:
            return commit.transactions[name]
    metadata = commit.metadata or {}
    version = metadata.get("txn_version")
    return version if metadata.get("app_id") == app_id and isinstance(version, int) else None


def _by_other_ledger(commit: LakeCommit, ledger: str) -> Ahead | None:
    other = (commit.metadata or {}).get("ledger")
    return Ahead(commit, str(other)) if other is not None and other != ledger else None


def judge_changelog_log(
    log: LogSince,
    examined_version: int | None,
    ledger: str,
    batches: Mapping[int, Batch],
    pruned_through: int = 0,
    newest_revision: int = 0,
) -> Judgement:
    """Return the judgement about the commits of a changelog, or of a system table
    (`_transactions`, `_ddl`), after the version `examined_version`. `batches`: the
    ledger's batches that the commits name, by number. `pruned_through`: upkeep keeps
    this batch, but may have deleted those before it. `newest_revision`: the number of
    the ledger's newest revision."""
    if examined_version is not None and _newest(log) < examined_version:
        return Behind(log.newest, examined_version)
    foreign: Foreign | None = None
    moved: Moved | None = None
    for commit in log.commits:
        if not commit.is_ours:
            foreign = foreign or judge_foreign(commit)
            if moved is None and commit.changes_files:
                moved = Moved(commit)
            continue
        if (ahead := _by_other_ledger(commit, ledger)) is not None:
            return ahead
        metadata = commit.metadata or {}
        number = metadata["batches"][-1] if metadata.get("batches") else None
        batch = None if number is None else batches.get(number)
        if batch is None and number is not None and number < pruned_through:
            continue
        if not _names_batch(metadata, batch) or metadata.get("revision", 0) > newest_revision:
            return Ahead(commit)
    if foreign is not None:
        return foreign
    if log.missing_version is not None:
        return Unknown(log.missing_version)
    return moved or AllExpected(log.newest)


def _names_batch(metadata: Mapping[str, Any], batch: Batch | None) -> bool:
    """Return whether a commit names the end of this batch. If there is no batch, or it
    is not captured, the commit must name no position. The moment of capture is compared
    too: a copy of the ledger with which somebody continued gives the same batch
    numbers, and may have read up to the same place of the log."""
    if batch is None or batch.end is None or batch.captured_at is None:
        return metadata.get("place") is None
    names = metadata.get("place"), metadata.get("captured_at")
    return names == (str(batch.end.at), batch.captured_at.isoformat())


def changes_more_than_files(commit: LakeCommit) -> bool:
    """Return whether another program's commit changed the table's columns, a property
    on which Lockstep depends, or rows by a deletion vector. Listing the recorded files
    again does not undo such a commit."""
    if commit.is_ours:
        return False
    return any(file.deleted_rows for file in commit.adds) or _metadata_effect(commit) is not None


def judge_foreign(commit: LakeCommit) -> Foreign | None:
    """Return why a commit may have changed the table, judged only by what it did and
    not by the metadata that Lockstep writes; None if it is neutral."""
    rows_before, rows_after = _row_count(commit.removes), _row_count(commit.adds)
    effect: str | None
    if commit.operation not in NEUTRAL:
        effect = "it may have changed rows or columns"
    elif any(file.data_change for file in (*commit.adds, *commit.removes)):
        effect = "it changed rows"
    elif rows_before is None or rows_before != rows_after:
        effect = "it changed the number of rows"
    else:
        effect = _metadata_effect(commit)
    return None if effect is None else Foreign(commit, effect)


def _metadata_effect(commit: LakeCommit) -> str | None:
    """Return how a commit may have changed the table's columns or a property on which
    Lockstep depends; None if it did not."""
    change = commit.metadata_change
    if change is None:
        return None
    if change.columns is not False:
        return "it may have changed columns"
    for name in change.properties:
        if name.startswith("delta.") and not name.startswith(_INDEPENDENT):
            return f"it changed the property {name}"
    return None


def _row_count(files: Iterable[FileAction]) -> int | None:
    total = 0
    for file in files:
        if file.row_count is None:
            return None
        total += file.row_count
    return total
