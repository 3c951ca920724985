"""Names in Dagster are valid and never meet, whatever the tables are called."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from assets.names import job_name, output_name, step_keys, table_key
from pipeline.table import TableName

NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=64)
SOURCES = st.from_regex(r"[a-z][a-z0-9_]{0,31}", fullmatch=True)
TABLES = st.builds(TableName, NAMES, NAMES)


@given(SOURCES, TABLES, TABLES)
def test_keys_of_different_tables_differ(source: str, one: TableName, other: TableName) -> None:
    """Two tables have one key only if they are one table."""
    assert (table_key(source, one) == table_key(source, other)) == (one == other)


@given(SOURCES, SOURCES, TABLES)
def test_a_tables_key_is_no_steps_key(source: str, other: str, table: TableName) -> None:
    """No table's name can make its key that of a step, of any source."""
    assert table_key(source, table) not in step_keys(other)


@given(SOURCES, TABLES)
def test_key_parts_are_plain(source: str, table: TableName) -> None:
    """Letters, digits, `_`, `-` and `=` only: nothing a key's text form gives a meaning."""
    assert all(re.fullmatch(r"[A-Za-z0-9_=-]+", part) for part in table_key(source, table))


@given(SOURCES, st.integers(1, 10**7))
def test_generated_names_are_valid(source: str, number: int) -> None:
    """Op, output and job names are what Dagster allows."""
    assert all(
        re.fullmatch(r"[A-Za-z0-9_]+", name) for name in (job_name(source), output_name(number))
    )


def test_the_keys_a_person_sees() -> None:
    """Plain names stay as they are; every other byte is `=XX`."""
    assert table_key("shop", TableName("shop", "orders")) == ("shop", "shop", "orders")
    assert table_key("shop", TableName("my db", "a/b")) == ("shop", "my=20db", "a=2Fb")
