"""How a mirror is written is decided by a few facts, and each decision says why; and what a merge
over some batches comes down to."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lockstep.pipeline.mirror.coalescing import OTHER_KEY_REASON
from lockstep.pipeline.mirror.merging import (
    ChangelogOrigin,
    contents_since_settled,
    end_of_first_write,
    plan_merge,
    reload_origin,
)
from lockstep.pipeline.mirror.strategy import (
    BUCKET_BYTES,
    BUCKET_IMAGES,
    FEW,
    NO_FEW_ROWS,
    Scale,
    Size,
    Way,
    WriteFacts,
    buckets_for,
    choose,
    scale,
)
from lockstep.pipeline.model.batch import TableContent
from lockstep.pipeline.model.table_state import SnapshotFiles, TableEvent, TableEventKind
from lockstep.pipeline.values.errors import Need, StoppedBy, TableError
from lockstep.pipeline.values.position import Coordinates
from lockstep.pipeline.values.segment import RowCounts, Segment
from lockstep.pipeline.values.table import TableName

UPDATES = WriteFacts(has_key=True, image_count=10, unpacked_bytes=100)
INSERTS = replace(UPDATES, inserts_only=True)

CASES = {
    "updates": (UPDATES, Way.MERGE, 1),
    "inserts": (INSERTS, Way.APPEND, 0),
    "inserts that may be there": (replace(INSERTS, inserts_are_new=False), Way.MERGE, 1),
    "inserts where deleted rows stay": (
        replace(INSERTS, keeps_deleted=True, may_have_kept_rows=True),
        Way.MERGE,
        1,
    ),
    "inserts into a mirror without marks yet": (
        replace(INSERTS, keeps_deleted=True),
        Way.APPEND,
        0,
    ),
    "inserts of partial images": (replace(INSERTS, has_partial_images=True), Way.APPEND, 0),
    "nothing": (WriteFacts(has_key=True), Way.APPEND, 0),
    "nothing, no key": (WriteFacts(has_key=False), Way.APPEND, 0),
    "columns that were read": (WriteFacts(has_key=True, fills_columns=True), Way.MERGE, 0),
    "columns that were read, and inserts": (replace(INSERTS, fills_columns=True), Way.MERGE, 1),
    "no key": (replace(UPDATES, has_key=False), Way.COUNT, 0),
    "no key, inserts": (replace(INSERTS, has_key=False), Way.APPEND, 0),
    "no key, inserts that may be there": (
        replace(INSERTS, has_key=False, inserts_are_new=False),
        Way.COUNT,
        0,
    ),
    "emptied": (WriteFacts(has_key=True, replaces=True), Way.REPLACE, 0),
    "emptied, then changed": (replace(UPDATES, replaces=True), Way.REPLACE, 1),
    "emptied, then inserts": (replace(INSERTS, replaces=True), Way.REPLACE, 1),
    "emptied, no key": (replace(UPDATES, has_key=False, replaces=True), Way.RECOUNT, 0),
    "many": (replace(UPDATES, image_count=BUCKET_IMAGES + 1), Way.MERGE, 2),
    "many and emptied": (
        replace(UPDATES, image_count=BUCKET_IMAGES + 1, replaces=True),
        Way.REPLACE,
        2,
    ),
}


@pytest.mark.parametrize(("facts", "way", "buckets"), CASES.values(), ids=CASES)
def test_each_case_has_its_way(facts: WriteFacts, way: Way, buckets: int) -> None:
    chosen = choose(facts)
    assert (chosen.way, chosen.bucket_count) == (way, buckets)
    assert chosen.reason


def test_reasons_tell_merges_apart() -> None:
    """Whoever wonders why inserts were not appended can read it."""
    merges = [
        replace(INSERTS, inserts_are_new=False),
        replace(INSERTS, may_have_kept_rows=True),
        UPDATES,
    ]
    merges += [
        replace(INSERTS, fills_columns=True),
        replace(UPDATES, image_count=10 * BUCKET_IMAGES),
    ]
    assert len({choose(facts).reason for facts in merges}) == len(merges)


def test_marks_need_a_key() -> None:
    """Which copy was deleted cannot be told."""
    for facts in (UPDATES, INSERTS, replace(UPDATES, replaces=True)):
        with pytest.raises(TableError, match="key"):
            choose(replace(facts, has_key=False, keeps_deleted=True))


def test_images_without_a_key_are_refused() -> None:
    """Copies are told apart by all their values."""
    for facts in (UPDATES, replace(UPDATES, replaces=True)):
        with pytest.raises(TableError) as refused:
            choose(replace(facts, has_key=False, has_partial_images=True))
        assert refused.value.reason == OTHER_KEY_REASON


def test_copies_are_not_counted_twice() -> None:
    """Rows with a key come to the same however often they are merged; the others are read again."""
    repeated = replace(UPDATES, may_repeat=True, inserts_are_new=False)
    assert choose(repeated).way is Way.MERGE
    assert choose(replace(repeated, has_key=False, image_count=0)).way is Way.APPEND
    for replaces in (False, True):
        with pytest.raises(TableError) as refused:
            choose(replace(repeated, has_key=False, inserts_only=True, replaces=replaces))
        assert (refused.value.need, refused.value.by) == (Need.ROWS, StoppedBy.RUN)


@pytest.mark.parametrize(
    ("images", "unpacked", "buckets"),
    [
        (0, 0, 1),
        (BUCKET_IMAGES, BUCKET_BYTES, 1),
        (BUCKET_IMAGES + 1, 0, 2),
        (1, BUCKET_BYTES + 1, 2),
        (20 * BUCKET_IMAGES, 1, 20),
        (20 * BUCKET_IMAGES, 30 * BUCKET_BYTES, 30),
    ],
)
def test_what_fits_into_memory_is_folded_at_once(images: int, unpacked: int, buckets: int) -> None:
    """By images or by bytes, whichever is more."""
    assert buckets_for(images, unpacked) == buckets


def test_few_rows_are_not_few_where_they_are_wide() -> None:
    """Their files are written anew, which must not take long."""
    limit = Size(10, 1000)
    assert scale(Size(4, 500), Size(6, 500), limit=limit) == Scale(is_few_rows=True)
    assert scale(Size(4, 500), Size(6, 501), limit=limit) == Scale(is_few_rows=False)
    assert scale(Size(5, 1), Size(6, 1), limit=limit) == Scale(is_few_rows=False)
    assert scale(Size(0, 0), Size(0, 0), limit=NO_FEW_ROWS) == Scale(is_few_rows=False)


def test_a_small_mirror_is_changed_in_memory() -> None:
    """If the changes are whole; not where somebody cannot say how many rows there are."""
    small = Size(FEW.rows // 2, FEW.bytes // 2)
    assert scale(small, small, without_query=True) == Scale(is_few_rows=True, in_memory=True)
    assert scale(small, small) == Scale(is_few_rows=True)
    assert scale(None, small, without_query=True) == Scale(is_few_rows=False)
    assert scale(small, None, without_query=True) == Scale(is_few_rows=False)
    told = {one.reason for one in (Scale(False), Scale(True), Scale(True, True))}
    assert len(told) == 3


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
