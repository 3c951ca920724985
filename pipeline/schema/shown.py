"""How a statement begins, to be shown to a person: no literal of it.

Belongs here: the words of a statement without what may be data. Does not: its meaning
(`statements`). Quotes are read for any session: `"…"` may be a string or a name.
"""

from __future__ import annotations

import re
from typing import Final

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
