"""Lines of JSON: one for each thing said, whatever it holds, and a file that does not grow."""

from __future__ import annotations

import io
import json
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from lockstep.pipeline.run.progress import capture_progress, table_progress
from lockstep.pipeline.values.table import TableName
from lockstep.streams import JsonLog, LiveProgress, ProgressLines, progress_bars


@given(st.lists(st.text(), min_size=1, max_size=5))
def test_a_line_for_each(said: list[str]) -> None:
    stream = io.StringIO()
    log = JsonLog()
    log.open(stream, None)
    for sentence in said:
        log.write("warning", sentence, source="shop", nothing=None)
    told = [json.loads(line) for line in stream.getvalue().split("\n")[:-1]]
    assert [line["message"] for line in told] == said
    assert all(line.keys() == {"time", "level", "source", "message"} for line in told)


def test_a_step_is_told_once_in_ten_seconds() -> None:
    stream, now = io.StringIO(), [0.0]
    log = JsonLog()
    log.open(stream, None)
    progress = ProgressLines(log, "shop", lambda: now[0])
    for second in range(31):
        now[0] = float(second)
        figures = {"transactions": second, "rows": 0, "log_bytes": 0, "total_bytes": 9}
        progress.tell(capture_progress(**figures))
    progress.tell(table_progress("merge", 1, 2, TableName("shop", "orders")))
    told = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [line["transactions"] for line in told[:-1]] == [0, 10, 20, 30]
    assert told[-1]["table"] == "shop.orders"


def test_a_file_is_kept_below_its_size(tmp_path: Path) -> None:
    log = JsonLog()
    log.open(None, str(tmp_path / "lockstep.log"))
    for _ in range(70):
        log.write("info", "x" * (1 << 20))
    log.close()
    files = sorted(tmp_path.iterdir())
    assert [file.suffix for file in files] == [".log", ".1", ".2", ".3", ".4", ".5"]
    assert all(file.stat().st_size <= 10 << 20 for file in files)


def test_a_terminal_shows_names_as_they_are() -> None:
    """Square brackets are no markup, and control characters are escaped."""
    terminal, table = io.StringIO(), TableName("shop", "a[/b]\x1b[2J")
    bars = progress_bars(Console(file=terminal, force_terminal=True, width=200, highlight=False))
    with bars:
        progress = LiveProgress(bars, "shop", ProgressLines(JsonLog(), "shop"))
        progress.tell(table_progress("merge", 1, 2, table))
        progress.note(f"{table} was quarantined")
        bars.refresh()
    told = terminal.getvalue()
    assert r"1 of 2 tables, shop.a[/b]\x1b[2J" in told
    assert r"shop: shop.a[/b]\x1b[2J was quarantined" in told
