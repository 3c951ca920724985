"""The plan of a merge of batches (the changes that a run captured) into a mirror (the
Delta table with a table's current rows). Also the choice of the origin from which a
reload takes the mirror's rows. Pure.

Some events settle a table's rows. After CREATED and TRUNCATED the table is empty. After
REREAD it has the rows that were read from the source. After COPIED it has the rows that
another table had before a RENAME (`pipeline.run.write.copying`). Only changes after the
last such event matter. An event has a number that is compared with the `_sequence` of
row images, so no file has to end at the event. If a table was read over several
batches, the number of its REREAD lies in the first of them.

A changelog (the Delta table with all changes) is complete from the last event after
which the table was empty: its creation, a TRUNCATE, or a reading of the source that
returned no row. It becomes incomplete if the mirror gets rows that have no change: rows
or columns that were read from the source, or rows that a RENAME brought from another
table. It also becomes incomplete if a part of the log is skipped or read twice.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from lockstep.pipeline.model.batch import TableContent
from lockstep.pipeline.model.table_state import SnapshotFiles, TableEvent, TableEventKind
from lockstep.pipeline.values.intent import MirrorVersion
from lockstep.pipeline.values.segment import Segment

SETTLING_EVENTS: Final = frozenset(
    {
        TableEventKind.CREATED,
        TableEventKind.TRUNCATED,
        TableEventKind.COPIED,
        TableEventKind.REREAD,
    }
)
"""Events that settle a table's rows: no earlier image matters."""


@dataclass(frozen=True, slots=True)
class RowsLost:
    """An event at which the table lost all its rows: it was truncated, dropped, created
    or read from the source. `sequence`: the number of the last change before it."""

    sequence: int
    event: TableEvent


@dataclass(frozen=True, slots=True)
class MergePlan:
    """A plan of the changes to merge into a mirror.

    `replaces_rows`: the mirror's earlier rows do not matter; it begins with `snapshot`,
    or empty. `segments`: files of row images, of which those with `above` < `_sequence`
    <= `through` are merged (None: no upper limit; a limit is set if the plan ends
    inside a batch). `first_version`: the oldest structure version that matters; None
    for the version that the mirror shows. `final_version`: the version that the mirror
    shows afterwards. `is_dropped`: the table was dropped. `completion`: columns that
    were read from the source by key, for rows without a later image; the newest such
    reading has all columns that are needed. `read_until`: the number of the last change
    that rows of `snapshot` may show; 0 without a snapshot. `copy_event`: the event by
    which the table got another table's rows.

    Only for a mirror that keeps deleted rows: `losses`, the events at which all rows
    were lost, in order, up to the last one that settles the rows;
    `segments_of_lost_rows`, the segments with images of these rows.
    """

    replaces_rows: bool
    above: int
    segments: tuple[Segment, ...]
    snapshot: SnapshotFiles | None
    first_version: int | None
    final_version: int
    is_dropped: bool
    completion: SnapshotFiles | None = None
    read_until: int = 0
    through: int | None = None
    losses: tuple[RowsLost, ...] = ()
    segments_of_lost_rows: tuple[Segment, ...] = ()
    copy_event: TableEvent | None = None

    @property
    def versions(self) -> tuple[int, ...]:
        """The versions whose images are merged, ascending."""
        return tuple(sorted({segment.schema_version for segment in self.segments}))

    @property
    def read_files(self) -> tuple[SnapshotFiles, ...]:
        """The rows and the columns that were read from the source."""
        return tuple(files for files in (self.snapshot, self.completion) if files is not None)


def plan_merge(contents: Sequence[TableContent]) -> MergePlan:
    """Return the plan for one table. `contents`: what each batch has of the table, in
    the order of the log, without batches that have nothing."""
    settling: TableEvent | None = None
    snapshot: SnapshotFiles | None = None
    completion: SnapshotFiles | None = None
    losses: list[RowsLost] = []
    is_dropped = False
    above = 0
    for content in contents:
        if content.snapshot is not None and content.snapshot.columns is not None:
            completion = content.snapshot
        for event in content.events:
            is_dropped = event.kind is TableEventKind.DROPPED
            begin = _sequence_before(content, event)
            if is_dropped or event.kind in SETTLING_EVENTS:
                losses.append(RowsLost(begin, event))
            if event.kind in SETTLING_EVENTS and begin >= above:
                settling, snapshot, above = event, _rows_read(content, event), begin
    if completion is not None and completion.low_sequence < above:
        completion = None
    segments = [segment for content in contents for segment in content.segments]
    settled_losses = [loss for loss in losses if settling is not None and loss.sequence <= above]
    return MergePlan(
        replaces_rows=settling is not None,
        above=above,
        segments=tuple(segment for segment in segments if segment.last_sequence > above),
        snapshot=snapshot,
        first_version=None if settling is None else (snapshot or settling).version,
        final_version=_final_version(contents),
        is_dropped=is_dropped,
        completion=completion,
        read_until=0 if settling is None or snapshot is None else settling.sequence,
        losses=tuple(sorted(settled_losses, key=lambda loss: loss.sequence)),
        segments_of_lost_rows=tuple(s for s in segments if s.first_sequence <= above),
        copy_event=settling if settling and settling.kind is TableEventKind.COPIED else None,
    )


def before_copy(contents: Sequence[TableContent], copied: TableEvent) -> tuple[TableContent, ...]:
    """Return a table's contents up to the RENAME `copied`, which gave its rows to
    another name."""
    cut_contents = (
        replace(
            content,
            segments=tuple(s for s in content.segments if s.first_sequence <= copied.sequence),
            events=tuple(
                event
                for event in content.events
                if event.sequence <= copied.sequence and event.place != copied.place
            ),
        )
        for content in contents
    )
    return tuple(
        content
        for content in cut_contents
        if content.segments or content.events or content.snapshot
    )


def _rows_read(content: TableContent, event: TableEvent) -> SnapshotFiles | None:
    """Return the rows that were read from the source, if the event is a REREAD."""
    return content.snapshot if event.kind is TableEventKind.REREAD else None


def _sequence_before(content: TableContent, event: TableEvent) -> int:
    """Return the number of the last change before an event."""
    read = _rows_read(content, event)
    return event.sequence if read is None else read.low_sequence


def end_of_first_write(contents: Iterable[TableContent]) -> int | None:
    """Return the batch with which the first write of these contents to a mirror that
    keeps deleted rows must end; None if one write can take all.

    Rows that were read from the source or copied from another table have no images. If
    a batch brought such rows and a later batch lost all of them, the mirror must show
    the rows before they are lost: the first write ends with the first such batch.
    """
    bringing_batch: int | None = None
    newest = 0
    for content in contents:
        if bringing_batch is not None and max(_settling_sequences(content), default=-1) >= newest:
            return bringing_batch
        if bringing_batch is None and _brings_rows(content):
            bringing_batch = content.batch
        if bringing_batch in (None, content.batch):
            numbers = [segment.last_sequence for segment in content.segments]
            newest = max([newest, *numbers, *_settling_sequences(content)])
    return None


def _brings_rows(content: TableContent) -> bool:
    """Return whether a batch's content brings rows that have no image."""
    read = content.snapshot is not None and content.snapshot.columns is None
    return read or any(event.kind is TableEventKind.COPIED for event in content.events)


def _settling_sequences(content: TableContent) -> Iterator[int]:
    """Yield the number of the last change before each event of a content that settles
    the rows."""
    return (
        _sequence_before(content, event)
        for event in content.events
        if event.kind in SETTLING_EVENTS
    )


def _final_version(contents: Sequence[TableContent]) -> int:
    """Return the structure version of the newest event or image; a DROPPED does not
    count."""
    versions = [
        (event.sequence, 1, event.version)
        for content in contents
        for event in content.events
        if event.kind is not TableEventKind.DROPPED
    ]
    versions += [
        (segment.last_sequence, 0, segment.schema_version)
        for content in contents
        for segment in content.segments
    ]
    return max(versions)[2] if versions else 0


@dataclass(frozen=True, slots=True)
class ChangelogOrigin:
    """A table's rows, as its changelog gives them: the rows of the mirror's version
    `base`, or none, and the changes after them. `version`: the structure version of
    `base`, or of the empty table. `contents`: what the later batches have of the table,
    oldest first."""

    contents: tuple[TableContent, ...]
    version: int
    base: MirrorVersion | None = None

    @property
    def images(self) -> int:
        """Number of row images in the files of `contents`; some of them may not be merged."""
        segments = (segment for content in self.contents for segment in content.segments)
        return sum(file.images for segment in segments for file in segment.files)

    @property
    def size(self) -> str:
        """The number of batches and of row images, in words."""
        batches = f"{len(self.contents):,} batch{'' if len(self.contents) == 1 else 'es'}"
        return f"{batches}, {self.images:,} row image{'' if self.images == 1 else 's'}"

    @property
    def clause(self) -> str:
        """A clause that says where the rows come from."""
        since = f"its changelog, since batch {self.contents[0].batch}" if self.contents else ""
        if self.base is None:
            return f"from {since}"
        if not since:
            return f"from {self.base} alone, after which the table did not change"
        return f"from {self.base} and {since}"


ROWS_BEFORE_CHANGELOG: Final = "when its changelog began, the table already had rows"

OriginOrReason = ChangelogOrigin | str
"""Where a reload takes a mirror's rows from: the changelog, or the source for the
reason that the text gives."""


def reload_origin(
    contents: Sequence[TableContent],
    *,
    is_adopted: bool,
    batches_after_gaps: Collection[int],
    overlapping_batches: Collection[int],
    first_unshown_batch: int | None = None,
    deleted_through: int = 0,
    reason_deleted: str = "",
) -> OriginOrReason:
    """Return the part of the changelog that gives all rows of a table; if there is
    none, the reason why the source must be read.

    `contents`: what all batches have of the table, oldest first. `is_adopted`: the
    mirror was written under an earlier ledger. `batches_after_gaps`: batches before
    which a part of the log was not read. `overlapping_batches`: batches that read a
    part of the log again. `first_unshown_batch`: the first batch that the mirror lacks
    because its write was refused. `deleted_through`: the last batch whose changes were
    deleted; `reason_deleted`: the reason.
    """
    settling = _last_settling_event(contents)
    if settling is None:
        return ROWS_BEFORE_CHANGELOG
    content, event = settling
    read = _rows_read(content, event)
    if event.kind is TableEventKind.COPIED:
        return f"its rows were those of {event.origin} until batch {content.batch}"
    if has_rows(read):
        return (
            f"its rows were read from the source in batch {content.batch}, and are in no changelog"
        )
    since = tuple(contents_since_settled(contents))
    for later in since:
        completion = later.snapshot
        if (
            completion is not None
            and completion.columns is not None
            and completion.low_sequence >= event.sequence
        ):
            columns = ", ".join(completion.columns)
            return f"{columns} was read from the source in batch {later.batch}"
    first = since[0]
    # The ledger no longer has the contents of deleted batches. If the reading may have
    # begun in an earlier batch, the earlier batch may be one of these.
    may_have_begun_earlier = read is not None and read.low_sequence < event.sequence
    if first.batch <= deleted_through or (deleted_through and may_have_begun_earlier):
        return f"changes up to batch {deleted_through} were deleted, {reason_deleted}"
    if is_adopted:
        return "its mirror has rows that were written under an earlier ledger"
    for batch in sorted(batches_after_gaps):
        if batch > first.batch:
            return f"the log before batch {batch} was not read"
    for batch in sorted(overlapping_batches):
        if batch > first.batch:
            return f"batch {batch} read part of the log a second time"
    unshown = [
        content
        for content in since
        if first_unshown_batch is not None and content.batch >= first_unshown_batch
    ]
    kinds = {event.kind for content in unshown for event in content.events}
    if TableEventKind.REBUILT in kinds:
        return "a mirror could not be written from its changelog"
    return ChangelogOrigin(since, (read or event).version)


def last_batch_to_show(contents: Sequence[TableContent], before: int) -> int:
    """Return the last batch that the changelog alone cannot apply to a mirror; 0 for
    none. If the changelog is applied to an earlier version of a mirror, the version
    must show this batch. Such a batch settled the table's rows, or brought values from
    the source, or, if it is before `before`, wrote the mirror again."""
    return max(
        (content.batch for content in contents if _must_be_shown(content, before)), default=0
    )


def _must_be_shown(content: TableContent, before: int) -> bool:
    kinds = SETTLING_EVENTS | ({TableEventKind.REBUILT} if content.batch < before else set())
    return content.snapshot is not None or any(event.kind in kinds for event in content.events)


def begins_with_mirror(contents: Iterable[TableContent]) -> bool:
    """Return whether a write of these contents begins with the rows of an earlier
    mirror version."""
    events = [event for content in contents for event in content.events]
    rebuilt = [event for event in events if event.kind is TableEventKind.REBUILT]
    settled = any(event.kind in SETTLING_EVENTS for event in events)
    return bool(rebuilt) and rebuilt[-1].origin is not None and not settled


def is_rewritten(contents: Sequence[TableContent]) -> bool:
    """Return whether the batches with these contents have rows of the table that were
    read from MySQL, or rewrite its mirror."""
    kinds = {event.kind for content in contents for event in content.events}
    return bool(plan_merge(contents).read_files) or TableEventKind.REBUILT in kinds


def contents_since_settled(contents: Sequence[TableContent]) -> Sequence[TableContent]:
    """Return the contents since the last event that settled the table's rows; all
    contents if there is no such event. If the event is a REREAD over several batches,
    the result begins with the first content that has changes after its beginning."""
    settling = _last_settling_event(contents)
    if settling is None:
        return contents
    begin = _sequence_before(*settling)
    first = next(
        index
        for index, content in enumerate(contents)
        if content is settling[0] or any(s.last_sequence > begin for s in content.segments)
    )
    return contents[first:]


def _last_settling_event(
    contents: Sequence[TableContent],
) -> tuple[TableContent, TableEvent] | None:
    """Return the content and the event of the last event that settled the table's rows;
    None if there is no such event."""
    for content in reversed(contents):
        for event in reversed(content.events):
            if event.kind in SETTLING_EVENTS:
                return content, event
    return None


def has_rows(read: SnapshotFiles | None) -> bool:
    return read is not None and any(file.images for file in read.files)
