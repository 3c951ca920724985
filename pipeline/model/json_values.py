"""Conversion of values to JSON, for `--json`, for log lines, and for the facts of
decisions in the ledger.

Not here: which values an answer has (`lockstep.commands`); the JSON of structures in
the ledger, which leaves out defaults (`schema.model`).
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

_DECIMAL_PLACES: Final = 3
"""Decimal places to which floats and seconds are rounded."""


def to_json(value: Any) -> Any:
    """Return the value as `json.dumps` takes it: moments in ISO 8601, timedeltas in
    seconds, enums as their value, sets as sorted lists, mappings with the texts of
    their keys, and other objects as a dict of their attributes.

    The attributes are those that the class names in `json_keys`, in the form that
    `attributes` takes; without `json_keys`, the fields of a dataclass. An underscore at
    the end of a name (`from_`) is left out. Raise TypeError for an object that is not a
    dataclass and has no `json_keys`.
    """
    match value:
        case Enum():
            return value.value
        case None | bool() | int() | str():
            return value
        case float():
            return round(value, _DECIMAL_PLACES)
        case datetime():
            return value.isoformat()
        case timedelta():
            return round(value.total_seconds(), _DECIMAL_PLACES)
        case Mapping():
            return {str(name): to_json(part) for name, part in value.items()}
        case list() | tuple():
            return [to_json(part) for part in value]
        case frozenset() | set():
            return [to_json(part) for part in sorted(value)]
    if isinstance(value, _TEXTS):
        return str(value)
    parts = attributes(value, ", ".join(_keys(type(value))))
    return {name.rstrip("_"): to_json(part) for name, part in parts.items()}


def attributes(value: object, names: str) -> dict[str, Any]:
    """Return attributes of the value, by their names. For example, "start, end.at as
    place" returns `value.start` under the name `start`, and `value.end.at` under the
    name `place`, or None if `value.end` is None."""
    values = {}
    for name in names.split(", "):
        path, _, key = name.partition(" as ")
        part: Any = value
        for step in path.split("."):
            part = None if part is None else getattr(part, step)
        values[key or path] = part
    return values


def _keys(kind: type) -> tuple[str, ...]:
    keys: tuple[str, ...] | None = getattr(kind, "json_keys", None)
    if keys is not None:
        return keys
    if not is_dataclass(kind):
        raise TypeError(f"{kind.__name__} has no JSON")
    return tuple(field.name for field in fields(kind))
