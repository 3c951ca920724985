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

from benchmarks.ground import DATABASE, Ground, ground, scratch, seconds_of, size
from benchmarks.lines import Lines
from lockstep.pipeline.model.batch import Batch, CaptureRecord
from lockstep.pipeline.ports.ledger import Ledger
from lockstep.pipeline.run.capture import capture
from lockstep.pipeline.run.context import Workplace
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
_STEP = 100
"""Bytes of the log between two versions."""
_TABLE = TableName("shop", "orders")


def measure_history(console: Console) -> None:
    """Print a line for each length of a table's history, then the cost of a baseline and of
    structures in a run."""
    columns = ("versions", "recorded, s", "at a place, µs", "newest, µs", "all tables, µs")
    with scratch() as folder, open_ledger("embedded", folder) as ledger:
        lines = Lines(console, "The history of one table", columns, texts=0)
        for size in SIZES:
            lines.add(f"{size:,}", *_looked_up(ledger, size))
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
                BatchHistory(versions=tuple(_version(_TABLE, n) for n in _numbers(number, each))),
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
        _captured(ledger, lease, _STEP, BatchHistory((), tuple(versions), (database,)))
        recorded = perf_counter() - clock
    clock = perf_counter()
    count = len(ledger.schemas_at(source))
    if count != TABLES:
        raise SystemExit(f"{count} tables are in the history, {TABLES} were recorded")
    read = perf_counter() - clock
    last = seconds_of(lambda: ledger.last_versions(source))
    return (
        f"a baseline of {TABLES:,} tables of 12 columns: recorded in {recorded:.2f} s, read back "
        f"in {read:.2f} s, their numbers alone in {last * 1e3:.0f} ms"
    )


def _captured(ledger: Ledger, lease: Lease, end: int, history: BatchHistory) -> int:
    batch = _begun(ledger, lease)
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


FEW = 20
CHANGED = 20
"""Number of tables that a measured run has rows of."""
BEST_OF = 3
_OPTIONS = (
    "--binlog-row-metadata=MINIMAL",
    "--sync-binlog=0",
    "--innodb-flush-log-at-trx-commit=0",
    "--innodb-flush-method=nosync",
    "--table-open-cache=6000",
)
_TWELVE = (
    "(id bigint unsigned auto_increment primary key, first varchar(50),"
    " second varchar(50) not null, state enum('new','paid') default 'new',"
    " amount decimal(12,2), made_at datetime(6) not null,"
    " v0 int default 0, v1 int default 0, v2 int default 0, v3 int default 0, v4 int default 0,"
    " v5 int default 0, key by_first (first(10)))"
)


def measure_structures(console: Console) -> None:
    """Print a line for each number of tables, then the cost of reading structures.
    BENCH_HISTORY_TABLES: largest number of tables."""
    many = size("BENCH_HISTORY_TABLES", 5000)
    columns = ("tables", "first capture, s", "capture, s", "history, ms", "questions")
    lines = Lines(console, "A capture without DDL", columns, texts=0)
    with ground(_OPTIONS) as place:
        there = 0
        for tables in (FEW, many):
            place.execute(
                *(f"create table {DATABASE}.t{n} {_TWELVE}" for n in range(there, tables))
            )
            there = tables
            lines.add(f"{tables:,}", *_captures(place, tables))
        console.print(_bulk_baseline(place, many))
        console.print(_current(place, many))


# -- runs -------------------------------------------------------------------------------


@dataclass(slots=True)
class Asked:
    """Number and seconds of the ledger's answers about structures."""

    seconds: float = 0.0
    questions: int = 0


class TimedLedger:
    """A ledger that measures its answers about structures."""

    def __init__(self, ledger: Ledger, asked: Asked) -> None:
        self._ledger = ledger
        self._asked = asked

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._ledger, name)
        return self._timed(attribute) if name in vars(PostgresSchemas) else attribute

    def _timed(self, method: Callable[..., Any]) -> Callable[..., Any]:
        def ask(*values: Any, **named: Any) -> Any:
            clock = perf_counter()
            try:
                return method(*values, **named)
            finally:
                self._asked.seconds += perf_counter() - clock
                self._asked.questions += 1

        return ask


def _captures(place: Ground, tables: int) -> Iterator[str]:
    """Measure the first capture, which reads every structure, and the second one, which meets
    rows of few tables; return the best of some pairs, each with a new ledger."""
    pairs = [_pair(place, f"of-{tables}-{number}") for number in range(BEST_OF)]
    yield f"{min(first for first, *_ in pairs):.2f}"
    _, seconds, asked = min(pairs, key=lambda pair: pair[2].seconds)
    yield f"{seconds:.2f}"
    yield f"{asked.seconds * 1e3:.1f}"
    yield f"{asked.questions}"


def _pair(place: Ground, name: str) -> tuple[float, float, Asked]:
    with place.workplace(name, f"{DATABASE}.*") as (work, _):
        first, _ = _timed_capture(work)
        insert = "(second, made_at) values ('x', now(6))"
        place.execute(*(f"insert into {DATABASE}.t{n} {insert}" for n in range(CHANGED)))
        return first, *_timed_capture(work)


def _timed_capture(work: Workplace) -> tuple[float, Asked]:
    asked = Asked()
    timed = replace(work, ledger=cast("Ledger", TimedLedger(work.ledger, asked)))
    with work.ledger.lock("bench", "benchmark", None) as lease:
        clock = perf_counter()
        capture(timed, lease)
        return perf_counter() - clock, asked


# -- structures -------------------------------------------------------------------------


def _bulk_baseline(place: Ground, tables: int) -> str:
    """Measure reading all structures in bulk, beside one SHOW CREATE TABLE for each table."""
    server = MySqlServer(place.settings())
    bulk = min(seconds_of(server.baseline) for _ in range(BEST_OF))
    if len(server.baseline().tables) < tables:
        raise SystemExit("the baseline lacks tables")
    with place.connect() as connection, connection.cursor() as cursor:
        clock = perf_counter()
        for number in range(tables):
            cursor.execute(f"show create table {DATABASE}.t{number}")
            cursor.fetchall()
        single = perf_counter() - clock
    return (
        f"structures of {tables:,} tables of 12 columns: read in {bulk:.2f} s, "
        f"SHOW CREATE TABLE for each alone {single:.2f} s ({single / bulk:.1f} x)"
    )


def _current(place: Ground, tables: int) -> str:
    """Ask what each run asks about the tables whose rows it read."""
    server = MySqlServer(place.settings())
    names = [TableName(DATABASE, f"t{number}") for number in range(tables)]
    told = []
    for count in (1, CHANGED, tables):
        seconds = min(
            seconds_of(partial(server.current_schemas, names[:count])) for _ in range(BEST_OF)
        )
        told.append(f"of {count:,} in {seconds * 1e3:,.0f} ms")
    return f"structures of {tables:,} tables, asked for by their names: {', '.join(told)}"
