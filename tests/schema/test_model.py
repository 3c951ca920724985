"""Schemas as values: JSON both ways, fingerprints, names."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep.pipeline.schema.compare import differences
from lockstep.pipeline.schema.model import (
    ColumnSchema,
    DatabaseSchema,
    ExpressionColumn,
    ExpressionDefault,
    ForeignKey,
    KeyPart,
    KeySchema,
    ServerSchema,
    TableSchema,
    ValueDefault,
    schema_fingerprint,
    schema_from_json,
    schema_to_json,
)
from lockstep.pipeline.values.table import TableName
from tests.schema.schemas_made import named

_NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=5)
_TABLE_NAMES = st.builds(TableName, _NAMES, _NAMES)
_DEFAULTS = st.none() | st.builds(ValueDefault, _NAMES) | st.builds(ExpressionDefault, _NAMES)
_COLUMNS = st.builds(
    ColumnSchema,
    name=_NAMES,
    type=st.sampled_from(["int", "varchar", "enum"]),
    members=st.lists(_NAMES, max_size=3).map(tuple),
    default=_DEFAULTS,
)
_PARTS = st.builds(KeyPart, column=st.none() | _NAMES, prefix=st.none() | st.integers(1, 9))
_KEYS = st.builds(KeySchema, name=_NAMES, kind=_NAMES, parts=st.lists(_PARTS).map(tuple))
_FOREIGN = st.builds(ForeignKey, name=_NAMES, references=_TABLE_NAMES)


def _several(parts: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[Any, ...]]:
    """No two of one name, which the server compares without regard to case."""
    return st.lists(parts, max_size=3, unique_by=lambda part: part.name.lower()).map(tuple)


_TABLES = st.builds(
    TableSchema,
    name=_TABLE_NAMES,
    columns=_several(_COLUMNS),
    keys=_several(_KEYS),
    foreign_keys=_several(_FOREIGN),
    expression_columns=st.lists(
        st.builds(ExpressionColumn, st.integers(0, 99), st.none() | _NAMES)
    ).map(tuple),
)

A = TableSchema(
    named("a"),
    (ColumnSchema("id", "int", nullable=False), ColumnSchema("n", "varchar", length=5)),
    (
        KeySchema("PRIMARY", "primary", (KeyPart("id"),)),
        KeySchema("n", "index", (KeyPart("n", prefix=3),)),
    ),
)


@given(_TABLES)
def test_json(table: TableSchema) -> None:
    """A schema comes back from its JSON as it was."""
    text = json.dumps(schema_to_json(table))
    assert table == schema_from_json(json.loads(text))
    assert schema_fingerprint(table) == schema_fingerprint(schema_from_json(json.loads(text)))


def test_plain_json() -> None:
    """What is as by default is left out, so that new parts change no fingerprint."""
    bare = TableSchema(named("a"), (ColumnSchema("id", "int"),))
    expected = {
        "name": {"database": "shop", "name": "a"},
        "columns": [{"name": "id", "type": "int"}],
    }
    assert expected == schema_to_json(bare)


@given(_TABLES, _TABLES)
def test_fingerprints(one: TableSchema, other: TableSchema) -> None:
    """Tables have one fingerprint if nothing but their names differs."""
    renamed = replace(one, name=other.name)
    assert schema_fingerprint(renamed) == schema_fingerprint(one)
    assert differences(one, renamed) == ()
    if differences(one, other):
        assert renamed != other
        assert schema_fingerprint(one) != schema_fingerprint(other)


def test_fingerprint_of_keys() -> None:
    """The order of keys does not count; a key's parts do."""
    assert schema_fingerprint(A) == schema_fingerprint(replace(A, keys=A.keys[::-1]))
    other = KeySchema("n", "index", (KeyPart("n"),))
    assert schema_fingerprint(A) != schema_fingerprint(replace(A, keys=(A.keys[0], other)))


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        (replace(A, charset="latin1"), ("charset: none, latin1",)),
        (
            replace(A, columns=A.columns[:1]),
            ("columns: (id, n), (id)",),
        ),
        (
            replace(
                A,
                columns=(
                    A.columns[0],
                    ColumnSchema("n", "char", length=5, default=ValueDefault("x")),
                ),
            ),
            ("column n type: varchar, char", "column n default: none, 'x'"),
        ),
        (replace(A, keys=A.keys[:1]), ("key n: there, missing",)),
        (replace(A, name=named("b")), ()),
    ],
)
def test_differences(changed: TableSchema, expected: tuple[str, ...]) -> None:
    """What differs is told in a sentence each, ours first."""
    assert expected == differences(A, changed)


def test_folded_names() -> None:
    """Where the server keeps names in lower case, it finds them in any."""
    schema = ServerSchema(lower_case_table_names=1)
    schema = schema.with_database(DatabaseSchema("shop", "utf8mb4", "utf8mb4_bin"))
    schema = schema.with_table(A)
    assert schema.table(TableName("SHOP", "A")) == A
    assert schema.without_database("SHOP").tables == {}
    assert ServerSchema().with_table(A).table(named("A")) is None
