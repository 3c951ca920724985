"""Names of others' making, as they are put into sentences and pages.

MySQL takes any character but NUL in a name, a line break and a terminal's commands among them.
Belongs here: what is shown for a character that would do something. Does not: names as paths
(`pipeline.changes.layout`), HTML, whose template escapes all that is put in.
"""

from __future__ import annotations

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
