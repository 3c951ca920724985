"""The page of `lockstep check` repeats what the rules say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pipeline.preflight.findings import CheckRule
from pipeline.preflight.page import rewritten
from pipeline.preflight.rules import CHECK_RULES, RUN_RULES

PAGE = (Path(__file__).resolve().parents[2] / "docs/check.md").read_text()


def test_the_page_s_tables_are_the_rules() -> None:
    """`python -m pipeline.preflight.page docs/check.md` renews them."""
    assert rewritten(PAGE) == PAGE


def test_every_rule_is_on_the_page_by_its_name() -> None:
    """Whoever reads a name in the output finds it."""
    rules: list[CheckRule[Any]] = [*RUN_RULES, *CHECK_RULES]
    names = [rule.name for rule in rules]
    assert len(set(names)) == len(names)
    assert [name for name in names if f"\n| {name} |" not in PAGE] == []


def test_a_page_without_a_place_is_refused() -> None:
    """Nothing is appended somewhere."""
    with pytest.raises(ValueError, match="no table"):
        rewritten("# something else\n")
