"""The engine's six workloads, each with its own tables: how they are created and filled, and
where each begins and ends in the log. A row is a row that changed: an update with both images
counts once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pymysql.cursors import Cursor

from benchmarks.ground import DATABASE, Ground
from benchmarks.statements import (
    DOCUMENT,
    DOCUMENT_VALUES,
    MIXED_STANDING,
    NARROW,
    NARROW_VALUES,
    WIDE,
    WIDE_VALUES,
    mixed_procedure,
    mixed_tables,
    single_procedure,
)
from lockstep.pipeline.values.position import Coordinates

CHUNK = 100_000
"""Number of rows of a transaction in the bulk workloads."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """The amounts of data and the numbers of passes. `oracle_seconds`: time limit of a pass of
    mysql-replication; `flat`: row counts of the series whose cost per row should stay the same."""

    rows: int
    transactions: int
    best_of: int
    oracle_seconds: float
    flat: tuple[int, ...]

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> Sizes:
        """Read BENCH_ENGINE_ROWS, BENCH_ENGINE_TRANSACTIONS, BENCH_BEST_OF, BENCH_ORACLE_SECONDS
        and BENCH_FLAT_ROWS (the last of the series)."""
        last = int(environment.get("BENCH_FLAT_ROWS", "1000000"))
        return cls(
            rows=int(environment.get("BENCH_ENGINE_ROWS", "1000000")),
            transactions=int(environment.get("BENCH_ENGINE_TRANSACTIONS", "100000")),
            best_of=int(environment.get("BENCH_BEST_OF", "3")),
            oracle_seconds=float(environment.get("BENCH_ORACLE_SECONDS", "6")),
            flat=tuple(n for n in (10_000, 100_000, 1_000_000, 10_000_000) if n <= last),
        )


@dataclass(frozen=True, slots=True)
class Workload:
    """A workload. `prepare`: runs before its place in the log is noted; `fill`: runs after that,
    and returns the numbers of rows and transactions; `tables`: the pattern that captures it;
    `at_least`, `aim`: ratios to mysql-replication's rows per second."""

    name: str
    tables: str
    at_least: int
    aim: int
    prepare: Callable[[Cursor], None]
    fill: Callable[[Cursor], tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Written:
    """The log between two places; `size`: in bytes."""

    start: Coordinates
    end: Coordinates
    rows: int
    transactions: int
    size: int


def write(ground: Ground, workload: Workload) -> Written:
    """Fill the workload's tables; return what it wrote to the log."""
    with ground.connect() as connection, connection.cursor() as cursor:
        cursor.execute("set cte_max_recursion_depth = 4294967295")
        workload.prepare(cursor)
        start = ground.head()
        rows, transactions = workload.fill(cursor)
    end = ground.head()
    return Written(start, end, rows, transactions, ground.log_bytes(start, end))


def workloads(sizes: Sizes) -> tuple[Workload, ...]:
    """Return the workloads in the order of the engine's promises."""
    rows, wide, documents = sizes.rows, sizes.rows * 3 // 10, sizes.rows // 10
    transactions = sizes.transactions
    return (
        Workload(
            f"{rows:,} inserts, 6 columns",
            f"{DATABASE}.narrow",
            60,
            100,
            _created("narrow", NARROW),
            lambda cursor: _insert(cursor, "narrow", NARROW_VALUES, 1, rows),
        ),
        Workload(
            f"{rows:,} updates, 6 columns, both images",
            f"{DATABASE}.updated",
            80,
            120,
            lambda cursor: _filled(cursor, "updated", rows),
            lambda cursor: _update(cursor, "updated", rows),
        ),
        Workload(
            f"{wide:,} inserts, 30 columns, 12 decimals",
            f"{DATABASE}.wide",
            60,
            120,
            _created("wide", WIDE),
            lambda cursor: _insert(cursor, "wide", WIDE_VALUES, 1, wide),
        ),
        Workload(
            f"{documents:,} inserts, JSON of 500 bytes",
            f"{DATABASE}.documents",
            10,
            30,
            _created("documents", DOCUMENT),
            lambda cursor: _insert(cursor, "documents", DOCUMENT_VALUES, 1, documents),
        ),
        Workload(
            f"{transactions:,} one-row transactions, 1 table",
            f"{DATABASE}.single",
            40,
            100,
            _created("single", NARROW, single_procedure("single")),
            lambda cursor: _single(cursor, transactions),
        ),
        Workload(
            f"{transactions:,} transactions of 1-5 rows, 20 tables",
            f"{DATABASE}.mixed_*",
            30,
            80,
            _prepare_mixed,
            lambda cursor: _mixed(cursor, transactions),
        ),
    )


def series(ground: Ground, sizes: Sizes) -> list[Written]:
    """Fill one table further and further: each span of the log has the same start and one of the
    row counts `sizes.flat`."""
    with ground.connect() as connection, connection.cursor() as cursor:
        cursor.execute("set cte_max_recursion_depth = 4294967295")
        cursor.execute(f"create table {DATABASE}.flat {NARROW}")
        start, before, transactions = ground.head(), 0, 0
        found = []
        for rows in sizes.flat:
            transactions += _insert(cursor, "flat", NARROW_VALUES, before + 1, rows)[1]
            end, before = ground.head(), rows
            size = ground.log_bytes(start, end)
            found.append(Written(start, end, rows, transactions, size))
    return found


def _created(table: str, columns: str, *statements: str) -> Callable[[Cursor], None]:
    def prepare(cursor: Cursor) -> None:
        cursor.execute(f"create table {DATABASE}.{table} {columns}")
        for statement in statements:
            cursor.execute(statement)

    return prepare


def _insert(cursor: Cursor, table: str, values: str, first: int, last: int) -> tuple[int, int]:
    """Insert the rows first to last in transactions of `CHUNK`; return the numbers of rows and
    transactions."""
    starts = range(first, last + 1, CHUNK)
    for start in starts:
        end = min(start + CHUNK - 1, last)
        cursor.execute(
            f"insert into {DATABASE}.{table} with recursive s as (select {start} n union all "
            f"select n + 1 from s where n < {end}) select {values} from s"
        )
    return last - first + 1, len(starts)


def _filled(cursor: Cursor, table: str, rows: int) -> None:
    cursor.execute(f"create table {DATABASE}.{table} {NARROW}")
    _insert(cursor, table, NARROW_VALUES, 1, rows)


def _update(cursor: Cursor, table: str, rows: int) -> tuple[int, int]:
    starts = range(1, rows + 1, CHUNK)
    for start in starts:
        cursor.execute(
            f"update {DATABASE}.{table} set a = a + 1, c = concat('new ', id) "
            f"where id between {start} and {start + CHUNK - 1}"
        )
    return rows, len(starts)


def _single(cursor: Cursor, transactions: int) -> tuple[int, int]:
    cursor.execute(f"call {DATABASE}.fill_single({transactions})")
    return transactions, transactions


def _prepare_mixed(cursor: Cursor) -> None:
    for table in mixed_tables():
        cursor.execute(f"create table {DATABASE}.{table} {NARROW}")
        _insert(cursor, table, NARROW_VALUES, 1, MIXED_STANDING)
    cursor.execute(mixed_procedure())


def _mixed(cursor: Cursor, transactions: int) -> tuple[int, int]:
    cursor.execute(f"call {DATABASE}.fill_mixed({transactions}, @rows)")
    cursor.execute("select @rows")
    ((rows,),) = cursor.fetchall()
    return int(rows), transactions
