"""Mirrors that somebody else loaded: left alone until a person has them replaced."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from lockstep.pipeline.model.table_state import Supplier
from lockstep.pipeline.values.errors import MirrorRefused
from lockstep.pipeline.values.table import TableName
from tests.fix_mysql import MySqlStand
from tests.mysql.reading import server
from tests.outside import OrderRequest, foreign_mirrors, give_reload, plan_reload, verify
from tests.positions.follower import SOURCE, Follower
from tests.proof.writing import COLUMNS, KEYLESS, writers
from tests.twins.lake import MemoryCommit
from tests.twins.mirrors import MemoryMirrors

SCHEMA = pa.schema(
    [
        ("id", pa.int32()),
        ("a", pa.string()),
        ("b", pa.float64()),
        ("c", pa.decimal128(12, 3)),
        ("d", pa.timestamp("us")),
    ]
)


class Shop:
    """Two tables with rows, and what somebody else made of them in the lake."""

    def __init__(self, mysql: MySqlStand, name: str) -> None:
        self.mysql, self.name = mysql, name
        mysql.execute(
            f"use {name}",
            f"create table keyed ({COLUMNS})",
            f"create table bare ({KEYLESS})",
            f"create table other ({COLUMNS})",
            *(f"insert into {table} (id) values (1), (2)" for table in ("keyed", "bare", "other")),
        )
        self.follower = Follower(server(mysql), [f"{name}.*"], start="snapshot")
        for table in ("keyed", "bare"):
            self.load(table, [{"id": 1}, {"id": 2}])

    def load(self, table: str, rows: list[dict[str, Any]], schema: pa.Schema = SCHEMA) -> None:
        made = MemoryCommit("", 0, "", pa.Table.from_pylist(rows, schema=schema))
        self.follower.lake.tables[f"{SOURCE}/{self.name}/{table}"] = [made]

    @property
    def tables(self) -> list[TableName]:
        return [TableName(self.name, table) for table in ("bare", "keyed")]


@pytest.fixture
def shop(mysql: MySqlStand, database: str) -> Shop:
    return Shop(mysql, database)


def test_they_are_left_alone_until_somebody_says(shop: Shop) -> None:
    """A run neither reads nor writes them, whatever the log has of them, and goes on with the
    others."""
    before = dict(shop.follower.lake.tables)
    shop.follower.run()
    shop.mysql.execute(f"insert into {shop.name}.keyed (id) values (3)")
    shop.follower.run()
    for table in ("bare", "keyed"):
        folder = f"{SOURCE}/{shop.name}/{table}"
        assert shop.follower.lake.tables[folder] == before[folder]
    assert list(foreign_mirrors(shop.follower.ports(), shop.tables)) == shop.tables
    states = shop.follower.states()
    assert [table.name for table in states] == ["other"]


def test_a_place_that_cannot_be_read_leaves_its_table_out(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the others are followed."""
    unreadable = f"{SOURCE}/{shop.name}/keyed"
    shop.follower.lake.tables.clear()

    def version(self: MemoryMirrors, mirror: str) -> int | None:
        if mirror == unreadable:
            raise MirrorRefused("its mirror cannot be used", hint="rewrite the mirror")
        return plain(self, mirror)

    plain = MemoryMirrors.version
    monkeypatch.setattr(MemoryMirrors, "version", version)
    shop.follower.run()
    assert list(foreign_mirrors(shop.follower.ports(), shop.tables)) == [
        TableName(shop.name, "keyed")
    ]
    shop.mysql.execute(f"insert into {shop.name}.other (id) values (7)")
    shop.follower.run()
    states = shop.follower.states()
    assert TableName(shop.name, "other") in states
    assert TableName(shop.name, "keyed") not in states


def test_a_person_has_them_replaced(shop: Shop) -> None:
    """By what MySQL has, while others write; what was there is an earlier version."""
    shop.follower.run()
    ports = shop.follower.ports()
    asked = [OrderRequest(table, "somebody", "moved here") for table in shop.tables]
    foreseen = [plan_reload(ports, one, None) for one in asked]
    for table, one in zip(shop.tables, foreseen, strict=True):
        mirror = f"{SOURCE}/{shop.name}/{table.name}"
        assert f"it replaces what somebody else made in the lake at {mirror}" in one.sentence
        assert one.supplier is Supplier.SOURCE
    with shop.follower.leased() as lease:
        for one in foreseen:
            give_reload(ports, lease, one)
    with writers(shop.mysql, shop.name, ["keyed", "bare"], 1):
        shop.follower.run()
    shop.follower.run()
    assert shop.follower.ledger.open_loads(SOURCE) == []
    compared = verify(shop.follower.ports())
    assert compared.equal
    assert len(compared.tables) == 3
    for table in shop.tables:
        first, *later = shop.follower.lake.tables[shop.follower.states()[table].mirror]
        assert (first.app_id, bool(later)) == ("", True)
