"""Four stands with the same changes: a folder or an object store on the loopback interface, with
a Spark that each run starts or one that keeps running; and the requests of each to its store.
`runs` and `served` measure the parts of a small run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rich.console import Console

from benchmarks.common import DATABASE, BenchServer, Lines, bench_server, env_number
from benchmarks.runs import CHANGES, COLUMNS, insert_rows
from benchmarks.served import processor_seconds_of, served
from benchmarks.store import Store, object_store

_HEADS: Final = ("changes", "stand", "seconds", "of it merging", "of processors", "requests")
_SMALL_RUNS: Final = 4
"""Number of runs, of which the fastest counts: the first ones warm Java up."""


@dataclass(frozen=True, slots=True)
class _Stand:
    """A project; `server_pids`: the processes that keep running between its runs."""

    name: str
    folder: Path
    store: Store | None
    server_pids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Cost:
    wall_seconds: float
    merge_seconds: float
    processor_seconds: float
    requests: int | None


def measure_stands(console: Console) -> None:
    """Print a line for each stand and each kind of run. BENCH_STANDS_ROWS: number of changes
    (1,000,000)."""
    rows = env_number("BENCH_STANDS_ROWS", 1_000_000)
    lines = Lines(console, "Seconds of a run", _HEADS, texts=2)
    with bench_server() as bench, object_store(bench.folder) as store, ExitStack() as exit_stack:
        bench.execute(f"create table {DATABASE}.big {COLUMNS}")
        stands = [*_stands(bench, store, exit_stack)]
        insert_rows(bench, "big", 1, rows)
        for stand in stands:
            lines.add(*_cells(f"{rows:,} inserts", stand, _measure_run(bench, stand)))
        bench.execute(f"update {DATABASE}.big set a = a + 1")
        for stand in stands:
            lines.add(*_cells(f"{rows:,} updates", stand, _measure_run(bench, stand)))
        small: dict[str, list[_Cost]] = {stand.name: [] for stand in stands}
        for number in range(_SMALL_RUNS):
            first = number * CHANGES
            bench.execute(
                f"update {DATABASE}.big set a = a + 1 where id between {first} and {first + 9}"
            )
            for stand in stands:
                small[stand.name].append(_measure_run(bench, stand))
        for stand in stands:
            best = min(small[stand.name], key=lambda cost: cost.wall_seconds)
            lines.add(*_cells(f"{CHANGES} updates, the best", stand, best))


def _stands(bench: BenchServer, store: Store, exit_stack: ExitStack) -> Iterator[_Stand]:
    for where in ("folder", "store"):
        for spark in ("own", "served"):
            project = bench.make_project(f"{where}-{spark}", f"{DATABASE}.big")
            if where == "store":
                store.move_lake_of(project)
            server_pids = (
                (exit_stack.enter_context(served(bench, project)),) if spark == "served" else ()
            )
            yield _Stand(
                f"{where}, {'`spark serve`' if server_pids else 'a Java of its own'}",
                project,
                store if where == "store" else None,
                server_pids,
            )


def _measure_run(bench: BenchServer, stand: _Stand) -> _Cost:
    requests_before = 0 if stand.store is None else stand.store.requests()
    seconds_before = processor_seconds_of(*stand.server_pids)
    seconds, report = bench.measure_run(stand.folder)
    (source,) = report["sources"].values()
    return _Cost(
        seconds,
        source["seconds"]["merge"],
        processor_seconds_of(*stand.server_pids) - seconds_before,
        None if stand.store is None else stand.store.requests() - requests_before,
    )


def _cells(title: str, stand: _Stand, cost: _Cost) -> list[str]:
    requests = "" if cost.requests is None else f"{cost.requests:,}"
    figures = (cost.wall_seconds, cost.merge_seconds, cost.processor_seconds)
    return [title, stand.name, *(f"{figure:.1f}" for figure in figures), requests]
