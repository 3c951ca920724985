"""Locks between processes of one machine, by files. The lock that a run holds on its
source is in the ledger instead: runs may be on several machines."""

from __future__ import annotations

import fcntl
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Timer
from typing import Final

MESSAGE_AFTER_SECONDS: Final = 2.0
"""Seconds after which a process that waits for a lock prints a message."""


@contextmanager
def exclusive_lock(path: Path) -> Iterator[None]:
    """Hold the lock of a file, which is created if it is missing; other processes wait."""
    descriptor = open_lock(path)
    try:
        wait_for_lock(descriptor, fcntl.LOCK_EX, path)
        yield
    finally:
        os.close(descriptor)


def open_lock(path: Path) -> int:
    """Open a lock's file and return its descriptor. Only this account may open the
    file, because a process that opens it can make others wait."""
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def wait_for_lock(descriptor: int, operation: int, path: Path) -> None:
    """Wait for a lock (`operation`: `fcntl.LOCK_EX` or `LOCK_SH`); after
    `MESSAGE_AFTER_SECONDS` print on standard error which processes hold it."""
    try:
        fcntl.flock(descriptor, operation | fcntl.LOCK_NB)
    except BlockingIOError:
        pass
    else:
        return
    timer = Timer(MESSAGE_AFTER_SECONDS, _report_holders, (descriptor, path))
    timer.daemon = True
    timer.start()
    try:
        fcntl.flock(descriptor, operation)
    finally:
        timer.cancel()


def _report_holders(descriptor: int, path: Path) -> None:
    names = ", ".join(_holders(descriptor)) or "another process"
    sys.stderr.write(f"Waiting for {names}, which holds the lock {path}.\n")
    sys.stderr.flush()


def _holders(descriptor: int) -> list[str]:
    """Return descriptions of the processes that hold a lock of the file. Linux lists
    locks with kind, process and file (device and inode), see proc_locks(5)."""
    inode = os.fstat(descriptor).st_ino
    holders = []
    with suppress(OSError):
        for line in Path("/proc/locks").read_text().splitlines():
            words = line.split()
            if words[1] == "FLOCK" and words[5].rpartition(":")[2] == str(inode):
                holders.append(_process_description(words[4]))
    return holders


def _process_description(pid: str) -> str:
    """Return a process's id and, if this account may see it, its command line."""
    with suppress(OSError):
        command = Path("/proc", pid, "cmdline").read_bytes().decode(errors="replace")
        words = " ".join(command.replace("\0", " ").split())
        if words:
            return f"process {pid} ({words[:120]})"
    return f"process {pid}"
