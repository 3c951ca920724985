"""What processes take of memory and processor. Imports nothing that a measured one does not."""

from __future__ import annotations

import os
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


def resident_sizes(process: int) -> list[int]:
    """Bytes that a process has resident now, then each process below it."""
    pages = [_words(f"/proc/{one}/statm")[1:2] for one in _with_children(process)]
    return [int(one) * os.sysconf("SC_PAGE_SIZE") for found in pages for one in found]


def processor_seconds(process: int) -> float:
    """That a process and those below it have used so far (Linux, proc_pid_stat(5))."""
    ticks = (_words(f"/proc/{one}/stat", behind=")")[11:13] for one in _with_children(process))
    return sum(int(one) for found in ticks for one in found) / os.sysconf("SC_CLK_TCK")


def read_bytes(process: int) -> int:
    """That a process and those below it have read so far, of files and pipes, cached or not
    (Linux, proc_pid_io(5), rchar)."""
    return sum(int(_words(f"/proc/{one}/io")[1:2][0]) for one in _with_children(process))


def _with_children(process: int) -> list[int]:
    threads = Path(f"/proc/{process}/task")
    try:
        children = [word for path in threads.iterdir() for word in _words(f"{path}/children")]
    except OSError:
        return []
    return [process, *(each for child in children for each in _with_children(int(child)))]


def _words(path: str, behind: str = "") -> list[str]:
    try:
        text = Path(path).read_text()
    except OSError:
        return []
    return text[text.rfind(behind) + 1 if behind else 0 :].split()
