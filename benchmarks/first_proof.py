"""Time from `lockstep init`, on a database whose rows are not in its log, to the first proven
mirror, by three commands in new processes. `reading` measures reading a table alone, `proving`
comparing it."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table

from benchmarks.ground import DATABASE, ground, timed
from benchmarks.reading import fill

ROWS = 5_000_000


def measure_first_proof(console: Console) -> None:
    """Print the wall seconds of each command. BENCH_FIRST_ROWS: rows of the table."""
    rows = int(os.environ.get("BENCH_FIRST_ROWS", str(ROWS)))
    with (
        tempfile.TemporaryDirectory(prefix="lockstep-bench-") as folder,
        ground(Path(folder)) as place,
    ):
        fill(place, "large", rows)
        place.execute("flush binary logs")
        with place.connect() as connection, connection.cursor() as cursor:
            cursor.execute("show binary logs")
            newest = cursor.fetchall()[-1][0]
        place.execute(f"purge binary logs to '{newest}'")
        project = Path(folder) / "project"
        project.mkdir()
        lines = Table(title=f"{rows:,} rows", title_justify="left", box=box.MARKDOWN)
        lines.add_column("command")
        lines.add_column("seconds", justify="right")
        server, whole = place.server, 0.0
        init = (
            *("init", "--name", "bench", "--host", server.host, "--port", str(server.port)),
            *("--user", server.user, "--tables", f"{DATABASE}.*", "--tls", "off"),
        )
        secret = {"BENCH_PASSWORD": server.password}
        for words in (init, ("run",), ("verify",)):
            command = [sys.executable, "-m", "lockstep.cli", *words]
            seconds, _ = timed(command, project, secret)
            lines.add_row(f"lockstep {words[0]}", f"{seconds:.1f}")
            whole += seconds
        lines.add_row("all of them", f"{whole:.1f}")
        console.print(lines)
