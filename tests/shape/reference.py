"""Shapes row by row, in plain Python: what the product is judged by.

Values are Python's: int, Decimal, float, str, bytes, date, datetime (aware for a TIMESTAMP), bool,
and the text of a TIME. Nothing here is imported from the product but values' names.
"""

from __future__ import annotations

import hashlib
import hmac
import struct
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal
from fnmatch import fnmatchcase
from typing import Any

Row = Mapping[str, Any]
Truth = bool | None


def canonical_text(kind: str, value: Any) -> bytes:
    """The text that is hashed."""
    if isinstance(value, bytes):
        return value.rstrip(b"\0") if kind == "binary" else value
    return _text(kind, value).encode()


def _text(kind: str, value: Any) -> str:
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, float):
        if kind == "float":
            value = _shortest(value)
        return "0" if value == 0 else _plain(f"{Decimal(repr(value)):f}")
    if isinstance(value, Decimal):
        return "0" if value == 0 else _plain(f"{value:f}")
    if isinstance(value, datetime):
        zone = "Z" if value.tzinfo else ""
        moment = value.astimezone(UTC) if value.tzinfo else value
        text = f"{moment:%Y-%m-%d %H:%M:%S}".rjust(19, "0")
        return text + (f".{moment.microsecond:06}".rstrip("0") if moment.microsecond else "") + zone
    if isinstance(value, date):
        return value.isoformat()
    if kind == "time":
        return _plain(value)
    return str(value)


def _plain(text: str) -> str:
    return text.rstrip("0").rstrip(".") if "." in text else text


def _shortest(value: float) -> float:
    """The double of the shortest digits that a FLOAT reads back from."""
    for digits in range(1, 10):
        found = float(f"{value:.{digits}g}")
        if struct.unpack("f", struct.pack("f", found))[0] == value:
            return found
    return value


def hashed(key: bytes, kind: str, value: Any, *, lower: bool = False) -> str | None:
    if value is None:
        return None
    text = canonical_text(kind, value.lower() if lower else value)
    return hmac.new(key, text, hashlib.sha256).hexdigest()


def masked(kind: str, keep: int, text: str | None) -> str | None:
    if text is None:
        return None
    if len(text) <= keep:
        return "***"
    return text[:keep] + "***" if kind == "first" else "***" + text[-keep:]


def microseconds(text: str | None) -> int | None:
    if text is None:
        return None
    hours, minutes, seconds = text.lstrip("-").split(":")
    size = (int(hours) * 60 + int(minutes)) * 60_000_000 + int(Decimal(seconds) * 1_000_000)
    return -size if text.startswith("-") else size


def uuid_text(value: bytes | None) -> str | None:
    return None if value is None else str(uuid.UUID(bytes=value))


# -- events --------------------------------------------------------------------------------------

Event = tuple[str, Row | None, Row | None]
"""insert, update or delete; the row before, the row after."""


def followed(
    events: Sequence[Event],
    taken: Callable[[Row], Truth],
    shown: Callable[[Row], Row],
    *,
    drop_equal: bool,
) -> list[tuple[int, str, Row]]:
    """The images of a changelog, each with its event's index and kind. `drop_equal`: an update
    that shows the same before and after is none."""
    images: list[tuple[int, str, Row]] = []
    for number, (_, before, after) in enumerate(events):
        was = before is not None and taken(before) is True
        comes = after is not None and taken(after) is True
        old = shown(before) if was and before is not None else None
        new = shown(after) if comes and after is not None else None
        if old is not None and new is not None:
            if old != new or not drop_equal:
                images += [(number, "update_preimage", old), (number, "update_postimage", new)]
        elif old is not None:
            images.append((number, "delete", old))
        elif new is not None:
            images.append((number, "insert", new))
    return images


# -- tables --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Settings:
    """What lockstep.toml says of a table, in plain values: patterns of columns, each in one list
    or dict. `hashed`: whether in lower case; `masks`, `types`: as they are written. `rows`: whether
    a row is taken."""

    exclude: Sequence[str] = ()
    include: Sequence[str] | None = None
    hashed: Mapping[str, bool] = field(default_factory=dict)
    masks: Mapping[str, str] = field(default_factory=dict)
    types: Mapping[str, str] = field(default_factory=dict)
    rows: Callable[[Row], Truth] | None = None

    def left_out(self, column: str) -> bool:
        included = self.include is None or _any(self.include, column)
        return _any(self.exclude, column) or not included

    def hides(self, column: str) -> bool:
        return self.left_out(column) or _any((*self.hashed, *self.masks), column)


@dataclass(frozen=True)
class Of:
    """A column as the server tells it: its type, and the digits behind a decimal's point or a
    second's."""

    kind: str
    digits: int = 0


def table(settings: Settings, key: bytes, columns: Mapping[str, Of], rows: Sequence[Row]) -> Any:
    """What is shown of a table with these rows."""
    taken = [row for row in rows if settings.rows is None or settings.rows(row) is True]
    return [
        {
            name: shown(settings, key, name, of, row[name])
            for name, of in columns.items()
            if not settings.left_out(name)
        }
        for row in taken
    ]


def shown(settings: Settings, key: bytes, name: str, of: Of, value: Any) -> Any:
    """What is shown of one value."""
    for pattern, lower in settings.hashed.items():
        if _any((pattern,), name):
            return hashed(key, of.kind, value, lower=lower)
    for pattern, mask in settings.masks.items():
        if _any((pattern,), name):
            return _mask(mask, of, value)
    for pattern, to in settings.types.items():
        if _any((pattern,), name) and value is not None:
            return _converted(to, of, value)
    return value


def _converted(to: str, of: Of, value: Any) -> Any:
    match to:
        case "boolean":
            return bool(value)
        case "uuid":
            return value.lower() if isinstance(value, str) else uuid_text(value)
        case "microseconds":
            return microseconds(value)
        case _:
            return printed(of, value)


def _mask(mask: str, of: Of, value: Any) -> Any:
    kind, _, count = mask.partition(":")
    if kind == "null" or value is None:
        return None
    if kind == "year":
        return value.year
    return masked(kind, int(count), printed(of, value))


def printed(of: Of, value: Any) -> str:
    """What SELECT prints."""
    if isinstance(value, Decimal):
        return f"{value:.{of.digits}f}"
    if isinstance(value, datetime):
        text = f"{value:%Y-%m-%d %H:%M:%S.%f}"
        return text[: 19 + (of.digits + 1 if of.digits else 0)]
    return str(value)


def _any(patterns: Sequence[str], name: str) -> bool:
    return any(fnmatchcase(name.lower(), one.lower()) for one in patterns)
