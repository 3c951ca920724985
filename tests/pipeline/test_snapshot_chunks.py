"""Bounds of chunks as text and as conditions, and the columns that tables are cut by."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep.pipeline.model.json_values import to_json
from lockstep.pipeline.schema.model import ColumnSchema, KeyPart, KeySchema, TableSchema
from lockstep.pipeline.snapshot.chunks import (
    Bound,
    Range,
    bound_of,
    chunk_key,
    key_expressions,
    only_on_mysql,
    range_condition,
)
from lockstep.pipeline.values.errors import TableError
from lockstep.pipeline.values.table import TableName

INTEGERS = st.integers(-3, 3)


def table(*columns: ColumnSchema, key: tuple[KeyPart, ...] | None = None) -> TableSchema:
    parts = key or tuple(KeyPart(column.name) for column in columns)
    return TableSchema(TableName("d", "t"), columns, (KeySchema("PRIMARY", "primary", parts),))


def column(name: str, kind: str = "int", **more: Any) -> ColumnSchema:
    return ColumnSchema(name, kind, nullable=False, **more)


def bound(**values: int) -> Bound:
    return Bound(tuple(values), tuple(str(value) for value in values.values()))


def holds(condition: str, row: dict[str, int]) -> bool:
    """A condition of this room over integers, which Python reads alike."""
    text = condition.replace("`", "").replace(" = ", " == ")
    return bool(eval(text, {"true": True, **row}))


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (Range(), "true"),
        (Range(after=bound(a=1)), "`a` > 1"),
        (Range(through=bound(a=1)), "`a` <= 1"),
        (Range(bound(a=1), bound(a=2)), "`a` > 1 and `a` <= 2"),
        (Range(bound(a=1, b=2)), "(`a` > 1 or (`a` = 1 and `b` > 2))"),
        (
            Range(None, bound(a=1, b=2, c=3)),
            "(`a` < 1 or (`a` = 1 and (`b` < 2 or (`b` = 2 and `c` <= 3))))",
        ),
    ],
)
def test_a_condition_compares_column_by_column(rows: Range, expected: str) -> None:
    """What is behind the first bound and not behind the second."""
    assert range_condition(rows) == expected


@given(st.lists(st.tuples(INTEGERS, INTEGERS, INTEGERS), min_size=1, unique=True), st.data())
def test_ranges_that_meet_have_each_row_once(
    rows: list[tuple[int, int, int]], data: st.DataObject
) -> None:
    """Whatever the bounds between them are, also places where no row is."""
    cuts = sorted(data.draw(st.sets(st.tuples(INTEGERS, INTEGERS, INTEGERS))))
    bounds = [None, *(bound(a=a, b=b, c=c) for a, b, c in cuts), None]
    conditions = [range_condition(Range(after, through)) for after, through in pairwise(bounds)]
    for a, b, c in rows:
        found = [holds(condition, {"a": a, "b": b, "c": c}) for condition in conditions]
        expected = sum(cut < (a, b, c) for cut in cuts)
        assert [number for number, one in enumerate(found) if one] == [expected]


@pytest.mark.parametrize(
    ("kind", "answer", "literal"),
    [
        ({"type": "int"}, "-5", "-5"),
        ({"type": "int"}, 7, "7"),
        ({"type": "bigint", "zerofill": True}, "000", "0"),
        ({"type": "decimal"}, "-000.50", "-0.50"),
        ({"type": "float"}, "0.10000000149011612", "1.0000000149011612e-1"),
        ({"type": "double"}, -0.0, "-0e0"),
        ({"type": "double"}, 1.7976931348623157e308, "1.7976931348623157e308"),
        ({"type": "double"}, 5e-324, "4.9406564584124654e-324"),
        ({"type": "bit"}, "18446744073709551615", "18446744073709551615"),
        ({"type": "year"}, "0000", "0000"),
        ({"type": "date"}, "2024-02-29", "date'2024-02-29'"),
        ({"type": "date"}, "0000-00-00", "00000000"),
        ({"type": "datetime"}, "2024-02-00 01:02:03.5", "20240200010203.5"),
        (
            {"type": "datetime"},
            "2024-02-29 23:59:59.999999",
            "timestamp'2024-02-29 23:59:59.999999'",
        ),
        ({"type": "time"}, "-838:59:59", "time'-838:59:59'"),
        ({"type": "varchar", "charset": "utf8mb4"}, "C3A9", "_utf8mb4 x'C3A9'"),
        ({"type": "char", "charset": "utf8mb3"}, "C3A9", "_utf8mb4 x'C3A9'"),
        ({"type": "char", "charset": "cp932"}, "", "_cp932 x''"),
        ({"type": "binary"}, "00FF", "x'00FF'"),
        ({"type": "inet6"}, "::ffff:1.2.3.4", "'::ffff:1.2.3.4'"),
    ],
)
def test_a_value_is_written_as_it_compares(
    kind: dict[str, Any], answer: object, literal: str
) -> None:
    """As the server prints it, or as a driver made a number of it; and it is text and back."""
    given_type = kind["type"]
    rest = {name: value for name, value in kind.items() if name != "type"}
    built = table(column("k", given_type, **rest))
    found = bound_of(built, [answer])
    assert found == Bound(("k",), (literal,))
    assert Bound.from_json(json.loads(json.dumps(to_json(found)))) == found


def test_no_statement_is_made_of_a_sealed_bound() -> None:
    """It is text and back, and opened it is what it was."""
    whole = bound(a=1, b=2)
    sealed = whole.seal(lambda literal: literal.encode()[::-1])
    assert Bound.from_json(json.loads(json.dumps(to_json(sealed)))) == sealed
    assert sealed.open(lambda data: data[::-1].decode()) == whole
    with pytest.raises(ValueError, match="sealed"):
        range_condition(Range(after=sealed))
    with pytest.raises(ValueError, match="not sealed"):
        whole.open(lambda data: data.decode())


@pytest.mark.parametrize("number", [0.1, 1 / 3, 2.0**-1074, 1e22, 123456789012345678.0, -1e-7])
def test_a_double_comes_back(number: float) -> None:
    """Digit for digit."""
    (literal,) = bound_of(table(column("k", "double")), [number]).literals
    assert float(literal) == number


def test_what_is_asked_for_is_named_as_it_is() -> None:
    """Backticks included."""
    built = table(column("a`b", "varchar", charset="latin1"), column("f", "float"))
    assert key_expressions(built) == ("hex(`a``b`)", "`f` * 1e0")
    key = bound_of(built, ["61", "1.5"])
    assert range_condition(Range(through=key)) == (
        "(`a``b` < _latin1 x'61' or (`a``b` = _latin1 x'61' and `f` <= 1.5e0))"
    )


@pytest.mark.parametrize(
    "literal",
    ["", "1 or 1", "x'6'", "'a' or ''='", "sleep(9)", "_utf8mb4 x'61' collate utf8mb4_bin", "null"],
)
def test_what_is_no_literal_is_no_bound(literal: str) -> None:
    """Nothing else that a ledger may hold becomes part of a statement."""
    with pytest.raises(ValueError, match="not a literal"):
        Bound.from_json({"columns": ["a"], "literals": [literal]})


@pytest.mark.parametrize(
    "data",
    [
        None,
        [],
        {},
        {"columns": ["a"]},
        {"columns": [], "literals": []},
        {"columns": ["a", "b"], "literals": ["1"]},
        {"columns": ["a"], "literals": [1]},
    ],
)
def test_what_is_no_bound_is_refused(data: Any) -> None:
    """By name and by number."""
    with pytest.raises(ValueError, match=r"bound|values"):
        Bound.from_json(data)


@given(st.none() | st.builds(bound, a=INTEGERS), st.none() | st.builds(bound, a=INTEGERS))
def test_a_range_without_bounds_is_the_table(after: Bound | None, through: Bound | None) -> None:
    """And has no columns."""
    one = Range(after, through)
    assert one.is_whole_table == (after is None and through is None)
    assert one.columns == (() if one.is_whole_table else ("a",))


def test_a_range_has_bounds_of_one_key() -> None:
    """Its columns by name, in their order."""
    with pytest.raises(ValueError, match="different columns"):
        Range(bound(a=1), bound(b=1))


def test_a_value_that_cannot_be_written_again_is_said() -> None:
    """Two digits of a year."""
    with pytest.raises(TableError, match="key column 'k'"):
        bound_of(table(column("k", "year")), ["99"])


ID, NAME = column("id"), column("name", "varchar", charset="utf8mb4")
KIND, BODY = column("kind", "enum", members=("a",)), column("body", "json")


@pytest.mark.parametrize(
    ("built", "expected"),
    [
        (table(ID), ("id",)),
        (table(ID, NAME), ("id", "name")),
        (table(ID, KIND, NAME), ("id",)),
        (table(KIND, ID), ()),
        (table(ID, BODY, key=(KeyPart("ID"),)), ("id",)),
        (table(NAME, key=(KeyPart("name", prefix=10),)), ()),
        (table(ID, NAME, key=(KeyPart("id"), KeyPart("name", prefix=10))), ("id",)),
        (table(ID, NAME, key=(KeyPart("id", descending=True), KeyPart("name"))), ("id",)),
        (
            table(ID, NAME, key=tuple(KeyPart(one, descending=True) for one in ("id", "name"))),
            ("id", "name"),
        ),
        (replace(table(ID), keys=()), ()),
        (replace(table(ID), keys=(KeySchema("u", "unique", (KeyPart("id"),)),)), ("id",)),
        (replace(table(ID), engine="MEMORY"), ()),
        (replace(table(ID), engine="MyISAM"), ("id",)),
        (replace(table(ID), system_versioned=True), ()),
        (table(column("k", "char", collation="utf8mb4_uca1400_nopad_ai_ci")), ()),
        (table(column("k", "char", collation="latin1_nopad_bin")), ()),
        (table(column("k", "varchar", collation="utf8mb4_nopad_bin")), ("k",)),
        (table(column("k", "char", collation="utf8mb4_0900_ai_ci")), ("k",)),
    ],
)
def test_a_table_is_cut_by_the_run_that_is_proven(
    built: TableSchema, expected: tuple[str, ...]
) -> None:
    """From the key's first column on, in the columns' spelling."""
    assert chunk_key(built) == expected


@pytest.mark.parametrize(
    ("built", "expected"),
    [
        (table(column("k", "char", collation="utf8mb4_0900_bin")), True),
        (table(ID, column("k", "char", collation="utf8mb4_da_0900_as_cs")), True),
        (table(column("k", "varchar", collation="utf8mb4_0900_ai_ci")), False),
        (table(column("k", "char", collation="utf8mb4_general_ci")), False),
        (table(ID, column("k", "char", collation="utf8mb4_0900_bin"), key=(KeyPart("id"),)), False),
        (table(KIND, column("k", "char", collation="utf8mb4_0900_bin")), False),
    ],
)
def test_a_char_of_mysql_s_collations_is_cut_by_mysql_alone(
    built: TableSchema, expected: bool
) -> None:
    """Where it is among the columns that the table is cut by."""
    assert only_on_mysql(built) == expected
