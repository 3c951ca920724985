"""Names of the processes that hold the locks of sources, and a test for dead holders."""

from __future__ import annotations

import os
import re
import socket
from typing import Final

_HOLDER_NAME: Final = re.compile(r"(?P<host>.+), process (?P<process>\d+)(?: \(.*\))?")


def holder_name(command: str = "") -> str:
    """Return this process's name as a holder: its host, its pid and the command that it
    performs."""
    suffix = f" ({command})" if command else ""
    return f"{socket.gethostname()}, process {os.getpid()}{suffix}"


def is_dead_holder(name: str) -> bool:
    """Return whether the holder was a process of this host that no longer exists.
    Return False for a process of another host, because nothing is known of it here."""
    match = _HOLDER_NAME.fullmatch(name)
    if match is None or match["host"] != socket.gethostname():
        return False
    try:
        os.kill(int(match["process"]), 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):  # it belongs to another account
        return False
    return False
