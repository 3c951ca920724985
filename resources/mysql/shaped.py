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

from lockstep.pipeline.ports.source import (
    Baseline,
    ComparedRows,
    ConditionSnapshot,
    CurrentSchemas,
    ReadMarks,
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
from lockstep.pipeline.snapshot.condition import Condition
from lockstep.pipeline.snapshot.pace import PIECE_SECONDS
from lockstep.pipeline.values.errors import StructureMoved, TableError
from lockstep.pipeline.values.position import Coordinates
from lockstep.pipeline.values.table import TableName, TableStructure
from lockstep.resources.mysql.connection import ConnectionSettings, read_dialect
from lockstep.resources.mysql.defaults import with_values
from lockstep.resources.mysql.reader import moved
from lockstep.resources.mysql.schemas import read_schemas, read_whole_tables
from lockstep.resources.mysql.server import MySqlServer
from lockstep.resources.mysql.watermarks import commits_in_order


@dataclass(frozen=True, slots=True)
class _ShapedTable:
    """A table with a shape. `schema`: its present structure on the server; `shown`: its
    structure in the lake; `shaper`: turns rows of the first into rows of the second."""

    schema: TableSchema
    shown: TableStructure
    shaper: Shaper


def hides_bounds(schema: TableSchema, shaper: Shaper) -> bool:
    """Return whether a bound of a chunk may be a hidden value. If a table has several
    UNIQUE keys, its chunks may be cut by another key than the one that identifies its
    rows, so both keys count."""
    keys = {*merge_key(schema), *row_key(schema)}
    return shaper.treats_any(keys) or not shaper.takes_all_rows


class ShapedServer(MySqlServer):
    """The port `SourceServer`, with the shapes of a source's tables applied to what the
    server returns."""

    def __init__(
        self,
        settings: ConnectionSettings,
        *,
        standby: ConnectionSettings | None = None,
        read_from: ConnectionSettings | None = None,
        shaping: Shaping,
    ) -> None:
        super().__init__(settings, standby=standby, read_from=read_from)
        self._shaping = shaping

    # -- structures --------------------------------------------------------------------------

    def baseline(self, names: Collection[TableName] | None = None) -> Baseline:
        original = super().baseline(names)
        return replace(original, tables=tuple(map(self._shaping.redact, original.tables)))

    def current_schemas(self, tables: Collection[TableName]) -> CurrentSchemas:
        return self._redacted(super().current_schemas(tables))

    def locked_schema(self, table: TableName) -> CurrentSchemas:
        return self._redacted(super().locked_schema(table))

    def _redacted(self, original: CurrentSchemas) -> CurrentSchemas:
        tables = {name: self._shaping.redact(schema) for name, schema in original.tables.items()}
        return replace(original, tables=tables)

    def structure(self, table: TableName) -> TableStructure:
        original = super().structure(table)
        current = self._shaped_table(table)
        return original if current is None else current.shown

    def structures(self) -> list[TableStructure]:
        """Return all structures. A table to which its settings cannot be applied keeps
        the server's."""
        with self._asking() as cursor:
            tables = read_whole_tables(cursor).tables
        return [self._shown(schema) for schema in tables if not schema.system_versioned]

    def _shown(self, schema: TableSchema) -> TableStructure:
        try:
            shape = self._shaping.shape(schema)
        except TableError:
            shape = None
        return row_structure(schema) if shape is None else shape.structure

    def comments(self, tables: Collection[TableName]) -> dict[TableName, dict[str, str]]:
        """Return the comments except those of hidden columns, which may reveal their
        values."""
        comments = super().comments(tables)
        for table, of_columns in comments.items():
            rules = self._shaping.rules_of(table)
            for name in [*of_columns] if rules is not None else ():
                if self._shaping.hides_column(table, name):
                    del of_columns[name]
        return comments

    def table_comments(self, tables: Collection[TableName]) -> dict[TableName, str]:
        """Return the comments except those of tables with a shape: they may reveal
        hidden values."""
        comments = super().table_comments(tables)
        return {
            table: comment
            for table, comment in comments.items()
            if self._shaping.rules_of(table) is None
        }

    # -- rows --------------------------------------------------------------------------------

    @contextmanager
    def rows(self, structure: TableStructure) -> Iterator[Iterator[pa.RecordBatch]]:
        current = self._as_shown(structure)
        with super().rows(
            structure if current is None else row_structure(current.schema)
        ) as batches:
            yield batches if current is None else _shaped(current.shaper, batches)

    @contextmanager
    def snapshot(
        self,
        table: TableSchema | TableStructure,
        columns: Sequence[str] | None = None,
        *,
        exact: bool = False,
    ) -> Iterator[TableSnapshot]:
        current = self._shaped_table(table.name)
        if current is None:
            with super().snapshot(table, columns, exact=exact) as snapshot:
                yield snapshot
            return
        self._require(current, table)
        shaper, read = current.shaper, columns
        if columns is not None:
            shaper = current.shaper.for_columns(
                [*columns, *row_structure(current.schema).primary_key]
            )
            read = shaper.source_columns
        with super().snapshot(current.schema, read, exact=exact) as snapshot:
            yield _shaped_snapshot(shaper, snapshot)

    def next_bound(
        self,
        schema: TableSchema,
        after: Bound | None,
        rows: int,
        *,
        since: Coordinates | None = None,
    ) -> Bound | None:
        current = self._shaped_table(schema.name)
        if current is None or not hides_bounds(current.schema, current.shaper):
            return super().next_bound(schema, after, rows, since=since)
        if self._shaping.key is None:
            return None
        seal = _Seal(schema.name, self._shaping.key)
        after = None if after is None else seal.opened(after)
        bound = super().next_bound(schema, after, rows, since=since)
        return None if bound is None else seal.sealed(bound)

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
        current = self._shaped_table(schema.name)
        if current is not None:
            self._require(current, schema)
            rows = self._opened(current, rows)
        with super().chunk(
            schema if current is None else current.schema,
            rows,
            exact=exact,
            most_seconds=most_seconds,
            since=since,
        ) as snapshot:
            yield snapshot if current is None else _shaped_snapshot(current.shaper, snapshot)

    def _opened(self, current: _ShapedTable, rows: Range) -> Range:
        """Return the range with decrypted bounds. Bounds that hide nothing are not
        encrypted."""
        if rows.whole or not hides_bounds(current.schema, current.shaper):
            return rows
        if self._shaping.key is None:
            raise moved(
                current.schema.name, "the bounds of its chunks are encrypted, but there is no key"
            )
        seal = _Seal(current.schema.name, self._shaping.key)
        ends = (
            None if bound is None else seal.opened(bound) for bound in (rows.after, rows.through)
        )
        return Range(*ends)

    @contextmanager
    def rows_where(
        self,
        schema: TableSchema,
        condition: Condition,
        *,
        most_seconds: float = PIECE_SECONDS,
    ) -> Iterator[ConditionSnapshot]:
        current = self._shaped_table(schema.name)
        if current is None:
            with super().rows_where(schema, condition, most_seconds=most_seconds) as snapshot:
                yield snapshot
            return
        self._require(current, schema)
        if hides_bounds(current.schema, current.shaper):
            # Rows are read again by their keys, which do not tell whether the settings
            # take them.
            raise TableError(
                "the table's key is hashed or rows are left out, so single rows cannot be "
                "read again",
                hint=f"read the whole table by `lockstep reload {schema.name} --from source "
                "--reason …`",
            )
        with super().rows_where(current.schema, condition, most_seconds=most_seconds) as snapshot:
            yield ConditionSnapshot(
                _shaped_snapshot(current.shaper, snapshot.rows), snapshot.by_keys
            )

    # -- comparisons ---------------------------------------------------------------------------

    def row_sum(self, structure: TableStructure) -> SourceSum:
        current = self._as_shown(structure)
        if current is None:
            return super().row_sum(structure)
        hasher, total = self._hasher(current), RowSum()
        with self._read(current) as (marks, batches):
            for batch in batches:
                total += hasher.summed(batch)
        return SourceSum(total, marks)

    @contextmanager
    def row_hashes(self, structure: TableStructure) -> Iterator[SourceHashes]:
        current = self._as_shown(structure)
        if current is None:
            with super().row_hashes(structure) as hashes:
                yield hashes
            return
        hasher = self._hasher(current)
        with self._read(current) as (marks, batches):
            pairs = ((hasher.keys(batch), hasher.rows(batch)) for batch in batches)
            yield SourceHashes(marks, pairs)

    def rows_by_hash(self, structure: TableStructure, keys: Collection[int]) -> ComparedRows:
        current = self._as_shown(structure)
        if current is None:
            return super().rows_by_hash(structure, keys)
        hasher = self._hasher(current)
        hashes = np.array(sorted(keys), np.uint64)
        with self._read(current) as (marks, batches):
            parts = [
                batch.filter(pa.array(np.isin(hasher.keys(batch), hashes))) for batch in batches
            ]
        return ComparedRows(marks, pa.Table.from_batches(parts, hasher.schema))

    def sample(
        self,
        structure: TableStructure,
        starts: Sequence[tuple[Any, ...]] | Callable[[int, int], Sequence[int]],
    ) -> SourceSample:
        current = self._as_shown(structure)
        if current is None:
            return super().sample(structure, starts)
        if not hides_bounds(current.schema, current.shaper):
            sample = super().sample(row_structure(current.schema), starts)
            shaper = current.shaper
            rows = (
                pa.Table.from_batches(map(shaper.shape_rows, table.to_batches()), shaper.schema)
                for table in sample.rows
            )
            return replace(sample, rows=tuple(rows))
        raise TableError(
            "the table's key is hashed or rows are left out, so samples cannot be compared",
            hint=f"compare the whole table by `lockstep verify {structure.name}`",
        )

    def _hasher(self, current: _ShapedTable) -> RowHasher:
        return RowHasher(current.shown, self.facts().flavour)

    @contextmanager
    def _read(self, current: _ShapedTable) -> Iterator[tuple[ReadMarks, Iterator[pa.RecordBatch]]]:
        with self._asking() as cursor:
            ordered = commits_in_order(cursor, read_dialect(cursor))
        with super().snapshot(current.schema) as read:
            marks = ReadMarks(read.low, read.high, read.low_set, read.high_set, ordered)
            yield marks, _shaped(current.shaper, read.batches)

    # -- the present table --------------------------------------------------------------------

    def _shaped_table(self, table: TableName) -> _ShapedTable | None:
        """Return the table with its shape; None if it has no shape, or does not exist."""
        if self._shaping.rules_of(table) is None:
            return None
        with self._asking() as cursor:
            schemas = with_values(cursor, read_schemas(cursor, [table]))
        if not schemas:
            return None
        (schema,) = schemas
        shape = self._shaping.shape(schema)
        if shape is None:
            return None
        return _ShapedTable(schema, shape.structure, Shaper(shape, self._shaping.key))

    def _as_shown(self, structure: TableStructure) -> _ShapedTable | None:
        """Return the table with its shape. Raise `StructureMoved` if its structure in
        the lake would now differ from `structure`."""
        current = self._shaped_table(structure.name)
        if current is not None and current.shown.fingerprint != structure.fingerprint:
            raise StructureMoved(
                f"{structure.name} was altered while it was read", hint="verify it again"
            )
        return current

    def _require(self, current: _ShapedTable, table: TableSchema | TableStructure) -> None:
        """Raise `StructureMoved` if the table has another structure now, apart from the
        hidden attributes of hidden columns."""
        if isinstance(table, TableStructure):
            same = table.fingerprint == current.shown.fingerprint
        else:
            now = self._shaping.redact(current.schema)
            same = row_structure(table).fingerprint == row_structure(now).fingerprint
        if not same:
            raise moved(table.name, "the definition of its columns differs")


_NONCE_BYTES: Final = 12


class _Seal:
    """Encrypts and decrypts the bounds of a table's chunks."""

    def __init__(self, table: TableName, key: PrivacyKey) -> None:
        self._table = table
        self._cipher = AESGCM(key.derive_key("bounds of chunks"))

    def sealed(self, bound: Bound) -> Bound:
        """Return the encrypted bound."""
        return bound.sealed(self._encrypted)

    def opened(self, bound: Bound) -> Bound:
        """Return the decrypted bound. Raise `StructureMoved` if it was not encrypted
        for this table with this key; the table is then read from its beginning."""
        try:
            return bound.opened(self._decrypted)
        except (InvalidTag, ValueError) as error:
            raise moved(
                self._table, "the bounds of its chunks were encrypted by another key"
            ) from error

    def _encrypted(self, literal: str) -> bytes:
        nonce = os.urandom(_NONCE_BYTES)
        return nonce + self._cipher.encrypt(nonce, literal.encode(), str(self._table).encode())

    def _decrypted(self, sealed: bytes) -> str:
        nonce, ciphertext = sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:]
        return self._cipher.decrypt(nonce, ciphertext, str(self._table).encode()).decode()


def _shaped(shaper: Shaper, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the shaped batches, without empty ones."""
    for batch in batches:
        rows = shaper.shape_rows(batch)
        if rows.num_rows:
            yield rows


def _shaped_snapshot(shaper: Shaper, snapshot: TableSnapshot) -> TableSnapshot:
    return replace(snapshot, schema=shaper.schema, batches=_shaped(shaper, iter(snapshot.batches)))
