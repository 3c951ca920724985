"""A condition that a person gives for some rows of a table: what may be sent, and what it bounds.

Belongs here: reading its text as the server would, and the limits that it sets to columns. Does
not: asking the server, which alone knows which rows it holds for (`resources.mysql.chunks`).

The text stands in parentheses behind WHERE, in a transaction that writes nothing. What could end
the parentheses or lock rows is refused before it is sent.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from pipeline.errors import ConditionRefused
from pipeline.schema.context import ServerDialect, StatementContext
from pipeline.schema.statements.lexer import CannotRead, Token, tokens

HINT: Final = (
    "give what stands behind WHERE, on the table's own columns: "
    "`lockstep snapshot shop.orders --where 'id between 1 and 1000'`"
)
_WORDS: Final = {
    "SELECT": "another query",
    "WITH": "another query",
    "TABLE": "another query",
    "VALUES": "another query",
}
_UNBOUNDED: Final = frozenset({"OR", "XOR", "CASE"})
_MIRRORED: Final = {"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_MOMENT: Final = re.compile(r"\d{4}-\d\d-\d\d(?: \d\d:\d\d:\d\d(?:\.\d{1,6})?)?")

Literal = int | datetime


@dataclass(frozen=True, slots=True)
class Limit:
    """Every row for which the condition holds has a value of `column` from `low` to `high`, both
    included, None without end; a row whose value is not known may be one too."""

    column: str
    low: Literal | None = None
    high: Literal | None = None


@dataclass(frozen=True, slots=True)
class Condition:
    """`text` as it is sent; `limits`: what follows from it for sure, mostly less than it says."""

    text: str
    limits: tuple[Limit, ...] = ()


def read_condition(text: str, facts: ServerDialect | None = None) -> Condition:
    """The text of a condition, by the rules of a session with sql_mode ''. `ConditionRefused` for
    what is none, or could be more than one."""
    stripped = text.strip()
    context = StatementContext(facts=facts or ServerDialect())
    try:
        found = list(tokens(stripped, context))
    except CannotRead as error:
        raise _refused(f"it cannot be read: {error}") from error
    _require_plain(stripped, found)
    return Condition(stripped, tuple(_limits(found)))


def _require_plain(text: str, found: Sequence[Token]) -> None:
    """One expression: no comment, no end of a statement, parentheses that match, no query."""
    if not found:
        raise _refused("it is empty")
    if "\0" in text:
        raise _refused("it has a NUL character")
    ends = [0, *(token.end for token in found)]
    begins = [*(token.start for token in found), len(text)]
    if any(text[end:begin].strip() for end, begin in zip(ends, begins, strict=True)):
        raise _refused("it has a comment")
    depth = 0
    for token in found:
        if token.keyword in _WORDS:
            raise _refused(f"it has {_WORDS[token.keyword]} in it ({token.keyword})")
        if token.kind == "variable" or (token.text == ":=" and token.kind == "symbol"):
            raise _refused("it has a variable")
        if token.kind != "symbol":
            continue
        if token.text in (";", "?"):
            raise _refused(f"it has a {'semicolon' if token.text == ';' else 'placeholder (?)'}")
        depth += (token.text == "(") - (token.text == ")")
        if depth < 0:
            break
    if depth:
        raise _refused("its parentheses do not match")


def _refused(why: str) -> ConditionRefused:
    return ConditionRefused(f"--where is not one condition: {why}", hint=HINT)


# -- what it bounds ------------------------------------------------------------------------------


def _limits(found: Sequence[Token]) -> Iterator[Limit]:
    """Of parts that AND joins, those that compare one column with literals. What is not
    understood bounds nothing, and neither does any part of what could be an alternative."""
    if any(token.keyword in _UNBOUNDED or _is(token, "||") for token in _outside(found)):
        return
    at = 0
    while at < len(found):
        told = _compared(found, at)
        if told is not None and _ends(found, told[1]):
            yield told[0]
            at = told[1]
        while at < len(found) and not _joins(found[at]):
            if found[at].keyword == "BETWEEN":
                return  # its AND joins no parts
            at = _behind(found, at)
        at += 1


def _outside(found: Sequence[Token]) -> Iterator[Token]:
    """Those that stand in no parentheses."""
    at = 0
    while at < len(found):
        yield found[at]
        at = _behind(found, at)


def _behind(found: Sequence[Token], at: int) -> int:
    """Behind a token, or behind all that stands in the parentheses that it opens."""
    depth = 0
    while True:
        depth += _is(found[at], "(") - _is(found[at], ")")
        at += 1
        if not depth:
            return at


def _compared(found: Sequence[Token], at: int) -> tuple[Limit, int] | None:
    """A comparison that begins there, and where it ends."""
    if (told := _literal(found, at)) is not None:
        value, after = told
        sign = _sign(found, after)
        if sign is None or after + 1 >= len(found) or not found[after + 1].is_name:
            return None
        return _limit(found[after + 1].text, _MIRRORED[sign], value), after + 2
    if not found[at].is_name or at + 1 >= len(found):
        return None
    column, after = found[at].text, at + 1
    if (sign := _sign(found, after)) is not None:
        told = _literal(found, after + 1)
        return None if told is None else (_limit(column, sign, told[0]), told[1])
    if found[after].keyword == "BETWEEN":
        return _between(found, column, after + 1)
    if found[after].keyword == "IN" and _is_at(found, after + 1, "("):
        return _among(found, column, after + 2)
    return None


def _between(found: Sequence[Token], column: str, at: int) -> tuple[Limit, int] | None:
    low = _literal(found, at)
    if low is None or low[1] >= len(found) or found[low[1]].keyword != "AND":
        return None
    high = _literal(found, low[1] + 1)
    return None if high is None else (Limit(column, low[0], high[0]), high[1])


def _among(found: Sequence[Token], column: str, at: int) -> tuple[Limit, int] | None:
    values: list[Literal] = []
    while (told := _literal(found, at)) is not None:
        values.append(told[0])
        at = told[1] + 1
        if _is_at(found, told[1], ")"):
            if len({type(value) for value in values}) > 1:
                return None
            return Limit(column, min(values), max(values)), at
        if not _is_at(found, told[1], ","):
            return None
    return None


def _limit(column: str, sign: str, value: Literal) -> Limit:
    return Limit(
        column,
        None if sign in ("<", "<=") else value,
        None if sign in (">", ">=") else value,
    )


def _literal(found: Sequence[Token], at: int) -> tuple[Literal, int] | None:
    """A whole number, or a date as ISO 8601 writes it, and where it ends."""
    negative = _is_at(found, at, "-")
    at += negative
    if at >= len(found):
        return None
    token = found[at]
    if token.kind == "number" and token.text.isascii() and token.text.isdecimal():
        return (-int(token.text) if negative else int(token.text)), at + 1
    if negative or token.kind != "string" or token.charset is not None:
        return None
    if _MOMENT.fullmatch(token.text) is None:
        return None
    try:
        return datetime.fromisoformat(token.text), at + 1
    except ValueError:
        return None


def _sign(found: Sequence[Token], at: int) -> str | None:
    if at < len(found) and found[at].kind == "symbol" and found[at].text in _MIRRORED:
        return found[at].text
    return None


def _ends(found: Sequence[Token], at: int) -> bool:
    return at >= len(found) or _joins(found[at])


def _joins(token: Token) -> bool:
    return token.keyword == "AND" or _is(token, "&&")


def _is(token: Token, symbol: str) -> bool:
    return token.kind == "symbol" and token.text == symbol


def _is_at(found: Sequence[Token], at: int, symbol: str) -> bool:
    return at < len(found) and _is(found[at], symbol)
