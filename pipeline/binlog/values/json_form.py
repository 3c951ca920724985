"""The numbers of MySQL's binary JSON, and what its readers are held to.

Belongs here: constants that the compiled code and the tests' reference share. Does not: code.

Sources in MySQL's source: JSONB_TYPE_… in sql-common/json_binary.cc, enum_field_types in
include/field_types.h, JSON_DOCUMENT_MAX_DEPTH in sql-common/json_syntax_check.cc.
"""

from __future__ import annotations

from typing import Final

SMALL_OBJECT, LARGE_OBJECT, SMALL_ARRAY, LARGE_ARRAY = range(4)
LITERAL, INT16, UINT16, INT32, UINT32, INT64, UINT64, DOUBLE, STRING = range(4, 13)
OPAQUE: Final = 15
"""Types of values; an opaque one is of a type that only SQL has:"""

TIMESTAMP, DATE, TIME, DATETIME, DECIMAL, VAR_STRING = 7, 10, 11, 12, 246, 253

NULL, TRUE, FALSE = range(3)
"""Literals."""

LENGTH_BYTES: Final = 5
"""At most, of a length before a string: seven bits a byte, the lowest first."""

MOST_PRECISION, MOST_SCALE = 81, 30
"""Not 65: the digits before the point are counted in whole groups of nine here."""

MOST_HOURS: Final = 838
MONTHS: Final = 13
"""A packed date counts them: 13 * year + month."""

MOST_DEPTH: Final = 100
"""Objects and arrays within one another."""

TEXT_FACTOR, TEXT_EXTRA = 8, 64
"""More than `TEXT_FACTOR * bytes + TEXT_EXTRA` of text means that values overlap, which
makes a small document endless. What grows most is a control character, to six bytes."""

SLACK: Final = 64
"""Room that compiled code wants beyond what it writes: it stores more than it keeps."""

FULL, DAMAGED = -1, -2
"""Instead of a place: the text has no room; the bytes are no document."""
