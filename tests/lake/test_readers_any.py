"""`readers = "any"`: mirrors that delta-rs and Polars read, whatever happened to the table.

One table goes through every kind of change, a run behind some of them, or each; its mirror is read
by delta-rs' two readers and Polars, and held against the server. What Spark reads is other tests'
business.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import polars
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable, QueryBuilder

from lockstep.pipeline.mirror.layout import DELETED_AT
from lockstep.pipeline.schema.types import arrow_schema
from lockstep.pipeline.values.policies import (
    Deletes,
    DroppedColumns,
    LakePolicies,
    OnRewrite,
    Readers,
)
from lockstep.pipeline.values.table import TableName
from lockstep.resources.mysql.server import MySqlServer
from tests.fix_mysql import MySqlStand
from tests.lake.conftest import Lake
from tests.lake.made import a_write
from tests.mysql.reading import rows_read, server
from tests.positions.follower import SOURCE
from tests.schema.mixed_log import minimal_log
from tests.schema.reader import Reader

Rows = list[dict[str, Any]]

_CREATED: Final = (
    "create table t (id int primary key, a tinyint, b varchar(10), c decimal(6,2),"
    " d datetime(6), e enum('x','y'), f float, g vector(2), h date)",
    "insert into t values (1, 1, 'one', 1.5, '2024-02-29 01:02:03.456789', 'x', 0.5,"
    " to_vector('[1,2]'), '2024-02-29'), (2, null, null, null, null, null, null, null, null),"
    " (3, 3, 'drei', -3, '1000-01-01', 'y', 1e30, null, '9999-12-31')",
)
_KINDS: Final[dict[str, tuple[str, ...]]] = {
    "created": _CREATED,
    "rows": ("insert into t (id) values (4)", "update t set a = 7", "delete from t where id = 2"),
    "added": (
        "alter table t add column n int not null default 5, add column m datetime(3) default"
        " '2020-01-01' first, add column u bigint unsigned",
        "insert into t (id, u) values (2, 18446744073709551615)",
    ),
    "dropped and renamed": (
        "alter table t drop column f, rename column b to bb",
        "update t set bb = 'after' where id = 1",
        "update t set bb = null where id = 3",
    ),
    "swapped and widened": (
        "alter table t rename column a to n, rename column n to a",
        "insert into t (id, a, n) values (5, 50, 5)",
        "alter table t modify n smallint, modify bb varchar(300), modify id bigint,"
        " modify e enum('x','y','z')",
        "insert into t (id, n, bb, e) values (9000000000, 30000, repeat('é', 300), 'z')",
    ),
    "rewritten": (
        "alter table t modify c decimal(20,4), modify h datetime, modify n bigint",
        "update t set c = 1234567890123456.7891 where id = 1",
    ),
    "values changed": (
        "alter table t modify bb varchar(400) character set latin1, modify g blob",
        "delete from t where id = 3",
    ),
    "another key": (
        "update t set a = id % 1000",
        "alter table t drop primary key, add primary key (a)",
        "update t set a = 77 where id = 1",
    ),
    "another name": (
        "create table other (id int primary key, v varchar(3))",
        "insert into other values (1, 'new')",
        "rename table t to was, other to t",
        "delete from was limit 1",
        "insert into t values (2, 'two')",
    ),
    "truncated": ("insert into t values (3, 'x')", "truncate t", "insert into t values (1, 'y')"),
    "gone": ("insert into t values (4, 'z')", "drop table t"),
    "created again": (
        "create table t (k varchar(20) primary key, w json)",
        "insert into t values ('a', '[1]'), ('b', null)",
        "delete from t where k = 'a'",
    ),
}
_TOGETHER: Final = (
    ("created", "rows"),
    ("added", "dropped and renamed"),
    ("swapped and widened",),
    ("rewritten", "values changed"),
    ("another key",),
    ("another name", "truncated"),
    ("gone",),
    ("created again",),
)
"""What one run follows where not each kind has a run of its own."""

_KEYLESS: Final[dict[str, tuple[str, ...]]] = {
    "without a key": ("drop table t", "create table t (v text, w json)"),
    "copies": (
        "insert into t values ('a', '[1]'), ('a', '[1]'), (null, null)",
        "delete from t where v = 'a' limit 1",
    ),
}
"""Deleted rows cannot be kept there."""


def by_delta_rs(mirror: Path) -> pa.Table:
    return DeltaTable(mirror).to_pyarrow_table()


def by_data_fusion(mirror: Path) -> pa.Table:
    table = DeltaTable(mirror)
    query = QueryBuilder().register("m", table).execute("select * from m")
    return pa.table(query.read_all()).cast(pa.schema(table.schema().to_arrow()))


def by_polars(mirror: Path) -> pa.Table:
    return polars.read_delta(mirror).to_arrow(compat_level=polars.CompatLevel.oldest())


_READERS: Final[tuple[Callable[[Path], pa.Table], ...]] = (by_delta_rs, by_data_fusion, by_polars)


@dataclass(frozen=True, slots=True)
class Followed:
    """A table, its mirror's folder, and who follows it."""

    source: MySqlServer
    table: TableName
    reader: Reader
    mirror: Path

    def there(self) -> pa.Table:
        """What SELECT shows."""
        structure = self.source.structure(self.table)
        with rows_read(self.source, structure) as batches:
            return pa.Table.from_batches(batches, arrow_schema(structure))

    def shown(self, read: Callable[[Path], pa.Table], schema: pa.Schema) -> Rows:
        """The rows of the mirror that are not deleted."""
        rows = read(self.mirror)
        if DELETED_AT.name in rows.column_names:
            rows = rows.filter(pc.is_null(rows.column(DELETED_AT.name)))
        return ordered(rows.select(schema.names).cast(schema))


def ordered(rows: pa.Table) -> Rows:
    return sorted(rows.to_pylist(), key=repr)


@pytest.fixture
def name(mysql: MySqlStand) -> Iterator[str]:
    with minimal_log(mysql) as chosen:
        yield f"{chosen}_p"


def followed(mysql: MySqlStand, name: str, disk: Lake, policies: LakePolicies) -> Followed:
    source = server(mysql)
    reader = Reader(source, [f"{name}.*t"], lake_policies=policies, disk=disk)
    reader.run()
    assert disk.folder is not None
    return Followed(source, TableName(name, "t"), reader, disk.folder / SOURCE / name / "t")


def check(
    mysql: MySqlStand, name: str, one: Followed, kinds: Mapping[str, tuple[str, ...]]
) -> Iterator[tuple[str, Rows]]:
    """Each kind of change, followed and compared; and all rows of the mirror behind it, those
    that are deleted among them."""
    expected, schema = list[dict[str, Any]](), pa.schema([])
    for kind, statements in kinds.items():
        mysql.execute(*statements, database=name)
        one.reader.run()
        if kind != "gone":
            there = one.there()
            expected, schema = ordered(there), there.schema
        else:
            expected = [*expected, {"id": 4, "v": "z"}]
        assert one.reader.quarantined() == {}
        for read in _READERS:
            assert one.shown(read, schema) == expected, (kind, read)
        features = DeltaTable(one.mirror).protocol().reader_features or []
        assert {*features} <= {"timestampNtz"}
        yield kind, by_polars(one.mirror).to_pylist()


@pytest.mark.since(9, 0)
def test_all_of_it_is_kept(mysql: MySqlStand, name: str, disk: Lake) -> None:
    """With deleted rows and dropped columns kept: every reader sees those too."""
    policies = LakePolicies(
        on_rewrite=OnRewrite.RESNAPSHOT, deletes=Deletes.SOFT, readers=Readers.ANY
    )
    kinds = {some[-1]: (*(one for kind in some for one in _KINDS[kind]),) for some in _TOGETHER}
    assert [kind for some in _TOGETHER for kind in some] == list(_KINDS)
    seen = dict(check(mysql, name, followed(mysql, name, disk, policies), kinds))
    deleted = [row["id"] for row in seen["rows"] if row["_deleted_at"] is not None]
    assert deleted == [2]
    assert {row["id"]: row["f"] for row in seen["dropped and renamed"]}[1] == 0.5
    assert disk.mirrors.readers(f"{SOURCE}/{name}/t") is Readers.ANY


def test_a_mirror_is_made_for_some_readers(lake: Lake) -> None:
    """Which is told by what it asks of them, not by the configuration."""
    assert lake.mirrors.readers("shop/shop/people") is None
    lake.mirrors.write(a_write(lake.mirrors, 1, "append", [{"id": 1}]))
    lake.mirrors.write(a_write(lake.mirrors, 2, "append", [{"id": 2}], readers=Readers.ANY))
    assert lake.mirrors.readers("shop/shop/people") is Readers.SPARK


@pytest.mark.soak
def test_nothing_of_it_is_kept(mysql: MySqlStand, name: str, disk: Lake) -> None:
    """What the source has no more, no reader sees."""
    policies = LakePolicies(
        on_rewrite=OnRewrite.RESNAPSHOT, dropped_columns=DroppedColumns.DROP, readers=Readers.ANY
    )
    one = followed(mysql, name, disk, policies)
    seen = dict(check(mysql, name, one, {**_KINDS, **_KEYLESS}))
    assert "_deleted_at" not in seen["rows"][0]
    assert "f" not in seen["dropped and renamed"][0]
