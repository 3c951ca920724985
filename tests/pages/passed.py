"""Statements that are passed over, on their page: `pipeline.schema.statements.read`."""

from __future__ import annotations

from typing import Final

from lockstep.pipeline.schema.statements.read import PASSED, Passed
from tests.pages.made import MadePart, row

_HEAD: Final = "| statement | what it does |\n|---|---|"


def table() -> str:
    """One row for each kind of statement."""
    return "\n".join([_HEAD, *map(_row, PASSED)])


def _row(passed: Passed) -> str:
    return row((f"`{passed.words.replace('|', '/')}`", passed.does))


PART: Final = MadePart("passed", "docs/schema-changes.md", table)
