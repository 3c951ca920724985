"""The rules of schema changes as a table: `python -m pipeline.schema.page FILE`.

Rewrites the table of docs/schema-changes.md from `consequences.RULES`; a test holds them
together.
"""

from __future__ import annotations

from typing import Final

from pipeline import made_pages
from pipeline.schema.consequences import RULES, ConsequenceRule

_MAKER: Final = "pipeline.schema.page"
_HEAD: Final = "| | rule | statement | history | mirror | changelog |\n|---|---|---|---|---|---|"


def table() -> str:
    """One row a rule, in their order, in Markdown."""
    rows = [_row(number, rule) for number, rule in enumerate(RULES, start=1)]
    return "\n".join([_HEAD, *rows, ""])


def _row(number: int, rule: ConsequenceRule) -> str:
    cells = (str(number), f"`{rule.name}`", *rule.words)
    return made_pages.row(cells)


def rewritten(page: str) -> str:
    """The page with the rules of today; ValueError if it has no place for them."""
    return made_pages.rewritten(page, _MAKER, f"\n{table()}\n")


if __name__ == "__main__":
    made_pages.rewrite(rewritten)
