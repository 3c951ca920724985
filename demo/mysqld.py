"""A MySQL server for the demo and the tests that can be started, stopped and killed, whatever
`mysql_search.find_mysql` returned: a program with a data folder, a Docker image, or a server
that somebody else runs. This module speaks no SQL."""

from __future__ import annotations

import hashlib
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self, assert_never

from demo.mysql_search import DockerImage, GivenServer, MySql, Program, cache_folder
from demo.tcp import free_port, is_mysql_greeting
from lockstep.pipeline.values.errors import ConfigurationError, SetupIncomplete
from lockstep.resources.file_lock import exclusive_lock

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


ENDS_WITH_STARTER = (
    sys.executable,
    "-I",
    "-S",
    str(Path(__file__).with_name("ends_with_starter.py")),
)
"""The words that make a command end with the process that starts it, if its standard input is a
pipe."""

EnsureDataFolder = Callable[[Program, Path, Path, Sequence[str]], None]
"""A function that creates a missing data folder, given the program, the folder, the cache and the
options."""


class RunningMySql(Protocol):
    """A server that is reached over TCP with an account that may do everything.

    `stop`, `kill` and `start` keep its data, host and port. As a context manager it is started on
    entry and ended on exit. A server that somebody else runs refuses `stop`, `kill` and `start`,
    and the context neither starts nor ends it.
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
            return GivenMySql(mysql)
        case Program():
            return ProgramMySql(
                mysql, folder, cache_folder(environment), port=port, options=options
            )
        case DockerImage():
            return DockerMySql(mysql, folder, settings=(*SETTINGS, *options), port=port)
    assert_never(mysql)


class GivenMySql:
    """The server that LOCKSTEP_TEST_MYSQL names."""

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


# -- data folders, copied from one that was initialised before ---------------------------------
#
# Initialising takes seconds, copying tenths of a second. There is a prepared folder for each
# version of the program; each copy becomes a server with its own UUID.

# Options that cannot change after a data folder is initialised.
_INITIAL_OPTIONS = (
    "lower-case-table-names",
    "innodb-page-size",
    "innodb-data-file-path",
    "innodb-undo-directory",
)


def ensure_data_folder(program: Program, data: Path, cache: Path, options: Sequence[str]) -> None:
    """Create `data` as a fresh data folder (root without a password) unless it exists."""
    if data.exists():
        return
    initial_options = tuple(sorted(o for o in options if _option_name(o) in _INITIAL_OPTIONS))
    prepared_folder = _prepared_folder(program, cache, initial_options)
    # Rename at the end, so that no later start uses a half-copied folder.
    with tempfile.TemporaryDirectory(dir=data.parent, prefix=".copying-") as folder:
        copy = Path(folder, "data")
        shutil.copytree(prepared_folder, copy, ignore=shutil.ignore_patterns("auto.cnf"))
        copy.rename(data)


def root_options() -> tuple[str, ...]:
    """Return the option that mysqld requires to run as root."""
    return ("--user=root",) if os.geteuid() == 0 else ()


def _option_name(option: str) -> str:
    return option.removeprefix("--").partition("=")[0].replace("_", "-")


def _prepared_folder(program: Program, cache: Path, initial_options: tuple[str, ...]) -> Path:
    words = (*program.command, program.version, *initial_options)
    digest = hashlib.sha256("\0".join(words).encode()).hexdigest()[:12]
    prepared_folder = cache / f"mysql-data-{digest}"
    cache.mkdir(parents=True, exist_ok=True)
    with exclusive_lock(cache / f"mysql-data-{digest}.lock"):
        if not prepared_folder.exists():
            _initialise(program, prepared_folder, initial_options)
    return prepared_folder


def _initialise(program: Program, prepared_folder: Path, initial_options: tuple[str, ...]) -> None:
    with tempfile.TemporaryDirectory(dir=prepared_folder.parent, prefix=".initialising-") as folder:
        data = Path(folder, "data")
        process = subprocess.run(
            [
                *program.command,
                "--initialize-insecure",
                *root_options(),
                f"--datadir={data}",
                "--loose-innodb-redo-log-capacity=64M",
                "--secure-file-priv=",
                *initial_options,
            ],
            capture_output=True,
            text=True,
            check=False,
        )
        if process.returncode != 0:
            last_line = " ".join(process.stderr.strip().splitlines()[-1:])
            raise SetupIncomplete(
                f"mysqld could not make a data folder: {last_line}",
                hint="name a server: LOCKSTEP_TEST_MYSQL=mysql://root:password@host:3306",
            )
        data.rename(prepared_folder)


# -- a program of this host ---------------------------------------------------------------------


class ProgramMySql:
    """A `mysqld` of this host in a session of its own, which is killed if this process ends without
    stopping it. `settings` and `prepare` are MySQL's by default; MariaDB has its own."""

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
        prepare: EnsureDataFolder = ensure_data_folder,
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
    def has_crashed(self) -> bool:
        """True if the server ended although nobody stopped it."""
        return self._process is not None and self._process.poll() is not None

    def start(self) -> None:
        """Start the server on its data folder, which is created if it is missing, and wait until
        it greets clients."""
        if self._process is not None:
            return
        self._folder.mkdir(parents=True, exist_ok=True)
        kill_leftover(self.data)
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
                    *ENDS_WITH_STARTER,
                    *self._program.command,
                    *root_options(),
                    f"--datadir={self.data}",
                    f"--port={self.port}",
                    # Relative to the data folder: a socket's whole path may be too long.
                    "--socket=mysqld.sock",
                    f"--pid-file={self.data / 'mysqld.pid'}",
                    *self._settings,
                    *self._options,
                ],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                # Ctrl-C must not end the server: its user stops it in order.
                start_new_session=True,
            )

    def _await_greeting(self, process: subprocess.Popen[bytes]) -> None:
        deadline = time.monotonic() + START_SECONDS
        while not is_mysql_greeting(self.host, self.port):
            if process.poll() is not None:
                raise self._start_error("ended at once")
            if time.monotonic() > deadline:
                raise self._start_error(f"did not answer within {START_SECONDS:.0f} s")
            time.sleep(0.05)

    def _start_error(self, failure: str) -> SetupIncomplete:
        return SetupIncomplete(f"mysqld {failure}", hint=f"its log says why: {self.log}")

    def _end(self, end_signal: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(end_signal)
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdin is not None:
            process.stdin.close()


def kill_leftover(data: Path) -> None:
    """Kill the server that still runs on this data folder, and wait for its end: the process that
    started it was killed a moment ago."""
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


# -- a container, for hosts that have a Docker engine but no `mysqld` ----------------------------
#
# The first start creates the container; the end removes it with its data. Stopping and killing
# it keep both.

DOCKER_START_SECONDS = 120.0


class DockerMySql:
    """A container. Its id is kept in `folder`, so that the next start can remove a leftover."""

    host = "127.0.0.1"
    user = "root"
    password = ""

    def __init__(
        self, image: DockerImage, folder: Path, *, settings: Sequence[str], port: int
    ) -> None:
        self.port = port or free_port()
        self._image = image.image
        self._id_file = folder / "container"
        # Inside the container the server must listen on its network's address.
        self._settings = tuple(s for s in settings if not s.startswith("--bind-address"))
        self._container: str | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._container is not None:
            self._remove(self._container)
            self._container = None

    def start(self) -> None:
        """Create the container, or start it again, and wait until the server greets clients."""
        if self._container is None:
            self._container = self._create_container()
        _docker("start", self._container)
        deadline = time.monotonic() + DOCKER_START_SECONDS
        while not is_mysql_greeting(self.host, self.port):
            if time.monotonic() > deadline:
                raise SetupIncomplete(
                    f"MySQL in Docker did not answer within {DOCKER_START_SECONDS:.0f} s",
                    hint=f"docker logs {self._container[:12]}",
                )
            time.sleep(0.1)

    def stop(self) -> None:
        if self._container is not None:
            _docker("stop", self._container)

    def kill(self) -> None:
        if self._container is not None:
            _docker("kill", self._container)

    def _create_container(self) -> str:
        self._id_file.parent.mkdir(parents=True, exist_ok=True)
        if self._id_file.exists():
            self._remove(self._id_file.read_text())
        container = _docker(
            "create",
            "--env=MYSQL_ALLOW_EMPTY_PASSWORD=yes",
            "--env=MYSQL_ROOT_HOST=%",
            f"--publish=127.0.0.1:{self.port}:3306",
            self._image,
            *self._settings,
        )
        self._id_file.write_text(container)
        return container

    def _remove(self, container: str) -> None:
        # `--force` also ends a running container, and does not fail if there is none.
        _docker("rm", "--force", "--volumes", container)
        self._id_file.unlink(missing_ok=True)


def _docker(*words: str) -> str:
    process = subprocess.run(["docker", *words], capture_output=True, text=True, check=False)
    if process.returncode != 0:
        last_line = " ".join(process.stderr.strip().splitlines()[-1:])
        raise SetupIncomplete(
            f"`docker {words[0]}` failed: {last_line}",
            hint="start the Docker engine, or put mysqld 8.0 or newer on PATH",
        )
    return process.stdout.strip()
