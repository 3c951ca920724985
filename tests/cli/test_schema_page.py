"""The page of schema changes repeats what the rules say."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.policies import rewritten as policies
from pipeline.schema.consequences import RULES
from pipeline.schema.page import rewritten

PAGE = (Path(__file__).resolve().parents[2] / "docs/schema-changes.md").read_text()


def test_the_page_s_table_is_the_rules() -> None:
    """`python -m pipeline.schema.page docs/schema-changes.md` renews it."""
    assert rewritten(PAGE) == PAGE


def test_every_rule_is_on_the_page_by_its_name() -> None:
    """Whoever reads a name finds it, and no two are the same."""
    names = [rule.name for rule in RULES]
    assert len(set(names)) == len(names)
    assert [name for name in names if f"| `{name}` |" not in PAGE] == []


def test_the_policies_on_the_page_are_those_of_the_code() -> None:
    """`python -m pipeline.policies docs/schema-changes.md` renews them."""
    assert policies(PAGE) == PAGE


def test_a_page_without_a_place_is_refused() -> None:
    """Nothing is appended somewhere."""
    with pytest.raises(ValueError, match="no table"):
        rewritten("# something else\n")
