"""A MySQL server for the demo and the tests that can be started, stopped and killed, whatever
`mysql_search.find_mysql` returned: a program, a Docker image, or a server that somebody else
runs. This module speaks no SQL."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self, assert_never

from demo.mysql_data import account, prepare_data
from demo.mysql_docker import DockerMySql
from demo.mysql_search import DockerImage, GivenServer, MySql, Program, cache_folder
from demo.tcp import free_port, greets
from lockstep.pipeline.values.errors import ConfigurationError, SetupIncomplete

START_SECONDS = 60.0
STOP_SECONDS = 30.0

# What Lockstep requires of a source, and what makes a small server start quickly. Servers before
# MySQL 8.0 ignore the unknown options that begin with "loose".
SETTINGS = (
    "--bind-address=127.0.0.1",
    "--server-id=1",
    "--log-bin=binlog",
    "--gtid-mode=ON",
    "--enforce-gtid-consistency=ON",
    "--loose-binlog-row-metadata=FULL",
    "--loose-mysqlx=OFF",
    "--performance-schema=OFF",
    "--innodb-buffer-pool-size=128M",
    "--loose-innodb-redo-log-capacity=64M",
    "--secure-file-priv=",
)


# Creates a missing data folder, given the program, the folder, the cache and the options.
PrepareData = Callable[[Program, Path, Path, Sequence[str]], None]


class RunningMySql(Protocol):
    """A server that is reached over TCP with an account that may do everything.

    `stop`, `kill` and `start` keep its data, host and port. As a context manager it is started on
    entry, and removed at the end. A server that somebody else runs refuses all three, and is not
    changed.
    """

    host: str
    port: int
    user: str
    password: str

    def start(self) -> None: ...

    def stop(self) -> None: ...

    def kill(self) -> None: ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...


def mysql_server(
    mysql: MySql,
    folder: Path,
    environment: Mapping[str, str],
    *,
    port: int = 0,
    options: Sequence[str] = (),
) -> RunningMySql:
    """Return a server, not started yet, that keeps its data and its log in `folder`. `port`: 0
    picks a free one; `options`: mysqld's, which override ours."""
    match mysql:
        case GivenServer():
            return SomebodysMySql(mysql)
        case Program():
            return ProgramMySql(
                mysql, folder, cache_folder(environment), port=port, options=options
            )
        case DockerImage():
            return DockerMySql(mysql, folder, settings=(*SETTINGS, *options), port=port)
    assert_never(mysql)


class SomebodysMySql:
    """The server in LOCKSTEP_TEST_MYSQL."""

    def __init__(self, given: GivenServer) -> None:
        self.host, self.port = given.host, given.port
        self.user, self.password = given.user, given.password

    def start(self) -> None:
        raise self._refusal("started")

    def stop(self) -> None:
        raise self._refusal("stopped")

    def kill(self) -> None:
        raise self._refusal("killed")

    def _refusal(self, verb: str) -> ConfigurationError:
        return ConfigurationError(
            f"the server at {self.host}:{self.port} is somebody else's and cannot be {verb} here",
            hint="unset LOCKSTEP_TEST_MYSQL to use a server of our own",
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return None


class ProgramMySql:
    """A `mysqld` of this host in a session of its own. `settings` and `prepare` are MySQL's by
    default; MariaDB has its own."""

    host = "127.0.0.1"
    user = "root"
    password = ""

    def __init__(
        self,
        program: Program,
        folder: Path,
        cache: Path,
        *,
        port: int,
        options: Sequence[str],
        settings: Sequence[str] = SETTINGS,
        prepare: PrepareData = prepare_data,
    ) -> None:
        self.port = port or free_port()
        self.data = folder / "data"
        self.log = folder / "mysqld.log"
        self._program = program
        self._folder = folder
        self._cache = cache
        self._options = tuple(options)
        self._settings = tuple(settings)
        self._prepare = prepare
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def pid(self) -> int | None:
        """The server's process number; None while it is stopped."""
        return None if self._process is None else self._process.pid

    @property
    def crashed(self) -> bool:
        """True if the server ended although nobody stopped it."""
        return self._process is not None and self._process.poll() is not None

    def start(self) -> None:
        """Start the server on its data folder, which is created if it is missing, and wait until
        it greets clients."""
        if self._process is not None:
            return
        self._folder.mkdir(parents=True, exist_ok=True)
        end_leftover(self.data)
        # The number in a killed server's lock file may belong to another process now.
        (self.data / "mysqld.sock.lock").unlink(missing_ok=True)
        self._prepare(self._program, self.data, self._cache, self._options)
        self._process = self._launch()
        try:
            self._await_greeting(self._process)
        except BaseException:
            self.kill()
            raise

    def stop(self) -> None:
        """Shut the server down by SIGTERM; after half a minute, kill it."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """Kill the server, as a power cut would."""
        self._end(signal.SIGKILL)

    def _launch(self) -> subprocess.Popen[bytes]:
        with self.log.open("ab") as log:
            return subprocess.Popen(
                [
                    *self._program.command,
                    *account(),
                    f"--datadir={self.data}",
                    f"--port={self.port}",
                    # Relative to the data folder: a socket's whole path may be too long.
                    "--socket=mysqld.sock",
                    f"--pid-file={self.data / 'mysqld.pid'}",
                    *self._settings,
                    *self._options,
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                # Ctrl-C must not end the server: its user stops it in order.
                start_new_session=True,
                preexec_fn=_restore_interrupt,
            )

    def _await_greeting(self, process: subprocess.Popen[bytes]) -> None:
        deadline = time.monotonic() + START_SECONDS
        while not greets(self.host, self.port):
            if process.poll() is not None:
                raise self._not_started("ended at once")
            if time.monotonic() > deadline:
                raise self._not_started(f"did not answer within {START_SECONDS:.0f} s")
            time.sleep(0.05)

    def _not_started(self, failure: str) -> SetupIncomplete:
        return SetupIncomplete(f"mysqld {failure}", hint=f"its log says why: {self.log}")

    def _end(self, how: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(how)
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _restore_interrupt() -> None:
    # A shell makes jobs that it starts with `&` ignore SIGINT, and children inherit that.
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def end_leftover(data: Path) -> None:
    """End a server that an earlier process, which was killed, left on this data folder."""
    try:
        pid = int((data / "mysqld.pid").read_text())
        command = Path(f"/proc/{pid}/cmdline").read_bytes()
    except (OSError, ValueError):
        return
    if f"--datadir={data}".encode() not in command.split(b"\0"):
        return
    # The descriptor is readable once every thread of the server is gone.
    server = os.pidfd_open(pid)
    try:
        signal.pidfd_send_signal(server, signal.SIGKILL)
        select.select([server], [], [], STOP_SECONDS)
    finally:
        os.close(server)
