"""Cost of showing only a part of a table in the lake: captures of the same rows with different
settings."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from rich.console import Console

from benchmarks.common import DATABASE, BenchServer, Lines, bench_server, env_number
from benchmarks.runs import COLUMNS, insert_rows

_KEY: Final = "a key of sixteen bytes or more"

PLAIN: Final = "as it is"
SETTINGS: Final = {
    PLAIN: "",
    "another table has settings": 'match = "*.other"\nhash_columns = ["*"]\n',
    "two columns of six are hashed": 'match = "*.big"\nhash_columns = ["a", "c"]\n',
    "one column is masked": 'match = "*.big"\nmask_columns = { c = "last:4" }\n',
    "two columns are left out": 'match = "*.big"\nexclude_columns = ["a", "c"]\n',
    "one row in ten": 'match = "*.big"\nrows = "c like \'row %0\'"\n',
}
AIMS: Final = {
    "another table has settings": 1.0,
    "two columns of six are hashed": 3.0,
    "one row in ten": 1.0,
}


def measure_shapes(console: Console) -> None:
    """Print how long each capture takes. BENCH_ROWS: number of inserted rows."""
    rows, times = env_number("BENCH_ROWS", 1_000_000), env_number("BENCH_BEST_OF", 3)
    with bench_server() as bench:
        bench.execute(f"create table {DATABASE}.big {COLUMNS}")
        projects = [
            (title, _project(bench, f"shape{number}-{turn}", block))
            for turn in range(times)
            for number, (title, block) in enumerate(SETTINGS.items())
        ]
        insert_rows(bench, "big", 1, rows)
        captures = [(title, bench.measure_capture(project)) for title, project in projects]
    best = {
        figure: {
            title: min(cost[figure] for name, cost in captures if name == title)
            for title in SETTINGS
        }
        for figure in ("seconds", "processor_seconds")
    }
    columns = ("the lake shows the table", "seconds", "x as it is", "of the processor", "x", "aim")
    table = Lines(console, f"Captures of {rows:,} inserts", columns)
    for title in SETTINGS:
        figures = []
        for seconds in best.values():
            figures += [f"{seconds[title]:.2f}", f"{seconds[title] / seconds[PLAIN]:.2f}"]
        table.add(title, *figures, f"{AIMS[title]:.0f} x" if title in AIMS else "")


def _project(bench: BenchServer, name: str, block: str) -> Path:
    folder = bench.make_project(name, f"{DATABASE}.big")
    if block:
        with (folder / "lockstep.toml").open("a", encoding="utf-8") as file:
            file.write(f'[[sources.table]]\n{block}\n[privacy]\nkey = "file:key"\n')
        (folder / "key").write_text(_KEY)
    return folder
