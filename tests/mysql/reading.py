"""Reads a real server's log for tests: transactions, statements, decoded rows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from lockstep.pipeline.binlog.stream import ring as columns
from lockstep.pipeline.binlog.stream.control import Query
from lockstep.pipeline.binlog.stream.ring import TransactionGroup
from lockstep.pipeline.binlog.transactions.buffer import TransactionBuffer
from lockstep.pipeline.binlog.transactions.identity import gtid_text
from lockstep.pipeline.binlog.transactions.loop import Limits
from lockstep.pipeline.values.position import Coordinates
from lockstep.pipeline.values.table import TableName, TableStructure
from lockstep.resources.mysql.connection import ConnectionSettings
from lockstep.resources.mysql.server import MySqlServer
from tests.fix_mysql import MySqlStand
from tests.pipeline.buffered import Decoders
from tests.twins.spool import MemorySpool


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


@contextmanager
def rows_read(source: MySqlServer, structure: TableStructure) -> Iterator[Iterator[pa.RecordBatch]]:
    """A table's rows, in one consistent read."""
    with source.snapshot(structure) as read:
        yield read.batches


def server(mysql: MySqlStand, **changes: Any) -> MySqlServer:
    return MySqlServer(settings(mysql, **changes))


@dataclass(frozen=True, slots=True)
class Read:
    """One transaction: its GTID, range, statements, and how many row events of each table."""

    gtid: str
    begin: Coordinates
    end: Coordinates
    statements: tuple[Query, ...]
    tables: tuple[TableName, ...]


def runs(
    source: MySqlServer, start: Coordinates, **options: Any
) -> Iterator[tuple[TransactionBuffer, TransactionGroup]]:
    """Every run of complete transactions from `start` to the log's present end."""
    chosen: dict[str, Any] = {"is_captured": lambda _: True, "spool": MemorySpool(), **options}
    buffer = TransactionBuffer(start, **chosen)
    dump = source.dump(start)
    try:
        for received in dump:
            buffer.put(received)
            while (run := buffer.get()) is not None:
                yield buffer, run
                buffer.ack()
            if buffer.has_ended or buffer.has_stopped:
                return
    finally:
        dump.close()


def transactions(source: MySqlServer, start: Coordinates, **options: Any) -> list[Read]:
    """Every whole transaction from `start` to the log's present end."""
    return [one for buffer, run in runs(source, start, **options) for one in _read(buffer, run)]


def _read(buffer: TransactionBuffer, group: TransactionGroup) -> Iterator[Read]:
    tables: dict[int, list[TableName]] = {}
    for block in group.blocks:
        for event in block.events.tolist():
            table = buffer.maps.table_maps[event[columns.MAP]].table
            tables.setdefault(event[columns.TRANSACTION], []).append(table)
    for number, row in enumerate(group.transactions):
        file = group.files[row[columns.FILE]]
        yield Read(
            gtid_text(row, group.gtid_sources),
            Coordinates(file, int(row[columns.BEGIN_OFFSET])),
            Coordinates(file, int(row[columns.END_OFFSET])),
            tuple(query for at, query in group.statements if at == number),
            tuple(tables.get(number, ())),
        )


def changes(
    source: MySqlServer,
    start: Coordinates,
    table: TableName,
    *,
    limits: Limits | None = None,
) -> Iterator[tuple[TableStructure, str, dict[str, Any]]]:
    """(structure, change type, row) of each image of a table, in order."""
    decoders = Decoders()
    for buffer, run in runs(source, start, is_captured=lambda name: name == table, limits=limits):
        for block in run.blocks:
            for found in decoders.read(buffer, block):
                for kind, row in found.rows():
                    yield found.structure, kind, row
