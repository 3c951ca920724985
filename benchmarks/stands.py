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

from benchmarks.common import DATABASE, Ground, Lines, ground, size
from benchmarks.runs import CHANGES, COLUMNS, insert_rows
from benchmarks.served import served, spent
from benchmarks.store import Store, object_store

_COLUMNS: Final = ("changes", "stand", "seconds", "of it merging", "of processors", "requests")
_SMALL_RUNS: Final = 4
"""Number of runs, of which the fastest counts: the first ones warm Java up."""


@dataclass(frozen=True, slots=True)
class _Stand:
    """A project; `stay`: the processes that keep running between its runs."""

    name: str
    folder: Path
    store: Store | None
    stay: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Cost:
    wall: float
    merging: float
    processors: float
    requests: int | None


def measure_stands(console: Console) -> None:
    """Print a line for each stand and each kind of run. BENCH_STANDS_ROWS: number of changes
    (1,000,000)."""
    rows = size("BENCH_STANDS_ROWS", 1_000_000)
    lines = Lines(console, "Seconds of a run", _COLUMNS, texts=2)
    with ground() as place, object_store(place.folder) as store, ExitStack() as open_:
        place.execute(f"create table {DATABASE}.big {COLUMNS}")
        stands = [*_stands(place, store, open_)]
        insert_rows(place, "big", 1, rows)
        for stand in stands:
            lines.add(*_cells(f"{rows:,} inserts", stand, _run(place, stand)))
        place.execute(f"update {DATABASE}.big set a = a + 1")
        for stand in stands:
            lines.add(*_cells(f"{rows:,} updates", stand, _run(place, stand)))
        small: dict[str, list[_Cost]] = {stand.name: [] for stand in stands}
        for number in range(_SMALL_RUNS):
            first = number * CHANGES
            place.execute(
                f"update {DATABASE}.big set a = a + 1 where id between {first} and {first + 9}"
            )
            for stand in stands:
                small[stand.name].append(_run(place, stand))
        for stand in stands:
            best = min(small[stand.name], key=lambda cost: cost.wall)
            lines.add(*_cells(f"{CHANGES} updates, the best", stand, best))


def _stands(place: Ground, store: Store, open_: ExitStack) -> Iterator[_Stand]:
    for where in ("folder", "store"):
        for spark in ("own", "served"):
            project = place.project(f"{where}-{spark}", f"{DATABASE}.big")
            if where == "store":
                store.put_lake_of(project)
            stay = (open_.enter_context(served(place, project)),) if spark == "served" else ()
            yield _Stand(
                f"{where}, {'`spark serve`' if stay else 'a Java of its own'}",
                project,
                store if where == "store" else None,
                stay,
            )


def _run(place: Ground, stand: _Stand) -> _Cost:
    asked = 0 if stand.store is None else stand.store.requests()
    before = spent(*stand.stay)
    seconds, report = place.run(stand.folder)
    (source,) = report["sources"].values()
    return _Cost(
        seconds,
        source["seconds"]["merge"],
        spent(*stand.stay) - before,
        None if stand.store is None else stand.store.requests() - asked,
    )


def _cells(what: str, stand: _Stand, cost: _Cost) -> list[str]:
    requests = "" if cost.requests is None else f"{cost.requests:,}"
    figures = (cost.wall, cost.merging, cost.processors)
    return [what, stand.name, *(f"{one:.1f}" for one in figures), requests]
