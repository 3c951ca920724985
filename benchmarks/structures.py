"""Cost of structures in a run: reading all structures of a server with few and with many tables,
and asking the history for them. `history` measures how the history grows."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any, cast

from rich import box
from rich.console import Console
from rich.table import Table

from benchmarks.ground import DATABASE, Ground, ground
from lockstep.pipeline.ports.ledger import Ledger
from lockstep.pipeline.run.capture import capture
from lockstep.pipeline.run.context import Unwatched, Workplace
from lockstep.pipeline.values.table import TableName
from lockstep.resources.adapters import Adapters
from lockstep.resources.config import load_settings
from lockstep.resources.mysql.server import MySqlServer
from lockstep.resources.postgres.schemas import PostgresSchemas
from tests.twins.lake import MemoryLake
from tests.twins.mirrors import MemoryMirrors

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
    many = int(os.environ.get("BENCH_HISTORY_TABLES", "5000"))
    lines = Table(title="A capture without DDL", title_justify="left", box=box.MARKDOWN)
    for column in ("tables", "first capture, s", "capture, s", "history, ms", "questions"):
        lines.add_column(column, justify="right")
    with (
        tempfile.TemporaryDirectory(prefix="lockstep-bench-") as folder,
        ground(Path(folder), _OPTIONS) as place,
    ):
        there = 0
        for tables in (FEW, many):
            place.execute(
                *(f"create table {DATABASE}.t{n} {_TWELVE}" for n in range(there, tables))
            )
            there = tables
            lines.add_row(f"{tables:,}", *_captures(place, tables))
        console.print(lines)
        console.print(_baseline(place, many))
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
    with _workplace(place, name) as work:
        first, _ = _captured(work)
        insert = "(second, made_at) values ('x', now(6))"
        place.execute(*(f"insert into {DATABASE}.t{n} {insert}" for n in range(CHANGED)))
        return first, *_captured(work)


def _captured(work: Workplace) -> tuple[float, Asked]:
    asked = Asked()
    timed = replace(work, ledger=cast("Ledger", TimedLedger(work.ledger, asked)))
    with work.ledger.lock("bench", "benchmark", None) as lease:
        clock = perf_counter()
        capture(timed, lease)
        return perf_counter() - clock, asked


@contextmanager
def _workplace(place: Ground, name: str) -> Iterator[Workplace]:
    os.environ["BENCH_PASSWORD"] = place.server.password
    settings = load_settings(place.project(name, f"{DATABASE}.*") / "lockstep.toml")
    with Adapters(settings, on_warning=print) as adapters:
        mirrors = MemoryMirrors(MemoryLake())
        yield replace(adapters.workplace("bench", Unwatched()), mirrors=mirrors)


# -- structures -------------------------------------------------------------------------


def _baseline(place: Ground, tables: int) -> str:
    """Measure reading all structures in bulk, beside one SHOW CREATE TABLE for each table."""
    server = MySqlServer(place.settings())
    bulk = min(_seconds(server.baseline) for _ in range(BEST_OF))
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
            _seconds(partial(server.current_schemas, names[:count])) for _ in range(BEST_OF)
        )
        told.append(f"of {count:,} in {seconds * 1e3:,.0f} ms")
    return f"structures of {tables:,} tables, asked for by their names: {', '.join(told)}"


def _seconds(work: Callable[[], object]) -> float:
    clock = perf_counter()
    work()
    return perf_counter() - clock
