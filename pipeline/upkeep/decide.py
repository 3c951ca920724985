"""Decides the steps of a mirror's upkeep, each with its reason. A mirror is the Delta
table with a table's current rows. Pure.

Not here: whether the mirror may be written to now (`pipeline.run.upkeep`), Spark
(`resources.lake`).

| step | when |
|---|---|
| compact | `small_files` files have less than half the target size; half as many replace them |
| purge | at least `deleted_share` of the rows in the files are deleted |
| vacuum | there are files that are needed only by versions replaced longer ago than `keep` |

The target size of files is a 32nd of the table, from 16 to 512 MiB. A MERGE rewrites
every file in which it changes a row. So a small table gets small files, and a large
table gets few enough files to list. A file with half the target size is not rewritten
again, so that a growing mirror is not rewritten at each upkeep.

Delta writes a checkpoint with every tenth commit, and keeps it as long as the log. A
table that is written to every minute has thousands of them. Each lists all files, and
the files that were removed within `keep`. A version is read from the newest checkpoint
at or before it, and the commits after the checkpoint. So of the checkpoints older than
a day, only the first of each day and of each thousand versions are kept. A reader of a
promised version then reads at most the commits of a day, or a thousand, after a
checkpoint. Delta deletes commits by their age, as far as a checkpoint replaces them.
With fewer checkpoints, versions of up to one more day become unreadable. None of them
is promised, since the log is kept longer than that (`values.retention`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from lockstep.pipeline.values.shown import pluralize

MAX_CLOCK_SKEW: Final = timedelta(minutes=10)
"""Largest difference between two clocks at which files may still be deleted."""

_FILES_PER_TABLE: Final = 32
_MIN_TARGET_BYTES: Final = 16 << 20
_MAX_TARGET_BYTES: Final = 512 << 20
_SPACE_FACTOR: Final = 2
"""Free space that a rewrite needs, as a multiple of the files' size. The old files stay
until a vacuum."""


@dataclass(frozen=True, slots=True)
class UpkeepPolicy:
    """The settings under [upkeep]. `small_files`: number of small files at which a
    mirror is compacted. `file_bytes`: target size of files, None for a size that
    depends on the table's. `deleted_share`: part of a mirror's rows at which deleted
    rows are purged; `purge`: purge them at any number. `keep_changes`: how long changes
    stay in changelogs, None for ever."""

    small_files: int = 16
    file_bytes: int | None = None
    deleted_share: float = 0.1
    purge: bool = False
    keep_changes: timedelta | None = None


@dataclass(frozen=True, slots=True)
class FileTotal:
    """The number of files, and the sum of their sizes."""

    count: int = 0
    bytes: int = 0

    @classmethod
    def of(cls, sizes: Sequence[int]) -> FileTotal:
        return cls(len(sizes), sum(sizes))


@dataclass(frozen=True, slots=True)
class MirrorFiles:
    """The files of a mirror's newest version. `sizes`: in bytes. `rows`: number of rows
    in them; `deleted_rows`: how many of these are marked as deleted; None if unknown.
    `unneeded`: files that no promised version needs; `reason_unknown`: why these are
    unknown. `free_bytes`: free space in the lake, None if unknown."""

    sizes: tuple[int, ...]
    rows: int | None
    deleted_rows: int | None
    unneeded: FileTotal = FileTotal()
    reason_unknown: str | None = None
    free_bytes: int | None = None


class StepKind(StrEnum):
    """The kind of a step; the module's table explains each."""

    COMPACT = "compact"
    PURGE = "purge"
    VACUUM = "vacuum"

    @property
    def makes_commit(self) -> bool:
        return self is not StepKind.VACUUM


@dataclass(frozen=True, slots=True)
class UpkeepStep:
    """A step of upkeep. `total`: the files that it rewrites or deletes. `target_bytes`:
    target size of files. `deleted_share`: a compaction also rewrites files of which a
    larger part is deleted."""

    kind: StepKind
    total: FileTotal
    reason: str
    target_bytes: int = 0
    deleted_share: float = 1.0


@dataclass(frozen=True, slots=True)
class UpkeepPlan:
    """The steps in their order. `obstacles`: a sentence on each step that is needed but
    cannot be done."""

    steps: tuple[UpkeepStep, ...] = ()
    obstacles: tuple[str, ...] = ()


def decide(files: MirrorFiles, policy: UpkeepPolicy, doubt: str | None = None) -> UpkeepPlan:
    """Return the steps of a mirror's upkeep. `doubt`: why the clocks cannot be trusted;
    None if they can."""
    steps: list[UpkeepStep] = []
    obstacles: list[str] = []
    for step in filter(None, (_compact_step(files, policy), _purge_step(files, policy))):
        if files.free_bytes is None or files.free_bytes >= step.total.bytes * _SPACE_FACTOR:
            steps.append(step)
        else:
            obstacles.append(
                f"{step.kind.value}: {step.total.bytes >> 20} MiB would be rewritten, and the "
                f"lake has room for {files.free_bytes >> 20} MiB; make room"
            )
    if files.unneeded.count:
        if doubt is None:
            steps.append(
                UpkeepStep(
                    StepKind.VACUUM,
                    files.unneeded,
                    f"no version that is promised needs {pluralize(files.unneeded.count, 'file')}",
                )
            )
        else:
            obstacles.append(
                f"{pluralize(files.unneeded.count, 'file')} that nothing needs stay: {doubt}"
            )
    if files.reason_unknown is not None:
        obstacles.append(files.reason_unknown)
    return UpkeepPlan(tuple(steps), tuple(obstacles))


def clock_doubt(
    now: datetime,
    ledger_now: datetime,
    newest_commit_at: datetime | None,
    last_lease_at: datetime | None,
    keep: timedelta,
) -> str | None:
    """Return why the clocks cannot be trusted to delete files older than `keep`, or
    None. If a clock is fast, files seem older than they are. `now`, `ledger_now`: the
    present time by this machine's and by the ledger's clock. `newest_commit_at`: time of
    the mirror's newest commit. `last_lease_at`: when a process last held the source's
    lock; None if unknown."""
    if abs(now - ledger_now) > MAX_CLOCK_SKEW:
        return (
            f"this machine's clock says {now:%Y-%m-%d %H:%M:%S} UTC, the ledger's "
            f"{ledger_now:%Y-%m-%d %H:%M:%S}; set the one that is wrong"
        )
    if newest_commit_at is not None and newest_commit_at - now > MAX_CLOCK_SKEW:
        return (
            f"this machine's clock says {now:%Y-%m-%d %H:%M:%S} UTC, and the newest commit is of "
            f"{newest_commit_at:%Y-%m-%d %H:%M:%S}; set the clock right"
        )
    if last_lease_at is None or now - last_lease_at > keep:
        return (
            f"by this machine's clock, {now:%Y-%m-%d %H:%M:%S} UTC, there was no run for longer "
            "than versions are promised; if it is right, type `lockstep run` first"
        )
    return None


def target_bytes(total: int, policy: UpkeepPolicy) -> int:
    """Return the target size of the files of a table with `total` bytes."""
    if policy.file_bytes is not None:
        return policy.file_bytes
    # Rounded up to a power of two, so that the target does not change with every
    # upkeep.
    power = 1 << max(total // _FILES_PER_TABLE - 1, 0).bit_length()
    return min(max(power, _MIN_TARGET_BYTES), _MAX_TARGET_BYTES)


def _compact_step(files: MirrorFiles, policy: UpkeepPolicy) -> UpkeepStep | None:
    target = target_bytes(sum(files.sizes), policy)
    small = FileTotal.of([size for size in files.sizes if size < target // 2])
    files_after = -(-small.bytes // target)
    if small.count < max(policy.small_files, 2) or files_after * 2 > small.count:
        return None
    counts = f"{pluralize(small.count, 'file')} of {len(files.sizes)}"
    reason = f"{counts} are smaller than {target // 2 >> 10} KiB"
    return UpkeepStep(StepKind.COMPACT, small, reason, target, policy.deleted_share)


def _purge_step(files: MirrorFiles, policy: UpkeepPolicy) -> UpkeepStep | None:
    deleted, rows = files.deleted_rows or 0, files.rows or 0
    if not deleted or not rows:
        return None
    if not policy.purge and deleted < rows * policy.deleted_share:
        return None
    reason = f"{deleted:,} of {pluralize(rows, 'row')} in the files are deleted"
    return UpkeepStep(StepKind.PURGE, FileTotal.of(files.sizes), reason)


DAY: Final = timedelta(days=1)
VERSIONS_PER_CHECKPOINT: Final = 1000
_ALWAYS_KEPT: Final = 2
"""Number of newest checkpoints that are always kept."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A Delta checkpoint of a version, with its size in bytes."""

    version: int
    made_at: datetime
    size: int


def checkpoints_to_delete(checkpoints: Sequence[Checkpoint], now: datetime) -> list[Checkpoint]:
    """Return the checkpoints to delete. `checkpoints`: all checkpoints of the table, in
    any order."""
    ascending = sorted(checkpoints, key=lambda checkpoint: checkpoint.version)
    unneeded = []
    kept: Checkpoint | None = None
    for checkpoint in ascending[:-_ALWAYS_KEPT]:
        if kept is None or now - checkpoint.made_at < DAY or not _replaces(kept, checkpoint):
            kept = checkpoint
        else:
            unneeded.append(checkpoint)
    return unneeded


def _replaces(kept: Checkpoint, checkpoint: Checkpoint) -> bool:
    """Return whether versions after `checkpoint` can be read from the older checkpoint
    `kept` just as well."""
    return (
        kept.version // VERSIONS_PER_CHECKPOINT == checkpoint.version // VERSIONS_PER_CHECKPOINT
        and timedelta() <= checkpoint.made_at - kept.made_at < DAY
    )
