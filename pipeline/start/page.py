"""The start rules as a table: `python -m pipeline.start.page docs/positions.md`.

Rewrites the table of that page from `rules.TABLE`; a test holds them together.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

from pipeline.start.rules import TABLE, Row

FIRST: Final = "<!-- made by pipeline.start.page -->\n"
LAST: Final = "<!-- end of what pipeline.start.page made -->\n"
_HEAD: Final = "| | rule | cursor | facts | decision |\n|---|---|---|---|---|"


def table() -> str:
    """One row a rule, in their order, in Markdown."""
    rows = [_row(number, row) for number, row in enumerate(TABLE, start=1)]
    return "\n".join([_HEAD, *rows, ""])


def _row(number: int, row: Row) -> str:
    cells = (str(number), f"`{row.rule.value}`", row.cursor, row.facts or "any", row.decision)
    return f"| {' | '.join(cells)} |"


def rewritten(page: str) -> str:
    """The page with the rules of today; ValueError if it has no place for them."""
    before, found, rest = page.partition(FIRST)
    _, closed, after = rest.partition(LAST)
    if not (found and closed):
        raise ValueError("the page has no table to rewrite")
    return before + FIRST + "\n" + table() + "\n" + LAST + after


def main() -> None:
    path = Path(sys.argv[1])
    path.write_text(rewritten(path.read_text()))


if __name__ == "__main__":
    main()
