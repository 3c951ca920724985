"""A command asks the process that forks runs for one.

Belongs here: whether there is such a process and it takes the command, signals on their way there,
and how the run ended. Does not: what is said to people (`lockstep.cli`).
"""

from __future__ import annotations

import os
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, Final

from lockstep.forkserver import channel
from lockstep.forkserver.child import Command
from lockstep.forkserver.surroundings import surroundings

_PATIENCE: Final = 2.0
"""Seconds for an answer: a process that has none to give takes none."""

_FORWARDED: Final = (
    signal.SIGINT,
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGQUIT,
    signal.SIGTSTP,
    signal.SIGCONT,
)


@dataclass(frozen=True, slots=True)
class ForkEnded:
    """The run was a fork, and ended with this code."""

    code: int


@dataclass(frozen=True, slots=True)
class ForkDeclined:
    """There is a process that forks runs, and this one is not for it. `reason` follows a colon."""

    reason: str


@dataclass(frozen=True, slots=True)
class ForkLost:
    """The run was a fork, and was killed with the process that it came from."""


def ask_for_run(state_folder: Path) -> ForkEnded | ForkDeclined | ForkLost | None:
    """None where no process forks runs for this project, or a standard stream is closed. A run that
    a signal killed ends this process by the same."""
    folder = state_folder / "spark"
    if sys.platform != "linux" or not (folder / channel.SOCKET).is_socket():
        return None
    if not all(map(_is_open, (0, 1, 2))):  # or the socket would be one of them
        return None
    with ExitStack() as stack:
        connection = stack.enter_context(channel.new_socket())
        connection.settimeout(_PATIENCE)
        try:
            with channel.address(folder) as address:
                connection.connect(address)
            folders = [str(Path.cwd()), str(folder)]
            channel.send(connection, {"surroundings": surroundings(*folders), "folders": folders})
            answer = channel.receive(connection)
            if answer is None or "declined" in answer:
                return ForkDeclined(answer["declined"] if answer else "it is ending")
            connection.settimeout(None)
            with _signals_wait():
                _send_command(connection)
                stack.enter_context(_forwarding(connection))
        except OSError as error:
            return ForkDeclined(f"it does not answer ({error.strerror or 'no word for 2 seconds'})")
        told = _ending(connection)
    if told is None:
        return ForkLost()
    if "signal" in told:
        signal.signal(told["signal"], signal.SIG_DFL)
        os.kill(os.getpid(), told["signal"])
    return ForkEnded(told["code"])


def _is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True


def _send_command(connection: socket.socket) -> None:
    folder = os.open(".", os.O_RDONLY | os.O_DIRECTORY)
    try:
        channel.send(connection, Command.of_this_process().message(), 0, 1, 2, folder)
    finally:
        os.close(folder)


def _ending(connection: socket.socket) -> dict[str, Any] | None:
    try:
        return channel.receive(connection)
    except OSError:
        return None


@contextmanager
def _signals_wait() -> Iterator[None]:
    """From when there may be a run until it is told of signals: none of them is this process's."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _FORWARDED)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _forwarding(connection: socket.socket) -> Iterator[None]:
    """Signals to this process go to its run, which knows what to do about them."""

    def forward(number: int, _: FrameType | None) -> None:
        stops = number == signal.SIGTSTP  # as by Ctrl-Z
        with suppress(OSError):
            connection.send(bytes([signal.SIGSTOP if stops else number]))
        if stops:
            os.kill(os.getpid(), signal.SIGSTOP)

    heard = [one for one in _FORWARDED if signal.getsignal(one) is not signal.SIG_IGN]
    before = {number: signal.signal(number, forward) for number in heard}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
