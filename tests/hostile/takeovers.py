"""Runs that hang, and runs that take the source over from them.

Belongs here: stopping a run at a place, in Python or in Java inside a commit, and waking it up.
Does not: what must be true then (`test_takeovers`).
"""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.e2e.project import Project
from tests.e2e.warm import TIMEOUT, StartedProcess


class Hanging:
    """A run that is stopped, with its Java process where that is."""

    def __init__(self, process: StartedProcess) -> None:
        self._process = process
        self._stopped = [process.pid]

    def stop(self) -> None:
        """Stop Python and all that it started. A signal is only on its way when `kill` returns,
        so each process is waited for before the next is looked for."""
        self._stopped = []
        waiting = [self._process.pid]
        while waiting:
            number = waiting.pop()
            os.kill(number, signal.SIGSTOP)
            _wait_until_stopped(number)
            self._stopped.append(number)
            waiting += _children(number)

    def wake(self) -> None:
        """What was started last goes on first: who is awake forgets a child that ended."""
        while self._stopped:
            os.kill(self._stopped.pop(), signal.SIGCONT)

    def end(self) -> tuple[int, str]:
        """Its exit code and what it said, once it is done."""
        said = self._process.communicate(timeout=TIMEOUT)[1]
        assert self._process.returncode is not None
        return self._process.returncode, said


@contextmanager
def asleep(project: Project, place: str, nth: int = 1, command: str = "run") -> Iterator[Hanging]:
    """A run, or another command, whose Python has stopped itself before a call
    (`tests.e2e.killer`)."""
    with project.start("tests.e2e.killer", place, "asleep", str(nth), "--", command) as process:
        process.wait_until_stopped()
        yield Hanging(process)


@contextmanager
def asleep_in_java(project: Project, store: Path, commit: str) -> Iterator[Hanging]:
    """A run whose Python and Java were stopped when the draft of a commit was written and had no
    name yet. `store`: the folder of the class that waits there (`HeldLogStore.java`); `commit`:
    the file it waits before, below the lake."""
    gate = project.folder / "gate"
    os.mkfifo(gate)
    told = (str(store), str(gate), str(project.lake / commit))
    with project.start("tests.hostile.held_commit", *told, "--", "run", lend=False) as process:
        hanging = Hanging(process)
        with _opened(gate, process) as way:
            hanging.stop()
            os.write(way, b"go\n")
        try:
            yield hanging
        finally:
            hanging.wake()


def taking_over(project: Project, command: str = "run") -> None:
    """`lockstep run`, or Dagster's run, which takes a holder that is silent for a moment for one
    that hangs."""
    with project.start("tests.e2e.impatient", command) as process:
        said = process.communicate(TIMEOUT)[1]
    assert process.returncode == 0, said


def _children(number: int) -> list[int]:
    return [
        int(child)
        for task in Path(f"/proc/{number}/task").iterdir()
        for child in (task / "children").read_text().split()
    ]


def _wait_until_stopped(number: int) -> None:
    """Until no thread of a process runs any more."""
    until = time.monotonic() + TIMEOUT
    while not all(_stopped(task) for task in Path(f"/proc/{number}/task").iterdir()):
        assert time.monotonic() < until, f"process {number} does not stop"
        time.sleep(0.005)


def _stopped(task: Path) -> bool:
    try:
        status = (task / "stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return True  # the thread ended meanwhile
    return status.rpartition(")")[2].split()[0] in "TtZX"


@contextmanager
def _opened(gate: Path, process: StartedProcess) -> Iterator[int]:
    """A pipe's end for writing, once somebody reads at the other."""
    way = None
    while way is None:
        try:
            way = os.open(gate, os.O_WRONLY | os.O_NONBLOCK)
        except OSError as error:
            assert error.errno == errno.ENXIO
            with suppress(subprocess.TimeoutExpired):
                process.wait(0.01)
            assert process.returncode is None, "the run ended by itself"
    try:
        yield way
    finally:
        os.close(way)
