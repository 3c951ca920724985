"""Who holds a source's lock, as others see it. A name, nothing else."""

from __future__ import annotations

import os
import socket


def holder(command: str) -> str:
    return f"{socket.gethostname()}, process {os.getpid()} ({command})"
