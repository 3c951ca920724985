"""Where mysql-replication is known to err, and how an image of its differs from the engine's.

Belongs here: what a fault is. Does not: how it is asked (`oracle`), verdicts (`test_values`).
"""

from __future__ import annotations

from typing import Any, Final

from lockstep.pipeline.values.table import Column, TableStructure
from tests.mysql.logged import Logged, Rows
from tests.mysql.oracle import as_ours, comparable

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


def unreadable(log: Logged) -> bool:
    """Whether it cannot read the table at all."""
    assert log.structure is not None
    columns = log.structure.columns
    if any(column.type == "vector" or column.charset in WRONG_ENDED_CHARSETS for column in columns):
        return True
    latin = [column.name for column in columns if column.charset == "latin1"]
    return any(
        NO_PYTHON_LATIN1 & set(row[name] or "") for row in log.rows("insert") for name in latin
    )


def differences(log: Logged, theirs: dict[str, Rows]) -> list[tuple[str, Any, Any]]:
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
    masked = {column.name for column in structure.columns if _is_wrong(column, row[column.name])}
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
