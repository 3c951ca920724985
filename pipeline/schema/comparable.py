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
    KeyPart,
    KeySchema,
    LiteralDefault,
    TableSchema,
)

_NOW: Final = re.compile(
    r"(?:current_timestamp|now|localtime|localtimestamp)(?:\((?P<digits>\d*)\))?", re.IGNORECASE
)
_THERE: Final = "…"
_CUT: Final = frozenset(767 // width for width in (1, 2, 3, 4))
"""Characters of one to four bytes that 767 bytes hold. All count for each column: an index keeps
its number of characters when its column gets another character set."""


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
    theirs = aligned(comparable(server), history)
    return differences(comparable(history), _unshortened(theirs, history))


def _unshortened(server: TableSchema, history: TableSchema) -> TableSchema:
    """Return the server's table, with the history's prefixes where `innodb_large_prefix` explains
    that its own are shorter.

    While that global variable of MySQL 5.7 is OFF, each statement of a session without strict
    mode that makes a table's indexes cuts parts of more than 767 bytes, in every row format. No
    log has its value. A UNIQUE is refused instead, so no row is told apart by such a prefix.
    """
    known = {key.name.lower(): key for key in history.keys if key.kind == "index"}
    keys = []
    for key in server.keys:
        ours = known.get(key.name.lower())
        if ours is not None and len(ours.parts) == len(key.parts):
            key = replace(key, parts=tuple(map(_longer, key.parts, ours.parts)))
        keys.append(key)
    return replace(server, keys=tuple(keys))


def _longer(server: KeyPart, history: KeyPart) -> KeyPart:
    if server.prefix is None or server.prefix not in _CUT:
        return server
    longer = history.prefix is None or history.prefix > server.prefix
    return replace(server, prefix=history.prefix) if longer else server


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
