"""What MySQL gives to rows that are there when a column is added."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from lockstep.pipeline.schema.fills import StatementMoment, fill_of
from lockstep.pipeline.schema.model import (
    ColumnSchema,
    ExpressionDefault,
    TableSchema,
    ValueDefault,
    WrittenDefault,
)
from lockstep.pipeline.schema.rows import row_structure
from lockstep.pipeline.schema.types import arrow_schema
from tests.changes.tables_made import TABLE, a_column

ZONE = timezone(timedelta(hours=2))
MOMENT = StatementMoment(datetime(2026, 7, 1, 12, 0, 0, 987654, tzinfo=UTC), ZONE)
TEXTS = {"charset": "utf8mb4", "collation": "utf8mb4_bin"}
DECIMAL = {"precision": 5, "scale": 2}


def fill(column: ColumnSchema, moment: StatementMoment | None = MOMENT) -> pa.Scalar | None:
    kind = arrow_schema(row_structure(TableSchema(TABLE, (column,)))).field(0).type
    found = fill_of(column, kind, moment)
    assert found is None or found.type == kind
    return found


IMPLICIT: list[tuple[str, dict[str, Any], Any]] = [
    ("int", {}, 0),
    ("bigint", {"unsigned": True}, Decimal(0)),
    ("decimal", DECIMAL, Decimal("0.00")),
    ("decimal", {"precision": 60, "scale": 2}, "0.00"),
    ("float", {}, 0.0),
    ("double", {}, 0.0),
    ("bit", {"length": 1}, False),
    ("bit", {"length": 9}, 0),
    ("bit", {"length": 64}, Decimal(0)),
    ("year", {}, 0),
    ("date", {}, None),
    ("datetime", {"length": 0}, None),
    ("timestamp", {"length": 0}, None),
    ("time", {"length": 0}, "00:00:00"),
    ("time", {"length": 3}, "00:00:00.000"),
    ("varchar", {"length": 9, **TEXTS}, ""),
    ("text", TEXTS, ""),
    ("enum", {"members": ("x", "y"), **TEXTS}, "x"),
    ("set", {"members": ("x", "y"), **TEXTS}, ""),
    ("json", {}, "null"),
    ("binary", {"length": 3}, b"\0\0\0"),
    ("varbinary", {"length": 3}, b""),
    ("blob", {}, b""),
]


@pytest.mark.parametrize(("kind", "more", "expected"), IMPLICIT)
def test_not_null_without_a_default(kind: str, more: dict[str, Any], expected: Any) -> None:
    """The type's implicit default; a zero date is NULL."""
    found = fill(ColumnSchema("c", kind, nullable=False, **more))
    assert found is not None
    assert found.as_py() == expected


@pytest.mark.parametrize("kind", [kind for kind, more, _ in IMPLICIT if not more])
def test_null_without_a_default(kind: str) -> None:
    """NULL."""
    found = fill(ColumnSchema("c", kind))
    assert found is not None
    assert found.as_py() is None


LITERALS: list[tuple[str, dict[str, Any], str, Any]] = [
    ("int", {}, "-7", -7),
    ("bigint", {"unsigned": True}, "18446744073709551615", Decimal(2**64 - 1)),
    ("decimal", DECIMAL, "1.50", Decimal("1.50")),
    ("decimal", {"precision": 60, "scale": 2}, "1.50", "1.50"),
    ("float", {}, "1.5e2", 150.0),
    ("bit", {"length": 1}, "b'1'", True),
    ("bit", {"length": 9}, "b'101'", 5),
    ("year", {}, "2026", 2026),
    ("date", {}, "2020-02-29", date(2020, 2, 29)),
    ("date", {}, "2020-02-00", None),
    ("datetime", {"length": 0}, "0000-00-00 00:00:00", None),
    ("datetime", {"length": 2}, "1000-01-01 23:59:59.25", datetime(1000, 1, 1, 23, 59, 59, 250000)),
    (
        "timestamp",
        {"length": 0},
        "2020-01-01 01:00:00",
        datetime(2020, 1, 1, 1, tzinfo=UTC),
    ),
    ("time", {"length": 0}, "-838:59:59", "-838:59:59"),
    ("varchar", {"length": 9, **TEXTS}, "it's", "it's"),
    ("enum", {"members": ("x", "y"), **TEXTS}, "y", "y"),
    ("binary", {"length": 3}, "0x61", b"a\0\0"),
    ("varbinary", {"length": 3}, "0x61", b"a"),
]


@pytest.mark.parametrize(("kind", "more", "text", "expected"), LITERALS)
def test_a_literal_default(kind: str, more: dict[str, Any], text: str, expected: Any) -> None:
    """As the column's lake type holds it."""
    found = fill(ColumnSchema("c", kind, default=ValueDefault(text), **more))
    assert found is not None
    assert found.as_py() == expected


@pytest.mark.parametrize(
    ("column", "moment"),
    [
        (a_column("c", auto_increment=True), MOMENT),
        (a_column("c", generated="(id + 1)"), MOMENT),
        (a_column("c", default=ExpressionDefault("(1 + 1)")), MOMENT),
        (a_column("c", "geometry", nullable=False), MOMENT),
        (a_column("c", "float", scale=1, default=WrittenDefault("1.25")), MOMENT),
        (a_column("c", "datetime", length=0, default=ExpressionDefault("CURRENT_TIMESTAMP")), None),
        (
            a_column("c", "timestamp", length=0, default=WrittenDefault("'2020-01-01 00:00:00'")),
            MOMENT,
        ),
        (
            a_column("c", "datetime", length=0, default=ExpressionDefault("CURRENT_TIMESTAMP")),
            StatementMoment(MOMENT.instant),
        ),
        # MariaDB allows more digits than the column has.
        (
            a_column("c", "datetime", length=3, default=ExpressionDefault("CURRENT_TIMESTAMP(6)")),
            MOMENT,
        ),
    ],
)
def test_what_only_the_server_knows(column: ColumnSchema, moment: StatementMoment | None) -> None:
    """Sequences, expressions, literals that no rule tells, clocks that nobody told."""
    assert fill(column, moment) is None
