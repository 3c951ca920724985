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
    """Open a lock's file and return its descriptor. The file's mode lets only this
    account open it, because a process that opens it can make others wait."""
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def wait_for_lock(descriptor: int, operation: int, path: Path) -> None:
    """Wait for a lock (`operation`: `fcntl.LOCK_EX` or `LOCK_SH`); after
    `MESSAGE_AFTER_SECONDS` print on standard error which processes hold it."""
    with suppress(BlockingIOError):
        fcntl.flock(descriptor, operation | fcntl.LOCK_NB)
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
    """Return descriptions of the processes that hold a lock of the file; none on
    systems without /proc."""
    with suppress(OSError):
        file = f"{_device(descriptor)}:{os.fstat(descriptor).st_ino}"
        return list(map(_process_description, lock_holders(Path("/proc/locks").read_text(), file)))
    return []


def lock_holders(locks: str, file: str) -> list[str]:
    """Return the ids of the processes that hold a lock of a file. `locks`: the content
    of /proc/locks, whose lines name kind, process and file (proc_locks(5)); `file`:
    device and inode in its form, such as `fe:00:1234`."""
    lines = map(str.split, locks.splitlines())
    return [words[4] for words in lines if words[1] == "FLOCK" and words[5] == file]


def _device(descriptor: int) -> str:
    """Return the device of the file's mount in the form of /proc/locks. `st_dev` may be
    another number, such as that of a subvolume of Btrfs."""
    status = Path(f"/proc/self/fdinfo/{descriptor}").read_text()
    [mount] = (line.split()[1] for line in status.splitlines() if line.startswith("mnt_id:"))
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        words = line.split()
        if words[0] == mount:
            return ":".join(f"{int(number):02x}" for number in words[2].split(":"))
    raise FileNotFoundError(f"no mount {mount}")


def _process_description(pid: str) -> str:
    """Return a process's id and, if this account may see it, its command line."""
    with suppress(OSError):
        command = Path("/proc", pid, "cmdline").read_bytes().decode(errors="replace")
        words = " ".join(command.replace("\0", " ").split())
        if words:
            return f"process {pid} ({words[:120]})"
    return f"process {pid}"
