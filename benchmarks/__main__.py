"""`make bench`: prints the tables of the engine, the runs and the four stands.

`python -m benchmarks PART…` (or BENCH_ONLY=PART,PART) prints the parts of `PARTS` that are named.
`large` takes minutes and many gigabytes of disk, `mirror` and `wide` take half an hour, each other
part a few minutes.
"""

from __future__ import annotations

import os
import platform
import sys

from rich.console import Console

from benchmarks.commands import measure_differing, measure_first_proof
from benchmarks.engine import measure_engine
from benchmarks.folding import measure_folding
from benchmarks.history import measure_history
from benchmarks.large import measure_large
from benchmarks.large_mirror import measure_large_mirror
from benchmarks.month import measure_month
from benchmarks.pages import measure_pages
from benchmarks.proving import measure_proving
from benchmarks.readers import measure_readers
from benchmarks.reading import measure_reading
from benchmarks.renames import measure_renames
from benchmarks.runs import measure_runs
from benchmarks.served import measure_served
from benchmarks.shapes import measure_shapes
from benchmarks.small import measure_small
from benchmarks.stands import measure_stands
from benchmarks.upkeep import measure_upkeep
from benchmarks.wide import measure_wide

PARTS = {
    "engine": measure_engine,
    "runs": measure_runs,
    "large": measure_large,
    "history": measure_history,
    "small": measure_small,
    "served": measure_served,
    "fold": measure_folding,
    "reading": measure_reading,
    "proof": measure_proving,
    "differing": measure_differing,
    "pages": measure_pages,
    "first": measure_first_proof,
    "upkeep": measure_upkeep,
    "wide": measure_wide,
    "readers": measure_readers,
    "month": measure_month,
    "shapes": measure_shapes,
    "renames": measure_renames,
    "stands": measure_stands,
    "mirror": measure_large_mirror,
}
DEFAULT_PARTS = "engine,runs,stands"
FILE_WIDTH = 200
"""Characters of a line that goes into a file, so that no cell is wrapped."""


def main() -> None:
    """Print the figures as soon as they are measured."""
    parts = sys.argv[1:] or os.environ.get("BENCH_ONLY", DEFAULT_PARTS).split(",")
    if unknown := set(parts) - PARTS.keys():
        raise SystemExit(f"no such part: {', '.join(unknown)}; there are {', '.join(PARTS)}")
    console = Console(highlight=False, width=None if sys.stdout.isatty() else FILE_WIDTH)
    console.print(f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores")
    for name, measure in PARTS.items():
        if name in parts:
            measure(console)


if __name__ == "__main__":
    main()
