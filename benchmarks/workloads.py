"""The engine's six workloads, each with its own tables: how they are created and filled, and
where each begins and ends in the log. A row is a row that changed: an update with both images
counts once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pymysql.cursors import Cursor

from benchmarks.common import DATABASE, BenchServer
from lockstep.pipeline.values.position import Coordinates

ROWS_PER_TRANSACTION = 100_000
"""Number of rows of a transaction in the bulk workloads."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """The amounts of data and the numbers of passes. `oracle_seconds`: time limit of a pass of
    mysql-replication; `series_rows`: row counts of the series whose cost per row should stay
    the same."""

    rows: int
    transactions: int
    passes: int
    oracle_seconds: float
    series_rows: tuple[int, ...]

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> Sizes:
        """Read BENCH_ENGINE_ROWS, BENCH_ENGINE_TRANSACTIONS, BENCH_BEST_OF, BENCH_ORACLE_SECONDS
        and BENCH_FLAT_ROWS (the last of the series)."""
        last = int(environment.get("BENCH_FLAT_ROWS", "1000000"))
        return cls(
            rows=int(environment.get("BENCH_ENGINE_ROWS", "1000000")),
            transactions=int(environment.get("BENCH_ENGINE_TRANSACTIONS", "100000")),
            passes=int(environment.get("BENCH_BEST_OF", "3")),
            oracle_seconds=float(environment.get("BENCH_ORACLE_SECONDS", "6")),
            series_rows=tuple(n for n in (10_000, 100_000, 1_000_000, 10_000_000) if n <= last),
        )


@dataclass(frozen=True, slots=True)
class Workload:
    """A workload. `prepare`: runs before its place in the log is noted; `fill`: runs after that,
    and returns the numbers of rows and transactions; `tables`: the pattern that captures it;
    `min_ratio`, `aim_ratio`: ratios to mysql-replication's rows per second."""

    name: str
    tables: str
    min_ratio: int
    aim_ratio: int
    prepare: Callable[[Cursor], None]
    fill: Callable[[Cursor], tuple[int, int]]


@dataclass(frozen=True, slots=True)
class LogSpan:
    """The log between two places, and what it has; `size`: in bytes."""

    start: Coordinates
    end: Coordinates
    rows: int
    transactions: int
    size: int


def write(bench: BenchServer, workload: Workload) -> LogSpan:
    """Fill the workload's tables; return what it wrote to the log."""
    with bench.connect() as connection, connection.cursor() as cursor:
        cursor.execute("set cte_max_recursion_depth = 4294967295")
        workload.prepare(cursor)
        start = bench.log_end()
        rows, transactions = workload.fill(cursor)
    end = bench.log_end()
    return LogSpan(start, end, rows, transactions, bench.log_bytes(start, end))


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
            _creator("narrow", NARROW),
            lambda cursor: _insert(cursor, "narrow", NARROW_VALUES, 1, rows),
        ),
        Workload(
            f"{rows:,} updates, 6 columns, both images",
            f"{DATABASE}.updated",
            80,
            120,
            lambda cursor: _create_and_fill(cursor, "updated", rows),
            lambda cursor: _update(cursor, "updated", rows),
        ),
        Workload(
            f"{wide:,} inserts, 30 columns, 12 decimals",
            f"{DATABASE}.wide",
            60,
            120,
            _creator("wide", WIDE),
            lambda cursor: _insert(cursor, "wide", WIDE_VALUES, 1, wide),
        ),
        Workload(
            f"{documents:,} inserts, JSON of 500 bytes",
            f"{DATABASE}.documents",
            10,
            30,
            _creator("documents", DOCUMENT),
            lambda cursor: _insert(cursor, "documents", DOCUMENT_VALUES, 1, documents),
        ),
        Workload(
            f"{transactions:,} one-row transactions, 1 table",
            f"{DATABASE}.single",
            40,
            100,
            _creator("single", NARROW, single_procedure("single")),
            lambda cursor: _fill_single(cursor, transactions),
        ),
        Workload(
            f"{transactions:,} transactions of 1-5 rows, 20 tables",
            f"{DATABASE}.mixed_*",
            30,
            80,
            _prepare_mixed,
            lambda cursor: _fill_mixed(cursor, transactions),
        ),
    )


def series(bench: BenchServer, sizes: Sizes) -> list[LogSpan]:
    """Fill one table further and further: each span of the log has the same start and one of the
    row counts `sizes.series_rows`."""
    with bench.connect() as connection, connection.cursor() as cursor:
        cursor.execute("set cte_max_recursion_depth = 4294967295")
        cursor.execute(f"create table {DATABASE}.flat {NARROW}")
        start, last_row, transactions = bench.log_end(), 0, 0
        spans = []
        for rows in sizes.series_rows:
            transactions += _insert(cursor, "flat", NARROW_VALUES, last_row + 1, rows)[1]
            end, last_row = bench.log_end(), rows
            size = bench.log_bytes(start, end)
            spans.append(LogSpan(start, end, rows, transactions, size))
    return spans


def _creator(table: str, columns: str, *statements: str) -> Callable[[Cursor], None]:
    def prepare(cursor: Cursor) -> None:
        cursor.execute(f"create table {DATABASE}.{table} {columns}")
        for statement in statements:
            cursor.execute(statement)

    return prepare


def _insert(cursor: Cursor, table: str, values: str, first: int, last: int) -> tuple[int, int]:
    """Insert the rows first to last in transactions of `ROWS_PER_TRANSACTION`; return the numbers
    of rows and transactions."""
    starts = range(first, last + 1, ROWS_PER_TRANSACTION)
    for start in starts:
        end = min(start + ROWS_PER_TRANSACTION - 1, last)
        cursor.execute(
            f"insert into {DATABASE}.{table} with recursive s as (select {start} n union all "
            f"select n + 1 from s where n < {end}) select {values} from s"
        )
    return last - first + 1, len(starts)


def _create_and_fill(cursor: Cursor, table: str, rows: int) -> None:
    cursor.execute(f"create table {DATABASE}.{table} {NARROW}")
    _insert(cursor, table, NARROW_VALUES, 1, rows)


def _update(cursor: Cursor, table: str, rows: int) -> tuple[int, int]:
    starts = range(1, rows + 1, ROWS_PER_TRANSACTION)
    for start in starts:
        cursor.execute(
            f"update {DATABASE}.{table} set a = a + 1, c = concat('new ', id) "
            f"where id between {start} and {start + ROWS_PER_TRANSACTION - 1}"
        )
    return rows, len(starts)


def _fill_single(cursor: Cursor, transactions: int) -> tuple[int, int]:
    cursor.execute(f"call {DATABASE}.fill_single({transactions})")
    return transactions, transactions


def _prepare_mixed(cursor: Cursor) -> None:
    for table in mixed_tables():
        cursor.execute(f"create table {DATABASE}.{table} {NARROW}")
        _insert(cursor, table, NARROW_VALUES, 1, MIXED_INITIAL_ROWS)
    cursor.execute(mixed_procedure())


def _fill_mixed(cursor: Cursor, transactions: int) -> tuple[int, int]:
    cursor.execute(f"call {DATABASE}.fill_mixed({transactions}, @rows)")
    cursor.execute("select @rows")
    ((rows,),) = cursor.fetchall()
    return int(rows), transactions


# -- the SQL: columns, the values of row `n`, and procedures that fill tables ---------------------

MIXED_TABLES = 20
MIXED_INITIAL_ROWS = 1_000
"""Number of rows that every mixed table has at first. Updates change these, deletes later ones."""

NARROW = "(id int primary key, a bigint, b decimal(12,2), c varchar(20), d datetime(3), e double)"
NARROW_VALUES = "n, n * 7, n / 3, concat('row ', n), '2026-01-01' + interval n second, n / 7e0"

WIDE = """(
  id int primary key, trip bigint, vendor tinyint, passengers tinyint unsigned, rate_code smallint,
  zone_from int, zone_to int, picked_up datetime(6), dropped_off datetime(6),
  booked_at timestamp null, day date, distance double, heading double,
  store_and_forward char(1), payment varchar(16), licence varchar(12), company varchar(40),
  note varchar(60),
  fare decimal(8,2), extra decimal(6,2), tax decimal(6,2), tip decimal(8,2), tolls decimal(8,2),
  improvement decimal(4,2), total decimal(10,2), congestion decimal(6,3), airport decimal(5,2),
  rate decimal(12,6), longitude decimal(9,6), exact decimal(18,9)
)"""
WIDE_VALUES = """
  n, n * 1000003, n % 3, n % 7, n % 300, n % 263, (n * 17) % 263,
  '2026-01-01' + interval n * 1000037 microsecond,
  '2026-01-01 00:20:00' + interval n * 1000039 microsecond,
  '2026-01-01' + interval n second, date('2026-01-01') + interval n % 365 day,
  n / 977e0, n % 360 / 7e0, if(n % 50, 'N', 'Y'), elt(1 + n % 4, 'card', 'cash', 'dispute', 'none'),
  concat('T', n % 99991), concat('Company number ', n % 57), if(n % 5, null, concat('note ', n)),
  n % 10007 / 100, n % 700 / 100, n % 50 / 100, -(n % 3001) / 100, n % 997 / 100,
  1.00, n % 100003 / 100, n % 2753 / 1000, if(n % 9, null, 1.75),
  n % 1000003 / 1000, -73.9 - n % 100000 / 1000000, n * 1.000000007"""

DOCUMENT = "(id int primary key, document json)"
DOCUMENT_VALUES = """
  n, concat('{"order": ', n, ', "state": "', elt(1 + n % 3, 'paid', 'shipped', 'returned'),
  '", "customer": {"id": ', n * 7, ', "name": "Customer ', n, '", "email": "customer', n,
  '@example.com", "vip": ', if(n % 4, 'false', 'true'), ', "phone": null}, "total": ',
  n % 9973, '.', 10 + n % 89, ', "currency": "EUR", "lines": [{"sku": "A-', n % 1009,
  '", "name": "A thing of beauty", "count": ', 1 + n % 5, ', "price": ', n % 97,
  '.25}, {"sku": "B-', n % 2003, '", "name": "Joy for ever", "count": 1, "price": ', n % 89,
  '.5, "gift": true}], "tags": ["web", "summer", "', n % 13,
  '"], "address": {"street": "Long Street ', n % 301, '", "city": "Harbour", "zip": "',
  10000 + n % 89999, '", "location": [', n % 90, '.', n % 9973, ', -', n % 180, '.', n % 9967,
  ']}, "discount": null, "weight": 0.', 1 + n % 997, '}')"""
"""Made as text, so that its fractions are doubles, as an application's are."""


def single_procedure(table: str) -> str:
    """Return `fill_single(count)`, which inserts rows into `table`, each in its own transaction."""
    return f"""
create procedure {DATABASE}.fill_single(count int)
begin
  declare n int default 1;
  while n <= count do
    insert into {DATABASE}.{table} select {NARROW_VALUES};
    set n = n + 1;
  end while;
end"""


def mixed_tables() -> tuple[str, ...]:
    """Return the names of the tables that `fill_mixed` writes to."""
    return tuple(f"mixed_{number}" for number in range(MIXED_TABLES))


def mixed_procedure() -> str:
    """Return `fill_mixed(count, out changed)`, which makes transactions of 1 to 5 statements of
    one row each: about half are inserts, the rest updates and deletes, each on a table that a
    hash selects. `changed` counts the rows. A delete that finds no row inserts one instead."""
    branches = "\n".join(
        f"when {number} then {_change(f'{DATABASE}.{table}')}"
        for number, table in enumerate(mixed_tables())
    )
    return f"""
create procedure {DATABASE}.fill_mixed(count int, out changed int)
begin
  declare t int default 1;
  declare s int;
  declare n int;
  declare hash int unsigned;
  set changed = 0;
  while t <= count do
    set s = 1 + crc32(t) % 5;
    start transaction;
    while s > 0 do
      set hash = crc32(concat(t, '/', s));
      set n = {MIXED_INITIAL_ROWS} + t * 8 + s;
      case hash % {MIXED_TABLES}
      {branches}
      end case;
      set changed = changed + 1;
      set s = s - 1;
    end while;
    commit;
    set t = t + 1;
  end while;
end"""


def _change(table: str) -> str:
    """Return the statement that inserts, updates or deletes a row of `table`, as the variable
    `hash` says."""
    insert = f"insert into {table} select {NARROW_VALUES};"
    kind = f"(hash div {MIXED_TABLES}) % 10"
    return f"""
      if {kind} < 5 then
        {insert}
      elseif {kind} < 8 then
        update {table} set a = a + 1 where id = 1 + (hash div 1000) % {MIXED_INITIAL_ROWS};
      else
        delete from {table} where id > {MIXED_INITIAL_ROWS} order by id limit 1;
        if row_count() = 0 then
          {insert}
        end if;
      end if;"""
