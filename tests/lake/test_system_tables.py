"""The system tables (`_transactions`, `_ddl`) on disk: files, commits, and what readers see."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder

from lockstep.pipeline.mirror.system_tables import (
    SYSTEM_TABLE_SCHEMAS,
    system_table_app_id,
    system_table_path,
)
from lockstep.pipeline.ports.changelog import Published
from lockstep.pipeline.values.segment import SystemTable
from lockstep.resources.lake.spark.session import SparkProcess
from tests.lake.conftest import Lake

MOMENT = datetime(2026, 11, 1, 6, 0, 0, 123456, tzinfo=UTC)
TOUCHED = [
    {
        "database": "shop",
        "name": name,
        "effect": "is now called",
        "schema_version": version,
        "action": action,
        "reason": None,
    }
    for name, version, action in (("a", 2, "re-read"), ("b", None, None))
]


def row(table: SystemTable, batch: int) -> dict[str, Any]:
    """A row whose columns all have a value, lists too."""
    values: dict[pa.DataType, Any] = {
        pa.string(): f"text {batch}",
        pa.int64(): batch,
        pa.timestamp("us", tz="UTC"): MOMENT,
        pa.list_(pa.string()): ["insert into t values (1)", ""],
        pa.bool_(): True,
    }
    return {field.name: values.get(field.type, TOUCHED) for field in SYSTEM_TABLE_SCHEMAS[table]}


def published(lake: Lake, table: SystemTable, batch: int) -> Published:
    folder, schema = system_table_path("shop", table), SYSTEM_TABLE_SCHEMAS[table]
    writer = lake.segments.open(folder, batch=batch, schema_version=1, schema=schema)
    writer.write(pa.Table.from_pylist([row(table, batch)], schema=schema))
    return lake.changelog.publish(
        folder,
        app_id=system_table_app_id("shop", table),
        batch=batch,
        schema=schema,
        files=writer.close(),
        user_metadata=f"batch {batch}",
    )


@pytest.mark.parametrize("table", SystemTable)
def test_every_reader_sees_each_batch_once(
    disk: Lake, folder: Path, spark: SparkProcess, table: SystemTable
) -> None:
    """delta-rs, DataFusion and Spark read the same rows; a batch that is published again is
    skipped."""
    assert [published(disk, table, batch).was_skipped for batch in (3, 5, 5, 3)] == [
        *(False, False),
        *(True, True),
    ]
    path = folder / system_table_path("shop", table)
    expected = [row(table, batch) for batch in (3, 5)]
    by_batch = sorted(DeltaTable(path).to_pyarrow_table().to_pylist(), key=_batch)
    assert by_batch == expected
    query = (
        QueryBuilder().register("t", DeltaTable(path)).execute("select * from t order by _batch")
    )
    assert pa.table(query.read_all()).to_pylist() == expected
    session = spark.session()
    frame = session.read.format("delta").load(str(path)).orderBy("_batch").drop(*_moments(table))
    seen = [one.asDict(recursive=True) for one in frame.collect()]
    assert seen == [{n: v for n, v in one.items() if n not in _moments(table)} for one in expected]


def _batch(one: dict[str, Any]) -> int:
    return int(one["_batch"])


def _moments(table: SystemTable) -> list[str]:
    """Columns that Spark gives in the zone of its driver."""
    return [
        field.name for field in SYSTEM_TABLE_SCHEMAS[table] if pa.types.is_timestamp(field.type)
    ]
