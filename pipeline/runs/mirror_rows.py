"""A mirror's rows as the source has them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeline.changes.layout import DELETED_AT
from pipeline.proof.hashes import Hashes, RowHasher, RowSum
from pipeline.proof.rows import Pairs, pairs
from pipeline.proof.sampling import ValueRange
from pipeline.runs.context import Workplace


@dataclass(frozen=True, slots=True)
class Mirror:
    """A table's mirror at a version; None where it has none yet, which is a table without
    rows."""

    work: Workplace
    path: str
    version: int | None

    def batches(
        self, schema: pa.Schema, column: str = "", spans: Sequence[ValueRange] = ()
    ) -> Iterator[pa.RecordBatch]:
        """Its rows as that schema has them; with spans, at least those whose `column` lies in one
        of them. A column that the mirror lacks is NULL in it, and so a difference."""
        if self.version is None:
            return
        there = self.work.mirrors.schema(self.path, self.version)
        deleted = DELETED_AT.name in there.names and DELETED_AT.name not in schema.names
        names = [name for name in schema.names if name in there.names]
        marks = [DELETED_AT.name] if deleted else []
        # No column at all would leave out how many rows there are.
        asked = [*names, *marks] or there.names[:1]
        near = (column, spans) if column in names and spans else None
        for batch in self.work.mirrors.rows(self.path, asked, self.version, near):
            if deleted:
                batch = batch.filter(pc.is_null(batch.column(DELETED_AT.name)))
            columns = [
                batch.column(field.name).cast(field.type)
                if field.name in names
                else pa.nulls(batch.num_rows, field.type)
                for field in schema
            ]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)

    def summed(self, hasher: RowHasher) -> RowSum:
        found = RowSum()
        for batch in self.batches(hasher.schema):
            found = found + hasher.summed(batch)
        return found

    def pairs(self, hasher: RowHasher) -> Iterator[Pairs]:
        for batch in self.batches(hasher.schema):
            yield pairs(hasher.keys(batch), hasher.rows(batch))

    def rows(self, hasher: RowHasher, wanted: Hashes) -> pa.Table:
        """The rows whose keys have these hashes."""
        found = [
            batch.filter(pa.array(np.isin(hasher.keys(batch), wanted)))
            for batch in self.batches(hasher.schema)
        ]
        return pa.Table.from_batches(found, hasher.schema)
