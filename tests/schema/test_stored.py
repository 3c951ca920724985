"""Which changes of a column leave stored values as they are."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lockstep.pipeline.schema.model import ColumnSchema
from lockstep.pipeline.schema.table_effects import why_values_change


def column(kind: str, **parts: object) -> ColumnSchema:
    made = ColumnSchema("c", kind)
    return replace(made, **parts)  # type: ignore[arg-type]


def text(kind: str, length: int | None = None, charset: str = "utf8mb4") -> ColumnSchema:
    return column(kind, length=length, charset=charset, collation=f"{charset}_bin")


def decimal(precision: int, scale: int) -> ColumnSchema:
    return column("decimal", precision=precision, scale=scale)


def members(*names: str, kind: str = "enum") -> ColumnSchema:
    return column(kind, members=names, charset="utf8mb4")


KEPT = {
    "int to bigint": (column("int"), column("bigint")),
    "unsigned to a wider signed": (column("int", unsigned=True), column("bigint")),
    "varchar grows": (text("varchar", 10), text("varchar", 20)),
    "varchar to text": (text("varchar", 10), text("text")),
    "char to varchar": (text("char", 10), text("varchar", 10)),
    "latin1 to utf8mb4": (text("varchar", 9, "latin1"), text("varchar", 9)),
    "ascii to latin1": (text("varchar", 9, "ascii"), text("varchar", 9, "latin1")),
    "decimal grows": (decimal(10, 2), decimal(12, 3)),
    "float to double": (column("float"), column("double")),
    "datetime gets microseconds": (column("datetime", length=0), column("datetime", length=6)),
    "date to datetime": (column("date"), column("datetime", length=0)),
    "members appended": (members("a", "b"), members("a", "b", "c")),
    "set members appended": (members("a", kind="set"), members("a", "b", kind="set")),
    "binary to varbinary": (column("binary", length=4), column("varbinary", length=4)),
    "binary to blob": (column("binary", length=200), column("tinyblob")),
    "int to decimal": (column("int"), decimal(10, 0)),
    "bigint to decimal": (column("bigint"), decimal(21, 2)),
    "unsigned to decimal": (column("bigint", unsigned=True), decimal(20, 0)),
    "long decimal grows": (decimal(40, 2), decimal(45, 2)),
    "varbinary grows": (column("varbinary", length=4), column("blob")),
    "bits grow": (column("bit", length=1), column("bit", length=8)),
    "nullable": (column("int", nullable=False), column("int")),
    "stored expression becomes a column": (column("int", generated="1 + 1"), column("int")),
}
CHANGED = {
    "bigint to int": (column("bigint"), column("int")),
    "signed to unsigned": (column("int"), column("int", unsigned=True)),
    "unsigned to signed": (column("int", unsigned=True), column("int")),
    "varchar shrinks": (text("varchar", 20), text("varchar", 10)),
    "varchar to char": (text("varchar", 10), text("char", 10)),
    "utf8mb4 to latin1": (text("varchar", 9), text("varchar", 9, "latin1")),
    "gbk to latin1": (text("varchar", 9, "gbk"), text("varchar", 9, "latin1")),
    "decimal loses digits": (decimal(10, 2), decimal(10, 3)),
    "double to float": (column("double"), column("float")),
    "datetime loses microseconds": (column("datetime", length=6), column("datetime", length=0)),
    "members in another order": (members("a", "b"), members("b", "a")),
    "a member removed": (members("a", "b"), members("a")),
    "int to a short decimal": (column("int"), decimal(10, 1)),
    "int to an unsigned decimal": (
        column("int"),
        column("decimal", precision=12, scale=0, unsigned=True),
    ),
    "unsigned bigint to a short decimal": (column("bigint", unsigned=True), decimal(19, 0)),
    "long decimal is printed longer": (decimal(40, 2), decimal(45, 3)),
    "time is printed longer": (column("time", length=0), column("time", length=3)),
    "binary to a shorter varbinary": (column("binary", length=4), column("varbinary", length=3)),
    "binary grows": (column("binary", length=4), column("binary", length=8)),
    "binary to text": (column("varbinary", length=4), text("varchar", 4)),
    "timestamp to datetime": (column("timestamp", length=0), column("datetime", length=0)),
    "int to text": (column("int"), text("varchar", 20)),
    "another expression": (column("int", generated="1"), column("int", generated="2")),
    "a column becomes generated": (column("int"), column("int", generated="1")),
    "numbered": (column("int"), column("int", auto_increment=True)),
}


@pytest.mark.parametrize("name", KEPT)
def test_values_stay(name: str) -> None:
    """Nothing but the definition changes."""
    assert why_values_change(*KEPT[name], strict=True) is None


@pytest.mark.parametrize("name", CHANGED)
def test_values_may_change(name: str) -> None:
    """In doubt they have, and a sentence says why."""
    assert why_values_change(*CHANGED[name], strict=True)


def test_not_null_depends_on_the_session() -> None:
    """A strict session refuses where NULL stands; another one makes a value of it."""
    pair = column("int"), column("int", nullable=False)
    assert why_values_change(*pair, strict=True) is None
    assert why_values_change(*pair, strict=False)
