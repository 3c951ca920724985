"""Decides the steps of a mirror's upkeep, each with its reason. A mirror is the Delta
table with a table's current rows. Pure.

Not here: whether the mirror may be written to now (`pipeline.run.upkeep`), Spark
(`resources.lake`).

| step | when |
|---|---|
| compact | `small_files` files have less than half of the target size, and their number is halved |
| purge | at least `deleted_share` of the rows in the files are deleted |
| vacuum | there are files that are needed only by versions replaced longer ago than `keep` |

The target size of files is a 32nd of the table, from 16 to 512 MiB. A MERGE rewrites
every file in which it changes a row. So a small table gets small files, and a large
table few enough to list. A file with half the target size is not rewritten again, so
that a growing mirror is not rewritten at each upkeep.

Delta writes a checkpoint with every tenth commit, and keeps it as long as the log. A
table that is written to every minute has thousands of them. Each lists all files, and
the files that were removed within `keep`. A version is read from the newest checkpoint
at or before it, and the commits after that. So of the checkpoints older than a day,
only the first of each day and of each thousand versions are kept. Promised versions
then stay readable from at most a day's or a thousand commits. When Delta deletes a
checkpoint's commits by their age, it deletes at most a day of versions too many.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

SMALL_FILES: Final = 16
DELETED_SHARE: Final = 0.1

CLOCKS_APART: Final = timedelta(minutes=10)
"""Largest difference between two clocks at which files may still be deleted."""

_PARTS: Final = 32
_LEAST: Final = 16 << 20
_MOST: Final = 512 << 20
_ROOM: Final = 2
"""Free space that a rewrite needs, as a multiple of the files' size. The old files stay
until a vacuum."""


@dataclass(frozen=True, slots=True)
class UpkeepPolicy:
    """The settings under [upkeep]. `small_files`: number of small files at which a
    mirror is compacted. `file_bytes`: target size of files, None for a size that
    depends on the table's. `deleted_share`: part of a mirror's rows at which deleted
    rows are purged; `purge`: purge them at any number. `keep_changes`: how long changes
    stay in changelogs, None for ever."""

    small_files: int = SMALL_FILES
    file_bytes: int | None = None
    deleted_share: float = DELETED_SHARE
    purge: bool = False
    keep_changes: timedelta | None = None


@dataclass(frozen=True, slots=True)
class FileTotal:
    """The number of files, and the sum of their sizes."""

    files: int = 0
    bytes: int = 0

    @classmethod
    def of(cls, sizes: Sequence[int]) -> FileTotal:
        return cls(len(sizes), sum(sizes))


@dataclass(frozen=True, slots=True)
class MirrorFiles:
    """The files of a mirror's newest version. `sizes`: in bytes. `rows`: number of rows
    in them; `deleted`: how many of these are marked as deleted; None if unknown.
    `unneeded`: files that no promised version needs; `why_unknown`: why these are
    unknown. `free`: free bytes in the lake, None if unknown."""

    sizes: tuple[int, ...]
    rows: int | None
    deleted: int | None
    unneeded: FileTotal = FileTotal()
    why_unknown: str | None = None
    free: int | None = None


class StepKind(StrEnum):
    """The kind of a step, as the module's table explains."""

    COMPACT = "compact"
    PURGE = "purge"
    VACUUM = "vacuum"

    @property
    def commits(self) -> bool:
        """True if the step makes a commit."""
        return self is not StepKind.VACUUM


@dataclass(frozen=True, slots=True)
class UpkeepStep:
    """A step of upkeep. `total`: the files that it rewrites or deletes. `target`:
    target size of files in bytes. `deleted_share`: a compaction also rewrites files of
    which a larger part is deleted."""

    kind: StepKind
    total: FileTotal
    reason: str
    target: int = 0
    deleted_share: float = 1.0


@dataclass(frozen=True, slots=True)
class UpkeepPlan:
    """The steps in their order. `left`: a sentence on each step that is needed but not
    done."""

    steps: tuple[UpkeepStep, ...] = ()
    left: tuple[str, ...] = ()


def decide(files: MirrorFiles, policy: UpkeepPolicy, doubt: str | None = None) -> UpkeepPlan:
    """Return the steps of a mirror's upkeep. `doubt`: why the clocks cannot be trusted;
    None if they can."""
    steps, left = [], []
    for step in (_compact(files, policy), _purge(files, policy)):
        if step is None:
            continue
        if files.free is None or files.free >= step.total.bytes * _ROOM:
            steps.append(step)
        else:
            left.append(
                f"{step.kind.value}: {step.total.bytes >> 20} MiB would be rewritten, and the "
                f"lake has room for {files.free >> 20} MiB; make room"
            )
    if files.unneeded.files:
        if doubt is None:
            steps.append(
                UpkeepStep(
                    StepKind.VACUUM,
                    files.unneeded,
                    f"no version that is promised needs {_files(files.unneeded.files)}",
                )
            )
        else:
            left.append(f"{_files(files.unneeded.files)} that nothing needs stay: {doubt}")
    if files.why_unknown is not None:
        left.append(files.why_unknown)
    return UpkeepPlan(tuple(steps), tuple(left))


def clock_doubt(
    now: datetime, ledger: datetime, newest: datetime | None, held: datetime | None, keep: timedelta
) -> str | None:
    """Return why the clocks cannot be trusted to delete files older than `keep`, or
    None. If a clock is fast, files seem older than they are. `now`: this machine's
    clock; `ledger`: the ledger's clock. `newest`: time of the mirror's newest commit;
    `held`: when a process last held the source's lock; None if unknown."""
    if abs(now - ledger) > CLOCKS_APART:
        return (
            f"this machine's clock says {now:%Y-%m-%d %H:%M:%S} UTC, the ledger's "
            f"{ledger:%Y-%m-%d %H:%M:%S}; set the one that is wrong"
        )
    if newest is not None and newest - now > CLOCKS_APART:
        return (
            f"the clock says {now:%Y-%m-%d %H:%M:%S} UTC, and the newest commit is of "
            f"{newest:%Y-%m-%d %H:%M:%S}; set the clock right"
        )
    if held is None or now - held > keep:
        return (
            f"by the clock, {now:%Y-%m-%d %H:%M:%S} UTC, there was no run for longer than versions "
            "are promised; if it is right, `lockstep run` first"
        )
    return None


def target_bytes(total: int, policy: UpkeepPolicy) -> int:
    """Return the target size of the files of a table with `total` bytes."""
    if policy.file_bytes is not None:
        return policy.file_bytes
    # Rounded up to a power of two, so that the target does not change with every
    # upkeep.
    power = 1 << max(total // _PARTS - 1, 0).bit_length()
    return min(max(power, _LEAST), _MOST)


def _compact(files: MirrorFiles, policy: UpkeepPolicy) -> UpkeepStep | None:
    target = target_bytes(sum(files.sizes), policy)
    small = FileTotal.of([size for size in files.sizes if size < target // 2])
    files_after = -(-small.bytes // target)
    if small.files < max(policy.small_files, 2) or files_after * 2 > small.files:
        return None
    reason = f"{_files(small.files)} of {len(files.sizes)} are smaller than {target // 2 >> 10} KiB"
    return UpkeepStep(StepKind.COMPACT, small, reason, target, policy.deleted_share)


def _purge(files: MirrorFiles, policy: UpkeepPolicy) -> UpkeepStep | None:
    deleted, rows = files.deleted or 0, files.rows or 0
    if not deleted or not rows:
        return None
    if not policy.purge and deleted < rows * policy.deleted_share:
        return None
    reason = f"{deleted:,} of {rows:,} rows in the files are deleted"
    return UpkeepStep(StepKind.PURGE, FileTotal.of(files.sizes), reason)


def _files(number: int) -> str:
    return "1 file" if number == 1 else f"{number:,} files"


DAY: Final = timedelta(days=1)
VERSIONS: Final = 1000
NEWEST: Final = 2
"""Number of newest checkpoints that are always kept."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A Delta checkpoint of a version, with its size in bytes."""

    version: int
    made_at: datetime
    size: int


def checkpoints_to_delete(checkpoints: Sequence[Checkpoint], now: datetime) -> list[Checkpoint]:
    """Return the checkpoints to delete. `checkpoints`: all of the table, in any order."""
    ascending = sorted(checkpoints, key=lambda checkpoint: checkpoint.version)
    deleted = []
    kept: Checkpoint | None = None
    for checkpoint in ascending[:-NEWEST]:
        if kept is None or now - checkpoint.made_at < DAY or not _near(kept, checkpoint):
            kept = checkpoint
        else:
            deleted.append(checkpoint)
    return deleted


def _near(kept: Checkpoint, checkpoint: Checkpoint) -> bool:
    """Return whether the versions after `checkpoint` can as well be read from `kept`."""
    return (
        kept.version // VERSIONS == checkpoint.version // VERSIONS
        and timedelta() <= checkpoint.made_at - kept.made_at < DAY
    )
