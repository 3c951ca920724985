"""Reading the statements of the log: what kind, and which tables they may touch.

Belongs here: a tokenizer for MySQL's SQL, the list of statements that change no row and
no structure and are passed by kind, and the names the others touch. A statement that is
on no list is not understood, which stops a run: a statement is never swallowed.

Lexical rules: MySQL manual, "Language Structure" (comments, executable comments,
quoting). `"…"` may be a string or, under ANSI_QUOTES, a name; it is read as either.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from pipeline.table import TableName
from pipeline.tables import TablePatterns

_TOKEN: Final = re.compile(
    r"""
      (?P<space>\s+)
    | (?P<comment>/\*(?!M?!).*?\*/|--(?=\s|$)[^\n]*|\#[^\n]*)
    | (?P<opening>/\*M?!\d{0,6})
    | (?P<closing>\*/)
    | `(?P<name>(?:[^`]|``)*)`
    | "(?P<either>(?:[^"\\]|\\.|"")*)"
    | '(?P<string>(?:[^'\\]|\\.|'')*)'
    | (?P<word>[\w$@]+)
    | (?P<symbol>.)
    """,
    re.VERBOSE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Token:
    """`text` is upper-cased for nothing: a word keeps its spelling, a quoted name loses
    its quotes. `kind` is "word", "name", "string" or "symbol"."""

    kind: str
    text: str

    @property
    def keyword(self) -> str:
        return self.text.upper() if self.kind == "word" else ""

    @property
    def is_name(self) -> bool:
        return self.kind in ("word", "name")


def tokens(statement: str) -> Iterator[Token]:
    """A statement's tokens; comments are left out, executable ones opened up.

    Opening them all, whatever version they ask for, can only make a statement look as if
    it touched more.
    """
    for match in _TOKEN.finditer(statement):
        kind = match.lastgroup
        text = match[kind] if kind else ""
        if kind == "name":
            yield Token("name", text.replace("``", "`"))
        elif kind == "either":
            yield Token("name", text.replace('""', '"'))
        elif kind in ("word", "string", "symbol"):
            yield Token(kind, text)


def first_words(statement: str, count: int = 12) -> str:
    """How a statement begins, on one line: so many words and symbols, each literal (and
    what may be one) a `?`; `…` where it goes on."""
    matches = list(_TOKEN.finditer(statement))
    if any(match["symbol"] in ("'", '"') for match in matches):
        count = min(count, 2)  # quotes that do not pair: what is a literal nobody knows
    found = [shown for match in matches if (shown := _shown(match)) is not None]
    text = " ".join(found[:count])
    for loose, tight in ((" . ", "."), (" ,", ","), (" (", "("), ("( ", "("), (" )", ")")):
        text = text.replace(loose, tight)
    return text + (" …" if len(found) > count else "")


def _shown(match: re.Match[str]) -> str | None:
    """A token as it may be shown; None for what is left out."""
    text = match[0]
    match match.lastgroup:
        case "space" | "comment" | "opening" | "closing":
            return None
        case "string" | "either":
            return "?"
        case "word" if text[0].isdigit():
            return "?"
        case _:
            return text


@dataclass(frozen=True, slots=True)
class Passed:
    """Changes no captured row and no structure, whatever names it holds."""

    kind: str


@dataclass(frozen=True, slots=True)
class Creates:
    """A new table; its structure comes with its first row."""

    kind: str
    table: TableName


@dataclass(frozen=True, slots=True)
class Touches:
    """Changes these tables, or every table of these databases."""

    kind: str
    tables: tuple[TableName, ...] = ()
    databases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NotUnderstood:
    """On no list, or not readable; `kind` is how it begins."""

    kind: str


Statement = Passed | Creates | Touches | NotUnderstood

_PASSED_FIRST: Final = frozenset(
    {
        "ANALYZE",
        "CHECK",
        "CHECKSUM",
        "FLUSH",
        "GRANT",
        "INSTALL",
        "OPTIMIZE",
        "REVOKE",
        "SET",
        "UNINSTALL",
    }
)
_PASSED_OBJECTS: Final = frozenset(
    {
        "EVENT",
        "FUNCTION",
        "INSTANCE",
        "LOGFILE",
        "PROCEDURE",
        "RESOURCE",
        "ROLE",
        "SERVER",
        "SPATIAL",
        "TABLESPACE",
        "TRIGGER",
        "UNDO",
        "USER",
        "VIEW",
    }
)
_DATABASE: Final = frozenset({"DATABASE", "SCHEMA"})
_INDEX_WORDS: Final = frozenset({"UNIQUE", "FULLTEXT", "INDEX"})
_OBJECT_SEARCH: Final = 40
"""How far an object's word may stand behind CREATE, ALTER or DROP: DEFINER=… comes first."""


def read_statement(text: str, default_database: str) -> Statement:
    """What a logged statement is and which names it may touch."""
    words = list(tokens(text))
    while words and words[0].text in ("(", ";"):
        words.pop(0)
    first = words[0].keyword if words else ""
    if first in _PASSED_FIRST:
        return Passed(first)
    reader = _Names(words, default_database)
    match first:
        case "CREATE":
            return _create(words, reader)
        case "ALTER" | "DROP":
            return _alter_or_drop(first, words, reader)
        case "RENAME":
            return _rename(words, reader)
        case "TRUNCATE" | "REPAIR":
            return reader.touched(first, reader.after(1, skip=("TABLE", "LOCAL", "TABLES")))
        case _:
            return NotUnderstood(first or text[:20].strip())


def _create(words: Sequence[Token], reader: _Names) -> Statement:
    at, word = _object(words)
    if word in _DATABASE or word in _PASSED_OBJECTS or word in _INDEX_WORDS:
        return Passed(f"CREATE {word}")
    if word == "TABLE":
        if words[at - 1].keyword == "TEMPORARY":
            return Passed("CREATE TEMPORARY TABLE")
        found = reader.after(at + 1, skip=("IF", "NOT", "EXISTS"))
        if found:
            return Creates("CREATE TABLE", found[0])
    return NotUnderstood("CREATE")


def _alter_or_drop(first: str, words: Sequence[Token], reader: _Names) -> Statement:
    at, word = _object(words)
    kind = f"{first} {word}"
    if word in _PASSED_OBJECTS or kind in ("ALTER DATABASE", "ALTER SCHEMA"):
        return Passed(kind)
    if word in _DATABASE:
        names = [token.text for token in words[at + 1 :] if token.is_name]
        names = [name for name in names if name.upper() not in ("IF", "EXISTS")]
        return Touches(kind, databases=tuple(names[:1])) if names else NotUnderstood(kind)
    if word in ("TABLE", "TABLES"):
        if words[at - 1].keyword == "TEMPORARY":
            return Passed("DROP TEMPORARY TABLE")
        found = reader.after(at + 1, skip=("IF", "EXISTS"))
        # An ALTER may carry RENAME TO or EXCHANGE PARTITION … WITH TABLE: every name counts.
        return reader.touched(kind, [*found, *reader.behind("TO", "AS", "RENAME", "TABLE")])
    if word == "INDEX":
        return reader.touched(kind, reader.behind("ON"))
    return NotUnderstood(kind)


def _rename(words: Sequence[Token], reader: _Names) -> Statement:
    if len(words) > 1 and words[1].keyword == "USER":
        return Passed("RENAME USER")
    found = reader.after(1, skip=("TABLE", "TABLES", "IF", "EXISTS"))
    return reader.touched("RENAME TABLE", [*found, *reader.behind("TO", ",")])


def _object(words: Sequence[Token]) -> tuple[int, str]:
    """Where the word stands that says what is created, altered or dropped."""
    known = _PASSED_OBJECTS | _DATABASE | _INDEX_WORDS | {"TABLE", "TABLES"}
    for at, token in enumerate(words[1:_OBJECT_SEARCH], start=1):
        if token.keyword in known:
            return at, token.keyword
    return 0, ""


class _Names:
    """Finds `[database.]table` names among a statement's tokens."""

    def __init__(self, words: Sequence[Token], default_database: str) -> None:
        self._words = words
        self._default = default_database

    def after(self, at: int, *, skip: tuple[str, ...]) -> list[TableName]:
        """The comma-separated list of names that begins at `at`, behind `skip` words."""
        while at < len(self._words) and self._words[at].keyword in skip:
            at += 1
        found = []
        while (name := self._name(at)) is not None:
            found.append(name[0])
            at = name[1]
            if at >= len(self._words) or self._words[at].text != ",":
                break
            at += 1
        return found

    def behind(self, *keywords: str) -> list[TableName]:
        """The name behind each occurrence of a keyword or symbol."""
        return [
            name[0]
            for at, token in enumerate(self._words)
            if token.keyword in keywords or (token.kind == "symbol" and token.text in keywords)
            if (name := self._name(at + 1)) is not None
        ]

    def touched(self, kind: str, tables: Sequence[TableName]) -> Statement:
        return Touches(kind, tuple(dict.fromkeys(tables))) if tables else NotUnderstood(kind)

    def _name(self, at: int) -> tuple[TableName, int] | None:
        words = self._words
        if at < len(words) and words[at].text == "=":
            at += 1  # ALTER TABLE a RENAME = b
        if at >= len(words) or not words[at].is_name:
            return None
        qualified = at + 2 < len(words) and words[at + 1].text == "." and words[at + 2].is_name
        if qualified:
            return TableName(words[at].text, words[at + 2].text), at + 3
        return TableName(self._default, words[at].text), at + 1


def why_it_stops(statement: Statement, patterns: TablePatterns) -> str | None:
    """Why a run cannot go past a statement, as the object of a sentence; None if it can.

    Names are compared as spelled and in lower case: a server may fold them.
    """
    match statement:
        case Passed() | Creates():
            return None
        case NotUnderstood(kind):
            return f"a statement that is not understood ({kind} …)"
        case Touches(kind, tables, databases):
            for table in tables:
                if _could_match(table, patterns):
                    return f"{kind} on the captured table {table}"
            for database in databases:
                if any(patterns.may_match_database(d) for d in (database, database.lower())):
                    return f"{kind} {database}, which holds captured tables"
    return None


def _could_match(table: TableName, patterns: TablePatterns) -> bool:
    folded = TableName(table.database.lower(), table.name.lower())
    return patterns.matches(table) or patterns.matches(folded)
