"""Changes whose images leave columns out, in every way a mirror is written."""

from __future__ import annotations

from random import Random

import pyarrow as pa
import pytest

from lockstep.pipeline.mirror.coalescing import LOST_ROW_REASON
from lockstep.pipeline.ports.mirror_writes import ColumnOrigin, Merge, Replace, StagedFiles
from lockstep.pipeline.ports.mirrors import Mirrors
from lockstep.pipeline.values.errors import TableError
from tests.changes.partial_images import NAMES, PART, SCHEMA, Row, Workload, images_table
from tests.lake.conftest import ALIKE, Lake
from tests.lake.made import a_fold, a_target, content, folded_changes

MIRROR = "shop/shop/people"
OWN = tuple(ColumnOrigin(field.name, field.type) for field in SCHEMA)


@pytest.fixture
def lake(written_lake: Lake) -> Lake:
    """Each way to write proves the same contract."""
    return written_lake


def snapshot(mirrors: Mirrors, rows: list[Row]) -> tuple[StagedFiles, ...]:
    return (StagedFiles((mirrors.stage("read", pa.Table.from_pylist(rows, SCHEMA)),), OWN),)


def begin(lake: Lake, rows: list[Row]) -> None:
    lake.before.write(Replace(a_target(1, SCHEMA), ("id",), snapshot(lake.before, rows)))


def a_merge(lake: Lake, number: int, *images: tuple[pa.Table, StagedFiles]) -> Merge:
    return a_fold(lake.mirrors, a_target(number, SCHEMA), images)


def shown(lake: Lake) -> list[Row]:
    version = lake.mirrors.version(MIRROR)
    assert version is not None
    return [dict(row) for row in content(lake.mirrors, MIRROR, SCHEMA, version)]


def in_order(workload: Workload) -> list[Row]:
    return sorted(workload.rows.values(), key=lambda row: int(row["id"]))


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


def test_many_of_each_row_are_merged(lake: Lake) -> None:
    """With changes of keys. A change of a row that is not there is refused before: no NULL is made
    up, and nothing is committed."""
    workload = Workload(Random(7))
    begin(lake, workload.fill(8))
    before = shown(lake)
    with pytest.raises(TableError) as refused:
        lake.mirrors.write(a_merge(lake, 2, (an_update(1000, 1000, a=5), PART)))
    assert refused.value.reason == LOST_ROW_REASON
    assert shown(lake) == before
    for _ in range(50):
        workload.change()
    lake.mirrors.write(a_merge(lake, 2, (workload.table(), PART)))
    assert shown(lake) == in_order(workload)


@pytest.mark.parametrize("written_lake", ALIKE, indirect=True)
def test_a_snapshot_is_looked_into(lake: Lake) -> None:
    """Changes on top of rows that were read from the source."""
    workload = Workload(Random(8))
    rows = workload.fill(8)
    begin(lake, [{**row, "c": -1} for row in rows])
    for _ in range(20):
        workload.change()
    target = a_target(2, SCHEMA)
    changes = folded_changes(lake.mirrors, target, [(workload.table(), PART)])
    lake.mirrors.write(Replace(target, ("id",), snapshot(lake.mirrors, rows), changes))
    assert shown(lake) == in_order(workload)
