"""Names and statements of others' making, as they are put into sentences and pages.

MySQL takes any character but NUL in a name, a line break and a terminal's commands
among them. Of a statement no literal is shown. Not here: names as paths
(`pipeline.changes.layout`), HTML, whose template escapes all that is put in.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import Final

_DOES_SOMETHING: Final = ("Cc", "Cf", "Zl", "Zp", "Cs")
"""Categories of Unicode: control characters, invisible ones that change the order of letters, and
what breaks a line."""

NAMED: Final = 5
"""The most names that a sentence has."""

_MARKDOWN: Final = frozenset("\\`*_[]<>|#~&!{}")


def shown(text: str, keep: str = "") -> str:
    """The text with each character that does something as Python writes it (`\\n`, `\\x1b`), but
    for those to `keep`."""
    if text.isprintable():
        return text
    return "".join(
        ascii(letter)[1:-1]
        if unicodedata.category(letter) in _DOES_SOMETHING and letter not in keep
        else letter
        for letter in text
    )


def in_markdown(text: str) -> str:
    """The text as Markdown, which shows it and takes nothing in it for markup."""
    return "".join(f"\\{letter}" if letter in _MARKDOWN else letter for letter in shown(text))


def listed(names: Sequence[object]) -> str:
    """The first names, and how many more there are: `a, b, c, d, e and 2 more`."""
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(map(str, names[:NAMED])) + more


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
