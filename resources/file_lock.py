"""One process at a time, by a file that it locks.

Belongs here: the lock between processes of one machine. Does not: a source's lock, which is the
ledger's.
"""

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
"""How long a lock is waited for without a word."""


@contextmanager
def alone(lock: Path) -> Iterator[None]:
    """Hold the file `lock`, which is made if need be; whoever else wants it waits."""
    descriptor = open_lock(lock)
    try:
        take(descriptor, fcntl.LOCK_EX, lock)
        yield
    finally:
        os.close(descriptor)


def open_lock(lock: Path) -> int:
    """The descriptor of a lock's file, which is made for this account alone: who can open it can
    have others wait."""
    return os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def take(descriptor: int, kind: int, lock: Path) -> None:
    """Wait for a lock (`fcntl.LOCK_EX` or `LOCK_SH`); after two seconds say for whom, on standard
    error."""
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        pass
    else:
        return
    waiting = Timer(SILENT_SECONDS, _tell, (descriptor, lock))
    waiting.daemon = True
    waiting.start()
    try:
        fcntl.flock(descriptor, kind)
    finally:
        waiting.cancel()


def _tell(descriptor: int, lock: Path) -> None:
    who = ", ".join(_holders(descriptor)) or "another process"
    sys.stderr.write(f"Waiting for {who}, which holds the lock {lock}.\n")
    sys.stderr.flush()


def _holders(descriptor: int) -> list[str]:
    """The processes that have locked the file, as Linux lists them (proc_locks(5)): in each line
    the kind of the lock, its process, and its file as device and inode."""
    inode = os.fstat(descriptor).st_ino
    found = []
    with suppress(OSError):
        for line in Path("/proc/locks").read_text().splitlines():
            words = line.split()
            if words[1] == "FLOCK" and words[5].rpartition(":")[2] == str(inode):
                found.append(_named(words[4]))
    return found


def _named(process: str) -> str:
    """A process and what was typed to start it, as far as this account may see that."""
    with suppress(OSError):
        command = Path("/proc", process, "cmdline").read_bytes().decode(errors="replace")
        words = " ".join(command.replace("\0", " ").split())
        if words:
            return f"process {process} ({words[:120]})"
    return f"process {process}"
