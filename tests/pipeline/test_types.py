"""Which Arrow type each MySQL type becomes, where its width or sign decides."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from random import Random

import pyarrow as pa
import pytest

from lockstep.pipeline.catalog import EntryColumn
from lockstep.pipeline.mirror.fold import key_hashes
from lockstep.pipeline.run.load.by_condition import columns_of
from lockstep.pipeline.schema.effects import CannotFollow
from lockstep.pipeline.schema.evolve import evolve
from lockstep.pipeline.schema.evolving.column_changes import text_type_with_convert
from lockstep.pipeline.schema.fills import fill_of
from lockstep.pipeline.schema.rows import row_structure, schema_of
from lockstep.pipeline.schema.statements.read import read_change
from lockstep.pipeline.schema.types import FAMILIES, Family, arrow_schema, arrow_type, sql_type
from lockstep.pipeline.snapshot.chunks import FORMS
from lockstep.pipeline.snapshot.condition import Limit
from lockstep.pipeline.values.errors import TableError
from lockstep.pipeline.values.table import Column, TableName, TableStructure
from lockstep.resources.mysql.decoder_compilation import LOG_COLUMNS, RESULT_COLUMNS
from lockstep.resources.unity import column_json
from tests.mysql import chunk_key_cases
from tests.mysql.random_tables import random_tables
from tests.mysql.value_cases import value_cases
from tests.pipeline.results_made import KINDS
from tests.schema.cases import OWN, read_cases
from tests.schema.random_definitions import definition
from tests.schema.schemas_made import EMPTY, MYSQL, table


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (Column("c", "tinyint"), pa.int8()),
        (Column("c", "tinyint", unsigned=True), pa.int16()),
        (Column("c", "smallint", unsigned=True), pa.int32()),
        (Column("c", "mediumint", unsigned=True), pa.int32()),
        (Column("c", "int", unsigned=True), pa.int64()),
        (Column("c", "bigint"), pa.int64()),
        (Column("c", "bigint", unsigned=True), pa.decimal128(20, 0)),
        (Column("c", "decimal", precision=38, scale=30), pa.decimal128(38, 30)),
        (Column("c", "decimal", precision=39, scale=0), pa.string()),
        (Column("c", "bit", length=1), pa.bool_()),
        (Column("c", "bit", length=2), pa.int64()),
        (Column("c", "bit", length=63), pa.int64()),
        (Column("c", "bit", length=64), pa.decimal128(20, 0)),
        (Column("c", "year", unsigned=True), pa.int16()),
        (Column("c", "varchar", length=9, charset="sjis"), pa.string()),
    ],
    ids=str,
)
def test_width_and_sign_decide(column: Column, expected: pa.DataType) -> None:
    """Nothing that MySQL can hold is beyond the type it gets."""
    assert arrow_type(column) == expected


@pytest.mark.parametrize("kind", ["compressed text", "old time", "tuple"])
def test_unlisted_types_quarantine_the_table(kind: str) -> None:
    """No type is ever guessed."""
    with pytest.raises(TableError, match=kind.upper()):
        arrow_schema(TableStructure(TableName("a", "b"), (Column("c", kind),), ()))


def test_a_vector_is_no_key() -> None:
    """Nothing in the lake joins on a list."""
    with pytest.raises(TableError, match="VECTOR"):
        arrow_schema(TableStructure(TableName("a", "b"), (Column("v", "vector"),), ("v",)))


# -- tables of types that mypy does not compare with the families -------------------------------

COLUMNS = tuple(
    Column("c", kind, False, length=1, precision=4, scale=2, charset="utf8mb4", members=("a",))
    for kind in FAMILIES
)
"""A column of each type."""


def test_every_type_cuts_a_table_into_chunks_or_is_known_not_to() -> None:
    """`FORMS` in `snapshot.chunks`: only the key columns before one without a form are used."""
    without = {"enum", "set", "text", "blob", "json", "geometry", "vector"}
    assert FAMILIES.keys() - FORMS.keys() == without


def test_every_type_has_an_implicit_default_or_is_known_to_have_none() -> None:
    """`schema.fills`: without one, rows that are there when a column is added are read again."""
    structure = TableStructure(TableName("a", "b"), COLUMNS, ())
    fills = {
        column.type: fill_of(schema, arrow_type(column), None)
        for column, schema in zip(COLUMNS, schema_of(structure).columns, strict=True)
    }
    assert {kind for kind, fill in fills.items() if fill is None} == {"geometry", "vector"}


def test_every_arrow_type_has_a_name_and_a_hash() -> None:
    """`sql_type` in `schema.types`, `resources.unity`, `mirror.fold`: a list is no key."""
    for column in COLUMNS:
        kind = arrow_type(column)
        name = column_json(EntryColumn("c", sql_type(kind)), 0)["type_name"]
        assert (name == "STRING") == pa.types.is_string(kind), kind
        if not pa.types.is_list(kind):
            assert len(key_hashes(pa.table({"c": pa.array([None], kind)}))) == 1


def test_every_family_is_compiled_at_set_up() -> None:
    """`resources.mysql.decoder_compilation`: of the log, each; of a result, each decoder once."""
    assert {FAMILIES[column.type] for column, _, _ in LOG_COLUMNS} == set(Family)
    same_as_others = {Family.FLOATING, Family.BIT, Family.TIMESTAMP, Family.ENUM, Family.SET}
    same_as_others |= {Family.BYTES, Family.JSON}
    read = {FAMILIES[column.type] for column, _ in RESULT_COLUMNS}
    assert set(Family) - read == same_as_others


def test_every_type_has_a_printed_length_or_is_known_to_have_none() -> None:
    """`_PRINTED_LENGTHS` in `schema.evolving.column_changes`: without one, only the server knows
    the TEXT that a column becomes."""
    text = table("create table t (c text)").columns[0]
    unknown = set()
    for column in COLUMNS:
        members = column.members if FAMILIES[column.type] in (Family.ENUM, Family.SET) else ()
        structure = TableStructure(TableName("a", "b"), (replace(column, members=members),), ())
        (before,) = schema_of(structure).columns
        try:
            text_type_with_convert(text, before)
        except CannotFollow:
            unknown.add(column.type)
    assert unknown == {"bit", "json", "geometry", "vector"}


def test_every_type_that_a_condition_limits_is_known_to_be_compared() -> None:
    """A limit is compared by the Arrow type, so a type whose literals mean something else
    than its numbers must be left out there."""
    schema = pa.schema([pa.field(kind.type, arrow_type(kind)) for kind in COLUMNS])
    limits = [Limit(kind, 1901, 1901) for kind in FAMILIES]
    integers = {name for name, family in FAMILIES.items() if family is Family.INTEGER}
    assert {*columns_of(schema, (), limits)} == {*integers, "year"} - {"tinyint"}
    # An int16 may be a year, of which 70 is another spelling.
    two_digits = [Limit(kind, 70, 70) for kind in FAMILIES]
    assert {*columns_of(schema, (), two_digits)} == integers - {"smallint"}


# -- lists of proofs ----------------------------------------------------------------------------


def _made(definitions: Iterable[str]) -> set[str]:
    """The types of columns that are defined in these words, as far as MySQL knows them."""
    return _types(f"create table t ({made})" for made in definitions)


def _types(statements: Iterable[str]) -> set[str]:
    types: set[str] = set()
    for statement in statements:
        read = read_change(statement, MYSQL)
        if isinstance(read, tuple):
            with suppress(CannotFollow):
                tables = evolve(EMPTY, read, MYSQL).schema.tables.values()
                types |= {c.type for made in tables for c in row_structure(made).columns}
    return types


CUT = (*chunk_key_cases.CASES, *chunk_key_cases.NOT_CUT)
LISTS: dict[str, tuple[Callable[[], set[str]], set[str]]] = {
    "tests/cases/values": (
        lambda: _types(c.create("t") for c in value_cases() if "mysql" in c.servers),
        set(),
    ),
    "tests/schema/cases": (
        lambda: _types(text for case in read_cases(OWN, "mysql") for text in case.statements),
        set(),
    ),
    "tests/schema/random_definitions.py": (
        lambda: _made(
            f"c {definition(Random(seed), ('c',), mariadb=False)}" for seed in range(1000)
        ),
        {"vector"},
    ),
    "tests/mysql/random_tables.py": (
        lambda: _types(one.create() for one in random_tables(Random(1), 60)),
        set(),
    ),
    "tests/mysql/chunk_key_cases.py": (
        lambda: _made(f"c {case.definition}" for case in CUT if "mysql" in case.servers),
        {"text", "blob", "json", "geometry", "vector"},
    ),
    "tests/pipeline/results_made.py": (  # decoded as VARBINARY and VARCHAR are
        lambda: {kind.column.type for kind in KINDS},
        {"binary", "blob", "char"},
    ),
}
"""Where types are proven: which types a list has, and which it need not have."""


@pytest.mark.parametrize("place", LISTS)
def test_every_type_is_in_each_list_of_proofs(place: str) -> None:
    """What is in these lists is compared with what servers do with it: how the log and a `SELECT`
    give a value, how a statement and information_schema give the column."""
    listed, without = LISTS[place]
    assert set(FAMILIES) - listed() == without
