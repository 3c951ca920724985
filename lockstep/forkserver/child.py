"""A fork becomes the run that a command asked for.

Belongs here: what it takes over from the command, and its end. Does not: which process forks it
(`server`).
"""

from __future__ import annotations

import ctypes
import os
import random
import signal
import socket
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any, Final, NoReturn

from lockstep.exits import DEFECT, INTERRUPTED

_ON_PARENTS_DEATH: Final = 1
"""PR_SET_PDEATHSIG, of prctl(2)."""

_MAY_BE_IGNORED: Final = (signal.SIGINT, signal.SIGHUP, signal.SIGTERM)


@dataclass(frozen=True, slots=True)
class Command:
    """What a process is besides its code: its arguments, its variables, the mode of its files, and
    the signals that whoever started it has it ignore."""

    arguments: list[str]
    variables: dict[str, str]
    mask: int
    ignored: list[int]

    @classmethod
    def of_this_process(cls) -> Command:
        """As it was started."""
        mask = os.umask(0o077)
        os.umask(mask)
        ignored = [
            number for number in _MAY_BE_IGNORED if signal.getsignal(number) is signal.SIG_IGN
        ]
        return cls(sys.argv, dict(os.environ), mask, [int(number) for number in ignored])

    def message(self) -> dict[str, Any]:
        """As it is sent."""
        return asdict(self)


def become(
    command: Command,
    descriptors: Sequence[int],
    main: Callable[[], int],
    parent: int,
    lessons: socket.socket,
) -> NoReturn:
    """Be the process of the command, and end with it; `descriptors` as `channel` says. Whoever
    forked it has closed what is not its own, and blocked the signals, and is told what else it had
    to import. Whatever is raised ends here: what stands around is the server's."""
    code = INTERRUPTED
    try:
        _take_over(command, descriptors, parent)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        before = set(sys.modules)
        code = main()
        if imported := sys.modules.keys() - before:
            with suppress(OSError):
                lessons.send("\n".join(imported).encode())
    except KeyboardInterrupt:  # before `main` took care of it, or behind it
        pass
    except BaseException:  # noqa: BLE001 - the last words of a process
        code = DEFECT
        sys.excepthook(*sys.exc_info())
    finally:
        os._exit(code)


def _take_over(command: Command, descriptors: Sequence[int], parent: int) -> None:
    _end_with(parent)
    os.setsid()
    *streams, folder = descriptors
    for number, descriptor in enumerate(streams):
        os.dup2(descriptor, number)
    os.fchdir(folder)
    for descriptor in descriptors:
        os.close(descriptor)
    os.umask(command.mask)
    os.environ.clear()
    os.environ.update(command.variables)
    time.tzset()
    random.seed()
    sys.argv = command.arguments
    for number in _MAY_BE_IGNORED:
        ignored, default = number in command.ignored, signal.SIG_DFL
        if number is signal.SIGINT:
            default = signal.default_int_handler  # type: ignore[assignment]
        signal.signal(number, signal.SIG_IGN if ignored else default)


def _end_with(parent: int) -> None:
    """A run whose server is killed is killed with it: nobody could send it a signal any more."""
    ctypes.CDLL(None, use_errno=True).prctl(_ON_PARENTS_DEATH, signal.SIGKILL)
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)
