"""A cursor over a statement's tokens, with the forms that all statements share.

Belongs here: looking ahead, expecting, names of tables, balanced parentheses. Does not:
any one statement's grammar.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

from pipeline.schema.context import StatementContext
from pipeline.schema.statements.lexer import CannotRead, Token, tokens
from pipeline.table import TableName

T = TypeVar("T")
_END: Final = Token("end", "", -1, -1)


class StatementReader:
    """Reads forward; every method that expects something raises CannotRead instead of
    guessing."""

    def __init__(self, text: str, context: StatementContext) -> None:
        self.text = text
        self.context = context
        self._tokens = tuple(tokens(text, context))
        while self._tokens and self._tokens[-1].text == ";" and self._tokens[-1].kind == "symbol":
            self._tokens = self._tokens[:-1]
        self.at = 0

    # -- looking --------------------------------------------------------------------

    def peek(self, ahead: int = 0) -> Token:
        place = self.at + ahead
        return self._tokens[place] if place < len(self._tokens) else _END

    def next(self) -> Token:
        token = self.peek()
        self.at += 1
        return token

    @property
    def over(self) -> bool:
        return self.at >= len(self._tokens)

    def sees(self, *keywords: str) -> bool:
        """These words come next."""
        return all(self.peek(n).keyword == word for n, word in enumerate(keywords))

    def sees_symbol(self, symbol: str, ahead: int = 0) -> bool:
        token = self.peek(ahead)
        return token.kind == "symbol" and token.text == symbol

    # -- taking ---------------------------------------------------------------------

    def accept(self, *keywords: str) -> bool:
        """Takes these words if they come next, all or none."""
        if not self.sees(*keywords):
            return False
        self.at += len(keywords)
        return True

    def accept_any(self, *keywords: str) -> str:
        """Takes one of these words, "" if none comes next."""
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

    def unexpected(self, wanted: str) -> CannotRead:
        token = self.peek()
        found = repr(token.text) if token.kind in ("word", "symbol") else f"a {token.kind}"
        return CannotRead(f"{wanted} was expected, not {found}")

    # -- forms that statements share ---------------------------------------------------

    def name(self) -> str:
        """An identifier, quoted or not."""
        if not self.peek().is_name:
            raise self.unexpected("a name")
        return self.next().text

    def table(self, database: str | None = None) -> TableName:
        """`[database.]table`, and `.table`; of the default database, or the one given,
        unless it is named."""
        default = self.context.database if database is None else database
        if self.accept_symbol("."):
            return TableName(default, self.name())
        first = self.name()
        if self.accept_symbol("."):
            return TableName(first, self.name())
        return TableName(default, first)

    def tables(self) -> tuple[TableName, ...]:
        return self.listed(self.table)

    def names(self) -> tuple[str, ...]:
        """`(name, …)`."""
        return self.enclosed(lambda: self.listed(self.name))

    def listed(self, read: Callable[[], T]) -> tuple[T, ...]:
        """One or more, with commas between."""
        found = [read()]
        while self.accept_symbol(","):
            found.append(read())
        return tuple(found)

    def enclosed(self, read: Callable[[], T]) -> T:
        """In parentheses."""
        self.expect_symbol("(")
        found = read()
        self.expect_symbol(")")
        return found

    def integer(self) -> int:
        token = self.next()
        if token.kind == "number" and token.text.isdigit():
            return int(token.text)
        if token.kind == "hex":
            return int(token.text, 16)
        raise CannotRead(f"a whole number was expected, not {token.text!r}")

    def word_or_string(self) -> str:
        token = self.next()
        if token.kind not in ("word", "name", "string"):
            raise CannotRead(f"a name or a string was expected, not {token.text!r}")
        return token.text

    def charset_word(self) -> bool:
        """Takes CHARACTER SET or one of its other names."""
        if self.accept("CHARSET"):
            return True
        return self.accept("CHARACTER", "SET") or self.accept("CHAR", "SET")

    def if_exists(self) -> bool:
        return self.accept("IF", "EXISTS")

    def if_not_exists(self) -> bool:
        return self.accept("IF", "NOT", "EXISTS")

    def parenthesized(self) -> str:
        """Skips `( … )`; its text without the outer parentheses."""
        self.expect_symbol("(")
        first = self.at
        self.skip_to_close()
        last = self.at - 1
        self.expect_symbol(")")
        if last < first:
            return ""
        return self.text[self._tokens[first].start : self._tokens[last].end]

    def skip_check(self) -> None:
        """Behind the word CHECK: its parentheses and whether it is enforced."""
        self.parenthesized()
        if not self.accept("NOT", "ENFORCED"):
            self.accept("ENFORCED")

    def skip_rest(self) -> int:
        """Take everything to the end; return how many semicolons were in it."""
        count = 0
        while not self.over:
            count += self.sees_symbol(";")
            self.at += 1
        return count

    def skip_to_close(self) -> None:
        """To the parenthesis that closes what is open."""
        depth = 0
        while not (depth == 0 and self.sees_symbol(")")):
            if self.over:
                raise CannotRead("a parenthesis is not closed")
            if self.sees_symbol("("):
                depth += 1
            elif self.sees_symbol(")"):
                depth -= 1
            self.at += 1

    def rest(self) -> str:
        """The text from the next token on."""
        return self.text[self.peek().start :] if not self.over else ""

    def slice(self, first: int) -> str:
        """The text from the token at place `first` to the last one taken."""
        return self.text[self._tokens[first].start : self._tokens[self.at - 1].end]
