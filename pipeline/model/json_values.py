"""Conversion of values to JSON, for `--json`, for log lines, and for the facts of
decisions in the ledger.

Not here: which values an answer has (the commands), structures in the ledger, whose
JSON leaves out defaults (`schema.model`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime, timedelta
from enum import Enum
from pathlib import PurePath
from typing import Any, Final

from lockstep.pipeline.catalog import EntryName
from lockstep.pipeline.values.gtid import GtidSet
from lockstep.pipeline.values.position import Coordinates, LogFile
from lockstep.pipeline.values.table import TableName

_TEXTS: Final = (TableName, EntryName, LogFile, Coordinates, GtidSet, PurePath)
"""Classes whose values are converted by `str`."""

_DIGITS: Final = 3
"""Decimal places to which numbers are rounded."""


def to_json(value: Any) -> Any:
    """Return the value as JSON: moments in ISO 8601, timedeltas in seconds, enums as
    their value, mappings with the texts of their keys, and other objects as a JSON
    object of their attributes.

    The attributes are the fields of a dataclass or, if the class has `json_keys`, the
    names listed there. An underscore at the end of a name (`from_`) is left out. Raise
    TypeError for any other value.
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


def attributes(value: object, *names: str) -> dict[str, Any]:
    """Return these attributes of the value, by their names. One text may hold several
    names, separated by ", ". "end.at as place" returns the attribute `at` of the
    attribute `end` under the name `place`; it is None if `end` is None."""
    values = {}
    for name in ", ".join(names).split(", "):
        path, _, key = name.partition(" as ")
        part: Any = value
        for step in path.split("."):
            part = None if part is None else getattr(part, step)
        values[key or path] = part
    return values


def _keys(kind: type) -> tuple[str, ...]:
    keys: tuple[str, ...] | None = getattr(kind, "json_keys", None)
    if keys is None and is_dataclass(kind):
        return tuple(field.name for field in fields(kind))
    if keys is None:
        raise TypeError(f"{kind.__name__} has no JSON")
    return keys
