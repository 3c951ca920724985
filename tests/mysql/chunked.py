"""Tables of a real server, read in chunks by tests, from the first chunk to the last."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from time import sleep
from typing import Final

import pyarrow as pa
from pymysql.cursors import Cursor

from lockstep.pipeline.ports.source import TableSnapshot
from lockstep.pipeline.schema.model import TableSchema
from lockstep.pipeline.schema.rows import row_structure
from lockstep.pipeline.snapshot.chunks import Range, range_condition
from lockstep.pipeline.values.table import TableName
from lockstep.resources.mysql.chunks import next_bound
from lockstep.resources.mysql.connection import connect
from lockstep.resources.mysql.reader import reading_cursor
from lockstep.resources.mysql.receiving import ReadingCursor
from lockstep.resources.mysql.schemas import read_schemas
from lockstep.resources.mysql.select import select_rows
from lockstep.resources.mysql.server import MySqlServer
from tests.fix_mysql import MySqlStand
from tests.mysql.reading import server, settings
from tests.mysql.writers import Rows

LARGE_ROWS: Final = 1 << 14
"""Of a table (`large`) that has more of them than buffers hold."""

DIGITS = "(select 0 d union select 1 union select 2 union select 3 union select 4 union select 5"
DIGITS += " union select 6 union select 7 union select 8 union select 9)"
NUMBERS = (
    "select a.d + 10 * b.d + 100 * c.d + 1000 * e.d + 10000 * f.d n from"
    f" {DIGITS} a, {DIGITS} b, {DIGITS} c, {DIGITS} e, {DIGITS} f"
)
"""0 to 99,999."""

FEWER = (
    "select a.d + 10 * b.d + 100 * c.d + 1000 * e.d n from"
    f" {DIGITS} a, {DIGITS} b, {DIGITS} c, {DIGITS} e"
)
"""0 to 9,999."""


@dataclass(frozen=True, slots=True)
class Sliced:
    """A table of some server."""

    stand: MySqlStand
    table: TableName

    @property
    def mariadb(self) -> bool:
        return self.source.facts().flavour == "mariadb"

    @property
    def source(self) -> MySqlServer:
        return server(self.stand)

    def do(self, *statements: str) -> None:
        """In one session with sql_mode ''."""
        modes = "set sql_mode = '', time_zone = '+00:00'"
        with (
            self.stand.connect(self.table.database, init_command=modes) as session,
            session.cursor() as cursor,
        ):
            for statement in statements:
                cursor.execute(statement)

    def account(self, *grants: str) -> MySqlServer:
        """The server as an account of the test's own sees it, with these privileges and
        replication's; the fixture `place` drops it."""
        name = f"u_{self.table.database}"
        self.stand.execute(
            f"create user {name} identified by 'x'",
            f"grant replication slave, replication client on *.* to {name}",
            *(f"grant {grant} to {name}" for grant in grants),
        )
        return server(self.stand, user=name, password="x")

    def schema(self, source: MySqlServer | None = None) -> TableSchema:
        (found,) = (source or self.source).baseline([self.table]).tables
        return found

    def ranges(self, rows: int, schema: TableSchema | None = None) -> Iterator[Range]:
        """Each is asked for when the one before it has been dealt with."""
        built, after = schema or self.schema(), None
        while True:
            through = self.source.next_bound(built, after, rows)
            yield Range(after, through)
            if through is None:
                return
            after = through

    def chunks(self, rows: int) -> list[Rows]:
        """All of the table, a chunk an element."""
        schema = self.schema()
        return [self.read(schema, one) for one in self.ranges(rows, schema)]

    def read(self, schema: TableSchema, one: Range) -> Rows:
        with self.source.chunk(schema, one) as snapshot:
            return rows_of(snapshot)

    def whole(self) -> Rows:
        with self.source.snapshot(self.schema()) as snapshot:
            return rows_of(snapshot)


def rows_of(snapshot: TableSnapshot) -> Rows:
    return _counted(snapshot.batches)


def _counted(batches: Iterator[pa.RecordBatch]) -> Rows:
    """Vectors as tuples, which can be counted."""
    return Counter(
        tuple(tuple(value) if isinstance(value, list) else value for value in row.values())
        for batch in batches
        for row in batch.to_pylist()
    )


def until(holds: Callable[[], bool], seconds: int = 60) -> None:
    """Waits for what is about to be so; an error if it does not come."""
    for _ in range(20 * seconds):
        if holds():
            return
        sleep(0.05)
    raise AssertionError(f"it did not come in {seconds} s")


def together(chunks: list[Rows]) -> Rows:
    """How often each row is in any of them."""
    return sum(chunks, Counter())


@dataclass(frozen=True, slots=True)
class Cut:
    """A table as its `schema` is, its rows read at once and chunk by chunk."""

    schema: TableSchema
    whole: Rows
    chunks: list[Rows]


@dataclass(frozen=True, slots=True)
class Knife:
    """Cuts one small table after the other: as `Sliced.chunks`, in the same sessions and without
    marks."""

    session: Cursor
    reader: ReadingCursor

    def cut(self, table: TableName, rows: int) -> Cut:
        (schema,) = read_schemas(self.session, [table])
        structure, found, after = row_structure(schema), list[Rows](), None
        whole = _counted(select_rows(self.reader, structure))
        while True:
            through = next_bound(self.session, schema, after, rows)
            batches = select_rows(
                self.reader, structure, where=range_condition(Range(after, through))
            )
            found.append(_counted(batches))
            if through is None:
                return Cut(schema, whole, found)
            after = through


@contextmanager
def knife(stand: MySqlStand) -> Iterator[Knife]:
    with (
        connect(settings(stand)) as asking,
        asking.cursor() as session,
        reading_cursor(settings(stand)) as reader,
    ):
        yield Knife(session, reader)
