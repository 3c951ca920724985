"""What a mirror's upkeep consists of, each step with its reason. Pure.

Belongs here: which files are small, how large they should be, what is purged and deleted, which
checkpoints go. Does not: whether the mirror may be written to now (`pipeline.runs.upkeeping`),
Spark (`resources.lake`).

| step | when |
|---|---|
| compact | `small_files` files are smaller than half of what they should be, and half of them go |
| purge | a part of the rows, `deleted_share`, is deleted and still in the files |
| vacuum | there are files that no version needs which was replaced within `keep` |

Files should be a 32nd of the table, at least 16 MiB and at most 512 MiB: a MERGE writes the files
anew in which it changes rows, so a small table gets small files, and a large one few enough to be
listed at once. A file is written again only until it has half that size, so that a mirror to which
rows are added is not written again and again.

With every tenth commit Delta writes a checkpoint, and it keeps each as long as the log. Those of a
table that is written to every minute are thousands, and each lists all files and those that were
removed within `keep`. A version is read from the newest checkpoint at or before it and the commits
behind that. So of those that are older than a day the first of each day stays, and the first of
each thousand versions: what is promised stays readable, from at most that many commits, and Delta,
which deletes commits by their age, takes no more than a day of versions with a checkpoint.
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
"""Largest difference between two clocks by which files may still be deleted."""

_PARTS: Final = 32
_LEAST: Final = 16 << 20
_MOST: Final = 512 << 20
_ROOM: Final = 2
"""How many times the size of what is rewritten has to be free: the old files stay."""


@dataclass(frozen=True, slots=True)
class UpkeepPolicy:
    """What [upkeep] says. `small_files`: so many small files are put together; `file_bytes`: how
    large files are then, None by the size of the table; `deleted_share`: from which part of its
    rows on a mirror is freed of deleted ones; `purge`: of each, whatever its share;
    `keep_changes`: how long changes stay in changelogs, None for good."""

    small_files: int = SMALL_FILES
    file_bytes: int | None = None
    deleted_share: float = DELETED_SHARE
    purge: bool = False
    keep_changes: timedelta | None = None


@dataclass(frozen=True, slots=True)
class Pile:
    """Files, and their bytes together."""

    files: int = 0
    bytes: int = 0

    @classmethod
    def of(cls, sizes: Sequence[int]) -> Pile:
        return cls(len(sizes), sum(sizes))


@dataclass(frozen=True, slots=True)
class MirrorFiles:
    """The files of a mirror's newest version: their sizes in bytes, the rows in them, and how many
    of those are deleted; None where nobody tells. `unneeded`: files that no version needs which
    was replaced within the promised time; `untold`: why those cannot be told. `free`: bytes that
    the lake has room for, None where nobody tells."""

    sizes: tuple[int, ...]
    rows: int | None
    deleted: int | None
    unneeded: Pile = Pile()
    untold: str | None = None
    free: int | None = None


class StepKind(StrEnum):
    """What a step does."""

    COMPACT = "compact"
    PURGE = "purge"
    VACUUM = "vacuum"

    @property
    def commits(self) -> bool:
        """Whether it makes a commit."""
        return self is not StepKind.VACUUM


@dataclass(frozen=True, slots=True)
class UpkeepStep:
    """A step, what it is about, and why. `target`: how large files should be, in bytes;
    `deleted_share`: files of which more is deleted are written again too."""

    kind: StepKind
    pile: Pile
    reason: str
    target: int = 0
    deleted_share: float = 1.0


@dataclass(frozen=True, slots=True)
class UpkeepPlan:
    """The steps in their order; `left`: what is not done, and why, a sentence each."""

    steps: tuple[UpkeepStep, ...] = ()
    left: tuple[str, ...] = ()


def decide(files: MirrorFiles, policy: UpkeepPolicy, doubt: str | None = None) -> UpkeepPlan:
    """`doubt`: why no clock can be trusted to delete by."""
    steps, left = [], []
    for step in (_compact(files, policy), _purge(files, policy)):
        if step is None:
            continue
        if files.free is None or files.free >= step.pile.bytes * _ROOM:
            steps.append(step)
        else:
            left.append(
                f"{step.kind.value}: {step.pile.bytes >> 20} MiB would be rewritten, and the "
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
    if files.untold is not None:
        left.append(files.untold)
    return UpkeepPlan(tuple(steps), tuple(left))


def doubt_of(
    now: datetime, ledger: datetime, newest: datetime | None, held: datetime | None, keep: timedelta
) -> str | None:
    """Why the clocks cannot be trusted to delete what is older than `keep`; None where they can. A
    clock that is fast makes files old that are not. `now`: what this machine's clock says,
    `ledger`: what the ledger's does; `newest`: the moment of the mirror's newest commit, `held`:
    when somebody had the source last, None where nobody told."""
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
    """How large the files of a table of so many bytes should be."""
    if policy.file_bytes is not None:
        return policy.file_bytes
    return min(max(_power(total // _PARTS), _LEAST), _MOST)


def _power(size: int) -> int:
    """The power of two that is not smaller: so the size does not change with every upkeep."""
    return 1 << max(size - 1, 0).bit_length()


def _compact(files: MirrorFiles, policy: UpkeepPolicy) -> UpkeepStep | None:
    target = target_bytes(sum(files.sizes), policy)
    small = Pile.of([size for size in files.sizes if size < target // 2])
    left = -(-small.bytes // target)
    if small.files < max(policy.small_files, 2) or left * 2 > small.files:
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
    return UpkeepStep(StepKind.PURGE, Pile.of(files.sizes), reason)


def _files(number: int) -> str:
    return "1 file" if number == 1 else f"{number:,} files"


DAY: Final = timedelta(days=1)
VERSIONS: Final = 1000
NEWEST: Final = 2
"""So many stay, however old."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Of a version, with its size in bytes."""

    version: int
    made_at: datetime
    size: int


def superfluous(checkpoints: Sequence[Checkpoint], now: datetime) -> list[Checkpoint]:
    """Those that go of all there are, in any order."""
    ordered = sorted(checkpoints, key=lambda one: one.version)
    gone = []
    kept: Checkpoint | None = None
    for checkpoint in ordered[:-NEWEST]:
        if kept is None or now - checkpoint.made_at < DAY or not _near(kept, checkpoint):
            kept = checkpoint
        else:
            gone.append(checkpoint)
    return gone


def _near(kept: Checkpoint, checkpoint: Checkpoint) -> bool:
    """Whether versions behind it can as well be read from the one that is kept."""
    return (
        kept.version // VERSIONS == checkpoint.version // VERSIONS
        and timedelta() <= checkpoint.made_at - kept.made_at < DAY
    )
