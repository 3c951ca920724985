"""Reads the rows of a mirror (the Delta table with the current rows), in the form in
which they are compared with the rows of the source (MySQL)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lockstep.pipeline.mirror.layout import DELETED_AT
from lockstep.pipeline.proof.hashes import Hashes, RowHasher, RowSum
from lockstep.pipeline.proof.rows import RowHashes, pair_hashes
from lockstep.pipeline.proof.sampling import ValueRange
from lockstep.pipeline.run.context import RunPorts


@dataclass(frozen=True, slots=True)
class MirrorReader:
    """Reads a table's mirror at a Delta version. `path`: its folder. `version`: None if
    the mirror was never written, so that it has no rows."""

    ports: RunPorts
    path: str
    version: int | None

    def batches(
        self, schema: pa.Schema, column: str = "", ranges: Sequence[ValueRange] = ()
    ) -> Iterator[pa.RecordBatch]:
        """Yield the mirror's rows in this schema, without rows marked as deleted. With
        `ranges`, rows whose `column` lies in none of them may be left out. A column
        that the mirror lacks is NULL, and so shows as a difference."""
        if self.version is None:
            return
        mirror_schema = self.ports.mirrors.schema(self.path, self.version)
        has_marks = DELETED_AT.name in mirror_schema.names and DELETED_AT.name not in schema.names
        present_names = [name for name in schema.names if name in mirror_schema.names]
        marks = [DELETED_AT.name] if has_marks else []
        # At least one column is read, since batches without columns have no number of
        # rows.
        columns_read = [*present_names, *marks] or mirror_schema.names[:1]
        value_filter = (column, ranges) if column in present_names and ranges else None
        for batch in self.ports.mirrors.rows(self.path, columns_read, self.version, value_filter):
            if has_marks:
                batch = batch.filter(pc.is_null(batch.column(DELETED_AT.name)))
            columns = [
                batch.column(field.name).cast(field.type)
                if field.name in present_names
                else pa.nulls(batch.num_rows, field.type)
                for field in schema
            ]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)

    def row_sum(self, hasher: RowHasher) -> RowSum:
        """Return the number of rows and a checksum of them."""
        return sum(map(hasher.row_sum, self.batches(hasher.schema)), start=RowSum())

    def row_hashes(self, hasher: RowHasher) -> Iterator[RowHashes]:
        """Yield, batch by batch, the hash of each row's key and the hash of the row."""
        for batch in self.batches(hasher.schema):
            yield pair_hashes(hasher.key_hashes(batch), hasher.row_hashes(batch))

    def rows_by_hash(self, hasher: RowHasher, key_hashes: Hashes) -> pa.Table:
        """Return the rows whose keys have these hashes."""
        matching = [
            batch.filter(pa.array(np.isin(hasher.key_hashes(batch), key_hashes)))
            for batch in self.batches(hasher.schema)
        ]
        return pa.Table.from_batches(matching, hasher.schema)
