"""Who holds a source's lock, as others see it, and whether that process is gone."""

from __future__ import annotations

import os
import re
import socket
from typing import Final

_HOLDER: Final = re.compile(r"(?P<host>.+), process (?P<process>\d+)(?: \(.*\))?")


def holder(command: str = "") -> str:
    """This process, on its host; `command`: what it does."""
    what = f" ({command})" if command else ""
    return f"{socket.gethostname()}, process {os.getpid()}{what}"


def is_gone(name: str) -> bool:
    """Return whether a holder was a process of this host that is not there any more. Of those of
    other hosts nobody can tell."""
    match = _HOLDER.fullmatch(name)
    if match is None or match["host"] != socket.gethostname():
        return False
    try:
        os.kill(int(match["process"]), 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):  # it is another account's
        return False
    return False
