"""The ledgers that the contract is tried on: embedded, a server of Debian's."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg2
import pytest

from lockstep.pipeline.ports.ledger import Consumers, Ledger
from lockstep.resources.postgres.embedded import EmbeddedServer
from lockstep.resources.postgres.ledger import open_ledger

PASSWORD = "a canary"

EACH_POSTGRES = ["embedded_dsn", pytest.param("server_dsn", marks=pytest.mark.soak)]
"""Fixtures: the embedded server with every change, Debian's with the soak."""


@dataclass(frozen=True)
class Stand:
    """One set of books: `ledger` and `other` are two processes' views of them, and so are
    their consumers; `lose_lock(source)` ends the connection that holds a source's lock."""

    ledger: Ledger
    other: Ledger
    consumers: Consumers
    other_consumers: Consumers
    lose_lock: Callable[[str], None]
    dsn: str


@contextmanager
def postgres_stand(dsn: str) -> Iterator[Stand]:
    def lose_lock(source: str) -> None:
        run(
            dsn,
            "select pg_terminate_backend(backend_pid, 5000) from lockstep.leases"
            " where source = %s order by token desc limit 1",
            source,
        )

    here = Path()
    with open_ledger(dsn, here) as ledger, open_ledger(dsn, here) as other:
        yield Stand(ledger, other, ledger.consumers, other.consumers, lose_lock, dsn)


def run(dsn: str, statement: str, *values: object) -> list[tuple[object, ...]]:
    """One statement, outside a transaction, on a connection of its own."""
    connection = psycopg2.connect(dsn)
    connection.autocommit = True
    try:
        with connection.cursor() as cursor:
            cursor.execute(statement, values)
            return cursor.fetchall() if cursor.description else []
    finally:
        connection.close()


@contextmanager
def embedded_server(folder: Path) -> Iterator[str]:
    """No power is cut here, so it need not wait for the disk."""
    server = EmbeddedServer(folder, {"fsync": "off", "full_page_writes": "off"})
    try:
        yield server.dsn
    finally:
        server.close()


def debian_programs() -> Path | None:
    """The newest Postgres of Debian's packages on this machine."""
    found = sorted(
        Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name)
    )
    return found[-1] if found else None


@contextmanager
def debian_server(programs: Path) -> Iterator[str]:
    """A server over TCP that asks for a password, proven gone afterwards."""
    account = pwd.getpwnam("postgres") if os.geteuid() == 0 else None
    folder = Path(tempfile.mkdtemp(prefix="ledger-server-"))
    secret = folder / "secret"
    secret.write_text(PASSWORD)
    if account:
        os.chown(folder, account.pw_uid, account.pw_gid)
        os.chown(secret, account.pw_uid, account.pw_gid)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    data = str(folder / "data")

    def program(name: str, *arguments: str) -> None:
        subprocess.run(
            [str(programs / name), "-D", data, *arguments],
            user=account.pw_uid if account else None,
            group=account.pw_gid if account else None,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            start_new_session=True,
            check=True,
        )

    account_options = ("-U", "postgres", "-A", "scram-sha-256", "--pwfile", str(secret))
    program("initdb", *account_options, "-E", "UTF8", "-N")
    settings = f"-p {port} -k {folder} -c listen_addresses=127.0.0.1 -c fsync=off"
    program("pg_ctl", "-l", str(folder / "log"), "-w", "-o", settings, "start")
    pid = int((folder / "data" / "postmaster.pid").read_text().split("\n", 1)[0])
    try:
        yield f"host=127.0.0.1 port={port} user=postgres password='{PASSWORD}' dbname=postgres"
    finally:
        program("pg_ctl", "-w", "-m", "immediate", "stop")
        shutil.rmtree(folder)
        assert is_gone(pid)


def is_running(pid: int) -> bool:
    """Whether a process lives; one that only waits to be reaped does not."""
    try:
        os.kill(pid, signal.SIG_DFL)
    except ProcessLookupError:
        return False
    status = Path(f"/proc/{pid}/stat")
    return not status.exists() or status.read_text().rsplit(")", 1)[1].split()[0] != "Z"


def is_gone(pid: int) -> bool:
    """Whether a server that was stopped ends: its file goes first, the process a moment later."""
    until = time.monotonic() + 20
    while is_running(pid) and time.monotonic() < until:
        time.sleep(0.01)
    return not is_running(pid)
