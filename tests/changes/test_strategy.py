"""How a mirror is written is decided by a few facts, and each decision says why."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lockstep.pipeline.mirror.coalescing import OTHER_KEY_REASON
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
from lockstep.pipeline.values.errors import Need, StoppedBy, TableError

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
