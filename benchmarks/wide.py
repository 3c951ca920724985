"""Many tables in one source, and many sources in one configuration: seconds and memory of the
daily commands in new processes. `structures` measures what a capture waits for, `pages`
Dagster's part."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from subprocess import STDOUT, Popen
from time import perf_counter, sleep

from rich.console import Console

from benchmarks.common import (
    DATABASE,
    LOCKSTEP,
    BenchServer,
    Lines,
    bench_server,
    env_number,
    process_environment,
)
from benchmarks.resident import processor_seconds, resident_sizes
from lockstep import exits

TABLES = (1_000, 10_000)
SOURCES = (10, 100)
CHANGED_TABLES = 50
"""Number of tables that a run has changes of."""
COMMANDS_OF_A_DAY = (
    ("lockstep check", ("check",), False),
    ("the first run", ("run",), False),
    ("a run without changes", ("run",), False),
    (f"a run with changes of {CHANGED_TABLES} tables, new", ("run",), True),
    (f"a run with changes of {CHANGED_TABLES} tables", ("run",), True),
    ("lockstep status", ("status",), False),
    ("lockstep plan", ("plan",), False),
    ("lockstep metrics", ("metrics",), False),
)
"""Title, command, and whether tables change before it."""
_OPTIONS = (
    "--sync-binlog=0",
    "--innodb-flush-log-at-trx-commit=0",
    "--innodb-flush-method=nosync",
    "--table-open-cache=12000",
)
_COLUMNS = (
    "(id int primary key, name varchar(40), amount decimal(12,2), made timestamp null,"
    " note text, flag tinyint)"
)


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of a command: wall seconds; processor seconds, including its Java and its ledger;
    the highest sum of resident bytes of its processes, sampled ten times a second."""

    wall_seconds: float
    processor_seconds: float
    resident_bytes: int


def measure_wide(console: Console) -> None:
    """Print a line for each command by the number of tables, then by the number of sources.
    BENCH_WIDE_TABLES, BENCH_WIDE_SOURCES: the larger number of each."""
    many = env_number("BENCH_WIDE_TABLES", TABLES[-1])
    sources = env_number("BENCH_WIDE_SOURCES", SOURCES[-1])
    with bench_server(_OPTIONS) as bench:
        existing = 0
        for tables in (TABLES[0], many):
            bench.execute(
                *(f"create table {DATABASE}.t{n} {_COLUMNS}" for n in range(existing, tables))
            )
            existing = tables
            project = bench.make_project(f"tables-{tables}", f"{DATABASE}.*")
            _print_day(console, bench, project, f"One source of {tables:,} tables")
        for number in (SOURCES[0], sources):
            project = _project_of_sources(bench, number)
            _print_day(console, bench, project, f"{number} sources of one table")


def _project_of_sources(bench: BenchServer, number: int) -> Path:
    """Create a project whose sources are tables of one server, one each."""
    project = bench.make_project(f"sources-{number}", f"{DATABASE}.t0")
    file = project / "lockstep.toml"
    head, block = file.read_text().split("[[sources]]\n")
    blocks = (
        block.replace('"bench"', f'"bench{n}"', 1).replace(f"{DATABASE}.t0", f"{DATABASE}.t{n}")
        for n in range(number)
    )
    file.write_text("[[sources]]\n".join([head, *blocks]))
    return project


def _print_day(console: Console, bench: BenchServer, project: Path, title: str) -> None:
    lines = Lines(console, title, ("command", "seconds", "of processors", "resident, MiB"))
    row = "select coalesce(max(id), 0) + 1, 'n', 1.5, now(), 'a note', 1 from"
    for name, words, has_changes in COMMANDS_OF_A_DAY:
        if has_changes:
            names = [f"{DATABASE}.t{n}" for n in range(CHANGED_TABLES)]
            bench.execute(*(f"insert into {table} {row} {table}" for table in names))
        cost = _measure_command(bench, project, words)
        lines.add(
            name,
            f"{cost.wall_seconds:.1f}",
            f"{cost.processor_seconds:.1f}",
            f"{cost.resident_bytes / 2**20:,.0f}",
        )


def _measure_command(bench: BenchServer, project: Path, words: tuple[str, ...]) -> Cost:
    timer_start = perf_counter()
    output = project / "output.txt"
    with output.open("w") as file:
        process = Popen(
            [*LOCKSTEP, *words],
            cwd=project,
            env=process_environment(bench.secret_variables),
            stdout=file,
            stderr=STDOUT,
        )
    processors, resident = 0.0, 0
    while process.poll() is None:
        processors = max(processors, processor_seconds(process.pid))
        resident = max(resident, sum(resident_sizes(process.pid)))
        sleep(0.1)
    wall = perf_counter() - timer_start
    if process.returncode not in (exits.DONE, exits.QUARANTINED):  # partial: rows of an earlier day
        raise SystemExit(
            f"{' '.join(words)} ended with {process.returncode}:\n{output.read_text()[-2000:]}"
        )
    return Cost(wall, processors, resident)
