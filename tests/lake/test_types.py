"""Every Arrow type that `pipeline.schema.types` gives, through changelog and mirror."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder

from lockstep.pipeline.mirror.system_tables import SYSTEM_TABLE_SCHEMAS, system_table_path
from lockstep.pipeline.schema.types import FAMILIES, Family, arrow_schema
from lockstep.pipeline.values.segment import SystemTable
from lockstep.pipeline.values.table import Column, TableName, TableStructure
from lockstep.resources.lake.spark.session import SparkProcess
from tests.lake.conftest import Lake
from tests.lake.made import Row, a_write, changes, content, delete, update

MIRROR = "shop/shop/people"
FOLDER = "shop/_changes/shop/t=C3=A4ble"

COLUMNS = (
    Column("id", "int"),
    Column("i8", "tinyint"),
    Column("i16", "smallint"),
    Column("i64", "bigint"),
    Column("u64", "bigint", unsigned=True),
    Column("d", "decimal", precision=38, scale=30),
    Column("long", "decimal", precision=65, scale=30),
    Column("cents", "decimal", precision=10, scale=2),
    Column("f", "float"),
    Column("g", "double"),
    Column("yes", "bit", length=1),
    Column("bits", "bit", length=63),
    Column("all_bits", "bit", length=64),
    Column("text", "varchar", length=80, charset="utf8mb4"),
    Column("blob", "blob", length=4, charset="binary"),
    Column("day", "date"),
    Column("local", "datetime", length=6),
    Column("moment", "timestamp", length=6),
    Column("duration", "time", length=6),
    Column("year", "year", unsigned=True),
    Column("chosen", "enum", length=1, charset="utf8mb4", members=("a",)),
    Column("several", "set", length=1, charset="utf8mb4", members=("a", "b")),
    Column("document", "json", length=4),
    Column("shape", "geometry", length=4),
    Column("vector", "vector", length=4),
)
SCHEMA = arrow_schema(TableStructure(TableName("shop", "people"), COLUMNS, ("id",)))
TINY = struct.unpack("<f", b"\x01\0\0\0")[0]

LEAST: dict[str, Any] = {
    "i8": -128,
    "i16": -32768,
    "i64": -(2**63),
    "u64": Decimal(0),
    "d": Decimal("-99999999.999999999999999999999999999999"),
    "long": "-99999999999999999999999999999999999.999999999999999999999999999999",
    "cents": Decimal("-99999999.99"),
    "f": -0.0,
    "g": -0.0,
    "yes": False,
    "bits": 0,
    "all_bits": Decimal(0),
    "text": "",
    "blob": b"",
    "day": date(1, 1, 1),
    "local": datetime(1, 1, 1),
    "moment": datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC),
    "duration": "-838:59:59.000000",
    "year": 0,
    "chosen": "",
    "several": "",
    "document": "null",
    "shape": b"",
    "vector": [],
}
GREATEST: dict[str, Any] = {
    "i8": 127,
    "i16": 32767,
    "i64": 2**63 - 1,
    "u64": Decimal(2**64 - 1),
    "d": Decimal("99999999.999999999999999999999999999999"),
    "long": "99999999999999999999999999999999999.999999999999999999999999999999",
    "cents": Decimal("99999999.99"),
    "f": TINY,
    "g": 1.7976931348623157e308,
    "yes": True,
    "bits": 2**63 - 1,
    "all_bits": Decimal(2**64 - 1),
    "text": "\0 zwölf \U0010ffff ",
    "blob": bytes(range(256)),
    "day": date(9999, 12, 31),
    "local": datetime(9999, 12, 31, 23, 59, 59, 999999),
    "moment": datetime(2038, 1, 19, 3, 14, 7, 999999, tzinfo=UTC),
    "duration": "838:59:59.000000",
    "year": 2155,
    "chosen": "a",
    "several": "a,b",
    "document": '{"a": 1.0, "b": [1, null]}',
    "shape": bytes.fromhex("0101000020e6100000000000000000f03f0000000000000040"),
    "vector": [-0.0, TINY, 3.4028234663852886e38],
}
NOTHING: dict[str, Any] = dict.fromkeys(LEAST)


def exact(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Rows that are equal only if their floats are so to the bit."""
    return [{name: _exact(value) for name, value in row.items()} for row in rows]


def _exact(value: Any) -> Any:
    if isinstance(value, list):
        return [_exact(item) for item in value]
    return value.hex() if isinstance(value, float) else value


def test_every_family_of_types_is_proven() -> None:
    """By the tests below: names, values and keys of each."""
    assert {FAMILIES[column.type] for column in COLUMNS} == set(Family)


def test_every_type_survives_append_and_merge(any_lake: Lake) -> None:
    """Least, greatest and no value at all, written, updated both ways and deleted."""
    lake = any_lake
    first = [{"id": 1, **LEAST}, {"id": 2, **GREATEST}, {"id": 3, **NOTHING}, {"id": 4, **LEAST}]
    lake.mirrors.write(a_write(lake.mirrors, 1, "append", first, schema=SCHEMA))
    assert exact(content(lake.mirrors, MIRROR, SCHEMA, 0)) == exact(first)
    merged = [
        update(id=1, **GREATEST),
        update(id=2, **NOTHING),
        update(id=3, **LEAST),
        delete(id=4, **LEAST),
        {"id": 5, **GREATEST},
    ]
    lake.mirrors.write(a_write(lake.mirrors, 2, "merge", merged, schema=SCHEMA))
    assert exact(content(lake.mirrors, MIRROR, SCHEMA, 1)) == exact(
        [
            {"id": 1, **GREATEST},
            {"id": 2, **NOTHING},
            {"id": 3, **LEAST},
            {"id": 5, **GREATEST},
        ]
    )


def test_all_readers_see_the_types_of_the_schema(
    disk: Lake, folder: Path, spark: SparkProcess
) -> None:
    """What Spark made of them is what Arrow calls them, lists included; it reads the rows that
    others read, also those that it merged."""
    for number, mode, values in ((1, "append", LEAST), (2, "merge", GREATEST)):
        row = {"id": number, **values}
        disk.mirrors.write(a_write(disk.mirrors, number, mode, [row], schema=SCHEMA))
    found = pa.schema(DeltaTable(folder / MIRROR).schema().to_arrow())
    assert [field.type for field in found] == [field.type for field in SCHEMA]
    frame = spark.session().read.format("delta").load(str(folder / MIRROR))
    by_spark = pa.table(frame.orderBy("id").toArrow()).cast(SCHEMA).to_pylist()
    assert exact(by_spark) == exact(content(disk.mirrors, MIRROR, SCHEMA, 1))


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
OF_SYSTEM_TABLES: dict[pa.DataType, Any] = {
    pa.string(): "text",
    pa.int64(): 7,
    pa.timestamp("us", tz="UTC"): MOMENT,
    pa.list_(pa.string()): ["insert into t values (1)", ""],
    pa.bool_(): True,
}
"""A value of each type; that of a list of tables is `TOUCHED`."""


@pytest.mark.parametrize("system_table", [None, *SystemTable])
def test_every_type_survives_segment_and_changelog(
    disk: Lake, folder: Path, spark: SparkProcess, system_table: SystemTable | None
) -> None:
    """Spark and delta-rs read from the published files what was written, also where a folder's name
    looks like a partition, and of the source's own tables (`_ddl`, `_transactions`)."""
    if system_table is None:
        path, schema = FOLDER, SCHEMA
        rows: list[Row] = [{"id": 1, **LEAST}, {"id": 2, **GREATEST}, {"id": 3, **NOTHING}]
        batch = changes(SCHEMA, rows)
    else:
        path, schema = system_table_path("shop", system_table), SYSTEM_TABLE_SCHEMAS[system_table]
        rows = [{field.name: OF_SYSTEM_TABLES.get(field.type, TOUCHED) for field in schema}]
        batch = pa.Table.from_pylist(rows, schema=schema)
    writer = disk.segments.open(path, batch=1, schema_version=1, schema=batch.schema)
    writer.write(batch)
    files = writer.close()
    disk.changelog.publish(
        path, app_id="app", batch=1, schema=batch.schema, files=files, user_metadata="batch 1"
    )
    names = schema.names
    assert exact(pa.concat_tables(disk.segments.pieces(path, files, names)).to_pylist()) == exact(
        rows
    )
    query = QueryBuilder().register("log", DeltaTable(folder / path))
    by_delta_rs = pa.table(query.execute(f"select * from log order by {names[0]}").read_all())
    assert exact(by_delta_rs.select(names).cast(schema).to_pylist()) == exact(rows)
    frame = spark.session().read.format("delta").load(str(folder / path)).orderBy(names[0])
    by_spark = pa.table(frame.select(names).toArrow()).cast(schema)
    assert exact(by_spark.to_pylist()) == exact(rows)


KEYS: dict[pa.DataType, tuple[Any, Any]] = {
    pa.float32(): (-0.0, TINY),
    pa.float64(): (0.1, 5e-324),
    pa.bool_(): (True, False),
    pa.binary(): (b"", b"\0"),
    pa.string(): ("-00:00:01", "00:00:01"),
    pa.decimal128(20, 0): (Decimal(2**64 - 1), Decimal(0)),
}
"""Types that a key of MySQL's may have, with two values of each."""


def test_keys_of_every_kind(lake: Lake) -> None:
    """A row is found again by a key of any type, and none that differs in one part of it: a row
    of first values, and for each part one that differs there."""
    schema = pa.schema([("name", pa.string()), *((f"k{n}", k) for n, k in enumerate(KEYS))])
    names = tuple(schema.names[1:])
    ones = {name: one for name, (one, _) in zip(names, KEYS.values(), strict=True)}
    others = {name: other for name, (_, other) in zip(names, KEYS.values(), strict=True)}
    keys = [ones, *({**ones, name: other} for name, other in others.items())]
    first = [{"name": "old", **key} for key in keys]
    lake.mirrors.write(a_write(lake.mirrors, 1, "append", first, schema=schema, key=names))
    merged: list[Row] = [update(name="new", **ones), delete(name="old", **keys[-1])]
    lake.mirrors.write(a_write(lake.mirrors, 2, "merge", merged, schema=schema, key=names))
    found = [repr(row) for row in exact(content(lake.mirrors, MIRROR, schema, 1))]
    left = [{"name": "new", **ones}, *first[1:-1]]
    assert sorted(found) == sorted(map(repr, exact(left)))
