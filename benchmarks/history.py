"""The history of structures in the ledger: whether looking up a version stays as fast while it
grows; and the cost of structures in a run: reading all structures of a server with few and with
many tables, and asking the history for them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from random import Random
from time import perf_counter
from typing import Any, cast

from rich.console import Console

from benchmarks.common import (
    DATABASE,
    BenchServer,
    Lines,
    bench_server,
    env_number,
    scratch_folder,
    seconds_of,
)
from lockstep.pipeline.model.batch import Batch, CaptureRecord
from lockstep.pipeline.ports.ledger import Ledger
from lockstep.pipeline.run.capture import capture
from lockstep.pipeline.run.context import RunPorts
from lockstep.pipeline.schema.history import (
    BatchHistory,
    DatabaseVersion,
    Knowledge,
    SchemaVersion,
    VersionOrigin,
)
from lockstep.pipeline.schema.model import (
    ColumnSchema,
    DatabaseSchema,
    KeyPart,
    KeySchema,
    TableSchema,
    ValueDefault,
)
from lockstep.pipeline.values.decisions import Decision, Lease
from lockstep.pipeline.values.gtid import GtidSet
from lockstep.pipeline.values.position import Anchor, Coordinates, LogFile, Position
from lockstep.pipeline.values.table import TableName
from lockstep.resources.mysql.server import MySqlServer
from lockstep.resources.postgres.ledger import open_ledger
from lockstep.resources.postgres.schemas import PostgresSchemas

SIZES = (100, 1_000, 10_000, 100_000)
BATCHES = 10
LOOKUPS = 2_000
TABLES = 5_000
_STEP_BYTES = 100
"""Bytes of the log between two versions."""
_TABLE = TableName("shop", "orders")


def measure_history(console: Console) -> None:
    """Print a line for each length of a table's history, then the cost of a baseline and of
    structures in a run."""
    columns = ("versions", "recorded, s", "at a place, µs", "newest, µs", "all tables, µs")
    with scratch_folder() as folder, open_ledger("embedded", folder) as ledger:
        lines = Lines(console, "The history of one table", columns, texts=0)
        for size in SIZES:
            lines.add(f"{size:,}", *_lookup_cells(ledger, size))
        console.print(_baseline_text(ledger))
    measure_structures(console)


def _lookup_cells(ledger: Ledger, size: int) -> Iterator[str]:
    source = f"{size} versions"
    timer_start = perf_counter()
    batches = _fill_history(ledger, source, size)
    yield f"{perf_counter() - timer_start:.2f}"
    generator = Random(size)
    lookups = [
        (generator.choice(batches), generator.randrange(size * _STEP_BYTES)) for _ in range(LOOKUPS)
    ]
    timer_start = perf_counter()
    for batch, offset in lookups:
        ledger.schema_at(source, _TABLE, batch=batch, place=_place(offset))
    yield _microseconds_each(timer_start, LOOKUPS)
    timer_start = perf_counter()
    for _ in range(LOOKUPS):
        ledger.schema_at(source, _TABLE)
    yield _microseconds_each(timer_start, LOOKUPS)
    timer_start = perf_counter()
    for batch, offset in lookups[: LOOKUPS // 10]:
        ledger.schemas_at(source, batch=batch, place=_place(offset))
    yield _microseconds_each(timer_start, LOOKUPS // 10)


def _microseconds_each(timer_start: float, count: int) -> str:
    return f"{(perf_counter() - timer_start) / count * 1e6:,.0f}"


def _fill_history(ledger: Ledger, source: str, size: int) -> list[int]:
    """Fill the ledger with a table's versions, spread evenly over batches; return these batches."""
    versions_per_batch = size // BATCHES
    with ledger.lock(source, "benchmark", None) as lease:
        return [
            _record_capture(
                ledger,
                lease,
                (number + 1) * versions_per_batch * _STEP_BYTES,
                BatchHistory(
                    versions=tuple(
                        _version(_TABLE, n) for n in _version_numbers(number, versions_per_batch)
                    )
                ),
            )
            for number in range(BATCHES)
        ]


def _version_numbers(batch: int, count: int) -> range:
    return range(batch * count + 1, (batch + 1) * count + 1)


def _baseline_text(ledger: Ledger) -> str:
    """Measure a first capture that records every table of a server, and reading them all back."""
    source = "baseline"
    versions = [_version(TableName("shop", f"table_{n}"), 1) for n in range(TABLES)]
    database = DatabaseVersion("shop", _place(0), DatabaseSchema("shop", "utf8mb4", "utf8mb4_bin"))
    with ledger.lock(source, "benchmark", None) as lease:
        timer_start = perf_counter()
        _record_capture(ledger, lease, _STEP_BYTES, BatchHistory((), tuple(versions), (database,)))
        record_seconds = perf_counter() - timer_start
    timer_start = perf_counter()
    count = len(ledger.schemas_at(source))
    if count != TABLES:
        raise SystemExit(f"{count} tables are in the history, {TABLES} were recorded")
    read_seconds = perf_counter() - timer_start
    last_seconds = seconds_of(lambda: ledger.last_versions(source))
    return (
        f"a baseline of {TABLES:,} tables of 12 columns: recorded in {record_seconds:.2f} s, "
        f"read back in {read_seconds:.2f} s, their numbers alone in {last_seconds * 1e3:.0f} ms"
    )


def _record_capture(ledger: Ledger, lease: Lease, end: int, history: BatchHistory) -> int:
    batch = _begin_batch(ledger, lease)
    record = CaptureRecord(
        end=_position(end),
        anchor=Anchor(0, 0, 0, "", 0),
        changes=0,
        transactions=0,
        log_bytes=0,
        segments=(),
        tables=(),
        stopped_tables=(),
        history=history,
    )
    ledger.record_capture(lease, batch.id, record)
    return batch.id


def _begin_batch(ledger: Ledger, lease: Lease) -> Batch:
    cursor = ledger.cursors(lease.source).captured
    if cursor is None:
        decision = ledger.decide(lease, Decision("start", "earliest", "a benchmark"))
        return ledger.begin_batch(
            lease, _position(0), continued_batch=None, start_decision=decision.id
        )
    return ledger.begin_batch(
        lease, cursor.position, continued_batch=cursor.batch, start_decision=None
    )


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
    since = _place((number - 1) * _STEP_BYTES)
    return SchemaVersion(table, number, since, Knowledge.KNOWN, origin, schema)


def _columns(number: int) -> Sequence[ColumnSchema]:
    return (
        _text(f"first_{number}"),
        replace(_text(f"second_{number}"), nullable=False),
        ColumnSchema("state", "enum", members=("new", "paid"), default=ValueDefault("new")),
        ColumnSchema("amount", "decimal", precision=12, scale=2),
        ColumnSchema("made_at", "datetime", length=6, nullable=False),
        *(ColumnSchema(f"value_{n}", "int", default=ValueDefault("0")) for n in range(6)),
    )


def _text(name: str) -> ColumnSchema:
    collation = "utf8mb4_0900_ai_ci"
    return ColumnSchema(name, "varchar", length=50, charset="utf8mb4", collation=collation)


def _position(offset: int) -> Position:
    return Position(_place(offset), GtidSet.parse(""), "a server")


def _place(offset: int) -> Coordinates:
    return Coordinates(LogFile("binlog", 1), offset)


FEW_TABLES = 20
CHANGED_TABLES = 20
"""Number of tables that a measured run has rows of."""
BEST_OF = 3
_OPTIONS = (
    "--binlog-row-metadata=MINIMAL",
    "--sync-binlog=0",
    "--innodb-flush-log-at-trx-commit=0",
    "--innodb-flush-method=nosync",
    "--table-open-cache=6000",
)
_TWELVE_COLUMNS = (
    "(id bigint unsigned auto_increment primary key, first varchar(50),"
    " second varchar(50) not null, state enum('new','paid') default 'new',"
    " amount decimal(12,2), made_at datetime(6) not null,"
    " v0 int default 0, v1 int default 0, v2 int default 0, v3 int default 0, v4 int default 0,"
    " v5 int default 0, key by_first (first(10)))"
)


def measure_structures(console: Console) -> None:
    """Print a line for each number of tables, then the cost of reading structures.
    BENCH_HISTORY_TABLES: largest number of tables."""
    many = env_number("BENCH_HISTORY_TABLES", 5000)
    columns = ("tables", "first capture, s", "capture, s", "history, ms", "questions")
    lines = Lines(console, "A capture without DDL", columns, texts=0)
    with bench_server(_OPTIONS) as bench:
        existing = 0
        for tables in (FEW_TABLES, many):
            bench.execute(
                *(
                    f"create table {DATABASE}.t{n} {_TWELVE_COLUMNS}"
                    for n in range(existing, tables)
                )
            )
            existing = tables
            lines.add(f"{tables:,}", *_capture_cells(bench, tables))
        console.print(_bulk_baseline_text(bench, many))
        console.print(_current_schemas_text(bench, many))


# -- runs -------------------------------------------------------------------------------


@dataclass(slots=True)
class AnswerCost:
    """Number and seconds of the ledger's answers about structures."""

    seconds: float = 0.0
    questions: int = 0


class TimedLedger:
    """A ledger that measures its answers about structures."""

    def __init__(self, ledger: Ledger, cost: AnswerCost) -> None:
        self._ledger = ledger
        self._cost = cost

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._ledger, name)
        return self._timed(attribute) if name in vars(PostgresSchemas) else attribute

    def _timed(self, method: Callable[..., Any]) -> Callable[..., Any]:
        def ask(*values: Any, **named: Any) -> Any:
            timer_start = perf_counter()
            try:
                return method(*values, **named)
            finally:
                self._cost.seconds += perf_counter() - timer_start
                self._cost.questions += 1

        return ask


def _capture_cells(bench: BenchServer, tables: int) -> Iterator[str]:
    """Measure the first capture, which reads every structure, and the second one, which meets
    rows of few tables; return the best of some pairs, each with a new ledger."""
    pairs = [_pair_of_captures(bench, f"of-{tables}-{number}") for number in range(BEST_OF)]
    yield f"{min(first for first, *_ in pairs):.2f}"
    _, seconds, cost = min(pairs, key=lambda pair: pair[2].seconds)
    yield f"{seconds:.2f}"
    yield f"{cost.seconds * 1e3:.1f}"
    yield f"{cost.questions}"


def _pair_of_captures(bench: BenchServer, name: str) -> tuple[float, float, AnswerCost]:
    with bench.ports(name, f"{DATABASE}.*") as (ports, _):
        first, _ = _timed_capture(ports)
        insert = "(second, made_at) values ('x', now(6))"
        bench.execute(*(f"insert into {DATABASE}.t{n} {insert}" for n in range(CHANGED_TABLES)))
        return first, *_timed_capture(ports)


def _timed_capture(ports: RunPorts) -> tuple[float, AnswerCost]:
    cost = AnswerCost()
    timed_ports = replace(ports, ledger=cast("Ledger", TimedLedger(ports.ledger, cost)))
    with ports.ledger.lock("bench", "benchmark", None) as lease:
        timer_start = perf_counter()
        capture(timed_ports, lease)
        return perf_counter() - timer_start, cost


# -- structures -------------------------------------------------------------------------


def _bulk_baseline_text(bench: BenchServer, tables: int) -> str:
    """Measure reading all structures in bulk, beside one SHOW CREATE TABLE for each table."""
    server = MySqlServer(bench.connection_settings())
    bulk = min(seconds_of(server.baseline) for _ in range(BEST_OF))
    if len(server.baseline().tables) < tables:
        raise SystemExit("the baseline lacks tables")
    with bench.connect() as connection, connection.cursor() as cursor:
        timer_start = perf_counter()
        for number in range(tables):
            cursor.execute(f"show create table {DATABASE}.t{number}")
            cursor.fetchall()
        single = perf_counter() - timer_start
    return (
        f"structures of {tables:,} tables of 12 columns: read in {bulk:.2f} s, "
        f"SHOW CREATE TABLE for each alone {single:.2f} s ({single / bulk:.1f} x)"
    )


def _current_schemas_text(bench: BenchServer, tables: int) -> str:
    """Ask what each run asks about the tables whose rows it read."""
    server = MySqlServer(bench.connection_settings())
    names = [TableName(DATABASE, f"t{number}") for number in range(tables)]
    times = []
    for count in (1, CHANGED_TABLES, tables):
        seconds = min(
            seconds_of(partial(server.current_schemas, names[:count])) for _ in range(BEST_OF)
        )
        times.append(f"of {count:,} in {seconds * 1e3:,.0f} ms")
    return f"structures of {tables:,} tables, asked for by their names: {', '.join(times)}"
