"""Pages of the documentation with a part that code makes: `python -m MAKER FILE`.

Belongs here: finding the part between its marks and putting today's in its place, and a row
of a table in Markdown. Does not: what a maker says. Tests hold the pages and their makers
together.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from pathlib import Path


def rewritten(page: str, maker: str, made: str) -> str:
    """The page with what its maker says today; ValueError if it has no place for that: two
    marks that name the maker."""
    first, last = f"<!-- made by {maker} -->\n", f"<!-- end of what {maker} made -->\n"
    before, found, rest = page.partition(first)
    _, closed, after = rest.partition(last)
    if not (found and closed):
        raise ValueError("the page has no table to rewrite")
    return before + first + made + last + after


def row(cells: Iterable[str]) -> str:
    """A row of a table; a `|` in a cell is no border."""
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def rewrite(rewritten: Callable[[str], str]) -> None:
    """Rewrite the page that the command line names."""
    path = Path(sys.argv[1])
    path.write_text(rewritten(path.read_text()))
