"""JSON files in `.lockstep`, which all processes of one lockstep.toml share. They are
locked while they are changed, and replaced atomically."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lockstep.resources.file_lock import exclusive_lock
from lockstep.resources.private import make_private


def read_json_object(path: Path) -> dict[str, Any]:
    """Return the JSON object in a file; an empty one if the file is missing, cannot be
    read, or has no object."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


@contextmanager
def edit_json_object(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the file's object to one process at a time; write it if the process changed
    it."""
    make_private(path.parent)
    with exclusive_lock(path.with_name(f"{path.name}.lock")):
        content = read_json_object(path)
        before = _json_text(content)
        yield content
        after = _json_text(content)
        if after != before:
            replace_file(path, after)


@contextmanager
def note_write_errors(subject: str, note: Callable[[str], None]) -> Iterator[None]:
    """Note that a file could not be written, instead of raising OSError: a run must not
    fail because of a file that only Dagster's pages need. `subject` names the file in
    the note."""
    try:
        yield
    except OSError as error:
        note(f"{subject} was not written: {error}")


def _json_text(content: dict[str, Any]) -> str:
    return json.dumps(content, ensure_ascii=False, indent=1)


def replace_file(path: Path, text: str) -> None:
    """Replace the file atomically, so that nobody reads a part of the text."""
    descriptor, new_name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        Path(new_name).replace(path)
    except BaseException:
        Path(new_name).unlink(missing_ok=True)
        raise
