"""Files below `.lockstep` that all processes of one lockstep.toml share, each replaced whole."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from resources.file_lock import alone
from resources.private import make_private


def read_object(path: Path) -> dict[str, Any]:
    """The JSON object in a file; an empty one where the file is missing or is none of ours."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


@contextmanager
def changing_object(path: Path) -> Iterator[dict[str, Any]]:
    """The object in the file, for one process at a time. It is written where it was changed."""
    make_private(path.parent)
    with alone(path.with_name(f"{path.name}.lock")):
        found = read_object(path)
        before = _text(found)
        yield found
        if (after := _text(found)) != before:
            replace_file(path, after)


def _text(found: dict[str, Any]) -> str:
    return json.dumps(found, ensure_ascii=False, indent=1)


def replace_file(path: Path, text: str) -> None:
    """Whoever reads it sees the old text or the new one, whole."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
