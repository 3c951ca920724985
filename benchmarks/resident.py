"""The highest resident size of a process. Imports nothing that a measured one does not."""

from __future__ import annotations

from pathlib import Path


def highest_resident_size(process: int | str = "self") -> int:
    """Bytes; 0 once the process is gone. Not getrusage's: a process begins there with the
    peak of the one that started it (Linux, proc_pid_status(5), VmHWM)."""
    try:
        status = Path(f"/proc/{process}/status").read_text()
    except OSError:
        return 0
    found = (line.split() for line in status.splitlines() if line.startswith("VmHWM:"))
    return next((int(kilobytes) * 1024 for _, kilobytes, _ in found), 0)
