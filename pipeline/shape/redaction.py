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

_COMMENT_MARKS: Final = re.compile(r"\s*(?:/\*M?!\d*|\*/)\s*")

_TYPE_WORDS: Final = """
TINYINT SMALLINT MEDIUMINT MIDDLEINT INT INTEGER BIGINT INT1 INT2 INT3 INT4 INT8 BIT YEAR
DECIMAL DEC NUMERIC FIXED NUMBER FLOAT FLOAT4 FLOAT8 DOUBLE REAL PRECISION TIME DATETIME
TIMESTAMP CHAR CHARACTER VARYING VARCHAR VARCHARACTER VARCHAR2 NCHAR NVARCHAR BINARY VARBINARY
TEXT BLOB CLOB RAW VECTOR
"""
_TYPE_NAMES: Final = frozenset(_TYPE_WORDS.split())
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

_KEY_WORDS: Final = frozenset({"KEY", "INDEX", "UNIQUE", "FULLTEXT", "SPATIAL"})
_MOMENT_FUNCTIONS: Final = frozenset(
    {"CURRENT_TIMESTAMP", "NOW", "LOCALTIME", "LOCALTIMESTAMP", "CURRENT_TIME", "SYSDATE"}
)
"""Functions whose argument is a number of fractional digits."""


def redact_statement(text: str, context: StatementContext) -> str:
    """Return the statement with `'***'` instead of each value. Return only `'***'` if
    the text cannot be split into tokens."""
    try:
        token_list = list(tokens(text, context))
    except CannotRead:
        return REDACTED
    value_indexes = {*_value_indexes(token_list)}
    parts: list[str] = []
    at = 0
    for index, token in enumerate(token_list):
        shown_text = REDACTED if index in value_indexes else text[token.start : token.end]
        parts += (_between(text[at : token.start]), shown_text)
        at = token.end
    return "".join((*parts, _between(text[at:])))


def _between(text: str) -> str:
    """Return the text between two tokens if it consists of blanks or marks of
    executable comments; else a blank, since the text contains a comment."""
    is_blank = text.isspace() or not text
    return text if is_blank or _COMMENT_MARKS.fullmatch(text) else " "


def _value_indexes(token_list: Sequence[Token]) -> Iterator[int]:
    """Yield the indexes of the tokens that are values: literals, except lengths."""
    length_indexes = {*_length_indexes(token_list)}
    for index, token in enumerate(token_list):
        if token.kind in ("string", "hex", "bits") or (
            token.kind == "number" and index not in length_indexes
        ):
            yield index


def _length_indexes(token_list: Sequence[Token]) -> Iterator[int]:
    """Yield the indexes of the tokens that are lengths: one or two numbers in
    parentheses after a type, or one number after a column in a key or after a function
    such as NOW."""
    open_parentheses: list[int] = []
    for index, token in enumerate(token_list):
        if token.text == ")" and token.kind == "symbol" and open_parentheses:
            open_parentheses.pop()
        if token.kind != "symbol" or token.text != "(":
            continue
        inside = token_list[index + 1 : index + 5]
        pattern = "".join("n" if token.kind == "number" else token.text for token in inside)
        is_after_type = _is_type(token_list, index - 1)
        if pattern.startswith("n)") and (
            is_after_type
            or _keyword(token_list, index - 1) in _MOMENT_FUNCTIONS
            or (open_parentheses and _is_key_part(token_list, index - 1, open_parentheses[-1]))
        ):
            yield index + 1
        elif pattern.startswith("n,n)") and is_after_type:
            yield from (index + 1, index + 3)
        open_parentheses.append(index)


def _is_type(token_list: Sequence[Token], at: int) -> bool:
    """Return whether the token at index `at` is the type of a defined column or of a
    CAST. Most names of types are also functions: `char(65)`."""
    if _keyword(token_list, at) not in _TYPE_NAMES:
        return False
    at -= 1
    while _keyword(token_list, at) in _BEFORE_TYPE:
        at -= 1
    if _keyword(token_list, at) == "AS":
        return True
    if not _is_name(token_list, at) or _keyword(token_list, at) in _NO_COLUMN:
        return False
    if _begins_element(token_list, at) or _keyword(token_list, at - 1) in _BEFORE_COLUMN:
        return True
    return _is_name(token_list, at - 1) and _keyword(token_list, at - 2) in _BEFORE_OLD_NAME


def _is_key_part(token_list: Sequence[Token], at: int, open_parenthesis: int) -> bool:
    """Return whether the token at index `at` is a column in a key's list of columns.
    `open_parenthesis`: the index of the list's opening parenthesis."""
    if not _is_name(token_list, at) or not _begins_element(token_list, at):
        return False
    before = open_parenthesis - 1
    if _keyword(token_list, before - 1) == "USING":
        before -= 2
    if _keyword(token_list, before) in _KEY_WORDS:
        return True
    if not _is_name(token_list, before):
        return False
    if _keyword(token_list, before - 1) in _KEY_WORDS | {"EXISTS"}:
        return True
    # CREATE … INDEX name ON [database.]table (…)
    if _keyword(token_list, 0) != "CREATE" or not _KEY_WORDS & {
        token.keyword for token in token_list[1:4]
    }:
        return False
    qualified = before > 1 and token_list[before - 1].text == "."
    return _keyword(token_list, before - (3 if qualified else 1)) == "ON"


def _begins_element(token_list: Sequence[Token], at: int) -> bool:
    """Return whether the token at index `at` is the first of an element in a list."""
    return at > 0 and token_list[at - 1].kind == "symbol" and token_list[at - 1].text in "(,"


def _keyword(token_list: Sequence[Token], at: int) -> str:
    return token_list[at].keyword if at >= 0 else ""


def _is_name(token_list: Sequence[Token], at: int) -> bool:
    return at >= 0 and token_list[at].is_name
