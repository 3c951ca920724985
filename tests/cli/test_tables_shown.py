"""Tables on a terminal: every name can be copied, however narrow the page is."""

from __future__ import annotations

import io
from pathlib import Path
from typing import cast

from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from lockstep.context import CommandContext
from lockstep.pipeline.model.table_state import StoppedTable
from lockstep.pipeline.values.table import TableName
from lockstep.report import show_stopped, show_table
from lockstep.streams import Streams

names = st.from_regex(r"[a-z_]{1,64}\.[a-z_$0-9]{1,64}", fullmatch=True)


def page(width: int = 200) -> tuple[CommandContext, io.StringIO]:
    out = io.StringIO()
    context = CommandContext(Path("x"), cast("Streams", None), wants_json=False)
    vars(context)["page"] = Console(file=out, width=width, highlight=False, soft_wrap=True)
    return context, out


def test_tables_that_stopped_for_one_reason_are_told_together() -> None:
    """With each cure that differs, and no more names than a person reads."""
    context, out = page()
    hint, five = (
        "`lockstep resume shop.t{} --reason …`",
        "shop.t0, shop.t1, shop.t2, shop.t3, shop.t4",
    )
    alike = [
        StoppedTable(TableName("shop", f"t{n}"), "they went", hint.format(n), "a place")
        for n in range(7)
    ]
    other = StoppedTable(TableName("shop", "x"), "it differs", "look", "a place")
    show_stopped(context, [*alike[:3], other, *alike[3:]])
    assert out.getvalue().splitlines() == [
        f"{five} and 2 more are stopped by Lockstep at a place: they went",
        *(f"  hint: {hint.format(n)}" for n in range(5)),
        "  hint: 2 more: `lockstep status` shows all of them",
        "shop.x is stopped by Lockstep at a place: it differs",
        "  hint: look",
    ]


@given(
    st.lists(st.tuples(names, st.integers(0, 10**9), names), min_size=1, max_size=4),
    st.integers(20, 120),
)
def test_no_name_is_broken(rows: list[tuple[str, int, str]], width: int) -> None:
    """Its line has its numbers, too."""
    context, out = page(width)
    told = [(name, f"{count:,}", f"{place} and more") for name, count, place in rows]
    show_table(context, ("table", "rows at the source", "place"), told)
    words = [line.split() for line in out.getvalue().splitlines()]
    for name, count, place in rows:
        assert any({name, f"{count:,}", place} <= set(line) for line in words)
