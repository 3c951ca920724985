"""A server whose rows and structures are shaped: the settings may leave out rows and
columns, and hash, mask or convert values. The server returns nothing that the settings
hide.

Batches of rows are shaped, structures lose the values of hidden columns, and for a
table with a shape, `structure` returns its structure in the lake. Sums and hashes of
such tables are computed here, because MySQL would compute them of unshaped rows. The
log's decoder shapes the log (`pipeline.run.dump.image_decoder`).

The ledger keeps the bounds of a table's chunks. If the table's key is hashed, or rows
are left out, a bound may be a value that must stay hidden: it is encrypted with
AES-256-GCM by a key derived from the privacy key. Without a privacy key, such a table
is not cut into chunks.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import pyarrow as pa
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from lockstep.pipeline.model.batch import Xid
from lockstep.pipeline.ports.source import (
    Baseline,
    BinlogDump,
    ComparedRows,
    ConditionSnapshot,
    CurrentSchemas,
    ListedTable,
    ReadMarks,
    ServerFacts,
    SourceHashes,
    SourceSample,
    SourceSum,
    TableSnapshot,
)
from lockstep.pipeline.proof.hashes import RowHasher, RowSum
from lockstep.pipeline.schema.model import TableSchema
from lockstep.pipeline.schema.rows import merge_key, row_key, row_structure
from lockstep.pipeline.shape.hashes import PrivacyKey
from lockstep.pipeline.shape.shaper import Shaper
from lockstep.pipeline.shape.shaping import Shaping
from lockstep.pipeline.snapshot.bounds import Bound, Range
from lockstep.pipeline.snapshot.condition import RowCondition
from lockstep.pipeline.snapshot.pace import PIECE_SECONDS, SourceLoad
from lockstep.pipeline.values.errors import NotSampled, StructureMoved, TableError
from lockstep.pipeline.values.gtid import GtidSet
from lockstep.pipeline.values.position import Coordinates
from lockstep.pipeline.values.survey import Survey
from lockstep.pipeline.values.table import TableName, TableStructure
from lockstep.resources.mysql.connection import read_dialect
from lockstep.resources.mysql.defaults import with_default_values
from lockstep.resources.mysql.reader import structure_moved
from lockstep.resources.mysql.schemas import read_schemas, read_whole_tables
from lockstep.resources.mysql.server import MySqlServer
from lockstep.resources.mysql.watermarks import commits_in_order


@dataclass(frozen=True, slots=True)
class ShapedTable:
    """A table with a shape. `schema`: its present structure on the server;
    `lake_structure`: its structure in the lake; `shaper`: turns rows of the first into
    rows of the second."""

    schema: TableSchema
    lake_structure: TableStructure
    shaper: Shaper

    @property
    def hides_bounds(self) -> bool:
        """True if a bound of a chunk may be a hidden value. If a table has several
        UNIQUE keys, its chunks may be cut by another key than the one that identifies
        its rows, so both keys count."""
        keys = {*merge_key(self.schema), *row_key(self.schema)}
        return self.shaper.treats_any(keys) or not self.shaper.takes_all_rows


class ShapedServer:
    """The port `SourceServer`, with the shapes of a source's tables applied to what
    `server` returns. It has no method that is not written here: what the port gets
    later shows no values until somebody decides here what it may show."""

    def __init__(self, server: MySqlServer, shaping: Shaping) -> None:
        self._server = server
        self._shaping = shaping

    # -- answers without values ----------------------------------------------------------------

    def facts(self) -> ServerFacts:
        return self._server.facts()

    def survey(self) -> Survey:
        return self._server.survey()

    def dump(self, start: Coordinates) -> BinlogDump:
        return self._server.dump(start)

    def dump_after(self, executed: GtidSet) -> BinlogDump:
        return self._server.dump_after(executed)

    def prepared(self) -> frozenset[Xid]:
        return self._server.prepared()

    def tables(self) -> list[ListedTable]:
        return self._server.tables()

    def engines(self) -> dict[TableName, str]:
        return self._server.engines()

    def invisible(self, tables: Collection[TableName]) -> dict[TableName, str]:
        return self._server.invisible(tables)

    def is_view(self, name: TableName) -> bool:
        return self._server.is_view(name)

    def empty(self, tables: Collection[TableName]) -> frozenset[TableName]:
        return self._server.empty(tables)

    def estimated_where(self, table: TableName, condition: RowCondition) -> int:
        return self._server.estimated_where(table, condition)

    def source_load(self) -> SourceLoad:
        return self._server.source_load()

    def estimated_rows(self, tables: Collection[TableName]) -> dict[TableName, int]:
        return self._server.estimated_rows(tables)

    def estimated_bytes(self, tables: Collection[TableName]) -> dict[TableName, int]:
        return self._server.estimated_bytes(tables)

    # -- structures --------------------------------------------------------------------------

    def baseline(self, names: Collection[TableName] | None = None) -> Baseline:
        unshaped = self._server.baseline(names)
        return replace(unshaped, tables=tuple(map(self._shaping.redact, unshaped.tables)))

    def current_schemas(self, tables: Collection[TableName]) -> CurrentSchemas:
        return self._redacted(self._server.current_schemas(tables))

    def locked_schema(self, table: TableName) -> CurrentSchemas:
        return self._redacted(self._server.locked_schema(table))

    def _redacted(self, unshaped: CurrentSchemas) -> CurrentSchemas:
        tables = {name: self._shaping.redact(schema) for name, schema in unshaped.tables.items()}
        return replace(unshaped, tables=tables)

    def structure(self, table: TableName) -> TableStructure:
        unshaped = self._server.structure(table)
        shaped_table = self._shaped_table(table)
        return unshaped if shaped_table is None else shaped_table.lake_structure

    def structures(self) -> list[TableStructure]:
        """Return all structures. A table to which its settings cannot be applied keeps
        the server's."""
        with self._server.own_cursor() as cursor:
            tables = read_whole_tables(cursor).tables
        return [self._lake_structure(schema) for schema in tables if not schema.system_versioned]

    def _lake_structure(self, schema: TableSchema) -> TableStructure:
        try:
            shape = self._shaping.shape(schema)
        except TableError:
            shape = None
        return row_structure(schema) if shape is None else shape.structure

    def comments(self, tables: Collection[TableName]) -> dict[TableName, dict[str, str]]:
        """Return the comments except those of hidden columns: a comment may reveal
        values."""
        return {
            table: {
                name: comment
                for name, comment in comments.items()
                if not self._shaping.hides_column(table, name)
            }
            for table, comments in self._server.comments(tables).items()
        }

    def table_comments(self, tables: Collection[TableName]) -> dict[TableName, str]:
        """Return the comments except those of tables with a shape: they may reveal
        hidden values."""
        comments = self._server.table_comments(tables)
        return {
            table: comment
            for table, comment in comments.items()
            if self._shaping.rules_of(table) is None
        }

    # -- rows --------------------------------------------------------------------------------

    @contextmanager
    def rows(self, structure: TableStructure) -> Iterator[Iterator[pa.RecordBatch]]:
        shaped_table = self._matching_table(structure)
        with self._server.rows(
            structure if shaped_table is None else row_structure(shaped_table.schema)
        ) as batches:
            yield batches if shaped_table is None else _shape_batches(shaped_table.shaper, batches)

    @contextmanager
    def snapshot(
        self,
        table: TableSchema | TableStructure,
        columns: Sequence[str] | None = None,
        *,
        exact: bool = False,
    ) -> Iterator[TableSnapshot]:
        shaped_table = self._shaped_table(table.name)
        self._require_same(shaped_table, table)
        if shaped_table is None:
            with self._server.snapshot(table, columns, exact=exact) as snapshot:
                yield snapshot
            return
        shaper = shaped_table.shaper
        if columns is not None:
            key = row_structure(shaped_table.schema).primary_key
            shaper = shaper.for_columns([*columns, *key])
            columns = shaper.source_columns
        with self._server.snapshot(shaped_table.schema, columns, exact=exact) as snapshot:
            yield _shape_snapshot(shaper, snapshot)

    def next_bound(
        self,
        schema: TableSchema,
        after: Bound | None,
        rows: int,
        *,
        since: Coordinates | None = None,
    ) -> Bound | None:
        shaped_table = self._shaped_table(schema.name)
        self._require_same(shaped_table, schema)
        if shaped_table is None or not shaped_table.hides_bounds:
            return self._server.next_bound(schema, after, rows, since=since)
        if self._shaping.key is None:
            return None
        cipher = _BoundCipher(schema.name, self._shaping.key)
        after = None if after is None else cipher.decrypt(after)
        bound = self._server.next_bound(schema, after, rows, since=since)
        return None if bound is None else cipher.encrypt(bound)

    @contextmanager
    def chunk(
        self,
        schema: TableSchema,
        rows: Range,
        *,
        exact: bool = False,
        most_seconds: float = PIECE_SECONDS,
        since: Coordinates | None = None,
    ) -> Iterator[TableSnapshot]:
        shaped_table = self._shaped_table(schema.name)
        self._require_same(shaped_table, schema)
        if shaped_table is not None:
            rows = self._decrypt_bounds(shaped_table, rows)
        with self._server.chunk(
            schema if shaped_table is None else shaped_table.schema,
            rows,
            exact=exact,
            most_seconds=most_seconds,
            since=since,
        ) as snapshot:
            yield (
                snapshot if shaped_table is None else _shape_snapshot(shaped_table.shaper, snapshot)
            )

    def _decrypt_bounds(self, shaped_table: ShapedTable, rows: Range) -> Range:
        """Return the range with decrypted bounds. Bounds that hide nothing are not
        encrypted."""
        if rows.is_whole_table or not shaped_table.hides_bounds:
            return rows
        if self._shaping.key is None:
            raise structure_moved(
                shaped_table.schema.name,
                "the bounds of its chunks are encrypted, but there is no key",
            )
        cipher = _BoundCipher(shaped_table.schema.name, self._shaping.key)
        bounds = (
            None if bound is None else cipher.decrypt(bound) for bound in (rows.after, rows.through)
        )
        return Range(*bounds)

    @contextmanager
    def rows_where(
        self,
        schema: TableSchema,
        condition: RowCondition,
        *,
        most_seconds: float = PIECE_SECONDS,
    ) -> Iterator[ConditionSnapshot]:
        shaped_table = self._shaped_table(schema.name)
        self._require_same(shaped_table, schema)
        if shaped_table is None:
            with self._server.rows_where(schema, condition, most_seconds=most_seconds) as snapshot:
                yield snapshot
            return
        if shaped_table.hides_bounds:
            # Rows are read again by their keys, which do not tell whether the settings
            # take them.
            raise TableError(
                "the table's key is hashed or rows are left out, so single rows cannot be "
                "read again",
                hint=f"read the whole table by `lockstep reload {schema.name} --from source "
                "--reason …`",
            )
        with self._server.rows_where(
            shaped_table.schema, condition, most_seconds=most_seconds
        ) as snapshot:
            yield ConditionSnapshot(
                _shape_snapshot(shaped_table.shaper, snapshot.rows), snapshot.by_keys
            )

    # -- comparisons ---------------------------------------------------------------------------

    def row_sum(self, structure: TableStructure) -> SourceSum:
        shaped_table = self._matching_table(structure)
        if shaped_table is None:
            return self._server.row_sum(structure)
        hasher, total = self._hasher(shaped_table), RowSum()
        with self._open_shaped_read(shaped_table) as (marks, batches):
            for batch in batches:
                total += hasher.row_sum(batch)
        return SourceSum(total, marks)

    @contextmanager
    def row_hashes(self, structure: TableStructure) -> Iterator[SourceHashes]:
        shaped_table = self._matching_table(structure)
        if shaped_table is None:
            with self._server.row_hashes(structure) as hashes:
                yield hashes
            return
        hasher = self._hasher(shaped_table)
        with self._open_shaped_read(shaped_table) as (marks, batches):
            pairs = ((hasher.key_hashes(batch), hasher.row_hashes(batch)) for batch in batches)
            yield SourceHashes(marks, pairs)

    def rows_by_hash(self, structure: TableStructure, keys: Collection[int]) -> ComparedRows:
        shaped_table = self._matching_table(structure)
        if shaped_table is None:
            return self._server.rows_by_hash(structure, keys)
        hasher = self._hasher(shaped_table)
        hashes = np.array(sorted(keys), np.uint64)
        with self._open_shaped_read(shaped_table) as (marks, batches):
            matching_batches = [
                batch.filter(pa.array(np.isin(hasher.key_hashes(batch), hashes)))
                for batch in batches
            ]
        return ComparedRows(marks, pa.Table.from_batches(matching_batches, hasher.schema))

    def sample(
        self,
        structure: TableStructure,
        starts: Sequence[tuple[Any, ...]] | Callable[[int, int], Sequence[int]],
    ) -> SourceSample:
        shaped_table = self._matching_table(structure)
        if shaped_table is None:
            return self._server.sample(structure, starts)
        if shaped_table.hides_bounds:
            raise NotSampled(
                "the table's key is hashed or rows are left out, so samples cannot be compared",
                hint=f"compare the whole table by `lockstep verify {structure.name}`",
            )
        sample = self._server.sample(row_structure(shaped_table.schema), starts)
        shaper = shaped_table.shaper
        rows = (
            pa.Table.from_batches(map(shaper.shape_rows, table.to_batches()), shaper.schema)
            for table in sample.rows
        )
        return replace(sample, rows=tuple(rows))

    def _hasher(self, shaped_table: ShapedTable) -> RowHasher:
        return RowHasher(shaped_table.lake_structure, self.facts().flavour)

    @contextmanager
    def _open_shaped_read(
        self, shaped_table: ShapedTable
    ) -> Iterator[tuple[ReadMarks, Iterator[pa.RecordBatch]]]:
        with self._server.own_cursor() as cursor:
            ordered = commits_in_order(cursor, read_dialect(cursor))
        with self._server.snapshot(shaped_table.schema) as read:
            marks = ReadMarks(read.low, read.high, read.low_set, read.high_set, ordered)
            yield marks, _shape_batches(shaped_table.shaper, read.batches)

    # -- the present table --------------------------------------------------------------------

    def _shaped_table(self, table: TableName) -> ShapedTable | None:
        """Return the table with its shape; None if the lake shows the table as it is.
        Raise `StructureMoved` if the server does not show it."""
        if self._shaping.rules_of(table) is None:
            return None
        with self._server.own_cursor() as cursor:
            schemas = with_default_values(cursor, read_schemas(cursor, [table]))
        if not schemas:
            # It may be there again when its rows are read, and they would be unshaped:
            # MariaDB omits a table that it could not open in time.
            raise structure_moved(table, "the server does not show the table")
        (schema,) = schemas
        shape = self._shaping.shape(schema)
        if shape is None:
            return None
        return ShapedTable(schema, shape.structure, Shaper(shape, self._shaping.key))

    def _matching_table(self, structure: TableStructure) -> ShapedTable | None:
        """Return the table with its shape. Raise `StructureMoved` if its structure in
        the lake would now differ from `structure`."""
        shaped_table = self._shaped_table(structure.name)
        if (
            shaped_table is not None
            and shaped_table.lake_structure.fingerprint != structure.fingerprint
        ):
            raise StructureMoved(
                f"{structure.name} was altered while it was read", hint="verify it again"
            )
        return shaped_table

    def _require_same(
        self, shaped_table: ShapedTable | None, table: TableSchema | TableStructure
    ) -> None:
        """Raise `StructureMoved` if the table has another structure now, apart from the
        hidden attributes of hidden columns. A table that now has no shape may be read
        as it is only if it had none with the structure `table` either: a replica may
        still have the columns that its settings hide."""
        if shaped_table is None:
            same = isinstance(table, TableStructure) or self._shaping.shape(table) is None
        elif isinstance(table, TableStructure):
            same = table.fingerprint == shaped_table.lake_structure.fingerprint
        else:
            now = self._shaping.redact(shaped_table.schema)
            same = row_structure(table).fingerprint == row_structure(now).fingerprint
        if not same:
            raise structure_moved(table.name, "the definition of its columns differs")


_NONCE_BYTES: Final = 12


class _BoundCipher:
    """Encrypts and decrypts the bounds of a table's chunks."""

    def __init__(self, table: TableName, key: PrivacyKey) -> None:
        self._table = table
        self._aead = AESGCM(key.derive_key("bounds of chunks"))

    def encrypt(self, bound: Bound) -> Bound:
        return bound.seal(self._encrypt_literal)

    def decrypt(self, bound: Bound) -> Bound:
        """Return the decrypted bound. Raise `StructureMoved` if it was not encrypted
        for this table with this key; the table is then read from its beginning."""
        try:
            return bound.open(self._decrypt_literal)
        except (InvalidTag, ValueError) as error:
            raise structure_moved(
                self._table, "the bounds of its chunks were encrypted by another key"
            ) from error

    def _encrypt_literal(self, literal: str) -> bytes:
        nonce = os.urandom(_NONCE_BYTES)
        return nonce + self._aead.encrypt(nonce, literal.encode(), str(self._table).encode())

    def _decrypt_literal(self, sealed: bytes) -> str:
        nonce, ciphertext = sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:]
        return self._aead.decrypt(nonce, ciphertext, str(self._table).encode()).decode()


def _shape_batches(shaper: Shaper, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the shaped batches, without empty ones."""
    for batch in batches:
        rows = shaper.shape_rows(batch)
        if rows.num_rows:
            yield rows


def _shape_snapshot(shaper: Shaper, snapshot: TableSnapshot) -> TableSnapshot:
    return replace(
        snapshot, schema=shaper.schema, batches=_shape_batches(shaper, iter(snapshot.batches))
    )
