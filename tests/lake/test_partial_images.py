"""Changes whose images leave columns out, in every way a mirror is written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from pipeline.changes.coalescing import LOST, OTHER_KEY, coalesced
from pipeline.errors import TableError
from pipeline.ports.mirror_writes import MirrorWrite, Part, PartColumn
from tests.changes.partial_images import NAMES, PART, SCHEMA, Row, Workload, images_table
from tests.lake.conftest import Lake
from tests.lake.made import content

MIRROR = "shop/shop/people"
Made = Callable[..., MirrorWrite]
OWN = tuple(PartColumn(field.name, field.type) for field in SCHEMA)


def a_write(number: int, mode: str, **more: Any) -> MirrorWrite:
    write = MirrorWrite(MIRROR, mode, (), SCHEMA, ("id",), "app", number, f"write {number}")
    return replace(write, **more)


def snapshot(lake: Lake, rows: list[Row]) -> tuple[Part, ...]:
    return (Part((lake.mirrors.stage("read", pa.Table.from_pylist(rows, SCHEMA)),), OWN),)


def begin(lake: Lake, rows: list[Row]) -> None:
    lake.mirrors.write(a_write(1, "replace", snapshot=snapshot(lake, rows)))


def staged(lake: Lake, number: int, images: pa.Table, mode: str = "merge") -> MirrorWrite:
    """What is folded in memory."""
    whole, lacking = coalesced([(images, PART)], SCHEMA, ["id"])
    files = (lake.mirrors.stage("folded", whole),)
    return a_write(number, mode, files=files, lacking=lacking, folded=True)


def raw(lake: Lake, number: int, images: pa.Table, mode: str = "fold") -> MirrorWrite:
    """What the lake folds."""
    parts = (replace(PART, files=(lake.mirrors.stage("images", images),)),)
    return a_write(number, mode, parts=parts)


def shown(lake: Lake) -> list[Row]:
    version = lake.mirrors.version(MIRROR)
    assert version is not None
    return [dict(row) for row in content(lake.mirrors, MIRROR, SCHEMA, version)]


def in_order(workload: Workload) -> list[Row]:
    return sorted(workload.rows.values(), key=lambda row: int(row["id"]))


def test_merges_run_after_run(any_lake: Lake) -> None:
    """Folded in memory, with changes of keys; folded by the lake, with none but whole ones."""
    lake, workload = any_lake, Workload(Random(7))
    begin(lake, workload.fill(8))
    for number in range(2, 5):
        workload.images.clear()
        workload.whole_moves = number % 2 == 1
        for _ in range(15):
            workload.change()
        made = raw if workload.whole_moves else staged
        lake.mirrors.write(made(lake, number, workload.table()))
        assert shown(lake) == in_order(workload)


@pytest.mark.parametrize("made", [staged, raw])
def test_a_snapshot_is_looked_into(lake: Lake, made: Made) -> None:
    """Changes on top of rows that were read from the source."""
    workload = Workload(Random(8), whole_moves=True)
    rows = workload.fill(8)
    begin(lake, [{**row, "c": -1} for row in rows])
    for _ in range(20):
        workload.change()
    write = made(lake, 2, workload.table(), "replace")
    lake.mirrors.write(replace(write, snapshot=snapshot(lake, rows)))
    assert shown(lake) == in_order(workload)


def has(*names: str) -> frozenset[str]:
    return frozenset(names)


def an_update(old: int, new: int, **changed: int) -> pa.Table:
    """One row's, logged with its key and what changed."""
    nothing = dict.fromkeys(NAMES)
    return images_table(
        [
            ("update_preimage", {**nothing, "id": old}, has("id")),
            ("update_postimage", {**nothing, "id": new, **changed}, has("id", *changed)),
        ]
    )


def test_a_column_that_went_stays_with_its_row(lake: Lake) -> None:
    """Folded by the lake: images of before it went that leave it out, and later ones."""
    begin(lake, [{"id": n, "a": n, "text": "t", "c": 10 * n} for n in (1, 2, 3)])
    old = pa.concat_tables([an_update(1, 1, c=5), an_update(2, 2, a=5)])
    new = pa.concat_tables([an_update(n, n, a=6) for n in (1, 2, 3)])
    parts = []
    for number, (table, columns) in enumerate(
        ((old, PART.columns), (new, (*PART.columns[:3], PartColumn())))
    ):
        order = pa.array(range(10 * number, 10 * number + len(table)), pa.int64())
        table = table.set_column(1, "_sequence", order)
        parts.append(Part((lake.mirrors.stage("images", table),), columns, present="_present"))
    lake.mirrors.write(a_write(2, "fold", parts=tuple(parts)))
    assert shown(lake) == [
        {"id": n, "a": 6, "text": "t", "c": c} for n, c in ((1, 5), (2, 20), (3, 30))
    ]


@pytest.mark.parametrize("made", [staged, raw])
def test_a_row_that_is_not_there_is_refused(lake: Lake, made: Made) -> None:
    """No NULL is made up, and nothing is committed."""
    begin(lake, [{"id": 1, "a": 1, "text": "x", "c": 1}])
    with pytest.raises(TableError) as refused:
        lake.mirrors.write(made(lake, 2, an_update(2, 2, a=5)))
    assert refused.value.reason == LOST
    assert shown(lake) == [{"id": 1, "a": 1, "text": "x", "c": 1}]


def test_the_lake_follows_no_row_from_key_to_key(disk: Lake) -> None:
    """Too many changes to fold in memory, one of a key."""
    begin(disk, [{"id": 1, "a": 1, "text": "x", "c": 1}, {"id": 2, "a": 2, "text": "y", "c": 2}])
    with pytest.raises(TableError) as refused:
        disk.mirrors.write(raw(disk, 2, an_update(1, 3, a=5)))
    assert refused.value.reason == LOST


def test_rows_named_by_another_key_are_refused(disk: Lake) -> None:
    """The lake's own fold says so too."""
    begin(disk, [{"id": 1, "a": 1, "text": "x", "c": 1}])
    image = images_table([("delete", {"id": None, "a": 1, "text": None, "c": None}, has("a"))])
    with pytest.raises(TableError) as refused:
        disk.mirrors.write(raw(disk, 2, image))
    assert refused.value.reason == OTHER_KEY


def test_images_without_a_key_are_refused(lake: Lake) -> None:
    """Copies are told apart by all their values."""
    begin(lake, [{"id": 1, "a": 1, "text": "x", "c": 1}])
    with pytest.raises(TableError) as refused:
        lake.mirrors.write(replace(raw(lake, 2, an_update(1, 1, a=5)), key=()))
    assert refused.value.reason == OTHER_KEY
