"""Every value as JSON: what `--json` prints, what the log says, what the ledger keeps of decisions.

Not here: which values an answer has (the commands), structures in the ledger, which
leave out what is as by default (`schema.model_json`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime, timedelta
from enum import Enum
from pathlib import PurePath
from typing import Any, Final

from pipeline.catalog.values import EntryName
from pipeline.gtid import GtidSet
from pipeline.position import Coordinates, LogFile
from pipeline.table import TableName

_TEXTS: Final = (TableName, EntryName, LogFile, Coordinates, GtidSet, PurePath)
"""Values that are written as a person writes them."""

_DIGITS: Final = 3
"""Of a second, or of whatever a number with a fraction counts."""


def to_json(value: Any) -> Any:
    """Return the value as JSON has it: moments in ISO 8601, spans in seconds, enums by their value,
    a mapping by the texts of its keys, anything else by its parts.

    The parts of a dataclass are its fields. A class that says otherwise has `json_keys`: the names
    of all attributes that are shown, in order; of a name that Python reserves, with an underscore
    at its end (`from_`), JSON has the word. TypeError for a value of no such kind.
    """
    match value:
        case Enum():
            return value.value
        case None | bool() | int() | str():
            return value
        case float():
            return round(value, _DIGITS)
        case datetime():
            return value.isoformat()
        case timedelta():
            return round(value.total_seconds(), _DIGITS)
        case Mapping():
            return {str(name): to_json(part) for name, part in value.items()}
        case list() | tuple():
            return [to_json(part) for part in value]
        case frozenset() | set():
            return [to_json(part) for part in sorted(value)]
    if isinstance(value, _TEXTS):
        return str(value)
    return {name.rstrip("_"): to_json(getattr(value, name)) for name in _keys(type(value))}


def parts(value: object, *names: str) -> dict[str, Any]:
    """Return these attributes of the value by their names: a part of an answer. Several names may
    be one text, with ", " between them. "end.at as place": an attribute of an attribute, by another
    name; None where `end` is None."""
    found = {}
    for name in ", ".join(names).split(", "):
        path, _, called = name.partition(" as ")
        part: Any = value
        for step in path.split("."):
            part = None if part is None else getattr(part, step)
        found[called or path] = part
    return found


def _keys(kind: type) -> tuple[str, ...]:
    keys: tuple[str, ...] | None = getattr(kind, "json_keys", None)
    if keys is None and is_dataclass(kind):
        return tuple(field.name for field in fields(kind))
    if keys is None:
        raise TypeError(f"{kind.__name__} has no JSON")
    return keys
