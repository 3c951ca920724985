"""Facts as the commands work them out, apart from any server."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType

import pytest

from lockstep.commands.read import table_snippets
from lockstep.grammar import UsageError, table_name
from lockstep.pipeline.ports.source import BinlogSize, ServerFacts
from lockstep.pipeline.status.facts import log_distance
from lockstep.pipeline.values.gtid import GtidSet
from lockstep.pipeline.values.position import Coordinates, LogFile, Position
from lockstep.pipeline.values.table import TableName


def at(number: int, offset: int) -> Coordinates:
    return Coordinates(LogFile("binlog", number), offset)


def facts(head: Coordinates) -> ServerFacts:
    sizes = ((9, 1000), (10, 2000), (11, 300))
    return ServerFacts(
        server_uuid="us",
        server_id=1,
        version="9.7.4",
        flavour="mysql",
        gtid_mode="ON",
        gtid_executed="",
        gtid_purged="",
        binlogs=tuple(BinlogSize(LogFile("binlog", number), size) for number, size in sizes),
        head=head,
        settings=MappingProxyType({}),
        read_at=datetime(2026, 11, 1, tzinfo=UTC),
    )


@pytest.mark.parametrize(
    ("position", "behind"),
    [
        (Position(at(11, 300), GtidSet(), "us"), 0),
        (Position(at(11, 100), GtidSet(), "us"), 200),
        (Position(at(10, 1500), GtidSet(), "us"), 800),
        (Position(at(9, 400), GtidSet(), "us"), 2900),
        (Position(at(8, 4), GtidSet(), "us"), None),
        (Position(at(10, 4), GtidSet(), "another server"), None),
    ],
)
def test_bytes_behind(position: Position, behind: int | None) -> None:
    """The log between a position and the head, over files; unknown where it cannot be told."""
    assert log_distance(facts(at(11, 300)), position) == behind


def test_a_tables_name_is_divided_at_its_first_dot() -> None:
    """What follows belongs to the table."""
    assert table_name("shop.a.b") == TableName("shop", "a.b")
    for text in ("shop", "shop.", ".a"):
        with pytest.raises(UsageError):
            table_name(text)


@pytest.mark.parametrize("path", ["/lake/shop/orders", '/it\'s a "lake"/a=20b'])
def test_snippets_can_be_pasted(path: str) -> None:
    """The Python ones compile; the SQL one doubles the quotes in the path."""
    told = table_snippets(path)
    for reader in ("Spark", "delta-rs"):
        compile(told[reader], reader, "exec")
    quoted = path.replace("'", "''")
    assert f"delta_scan('{quoted}')" in told["DuckDB"]
    assert Path(path).name in told["Spark"]
