"""The process that forks runs: it has imported what they need, and opens nothing.

Belongs here: taking commands, forking, passing signals on, telling how a run ended. Does not: what
a fork does then (`child`).

It has one thread of Python's, or a fork would have locks that nobody opens: so it waits for all it
has to hear of in one place. (Those of OpenBLAS and jemalloc know of forks.) It ends when Spark's
server does and its last run has ended.
"""

from __future__ import annotations

import gc
import json
import os
import selectors
import signal
import socket
import struct
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from lockstep.forkserver import channel
from lockstep.forkserver.child import Command, become
from lockstep.forkserver.surroundings import first_difference
from lockstep.forkserver.surroundings import surroundings as seen_from_here

_ENDING: Final = frozenset({signal.SIGINT, signal.SIGTERM, signal.SIGHUP})
PEER: Final = struct.Struct("3i")
"""Of SO_PEERCRED (unix(7)): process, account, group."""

_OTHER_CODE: Final = "its code is older than what is installed: restart `lockstep spark serve`"

Main = Callable[[], int]


def start_beside(folder: Path, main: Main) -> None:
    """Start it as a process that lives no longer than this one, whatever program this one becomes.
    `folder` is for its socket; each fork calls `main`."""
    reading, writing = os.pipe()
    child = os.fork()
    if child:
        os.close(reading)
        os.set_inheritable(writing, True)
        os.waitpid(child, 0)
        return
    if os.fork():
        os._exit(0)  # so that the server is no child of Java's, which would not bury it
    code = 1
    try:
        os.setsid()
        for descriptor in _open_descriptors() - {0, 1, 2, reading}:
            os.close(descriptor)
        import_for_runs()
        serve(folder, reading, main)
        code = 0
    except BaseException:  # noqa: BLE001 - the last words of a process
        sys.excepthook(*sys.exc_info())
    finally:
        os._exit(code)


def import_for_runs() -> None:
    """What a run imports sooner or later, and the compiled engine, which is read from its cache."""
    from lockstep.bytecode import import_what_runs_need

    import_what_runs_need()
    import_module("resources.mysql.rehearsal").rehearse()
    import_module("assets.storage").make_storage_cheap()


def code_in_use() -> dict[str, tuple[int, int]]:
    """When each file was changed that a module came from, in nanoseconds, and its size."""
    found = {}
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None)
        if file is not None:
            found[file] = _changed(file)
    return found


def _changed(file: str) -> tuple[int, int]:
    with suppress(OSError):
        told = Path(file).stat()
        return told.st_mtime_ns, told.st_size
    return 0, 0


def _open_descriptors() -> set[int]:
    listed = list(Path("/proc/self/fd").iterdir())
    return {int(path.name) for path in listed if path.exists()}


def serve(folder: Path, ended: int, main: Main) -> None:
    """Take commands in the folder until `ended` can be read, or is closed at its other end."""
    with channel.new_socket() as listener:
        server = ForkServer(listener, ended, main)
        with channel.address(folder) as address:
            listener.bind(address)
            Path(address).chmod(0o600)
        listener.listen()
        try:
            server.serve()
        finally:
            with suppress(OSError), channel.address(folder) as address:
                Path(address).unlink()


class ForkServer:
    """Forks of this process, each for one connection. `ended` can be read, or is closed at its
    other end, when no more are wanted. Its code is what it was when this was made: before anybody
    can connect."""

    def __init__(self, listener: socket.socket, ended: int, main: Main) -> None:
        self._listener = listener
        self._ended = ended
        self._main = main
        self._code: dict[str, tuple[int, int]] = {}
        self._selector = selectors.DefaultSelector()
        self._runs: dict[socket.socket, int] = {}
        self._taking = True
        self._lessons, self._teacher = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._settle()

    def serve(self) -> None:
        """Until nobody wants runs any more, and the last one ended."""
        self._hear(self._lessons, self._learn)
        reading, writing = socket.socketpair()
        writing.setblocking(False)
        signal.set_wakeup_fd(writing.detach())
        for number in _ENDING:
            signal.signal(number, lambda *_: None)
        self._hear(reading, partial(self._stop_taking, reading))
        self._hear(self._ended, partial(self._stop_taking, self._ended))
        self._hear(self._listener, self._accept)
        while self._taking or self._runs:
            for key, _ in self._selector.select():
                key.data()

    def _hear(self, what: socket.socket | int, then: Callable[[], None]) -> None:
        self._selector.register(what, selectors.EVENT_READ, then)

    def _stop_taking(self, heard: socket.socket | int) -> None:
        self._selector.unregister(heard)
        if self._taking:
            self._taking = False
            self._selector.unregister(self._listener)
            self._listener.close()

    def _settle(self) -> None:
        """What is imported now stays as it is, and forks need not copy what they only look at."""
        self._code = {**code_in_use(), **self._code}
        gc.collect()
        gc.freeze()

    def _learn(self) -> None:
        """What the last run had to import besides, no other one has to."""
        for name in self._lessons.recv(channel.LONGEST).decode().split():
            with suppress(Exception):
                import_module(name)
        self._settle()

    def _accept(self) -> None:
        if not self._taking:  # both were heard at once
            return
        connection, _ = self._listener.accept()
        told = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, PEER.size)
        if PEER.unpack(told)[1] != os.geteuid():
            connection.close()
            return
        self._hear(connection, partial(self._read, connection))

    def _read(self, connection: socket.socket) -> None:
        try:
            data, descriptors, _, _ = socket.recv_fds(
                connection, channel.LONGEST, channel.DESCRIPTORS
            )
        except OSError:
            data, descriptors = b"", []
        if connection in self._runs:
            self._pass_on(connection, data)
        elif not data:
            self._forget(connection)
        else:
            self._answer(connection, data, descriptors)
        for descriptor in descriptors:
            os.close(descriptor)

    def _pass_on(self, connection: socket.socket, signals: bytes) -> None:
        """To its run, which is killed where whoever asked for it is gone."""
        if not signals:
            self._selector.unregister(connection)
        for number in signals or (signal.SIGKILL,):
            with suppress(OSError):
                signal.pidfd_send_signal(self._runs[connection], number)

    def _answer(self, connection: socket.socket, data: bytes, descriptors: list[int]) -> None:
        try:
            message = json.loads(data)
            if "surroundings" in message:
                channel.send(connection, self._greeting(**message))
            else:
                self._fork(connection, Command(**message), descriptors)
        except (OSError, TypeError, ValueError):
            self._forget(connection)

    def _greeting(self, surroundings: Mapping[str, str], folders: list[str]) -> dict[str, Any]:
        if any(_changed(file) != changed for file, changed in self._code.items()):
            return {"declined": _OTHER_CODE}
        if threading.active_count() > 1:
            return {"declined": "a module that it imported has begun a thread"}
        differs = first_difference(seen_from_here(*folders), surroundings)
        if differs is not None:
            return {"declined": f"{differs} is not the same there"}
        return {"ready": True}

    def _fork(self, connection: socket.socket, command: Command, descriptors: list[int]) -> None:
        if len(descriptors) != channel.DESCRIPTORS:
            raise ValueError("not the descriptors of a command")
        server = os.getpid()
        before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        try:
            child = os.fork()
            if not child:
                self._close_all()
                become(command, descriptors, self._main, server, self._teacher)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        self._runs[connection] = os.pidfd_open(child)
        self._hear(self._runs[connection], partial(self._bury, connection))

    def _bury(self, connection: socket.socket) -> None:
        run = self._runs.pop(connection)
        self._selector.unregister(run)
        told = os.waitid(os.P_PIDFD, run, os.WEXITED)
        os.close(run)
        assert told is not None, "a process that ended has a status"
        word = "code" if told.si_code == os.CLD_EXITED else "signal"
        with suppress(OSError):
            channel.send(connection, {word: told.si_status})
        self._forget(connection)

    def _forget(self, connection: socket.socket) -> None:
        with suppress(KeyError, ValueError):  # closed already: both ends were heard at once
            self._selector.unregister(connection)
        connection.close()

    def _close_all(self) -> None:
        """In a fork: none of it is the fork's."""
        for key in self._selector.get_map().values():
            if isinstance(key.fileobj, socket.socket):
                key.fileobj.close()
            else:
                os.close(key.fd)
        os.close(signal.set_wakeup_fd(-1))
        self._selector.close()
