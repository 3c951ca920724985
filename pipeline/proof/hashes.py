"""Hashes of rows, 64 bits each, and their sums.

A row's hash is the first 8 bytes of the SHA-256 of its canonical text
(`pipeline.proof.canonical`). Hashes are added modulo 2**64. So the order of rows does
not matter, equal rows count as often as they occur, and an update subtracts the old
row's hash and adds the new one's.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lockstep.pipeline.proof.canonical import canonical_form
from lockstep.pipeline.schema.types import arrow_schema
from lockstep.pipeline.values.table import TableStructure

Hashes = npt.NDArray[np.uint64]
"""One hash for each row."""

Flags = npt.NDArray[np.bool_]

MODULUS: Final = 1 << 64
HASH_BYTES: Final = 8


@dataclass(frozen=True, slots=True)
class RowSum:
    """The number of rows, and the sum of their hashes modulo 2**64."""

    row_count: int = 0
    hash_sum: int = 0

    def __add__(self, other: RowSum) -> RowSum:
        hash_sum = (self.hash_sum + other.hash_sum) % MODULUS
        return RowSum(self.row_count + other.row_count, hash_sum)

    def __sub__(self, other: RowSum) -> RowSum:
        hash_sum = (self.hash_sum - other.hash_sum) % MODULUS
        return RowSum(self.row_count - other.row_count, hash_sum)


@dataclass(frozen=True, slots=True)
class RowHasher:
    """Computes hashes of one table's rows. `flavour`: "mysql" or "mariadb", the server
    whose texts are reproduced. `schema`: the Arrow schema of the table's rows."""

    structure: TableStructure
    flavour: str
    schema: pa.Schema = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "schema", arrow_schema(self.structure))

    @property
    def key_columns(self) -> tuple[str, ...]:
        """The columns that identify a row: all of them in a table without a key."""
        return self.structure.primary_key or self.structure.names

    def row_hashes(self, batch: pa.RecordBatch) -> Hashes:
        """Return the hash of each row. `batch` has the columns of `schema`."""
        return self._hashes(self.texts(batch))

    def key_hashes(self, batch: pa.RecordBatch) -> Hashes:
        """Return the hash of each row's key. `batch` has at least the key's columns."""
        return self._hashes(self.texts(batch, self.key_columns))

    def row_sum(self, batch: pa.RecordBatch) -> RowSum:
        """Return the sum of the rows' hashes."""
        return RowSum(batch.num_rows, int(self.row_hashes(batch).sum(dtype=np.uint64)))

    def texts(self, batch: pa.RecordBatch, names: Sequence[str] | None = None) -> list[pa.Array]:
        """Return each column's canonical texts, NULL for NULL. `names`: the columns'
        names; None for all."""
        columns = {column.name: column for column in self.structure.columns}
        return [
            canonical_form(columns[name], self.flavour).texts_of(_one_chunk(batch.column(name)))
            for name in (self.structure.names if names is None else names)
        ]

    def _hashes(self, texts_by_column: Sequence[pa.Array]) -> Hashes:
        comma = pa.scalar(b",", pa.large_binary())
        joined = pc.binary_join_element_wise(
            *texts_by_column, comma, null_handling="replace", null_replacement=b""
        )
        sha = hashlib.sha256
        digests = b"".join([sha(text).digest()[:HASH_BYTES] for text in joined.to_pylist()])
        return np.frombuffer(digests, ">u8").astype(np.uint64)


# For a million hashes, numpy's `unique` and `isin` take over ten times as long as the next
# two functions, and `isin` sorts its second array again for each batch of rows.


def sorted_unique(hashes: Hashes) -> Hashes:
    """Return each hash once, ascending."""
    ascending = np.sort(hashes)
    is_first = np.ones(len(ascending), np.bool_)
    is_first[1:] = ascending[1:] != ascending[:-1]
    return ascending[is_first]


def membership(hashes: Hashes, members: Hashes) -> Flags:
    """Return for each hash whether it is one of `members`, which are
    `sorted_unique`."""
    if not len(members):
        return np.zeros(len(hashes), np.bool_)
    indexes = np.minimum(np.searchsorted(members, hashes), len(members) - 1)
    return np.asarray(members[indexes] == hashes)


def _one_chunk(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
