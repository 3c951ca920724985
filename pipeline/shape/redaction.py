"""The text of a statement without the values in it.

Belongs here: which tokens of a statement are values. Does not: whose statements are redacted.

Of a table that hides columns, values of theirs stand in DEFAULT, in the members of ENUM and SET,
in comments, generated columns, CHECK constraints, bounds of partitions, and in a CREATE TABLE …
SELECT. Which literal belongs to which column, a statement does not always tell. So all of them go,
and all comments, but for the numbers that are part of a type or of a key (`varchar(40)`,
`decimal(10, 2)`, `key (name(8))`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from pipeline.schema.context import StatementContext
from pipeline.schema.statements.reader import CannotRead, Token, tokens

REDACTED: Final = "'***'"
"""What stands for a value."""

_MARKS: Final = re.compile(r"\s*(?:/\*M?!\d*|\*/)\s*")

_TYPE_WORDS: Final = """
TINYINT SMALLINT MEDIUMINT MIDDLEINT INT INTEGER BIGINT INT1 INT2 INT3 INT4 INT8 BIT YEAR
DECIMAL DEC NUMERIC FIXED NUMBER FLOAT FLOAT4 FLOAT8 DOUBLE REAL PRECISION TIME DATETIME
TIMESTAMP CHAR CHARACTER VARYING VARCHAR VARCHARACTER VARCHAR2 NCHAR NVARCHAR BINARY VARBINARY
TEXT BLOB CLOB RAW VECTOR
"""
_TYPES: Final = frozenset(_TYPE_WORDS.split())
"""Words behind which numbers in parentheses are lengths and digits."""

_FIRST: Final = frozenset({"DOUBLE", "REAL", "FLOAT", "NATIONAL", "CHAR", "CHARACTER", "NCHAR"})
"""First words of types that have two."""

_BEFORE_COLUMN: Final = frozenset({"ADD", "COLUMN", "MODIFY", "EXISTS"})
_CHANGES: Final = frozenset({"CHANGE", "COLUMN", "EXISTS"})
"""Words before a column that is defined, and before the name that it had."""

_NO_COLUMN: Final = frozenset(
    {"SELECT", "ALL", "DISTINCT", "DISTINCTROW", "NOT", "BINARY", "CASE", "INTERVAL"}
)
"""Words behind which a type's name is a function's: `(not char(65))`."""

_KEYS: Final = frozenset({"KEY", "INDEX", "UNIQUE", "FULLTEXT", "SPATIAL"})
_MOMENTS: Final = frozenset(
    {"CURRENT_TIMESTAMP", "NOW", "LOCALTIME", "LOCALTIMESTAMP", "CURRENT_TIME", "SYSDATE"}
)
"""Functions whose argument is how many digits a second has."""


def redacted(text: str, context: StatementContext) -> str:
    """The statement with `'***'` for each value. Of a text that cannot be read nothing stays."""
    try:
        found = list(tokens(text, context))
    except CannotRead:
        return REDACTED
    values = {*_values(found)}
    parts, at = list[str](), 0
    for number, token in enumerate(found):
        kept = REDACTED if number in values else text[token.start : token.end]
        parts += (_between(text[at : token.start]), kept)
        at = token.end
    return "".join((*parts, _between(text[at:])))


def _between(text: str) -> str:
    """Blanks, and the marks of an executable comment; other comments go."""
    blanks = text.isspace() or not text
    return text if blanks or _MARKS.fullmatch(text) else " "


def _values(found: Sequence[Token]) -> Iterator[int]:
    """Indexes of the literals that are no lengths."""
    lengths = {*_lengths(found)}
    for number, token in enumerate(found):
        if token.kind in ("string", "hex", "bits") or (
            token.kind == "number" and number not in lengths
        ):
            yield number


def _lengths(found: Sequence[Token]) -> Iterator[int]:
    """Indexes of the numbers that stand alone, or in pairs, in parentheses behind a type, and alone
    behind a column of a key or a function of the clock."""
    opened: list[int] = []
    for number, token in enumerate(found):
        if token.text == ")" and token.kind == "symbol" and opened:
            opened.pop()
        if token.kind != "symbol" or token.text != "(":
            continue
        inside = found[number + 1 : number + 5]
        shape = "".join("n" if one.kind == "number" else one.text for one in inside)
        of_type = _is_type(found, number - 1)
        if shape.startswith("n)") and (
            of_type
            or _keyword(found, number - 1) in _MOMENTS
            or (opened and _is_key_part(found, number - 1, opened[-1]))
        ):
            yield number + 1
        elif shape.startswith("n,n)") and of_type:
            yield from (number + 1, number + 3)
        opened.append(number)


def _is_type(found: Sequence[Token], at: int) -> bool:
    """Whether the word there is the type of a column that is defined, or that CAST makes. Most
    types are also functions: `char(65)`."""
    if _keyword(found, at) not in _TYPES:
        return False
    at -= 1
    while _keyword(found, at) in _FIRST:
        at -= 1
    if _keyword(found, at) == "AS":
        return True
    if not _is_name(found, at) or _keyword(found, at) in _NO_COLUMN:
        return False
    if _begins(found, at) or _keyword(found, at - 1) in _BEFORE_COLUMN:
        return True
    return _is_name(found, at - 1) and _keyword(found, at - 2) in _CHANGES


def _is_key_part(found: Sequence[Token], at: int, opened: int) -> bool:
    """Whether a column of a key stands there, in the parentheses that are opened at `opened`."""
    if not _is_name(found, at) or not _begins(found, at):
        return False
    before = opened - 1
    if _keyword(found, before - 1) == "USING":
        before -= 2
    if _keyword(found, before) in _KEYS:
        return True
    if not _is_name(found, before):
        return False
    if _keyword(found, before - 1) in _KEYS | {"EXISTS"}:
        return True
    if _keyword(found, 0) != "CREATE" or not _KEYS & {one.keyword for one in found[1:4]}:
        return False
    qualified = before > 1 and found[before - 1].text == "."
    return _keyword(found, before - (3 if qualified else 1)) == "ON"


def _begins(found: Sequence[Token], at: int) -> bool:
    """Whether an element of a list begins there."""
    return at > 0 and found[at - 1].kind == "symbol" and found[at - 1].text in "(,"


def _keyword(found: Sequence[Token], at: int) -> str:
    return found[at].keyword if at >= 0 else ""


def _is_name(found: Sequence[Token], at: int) -> bool:
    return at >= 0 and found[at].is_name
