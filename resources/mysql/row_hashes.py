"""Reads hashes of a table's rows, which the server computes, and selected rows.

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
from lockstep.pipeline.snapshot.pace import Patience
from lockstep.pipeline.values.errors import StructureMoved, TableError
from lockstep.pipeline.values.server_errors import quotable_names, require_harmless
from lockstep.pipeline.values.table import TableStructure, quoted, quoted_table
from lockstep.resources.mysql.connection import ConnectionSettings, Dialect, connect, read_dialect
from lockstep.resources.mysql.reader import reading_cursor, translate_table_errors
from lockstep.resources.mysql.receiving import ReadingCursor
from lockstep.resources.mysql.schemas import read_schemas
from lockstep.resources.mysql.select import BEGIN, read_warnings, select_rows
from lockstep.resources.mysql.watcher import watch
from lockstep.resources.mysql.watermarks import (
    commits_in_order,
    has_snapshots,
    high_mark,
    low_mark,
    snapshot_place,
)

_HASH_DIGITS: Final = 2 * HASH_BYTES
"""Number of hexadecimal digits of a hash."""

_ROWS_PER_FETCH: Final = 10_000
"""Number of rows that are fetched at once."""


@dataclass(frozen=True, slots=True)
class HashSql:
    """The SQL for the hashes of one table's rows."""

    structure: TableStructure
    flavour: str

    def joined_text(self, names: Sequence[str]) -> str:
        """Return the SQL expression that joins these columns of a row into one text."""
        columns = {column.name: column for column in self.structure.columns}
        values = [text_expression(columns[name], quoted(name), self.flavour) for name in names]
        return f"concat_ws(',', {', '.join(values)})"

    @property
    def row_hash(self) -> str:
        """The SQL expression for a row's hash, as hexadecimal digits."""
        return f"left(sha2({self.joined_text(self.structure.names)}, 256), {_HASH_DIGITS})"

    @property
    def key_hash(self) -> str:
        """The SQL expression for the hash of a row's key, or of the row if there is no
        key."""
        names = self.structure.primary_key or self.structure.names
        return f"left(sha2({self.joined_text(names)}, 256), {_HASH_DIGITS})"

    @property
    def table_name(self) -> str:
        return quoted_table(self.structure.name)

    def sum_query(self) -> str:
        """Return the query for the number of rows and the sum of their hashes."""
        number = f"cast(conv({self.row_hash}, 16, 10) as unsigned)"
        return f"select count(*), sum({number}) from {self.table_name}"

    def hashes_query(self) -> str:
        """Return the query for the hashes of each key and row, as 16 bytes."""
        return f"select unhex(concat({self.key_hash}, {self.row_hash})) from {self.table_name}"

    def key_condition(self, key_hashes: Collection[int]) -> str:
        """Return the SQL condition that selects the rows whose keys have one of these
        hashes."""
        hashes = ", ".join(f"'{key:0{_HASH_DIGITS}x}'" for key in sorted(key_hashes))
        return f"{self.key_hash} in ({hashes})"


def read_sum(settings: ConnectionSettings, structure: TableStructure) -> SourceSum:
    """See `pipeline.ports.SourceServer.row_sum`."""
    with open_read(settings, structure) as read:
        marks = read.begin_and_execute(read.sql.sum_query())
        [(rows, total)] = read.cursor.fetchall()
        read.require_no_warnings()
        marks = read.final_marks(marks)
    return SourceSum(RowSum(int(rows), int(total or 0) % MODULUS), marks)


@contextmanager
def open_hashes(settings: ConnectionSettings, structure: TableStructure) -> Iterator[SourceHashes]:
    """See `pipeline.ports.SourceServer.row_hashes`."""
    with open_read(settings, structure) as read:
        marks = read.begin_and_execute(read.sql.hashes_query())
        if not read.has_snapshot:
            # Only after the last row is it known up to which place the rows may have
            # changes.
            batches = list(_fetch_hashes(read))
            yield SourceHashes(read.final_marks(marks), iter(batches))
        else:
            yield SourceHashes(marks, _fetch_hashes(read))


@dataclass(frozen=True, slots=True)
class HashRead:
    """A read of one table. `cursor` reads its rows; `query_cursor` is the cursor of a
    second session, which asks for log positions and structures. `has_snapshot`: the
    table's engine reads from the transaction's snapshot. `ordered`: see
    `ReadMarks.is_ordered`."""

    cursor: ReadingCursor
    query_cursor: Cursor
    sql: HashSql
    dialect: Dialect
    has_snapshot: bool
    ordered: bool

    def begin_and_execute(self, statement: str) -> ReadMarks:
        """Run a statement and return its marks. The table's structure is checked only
        after the statement has started, because from then on its metadata lock prevents
        an ALTER."""
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
        high = high_mark(self.query_cursor, self.dialect)
        if place is not None:
            low = high = replace(low, at=place)
        return ReadMarks(low.at, high.at, low.executed_set, high.executed_set, self.ordered)

    def final_marks(self, marks: ReadMarks) -> ReadMarks:
        """Return the final marks, after all rows were read. Rows that were read without
        a snapshot may include changes up to the log's present end."""
        if self.has_snapshot:
            return marks
        high = high_mark(self.query_cursor, self.dialect)
        return replace(marks, high=high.at, high_set=high.executed_set)

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
def open_read(settings: ConnectionSettings, structure: TableStructure) -> Iterator[HashRead]:
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
        flavour = "mariadb" if dialect.is_mariadb else "mysql"
        yield HashRead(
            cursor,
            query_cursor,
            HashSql(structure, flavour),
            dialect,
            has_snapshot=has_snapshots(query_cursor, structure.name) is True,
            ordered=commits_in_order(query_cursor, dialect),
        )


def _fetch_hashes(read: HashRead) -> Iterator[tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]]:
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


Key = tuple[Any, ...]
ChooseStarts = Callable[[int, int], Sequence[int]]
"""Chooses the keys at which samples start, between the table's least and greatest key."""


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
        [(least, most)] = read.cursor.fetchall()
        if callable(starts):
            first_columns = [] if least is None else starts(int(least), int(most))
            starts = [(value,) for value in first_columns]
        rows = [_read_stretch(read, structure, start) for start in starts]
        marks = read.final_marks(marks)
    return SourceSample(marks, tuple(starts), tuple(rows))


def _read_stretch(read: HashRead, structure: TableStructure, start: Key) -> pa.Table:
    condition, values = _condition_from([quoted(name) for name in structure.primary_key], start)
    batches = select_rows(
        read.cursor,
        structure,
        where=condition,
        parameters=values,
        order=structure.primary_key,
        limit=STRETCH_ROWS,
    )
    return pa.Table.from_batches(batches, arrow_schema(structure))


def _condition_from(names: Sequence[str], start: Key) -> tuple[str | None, list[str | bytes]]:
    """Return the SQL condition that a key is greater than or equal to `start`, and its
    parameters; without a start, None and no parameters."""
    if not start:
        return None, []
    texts = [value if isinstance(value, bytes) else str(value) for value in start]
    parts, values = [], list[str | bytes]()
    for last, name in enumerate(names):
        sign = ">=" if last == len(names) - 1 else ">"
        escaped = [name.replace("%", "%%") for name in (*names[:last], name)]
        equal = [f"{name} = %s" for name in escaped[:-1]]
        parts.append(" and ".join([*equal, f"{escaped[-1]} {sign} %s"]))
        values += texts[: last + 1]
    return " or ".join(f"({part})" for part in parts), values
