"""Images that leave columns out make the rows that whole ones make."""

from __future__ import annotations

from random import Random

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep.pipeline.mirror.coalescing import (
    LOST_ROW_REASON,
    MOVED_ROW_REASON,
    OTHER_KEY_REASON,
    coalesced,
)
from lockstep.pipeline.mirror.fold import Fold
from lockstep.pipeline.ports.mirror_writes import ColumnOrigin, Merge, MirrorTarget, StagedFiles
from lockstep.pipeline.values.errors import Need, StoppedBy, TableError
from lockstep.pipeline.values.policies import LakePolicies
from tests.changes.folding_made import staged_images
from tests.changes.partial_images import NAMES, PART, SCHEMA, Row, Workload, images_table
from tests.twins.lake import MemoryLake
from tests.twins.mirror_writes import written
from tests.twins.mirrors import MemoryMirrors

ALL = frozenset(NAMES)


def merged(
    before: pa.Table | None,
    *images: pa.Table,
    parts: tuple[StagedFiles, ...] = (PART,),
    buckets: int = 1,
) -> pa.Table:
    """The mirror after the images of each part were folded and merged."""
    lake = MemoryLake()
    fold = Fold(SCHEMA, ("id",), parts)
    target = MirrorTarget("mirror", SCHEMA, "app", 1, "", LakePolicies())
    pieces = [[image.slice(at, 7) for at in range(0, len(image), 7)] for image in images]
    with staged_images(
        MemoryMirrors(lake), fold, pieces, buckets if len(images[0]) else 0
    ) as staged:
        return written(lake.files, before, Merge(target, ("id",), staged.changes))


def by_key(rows: pa.Table) -> list[Row]:
    found: list[Row] = rows.sort_by("id").to_pylist()
    return found


@given(
    st.sampled_from([1, 2, 7]),
    st.randoms(use_true_random=False),
    st.integers(0, 60),
    st.integers(0, 6),
)
def test_the_mirror_is_the_table_after_any_changes(
    buckets: int, random: Random, changes: int, rows: int
) -> None:
    """Whatever each image leaves out, in any order of the rows in the file, in however many
    buckets: keys that a row was moved between are in one."""
    workload = Workload(random)
    before = pa.Table.from_pylist(workload.fill(rows), SCHEMA)
    for _ in range(changes):
        workload.change()
    images = workload.table()
    order = list(range(len(images)))
    random.shuffle(order)
    found = merged(before, images.take(pa.array(order, pa.int64())), buckets=buckets)
    assert by_key(found) == sorted(workload.rows.values(), key=lambda row: row["id"])


@given(st.randoms(use_true_random=False), st.integers(1, 60))
def test_a_fold_asks_the_mirror_for_what_no_image_told_alone(random: Random, changes: int) -> None:
    """Rows that began with an insert are looked up nowhere."""
    workload = Workload(random)
    for _ in range(changes):
        workload.change()
    table, lacking = coalesced([(workload.table(), PART)], SCHEMA, ["id"])
    assert lacking == ()
    kept = table.filter(pa.compute.not_equal(table.column("_change_type"), "delete"))
    found = by_key(kept.select(NAMES))
    assert found == sorted(workload.rows.values(), key=lambda row: row["id"])


def row(key: int, a: int | None = None, text: str | None = None, c: int | None = None) -> Row:
    return {"id": key, "a": a, "text": text, "c": c}


def has(*names: str) -> frozenset[str]:
    return frozenset(names)


def test_what_is_left_out_is_looked_up_under_the_oldest_key() -> None:
    """A row that moved twice, to a key that another row had."""
    images = images_table(
        [
            ("delete", row(2), has("id")),
            ("update_preimage", row(1), has("id")),
            ("update_postimage", row(2, a=5), has("id", "a")),
            ("update_preimage", row(2), has("id")),
            ("update_postimage", row(3), has("id")),
        ]
    )
    found, lacking = coalesced([(images, PART)], SCHEMA, ["id"])
    assert lacking == ("text", "c")
    kept = next(one for one in found.to_pylist() if one["_change_type"] != "delete")
    assert kept == {
        "_change_type": "update_postimage",
        **row(3, a=5),
        "_lacks_0": False,
        "_lacks_1": False,
        "_lacks_2": True,
        "_lacks_3": True,
        "_origin_0": 1,
    }


@pytest.mark.parametrize(("doubtful", "known"), [(0, True), (1, True), (2, False), (4, False)])
@pytest.mark.parametrize("back", [False, True])
def test_a_row_that_moved_is_refused_where_its_old_key_tells_nothing(
    doubtful: int, *, known: bool, back: bool
) -> None:
    """A snapshot that was read meanwhile may show it under either key, also where it moved back;
    one that was read before shows the old one."""
    images = images_table(
        [
            ("update_preimage", row(1), has("id")),
            ("update_postimage", row(2), has("id")),
            ("update_preimage", row(2), has("id")),
            ("update_postimage", row(1 if back else 3), has("id")),
        ]
    )
    if known:
        assert coalesced([(images, PART)], SCHEMA, ["id"], doubtful_through=doubtful)[1]
        return
    with pytest.raises(TableError) as refused:
        coalesced([(images, PART)], SCHEMA, ["id"], doubtful_through=doubtful)
    error = refused.value
    assert (error.reason, error.need, error.by) == (MOVED_ROW_REASON, Need.ROWS, StoppedBy.RUN)


def test_a_row_that_is_gone_gives_no_values_to_the_next() -> None:
    """A log that is read again changes a row that it deleted before."""
    images = images_table(
        [
            ("delete", row(1, 1, "x", 1), ALL),
            ("update_preimage", row(1), has("id")),
            ("update_postimage", row(1, a=2), has("id", "a")),
        ]
    )
    with pytest.raises(TableError) as refused:
        coalesced([(images, PART)], SCHEMA, ["id"])
    assert refused.value.reason == LOST_ROW_REASON


def test_images_without_the_key_are_refused() -> None:
    """MINIMAL images name a row by the server's choice of key."""
    images = images_table([("delete", row(1, c=4), has("c"))])
    with pytest.raises(TableError) as refused:
        coalesced([(images, PART)], SCHEMA, ["id"])
    assert refused.value.reason == OTHER_KEY_REASON


def test_a_column_that_came_between_has_its_fill() -> None:
    """Images of before it was added say nothing of it, and rows of before have the fill."""
    old = pa.table(images_table([("insert", row(1, 1, "x", 1), ALL)]))
    new = images_table(
        [("update_preimage", row(1), has("id")), ("update_postimage", row(1, a=2), has("id", "a"))],
        first=2,
    )
    fill = ColumnOrigin(value=pa.scalar(7, pa.int32()))
    first = StagedFiles(("old",), (*PART.columns[:3], fill), present_column="_present")
    parts = (first, StagedFiles(("new",), PART.columns, present_column="_present"))
    found = merged(None, old, new, parts=parts)
    assert found.to_pylist() == [row(1, 2, "x", 7)]


def test_a_column_that_went_stays_with_its_row() -> None:
    """Kept columns: what the last image that knew it told, or the mirror's."""
    old = images_table(
        [
            ("update_preimage", row(1), has("id")),
            ("update_postimage", row(1, c=5), has("id", "c")),
            ("update_preimage", row(2), has("id")),
            ("update_postimage", row(2, a=5), has("id", "a")),
        ]
    )
    new = images_table(
        [
            ("update_preimage", row(key), has("id"))
            if half == 0
            else ("update_postimage", row(key, a=6), has("id", "a"))
            for key in (1, 2, 3)
            for half in (0, 1)
        ],
        first=5,
    )
    later = StagedFiles(("new",), (*PART.columns[:3], ColumnOrigin()), present_column="_present")
    parts = (StagedFiles(("old",), PART.columns, present_column="_present"), later)
    before = pa.Table.from_pylist([row(n, n, "t", 10 * n) for n in (1, 2, 3)], SCHEMA)
    found = merged(before, old, new, parts=parts)
    assert by_key(found) == [row(1, 6, "t", 5), row(2, 6, "t", 20), row(3, 6, "t", 30)]
