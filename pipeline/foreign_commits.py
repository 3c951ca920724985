"""What a table's log shows above the place that was looked at last, judged. Pure.

Not here: what follows from that (`pipeline.runs`).

| a commit | is |
|---|---|
| the write that the ledger settled last, its open intent, a step of either | ours |
| one of `lockstep upkeep` that leaves the table as it was | neutral |
| one of a Lockstep with another ledger's name | another ledger's |
| one of a Lockstep that the ledger knows nothing of | ahead of the ledger |
| one that carries the transaction of a write that was given up | foreign |
| one that leaves the table as it was | neutral |
| any other | foreign |

A commit leaves the table as it was if its operation is one of `NEUTRAL`, every file in
it has `dataChange = false`, it adds as many rows as it removes, and it changed no
column and no property of ours.

`dataChange` alone is a claim, so rows are counted too. What the log does not say is
unknown, and unknown is foreign.

Whose rows are in which files does not matter in a mirror. A changelog's files are the ledger's, so
that a neutral commit which lists others there is `Moved`: the next run lists the recorded ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from pipeline.intent import Intent, SettledWrite
from pipeline.lake_commit import STATISTICS, FileAction, LakeCommit, LogAbove

NEUTRAL: Final = frozenset(
    {
        *("OPTIMIZE", "REORG", "VACUUM START", "VACUUM END", STATISTICS, "CLUSTER BY"),
        *("SET TBLPROPERTIES", "UNSET TBLPROPERTIES", "Empty Commit"),
    }
)
"""Operations of Spark and delta-rs that need not change what a table shows."""

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
"""Delta's own properties that are not ours: no promise of a mirror depends on them, or, of how
long its versions stay, `lockstep check` tells where one does (`pipeline.preflight.mirrors`)."""


@dataclass(frozen=True, slots=True)
class Passed:
    """Nothing that matters, up to and with `newest`."""

    newest: int | None


@dataclass(frozen=True, slots=True)
class Behind:
    """The table ends before what the ledger knows of it, or is not the one it knows."""

    newest: int | None
    expected: int


@dataclass(frozen=True, slots=True)
class Ahead:
    """A Lockstep's commit that this ledger knows nothing of."""

    commit: LakeCommit
    ledger: str | None = None
    """Another ledger's name, where the commit tells one."""


@dataclass(frozen=True, slots=True)
class Foreign:
    """Somebody else's commit that may have changed what the table shows, and how."""

    commit: LakeCommit
    how: str


@dataclass(frozen=True, slots=True)
class Moved:
    """Somebody else's commit that put a changelog's rows into other files, which nobody recorded,
    and left them as they were otherwise."""

    commit: LakeCommit


@dataclass(frozen=True, slots=True)
class Unknown:
    """A commit above what was looked at whose file is gone."""

    version: int


Found = Passed | Behind | Ahead | Foreign | Moved | Unknown


@dataclass(frozen=True, slots=True)
class Expected:
    """What the ledger knows of a mirror. `looked`: up to which Delta version its log was looked
    at, None where nobody noted that; `begun`: the version it was taken over at, or -1; `last`:
    the highest transaction that was ever intended for it."""

    ledger: str
    app_id: str
    settled: SettledWrite | None
    intent: Intent | None
    looked: int | None
    begun: int = -1
    last: int = 0

    @property
    def version(self) -> int:
        settled = -1 if self.settled is None else self.settled.delta_version
        return max(settled, self.begun, -1 if self.looked is None else self.looked)

    @property
    def since(self) -> int:
        settled = -1 if self.settled is None else self.settled.delta_version
        return max(settled if self.looked is None else self.looked, self.begun)


def judge(look: LogAbove, expected: Expected, *, replaced: bool = False) -> Found:
    """What a mirror's log shows above `expected.since`. `replaced`: all its rows are about to
    be written anew, so what somebody else did to them does not matter."""
    if (look.newest if look.newest is not None else -1) < expected.version:
        return Behind(look.newest, expected.version)
    settled = expected.settled
    if settled is not None and expected.since == settled.delta_version and look.base is not None:
        if (other := _other(look.base, expected.ledger)) is not None:
            return other
        if look.base.transactions.get(expected.app_id) != settled.intent.txn_version:
            return Behind(look.newest, expected.version)
    foreign: Found | None = None
    for commit in look.commits:
        found = _mirrors(commit, expected)
        if isinstance(found, Ahead):
            return found
        foreign = foreign or found
    if look.missing is not None and foreign is None:
        foreign = Unknown(look.missing)
    return Passed(look.newest) if foreign is None or replaced else foreign


def _mirrors(commit: LakeCommit, expected: Expected) -> Ahead | Foreign | None:
    if not commit.ours:
        return foreign(commit)
    if (other := _other(commit, expected.ledger)) is not None:
        return other
    known = [expected.intent, expected.settled.intent if expected.settled else None]
    numbers = {intent.txn_version for intent in known if intent is not None}
    number = _number(commit, expected.app_id)
    if commit.repeats is not None and number is not None and number <= expected.last:
        return foreign(commit)
    if number is None:
        said = commit.said or {}
        spans = [[intent.first_batch, intent.last_batch] for intent in known if intent is not None]
        return None if said.get("batches") in spans else Ahead(commit)
    if number in numbers:
        return None
    if number > expected.last:
        return Ahead(commit)
    if expected.app_id in commit.transactions:
        return Foreign(commit, "it is a write that had been given up")
    return None


def _number(commit: LakeCommit, app_id: str) -> int | None:
    for name in (app_id, f"{app_id}/evolve"):
        if name in commit.transactions:
            return commit.transactions[name]
    said = commit.said or {}
    number = said.get("txn_version")
    return number if said.get("app_id") == app_id and isinstance(number, int) else None


def _other(commit: LakeCommit, ledger: str) -> Ahead | None:
    told = (commit.said or {}).get("ledger")
    return Ahead(commit, str(told)) if told is not None and told != ledger else None


def judge_changelog(
    look: LogAbove,
    looked: int | None,
    ledger: str,
    positions: Mapping[int, str],
    pruned: int = 0,
    revised: int = 0,
) -> Found:
    """The same for a changelog, or a table of the source's own: `positions` of the batches
    that the ledger knows, as commits tell them; of those before `pruned` it knows only some.
    `revised`: its last revision."""
    if looked is not None and (look.newest if look.newest is not None else -1) < looked:
        return Behind(look.newest, looked)
    first: Found | None = None
    moved: Found | None = None
    for commit in look.commits:
        if commit.ours:
            if (other := _other(commit, ledger)) is not None:
                return other
            said = commit.said or {}
            batches = said.get("batches") or [None, None]
            unknown = batches[1] not in positions
            if unknown and batches[1] is not None and batches[1] < pruned:
                continue
            if positions.get(batches[1]) != said.get("position"):
                return Ahead(commit)
            if said.get("revision", 0) > revised:
                return Ahead(commit)
        else:
            first = first or foreign(commit)
            moved = moved or (Moved(commit) if commit.relists else None)
    if look.missing is not None and first is None:
        first = Unknown(look.missing)
    return first or moved or Passed(look.newest)


def reshaped(commit: LakeCommit) -> bool:
    """Whether somebody else's commit changed more of a table than which files it lists: columns,
    properties of ours, or single rows of files that stay."""
    altered = commit.altered
    if commit.ours:
        return False
    return any(file.deleted for file in commit.adds) or (
        altered is not None
        and (altered.columns is not False or any(map(_owned, altered.properties)))
    )


def foreign(commit: LakeCommit) -> Foreign | None:
    """None for a commit that leaves the table as it was."""
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
    counts = [file.rows for file in files]
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None


def _owned(name: str) -> bool:
    return name.startswith("delta.") and not name.startswith(_FREE)
