"""Whether a table's changelog has all that its mirror is to hold.

A changelog is complete from the last event on behind which the table was empty: its creation,
a TRUNCATE, or a reading of the source that found no row. What came into the mirror past the
changelog makes it incomplete again: rows or columns read from the source, another table's
mirror that came with a rename. So does a part of the log that nobody read, or that was read
twice.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from pipeline.changes.merging import SETTLES
from pipeline.ports.batches import TableContent
from pipeline.table_state import SnapshotPart, TableEvent, TableEventKind


@dataclass(frozen=True, slots=True)
class FromChangelog:
    """`parts`: those with something of the table since it was empty, oldest first; the empty
    table had schema version `version`."""

    parts: tuple[TableContent, ...]
    version: int

    @property
    def told(self) -> str:
        return f"from its changelog, since batch {self.parts[0].batch}"


Origin = FromChangelog | str
"""Where a mirror's rows come from that is written anew: its changelog, or the source, for that
reason."""


def reload_origin(
    parts: Sequence[TableContent],
    *,
    adopted: bool,
    gaps: Collection[int],
    overlaps: Collection[int],
    tried: int | None = None,
    forgotten: int = 0,
) -> Origin:
    """`parts`: all there are, oldest first. `adopted`: whether the mirror came with a rename.
    `gaps`, `overlaps`: batches before which part of the log was not read, or that read some of
    it again. `tried`: the first batch that no mirror shows, since a write was refused.
    `forgotten`: changes up to that batch are kept no longer."""
    found = _emptied(parts)
    if found is None:
        return "when its changelog began, the table already had rows"
    at, event = found
    since = tuple(parts[at:])
    first = since[0]
    if event.kind is TableEventKind.REREAD and _has_rows(first.snapshot):
        return (
            f"its rows were read from the source in batch {first.batch}, and no changelog has those"
        )
    for part in since:
        read = part.snapshot
        if read is not None and read.columns is not None and read.low_sequence >= event.sequence:
            columns = ", ".join(read.columns)
            return f"{columns} was read from the source in batch {part.batch}"
    if first.batch <= forgotten:
        return f"changes up to batch {forgotten} were deleted, as `keep_changes` says"
    if adopted:
        return "its mirror came with another table's rows"
    for batch in sorted(gaps):
        if batch > first.batch:
            return f"the log before batch {batch} was not read"
    for batch in sorted(overlaps):
        if batch > first.batch:
            return f"batch {batch} read part of the log a second time"
    again = [one for one in since if tried is not None and one.batch >= tried]
    if any(one.kind is TableEventKind.REBUILT for part in again for one in part.events):
        return "a mirror could not be written from its changelog"
    return FromChangelog(since, event.version)


def since_emptied(parts: Sequence[TableContent]) -> Sequence[TableContent]:
    """Those from the last on behind whose event the table was empty, or was read."""
    found = _emptied(parts)
    return parts if found is None else parts[found[0] :]


def _emptied(parts: Sequence[TableContent]) -> tuple[int, TableEvent] | None:
    """The last event that settles what the table holds, and the number of its part."""
    for at in range(len(parts) - 1, -1, -1):
        for event in reversed(parts[at].events):
            if event.kind in SETTLES:
                return at, event
    return None


def _has_rows(read: SnapshotPart | None) -> bool:
    return read is not None and any(file.images for file in read.files)
