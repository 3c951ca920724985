"""How a table is brought to a place, as a table: `pipeline.supply.plan`."""

from __future__ import annotations

from typing import Final

from pipeline.supply.plan import RULES
from tests.pages.made import MadePart, row


def table() -> str:
    """One row a rule, in their order: the first that applies decides."""
    lines = [row(("rule", "the table", "what supplies what it lacks")), "|---" * 3 + "|"]
    return "\n".join([*lines, *(row((rule.name, *rule.words)) for rule in RULES)])


PART: Final = MadePart("supply_rules", "docs/operations.md", table)
