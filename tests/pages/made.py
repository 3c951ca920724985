"""A part of a page that is made: what it says, and its place between two marks.

Belongs here: finding the part between its marks and putting today's in its place, and a row of a
table in Markdown. Does not: what a part says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class MadePart:
    """What the module `maker` beside this one has to say on `page`, a path from the checkout, in
    lines without an end behind the last."""

    maker: str
    page: str
    text: Callable[[], str]


def rewritten(page: str, part: MadePart) -> str:
    """The page with what the part says today; ValueError if it has no place for that: two marks
    that name the maker."""
    first, last = (f"<!-- {words} -->\n" for words in marks(part.maker))
    before, found, rest = page.partition(first)
    _, closed, after = rest.partition(last)
    if not (found and closed):
        raise ValueError("the page has no place for what is made")
    return f"{before}{first}\n{part.text()}\n\n{last}{after}"


def marks(maker: str) -> tuple[str, str]:
    """What the page's source says before and behind the part."""
    return f"made by tests/pages/{maker}.py", f"end of what tests/pages/{maker}.py made"


def row(cells: Iterable[str]) -> str:
    """A row of a table; a `|` in a cell is no border."""
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"
