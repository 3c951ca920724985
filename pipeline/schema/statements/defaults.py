"""What may stand behind DEFAULT and ON UPDATE.

Belongs here: literals, CURRENT_TIMESTAMP by all its names, expressions as text. What a
literal comes to in its column is `pipeline.schema.evolving.literals`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from pipeline.schema.statements.lexer import CannotRead, Token
from pipeline.schema.statements.reader import StatementReader
from pipeline.schema.statements.written import Computed, Constant

_NOW: Final = ("CURRENT_TIMESTAMP", "NOW", "LOCALTIME", "LOCALTIMESTAMP")
_LITERALS: Final = frozenset({"string", "number", "hex", "bits"})
_ATTRIBUTES: Final = frozenset(
    {"NOT", "NULL", "ON", "AUTO_INCREMENT", "UNIQUE", "PRIMARY", "KEY", "COMMENT", "COLLATE"}
    | {"CHECK", "REFERENCES", "INVISIBLE", "FIRST", "AFTER", "GENERATED", "AS", "WITH"}
    | {"WITHOUT", "CONSTRAINT", "COMPRESSED", "REF_SYSTEM_ID"}
)
"""Words that end an expression without parentheses, which MariaDB allows."""

_MOMENTS: Final = ("DATE", "TIME", "TIMESTAMP")


def read_default(reader: StatementReader) -> Constant | Computed:
    """Behind the word DEFAULT."""
    first = reader.at
    found = _simple(reader)
    if reader.context.facts.mariadb and (found is None or _goes_on(reader)):
        return _expression(reader, first)
    if found is None:
        raise reader.unexpected("a default")
    return found


def _simple(reader: StatementReader) -> Constant | Computed | None:
    if reader.sees_symbol("("):
        return Computed(reader.parenthesized())
    now = accept_now(reader)
    if now is not None:
        return now
    if reader.accept("NULL"):
        return Constant("null")
    if word := reader.accept_any("TRUE", "FALSE"):
        return Constant("number", "1" if word == "TRUE" else "0")
    return _literal(reader)


def _literal(reader: StatementReader) -> Constant | None:
    token = reader.peek()
    if token.kind in _LITERALS:
        reader.next()
        return _joined(Constant(token.kind, token.text, token.charset), reader)
    if token.kind == "symbol" and token.text in "+-" and reader.peek(1).kind == "number":
        reader.next()
        sign = "-" if token.text == "-" else ""
        return Constant("number", sign + reader.next().text)
    if token.keyword in _MOMENTS and reader.peek(1).kind == "string":
        reader.next()
        return Constant(token.keyword.lower(), reader.next().text)
    if _is_introducer(token) and reader.peek(1).kind in ("string", "hex", "bits"):
        reader.next()
        found = reader.next()
        return _joined(Constant(found.kind, found.text, token.text[1:].lower()), reader)
    return None


def _is_introducer(token: Token) -> bool:
    return token.kind == "word" and token.text.startswith("_")


def _joined(found: Constant, reader: StatementReader) -> Constant:
    """Strings that stand side by side are one."""
    while found.kind == "string" and reader.peek().kind == "string":
        found = replace(found, text=found.text + reader.next().text)
    return found


def accept_now(reader: StatementReader) -> Computed | None:
    """CURRENT_TIMESTAMP with its digits, by any of its names; None for anything else."""
    word = reader.peek().keyword
    called = reader.sees_symbol("(", 1)
    if word not in _NOW or (word == "NOW" and not called):
        return None
    reader.next()
    digits = 0
    if reader.accept_symbol("("):
        digits = 0 if reader.sees_symbol(")") else reader.integer()
        reader.expect_symbol(")")
    return Computed(f"CURRENT_TIMESTAMP({digits})" if digits else "CURRENT_TIMESTAMP", now=True)


def _goes_on(reader: StatementReader) -> bool:
    token = reader.peek()
    return token.kind == "symbol" and token.text not in (",", ")")


def _expression(reader: StatementReader, first: int) -> Computed:
    reader.at = first
    while not _ends(reader, first):
        if reader.sees_symbol("("):
            reader.parenthesized()
        else:
            reader.next()
    if reader.at == first:
        raise CannotRead("DEFAULT has no value")
    return Computed(reader.slice(first))


def _ends(reader: StatementReader, first: int) -> bool:
    if reader.over or reader.sees_symbol(",") or reader.sees_symbol(")"):
        return True
    return reader.at > first and reader.peek().keyword in _ATTRIBUTES
