"""Reads a real server's log for tests: events, transactions, decoded rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pipeline.binlog.buffer import Transaction, TransactionBuffer
from pipeline.binlog.framing import EventType, Framing
from pipeline.binlog.table_map import read_structure, read_table_map
from pipeline.ports import CHANGE_TYPES, RowsEvent
from pipeline.position import Coordinates
from pipeline.table import TableName, TableStructure
from resources.mysql.connection import ConnectionSettings
from resources.mysql.decode import LibraryRowDecoder
from resources.mysql.server import MySqlServer
from tests.fix_mysql import MySqlStand


def settings(mysql: MySqlStand, **changes: Any) -> ConnectionSettings:
    chosen = {
        "host": mysql.host,
        "port": mysql.port,
        "user": mysql.account,
        "password": mysql.password,
        "tls": "off",
        "read_timeout": 20.0,
    }
    return ConnectionSettings(**{**chosen, **changes})


def server(mysql: MySqlStand) -> MySqlServer:
    return MySqlServer(settings(mysql))


def transactions(source: MySqlServer, start: Coordinates) -> list[Transaction]:
    """Every whole transaction from `start` to the log's present end."""
    framing, buffer = Framing(start), TransactionBuffer()
    dump = source.dump(start)
    try:
        outs = [buffer.put(framing.frame(packet)) for packet in dump]
    finally:
        dump.close()
    return [out for out in outs if isinstance(out, Transaction)]


def table_maps(source: MySqlServer, start: Coordinates, table: TableName) -> list[bytes]:
    return [
        event.raw
        for transaction in transactions(source, start)
        for event in transaction.events
        if event.type is EventType.TABLE_MAP and read_table_map(event).table == table
    ]


def changes(
    source: MySqlServer, start: Coordinates, table: TableName
) -> Iterator[tuple[TableStructure, str, dict[str, Any]]]:
    """(structure, change type, row) of each image of a table, in order."""
    decoder = LibraryRowDecoder()
    for transaction in transactions(source, start):
        current = None
        for event in transaction.events:
            if event.type is EventType.TABLE_MAP:
                current = event if read_table_map(event).table == table else None
            elif current is not None:
                structure = read_structure(current.raw)
                rows = RowsEvent(event.raw, event.offset, event.timestamp, event.server_id)
                images = decoder.decode(structure, current.raw, [rows])
                kinds = images.change_type.to_pylist()
                for kind, row in zip(kinds, images.columns.to_pylist(), strict=True):
                    yield structure, CHANGE_TYPES[kind].value, row
