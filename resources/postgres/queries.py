"""The named statements of `queries.sql`, read once.

Belongs here: finding a statement by its name. Does not: running it.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files

_NAME = re.compile(r"^-- name: (\w+)$", re.MULTILINE)


@cache
def _queries() -> dict[str, str]:
    text = files("resources.postgres").joinpath("queries.sql").read_text(encoding="utf-8")
    _, *parts = _NAME.split(text)
    return {name: body.strip() for name, body in zip(parts[::2], parts[1::2], strict=True)}


def query(name: str) -> str:
    """The statement's text; KeyError for a name that is not in the file."""
    return _queries()[name]
