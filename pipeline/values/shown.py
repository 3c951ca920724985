"""Display of counts and times, and safe display of names and statements that come from
users, in sentences and on pages.

MySQL allows any character but NUL in a name, line breaks and terminal escape sequences
included. Literals of a statement are never shown. Not here: names as paths
(`pipeline.mirror.layout`), and HTML pages, whose templates escape every value.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

_CONTROLS: Final = ("Cc", "Cf", "Zl", "Zp", "Cs")
"""Unicode categories of control characters, invisible formatting characters, line
separators and surrogates."""

MOST_NAMES: Final = 5
"""Largest number of names that a sentence lists."""

_MAX_QUOTED: Final = 80
"""Largest number of characters of a wrong text that a message quotes."""

_MARKDOWN: Final = frozenset("\\`*_[]<>|#~&!{}")


def printable(text: str, keep: str = "") -> str:
    """Return the text with control characters escaped as in a Python literal (`\\n`,
    `\\x1b`), except those in `keep`."""
    if text.isprintable():
        return text
    return "".join(
        ascii(character)[1:-1]
        if unicodedata.category(character) in _CONTROLS and character not in keep
        else character
        for character in text
    )


def quote(text: str) -> str:
    """Return the beginning of a wrong text as a Python literal, for a message."""
    return repr(text if len(text) <= _MAX_QUOTED else text[:_MAX_QUOTED] + "…")


def in_markdown(text: str) -> str:
    """Return Markdown that displays the text literally."""
    return "".join(
        f"\\{character}" if character in _MARKDOWN else character for character in printable(text)
    )


def utc_text(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M:%S} UTC"


def duration_text(span: timedelta) -> str:
    """Return a time span in days, hours, minutes or seconds."""
    seconds = span.total_seconds()
    units = ((86_400, "day"), (3600, "hour"), (60, "minute"), (1, "second"))
    size, unit = next((unit for unit in units if seconds >= unit[0]), units[-1])
    number = f"{seconds / size:.{0 if size == 1 else 1}f}".removesuffix(".0")
    return f"{number} {unit}{'' if number == '1' else 's'}"


def name_list(names: Sequence[object], separator: str = ", ") -> str:
    """Return the first names and the number of the others: `a, b, c, d, e and 2 more`.
    Another separator also stands before that number: `…; e; and 2 more`."""
    joint = " " if separator == ", " else separator
    more = f"{joint}and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return separator.join(map(str, names[:MOST_NAMES])) + more


# `either` is a string or, with the SQL mode ANSI_QUOTES, a name.
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
    """Return the first `count` words and symbols of a statement on one line, followed
    by `…` if there are more. Literals, and tokens that may be literals, are replaced by
    `?`."""
    matches = list(_TOKEN.finditer(statement))
    if any(match["symbol"] in ("'", '"') for match in matches):
        count = min(count, 2)  # an unpaired quote: anything after it may be a literal
    words: list[str] = []
    for match in matches:
        word = _displayed(match)
        if word is not None:
            words.append(word)
        if word == "?" and f"\\{match[0][0]}" in match[0][1:-1]:
            # With the SQL mode NO_BACKSLASH_ESCAPES, the literal ends at the quote after
            # the backslash, and anything after it may be a literal.
            count = min(count, len(words))
    text = " ".join(words[:count])
    for spaced, tight in ((" . ", "."), (" ,", ","), (" (", "("), ("( ", "("), (" )", ")")):
        text = text.replace(spaced, tight)
    return text + (" …" if len(words) > count else "")


def _displayed(match: re.Match[str]) -> str | None:
    """Return a token as it may be displayed: `?` for a literal, without control
    characters; None for white space and comments."""
    text = match[0]
    match match.lastgroup:
        case "space" | "comment" | "opening" | "closing":
            return None
        case "string" | "either":
            return "?"
        case "word" if text[0].isdigit():
            return "?"
        case _:
            return printable(text)


def batch_words(first: int, last: int) -> str:
    """Return `batch 3` or `batches 3 to 5`."""
    return f"batch {first}" if first == last else f"batches {first} to {last}"


def pluralize(count: int, singular: str, plural: str = "") -> str:
    """Return `1 row` or `2,000 rows`. `plural`: the plural, if it is not the singular
    with an s."""
    return f"{count:,} {singular if count == 1 else plural or f'{singular}s'}"
