"""The text of a statement without the values in it.

Values of hidden columns occur in DEFAULT, members of ENUM and SET, comments, generated
columns, CHECK constraints, bounds of partitions, and CREATE TABLE … SELECT. It is not
always clear to which column a literal belongs. So all literals and comments are
removed, except for numbers that are part of a type or a key (`varchar(40)`,
`decimal(10, 2)`, `key (name(8))`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from lockstep.pipeline.schema.context import StatementContext
from lockstep.pipeline.schema.statements.reader import CannotRead, Token, tokens

REDACTED: Final = "'***'"
"""Replaces each value."""

_MARKS: Final = re.compile(r"\s*(?:/\*M?!\d*|\*/)\s*")

_TYPE_WORDS: Final = """
TINYINT SMALLINT MEDIUMINT MIDDLEINT INT INTEGER BIGINT INT1 INT2 INT3 INT4 INT8 BIT YEAR
DECIMAL DEC NUMERIC FIXED NUMBER FLOAT FLOAT4 FLOAT8 DOUBLE REAL PRECISION TIME DATETIME
TIMESTAMP CHAR CHARACTER VARYING VARCHAR VARCHARACTER VARCHAR2 NCHAR NVARCHAR BINARY VARBINARY
TEXT BLOB CLOB RAW VECTOR
"""
_TYPES: Final = frozenset(_TYPE_WORDS.split())
"""Words of types after which numbers in parentheses are a length, or a precision and a
scale."""

_BEFORE_TYPE: Final = frozenset(
    {"DOUBLE", "REAL", "FLOAT", "NATIONAL", "CHAR", "CHARACTER", "NCHAR"}
)
"""First words of types with several words."""

_BEFORE_COLUMN: Final = frozenset({"ADD", "COLUMN", "MODIFY", "EXISTS"})
"""Words before the name of a column that the statement defines."""

_BEFORE_OLD_NAME: Final = frozenset({"CHANGE", "COLUMN", "EXISTS"})
"""Words before the old name of a column, which the new name and the type follow."""

_NO_COLUMN: Final = frozenset(
    {"SELECT", "ALL", "DISTINCT", "DISTINCTROW", "NOT", "BINARY", "CASE", "INTERVAL"}
)
"""Words after which the name of a type is a function instead: `(not char(65))`."""

_KEYS: Final = frozenset({"KEY", "INDEX", "UNIQUE", "FULLTEXT", "SPATIAL"})
_MOMENTS: Final = frozenset(
    {"CURRENT_TIMESTAMP", "NOW", "LOCALTIME", "LOCALTIMESTAMP", "CURRENT_TIME", "SYSDATE"}
)
"""Functions whose argument is a number of fractional digits."""


def redacted(text: str, context: StatementContext) -> str:
    """Return the statement with `'***'` instead of each value. Return only `'***'` if
    the text cannot be split into tokens."""
    try:
        words = list(tokens(text, context))
    except CannotRead:
        return REDACTED
    values = {*_values(words)}
    parts, at = list[str](), 0
    for number, token in enumerate(words):
        kept = REDACTED if number in values else text[token.start : token.end]
        parts += (_between(text[at : token.start]), kept)
        at = token.end
    return "".join((*parts, _between(text[at:])))


def _between(text: str) -> str:
    """Return the text between two tokens if it consists of blanks or marks of
    executable comments; else a blank, since the text contains a comment."""
    blanks = text.isspace() or not text
    return text if blanks or _MARKS.fullmatch(text) else " "


def _values(words: Sequence[Token]) -> Iterator[int]:
    """Yield the indexes of the tokens that are values: literals, except lengths."""
    lengths = {*_lengths(words)}
    for number, token in enumerate(words):
        if token.kind in ("string", "hex", "bits") or (
            token.kind == "number" and number not in lengths
        ):
            yield number


def _lengths(words: Sequence[Token]) -> Iterator[int]:
    """Yield the indexes of the tokens that are lengths: one or two numbers in
    parentheses after a type, or one number after a column in a key or after a function
    such as NOW."""
    opened: list[int] = []
    for number, token in enumerate(words):
        if token.text == ")" and token.kind == "symbol" and opened:
            opened.pop()
        if token.kind != "symbol" or token.text != "(":
            continue
        inside = words[number + 1 : number + 5]
        shape = "".join("n" if token.kind == "number" else token.text for token in inside)
        of_type = _is_type(words, number - 1)
        if shape.startswith("n)") and (
            of_type
            or _keyword(words, number - 1) in _MOMENTS
            or (opened and _is_key_part(words, number - 1, opened[-1]))
        ):
            yield number + 1
        elif shape.startswith("n,n)") and of_type:
            yield from (number + 1, number + 3)
        opened.append(number)


def _is_type(words: Sequence[Token], at: int) -> bool:
    """Return whether the token at index `at` is the type of a defined column or of a
    CAST. Most names of types are also functions: `char(65)`."""
    if _keyword(words, at) not in _TYPES:
        return False
    at -= 1
    while _keyword(words, at) in _BEFORE_TYPE:
        at -= 1
    if _keyword(words, at) == "AS":
        return True
    if not _is_name(words, at) or _keyword(words, at) in _NO_COLUMN:
        return False
    if _begins(words, at) or _keyword(words, at - 1) in _BEFORE_COLUMN:
        return True
    return _is_name(words, at - 1) and _keyword(words, at - 2) in _BEFORE_OLD_NAME


def _is_key_part(words: Sequence[Token], at: int, opened: int) -> bool:
    """Return whether the token at index `at` is a column in a key's list of columns.
    `opened`: the index of the list's opening parenthesis."""
    if not _is_name(words, at) or not _begins(words, at):
        return False
    before = opened - 1
    if _keyword(words, before - 1) == "USING":
        before -= 2
    if _keyword(words, before) in _KEYS:
        return True
    if not _is_name(words, before):
        return False
    if _keyword(words, before - 1) in _KEYS | {"EXISTS"}:
        return True
    # CREATE … INDEX name ON [database.]table (…)
    if _keyword(words, 0) != "CREATE" or not _KEYS & {token.keyword for token in words[1:4]}:
        return False
    qualified = before > 1 and words[before - 1].text == "."
    return _keyword(words, before - (3 if qualified else 1)) == "ON"


def _begins(words: Sequence[Token], at: int) -> bool:
    """Return whether the token at index `at` is the first of an element in a list."""
    return at > 0 and words[at - 1].kind == "symbol" and words[at - 1].text in "(,"


def _keyword(words: Sequence[Token], at: int) -> str:
    return words[at].keyword if at >= 0 else ""


def _is_name(words: Sequence[Token], at: int) -> bool:
    return at >= 0 and words[at].is_name
