"""What is printed on a page for people to type, for the tests that type it.

Belongs here: finding it. Does not: what each page's names are called in a test.
"""

from __future__ import annotations

import re


def chapter(page: str, heading: str) -> str:
    """What a page's text has below a heading of the second level; ValueError without it."""
    _, found, after = page.partition(f"\n## {heading}\n")
    if not found:
        raise ValueError(f"no chapter {heading!r}")
    return after.partition("\n## ")[0] + "\n"


def blocks(page: str, language: str = "") -> list[str]:
    """The fenced blocks of a language in a page's text, from top to bottom."""
    return re.findall(rf"^```{language}\n(.*?)^```$", page, re.M | re.S)
