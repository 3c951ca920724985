"""Tables whose rows and structures are shaped: the settings may leave out rows and
columns, and hash, mask or convert values. `server` reads such a table by its present
structure, and returns nothing that the settings hide.

Its batches of rows are shaped, its structures lose the values of hidden columns, and
`MySqlServer.structure` returns its structure in the lake. Sums and hashes of its rows
are computed by Lockstep, because MySQL would compute them from unshaped rows. The log's
decoder shapes the log (`pipeline.run.dump.image_decoder`).

The ledger keeps the bounds of a table's chunks. If the table's key is hashed, or rows
are left out, a bound may be a value that must stay hidden: it is encrypted with
AES-256-GCM by a key derived from the privacy key. Without a privacy key, such a table
is not cut into chunks.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Final

import pyarrow as pa
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from pymysql.cursors import Cursor

from lockstep.pipeline.ports.source import CurrentSchemas, TableSnapshot
from lockstep.pipeline.schema.model import TableSchema
from lockstep.pipeline.schema.rows import merge_key, row_key, row_structure
from lockstep.pipeline.shape.hashes import PrivacyKey
from lockstep.pipeline.shape.shaper import Shaper
from lockstep.pipeline.shape.shaping import Shaping
from lockstep.pipeline.snapshot.chunks import Bound, Range
from lockstep.pipeline.values.table import TableName, TableStructure
from lockstep.resources.mysql.defaults import with_default_values
from lockstep.resources.mysql.schemas import read_schemas
from lockstep.resources.mysql.select import structure_moved


@dataclass(frozen=True, slots=True)
class ShapedTable:
    """A table with a shape. `schema`: its present structure on the server;
    `lake_structure`: its structure in the lake; `shaper`: turns rows of the first into
    rows of the second. `key`: the privacy key, if there is one."""

    schema: TableSchema
    lake_structure: TableStructure
    shaper: Shaper
    key: PrivacyKey | None = None

    @property
    def hides_bounds(self) -> bool:
        """True if a bound of a chunk may be a hidden value. If a table has several
        UNIQUE keys, its chunks may be cut by another key than the one that identifies
        its rows, so both keys count."""
        keys = {*merge_key(self.schema), *row_key(self.schema)}
        return self.shaper.may_hide(keys)

    def for_columns(self, columns: Sequence[str]) -> ShapedTable:
        """Return the table as it is read with these columns and the primary key alone."""
        key = row_structure(self.schema).primary_key
        return replace(self, shaper=self.shaper.for_columns([*columns, *key]))

    @property
    def bound_cipher(self) -> BoundCipher | None:
        """The cipher for the bounds of the table's chunks; None without a privacy key."""
        return None if self.key is None else BoundCipher(self.schema.name, self.key)

    def decrypt_bounds(self, key_range: Range) -> Range:
        """Return the range with decrypted bounds. Bounds that hide nothing are not
        encrypted."""
        if key_range.is_whole_table or not self.hides_bounds:
            return key_range
        cipher = self.bound_cipher
        if cipher is None:
            reason = "the bounds of its chunks are encrypted, but there is no key"
            raise structure_moved(self.schema.name, reason)
        bounds = (key_range.after, key_range.through)
        return Range(*(None if bound is None else cipher.decrypt(bound) for bound in bounds))

    def shape_batches(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the shaped batches, without empty ones."""
        for batch in batches:
            rows = self.shaper.shape_rows(batch)
            if rows.num_rows:
                yield rows

    def shape_snapshot(self, snapshot: TableSnapshot) -> TableSnapshot:
        batches = self.shape_batches(iter(snapshot.batches))
        return replace(snapshot, schema=self.shaper.schema, batches=batches)


class ShapedTables:
    """The tables of a server, as the settings shape them. `own_cursor`: opens a cursor
    on the server."""

    def __init__(
        self, shaping: Shaping, own_cursor: Callable[[], AbstractContextManager[Cursor]]
    ) -> None:
        self._shaping = shaping
        self._own_cursor = own_cursor

    def redact(self, unshaped: CurrentSchemas) -> CurrentSchemas:
        tables = {name: self._shaping.redact(schema) for name, schema in unshaped.tables.items()}
        return replace(unshaped, tables=tables)

    def _read_shaped(self, table: TableName) -> ShapedTable | None:
        if self._shaping.rules_of(table) is None:
            return None
        with self._own_cursor() as cursor:
            schemas = with_default_values(cursor, read_schemas(cursor, [table]))
        if not schemas:
            # MariaDB omits a table that it could not open in time. When the rows are
            # read, the table may be there again, and they would be unshaped.
            raise structure_moved(table, "the server does not show the table")
        (schema,) = schemas
        shape = self._shaping.shape(schema)
        if shape is None:
            return None
        key = self._shaping.key
        return ShapedTable(schema, shape.structure, Shaper(shape, key), key)

    def read(self, table: TableSchema | TableStructure) -> ShapedTable | None:
        """Return the table with its shape; None if the lake shows the table as it is.
        `table`: the schema that is expected at the source, or the structure that is
        expected in the lake.

        Raise `StructureMoved` if the table has another structure now, apart from the
        hidden attributes of hidden columns. Raise it, too, if `table` has a shape and
        the table at the source no longer has: a replica may still have the columns to
        hide.
        """
        shaped = self._read_shaped(table.name)
        if shaped is None:
            is_same = isinstance(table, TableStructure) or self._shaping.shape(table) is None
        elif isinstance(table, TableStructure):
            is_same = table.fingerprint == shaped.lake_structure.fingerprint
        else:
            now = self._shaping.redact(shaped.schema)
            is_same = row_structure(table).fingerprint == row_structure(now).fingerprint
        if not is_same:
            raise structure_moved(table.name, "the definition of its columns differs")
        return shaped


_NONCE_BYTES: Final = 12


class BoundCipher:
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
