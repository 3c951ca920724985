"""One process at a time, by a file that it locks.

Belongs here: the lock between processes of one machine. Does not: a source's lock, which is the
ledger's.
"""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def alone(lock: Path) -> Iterator[None]:
    """Hold the file `lock`, which is made if need be; whoever else wants it waits."""
    with lock.open("ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
