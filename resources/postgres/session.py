"""The ledger's session: the named statements of the `.sql` files, run on one
connection, in one transaction at a time."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from importlib.resources import files
from typing import Any, TypeVar

import psycopg2
from psycopg2.extensions import TRANSACTION_STATUS_IDLE
from psycopg2.extensions import connection as Connection
from psycopg2.extensions import cursor as Cursor
from psycopg2.extras import execute_values

from lockstep.pipeline.values.decisions import Lease
from lockstep.pipeline.values.errors import LeaseLost
from lockstep.pipeline.values.retries import LEDGER_CONNECTION
from lockstep.resources.postgres.connection import LedgerAddress, connect, is_lost, translate_errors
from lockstep.resources.postgres.refusals import refusal
from lockstep.resources.postgres.rows import Row

_NAME_LINE = re.compile(r"^-- name: (\w+)$", re.MULTILINE)


@cache
def queries() -> dict[str, str]:
    """Return each statement by its name. Raise `ValueError` if a name occurs twice."""
    statements: dict[str, str] = {}
    for file in files("lockstep.resources.postgres").iterdir():
        if not file.name.endswith(".sql"):
            continue
        _, *parts = _NAME_LINE.split(file.read_text(encoding="utf-8"))
        for name, body in zip(parts[::2], parts[1::2], strict=True):
            if name in statements:
                raise ValueError(f"two statements are named {name}")
            statements[name] = body.strip()
    return statements


def query(name: str) -> str:
    """Return a statement's text. Raise `KeyError` for an unknown name."""
    return queries()[name]


Value = TypeVar("Value")

_INSERT_COLUMNS = re.compile(r"\(([^()]+)\)[\w\s]*values %s")
_ROWS_PER_INSERT = 1000
"""Largest number of rows that one statement inserts."""


class Transaction:
    """An open transaction, in which named statements are run."""

    def __init__(self, cursor: Cursor) -> None:
        self._cursor = cursor

    def run(self, name: str, /, **values: Any) -> int:
        """Run a statement, and return the number of rows that it affected."""
        self._cursor.execute(query(name), values)
        return self._cursor.rowcount

    def all(self, name: str, /, **values: Any) -> list[Row]:
        """Run a statement, and return its rows."""
        self._cursor.execute(query(name), values)
        return _as_rows(self._cursor, self._cursor.fetchall())

    def only(self, name: str, /, **values: Any) -> Row:
        """Return the row of a statement that always returns exactly one."""
        (row,) = self.all(name, **values)
        return row

    def run_or_refuse(self, name: str, rule: str, /, **values: Any) -> None:
        """Run a statement. If it affects no row, raise `LedgerRefused` with the
        sentence that belongs to `rule`, a name of what the ledger does not allow."""
        if self.run(name, **values) == 0:
            raise refusal(rule)

    def insert(self, name: str, rows: Sequence[Mapping[str, Any]], /) -> list[Row]:
        """Insert many rows, and return the rows that the statement returns. A row gives
        a value for each column that the statement names; its other values are
        ignored."""
        if not rows:
            return []
        text = query(name)
        fetch = "returning" in text
        returned = execute_values(
            self._cursor,
            text,
            rows,
            template=_row_placeholders(text),
            page_size=_ROWS_PER_INSERT,
            fetch=fetch,
        )
        return _as_rows(self._cursor, returned) if fetch else []


@cache
def _row_placeholders(text: str) -> str:
    """Return the placeholders of one row of an INSERT, by the names of its columns."""
    columns = _INSERT_COLUMNS.findall(text)[0].split(",")
    return f"({', '.join(f'%({column.strip()})s' for column in columns)})"


def _as_rows(cursor: Cursor, values: Iterable[tuple[Any, ...]]) -> list[Row]:
    """Return rows as dicts; psycopg2's own cursors for that take four times as long."""
    names = [column.name for column in cursor.description or ()]
    return [dict(zip(names, row, strict=True)) for row in values]


class Session:
    """One connection, which one thread uses at a time.

    If the connection was closed, or lost while idle, the first statement of a
    transaction opens a new one, once. A connection that is lost later raises
    `LedgerUnavailable`.
    """

    def __init__(self, address: LedgerAddress, connection: Connection) -> None:
        self.address = address
        self._connection: Connection | None = connection
        self._lock = threading.RLock()
        self._lost: set[Lease] = set()

    def lose(self, lease: Lease) -> None:
        """Refuse all later writes under this lease, because its lock is lost."""
        self._lost.add(lease)

    def require_not_lost(self, lease: Lease) -> None:
        """Raise `LeaseLost` if `lose` was called for the lease. Postgres is not
        asked."""
        if lease in self._lost:
            raise LeaseLost(
                f"The lock on the source {lease.source!r} was lost: Postgres or the network ended "
                "the connection that held it; nothing of this run was recorded after that.",
                hint="Run again; if it happens each time, look at what ends connections to "
                "[ledger] dsn.",
            )

    def all(self, name: str, /, **values: Any) -> list[Row]:
        """Return the rows of one statement, in a transaction of its own."""
        with self._lock, translate_errors(self.address):
            cursor, rows = self._begin(name, values, alone=True)
            cursor.close()
            return rows

    @contextmanager
    def transaction(self, name: str, /, **values: Any) -> Iterator[tuple[Transaction, list[Row]]]:
        """Open a transaction, and yield it with the rows of its first statement. Commit
        after the block, or roll back if the block fails."""
        with self._lock, translate_errors(self.address):
            cursor, rows = self._begin(name, values, alone=False)
            try:
                with cursor:
                    yield Transaction(cursor), rows
                    cursor.execute("commit")
            except BaseException as error:
                self._roll_back(error)
                raise

    def _begin(
        self, name: str, values: Mapping[str, Any], *, alone: bool
    ) -> tuple[Cursor, list[Row]]:
        """Run the first statement of a transaction, or the only one (`alone`). If the
        connection was lost while idle, run it again on a new one."""
        for wait in LEDGER_CONNECTION.tries():
            is_reused = self._connection is not None
            try:
                return self._run_first(name, values, alone)
            except psycopg2.Error as error:
                if wait is None or not (is_reused and is_lost(error)):
                    raise
        raise AssertionError("the last try returns or raises")

    def _run_first(
        self, name: str, values: Mapping[str, Any], alone: bool
    ) -> tuple[Cursor, list[Row]]:
        if self._connection is None:
            self._connection = connect(self.address)
        cursor = self._connection.cursor()
        try:
            # One message begins the transaction and runs its first statement.
            cursor.execute(query(name) if alone else f"begin;\n{query(name)}", values)
            return cursor, _as_rows(cursor, cursor.fetchall())
        except BaseException as error:
            self._roll_back(error)
            raise

    def _roll_back(self, error: BaseException) -> None:
        if self._connection is None:
            return
        if isinstance(error, psycopg2.Error) and is_lost(error):
            self.close()
            return
        if self._connection.info.transaction_status == TRANSACTION_STATUS_IDLE:
            return
        try:
            with self._connection.cursor() as cursor:
                cursor.execute("rollback")
        except psycopg2.Error:
            self.close()

    def close(self) -> None:
        """Close the connection; the session opens a new one when it is used again."""
        with self._lock:
            connection, self._connection = self._connection, None
            if connection is not None:
                with suppress(psycopg2.Error):
                    connection.close()


class LedgerPort:
    """Base of the classes that each implement one port of the ledger, such as
    `PostgresBatches`. It has reads of one statement, and transactions for writes under
    a lease."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._cached_rows: dict[str, dict[tuple[str, str], list[Any]]] = {}
        """Cache, by source and then by the name and parameters of a statement: the
        converted rows. `leases` adds a source while this process holds its lock."""

    def _cached(
        self, to_value: Callable[[Row], Value], name: str, /, *, source: str, **values: Any
    ) -> list[Value]:
        """Return the rows of one statement as values. While this ledger holds the
        source's lock, the statement runs again only after a write that may change its
        rows.

        Only for tables that are written under a lease. A run that lost the lock and
        does not know it yet may get old rows, as if it had asked a moment earlier; its
        next write is refused.
        """
        # A write replaces the dict: rows that were read before the write and are stored
        # after it go into the old dict, and are never returned again.
        rows_by_query = self._cached_rows.get(source, {})
        key = (name, repr(values))
        if key not in rows_by_query:
            rows = self._all(name, source=source, **values)
            rows_by_query[key] = [to_value(row) for row in rows]
        return [*rows_by_query[key]]

    def _all(self, name: str, /, **values: Any) -> list[Row]:
        return self._session.all(name, **values)

    def _first(self, name: str, /, **values: Any) -> Row | None:
        rows = self._session.all(name, **values)
        return rows[0] if rows else None

    def _only(self, name: str, /, **values: Any) -> Row:
        (row,) = self._session.all(name, **values)
        return row

    @contextmanager
    def _transaction(
        self, lease: Lease, *, changes: Collection[str] | None = None
    ) -> Iterator[Transaction]:
        """Open a transaction during which no other process can take the source over.
        Raise `LeaseLost` if one has. `changes`: the statements of `_cached` whose rows
        the transaction may change; None for all."""
        try:
            with self._session.transaction("fence", source=lease.source) as (transaction, rows):
                self._require_newest(lease, rows)
                yield transaction
        finally:
            if (rows_by_query := self._cached_rows.get(lease.source)) is not None:
                # Other threads may add rows meanwhile: copying the dict is atomic, a
                # loop over it is not.
                self._cached_rows[lease.source] = {
                    key: rows
                    for key, rows in rows_by_query.copy().items()
                    if changes is not None and key[0] not in changes
                }

    def _require_newest(self, lease: Lease, rows: Sequence[Row]) -> None:
        newest = [(row["token"], row["holder"], row["run_id"]) for row in rows]
        if newest != [(lease.token, lease.holder, lease.run_id)]:
            if all(token < lease.token for token, _, _ in newest):
                raise LeaseLost(
                    f"The ledger no longer has this run's lease on the source {lease.source!r}: "
                    "another server of Postgres took over without the newest commits, or the "
                    "ledger was restored; nothing of this run was recorded after that.",
                    hint="Run again: the next run compares the ledger with the lake.",
                )
            raise LeaseLost(
                f"Another run took over the source {lease.source!r}; "
                "nothing of this run was recorded after that.",
                hint="Let the other run finish; `lockstep status` shows it.",
            )
        self._session.require_not_lost(lease)
