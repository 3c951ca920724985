"""Tables on a terminal: every name can be copied, however narrow the page is."""

from __future__ import annotations

import io
from pathlib import Path
from typing import cast

from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from lockstep.context import CommandContext
from lockstep.report import show_table
from lockstep.streams import Streams

names = st.from_regex(r"[a-z_]{1,64}\.[a-z_$0-9]{1,64}", fullmatch=True)


@given(
    st.lists(st.tuples(names, st.integers(0, 10**9), names), min_size=1, max_size=4),
    st.integers(20, 120),
)
def test_no_name_is_broken(rows: list[tuple[str, int, str]], width: int) -> None:
    """Its line has its numbers, too."""
    out = io.StringIO()
    context = CommandContext(Path("x"), cast("Streams", None), wants_json=False)
    vars(context)["page"] = Console(file=out, width=width, highlight=False, soft_wrap=True)
    told = [(name, f"{count:,}", f"{place} and more") for name, count, place in rows]
    show_table(context, ("table", "rows at the source", "place"), told)
    words = [line.split() for line in out.getvalue().splitlines()]
    for name, count, place in rows:
        assert any({name, f"{count:,}", place} <= set(line) for line in words)
