"""Seconds of commands in new processes, on the table of ten columns that `reading` reads: how long
rows that differ take to be found and repaired, and how long it takes from `lockstep init`, on a
database whose rows are not in its log, to the first proven mirror. `proving` measures each side of
a comparison alone."""

from __future__ import annotations

from rich.console import Console

from benchmarks.common import (
    DATABASE,
    LOCKSTEP,
    Lines,
    bench_server,
    env_number,
    run_timed,
    run_with_peak_memory,
)
from benchmarks.reading import fill
from lockstep import exits


def measure_differing(console: Console) -> None:
    """Print a line for each number of differing rows. BENCH_DIFFERING_ROWS: rows of the table."""
    rows = env_number("BENCH_DIFFERING_ROWS", 5_000_000)
    with bench_server() as bench:
        project = bench.make_project("project", f"{DATABASE}.*")
        fill(bench, "large", rows)
        bench.measure_run(project)
        columns = ("rows that differ", "seconds", "resident, MiB")
        lines = Lines(console, f"{rows:,} rows", columns, texts=0)
        for differing in (0, 100, rows):
            change = f"update {DATABASE}.large set num = num + 1 where id <= {differing}"
            bench.execute("set sql_log_bin = 0", change)
            code = exits.DIFFERENCES if differing else exits.DONE
            command = [*LOCKSTEP, "verify", "--repair"]
            seconds, _, peak = run_with_peak_memory(command, project, bench.secret_variables, code)
            lines.add(f"{differing:,}", f"{seconds:.1f}", f"{peak / 2**20:,.0f}")


def measure_first_proof(console: Console) -> None:
    """Print the wall seconds of each command. BENCH_FIRST_ROWS: rows of the table."""
    rows = env_number("BENCH_FIRST_ROWS", 5_000_000)
    with bench_server() as bench:
        fill(bench, "large", rows)
        bench.execute("flush binary logs")
        bench.execute(f"purge binary logs to '{bench.log_end().file}'")
        project = bench.folder / "project"
        project.mkdir()
        lines = Lines(console, f"{rows:,} rows", ("command", "seconds"))
        server, total_seconds = bench.server, 0.0
        init = (
            *("init", "--name", "bench", "--host", server.host, "--port", str(server.port)),
            *("--user", server.user, "--tables", f"{DATABASE}.*", "--tls", "off"),
        )
        for words in (init, ("run",), ("verify",)):
            seconds, _ = run_timed([*LOCKSTEP, *words], project, bench.secret_variables)
            lines.add(f"lockstep {words[0]}", f"{seconds:.1f}")
            total_seconds += seconds
        lines.add("all of them", f"{total_seconds:.1f}")
