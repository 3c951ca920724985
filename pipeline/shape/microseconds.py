"""TIME as a number of microseconds.

In the lake a TIME is the text that MySQL prints (`pipeline.schema.types`), from -838:59:59.000000
to 838:59:59.000000, with two or three digits for hours and the column's fractional digits.
"""

from __future__ import annotations

import re
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

_PARTS: Final = (
    r"^(?P<sign>-?)(?P<hours>\d{1,3}):(?P<minutes>\d\d):(?P<seconds>\d\d)"
    r"(?:\.(?P<fraction>\d{1,6}))?$"
)


def microseconds(times: pa.Array) -> pa.Int64Array:
    """Return the microseconds of each text of a TIME; NULL for NULL."""
    parts = pc.extract_regex(times, _PARTS)
    names = ("hours", "minutes", "seconds")
    hours, minutes, seconds = (pc.struct_field(parts, name).cast(pa.int64()) for name in names)
    fraction = pc.utf8_rpad(pc.struct_field(parts, "fraction"), 6, "0").cast(pa.int64())
    whole = pc.add(pc.multiply(pc.add(pc.multiply(hours, 60), minutes), 60), seconds)
    size = pc.add(pc.multiply(whole, 1_000_000), fraction)
    return pc.if_else(pc.equal(pc.struct_field(parts, "sign"), "-"), pc.negate(size), size)


def microseconds_of(text: str) -> int:
    """Return the microseconds of one text; raise ValueError if it is not a TIME."""
    match = re.match(_PARTS, text, re.ASCII)
    if match is None or int(match["minutes"]) > 59 or int(match["seconds"]) > 59:
        raise ValueError(text)
    whole = (int(match["hours"]) * 60 + int(match["minutes"])) * 60 + int(match["seconds"])
    size = whole * 1_000_000 + int((match["fraction"] or "").ljust(6, "0"))
    return -size if match["sign"] else size
