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

_NO_TYPE: Final = frozenset({"IN", "THAN", "VALUES", "VALUE", "DEFAULT", "AS", "CHECK", "ALWAYS"})
"""Words before parentheses with values in them, and no length."""


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
    """Indexes of the numbers that stand alone, or in pairs, in parentheses behind a word."""
    for number, token in enumerate(found):
        if number == 0 or token.kind != "symbol" or token.text != "(":
            continue
        before = found[number - 1]
        if not before.is_name or before.keyword in _NO_TYPE:
            continue
        inside = found[number + 1 : number + 5]
        shape = "".join("n" if one.kind == "number" else one.text for one in inside)
        if shape.startswith("n)"):
            yield number + 1
        elif shape.startswith("n,n)"):
            yield from (number + 1, number + 3)
