"""Reads a table for a comparison with its mirror: hashes of its rows, which the server
computes, or some of the rows themselves.

The sum of all hashes is a single row, however large the table is. If the hashes
themselves are read, each row takes 16 bytes: the hash of its key and the hash of the
whole row.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import pyarrow as pa
from pymysql.cursors import Cursor

from lockstep.pipeline.ports.source import (
    ComparedRows,
    ReadMarks,
    SourceHashes,
    SourceSample,
    SourceSum,
)
from lockstep.pipeline.proof.canonical import text_expression
from lockstep.pipeline.proof.hashes import HASH_BYTES, MODULUS, RowSum
from lockstep.pipeline.proof.sampling import STRETCH_ROWS
from lockstep.pipeline.schema.rows import row_structure
from lockstep.pipeline.schema.types import arrow_schema
from lockstep.pipeline.snapshot.chunks import beyond
from lockstep.pipeline.snapshot.pace import Patience
from lockstep.pipeline.values.errors import StructureMoved, TableError
from lockstep.pipeline.values.server_errors import quotable_names, require_harmless
from lockstep.pipeline.values.table import Column, TableStructure, quoted, quoted_table
from lockstep.resources.mysql.connection import ConnectionSettings, Dialect, connect, read_dialect
from lockstep.resources.mysql.reader import reading_cursor, translate_table_errors
from lockstep.resources.mysql.receiving import ReadingCursor
from lockstep.resources.mysql.schemas import read_schemas
from lockstep.resources.mysql.select import BEGIN, read_warnings, select_rows
from lockstep.resources.mysql.watcher import watch
from lockstep.resources.mysql.watermarks import (
    commits_in_order,
    has_snapshots,
    low_mark,
    read_log_end,
    snapshot_place,
)

_HASH_DIGITS: Final = 2 * HASH_BYTES
"""Number of hexadecimal digits of a hash."""

_ROWS_PER_FETCH: Final = 10_000
"""Number of rows that are fetched at once."""


Key = tuple[Any, ...]
ChooseStarts = Callable[[int, int], Sequence[int]]
"""Chooses the keys at which samples start, between the table's least and greatest key."""


@dataclass(frozen=True, slots=True)
class HashSql:
    """The SQL for the hashes of one table's rows."""

    structure: TableStructure
    flavour: str

    @property
    def row_hash(self) -> str:
        """The SQL expression for a row's hash, as hexadecimal digits."""
        return self._hash(self.structure.names)

    @property
    def key_hash(self) -> str:
        """The SQL expression for the hash of a row's key, or of the row if there is no
        key."""
        return self._hash(self.structure.primary_key or self.structure.names)

    def _hash(self, names: Sequence[str]) -> str:
        """Return the SQL expression for the hash of these columns, joined into one
        text."""
        columns = {column.name: column for column in self.structure.columns}
        texts = [text_expression(columns[name], quoted(name), self.flavour) for name in names]
        return f"left(sha2(concat_ws(',', {', '.join(texts)}), 256), {_HASH_DIGITS})"

    def sum_query(self) -> str:
        """Return the query for the number of rows and the sum of their hashes."""
        number = f"cast(conv({self.row_hash}, 16, 10) as unsigned)"
        return f"select count(*), sum({number}) from {quoted_table(self.structure.name)}"

    def hashes_query(self) -> str:
        """Return the query for the hashes of each key and row, as 16 bytes."""
        both = f"unhex(concat({self.key_hash}, {self.row_hash}))"
        return f"select {both} from {quoted_table(self.structure.name)}"

    def key_condition(self, key_hashes: Collection[int]) -> str:
        """Return the SQL condition that selects the rows whose keys have one of these
        hashes."""
        hashes = ", ".join(f"'{key:0{_HASH_DIGITS}x}'" for key in sorted(key_hashes))
        return f"{self.key_hash} in ({hashes})"


def read_sum(settings: ConnectionSettings, structure: TableStructure) -> SourceSum:
    """See `pipeline.ports.SourceServer.row_sum`."""
    with open_read(settings, structure) as read:
        marks = read.begin_and_execute(read.sql.sum_query())
        [(row_count, hash_sum)] = read.cursor.fetchall()
        read.require_no_warnings()
        marks = read.final_marks(marks)
    return SourceSum(RowSum(int(row_count), int(hash_sum or 0) % MODULUS), marks)


@contextmanager
def open_hashes(settings: ConnectionSettings, structure: TableStructure) -> Iterator[SourceHashes]:
    """See `pipeline.ports.SourceServer.row_hashes`."""
    with open_read(settings, structure) as read:
        marks = read.begin_and_execute(read.sql.hashes_query())
        if read.has_snapshot:
            yield SourceHashes(marks, _fetch_hashes(read))
        else:
            # The caller gets the final marks before the hashes, but they are known only
            # after the last hash.
            batches = list(_fetch_hashes(read))
            yield SourceHashes(read.final_marks(marks), iter(batches))


@dataclass(frozen=True, slots=True)
class ComparedRead:
    """A read of one table. `cursor` reads its rows; `query_cursor` is the cursor of a
    second session, which asks for log positions and structures. `has_snapshot`: the
    table's engine reads from the transaction's snapshot. `is_ordered`: see
    `ReadMarks`."""

    cursor: ReadingCursor
    query_cursor: Cursor
    sql: HashSql
    dialect: Dialect
    has_snapshot: bool
    is_ordered: bool

    def begin_and_execute(self, statement: str) -> ReadMarks:
        """Begin a snapshot, run a statement in it, and return the marks around the
        snapshot. The table's structure is checked only after the statement has started,
        because from then on its metadata lock prevents an ALTER."""
        marks = self.begin()
        self.cursor.execute(statement)
        self.require_structure()
        return marks

    def begin(self) -> ReadMarks:
        """Begin a snapshot and return the marks around it. The caller has to call
        `require_structure` as soon as a statement on the table runs."""
        low = low_mark(self.query_cursor, self.dialect)
        self.cursor.execute(BEGIN)
        place = snapshot_place(self.cursor) if self.has_snapshot else None
        if place is not None:
            return ReadMarks(place, place, low.executed_set, self.is_ordered)
        high = read_log_end(self.query_cursor)
        return ReadMarks(low.at, high, low.executed_set, self.is_ordered)

    def final_marks(self, marks: ReadMarks) -> ReadMarks:
        """Return the final marks, after all rows were read. Rows that were read without
        a snapshot may include changes up to the log's present end."""
        if self.has_snapshot:
            return marks
        return replace(marks, high=read_log_end(self.query_cursor))

    def require_no_warnings(self) -> None:
        """Raise `TableError` if a warning of the server says that it may have changed a
        value."""
        if count := self.cursor.warning_count:
            structure = self.sql.structure
            names = quotable_names(structure.name, structure.names)
            require_harmless(structure.name, count, read_warnings(self.cursor), names)

    def require_structure(self) -> None:
        """Raise `StructureMoved` if the table has another structure now."""
        expected = self.sql.structure
        schemas = read_schemas(self.query_cursor, [expected.name])
        if not schemas or row_structure(schemas[0]).fingerprint != expected.fingerprint:
            raise StructureMoved(
                f"{expected.name} was altered while it was read", hint="verify it again"
            )


@contextmanager
def open_read(settings: ConnectionSettings, structure: TableStructure) -> Iterator[ComparedRead]:
    """Open a read of a table. If another session waits for the table's metadata lock,
    the read is given up at once and `TableBusy` is raised."""
    with (
        reading_cursor(settings, without_timeout=True) as cursor,
        connect(settings) as query_connection,
        query_connection.cursor() as query_cursor,
        watch(settings, cursor, structure.name, Patience(0.0)) as watched_read,
        watched_read.raising_busy(),
        translate_table_errors(settings, structure.name, structure.names),
    ):
        dialect = read_dialect(query_cursor)
        yield ComparedRead(
            cursor,
            query_cursor,
            HashSql(structure, dialect.flavour),
            dialect,
            has_snapshot=has_snapshots(query_cursor, structure.name) is True,
            is_ordered=commits_in_order(query_cursor, dialect),
        )


def _fetch_hashes(
    read: ComparedRead,
) -> Iterator[tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]]:
    while rows := read.cursor.fetchmany(_ROWS_PER_FETCH):
        values = [row[0] for row in rows]
        if None in values:
            raise TableError(
                f"the server returned no hash for {values.count(None)} rows: their text is longer "
                "than max_allowed_packet",
                hint="raise max_allowed_packet at the source",
            )
        hashes = np.frombuffer(b"".join(values), ">u8").astype(np.uint64)
        yield hashes[0::2], hashes[1::2]
    read.require_no_warnings()


def read_rows(
    settings: ConnectionSettings, structure: TableStructure, key_hashes: Collection[int]
) -> ComparedRows:
    """See `pipeline.ports.SourceServer.rows_by_hash`."""
    with open_read(settings, structure) as read:
        marks = read.begin()
        batches = select_rows(read.cursor, structure, where=read.sql.key_condition(key_hashes))
        read.require_structure()
        rows = pa.Table.from_batches(batches, arrow_schema(structure))
        marks = read.final_marks(marks)
    return ComparedRows(marks, rows)


def read_sample(
    settings: ConnectionSettings, structure: TableStructure, starts: Sequence[Key] | ChooseStarts
) -> SourceSample:
    """See `pipeline.ports.SourceServer.sample`."""
    first = quoted(structure.primary_key[0])
    table = quoted_table(structure.name)
    with open_read(settings, structure) as read:
        marks = read.begin_and_execute(f"select min({first}), max({first}) from {table}")
        [(least, greatest)] = read.cursor.fetchall()
        if callable(starts):
            keys = [] if least is None else starts(int(least), int(greatest))
            starts = [(key,) for key in keys]
        rows = [_read_stretch(read, start) for start in starts]
        marks = read.final_marks(marks)
    return SourceSample(marks, tuple(starts), tuple(rows))


def _read_stretch(read: ComparedRead, start: Key) -> pa.Table:
    """Return the rows from the key `start` on; from the first row if it is empty."""
    structure = read.sql.structure
    where, parameters = _condition_from(structure, start) if start else (None, [])
    batches = select_rows(
        read.cursor,
        structure,
        where=where,
        parameters=parameters,
        order=structure.primary_key,
        limit=STRETCH_ROWS,
    )
    return pa.Table.from_batches(batches, arrow_schema(structure))


def _condition_from(structure: TableStructure, start: Key) -> tuple[str, list[str | bytes | int]]:
    """Return the SQL condition for the keys from `start` on, and its parameters. The
    condition compares each column but the last one twice (`beyond`)."""
    columns = {column.name: column for column in structure.columns}
    key = structure.primary_key
    names = [quoted(name).replace("%", "%%") for name in key]
    values = [_parameter(columns[name], value) for name, value in zip(key, start, strict=True)]
    parameters = [value for value in values[:-1] for _ in range(2)] + values[-1:]
    return beyond(names, ["%s"] * len(names), ">", ">="), parameters


def _parameter(column: Column, value: Any) -> str | bytes | int:
    """Return a value of a key as a statement's parameter. Servers order BIT, ENUM and
    SET by number, and compare them as numbers only with numbers."""
    match column.type:
        case "bit":
            return int(value)
        case "enum":
            return column.members.index(value) + 1 if value in column.members else 0
        case "set":
            chosen = value.split(",")
            return sum(1 << bit for bit, member in enumerate(column.members) if member in chosen)
        case _:
            return value if isinstance(value, bytes) else str(value)
