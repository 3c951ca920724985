"""What a schema change does, on its page: `pipeline.schema.consequences`."""

from __future__ import annotations

from typing import Final

from lockstep.pipeline.schema.consequences import RULES, ConsequenceRule
from tests.pages.made import MadePart, row

_HEAD: Final = "| | rule | statement | history | mirror | changelog |\n|---|---|---|---|---|---|"


def table() -> str:
    """One row a rule, in their order, in Markdown."""
    rows = [_row(number, rule) for number, rule in enumerate(RULES, start=1)]
    return "\n".join([_HEAD, *rows])


def _row(number: int, rule: ConsequenceRule) -> str:
    cells = (
        str(number),
        f"`{rule.name}`",
        rule.statements,
        rule.history,
        rule.mirror,
        rule.changelog,
    )
    return row(cells)


PART: Final = MadePart("schema_rules", "docs/schema-changes.md", table)
