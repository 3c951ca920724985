"""Names in Dagster are valid and never meet, whatever the tables are called."""

from __future__ import annotations

import re
from dataclasses import replace

import dagster as dg
from hypothesis import given
from hypothesis import strategies as st

from lockstep.assets.names import SourceNames, job_name, output_name
from lockstep.pipeline.values.mirror_names import MirrorNames, MirrorNameTemplate
from lockstep.pipeline.values.table import TableName, TablePatterns

NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=64)
SOURCES = st.builds(
    SourceNames,
    st.from_regex(r"[a-z][a-z0-9_]{0,31}", fullmatch=True) | st.just("lockstep"),
    st.lists(st.sampled_from(["{source}", "mysql", "lockstep"]), max_size=3).map(tuple),
)
DATABASES = NAMES | st.just("lockstep")
STEPS = st.sampled_from(["log", "captured", "merged", "acknowledged", "replayed"])
TABLES = st.builds(TableName, DATABASES, NAMES | STEPS)


@given(SOURCES, TABLES, TABLES)
def test_keys_of_different_tables_differ(
    names: SourceNames, one: TableName, other: TableName
) -> None:
    """Two tables have one key only if they are one table."""
    assert (names.table_key(one) == names.table_key(other)) == (one == other)


@given(SOURCES, SOURCES, TABLES)
def test_a_tables_key_is_no_steps_key(
    names: SourceNames, others: SourceNames, table: TableName
) -> None:
    """No table's name can make its key that of a step or a log, of any source with the same
    prefix."""
    beside = replace(others, prefix=names.prefix)
    assert names.table_key(table) not in (beside.log_key, *beside.step_keys, beside.replayed_key)


@given(SOURCES, TABLES)
def test_key_parts_are_plain(names: SourceNames, table: TableName) -> None:
    """Nothing in a key has a meaning in its text form or in an address, it comes back from both of
    its texts, and other assets can depend on it."""
    key = names.table_key(table)
    assert all(re.fullmatch(r"[A-Za-z0-9_.-]+", part) for part in key.path)
    assert dg.AssetKey.from_user_string(key.to_user_string()) == key
    assert dg.AssetKey.from_db_string(key.to_string()) == key


@given(SOURCES, SOURCES, st.integers(1, 10**7))
def test_generated_names_are_valid(names: SourceNames, others: SourceNames, number: int) -> None:
    """Op, output and job names are what Dagster allows, and differ."""
    ops = [
        one.op_name(what)
        for one in {names.source: names, others.source: others}.values()
        for what in ("captured", "merged", "acknowledged", "mirrors", "checks")
    ]
    outputs = [output_name(letter, number) for letter in "tck"]
    assert len(set(ops + outputs)) == len(ops + outputs)
    assert all(re.fullmatch(r"[A-Za-z0-9_]+", n) for n in [*ops, *outputs, job_name(names.source)])


def test_the_keys_a_person_sees() -> None:
    """A mirror's key has a part for the source, the database and the table, or other parts instead
    of the source, and the mirror's name where it has another; what a key cannot have is `.XX`."""
    plain = SourceNames("crm")
    assert plain.captured_key.path == ["crm", "captured"]
    assert plain.table_key(TableName("shop", "Audit Log")).path == ["crm", "shop", "Audit.20Log"]
    assert plain.table_key(TableName("täglich", "a/b-c")).path[1:] == ["t.C3.A4glich", "a.2Fb-c"]
    raw = SourceNames("crm", prefix=("raw", "mysql"))
    assert raw.captured_key.path == ["raw", "mysql", "lockstep", "crm", "captured"]
    assert raw.table_key(TableName("shop", "orders")).path == ["raw", "mysql", "shop", "orders"]
    rule = TablePatterns(("shop.*",)), MirrorNameTemplate.parse("raw_{source}.{database}_{table}")
    moved = SourceNames("crm", mirror_names=MirrorNames("crm", (rule,)))
    assert moved.table_key(TableName("shop", "Audit Log")).path == [
        "crm",
        "raw_crm",
        "shop_Audit.20Log",
    ]
    assert moved.table_key(TableName("other", "a")).path == ["crm", "other", "a"]
    bare = SourceNames("crm", prefix=())
    assert bare.table_key(TableName("shop", "orders")).path == ["shop", "orders"]
