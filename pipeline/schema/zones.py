"""The time zone of a session, by the name that its statements' events carry.

Belongs here: a name → a zone, where the name alone tells it. Does not: the server's own
zone, which SYSTEM stands for and no log names.
"""

from __future__ import annotations

import re
from datetime import UTC, timedelta, timezone, tzinfo
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

_OFFSET: Final = re.compile(r"(?P<sign>[+-])(?P<hours>\d\d?):(?P<minutes>\d\d)")


def fixed_zone(name: str) -> tzinfo | None:
    """A session's `time_zone` where it is an offset, the same all the year; None for others."""
    offset = _OFFSET.fullmatch(name)
    if offset is not None:
        minutes = int(offset["hours"]) * 60 + int(offset["minutes"])
        return timezone(timedelta(minutes=-minutes if offset["sign"] == "-" else minutes))
    return UTC if name == "UTC" else None


def zone_of(name: str) -> tzinfo | None:
    """A session's `time_zone`; None for SYSTEM, for none, and for what this machine does
    not know."""
    fixed = fixed_zone(name)
    if fixed is not None:
        return fixed
    try:
        return ZoneInfo(name) if "/" in name else None
    except (ZoneInfoNotFoundError, ValueError):
        return None
