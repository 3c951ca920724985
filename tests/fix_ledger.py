"""Ledgers for the tests: each a database of its own, on one Postgres of the process that does not
wait for a disk, from the first test that needs one on.

A database goes back to the others when its ledger and whoever keeps it are gone, and is emptied for
the next test. Connections to it stay open for the next ledger, because Postgres reads its catalog
again for each new one, which takes longer than most of what a ledger is asked. What is in a ledger
at a moment can be kept, and another one made of it.
"""

from __future__ import annotations

import io
import os
import shutil
import tempfile
import weakref
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any, Final

import psycopg2
import pytest
from psycopg2.extensions import TRANSACTION_STATUS_IDLE, make_dsn
from psycopg2.extensions import connection as Connection
from psycopg2.extensions import cursor as Cursor

from lockstep.pipeline.ports.ledger import LAST_BATCH
from lockstep.pipeline.values.decisions import Lease
from lockstep.pipeline.values.errors import LedgerUnavailable
from lockstep.pipeline.values.segment import Segment, SegmentFile, SystemTable
from lockstep.pipeline.values.table import TableName
from lockstep.resources.postgres.connection import LedgerAddress, connect
from lockstep.resources.postgres.consumers import PostgresConsumers
from lockstep.resources.postgres.embedded import EmbeddedServer
from lockstep.resources.postgres.ledger import PostgresLedger, open_ledger
from lockstep.resources.postgres.session import LedgerPort, Session
from tests.ledger.servers import is_running

_OF_SOURCE: Final = """
update lockstep.source_files set size = %s, sha256 = %s where path = %s and batch = %s and name = %s
"""
_OF_TABLE: Final = """
update lockstep.{} f set size = %s, sha256 = %s
from lockstep.segments s
where f.segment = s.id and f.path = %s and s.batch = %s and (s.database, s.name) = (%s, %s)
"""

Clock = Callable[[], datetime]

QUICKLY: Final = {
    "fsync": "off",
    "full_page_writes": "off",
    "max_connections": "200",
    "autovacuum": "off",
    "jit": "off",
}
_STARTED: list[tuple[EmbeddedServer, Path]] = []
_FREE: list[str] = []
_IDLE: defaultdict[str, list[Connection]] = defaultdict(list)
"""Connections of ledgers that are gone, by the name of their database."""

_MOST_IDLE: Final = 2
"""Of one database."""

_BESIDE: dict[str, Connection] = {}
"""To each database one connection that no rule of the ledger looks at."""

_NUMBERS = count(1)
_TEMPLATE: Final = "template_ledger"
_OPTIONS: Final = "-c search_path=clock,pg_catalog"
_CLOCK: Final = """
create schema clock;
create table clock.moment (at timestamptz);
insert into clock.moment values (null);
create function clock.clock_timestamp() returns timestamptz language sql volatile as $$
    select coalesce((select at from clock.moment), pg_catalog.clock_timestamp())
$$;
"""
"""A clock that a test may set: it stands before Postgres' own on the search path."""

_TABLES = """
select c.relname from pg_class c
where c.relnamespace = 'lockstep'::regnamespace and c.relkind = 'r'
  and c.relname <> 'schema_migrations'
order by c.relname
"""
_SEQUENCES = """
select sequencename, last_value from pg_sequences where schemaname = 'lockstep' order by 1
"""


@cache
def server_dsn() -> str:
    """The server's own database; it has a ledger's as a template besides."""
    _stop_left()
    folder = Path(tempfile.mkdtemp(prefix=f"ledgers-{os.getpid()}-"))
    server = EmbeddedServer(folder, QUICKLY)
    _STARTED.append((server, folder))
    with closing(_connected(server.dsn)) as connection, connection.cursor() as cursor:
        cursor.execute(f"create database {_TEMPLATE}")
    template = make_dsn(server.dsn, dbname=_TEMPLATE)
    with closing(_connected(template)) as connection, connection.cursor() as cursor:
        cursor.execute(_CLOCK)
    open_ledger(make_dsn(template, options=_OPTIONS), Path()).close()
    return server.dsn


def _stop_left() -> None:
    """The servers of processes that were killed, which could not stop them. Another process that
    begins may be removing the same folder: no server starts in that any more."""
    for folder in Path(tempfile.gettempdir()).glob("ledgers-*-*"):
        if not is_running(int(folder.name.split("-")[1])):
            with suppress(LedgerUnavailable):
                EmbeddedServer(folder, QUICKLY).close()
            shutil.rmtree(folder, ignore_errors=True)


def pytest_unconfigure() -> None:
    for server, folder in _STARTED:
        server.close()
        shutil.rmtree(folder)
    _STARTED.clear()


def _keep(name: str, session: Session) -> None:
    """The session's connection, for the next ledger in that database; the session opens another one
    if it is used again."""
    connection, session._connection = session._connection, None
    if connection is None or connection.closed:
        return
    is_idle = connection.info.transaction_status == TRANSACTION_STATUS_IDLE
    if is_idle and len(_IDLE[name]) < _MOST_IDLE:
        _IDLE[name].append(connection)
    else:
        connection.close()


def _connected(dsn: str) -> Connection:
    connection = psycopg2.connect(dsn)
    connection.autocommit = True
    return connection


class Database:
    """One for a ledger, empty at first; those who keep it share it."""

    def __init__(self) -> None:
        if _FREE:
            name = _FREE.pop()
            self.name, self.dsn = name, make_dsn(server_dsn(), dbname=name)
            self._empty()
        else:
            name = f"ledger{next(_NUMBERS)}"
            with closing(_connected(server_dsn())) as connection, connection.cursor() as cursor:
                cursor.execute(f"create database {name} template {_TEMPLATE} strategy file_copy")
            self.name, self.dsn = name, make_dsn(server_dsn(), dbname=name)
            self.tell("update lockstep.ledger set id = gen_random_uuid()")  # not the template's
        weakref.finalize(self, _FREE.append, name)

    def _empty(self) -> None:
        """Whoever is still connected is of a test that is over, but for those that are kept."""
        _IDLE[self.name] = kept = [one for one in _IDLE[self.name] if not one.closed]
        others = "from pg_stat_activity where datname = %s and pid <> pg_backend_pid()"
        others += " and pid <> all(%s::int[])"
        pids = [one.info.backend_pid for one in kept]
        with self.beside() as cursor:
            cursor.execute(f"select pg_terminate_backend(pid, 5000) {others}", [self.name, pids])
            cursor.execute(_SEQUENCES)
            counted = [name for name, last in cursor.fetchall() if last is not None]
            cursor.execute(_TABLES)
            tables = [name for (name,) in cursor.fetchall()]
            cursor.execute(
                "".join(f"delete from lockstep.{name};" for name in tables)
                + "".join(f"select setval('lockstep.{name}', 1, false);" for name in counted)
                + "update clock.moment set at = null;"
                + "insert into lockstep.ledger (id) values (gen_random_uuid())"
            )

    def beside(self) -> Cursor:
        """A cursor whose statements no rule of the ledger looks at."""
        if self.name not in _BESIDE or _BESIDE[self.name].closed:
            _BESIDE[self.name] = connected_beside(self.dsn)
        return _BESIDE[self.name].cursor()

    def tell(self, statement: str, *values: object) -> list[Any]:
        """Run a statement that no rule of the ledger looks at."""
        with self.beside() as cursor:
            cursor.execute(statement, values)
            return cursor.fetchall() if cursor.description else []


@dataclass(frozen=True)
class Content:
    """All that a ledger has at a moment: the rows of each table, and the numbers given so far."""

    rows: Mapping[str, str]
    numbers: Mapping[str, int]


def connected_beside(dsn: str) -> Connection:
    """A connection whose statements no rule of the ledger looks at."""
    connection = _connected(dsn)
    with connection.cursor() as cursor:
        cursor.execute("set session_replication_role = replica")
    return connection


def content_of(cursor: Cursor) -> Content:
    """Return what the cursor's ledger has now."""
    rows = {}
    cursor.execute(_TABLES)
    for (table,) in cursor.fetchall():
        copied = io.StringIO()
        cursor.copy_expert(f"copy lockstep.{table} to stdout", copied)
        if copied.tell():
            rows[table] = copied.getvalue()
    cursor.execute(_SEQUENCES)
    return Content(rows, {name: last for name, last in cursor.fetchall() if last})


def fill(cursor: Cursor, content: Content) -> None:
    """Put the content into a ledger that has tables and no rows, beside its rules."""
    cursor.execute("delete from lockstep.ledger")
    for table, rows in content.rows.items():
        cursor.copy_expert(f"copy lockstep.{table} from stdin", io.StringIO(rows))
    for name, last in content.numbers.items():
        cursor.execute(f"select setval('lockstep.{name}', {last})")


class LedgerOfTest(PostgresLedger):
    """A ledger on a database of its own, or on one that another ledger has too. `clock`: what its
    moments are, set whenever a lease is taken; the machine's without one."""

    def __init__(self, database: Database | None = None, clock: Clock | None = None) -> None:
        self.database = Database() if database is None else database
        self.told_clock = clock
        address = LedgerAddress(
            make_dsn(self.database.dsn, options=_OPTIONS), "a ledger of the tests"
        )
        idle = _IDLE[self.database.name]
        while idle and idle[-1].closed:
            idle.pop()
        session = Session(address, idle.pop() if idle else connect(address))
        LedgerPort.__init__(self, session)
        self._server, self.consumers = None, PostgresConsumers(session)
        weakref.finalize(self, _keep, self.database.name, session).atexit = False

    def close(self) -> None:
        _keep(self.database.name, self._session)

    @contextmanager
    def lock(
        self, source: str, holder: str, run_id: str | None, *, in_dagster: bool = False
    ) -> Iterator[Lease]:
        self._set_clock()
        with super().lock(source, holder, run_id, in_dagster=in_dagster) as lease:
            yield lease

    def clock(self) -> datetime:
        self._set_clock()
        return super().clock()

    def _set_clock(self) -> None:
        if self.told_clock is not None:
            self.database.tell("update clock.moment set at = %s", self.told_clock())

    @classmethod
    def of(cls, content: Content, clock: Clock | None = None) -> LedgerOfTest:
        """One that has what another one had; nobody holds its sources."""
        ledger = cls(clock=clock)
        with ledger.database.beside() as cursor:
            fill(cursor, content)
        return ledger

    def content(self) -> Content:
        with self.database.beside() as cursor:
            return content_of(cursor)

    def fail_over(self, content: Content) -> None:
        """A standby that had only this takes the server's place: each connection ends, and what was
        committed since is gone."""
        self.database._empty()
        with self.database.beside() as cursor:
            fill(cursor, content)

    def recorded(self, source: str) -> list[tuple[int, Segment]]:
        """The segments of all batches, each with its batch's number."""
        contents = self.contents(source, 0, LAST_BATCH)
        return [(one.batch, segment) for one in contents for segment in one.segments]

    def misrecord(self, batch: int, table: TableName | SystemTable, file: SegmentFile) -> None:
        """Believe that the batch's file of that path, of a table, has this size and content."""
        told = (file.size, file.sha256, file.path, batch)
        if isinstance(table, SystemTable):
            self.database.tell(_OF_SOURCE, *told, table.value)
            return
        for files in ("segment_files", "revised_files"):
            of_table = _OF_TABLE.format(files)
            self.database.tell(of_table, *told, table.database, table.name)

    def lose_lock(self, source: str) -> None:
        """What the end of the connection does that holds a source's lock."""
        self.database.tell(
            "select pg_terminate_backend(backend_pid, 5000) from lockstep.leases"
            " where source = %s order by token desc limit 1",
            source,
        )


@pytest.fixture(scope="session")
def embedded_dsn() -> str:
    """The Postgres of this process."""
    return server_dsn()
