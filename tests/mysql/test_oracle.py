"""The engine and mysql-replication say the same, but where the latter is known to err.

Its faults have a test each: `test_oracle_values` and `test_oracle_streams`.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any, Final

import pytest

from pipeline.table import Column, TableName, TableStructure
from tests.mysql.filled import Filled, filled
from tests.mysql.logged import Logged, Rows, logged
from tests.mysql.oracle import as_ours, comparable, heard

UNREAD_CHARSETS: Final = frozenset(
    (
        *("armscii8", "dec8", "eucjpms", "geostd8", "hp8"),
        *("keybcs2", "macce", "swe7", "ucs2", "utf16le"),
    )
)
"""It hands over their bytes."""

WRONG_ENDED_CHARSETS: Final = frozenset({"utf16", "utf32"})
"""It reads them as if they were little-endian: other characters, or UnicodeDecodeError."""

NO_PYTHON_LATIN1: Final = frozenset("\x81\x8d\x8f\x90\x9d")
"""Codes of MySQL's latin1 that Python's cp1252 has no characters for: UnicodeDecodeError."""

MOST_UNREAD: Final = 25
"""Tables that it cannot read at all, of some three hundred."""


@pytest.mark.parametrize("name", ["mysql", "mariadb"])
def test_the_oracle_says_what_the_engine_says(request: pytest.FixtureRequest, name: str) -> None:
    """Every image of every case of values that it can read, but for its known faults."""
    with filled(request.getfixturevalue(name), name) as tables:
        ours = logged(tables.stand, tables.start, tables.database, name)
        unread = [table.name for table, log in ours.items() if _raises(log)]
        theirs = _images(tables, unread)
    wrong = {
        tables.cases[table].name: found
        for table, log in ours.items()
        if table.name not in unread and (found := _differences(log, theirs[table]))
    }
    assert wrong == {}
    assert len(unread) < MOST_UNREAD


def _raises(log: Logged) -> bool:
    """Whether it cannot read the table at all."""
    assert log.structure is not None
    columns = log.structure.columns
    if any(one.type == "vector" or one.charset in WRONG_ENDED_CHARSETS for one in columns):
        return True
    latin = [one.name for one in columns if one.charset == "latin1"]
    return any(
        NO_PYTHON_LATIN1 & set(row[name] or "") for row in log.rows("insert") for name in latin
    )


def _images(tables: Filled, unread: list[str]) -> dict[TableName, dict[str, Rows]]:
    found: dict[TableName, dict[str, Rows]] = defaultdict(lambda: defaultdict(list))
    for table, kind, values in heard(tables.stand, tables.start, ignored_tables=unread):
        found[table][kind].append(values)
    return found


def _differences(log: Logged, theirs: dict[str, Rows]) -> list[tuple[str, Any, Any]]:
    assert log.structure is not None
    structure = log.structure
    counts = {kind: (len(rows), len(theirs[kind])) for kind, rows in log.images.items()}
    found = [(kind, *both) for kind, both in counts.items() if both[0] != both[1]]
    for kind, rows in log.images.items():
        for row, said in zip(rows, theirs[kind], strict=False):
            found += _cells(structure, row, said)
    return found


def _cells(
    structure: TableStructure, row: dict[str, Any], said: dict[str, Any]
) -> list[tuple[str, Any, Any]]:
    masked = {one.name for one in structure.columns if _is_wrong(one, row[one.name])}
    ours, theirs = comparable(structure, row), _said(structure, said, masked)
    return [
        (name, value, theirs[name])
        for name, value in ours.items()
        if name not in masked and value != theirs[name]
    ]


def _said(structure: TableStructure, said: dict[str, Any], masked: set[str]) -> dict[str, Any]:
    return as_ours(structure, {k: None if k in masked else v for k, v in said.items()})


def _is_wrong(column: Column, value: Any) -> bool:
    """Whether what it says of such a value is known to be wrong."""
    match column.type:
        case "time":
            return (
                value is not None and value[0] == "-" and value.rpartition(".")[2].strip("0") != ""
            )
        case "enum" | "set":
            return any(not member.isascii() for member in column.members)
        case "json":
            return value == "null" or '"base64:' in (value or "")
        case _:
            return column.charset in UNREAD_CHARSETS
