"""A followed table and its structure in the log are two ways to say one thing."""

from __future__ import annotations

import pytest

from lockstep.pipeline.schema.evolve import evolve
from lockstep.pipeline.schema.model import TableSchema
from lockstep.pipeline.schema.rows import row_key, row_structure, schema_of
from lockstep.pipeline.schema.sql_text import further_properties
from lockstep.pipeline.schema.statements.read import read_change
from lockstep.pipeline.values.errors import TableError
from lockstep.pipeline.values.table import Column, TableStructure
from tests.schema.cases import OWN, read_cases
from tests.schema.schemas_made import EMPTY, MARIADB, MYSQL, named, table


def _tables(flavour: str) -> dict[str, TableSchema]:
    """Every table that a CREATE TABLE of our cases makes by itself."""
    context = MYSQL if flavour == "mysql" else MARIADB
    found: dict[str, TableSchema] = {}
    for case in read_cases(OWN, flavour):
        for statement in case.statements:
            read = read_change(statement, context)
            if isinstance(read, tuple):
                found |= {
                    f"{case.name}: {name}": made
                    for name, made in evolve(EMPTY, read, context).schema.tables.items()
                }
    return found


@pytest.mark.parametrize("flavour", ["mysql", "mariadb"])
def test_there_and_back(flavour: str) -> None:
    """A schema made of a structure has that structure."""
    structures = {name: row_structure(made) for name, made in _tables(flavour).items()}
    assert len(structures) > 100
    back = {name: row_structure(schema_of(one)) for name, one in structures.items()}
    assert structures == back


def test_types_that_the_log_tells() -> None:
    """Lengths choose among TEXT and BLOB; collations are not told, so none is made up."""
    columns = (
        Column("a", "text", length=1, charset="latin1"),
        Column("b", "blob", length=4, charset="binary"),
        Column("c", "varchar", length=40, charset="utf8mb4"),
        Column("d", "char", length=6, charset="utf8mb3"),
        Column("e", "compressed text", length=2, charset="ascii"),
        Column("f", "year", unsigned=True),
    )
    told = schema_of(TableStructure(named("t"), columns, ("c",)))
    assert [
        (column.type, column.length, column.compressed, further_properties(column, told))
        for column in told.columns
    ] == [
        ("tinytext", None, False, "latin1"),
        ("longblob", None, False, ""),
        ("varchar", 10, False, "utf8mb4"),
        ("char", 2, False, "utf8mb3"),
        ("text", None, True, "ascii, compressed"),
        ("year", None, False, ""),
    ]
    assert {column.collation for column in told.columns} == {None}
    assert told.primary_key == ("c",)


def test_a_character_set_that_is_unknown() -> None:
    """A server may have collations of its own."""
    column = Column("a", "varchar", length=40, charset="collation 1999")
    with pytest.raises(TableError, match="character set collation 1999"):
        schema_of(TableStructure(named("t"), (column,), ()))


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ("primary key (b, a), unique (a)", ("b", "a")),
        ("unique (c), unique (a, b)", ("a", "b")),
        ("unique (d(3)), unique (d)", ("d",)),
        ("unique (c)", ()),
        ("unique (d(3)), key (a)", ()),
        ("unique ((a + b))", ()),
    ],
)
def test_key_of_rows(keys: str, expected: tuple[str, ...]) -> None:
    """A UNIQUE key over whole columns that are NOT NULL stands in for a primary key."""
    columns = "a int not null, b int not null, c int, d varchar(9) not null"
    assert expected == row_key(table(f"create table t ({columns}, {keys})"))


def test_columns_that_are_not_shown() -> None:
    """MariaDB's rows have more than their tables show: row times, and hashes for keys."""
    made = table(
        "create table t (a int primary key, b text unique) with system versioning", MARIADB
    )
    structure = row_structure(made)
    assert [c.name for c in structure.columns] == [
        "a",
        "b",
        "row_start",
        "row_end",
        "DB_ROW_HASH_1",
    ]
    assert structure.primary_key == ("a", "row_end")
