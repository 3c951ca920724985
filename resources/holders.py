"""The name that a process has as holder of a source's lock, and whether such a process is gone."""

from __future__ import annotations

import os
import re
import socket
from typing import Final

_HOLDER: Final = re.compile(r"(?P<host>.+), process (?P<process>\d+)(?: \(.*\))?")


def holder(command: str = "") -> str:
    """Return this process's name as a holder: its host, its number and the command it performs."""
    suffix = f" ({command})" if command else ""
    return f"{socket.gethostname()}, process {os.getpid()}{suffix}"


def is_gone(name: str) -> bool:
    """Return whether the holder was a process of this host that no longer exists. False for a
    process of another host, which cannot be known."""
    match = _HOLDER.fullmatch(name)
    if match is None or match["host"] != socket.gethostname():
        return False
    try:
        os.kill(int(match["process"]), 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):  # it belongs to another account
        return False
    return False
