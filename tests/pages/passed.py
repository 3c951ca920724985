"""Statements that are passed over, on their page: `pipeline.schema.statements.read`."""

from __future__ import annotations

from textwrap import fill
from typing import Final

from lockstep.pipeline.schema.statements.read import HARMLESS_STATEMENTS
from tests.pages.made import MadePart


def listed() -> str:
    """The first words of each kind of statement."""
    kinds = ", ".join(f"`{passed.words.replace('|', '/')}`" for passed in HARMLESS_STATEMENTS)
    return fill(f"{kinds}.", 100, break_on_hyphens=False)


PART: Final = MadePart("passed", "docs/schema-changes.md", listed)
