"""Renew what is made on pages: `make pages`, which is `python -m tests.pages`."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tests.pages import (
    checks,
    commands,
    errors,
    lives,
    passed,
    policies,
    retries,
    rooms,
    run_layers,
    schema_rules,
    settings,
    shapes,
    start_rules,
    supply_rules,
)
from tests.pages.made import MadePart, rewritten

CHECKOUT: Final = Path(__file__).resolve().parents[2]
PARTS: Final[tuple[MadePart, ...]] = (
    start_rules.PART,
    schema_rules.PART,
    passed.PART,
    policies.PART,
    lives.PART,
    settings.PART,
    commands.PART,
    errors.PART,
    checks.PART,
    retries.PART,
    shapes.PART,
    supply_rules.PART,
    rooms.PART,
    run_layers.PART,
)


def renew() -> None:
    """Each part in its page, as the code says it today."""
    for part in PARTS:
        page = CHECKOUT / part.page
        page.write_text(rewritten(page.read_text(), part))


if __name__ == "__main__":
    renew()
