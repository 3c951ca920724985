"""Two accounts of one table, a statement's and the server's, in the form both can give.

Belongs here: what information_schema prints otherwise than a statement wrote it. Does not:
what differs then (`compare`).

Expressions are the server's own print of them, on either server another; so only whether
there is one counts, and CURRENT_TIMESTAMP, which has one form.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from pipeline.schema.compare import aligned, differences
from pipeline.schema.model import (
    ColumnSchema,
    Default,
    ExpressionDefault,
    KeySchema,
    LiteralDefault,
    TableSchema,
)

_NOW: Final = re.compile(
    r"(?:current_timestamp|now|localtime|localtimestamp)(?:\((?P<digits>\d*)\))?", re.IGNORECASE
)
_THERE: Final = "…"


def comparable(table: TableSchema) -> TableSchema:
    """The table as far as both can tell; one that was read is as one that was followed."""
    return replace(
        table,
        columns=tuple(map(_column, table.columns)),
        keys=tuple(map(_key, table.keys)),
        row_format=None,
        # MySQL does not show it for PARTITION BY KEY () without a column.
        partitioned=False,
    )


def disagreements(history: TableSchema, server: TableSchema) -> Sequence[str]:
    """What the server has otherwise than the history, each as "what: history, server"."""
    return differences(comparable(history), aligned(comparable(server), history))


def _column(column: ColumnSchema) -> ColumnSchema:
    generated = None if column.generated is None else _THERE
    return replace(column, default=_default(column), generated=generated)


def _default(column: ColumnSchema) -> Default | None:
    match column.default:
        case ExpressionDefault(text):
            return _expression(text)
        case LiteralDefault(text) if column.type == "float":
            return LiteralDefault(repr(_as_float(text)))
    return column.default


def _as_float(text: str) -> float:
    """What a FLOAT keeps of a number: 32 bits."""
    return float(struct.unpack("f", struct.pack("f", float(text)))[0])


def _expression(text: str) -> ExpressionDefault:
    match = _NOW.fullmatch(text)
    if match is None:
        return ExpressionDefault(_THERE)
    digits = (match["digits"] or "").lstrip("0")
    return ExpressionDefault(f"CURRENT_TIMESTAMP({digits})" if digits else "CURRENT_TIMESTAMP")


def _key(key: KeySchema) -> KeySchema:
    parts = tuple(
        part if part.expression is None else replace(part, expression=_THERE) for part in key.parts
    )
    return replace(key, parts=parts, generated=False)
