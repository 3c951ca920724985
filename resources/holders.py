"""The names of the account that decides something, and of the process that holds the
lock of a source."""

from __future__ import annotations

import getpass
import os
import re
import socket
from typing import Final

_HOLDER_NAME: Final = re.compile(r"(?P<host>.+), process (?P<process>\d+)(?: \(.*\))?")


def account_name() -> str:
    """Return the name of this account, or its number if it has none, as in a container."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"uid {os.getuid()}"


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
    except (OSError, OverflowError):  # another account's process; a number that is no pid
        return False
    return False
