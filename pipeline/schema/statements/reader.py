"""The tokens of a statement, by the rules of the session that ran it, and a cursor over
them.

Rules: MySQL manual, "Language Structure"; MariaDB documentation, "Comment Syntax"
(`/*M!`; versions 50700 to 99999 are only for MySQL).

If a server skips an executable comment, it logs a plain comment instead: `/* 99999 …
*/` for `/*!99999 … */`. Newer servers replace a comment nested in it with `(* … *)`.
Older MySQL leaves the nested comment unchanged: its `*/` seems to end the outer
comment, so the text cannot be read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Final, TypeVar

from lockstep.pipeline.schema.context import (
    ANSI_QUOTES,
    NO_BACKSLASH_ESCAPES,
    StatementContext,
    stored_name,
)
from lockstep.pipeline.values.table import TableName


class CannotRead(ValueError):
    """The text does not match the grammar; the message says where. `read_change`
    catches this error and returns `NotUnderstood`."""


@dataclass(frozen=True, slots=True)
class Token:
    """A token of a statement. `kind`: "word" (unquoted, also a keyword), "name"
    (quoted), "string", "number", "hex" or "bits" (`text` contains the digits),
    "variable" or "symbol". `start`, `end`: offsets in the statement, in characters.
    `charset`: "utf8mb3" for N'…'."""

    kind: str
    text: str
    start: int
    end: int
    charset: str | None = None

    @property
    def keyword(self) -> str:
        """The word in upper case; "" for other tokens and for words that are not ASCII.
        Python's upper() turns some other letters into ASCII, such as U+0131 into I."""
        return self.text.upper() if self.kind == "word" and self.text.isascii() else ""

    @property
    def is_name(self) -> bool:
        return self.kind in ("word", "name")

    @property
    def is_literal(self) -> bool:
        return self.kind in ("string", "number", "hex", "bits")


_WORD: Final = r"[0-9A-Za-z_$\u0080-\U0010ffff]"
_BLANK: Final = r"[\x00-\x20]"
_TOKEN: Final = rf"""
      (?P<space>{_BLANK}+)
    | (?P<line>--(?={_BLANK}|$)[^\n]*|\#[^\n]*)
    | (?P<open>/\*(?P<maria>M)?!)
    | (?P<comment>/\*)
    | (?P<close>\*/)
    | (?P<hex>[xX]'(?P<hexed>[0-9A-Fa-f]*)'|0x(?P<bare_hex>[0-9A-Fa-f]+)(?!{_WORD}))
    | (?P<bits>[bB]'(?P<bit>[01]*)'|0b(?P<bare_bits>[01]+)(?!{_WORD}))
    | (?P<national>[nN](?='))
    | (?P<number>(?:\d+\.\d*|\.\d+|\d+)(?:[eE][+-]?\d+)?(?!{_WORD}))
    | (?P<word>{_WORD}+)
    | (?P<variable>@@?[0-9A-Za-z_$.]*)
    | (?P<symbol>:=|<=>|->>|->|<<|>>|<>|<=|>=|!=|&&|\|\||.)
"""
_MULTI_BYTE_CHARSETS: Final = frozenset(
    {"utf8mb4", "utf8mb3", "gb18030", "gbk", "gb2312", "big5", "sjis", "cp932", "ujis", "eucjpms"}
    | {"euckr", "binary"}
)
"""Character sets of clients in which U+00A0 is a letter. In latin1 it is a blank; in
others it is a blank or a syntax error."""

_VERSION_MARIADB: Final = re.compile(r"[0-9]{5,6}")
_VERSION_MYSQL: Final = re.compile(r"[0-9]{6}(?=[\t-\r ])|[0-9]{5}")
_VERSION_OLD_MYSQL: Final = re.compile(r"[0-9]{5}")
_SKIPPED_VERSION: Final = re.compile(r" [0-9]{5}")
_SIX_DIGITS_SINCE: Final = 80100
"""First version of MySQL that reads version numbers of six digits, if a blank
follows."""

_END_MARK: Final = re.compile(r"\*/")
_ANY_MARK: Final = re.compile(r"\*/|/\*")
_SPECIAL_CHARACTERS: Final = {
    (quote, escapes): re.compile(rf"[{quote}\\]" if escapes else quote)
    for quote in "'\"`"
    for escapes in (False, True)
}
"""A quote, and whether backslashes escape → pattern of the next special character."""

_ESCAPES: Final = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a"}
_DOLLAR_QUOTE: Final = re.compile(
    r"(?P<tag>\$[0-9A-Za-z_\u0080-\U0010ffff]*\$)(?P<body>.*?)(?P=tag)", re.DOTALL
)
_DOLLAR_QUOTES_SINCE: Final = 90000
_MYSQL_ONLY_VERSIONS: Final = range(50700, 100000)
"""Versions in executable comments that MariaDB never executes."""


@cache
def _compiled_patterns(client_charset: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return the patterns of a token and of a name after a dot. They are compiled at
    the first use, so that a run without statements does not pay for it."""
    token, after_dot = _TOKEN, _WORD + "+"
    if client_charset not in _MULTI_BYTE_CHARSETS:
        word = _WORD.replace(r"\u0080-", r"\u0080-\u009f\u00a1-")
        blank = _BLANK.replace("]", r"\u00a0]")
        token = token.replace(_WORD, word).replace(_BLANK, blank)
        after_dot = word + "+"
    return re.compile(token, re.VERBOSE | re.DOTALL | re.ASCII), re.compile(after_dot)


def tokens(text: str, context: StatementContext) -> Iterator[Token]:
    """Yield the tokens, also those in executable comments that the server executed.
    Raise CannotRead for a quote or a comment that is not closed."""
    pattern, name_pattern = _compiled_patterns(context.client_charset)
    at = 0
    open_comments = 0  # number of executable comments around `at`
    last = _END_TOKEN  # the last token that was yielded
    while at < len(text):
        token: Token | None
        if last.is_name and last.end == at and text[at] == ".":
            # `a.1` is two names, not a name and a number.
            token = Token("symbol", ".", at, at + 1)
        elif (last.kind, last.text) == ("symbol", ".") and (match := name_pattern.match(text, at)):
            token = Token("word", match[0], at, match.end())
        elif text[at] in "'\"`":
            token = _read_quoted(text, at, context)
        else:
            token = _read_dollar_quoted(text, at, context)
        if token is None:
            match = pattern.match(text, at)
            assert match is not None  # the group `symbol` matches any character
            match match.lastgroup:
                case "space" | "line":
                    at = match.end()
                    continue
                case "comment":
                    at = _skip_comment(text, match.end(), context)
                    continue
                case "open":
                    at, is_executed = _enter_executable(text, match, context)
                    open_comments += is_executed
                    continue
                case "close" if open_comments:
                    open_comments -= 1
                    at = match.end()
                    continue
                case "close":
                    raise CannotRead(f"a comment that did not begin ends at {at}")
            token = _read_unquoted(text, match, context)
        yield token
        last, at = token, token.end
    if open_comments:
        raise CannotRead("an executable comment is not closed")


def _enter_executable(
    text: str, match: re.Match[str], context: StatementContext
) -> tuple[int, bool]:
    """Return the offset at which reading continues, and whether the server executed the
    comment. `match`: the beginning of an executable comment."""
    is_for_mariadb = match["maria"] is not None
    if is_for_mariadb and not context.facts.is_mariadb:
        return _comment_end(text, match.end()), False
    version = _match_version(text, match.end(), context)
    if version is None:
        return match.end(), True
    number = int(version[0])
    is_skipped = number > context.facts.version
    if context.facts.is_mariadb and not is_for_mariadb:
        is_skipped = is_skipped or number in _MYSQL_ONLY_VERSIONS
    if is_skipped:
        return _comment_end(text, match.end(), nested=True), False
    return version.end(), True


def _match_version(text: str, at: int, context: StatementContext) -> re.Match[str] | None:
    if context.facts.is_mariadb:
        return _VERSION_MARIADB.match(text, at)
    has_six_digits = context.facts.version >= _SIX_DIGITS_SINCE
    return (_VERSION_MYSQL if has_six_digits else _VERSION_OLD_MYSQL).match(text, at)


def _skip_comment(text: str, at: int, context: StatementContext) -> int:
    """Return the offset after a plain comment. Raise CannotRead if its end is
    uncertain: it may be a skipped executable comment with another comment in it (see
    the module's docstring)."""
    end = _comment_end(text, at)
    was_executable = not context.facts.is_mariadb and _SKIPPED_VERSION.match(text, at)
    if was_executable and text.find("/*", at, end) >= 0:
        raise CannotRead(f"the comment at {at - 2} may end at two places")
    return end


def _comment_end(text: str, at: int, *, nested: bool = False) -> int:
    """Return the offset after a comment. `nested`: it may contain other comments."""
    depth = 1
    while depth:
        match = _ANY_MARK.search(text, at) if nested else _END_MARK.search(text, at)
        if match is None:
            raise CannotRead("a comment is not closed")
        depth += -1 if match[0] == "*/" else 1
        at = match.end()
    return at


def _read_quoted(text: str, at: int, context: StatementContext) -> Token:
    quote = text[at]
    is_name = quote == "`" or (quote == '"' and context.has_mode(ANSI_QUOTES))
    escapes = not (is_name or context.has_mode(NO_BACKSLASH_ESCAPES))
    special = _SPECIAL_CHARACTERS[quote, escapes]
    parts: list[str] = []
    offset = at + 1
    while (match := special.search(text, offset)) is not None:
        parts.append(text[offset : match.start()])
        offset = match.end()
        after = text[offset : offset + 1]
        if match[0] == quote and after != quote:
            return Token("name" if is_name else "string", "".join(parts), at, offset)
        if match[0] == quote:
            parts.append(quote)
        else:
            # \% and \_ keep their backslashes, which LIKE interprets.
            parts.append("\\" + after if after in "%_" else _ESCAPES.get(after, after))
        offset += 1
    raise CannotRead(f"a quote opened at {at} is not closed")


def _read_dollar_quoted(text: str, at: int, context: StatementContext) -> Token | None:
    """Read a string between two equal `$tag$`, which MySQL has since 9.0 (for bodies of
    routines and libraries); return None if none begins here."""
    if text[at] != "$" or context.facts.is_mariadb or context.facts.version < _DOLLAR_QUOTES_SINCE:
        return None
    match = _DOLLAR_QUOTE.match(text, at)
    return match and Token("string", match["body"], at, match.end())


def _read_unquoted(text: str, match: re.Match[str], context: StatementContext) -> Token:
    at, end = match.span()
    match match.lastgroup:
        case "hex":
            return Token("hex", match["hexed"] or match["bare_hex"] or "", at, end)
        case "bits":
            return Token("bits", match["bit"] or match["bare_bits"] or "", at, end)
        case "national":
            string = _read_quoted(text, end, context)
            return Token("string", string.text, at, string.end, "utf8mb3")
    return Token(str(match.lastgroup), match[0], at, end)


# -- the cursor ------------------------------------------------------------------------

T = TypeVar("T")
_END_TOKEN: Final = Token("end", "", -1, -1)


class StatementReader:
    """A cursor over the tokens of a statement. `at`: index of the next token. The
    `accept` methods take tokens only if these come next. The `expect` and `read`
    methods raise CannotRead if other tokens come next."""

    def __init__(self, text: str, context: StatementContext) -> None:
        self.text = text
        self.context = context
        self._tokens = tuple(tokens(text, context))
        while self._tokens and self._tokens[-1].text == ";" and self._tokens[-1].kind == "symbol":
            self._tokens = self._tokens[:-1]
        self.at = 0

    # -- looking --------------------------------------------------------------------

    def peek(self, ahead: int = 0) -> Token:
        index = self.at + ahead
        return self._tokens[index] if index < len(self._tokens) else _END_TOKEN

    def next(self) -> Token:
        token = self.peek()
        self.at += 1
        return token

    @property
    def previous(self) -> Token:
        """The last token that was taken."""
        return self.peek(-1) if self.at else _END_TOKEN

    @property
    def is_over(self) -> bool:
        return self.at >= len(self._tokens)

    def sees(self, *keywords: str) -> bool:
        """Return whether these words come next."""
        return all(self.peek(n).keyword == word for n, word in enumerate(keywords))

    def sees_symbol(self, symbol: str, ahead: int = 0) -> bool:
        token = self.peek(ahead)
        return token.kind == "symbol" and token.text == symbol

    # -- taking ---------------------------------------------------------------------

    def accept(self, *keywords: str) -> bool:
        """Take these words if all of them come next."""
        if not self.sees(*keywords):
            return False
        self.at += len(keywords)
        return True

    def accept_any(self, *keywords: str) -> str:
        """Take and return one of these words; return "" if none of them comes next."""
        word = self.peek().keyword
        if word and word in keywords:
            self.at += 1
            return word
        return ""

    def accept_symbol(self, symbol: str) -> bool:
        if not self.sees_symbol(symbol):
            return False
        self.at += 1
        return True

    def expect(self, *keywords: str) -> None:
        if not self.accept(*keywords):
            raise self.unexpected(" ".join(keywords))

    def expect_symbol(self, symbol: str) -> None:
        if not self.accept_symbol(symbol):
            raise self.unexpected(symbol)

    def unexpected(self, expected: str) -> CannotRead:
        token = self.peek()
        actual = repr(token.text) if token.kind in ("word", "symbol") else f"a {token.kind}"
        return CannotRead(f"{expected} was expected, not {actual}")

    # -- forms that statements share ---------------------------------------------------

    def read_name(self) -> str:
        if not self.peek().is_name:
            raise self.unexpected("a name")
        return self.next().text

    def read_table(self, database: str | None = None) -> TableName:
        """Take `[database.]table` or `.table`, and return the name as the server stores
        it. `database`: the database of a table that is written without one; None means
        the session's default database."""
        database = self.context.database if database is None else database
        name = self.read_name() if not self.sees_symbol(".") else ""
        if self.accept_symbol("."):
            database, name = name or database, self.read_name()
        return stored_name(TableName(database, name), self.context)

    def read_tables(self) -> tuple[TableName, ...]:
        return self.read_list(self.read_table)

    def read_enclosed_names(self) -> tuple[str, ...]:
        return self.read_enclosed(lambda: self.read_list(self.read_name))

    def read_list(self, read: Callable[[], T]) -> tuple[T, ...]:
        """Read one or more items, separated by commas."""
        items = [read()]
        while self.accept_symbol(","):
            items.append(read())
        return tuple(items)

    def read_enclosed(self, read: Callable[[], T]) -> T:
        self.expect_symbol("(")
        inside = read()
        self.expect_symbol(")")
        return inside

    def read_integer(self) -> int:
        token = self.next()
        if token.kind == "number" and token.text.isdigit():
            return int(token.text)
        if token.kind == "hex":
            return int(token.text, 16)
        raise CannotRead(f"a whole number was expected, not {token.text!r}")

    def read_word_or_string(self) -> str:
        token = self.next()
        if token.kind not in ("word", "name", "string"):
            raise CannotRead(f"a name or a string was expected, not {token.text!r}")
        return token.text

    def read_value(self) -> Token:
        """Take `[=] value`."""
        self.accept_symbol("=")
        return self.next()

    def read_value_name(self) -> str:
        """Take `[=] name`; the name may be a string."""
        self.accept_symbol("=")
        return self.read_word_or_string()

    def accept_charset_word(self) -> bool:
        """Take CHARACTER SET or a synonym, if it comes next."""
        if self.accept("CHARSET"):
            return True
        return self.accept("CHARACTER", "SET") or self.accept("CHAR", "SET")

    def accept_if_exists(self) -> bool:
        return self.accept("IF", "EXISTS")

    def accept_if_not_exists(self) -> bool:
        return self.accept("IF", "NOT", "EXISTS")

    def read_parenthesized(self) -> str:
        """Skip `( … )` and return its text without the outer parentheses."""
        self.expect_symbol("(")
        first = self.at
        self._skip_to_close()
        inside = self.text_from(first) if self.at > first else ""
        self.expect_symbol(")")
        return inside

    def skip_check(self) -> None:
        """Skip the rest of a CHECK: `(…)` and [NOT] ENFORCED."""
        self.read_parenthesized()
        if not self.accept("NOT", "ENFORCED"):
            self.accept("ENFORCED")

    def skip_rest(self) -> int:
        """Take all remaining tokens; return the number of semicolons among them."""
        count = 0
        while not self.is_over:
            count += self.sees_symbol(";")
            self.at += 1
        return count

    def _skip_to_close(self) -> None:
        """Skip to the parenthesis that closes the current one."""
        depth = 0
        while not (depth == 0 and self.sees_symbol(")")):
            if self.is_over:
                raise CannotRead("a parenthesis is not closed")
            if self.sees_symbol("("):
                depth += 1
            elif self.sees_symbol(")"):
                depth -= 1
            self.at += 1

    def remaining_text(self) -> str:
        """Return the text that is left, without taking it."""
        return self.text[self.peek().start :] if not self.is_over else ""

    def text_from(self, first: int) -> str:
        """Return the text from the token with index `first` to the last token taken."""
        return self.text[self._tokens[first].start : self._tokens[self.at - 1].end]
