"""A server of which nothing is handed out that the settings hide.

Rows are shaped where they become Arrow, structures lose the values of hidden columns, and of a
table with a shape `structure` is the one that the lake shows. What MySQL would sum or hash itself
is read and hashed here, since it knows nothing of shapes. The log is not shaped here: its decoder
does that (`pipeline.runs.capturing.image_decoder`).

Where the chunks of a table end is kept in the ledger. Of a table whose key is hashed, or of which
rows are left out, that is a value which nobody may see: it is encrypted with AES-256-GCM under a
key that is derived from the privacy key, and opened here. Where the settings have none, a table of
which rows are left out is not cut.
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

from pipeline.errors import StructureMoved, TableError
from pipeline.ports.compared import ComparedRows, ReadMarks, SourceHashes, SourceSample, SourceSum
from pipeline.ports.source import Baseline, ConditionSnapshot, CurrentSchemas, TableSnapshot
from pipeline.position import Coordinates
from pipeline.proof.hashes import RowHasher, RowSum
from pipeline.schema.model import TableSchema
from pipeline.schema.rows import merge_key, row_key, row_structure
from pipeline.shape.hashes import PrivacyKey
from pipeline.shape.shaper import Shaper
from pipeline.shape.shaping import Shaping
from pipeline.snapshot.bounds import Bound, Range
from pipeline.snapshot.condition import Condition
from pipeline.snapshot.giving_way import PIECE_SECONDS
from pipeline.table import TableName, TableStructure
from resources.mysql.connection import ConnectionSettings
from resources.mysql.defaults import with_values
from resources.mysql.schemas import read_schemas, read_whole_tables
from resources.mysql.server import MySqlServer
from resources.mysql.taking import moved
from resources.mysql.watermarks import read_value


@dataclass(frozen=True, slots=True)
class _Seen:
    """A table with a shape, as the server has it at this moment."""

    schema: TableSchema
    shown: TableStructure
    shaper: Shaper


def hides_bounds(schema: TableSchema, shaper: Shaper) -> bool:
    """Whether the key of a row may be a value that is not shown. Of several UNIQUE keys chunks may
    be cut by another one than rows are told apart by."""
    keys = {*merge_key(schema), *row_key(schema)}
    return shaper.hides(keys) or not shaper.takes_all


class ShapedServer(MySqlServer):
    """`pipeline.ports.SourceServer`, through the shapes of a source's tables."""

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
        found = super().baseline(names)
        return replace(found, tables=tuple(map(self._shaping.redacted, found.tables)))

    def current_schemas(self, tables: Collection[TableName]) -> CurrentSchemas:
        return self._redacted(super().current_schemas(tables))

    def locked_schema(self, table: TableName) -> CurrentSchemas:
        return self._redacted(super().locked_schema(table))

    def _redacted(self, found: CurrentSchemas) -> CurrentSchemas:
        tables = {name: self._shaping.redacted(schema) for name, schema in found.tables.items()}
        return replace(found, tables=tables)

    def structure(self, table: TableName) -> TableStructure:
        found = super().structure(table)
        seen = self._seen(table)
        return found if seen is None else seen.shown

    def structures(self) -> list[TableStructure]:
        """Of a table whose settings cannot be followed, its own."""
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
        """Those of hidden columns may tell of their values."""
        found = super().comments(tables)
        for table, of_columns in found.items():
            rules = self._shaping.rules_of(table)
            for name in [*of_columns] if rules is not None else ():
                if self._shaping.hides_column(table, name):
                    del of_columns[name]
        return found

    def table_comments(self, tables: Collection[TableName]) -> dict[TableName, str]:
        """That of a table with a shape may tell of what it hides."""
        found = super().table_comments(tables)
        return {
            table: comment
            for table, comment in found.items()
            if self._shaping.rules_of(table) is None
        }

    # -- rows --------------------------------------------------------------------------------

    @contextmanager
    def rows(self, structure: TableStructure) -> Iterator[Iterator[pa.RecordBatch]]:
        seen = self._as_shown(structure)
        with super().rows(structure if seen is None else row_structure(seen.schema)) as batches:
            yield batches if seen is None else _shaped(seen.shaper, batches)

    @contextmanager
    def snapshot(
        self,
        table: TableSchema | TableStructure,
        columns: Sequence[str] | None = None,
        *,
        exact: bool = False,
    ) -> Iterator[TableSnapshot]:
        seen = self._seen(table.name)
        if seen is None:
            with super().snapshot(table, columns, exact=exact) as snapshot:
                yield snapshot
            return
        self._require(seen, table)
        shaper, read = seen.shaper, columns
        if columns is not None:
            shaper = seen.shaper.of([*columns, *row_structure(seen.schema).primary_key])
            read = shaper.asked
        with super().snapshot(seen.schema, read, exact=exact) as snapshot:
            yield _shaped_snapshot(shaper, snapshot)

    def next_bound(
        self,
        schema: TableSchema,
        after: Bound | None,
        rows: int,
        *,
        since: Coordinates | None = None,
    ) -> Bound | None:
        seen = self._seen(schema.name)
        if seen is None or not hides_bounds(seen.schema, seen.shaper):
            return super().next_bound(schema, after, rows, since=since)
        if self._shaping.key is None:
            return None
        seal = _Seal(schema.name, self._shaping.key)
        after = None if after is None else seal.opened(after)
        found = super().next_bound(schema, after, rows, since=since)
        return None if found is None else seal.sealed(found)

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
        seen = self._seen(schema.name)
        if seen is not None:
            self._require(seen, schema)
            rows = self._opened(seen, rows)
        with super().chunk(
            schema if seen is None else seen.schema,
            rows,
            exact=exact,
            most_seconds=most_seconds,
            since=since,
        ) as snapshot:
            yield snapshot if seen is None else _shaped_snapshot(seen.shaper, snapshot)

    def _opened(self, seen: _Seen, rows: Range) -> Range:
        if rows.whole or not hides_bounds(seen.schema, seen.shaper):
            return rows
        if self._shaping.key is None:
            raise moved(seen.schema.name, "no key opens the bounds of its chunks")
        seal = _Seal(seen.schema.name, self._shaping.key)
        ends = (None if one is None else seal.opened(one) for one in (rows.after, rows.through))
        return Range(*ends)

    @contextmanager
    def rows_where(
        self,
        schema: TableSchema,
        condition: Condition,
        *,
        most_seconds: float = PIECE_SECONDS,
    ) -> Iterator[ConditionSnapshot]:
        seen = self._seen(schema.name)
        if seen is None:
            with super().rows_where(schema, condition, most_seconds=most_seconds) as found:
                yield found
            return
        self._require(seen, schema)
        if hides_bounds(seen.schema, seen.shaper):
            # Of keys alone nobody can tell whether their rows are taken.
            raise TableError(
                "its key is hashed or rows are left out of it: single rows cannot be read again",
                hint=f"`lockstep reload {schema.name} --from source --reason …` reads all of it",
            )
        with super().rows_where(seen.schema, condition, most_seconds=most_seconds) as found:
            yield ConditionSnapshot(_shaped_snapshot(seen.shaper, found.rows), found.by_keys)

    # -- what a comparison asks ----------------------------------------------------------------

    def row_sum(self, structure: TableStructure) -> SourceSum:
        seen = self._as_shown(structure)
        if seen is None:
            return super().row_sum(structure)
        hasher, total = self._hasher(seen), RowSum()
        with self._read(seen) as (marks, batches):
            for batch in batches:
                total += hasher.summed(batch)
        return SourceSum(total, marks)

    @contextmanager
    def row_hashes(self, structure: TableStructure) -> Iterator[SourceHashes]:
        seen = self._as_shown(structure)
        if seen is None:
            with super().row_hashes(structure) as hashes:
                yield hashes
            return
        hasher = self._hasher(seen)
        with self._read(seen) as (marks, batches):
            pairs = ((hasher.keys(batch), hasher.rows(batch)) for batch in batches)
            yield SourceHashes(marks, pairs)

    def rows_by_hash(self, structure: TableStructure, keys: Collection[int]) -> ComparedRows:
        seen = self._as_shown(structure)
        if seen is None:
            return super().rows_by_hash(structure, keys)
        hasher = self._hasher(seen)
        wanted = np.array(sorted(keys), np.uint64)
        with self._read(seen) as (marks, batches):
            found = [
                batch.filter(pa.array(np.isin(hasher.keys(batch), wanted))) for batch in batches
            ]
        return ComparedRows(marks, pa.Table.from_batches(found, hasher.schema))

    def sample(
        self,
        structure: TableStructure,
        starts: Sequence[tuple[Any, ...]] | Callable[[int, int], Sequence[int]],
    ) -> SourceSample:
        seen = self._as_shown(structure)
        if seen is None:
            return super().sample(structure, starts)
        if not hides_bounds(seen.schema, seen.shaper):
            sample = super().sample(row_structure(seen.schema), starts)
            rows = tuple(_shaped_table(seen.shaper, table) for table in sample.rows)
            return replace(sample, rows=rows)
        raise TableError(
            "rows are left out of it or its key is hashed: stretches of it cannot be compared",
            hint=f"`lockstep verify {structure.name}` compares all of it",
        )

    def _hasher(self, seen: _Seen) -> RowHasher:
        return RowHasher(seen.shown, self.facts().flavour)

    @contextmanager
    def _read(self, seen: _Seen) -> Iterator[tuple[ReadMarks, Iterator[pa.RecordBatch]]]:
        with self._asking() as cursor:
            mariadb = self.facts().flavour == "mariadb"
            ordered = mariadb or read_value(cursor, "select @@global.binlog_order_commits") == "1"
        with super().snapshot(seen.schema) as read:
            marks = ReadMarks(read.low, read.high, read.low_set, read.high_set, ordered)
            yield marks, _shaped(seen.shaper, read.batches)

    # -- the table as it is -------------------------------------------------------------------

    def _seen(self, table: TableName) -> _Seen | None:
        """None for a table that has no shape, or is not there."""
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
        return _Seen(schema, shape.structure, Shaper(shape, self._shaping.key))

    def _as_shown(self, structure: TableStructure) -> _Seen | None:
        """`StructureMoved` unless the table is shown like that now."""
        seen = self._seen(structure.name)
        if seen is not None and seen.shown.fingerprint != structure.fingerprint:
            raise StructureMoved(
                f"{structure.name} was altered while it was read", hint="verify it again"
            )
        return seen

    def _require(self, seen: _Seen, table: TableSchema | TableStructure) -> None:
        """`StructureMoved` unless the table is built like that now, as far as is known of hidden
        columns."""
        if isinstance(table, TableStructure):
            same = table.fingerprint == seen.shown.fingerprint
        else:
            now = self._shaping.redacted(seen.schema)
            same = row_structure(table).fingerprint == row_structure(now).fingerprint
        if not same:
            raise moved(table.name, "another definition of its columns")


_NONCE_BYTES: Final = 12


class _Seal:
    """Seals the bounds of a table's chunks, and opens them."""

    def __init__(self, table: TableName, key: PrivacyKey) -> None:
        self._table = table
        self._cipher = AESGCM(key.derived("bounds of chunks"))

    def sealed(self, bound: Bound) -> Bound:
        return bound.sealed(self._encrypted)

    def opened(self, bound: Bound) -> Bound:
        """`StructureMoved`, by which the table is read from its beginning, for a bound that was
        not sealed for this table with this key."""
        try:
            return bound.opened(self._decrypted)
        except (InvalidTag, ValueError) as error:
            raise moved(self._table, "the bounds of its chunks have another key") from error

    def _encrypted(self, literal: str) -> bytes:
        nonce = os.urandom(_NONCE_BYTES)
        return nonce + self._cipher.encrypt(nonce, literal.encode(), str(self._table).encode())

    def _decrypted(self, sealed: bytes) -> str:
        nonce, ciphertext = sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:]
        return self._cipher.decrypt(nonce, ciphertext, str(self._table).encode()).decode()


def _shaped(shaper: Shaper, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Without batches of which no row is taken."""
    for batch in batches:
        rows = shaper.rows(batch)
        if rows.num_rows:
            yield rows


def _shaped_snapshot(shaper: Shaper, snapshot: TableSnapshot) -> TableSnapshot:
    return replace(snapshot, schema=shaper.schema, batches=_shaped(shaper, iter(snapshot.batches)))


def _shaped_table(shaper: Shaper, table: pa.Table) -> pa.Table:
    batches = [shaper.rows(batch) for batch in table.to_batches()]
    return pa.Table.from_batches(batches, shaper.schema)
