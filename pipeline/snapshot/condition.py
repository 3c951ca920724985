"""Checks a condition that a person gives for rows of a table: whether it may be sent to
the server, and which limits it sets for columns.

The text is sent in parentheses after WHERE, in a read-only transaction. A text is
refused if it could close the parentheses or lock rows.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from textwrap import shorten
from typing import Final

from lockstep.pipeline.schema.context import ServerDialect, StatementContext
from lockstep.pipeline.schema.statements.reader import CannotRead, Token, tokens
from lockstep.pipeline.values.errors import ConditionRefused

HINT: Final = (
    "give a condition as after WHERE, on the table's own columns: "
    "`lockstep reload shop.orders --where 'id between 1 and 1000' --reason …`"
)
_QUERIES: Final = frozenset({"SELECT", "WITH", "TABLE", "VALUES"})
_UNBOUNDED: Final = frozenset({"OR", "XOR", "CASE"})
"""Words with which a row can meet a condition without meeting each of its parts."""
_SWAPPED: Final = {"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_MOMENT: Final = re.compile(r"\d{4}-\d\d-\d\d(?: \d\d:\d\d:\d\d(?:\.\d{1,6})?)?")

_MAX_SHORT_TEXT: Final = 160
"""Most characters of a condition in a sentence."""

Literal = int | datetime


@dataclass(frozen=True, slots=True)
class Limit:
    """A limit that a condition sets. In each row that meets the condition, the value of
    `column` is from `low` to `high`, both included (None: no limit), or it cannot be
    compared with them."""

    column: str
    low: Literal | None = None
    high: Literal | None = None


@dataclass(frozen=True, slots=True)
class RowCondition:
    """A condition on rows. `text`: the text that is sent. `limits`: the limits that
    were recognized in it; there may be others."""

    text: str
    limits: tuple[Limit, ...] = ()

    @property
    def short_text(self) -> str:
        """The text for a sentence: a list of hundreds of keys is cut off."""
        return shorten(self.text, _MAX_SHORT_TEXT, placeholder=" …")


def read_condition(text: str, facts: ServerDialect | None = None) -> RowCondition:
    """Return the condition in a text, which is read by the rules of sql_mode ''.
    `facts`: the server's SQL dialect. Raise ConditionRefused for a text that is not
    exactly one condition."""
    stripped = text.strip()
    context = StatementContext(facts=facts or ServerDialect())
    try:
        token_list = list(tokens(stripped, context))
    except CannotRead as error:
        raise _refused(f"it cannot be read: {error}") from error
    _require_plain(stripped, token_list)
    return RowCondition(stripped, tuple(_limits(token_list)))


def _require_plain(text: str, token_list: Sequence[Token]) -> None:
    """Raise ConditionRefused unless the text is one expression without comments,
    queries and variables. `token_list`: its tokens."""
    if not token_list:
        raise _refused("it is empty")
    if "\0" in text:
        raise _refused("it has a NUL character")
    ends = [0, *(token.end for token in token_list)]
    begins = [*(token.start for token in token_list), len(text)]
    if any(text[end:begin].strip() for end, begin in zip(ends, begins, strict=True)):
        raise _refused("it has a comment")
    depth = 0
    for token in token_list:
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


def _refused(reason: str) -> ConditionRefused:
    return ConditionRefused(f"--where is not one condition: {reason}", hint=HINT)


# -- limits ----------------------------------------------------------------------------


_Item = Token | int | datetime
"""A token, or the value of a literal token."""


def _limits(token_list: Sequence[Token]) -> Iterator[Limit]:
    """Yield the limits from the parts that AND joins. Only a comparison of a column
    with literals has a limit. If an OR may join parts, yield nothing."""
    parts = list(_parts(_items(token_list)))
    outside = (item for part in parts for item in _outside(part))
    if any(_keyword(item) in _UNBOUNDED or _is_symbol(item, "||") for item in outside):
        return
    for part in parts:
        limit = _limit_of(part)
        if limit is not None:
            yield limit
        elif any(_keyword(item) == "BETWEEN" for item in _outside(part)):
            return  # `_parts` may have mistaken its AND for one that joins parts


def _items(token_list: Sequence[Token]) -> Iterator[_Item]:
    """Yield tokens and values. A minus before a number becomes the number's sign, even
    in a subtraction: `_limit_of` accepts no part with arithmetic anyway."""
    minus: Token | None = None
    for token, following in zip(token_list, [*token_list[1:], None], strict=True):
        if _is_symbol(token, "-") and following is not None and following.kind == "number":
            minus = token
            continue
        value = _literal(token, negative=minus is not None)
        if value is None and minus is not None:
            yield minus
        yield token if value is None else value
        minus = None


def _literal(token: Token, *, negative: bool) -> Literal | None:
    """Return the value of a whole number, or of a date or time in ISO 8601; None for
    any other token."""
    if token.kind == "number" and token.text.isascii() and token.text.isdecimal():
        return -int(token.text) if negative else int(token.text)
    if token.kind != "string" or token.charset is not None or not _MOMENT.fullmatch(token.text):
        return None
    try:
        return datetime.fromisoformat(token.text)
    except ValueError:
        return None


def _parts(items: Iterable[_Item]) -> Iterator[list[_Item]]:
    """Yield the parts that AND joins, outside of parentheses. The AND of a BETWEEN
    joins no parts."""
    part: list[_Item] = []
    depth, is_in_between = 0, False
    for item in items:
        depth += _is_symbol(item, "(") - _is_symbol(item, ")")
        is_and = not depth and (_keyword(item) == "AND" or _is_symbol(item, "&&"))
        if is_and and not is_in_between:
            yield part
            part = []
            continue
        if is_and:
            is_in_between = False
        elif not depth and _keyword(item) == "BETWEEN":
            is_in_between = True
        part.append(item)
    yield part


def _outside(part: Sequence[_Item]) -> Iterator[_Item]:
    """Yield the items of a part that are outside of its parentheses."""
    depth = 0
    for item in part:
        depth += _is_symbol(item, "(") - _is_symbol(item, ")")
        if not depth:
            yield item


def _limit_of(part: Sequence[_Item]) -> Limit | None:
    """Return the limit of `column sign literal`, `literal sign column`, BETWEEN or IN;
    None for any other form."""
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
            return _compared(name.text, _SWAPPED.get(sign.text, ""), value)
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
            *list_items,
            Token(kind="symbol", text=")"),
        ]:
            values = [item for item in list_items[::2] if isinstance(item, int | datetime)]
            has_only_values = 2 * len(values) == len(list_items) + 1 and all(
                _is_symbol(item, ",") for item in list_items[1::2]
            )
            if has_only_values and len({type(value) for value in values}) == 1:
                return Limit(name.text, min(values), max(values))
    return None


def _compared(column: str, sign: str, value: Literal) -> Limit | None:
    if sign not in _SWAPPED:
        return None
    low, high = sign not in ("<", "<="), sign not in (">", ">=")
    return Limit(column, value if low else None, value if high else None)


def _keyword(item: _Item) -> str:
    return item.keyword if isinstance(item, Token) else ""


def _is_symbol(item: _Item, symbol: str) -> bool:
    return isinstance(item, Token) and item.kind == "symbol" and item.text == symbol
