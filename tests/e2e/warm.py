"""Commands as processes that begin warm: forked from one that has imported everything, with a
Java that is lent to one after another.

Belongs here: asking for such a process, waiting for it, killing it. Does not: the process that
forks (`forking`), the Java (`lent_java`); and what is to be proven of a first start: such commands
get processes of their own (`tests.e2e.project`).
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any, ClassVar, Self
from weakref import WeakSet

from lockstep.resources.postgres.embedded import EmbeddedServer

REPOSITORY = Path(__file__).resolve().parents[2]
TIMEOUT = 240


class WarmProcess:
    """A `tests.e2e.forking` to talk to, which has one child at a time and one Java. Started by
    the first command."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._folder: Path | None = None
        self._ours: socket.socket | None = None
        self.ledgers = HeldLedgers()

    @property
    def folder(self) -> Path | None:
        """Where its Java writes what is nobody's."""
        return self._folder

    def run(
        self,
        arguments: Sequence[str],
        *,
        folder: Path,
        environment: Mapping[str, str],
        hold: bool = True,
    ) -> subprocess.CompletedProcess[str]:
        """One command of the command line, in a process of its own."""
        with self.start(
            "lockstep.cli", arguments, folder=folder, environment=environment, hold=hold
        ) as begun:
            out, err = begun.communicate(TIMEOUT)
        assert begun.returncode is not None
        return subprocess.CompletedProcess(list(arguments), begun.returncode, out, err)

    def start(
        self,
        module: str,
        arguments: Sequence[str],
        *,
        folder: Path,
        environment: Mapping[str, str],
        hold: bool = True,
        lend: bool = True,
    ) -> StartedProcess:
        """`python -m MODULE …`, begun; the folder's ledger runs already, and goes on, if asked to
        `hold` it. A Java that it needs is its own, unless it is lent one."""
        channel = self._channel()
        if hold:
            self.ledgers.hold(folder)
        out, err = (os.memfd_create(name) for name in ("out", "err"))
        asked = {
            "module": module,
            "arguments": list(arguments),
            "folder": str(folder),
            "env": dict(environment),
            "lend": lend,
        }
        socket.send_fds(channel, [json.dumps(asked).encode()], [out, err])
        return StartedProcess(channel, out, err)

    def twin(self) -> WarmProcess:
        """Another one, for two commands at a time: forked from this one, and ends before it."""
        made = WarmProcess()
        made._folder = Path(tempfile.mkdtemp(prefix="lent-java-"))
        made._ours, theirs = _pair()
        asked = json.dumps({"twin": str(made._folder)}).encode()
        socket.send_fds(self._channel(), [asked], [theirs.fileno()])
        theirs.close()
        return made

    def stop(self) -> None:
        """End it and its Java."""
        self.ledgers.close()
        if self._ours is None or self._folder is None:
            return
        self._ours.close()
        if self._process is not None:
            self._process.wait(TIMEOUT)
        shutil.rmtree(self._folder, ignore_errors=True)
        self._process = self._ours = None

    def _channel(self) -> socket.socket:
        """To the process; one that died took its test with it, and no other."""
        if self._process is not None and self._process.poll() is not None:
            self.stop()
        return self._ours or self._start()

    def _start(self) -> socket.socket:
        self._ours, theirs = _pair()
        self._folder = Path(tempfile.mkdtemp(prefix="lent-java-"))
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.e2e.forking", str(theirs.fileno()), str(self._folder)],
            cwd=REPOSITORY,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            pass_fds=[theirs.fileno()],
        )
        theirs.close()
        return self._ours


def _pair() -> tuple[socket.socket, socket.socket]:
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)


class StartedProcess:
    """A child of a warm process: what of `subprocess.Popen` the tests need of it, and no more. It
    does not outlive its `with`."""

    def __init__(self, channel: socket.socket, out: int, err: int) -> None:
        self._channel = channel
        self._out, self._err = os.fdopen(out, "rb"), os.fdopen(err, "rb")
        self.returncode: int | None = None
        self.pid = int(self._told(TIMEOUT)["pid"])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.send_signal(signal.SIGKILL)
        self.wait(TIMEOUT)
        self._out.close()
        self._err.close()

    def wait_until_stopped(self) -> None:
        """Until it has stopped itself (SIGSTOP)."""
        assert "stopped" in self._told(TIMEOUT), self._said(self._err)

    def send_signal(self, number: signal.Signals) -> None:
        if self.returncode is None:
            os.kill(self.pid, number)

    def wait(self, timeout: float) -> int:
        """Its exit code, negative for a signal; `subprocess.TimeoutExpired`."""
        while self.returncode is None:
            told = self._told(timeout)
            if "ended" in told:
                self.returncode = int(told["ended"])
        return self.returncode

    def communicate(self, timeout: float) -> tuple[str, str]:
        """What it said, once it is done."""
        self.wait(timeout)
        return self._said(self._out), self._said(self._err)

    def _told(self, timeout: float) -> dict[str, Any]:
        self._channel.settimeout(timeout)
        try:
            answer = self._channel.recv(1 << 16)
        except TimeoutError:
            raise subprocess.TimeoutExpired("a warm process's child", timeout) from None
        assert answer, "the warm process ended"
        told: dict[str, Any] = json.loads(answer)
        return told

    @staticmethod
    def _said(file: IO[bytes]) -> str:
        file.seek(0)
        return file.read().decode("utf-8", errors="replace")


MOST = 2
"""A module's project, and a test's."""

_QUICKLY = {"fsync": "off", "full_page_writes": "off"}


class HeldLedgers:
    """Embedded ledgers that stay up from one command of a project to the next, the one held longest
    first. The last user of one stops it, and a command is its only user: to start and to stop it
    takes longer than most commands do. That they start and stop by themselves is proven by
    `tests.ledger.test_embedded`, and by every command that begins cold."""

    _all: ClassVar[WeakSet[HeldLedgers]] = WeakSet()

    def __init__(self) -> None:
        self._servers: dict[Path, EmbeddedServer] = {}
        self._all.add(self)

    @classmethod
    def let_go_below(cls, folder: Path) -> None:
        """All of this process, before a folder is removed."""
        for held in cls._all:
            for ledger in [one for one in held._servers if one.is_relative_to(folder)]:
                held._servers.pop(ledger).close()

    def hold(self, project: Path) -> None:
        """That of a project's folder, if it has one."""
        folder = _ledger(project)
        if folder in self._servers or not (folder / "data").exists():
            return
        while len(self._servers) >= MOST:
            self._servers.pop(next(iter(self._servers))).close()
        self._servers[folder] = EmbeddedServer(folder, _QUICKLY)

    def let_go(self, project: Path) -> None:
        """Before its files are copied, replaced or removed."""
        server = self._servers.pop(_ledger(project), None)
        if server is not None:
            server.close()

    def close(self) -> None:
        while self._servers:
            self._servers.popitem()[1].close()


def _ledger(project: Path) -> Path:
    return project / ".lockstep" / "ledger"
