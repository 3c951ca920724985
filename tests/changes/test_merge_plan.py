"""What a merge over some batches comes down to."""

from __future__ import annotations

from lockstep.pipeline.mirror.merging import (
    ChangelogOrigin,
    contents_since_settled,
    end_of_first_write,
    plan_merge,
    reload_origin,
)
from lockstep.pipeline.model.batch import TableContent
from lockstep.pipeline.model.table_state import SnapshotFiles, TableEvent, TableEventKind
from lockstep.pipeline.values.position import Coordinates
from lockstep.pipeline.values.segment import RowCounts, Segment
from lockstep.pipeline.values.table import TableName

TABLE = TableName("shop", "orders")
PLACE = Coordinates.parse("binlog.000001:4")


def segment(version: int, first: int, last: int) -> Segment:
    return Segment(TABLE, version, (), RowCounts(inserted=last - first + 1), first, last)


def event(kind: TableEventKind, sequence: int, version: int) -> TableEvent:
    return TableEvent(TABLE, kind, sequence, version, PLACE)


def test_all_images_count_where_nothing_settles() -> None:
    """The mirror's own rows go on, under its own version."""
    one, two = segment(1, 1, 5), segment(2, 7, 9)
    plan = plan_merge(
        [
            TableContent(1, (one,), (event(TableEventKind.CHANGED, 5, 2),)),
            TableContent(2, (two,), (event(TableEventKind.CHANGED, 9, 3),)),
        ]
    )
    assert (plan.replaces_rows, plan.above, plan.segments) == (False, 0, (one, two))
    assert (plan.first_version, plan.final_version, plan.versions) == (None, 3, (1, 2))


def test_only_what_comes_behind_the_last_truncate_counts() -> None:
    """A segment that lies on both sides stays, and the number tells its images apart."""
    before, across = segment(1, 1, 5), segment(2, 6, 12)
    truncated = event(TableEventKind.TRUNCATED, 8, 2)
    plan = plan_merge([TableContent(1, (before,)), TableContent(2, (across,), (truncated,))])
    assert (plan.replaces_rows, plan.above, plan.segments) == (True, 8, (across,))
    assert (plan.first_version, plan.final_version, plan.snapshot) == (2, 2, None)


def test_a_table_that_was_read_begins_with_its_rows() -> None:
    """What the log held of it before, and an older reading, matter no more."""
    older, newer = SnapshotFiles(TABLE, 4, 3, ()), SnapshotFiles(TABLE, 6, 20, ())
    plan = plan_merge(
        [
            TableContent(1, (segment(4, 4, 9),), (event(TableEventKind.REREAD, 3, 4),), older),
            TableContent(2, (segment(6, 21, 22),), (event(TableEventKind.REREAD, 20, 6),), newer),
        ]
    )
    assert (plan.above, plan.snapshot, plan.first_version, plan.final_version) == (20, newer, 6, 6)
    assert plan.versions == (6,)


def test_columns_that_were_read_settle_nothing() -> None:
    """All images count; the newest reading has the columns. Behind a TRUNCATE it is nothing."""
    older = SnapshotFiles(TABLE, 2, 5, (), ("g",))
    newer = SnapshotFiles(TABLE, 3, 9, (), ("g", "h"))
    changed = event(TableEventKind.CHANGED, 5, 2)
    parts = [
        TableContent(1, (segment(1, 1, 5),)),
        TableContent(2, (segment(2, 6, 8),), (changed,), older),
        TableContent(3, (segment(3, 9, 12),), (event(TableEventKind.CHANGED, 9, 3),), newer),
    ]
    plan = plan_merge(parts)
    assert (plan.replaces_rows, plan.snapshot, plan.completion) == (False, None, newer)
    assert (plan.versions, plan.final_version) == ((1, 2, 3), 3)
    emptied = TableContent(4, (segment(3, 14, 15),), (event(TableEventKind.TRUNCATED, 13, 3),))
    assert plan_merge([*parts, emptied]).completion is None


def test_a_table_that_was_emptied_behind_a_reading_has_none_of_it() -> None:
    """TRUNCATE comes last: the rows that were read are gone too."""
    read = SnapshotFiles(TABLE, 2, 3, ())
    events = (event(TableEventKind.REREAD, 3, 2), event(TableEventKind.TRUNCATED, 7, 2))
    plan = plan_merge([TableContent(1, (segment(2, 4, 6),), events, read)])
    assert (plan.replaces_rows, plan.snapshot, plan.segments) == (True, None, ())


def test_rows_read_over_several_batches_belong_behind_the_first() -> None:
    """All that was captured since then comes over them, unless the table was emptied meanwhile."""
    read = SnapshotFiles(TABLE, 2, 10, ())
    since, later = segment(2, 11, 20), segment(2, 31, 32)
    joined = TableContent(3, (later,), (event(TableEventKind.REREAD, 30, 2),), read)
    plan = plan_merge([TableContent(1, (segment(2, 1, 9),)), TableContent(2, (since,)), joined])
    assert (plan.above, plan.snapshot, plan.segments) == (10, read, (since, later))
    emptied = TableContent(2, (since,), (event(TableEventKind.TRUNCATED, 15, 2),))
    plan = plan_merge([emptied, joined])
    assert (plan.above, plan.snapshot, plan.segments) == (15, None, (since, later))


def test_a_changelog_is_complete_from_the_beginning_of_a_reading_without_rows() -> None:
    """A reading over several batches may return no row, as of a table whose rows its settings leave
    out; changes of its first batches are the table's first ones."""
    read = SnapshotFiles(TABLE, 2, 10, ())
    before = TableContent(1, (segment(2, 1, 9),))
    since = TableContent(2, (segment(2, 11, 20),))
    joined = TableContent(3, (segment(3, 31, 32),), (event(TableEventKind.REREAD, 30, 3),), read)
    contents = [before, since, joined]
    assert contents_since_settled(contents) == [since, joined]
    origin = reload_origin(
        contents, is_adopted=False, batches_after_gaps=(), overlapping_batches=()
    )
    assert origin == ChangelogOrigin((since, joined), 2)
    assert plan_merge(origin.contents).segments == (*since.segments, *joined.segments)
    without_deleted = reload_origin(
        [joined],
        is_adopted=False,
        batches_after_gaps=(),
        overlapping_batches=(),
        deleted_through=2,
        reason_deleted="as asked",
    )
    assert without_deleted == "changes up to batch 2 were deleted, as asked"


def test_rows_that_were_read_have_a_write_of_their_own_before_they_go() -> None:
    """Unless the later reading needs images of the batch that read them first."""
    first = TableContent(
        1,
        (segment(2, 4, 9),),
        (event(TableEventKind.REREAD, 3, 2),),
        SnapshotFiles(TABLE, 2, 3, ()),
    )
    between = TableContent(2, (segment(2, 11, 12),))
    emptied = TableContent(3, (), (event(TableEventKind.TRUNCATED, 13, 2),))
    assert end_of_first_write([first, between]) is None
    assert end_of_first_write([first, between, emptied]) == 1
    for low, last in ((14, 1), (5, None)):
        read = SnapshotFiles(TABLE, 2, low, ())
        again = TableContent(3, (), (event(TableEventKind.REREAD, 14, 2),), read)
        assert end_of_first_write([first, between, again]) == last


def test_a_dropped_table_keeps_the_version_it_had() -> None:
    """The version that says dropped has no columns to show."""
    events = (event(TableEventKind.CHANGED, 4, 2), event(TableEventKind.DROPPED, 5, 3))
    plan = plan_merge([TableContent(1, (segment(1, 1, 4),), events)])
    assert (plan.is_dropped, plan.final_version) == (True, 2)
    again = (*events, event(TableEventKind.CREATED, 5, 4))
    assert plan_merge([TableContent(1, (), again)]).is_dropped is False
