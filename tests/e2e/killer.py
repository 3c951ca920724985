"""Runs the command line and kills it, like a power cut, at one call of one port.

    python -m tests.e2e.killer POINT before|soon|after|asleep|stopped N -- run

`dagster` instead of a command is a run that is Dagster's (`tests.e2e.dagster_run`).

`tests.e2e.points` lists the points. Before the process kills itself it writes where it is into the
file `KILLED` of its folder: one that ended by SIGKILL without that was killed by somebody else.

The process sends itself SIGKILL before or after the N-th call: nothing is flushed, no
handler runs. "soon" is a moment after it began. "stopped" is SIGTERM before it, as a supervisor
stops a process. "asleep" is SIGSTOP before it: a process that hangs until somebody wakes it.
It lives in the tests; the product has no such switch.
"""

from __future__ import annotations

import importlib
import os
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from tests.e2e import dagster_run
from tests.e2e.dagster_run import DAGSTER

KILLED: Final = ".killed"


def died_at(target: str, when: str, nth: int) -> str:
    """What `KILLED` has then."""
    return f"{when} {target}, call {nth}"


def arm(target: str, when: str, nth: int) -> None:
    """Replace the method or function by one that kills the process at its `nth` call."""
    module, _, path = target.partition(":")
    owner_name, _, name = path.rpartition(".")
    found = importlib.import_module(module)
    owner = getattr(found, owner_name) if owner_name else found
    original: Callable[..., Any] = getattr(owner, name)
    lock, calls = threading.Lock(), [0]

    def die() -> None:
        Path(KILLED).write_text(died_at(target, when, nth))
        os.kill(os.getpid(), signal.SIGKILL)

    def deadly(*args: Any, **options: Any) -> Any:
        with lock:
            calls[0] += 1
            due = calls[0] == nth
        if due and when == "before":
            die()
        if due and when == "asleep":
            os.kill(os.getpid(), signal.SIGSTOP)
        if due and when == "stopped":
            os.kill(os.getpid(), signal.SIGTERM)
        if due and when == "soon":
            threading.Timer(0.3, die).start()
        result = original(*args, **options)
        if due and when == "after":
            die()
        return result

    setattr(owner, name, deadly)


def main() -> int:
    """Arm, then hand over to the command line or to Dagster."""
    target, when, nth, divider, *arguments = sys.argv[1:]
    assert divider == "--"
    arm(target, when, int(nth))
    if arguments == [DAGSTER]:
        return dagster_run.main()
    cli = importlib.import_module("lockstep.cli")
    result: int = cli.main(arguments)
    return result


if __name__ == "__main__":
    sys.exit(main())
