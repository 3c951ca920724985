"""Names with characters that would do something, wherever they are shown."""

from __future__ import annotations

import io
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from rich.markdown import Markdown

from lockstep.commands.check import finding_lines
from lockstep.pipeline.check import Finding
from lockstep.pipeline.values.errors import ConfigurationError, TableError
from lockstep.pipeline.values.shown import in_markdown, printable
from lockstep.pipeline.values.table import TableName

FORGED = "t\n2026-01-01 all is well\x1b[2J\u202e\r"


@given(st.text())
def test_nothing_in_a_name_does_something(name: str) -> None:
    """Neither a line break, nor a terminal's command, nor another direction; and two names that
    are shown alike differ by a backslash at most."""
    said = printable(name)
    assert [c for c in said if unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp", "Cs")] == []
    assert said == name or not name.isprintable()


@given(st.text(st.characters(categories=["L", "N", "P", "S"]), min_size=1))
def test_markdown_shows_a_name_as_it_is(name: str) -> None:
    """As a Markdown reader renders a line with it: no markup, no link, no table."""
    page = io.StringIO()
    Console(file=page, width=10_000, no_color=True).print(Markdown(f"x{in_markdown(name)}x"))
    assert page.getvalue().strip() == f"x{name}x"


@pytest.mark.parametrize(
    "said",
    [
        f"{TableName('shop', FORGED)}",
        str(ConfigurationError(f"The table {FORGED} is not there.", hint="")),
        ConfigurationError(f"The table {FORGED} is not there.", hint="").message,
        TableError(f"its column {FORGED} is not there", hint="").reason,
        *finding_lines([Finding("warning", FORGED, FORGED, FORGED, topic="a")]),
    ],
)
def test_a_name_breaks_no_line_and_gives_no_command(said: str) -> None:
    """Of a screen or a log, whoever puts it into a sentence."""
    assert said.isprintable()
    assert str(TableName("shop", FORGED)) == f"shop.{FORGED}"
