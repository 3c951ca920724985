"""The history of structures in the ledger: whether looking up a version stays as fast while it
grows. `structures` measures runs and servers."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from time import perf_counter

from rich.console import Console
from rich.table import Table

from benchmarks.structures import measure_structures
from lockstep.pipeline.model.batch import Batch, CaptureRecord
from lockstep.pipeline.ports.ledger import Ledger
from lockstep.pipeline.schema.history import (
    DatabaseVersion,
    History,
    Knowledge,
    SchemaVersion,
    VersionOrigin,
)
from lockstep.pipeline.schema.model import (
    ColumnSchema,
    DatabaseSchema,
    KeyPart,
    KeySchema,
    LiteralDefault,
    TableSchema,
)
from lockstep.pipeline.values.decisions import Decision, Lease
from lockstep.pipeline.values.gtid import GtidSet
from lockstep.pipeline.values.position import Anchor, Coordinates, LogFile, Position
from lockstep.pipeline.values.table import TableName
from lockstep.resources.postgres.ledger import open_ledger

SIZES = (100, 1_000, 10_000, 100_000)
BATCHES = 10
LOOKUPS = 2_000
TABLES = 5_000
_STEP = 100
"""Bytes of the log between two versions."""
_TABLE = TableName("shop", "orders")


def measure_history(console: Console) -> None:
    """Print a line for each length of a table's history, then the cost of a baseline and of
    structures in a run."""
    with (
        tempfile.TemporaryDirectory(prefix="lockstep-bench-") as folder,
        open_ledger("embedded", Path(folder)) as ledger,
    ):
        lines = Table("versions", "recorded, s", "at a place, µs", "newest, µs", "all tables, µs")
        for size in SIZES:
            lines.add_row(f"{size:,}", *_looked_up(ledger, size))
        console.print(lines)
        console.print(_baseline(ledger))
    measure_structures(console)


def _looked_up(ledger: Ledger, size: int) -> Iterator[str]:
    source = f"{size} versions"
    clock = perf_counter()
    batches = _filled(ledger, source, size)
    yield f"{perf_counter() - clock:.2f}"
    chance = Random(size)
    lookups = [(chance.choice(batches), chance.randrange(size * _STEP)) for _ in range(LOOKUPS)]
    clock = perf_counter()
    for batch, offset in lookups:
        ledger.schema_at(source, _TABLE, batch=batch, place=_place(offset))
    yield _each(clock, LOOKUPS)
    clock = perf_counter()
    for _ in range(LOOKUPS):
        ledger.schema_at(source, _TABLE)
    yield _each(clock, LOOKUPS)
    clock = perf_counter()
    for batch, offset in lookups[: LOOKUPS // 10]:
        ledger.schemas_at(source, batch=batch, place=_place(offset))
    yield _each(clock, LOOKUPS // 10)


def _each(clock: float, count: int) -> str:
    return f"{(perf_counter() - clock) / count * 1e6:,.0f}"


def _filled(ledger: Ledger, source: str, size: int) -> list[int]:
    """Fill the ledger with a table's versions, spread evenly over batches; return these batches."""
    each = size // BATCHES
    with ledger.lock(source, "benchmark", None) as lease:
        return [
            _captured(
                ledger,
                lease,
                (number + 1) * each * _STEP,
                History(versions=tuple(_version(_TABLE, n) for n in _numbers(number, each))),
            )
            for number in range(BATCHES)
        ]


def _numbers(batch: int, each: int) -> range:
    return range(batch * each + 1, (batch + 1) * each + 1)


def _baseline(ledger: Ledger) -> str:
    """Measure a first capture that records every table of a server, and reading them all back."""
    source = "baseline"
    versions = [_version(TableName("shop", f"table_{n}"), 1) for n in range(TABLES)]
    database = DatabaseVersion("shop", _place(0), DatabaseSchema("shop", "utf8mb4", "utf8mb4_bin"))
    with ledger.lock(source, "benchmark", None) as lease:
        clock = perf_counter()
        _captured(ledger, lease, _STEP, History((), tuple(versions), (database,)))
        recorded = perf_counter() - clock
    clock = perf_counter()
    count = len(ledger.schemas_at(source))
    if count != TABLES:
        raise SystemExit(f"{count} tables are in the history, {TABLES} were recorded")
    read = perf_counter() - clock
    clock = perf_counter()
    ledger.last_versions(source)
    last = perf_counter() - clock
    return (
        f"a baseline of {TABLES:,} tables of 12 columns: recorded in {recorded:.2f} s, read back "
        f"in {read:.2f} s, their numbers alone in {last * 1e3:.0f} ms"
    )


def _captured(ledger: Ledger, lease: Lease, end: int, history: History) -> int:
    batch = _begun(ledger, lease)
    record = CaptureRecord(
        end=_position(end),
        anchor=Anchor(0, 0, 0, "", 0),
        changes=0,
        transactions=0,
        log_bytes=0,
        segments=(),
        tables=(),
        quarantined=(),
        history=history,
    )
    ledger.record_capture(lease, batch.id, record)
    return batch.id


def _begun(ledger: Ledger, lease: Lease) -> Batch:
    cursor = ledger.cursors(lease.source).captured
    if cursor is None:
        decided = ledger.decide(lease, Decision("start", "earliest", "a benchmark"))
        return ledger.begin_batch(lease, _position(0), predecessor=None, start_decision=decided.id)
    return ledger.begin_batch(lease, cursor.position, predecessor=cursor.batch, start_decision=None)


def _version(table: TableName, number: int) -> SchemaVersion:
    """Return a version's structure, whose column names differ from those of every other version."""
    schema = TableSchema(
        table,
        (
            ColumnSchema("id", "bigint", nullable=False, unsigned=True, auto_increment=True),
            *_columns(number),
        ),
        (
            KeySchema("PRIMARY", "primary", (KeyPart("id"),)),
            KeySchema("by_first", "index", (KeyPart(f"first_{number}", 10),)),
        ),
        charset="utf8mb4",
        collation="utf8mb4_0900_ai_ci",
    )
    origin = VersionOrigin.BASELINE if number == 1 else VersionOrigin.TABLE_MAP
    since = _place((number - 1) * _STEP)
    return SchemaVersion(table, number, since, Knowledge.KNOWN, origin, schema)


def _columns(number: int) -> Sequence[ColumnSchema]:
    return (
        _text(f"first_{number}"),
        replace(_text(f"second_{number}"), nullable=False),
        ColumnSchema("state", "enum", members=("new", "paid"), default=LiteralDefault("new")),
        ColumnSchema("amount", "decimal", precision=12, scale=2),
        ColumnSchema("made_at", "datetime", length=6, nullable=False),
        *(ColumnSchema(f"value_{n}", "int", default=LiteralDefault("0")) for n in range(6)),
    )


def _text(name: str) -> ColumnSchema:
    collation = "utf8mb4_0900_ai_ci"
    return ColumnSchema(name, "varchar", length=50, charset="utf8mb4", collation=collation)


def _position(offset: int) -> Position:
    return Position(_place(offset), GtidSet.parse(""), "a server")


def _place(offset: int) -> Coordinates:
    return Coordinates(LogFile("binlog", 1), offset)
