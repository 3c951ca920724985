"""The rules of schema changes as a table: `python -m pipeline.schema.page FILE`.

Rewrites the table of docs/schema-changes.md from `consequences.RULES`; a test holds them
together.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

from pipeline.schema.consequences import RULES, Rule

FIRST: Final = "<!-- made by pipeline.schema.page -->\n"
LAST: Final = "<!-- end of what pipeline.schema.page made -->\n"
_HEAD: Final = "| | rule | statement | history | mirror | changelog |\n|---|---|---|---|---|---|"


def table() -> str:
    """One row a rule, in their order, in Markdown."""
    rows = [_row(number, rule) for number, rule in enumerate(RULES, start=1)]
    return "\n".join([_HEAD, *rows, ""])


def _row(number: int, rule: Rule) -> str:
    cells = (str(number), f"`{rule.name}`", *rule.words)
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


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
