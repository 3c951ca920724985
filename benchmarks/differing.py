"""Cost of finding and repairing rows that differ (`lockstep verify --repair`), if no row, few
rows and all rows differ. `proving` measures each side of a comparison alone."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table

from benchmarks.ground import DATABASE, ground, watched
from benchmarks.reading import fill
from lockstep import exits

ROWS = 5_000_000


def measure_differing(console: Console) -> None:
    """Print a line for each number of differing rows. BENCH_DIFFERING_ROWS: rows of the table."""
    rows = int(os.environ.get("BENCH_DIFFERING_ROWS", str(ROWS)))
    with (
        tempfile.TemporaryDirectory(prefix="lockstep-bench-") as folder,
        ground(Path(folder)) as place,
    ):
        project = place.project("project", f"{DATABASE}.*")
        fill(place, "large", rows)
        secret = {"BENCH_PASSWORD": place.server.password}
        command = [sys.executable, "-m", "lockstep.cli"]
        watched([*command, "run"], project, secret)
        lines = Table(title=f"{rows:,} rows", title_justify="left", box=box.MARKDOWN)
        for head in ("rows that differ", "seconds", "resident, MiB"):
            lines.add_column(head, justify="right")
        for differing in (0, 100, rows):
            change = f"update {DATABASE}.large set num = num + 1 where id <= {differing}"
            place.execute("set sql_log_bin = 0", change)
            code = exits.DIFFERENCES if differing else exits.DONE
            repairing = [*command, "verify", "--repair"]
            seconds, _, peak = watched(repairing, project, secret, code)
            lines.add_row(f"{differing:,}", f"{seconds:.1f}", f"{peak / 2**20:,.0f}")
        console.print(lines)
