"""What a replay did, or found."""

from __future__ import annotations

from dataclasses import dataclass

from pipeline.batch import Batch
from pipeline.replay.spans import Span
from pipeline.runs.agreement.changelog_files import Agreement
from pipeline.runs.replaying.heal import Healed
from pipeline.runs.replaying.segments_found import SegmentFound, SegmentStanding
from pipeline.table import TableName


@dataclass(frozen=True, slots=True)
class BatchReplayed:
    """One batch of the span. `as_recorded`: why the log does not tell it again; None where it was
    read, or would be. `segments`: what was found of it; nothing in a plan. `revision`: how often
    its files were replaced so far."""

    batch: Batch
    as_recorded: str | None
    segments: tuple[SegmentFound, ...] = ()
    revision: int = 0


@dataclass(frozen=True, slots=True)
class ReplayReport:
    """What a replay did, or would find. `tables`: those that it is about. `early`: where the lake
    ends, if the span goes on behind that. `committed`: whether it may have written. `changelogs`:
    those of these tables that list, or listed, other files than the ledger's."""

    span: Span
    batches: tuple[BatchReplayed, ...]
    tables: tuple[TableName, ...]
    mirrors: tuple[Healed, ...] = ()
    early: str | None = None
    committed: bool = False
    seconds: float = 0.0
    changelogs: tuple[Agreement, ...] = ()

    @property
    def segments(self) -> tuple[SegmentFound, ...]:
        return tuple(segment for batch in self.batches for segment in batch.segments)

    @property
    def differs(self) -> bool:
        """Whether the lake has, or had, something else than the span says."""
        standings = {segment.standing for segment in self.segments}
        wrong = not standings.isdisjoint({SegmentStanding.DIFFERENT, SegmentStanding.DAMAGED})
        return wrong or bool(self.changelogs) or any(mirror.wrong for mirror in self.mirrors)

    @property
    def wrong_changelogs(self) -> tuple[Agreement, ...]:
        """Changelogs that list other files than the ledger's still."""
        return tuple(one for one in self.changelogs if one.left is not None)

    @property
    def left(self) -> tuple[SegmentFound, ...]:
        """Damaged files that nothing could be put in the place of."""
        damaged = (
            segment for segment in self.segments if segment.standing is SegmentStanding.DAMAGED
        )
        return tuple(segment for segment in damaged if not segment.replaced)
