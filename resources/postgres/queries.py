"""The named statements in the `.sql` files, read once."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files

_NAME = re.compile(r"^-- name: (\w+)$", re.MULTILINE)


@cache
def queries() -> dict[str, str]:
    """Return each statement by its name. `ValueError` for a name that occurs twice."""
    statements: dict[str, str] = {}
    for file in files("lockstep.resources.postgres").iterdir():
        if not file.name.endswith(".sql"):
            continue
        _, *parts = _NAME.split(file.read_text(encoding="utf-8"))
        for name, body in zip(parts[::2], parts[1::2], strict=True):
            if name in statements:
                raise ValueError(f"two statements are named {name}")
            statements[name] = body.strip()
    return statements


def query(name: str) -> str:
    """Return a statement's text; `KeyError` for an unknown name."""
    return queries()[name]
