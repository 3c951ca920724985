"""Memory, processor time and reads of processes. This module imports nothing that a measured
process does not import."""

from __future__ import annotations

import os
from pathlib import Path


def highest_resident_size(process: int | str = "self") -> int:
    """Return the highest resident size in bytes; 0 after the process ended. getrusage cannot be
    used: there a process begins with the peak of its parent (proc_pid_status(5), VmHWM)."""
    try:
        status = Path(f"/proc/{process}/status").read_text()
    except OSError:
        return 0
    lines = (line.split() for line in status.splitlines() if line.startswith("VmHWM:"))
    return next((int(kilobytes) * 1024 for _, kilobytes, _ in lines), 0)


def resident_sizes(process: int) -> list[int]:
    """Return the present resident sizes in bytes of a process and of its descendants."""
    pages = [_words(f"/proc/{number}/statm")[1:2] for number in _with_children(process)]
    return [int(number) * os.sysconf("SC_PAGE_SIZE") for words in pages for number in words]


def processor_seconds(process: int) -> float:
    """Return the processor time of a process and of its descendants so far (proc_pid_stat(5))."""
    ticks = (_words(f"/proc/{number}/stat", after=")")[11:13] for number in _with_children(process))
    return sum(int(number) for words in ticks for number in words) / os.sysconf("SC_CLK_TCK")


def read_bytes(process: int) -> int:
    """Return the bytes that a process and its descendants have read so far from files and pipes,
    cached or not (proc_pid_io(5), rchar)."""
    return sum(int(_words(f"/proc/{number}/io")[1:2][0]) for number in _with_children(process))


def _with_children(process: int) -> list[int]:
    threads = Path(f"/proc/{process}/task")
    try:
        children = [word for path in threads.iterdir() for word in _words(f"{path}/children")]
    except OSError:
        return []
    return [process, *(each for child in children for each in _with_children(int(child)))]


def _words(path: str, after: str = "") -> list[str]:
    try:
        text = Path(path).read_text()
    except OSError:
        return []
    return text[text.rfind(after) + 1 if after else 0 :].split()
