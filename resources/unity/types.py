"""Columns in a Unity Catalog's own words.

Belongs here: its names of types. Does not: which type a column has (`pipeline.schema.types`).
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

from pipeline.catalog.values import EntryColumn

_NAMES: Final = {
    "tinyint": ("BYTE", "byte"),
    "smallint": ("SHORT", "short"),
    "int": ("INT", "integer"),
    "bigint": ("LONG", "long"),
    "float": ("FLOAT", "float"),
    "double": ("DOUBLE", "double"),
    "boolean": ("BOOLEAN", "boolean"),
    "date": ("DATE", "date"),
    "string": ("STRING", "string"),
    "binary": ("BINARY", "binary"),
    "timestamp": ("TIMESTAMP", "timestamp"),
    "timestamp_ntz": ("TIMESTAMP_NTZ", "timestamp_ntz"),
}
"""Spark's SQL name of a type → the catalog's, and the one in Spark's JSON."""

_TEXT: Final = ("STRING", "string")
"""What no table of MySQL has, in a mirror that somebody else made, is shown as."""

_DECIMAL: Final = re.compile(r"decimal\((\d+),(\d+)\)")
_ARRAY: Final = re.compile(r"array<(.+)>")


def column(one: EntryColumn, position: int) -> dict[str, Any]:
    """A column as the catalog's interface takes it; all are nullable, as in the mirror."""
    metadata = {"comment": one.comment} if one.comment else {}
    field = {"name": one.name, "type": _json(one.type), "nullable": True, "metadata": metadata}
    found: dict[str, Any] = {
        "name": one.name,
        "type_text": one.type,
        "type_json": json.dumps(field),
        "type_name": _name(one.type),
        "position": position,
        "nullable": True,
        "comment": one.comment,
    }
    decimal = _DECIMAL.fullmatch(one.type)
    if decimal is not None:
        found |= {"type_precision": int(decimal[1]), "type_scale": int(decimal[2])}
    return found


def _name(kind: str) -> str:
    if _DECIMAL.fullmatch(kind):
        return "DECIMAL"
    return "ARRAY" if _ARRAY.fullmatch(kind) else _NAMES.get(kind, _TEXT)[0]


def _json(kind: str) -> Any:
    array = _ARRAY.fullmatch(kind)
    if array is not None:
        return {"type": "array", "elementType": _json(array[1]), "containsNull": True}
    return kind if _DECIMAL.fullmatch(kind) else _NAMES.get(kind, _TEXT)[1]
