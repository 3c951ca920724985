"""The rows of a mirror (the Delta table with the current rows), read in the form in
which they are compared with the rows of the source (MySQL)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lockstep.pipeline.mirror.layout import DELETED_AT, columns_or_nulls
from lockstep.pipeline.proof.hashes import Hashes, RowHasher, RowSum
from lockstep.pipeline.proof.rows import RowHashes, pair_hashes
from lockstep.pipeline.proof.sampling import ValueRange
from lockstep.pipeline.run.context import RunPorts
from lockstep.pipeline.schema.types import sql_type
from lockstep.pipeline.values.errors import MirrorRefused


@dataclass(frozen=True, slots=True)
class MirrorReader:
    """A reader of a table's mirror at a Delta version. `path`: its folder. `version`: None if
    the mirror was never written, so that it has no rows."""

    ports: RunPorts
    path: str
    version: int | None

    def batches(
        self, schema: pa.Schema, column: str = "", ranges: Sequence[ValueRange] = ()
    ) -> Iterator[pa.RecordBatch]:
        """Yield the mirror's rows in this schema, without rows marked as deleted. With
        `ranges`, rows whose `column` lies in none of them may be left out. A column
        that the mirror lacks is NULL, and so shows as a difference. Raise
        `MirrorRefused` if a column has another type in the mirror, which some values do
        not fit: its type changed in a part of the log that was skipped."""
        if self.version is None:
            return
        mirror_names = self.ports.mirrors.schema(self.path, self.version).names
        names_read = [name for name in schema.names if name in mirror_names]
        value_filter = (column, ranges) if column in names_read and ranges else None
        has_marks = DELETED_AT.name in mirror_names and DELETED_AT.name not in schema.names
        if has_marks:
            names_read.append(DELETED_AT.name)
        # At least one column is read, since batches without columns have no number of
        # rows.
        names_read = names_read or mirror_names[:1]
        for batch in self.ports.mirrors.rows(self.path, names_read, self.version, value_filter):
            if has_marks:
                batch = batch.filter(pc.is_null(batch.column(DELETED_AT.name)))
            try:
                columns = columns_or_nulls(batch, schema)
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
                raise _other_types_error(batch.schema, schema) from error
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


def _other_types_error(shown: pa.Schema, wanted: pa.Schema) -> MirrorRefused:
    """Return the error for rows whose columns `shown` do not fit the columns
    `wanted`."""
    columns = [
        f"{field.name!r} with the type {sql_type(shown.field(field.name).type)}, not "
        f"{sql_type(field.type)}"
        for field in wanted
        if field.name in shown.names and shown.field(field.name).type != field.type
    ]
    return MirrorRefused(
        f"its mirror shows the column {', '.join(columns)}, and has values that do not fit: "
        "the type changed in a part of the log that was not read",
        hint="rewrite the mirror",
    )
