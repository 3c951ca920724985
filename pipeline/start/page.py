"""The start rules as a table: `python -m pipeline.start.page docs/positions.md`.

Rewrites the table of that page from `rules.TABLE`; a test holds them together.
"""

from __future__ import annotations

from typing import Final

from pipeline import made_pages
from pipeline.start.rules import TABLE, Row

_MAKER: Final = "pipeline.start.page"
_HEAD: Final = "| | rule | cursor | facts | decision |\n|---|---|---|---|---|"


def table() -> str:
    """One row a rule, in their order, in Markdown."""
    rows = [_row(number, row) for number, row in enumerate(TABLE, start=1)]
    return "\n".join([_HEAD, *rows, ""])


def _row(number: int, row: Row) -> str:
    cells = (str(number), f"`{row.rule.value}`", row.cursor, row.facts or "any", row.decision)
    return made_pages.row(cells)


def rewritten(page: str) -> str:
    """The page with the rules of today; ValueError if it has no place for them."""
    return made_pages.rewritten(page, _MAKER, f"\n{table()}\n")


if __name__ == "__main__":
    made_pages.rewrite(rewritten)
