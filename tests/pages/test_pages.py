"""What is made on pages is what the code says."""

from __future__ import annotations

import re
from dataclasses import fields
from typing import Any

import pytest

from lockstep.pipeline.check import CHECK_RULES, RUN_RULES
from lockstep.pipeline.check.findings import CheckRule
from lockstep.pipeline.schema.consequences import RULES
from lockstep.pipeline.shape.shape import ShapeRules
from tests.pages import errors
from tests.pages.__main__ import CHECKOUT, PARTS
from tests.pages.made import MadePart, rewritten, row


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.maker)
def test_a_made_part_says_what_the_code_says(part: MadePart) -> None:
    """`make pages` renews it."""
    page = (CHECKOUT / part.page).read_text()
    assert rewritten(page, part) == page


def test_every_part_that_a_page_calls_made_is_made() -> None:
    """A mark without a maker would keep what was once true."""
    named = {
        (str(page.relative_to(CHECKOUT)), maker)
        for page in CHECKOUT.glob("docs/**/*.md")
        for maker in re.findall(r"<!-- made by (.*) -->", page.read_text())
    }
    assert named == {(part.page, f"tests/pages/{part.maker}.py") for part in PARTS}


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.maker)
def test_a_page_without_a_place_is_refused(part: MadePart) -> None:
    """Nothing is appended somewhere."""
    with pytest.raises(ValueError, match="no place"):
        rewritten("# something else\n", part)


def test_a_border_in_a_cell_is_none() -> None:
    assert row(["a|b", "c"]) == "| a\\|b | c |"


def test_every_error_says_what_has_happened_and_what_to_do() -> None:
    """Whoever finds its name in `--json`, or in Dagster, finds both."""
    lacking = [error.__name__ for error in errors.raised() if len(errors.paragraphs(error)) < 2]
    assert lacking == []


def test_every_rule_of_a_check_is_on_its_page_by_its_name() -> None:
    """Whoever reads a name in the output finds it."""
    page = (CHECKOUT / "docs/reference.md").read_text()
    rules: list[CheckRule[Any]] = [*RUN_RULES, *CHECK_RULES]
    names = [rule.name for rule in rules]
    assert len(set(names)) == len(names)
    assert [name for name in names if f"\n| {name} |" not in page] == []


def test_what_a_rule_of_a_check_costs_stands_by_itself() -> None:
    """`lockstep check` prints it after the value that it found: there is no row above it, and no
    other rule beside it."""
    rules: list[CheckRule[Any]] = [*RUN_RULES, *CHECK_RULES]
    elsewhere = re.compile(r"\bas (above|below|under|for)\b")
    assert [rule.name for rule in rules if elsewhere.search(rule.consequence)] == []


def test_every_rule_of_schema_changes_is_on_its_page_by_its_name() -> None:
    """Whoever reads a name finds it, and no two are the same."""
    page = (CHECKOUT / "docs/schema-changes.md").read_text()
    names = [rule.name for rule in RULES]
    assert len(set(names)) == len(names)
    assert [name for name in names if f"| `{name}` |" not in page] == []


def test_every_setting_of_what_is_shown_is_on_its_page() -> None:
    """A key that has no row would be found by nobody."""
    page = (CHECKOUT / "docs/privacy.md").read_text()
    assert [key.name for key in fields(ShapeRules) if f"\n| {key.name} |" not in page] == []
