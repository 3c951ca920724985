"""A lake as it will be when time has passed: every commit so far was made so many days earlier.

Belongs here: moving what Delta goes by, the moments in commits and of files. Does not: waiting.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

_MOMENTS: Final = ("inCommitTimestamp", "timestamp", "deletionTimestamp", "modificationTime")
_DAY: Final = 86_400


def age(table: Path, days: int) -> None:
    """Of a Delta table whose log has no checkpoint yet."""
    log = table / "_delta_log"
    assert not [*log.glob("*.checkpoint*")], "what is in checkpoints cannot be moved"
    for checksum in [*log.glob("*.crc")]:
        checksum.unlink()
    for commit in sorted(log.glob("*.json")):
        lines = [_moved(json.loads(line), days) for line in commit.read_text().splitlines() if line]
        commit.write_text("".join(f"{json.dumps(line, separators=(',', ':'))}\n" for line in lines))
    for file in _files(table):
        told = file.stat()
        os.utime(file, (told.st_atime - days * _DAY, told.st_mtime - days * _DAY))


def _files(table: Path) -> Iterator[Path]:
    yield from (file for file in table.rglob("*") if file.is_file())


def _moved(action: dict[str, Any], days: int) -> dict[str, Any]:
    for found in action.values():
        for name in _MOMENTS:
            if isinstance(found, dict) and isinstance(found.get(name), int):
                found[name] -= days * _DAY * 1000
    return action
