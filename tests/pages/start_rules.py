"""The rules of the start, on the page of positions: `pipeline.start.rules`."""

from __future__ import annotations

from typing import Final

from lockstep.pipeline.start.rules import TABLE, Row
from tests.pages.made import MadePart, row

_HEAD: Final = "| | rule | cursor | facts | decision |\n|---|---|---|---|---|"


def table() -> str:
    """One row a rule, in their order, in Markdown."""
    rows = [_row(number, rule) for number, rule in enumerate(TABLE, start=1)]
    return "\n".join([_HEAD, *rows])


def _row(number: int, rule: Row) -> str:
    cells = (str(number), f"`{rule.rule.value}`", rule.cursor, rule.facts or "any", rule.decision)
    return row(cells)


PART: Final = MadePart("start_rules", "docs/how-it-works.md", table)
