"""Tokens by MySQL's lexical rules, which depend on the session and the server."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lockstep.pipeline.schema.context import ServerDialect, StatementContext
from lockstep.pipeline.schema.statements.reader import CannotRead, tokens
from tests.schema.schemas_made import MARIADB, MYSQL

_ANSI = replace(MYSQL, sql_mode=1 << 2)
_PLAIN = replace(MYSQL, sql_mode=1 << 20)
_LATIN1 = replace(MYSQL, client_charset="latin1")
_OLD = replace(MYSQL, facts=ServerDialect(80015))


_DOT = ("symbol", ".")
_C = [_DOT, ("word", "c")]
_DASHES = [("symbol", "-"), ("symbol", "-"), ("word", "\u00a0c")]


def _read(text: str, context: StatementContext = MYSQL) -> list[tuple[str, str]]:
    return [(token.kind, token.text) for token in tokens(text, context)]


@pytest.mark.parametrize(
    ("text", "context", "expected"),
    [
        ("a`b`", MYSQL, [("word", "a"), ("name", "b")]),
        ("`a``b`", MYSQL, [("name", "a`b")]),
        ("'it''s'", MYSQL, [("string", "it's")]),
        (r"'a\'b\n\%'", MYSQL, [("string", "a'b\n\\%")]),
        (r"'a\'", _PLAIN, [("string", "a\\")]),
        ('"a""b"', MYSQL, [("string", 'a"b')]),
        ('"a""b"', _ANSI, [("name", 'a"b')]),
        (r'"a\"', _ANSI, [("name", "a\\")]),
        ("x'0aF' 0x1f", MYSQL, [("hex", "0aF"), ("hex", "1f")]),
        ("b'101' 0b11", MYSQL, [("bits", "101"), ("bits", "11")]),
        ("0xzz 1a 12", MYSQL, [("word", "0xzz"), ("word", "1a"), ("number", "12")]),
        ("1.5 .5 1e3 1.e-2", MYSQL, [("number", n) for n in ("1.5", ".5", "1e3", "1.e-2")]),
        ("a.1b", MYSQL, [("word", "a"), ("symbol", "."), ("word", "1b")]),
        ("a.2015", MYSQL, [("word", "a"), ("symbol", "."), ("word", "2015")]),
        ("`a`.5", MYSQL, [("name", "a"), ("symbol", "."), ("word", "5")]),
        ("a /* b */ c", MYSQL, [("word", "a"), ("word", "c")]),
        ("a -- b\nc # d\ne", MYSQL, [("word", "a"), ("word", "c"), ("word", "e")]),
        ("a--b", MYSQL, [("word", "a"), ("symbol", "-"), ("symbol", "-"), ("word", "b")]),
        ("ä größe", MYSQL, [("word", "ä"), ("word", "größe")]),
        ("a \u00a0b --\u00a0c", MYSQL, [("word", t) for t in ("a", "\u00a0b")] + _DASHES),
        ("a\u00a0.\u00a0b.c\u00a0--\u00a0c", _LATIN1, [("word", "a"), _DOT, ("word", "b"), *_C]),
        ("\u3000a \u0663", MYSQL, [("word", "\u3000a"), ("word", "\u0663")]),
        ("@@x := 1", MYSQL, [("variable", "@@x"), ("symbol", ":="), ("number", "1")]),
        ("a->>'$.b'", MYSQL, [("word", "a"), ("symbol", "->>"), ("string", "$.b")]),
        ("/*! a */ b", MYSQL, [("word", "a"), ("word", "b")]),
        ("/*!80000 a */ b", MYSQL, [("word", "a"), ("word", "b")]),
        ("/*!99999 a /* c */ */ b", MYSQL, [("word", "b")]),
        ("/*M! a */ b", MYSQL, [("word", "b")]),
        ("/*M! a */ b", MARIADB, [("word", "a"), ("word", "b")]),
        ("/*M!100600 a */ /*M!120000 c */", MARIADB, [("word", "a")]),
        ("/*!50701 a */ /*!50000 b */", MARIADB, [("word", "b")]),
        ("/*!50001 a /* b */ c */", MYSQL, [("word", "a"), ("word", "c")]),
        ("/*!000005*/ /*!080000 a */", MYSQL, [("number", "5"), ("word", "a")]),
        ("/*!100000 a */ /*!90704 b */ /*!90705 c */", MYSQL, [("word", "b")]),
        ("/*!000005*/ /*!80015 b */ /*!80016 c */", _OLD, [("number", "5"), ("word", "b")]),
        ("/*!100000 a */", _OLD, [("number", "0"), ("word", "a")]),
        ("/*!000005*/ /*!101118 a */ /*!101119 b */", MARIADB, [("word", "a")]),
        ("/*M!999999 /* a */ b", MYSQL, [("word", "b")]),
        ("/* 99999 (* a *) b */ c", MYSQL, [("word", "c")]),
        ("/* 99999 /* a */ b", MARIADB, [("word", "b")]),
        ("/* a 99999 /* b */ c", MYSQL, [("word", "c")]),
    ],
)
def test_tokens(text: str, context: StatementContext, expected: list[tuple[str, str]]) -> None:
    """Quotes, escapes, literals and comments are read as the session's server reads them."""
    assert expected == _read(text, context)


def test_places() -> None:
    """A token tells where in the text it stands."""
    text = "add `a` /* x */ int"
    assert [text[token.start : token.end] for token in tokens(text, MYSQL)] == ["add", "`a`", "int"]


def test_keywords_are_ascii() -> None:
    """What looks like one to Python only is a name."""
    words = [token.keyword for token in tokens("ignore Ignore `ignore` \u0131gnore", MYSQL)]
    assert words == ["IGNORE", "IGNORE", "", ""]


def test_national_strings() -> None:
    """N'…' brings its character set along."""
    (token,) = tokens("N'x'", MYSQL)
    assert (token.kind, token.text, token.charset) == ("string", "x", "utf8mb3")


@pytest.mark.parametrize("text", ["'a", "`a", '"a', "/* a", "/*! a", "a */", "/*!99999 a"])
def test_what_is_not_closed(text: str) -> None:
    """Quotes and comments without an end are no statement."""
    with pytest.raises(CannotRead):
        list(tokens(text, MYSQL))


def test_a_comment_that_may_end_at_two_places() -> None:
    """MySQL logs an executable comment that it skipped as a plain one: with another inside, nobody
    can tell where it ended."""
    with pytest.raises(CannotRead, match="two places"):
        _read("/* 99999 /* a */ flush tables -- */ truncate t", _OLD)
