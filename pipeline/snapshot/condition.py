"""A condition that a person gives for some rows of a table: what may be sent, and what it bounds.

The text stands in parentheses behind WHERE, in a transaction that writes nothing. What could end
the parentheses or lock rows is refused before it is sent.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from pipeline.errors import ConditionRefused
from pipeline.schema.context import ServerDialect, StatementContext
from pipeline.schema.statements.reader import CannotRead, Token, tokens

HINT: Final = (
    "give what stands behind WHERE, on the table's own columns: "
    "`lockstep reload shop.orders --where 'id between 1 and 1000' --reason …`"
)
_QUERIES: Final = frozenset({"SELECT", "WITH", "TABLE", "VALUES"})
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
        if token.keyword in _QUERIES:
            raise _refused(f"it has another query in it ({token.keyword})")
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


_Item = Token | int | datetime
"""A token, or the value of one that is a literal."""


def _limits(found: Sequence[Token]) -> Iterator[Limit]:
    """Of parts that AND joins, those that compare one column with literals. What is not
    understood bounds nothing, and neither does any part of what could be an alternative."""
    parts = list(_parts(_items(found)))
    if any(_is_unbounded(item) for part in parts for item in _outside(part)):
        return
    for part in parts:
        limit = _limit_of(part)
        if limit is not None:
            yield limit
        elif any(_keyword(item) == "BETWEEN" for item in _outside(part)):
            return  # its AND joins no parts


def _items(found: Sequence[Token]) -> Iterator[_Item]:
    """Numbers with the sign in front of them: after an operand it joins nothing that is
    understood."""
    at = 0
    while at < len(found):
        negative = _is(found[at], "-") and at + 1 < len(found) and found[at + 1].kind == "number"
        at += negative
        value = _literal(found[at], negative=negative)
        if value is None and negative:
            yield found[at - 1]
        yield found[at] if value is None else value
        at += 1


def _literal(token: Token, *, negative: bool) -> Literal | None:
    """A whole number, or a date as ISO 8601 writes it."""
    if token.kind == "number" and token.text.isascii() and token.text.isdecimal():
        return -int(token.text) if negative else int(token.text)
    if token.kind != "string" or token.charset is not None or not _MOMENT.fullmatch(token.text):
        return None
    try:
        return datetime.fromisoformat(token.text)
    except ValueError:
        return None


def _parts(items: Iterable[_Item]) -> Iterator[list[_Item]]:
    """What AND joins outside of parentheses, but for the AND of a BETWEEN."""
    part: list[_Item] = []
    depth, between = 0, False
    for item in items:
        depth += _is(item, "(") - _is(item, ")")
        joins = not depth and (_keyword(item) == "AND" or _is(item, "&&"))
        if joins and not between:
            yield part
            part = []
            continue
        if not depth:
            between = not joins if between else _keyword(item) == "BETWEEN"
        part.append(item)
    yield part


def _outside(part: Sequence[_Item]) -> Iterator[_Item]:
    depth = 0
    for item in part:
        depth += _is(item, "(") - _is(item, ")")
        if not depth:
            yield item


def _limit_of(part: Sequence[_Item]) -> Limit | None:
    match part:
        case [
            Token(is_name=True) as name,
            Token(kind="symbol") as sign,
            int() | datetime() as value,
        ]:
            return _compared(name.text, sign.text, value)
        case [
            int() | datetime() as value,
            Token(kind="symbol") as sign,
            Token(is_name=True) as name,
        ]:
            return _compared(name.text, _MIRRORED.get(sign.text, ""), value)
        case [
            Token(is_name=True) as name,
            Token(keyword="BETWEEN"),
            int() | datetime() as low,
            Token(keyword="AND"),
            int() | datetime() as high,
        ]:
            return Limit(name.text, low, high)
        case [
            Token(is_name=True) as name,
            Token(keyword="IN"),
            Token(kind="symbol", text="("),
            *listed,
            Token(kind="symbol", text=")"),
        ]:
            values = [item for item in listed[::2] if isinstance(item, int | datetime)]
            whole = 2 * len(values) == len(listed) + 1 and all(
                _is(one, ",") for one in listed[1::2]
            )
            if whole and len({type(value) for value in values}) == 1:
                return Limit(name.text, min(values), max(values))
    return None


def _compared(column: str, sign: str, value: Literal) -> Limit | None:
    if sign not in _MIRRORED:
        return None
    low, high = sign not in ("<", "<="), sign not in (">", ">=")
    return Limit(column, value if low else None, value if high else None)


def _is_unbounded(item: _Item) -> bool:
    return _keyword(item) in _UNBOUNDED or _is(item, "||")


def _keyword(item: _Item) -> str:
    return item.keyword if isinstance(item, Token) else ""


def _is(item: _Item, symbol: str) -> bool:
    return isinstance(item, Token) and item.kind == "symbol" and item.text == symbol
