"""What the lake can show of a table, on the page about privacy: the tables of `pipeline.shape`."""

from __future__ import annotations

from types import ModuleType
from typing import Final

from lockstep.pipeline.shape import condition, hashes, shape, shaper
from tests.pages.made import MadePart


def tables() -> str:
    """Settings, conditions, images and canonical texts, each under its heading."""
    parts = {
        "Settings": _table(shape),
        "Conditions": f"```\n{_grammar(condition)}\n```",
        "What becomes of an update under a condition": _table(shaper),
        "What is hashed": _table(hashes),
    }
    return "\n\n".join(f"### {heading}\n\n{text}" for heading, text in parts.items())


def _table(module: ModuleType) -> str:
    """The table in a module's docstring."""
    lines = (module.__doc__ or "").splitlines()
    return "\n".join(line for line in lines if line.startswith("|"))


def _grammar(module: ModuleType) -> str:
    """The indented lines of a module's docstring."""
    lines = (module.__doc__ or "").splitlines()
    return "\n".join(line.removeprefix("    ") for line in lines if line.startswith("    "))


PART: Final = MadePart("shapes", "docs/privacy.md", tables)
