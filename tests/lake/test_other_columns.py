"""Writes whose columns are not quite the mirror's: in another order, or of another type."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pyarrow as pa
import pytest

from lockstep.pipeline.mirror.layout import DELETED_AT
from lockstep.pipeline.ports.mirror_writes import ColumnOrigin, Replace, StagedFiles
from lockstep.pipeline.values.policies import Deletes
from lockstep.pipeline.values.stamps import Stamp
from tests.lake.conftest import ALIKE, Lake
from tests.lake.made import PEOPLE, a_fold, a_target, a_write, changes, content, update

MIRROR = "shop/shop/people"
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.fixture
def lake(written_lake: Lake) -> Lake:
    """Each way to write proves the same contract."""
    return written_lake


@pytest.mark.parametrize("written_lake", ALIKE, indirect=True)
def test_rows_that_are_gone_keep_what_the_new_columns_hold(lake: Lake) -> None:
    """`deletes = "soft"`, and a replacement under other types: a value that only the source
    could convert is NULL; with another key nobody can tell which rows are gone."""
    wide = pa.schema([("id", pa.int32()), ("name", pa.string()), ("n", pa.int32())])
    rows = [{"id": number, "name": "old", "n": number} for number in (1, 2)]
    lake.before.write(a_write(lake.before, 1, "append", rows, schema=wide))
    other = pa.schema([("id", pa.int64()), ("name", pa.date32()), ("n", pa.int64())])
    for number, key in ((2, ("id",)), (3, ("name",))):
        schema = other if number == 2 else pa.schema([("name", pa.string())])
        read = [{"id": 2, "name": date(2026, 1, 1), "n": 9}] if number == 2 else [{"name": "x"}]
        own = tuple(ColumnOrigin(field.name, field.type) for field in schema)
        staged = lake.mirrors.stage("read", pa.Table.from_pylist(read, schema=schema))
        target = a_target(number, schema, deletes=Deletes.SOFT)
        lake.mirrors.write(
            Replace(target, key, (StagedFiles((staged,), own),), emptied_by=Stamp(0, NOON))
        )
    shown = content(lake.mirrors, MIRROR, pa.schema([*other, DELETED_AT]), 1)
    assert shown == [
        {"id": 1, "name": None, "n": 1, "_deleted_at": NOON},
        {"id": 2, "name": date(2026, 1, 1), "n": 9, "_deleted_at": None},
    ]
    last = pa.schema([("name", pa.string()), DELETED_AT])
    assert content(lake.mirrors, MIRROR, last, 2) == [{"name": "x", "_deleted_at": None}]


@pytest.mark.parametrize("written_lake", ALIKE, indirect=True)
def test_a_column_that_no_image_knows_stays(lake: Lake) -> None:
    """Dropped at the source and kept: a row that was there has its value, a new one NULL."""
    rows = [{"id": number, "name": f"old {number}"} for number in (1, 2)]
    lake.before.write(a_write(lake.before, 1, "append", rows))
    left = pa.schema([PEOPLE.field("id")])
    before = {"_change_type": "update_preimage", "id": 1}
    images = changes(left, [before, update(id=1), {"id": 3}])
    part = StagedFiles((), (ColumnOrigin("id", pa.int64()), ColumnOrigin()))
    lake.mirrors.write(a_fold(lake.mirrors, a_target(2), [(images, part)]))
    assert content(lake.mirrors, MIRROR, PEOPLE, 1) == [*rows, {"id": 3, "name": None}]
