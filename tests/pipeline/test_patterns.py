"""Which tables patterns capture, and why others are left out."""

from __future__ import annotations

import pytest

from lockstep.pipeline.values.table import TableName, TablePatterns, has_wildcard, is_helper

HELPERS = [
    "_orders_gho",
    "_orders_ghc",
    "_orders_ghk",
    "_orders_del",
    "_orders_20261121180000_del",
    "_orders_rev_del",
    "_orders_new",
    "__orders_new",
    "_orders_old",
    "__________orders_old",
    "_orders_old_20261121_180000",
    "_orders_chkpnt",
    "__private_new",
    "_spirit_checkpoint",
    "_spirit_sentinel",
]
ORDINARY = [
    "orders",
    "orders_new",
    "orders_old",
    "_orders",
    "_new",
    "__new",
    "_orders_news",
    "_orders_old_2026",
    "_orders_NEW",
    "_spirit",
    "_orders_gho_",
]


def named(name: str) -> TableName:
    return TableName("shop", name)


@pytest.mark.parametrize("name", HELPERS)
def test_helpers_of_online_schema_changes_are_left_out(name: str) -> None:
    """Whatever a pattern for all tables, or for many, says; a pattern that begins as their
    names do asks for them."""
    table = named(name)
    assert is_helper(table)
    for pattern in ("shop.*", "*.*", "shop.?*", "shop.[_]*", "shop.*" + name[-4:]):
        patterns = TablePatterns((pattern,))
        assert patterns.exclusion_reason(table) == (
            "a helper table of online schema changes; only a pattern such as *._* matches it"
        )
        assert patterns.unmatched_patterns([table]) == [pattern]
    for pattern in (f"shop.{name}", "shop._*", "*._*", f"shop.{name[:-1]}[{name[-1]}]"):
        patterns = TablePatterns(("shop.*", pattern))
        assert patterns.matches(table)
        assert patterns.unmatched_patterns([table]) == ["shop.*"]
        assert patterns.unmatched_patterns([]) == (
            ["shop.*"] if has_wildcard(pattern) else ["shop.*", pattern]
        )
        assert not TablePatterns(("shop.*", pattern), exclude=(pattern,)).matches(table)


@pytest.mark.parametrize("name", ORDINARY)
def test_other_tables_are_not_taken_for_helpers(name: str) -> None:
    assert TablePatterns(("shop.*",)).matches(named(name))


def test_why_a_table_is_left_out() -> None:
    patterns = TablePatterns(("shop.*", "mysql.*"), exclude=("shop.tmp_*",))
    assert patterns.exclusion_reason(TableName("mysql", "user")) == "a system database"
    assert patterns.exclusion_reason(TableName("other", "orders")) == "no pattern matches"
    assert patterns.exclusion_reason(named("tmp_1")) == "excluded by 'shop.tmp_*'"
    assert patterns.exclusion_reason(named("orders")) is None


def test_a_name_to_exclude_that_no_table_has_is_found() -> None:
    """A pattern with a wildcard, and a helper table, may match a later table."""
    exclude = ("shop.othr", "shop.kept", "shop.tmp_*", "shop.?", "shop.[ab]", "shop._a_old")
    patterns = TablePatterns(("shop.*",), exclude)
    assert patterns.unmatched_exclusions({TableName("shop", "kept")}) == ["shop.othr"]
