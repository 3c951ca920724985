"""What is printed on a page for people to type, for the tests that type it.

Belongs here: finding it, and pasting it. Does not: what each page's names are called in a test.
"""

from __future__ import annotations

import ast
import re
from typing import Any


def chapter(page: str, heading: str) -> str:
    """What a page's text has below a heading of the second level; ValueError without it."""
    _, found, after = page.partition(f"\n## {heading}\n")
    if not found:
        raise ValueError(f"no chapter {heading!r}")
    return after.partition("\n## ")[0] + "\n"


def blocks(page: str, language: str = "") -> list[str]:
    """The fenced blocks of a language in a page's text, from top to bottom."""
    return re.findall(rf"^```{language}\n(.*?)^```$", page, re.M | re.S)


def pasted(code: str, names: dict[str, Any]) -> Any:
    """What the last line of a snippet is worth, with these names defined."""
    *lines, last = ast.parse(code).body
    assert isinstance(last, ast.Expr)
    exec(compile(ast.Module(lines, []), "pasted", "exec"), names)
    return eval(compile(ast.Expression(last.value), "pasted", "eval"), names)
