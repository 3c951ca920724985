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

SILENT_SECONDS: Final = 2.0
"""Seconds after which a process that waits for a lock prints a message."""


@contextmanager
def exclusive_lock(lock: Path) -> Iterator[None]:
    """Hold the lock of a file, which is created if it is missing; other processes wait."""
    descriptor = open_lock(lock)
    try:
        wait_for_lock(descriptor, fcntl.LOCK_EX, lock)
        yield
    finally:
        os.close(descriptor)


def open_lock(lock: Path) -> int:
    """Open a lock's file and return its descriptor. Only this account may open the
    file, because whoever can open it can make others wait."""
    return os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def wait_for_lock(descriptor: int, kind: int, lock: Path) -> None:
    """Wait for a lock of a kind (`fcntl.LOCK_EX` or `LOCK_SH`); after `SILENT_SECONDS`
    print on standard error which processes hold it."""
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        pass
    else:
        return
    timer = Timer(SILENT_SECONDS, _report, (descriptor, lock))
    timer.daemon = True
    timer.start()
    try:
        fcntl.flock(descriptor, kind)
    finally:
        timer.cancel()


def _report(descriptor: int, lock: Path) -> None:
    holders = ", ".join(_holders(descriptor)) or "another process"
    sys.stderr.write(f"Waiting for {holders}, which holds the lock {lock}.\n")
    sys.stderr.flush()


def _holders(descriptor: int) -> list[str]:
    """Return the processes that hold a lock of the file. Linux lists locks with kind,
    process and file (device and inode), see proc_locks(5)."""
    inode = os.fstat(descriptor).st_ino
    holders = []
    with suppress(OSError):
        for line in Path("/proc/locks").read_text().splitlines():
            words = line.split()
            if words[1] == "FLOCK" and words[5].rpartition(":")[2] == str(inode):
                holders.append(_description(words[4]))
    return holders


def _description(process: str) -> str:
    """Return a process with its command line, if this account may see it."""
    with suppress(OSError):
        command = Path("/proc", process, "cmdline").read_bytes().decode(errors="replace")
        words = " ".join(command.replace("\0", " ").split())
        if words:
            return f"process {process} ({words[:120]})"
    return f"process {process}"
