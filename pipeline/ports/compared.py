"""The source's side of a comparison with a mirror: sums, hashes and samples of rows."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa

from lockstep.pipeline.proof.hashes import Hashes, RowSum
from lockstep.pipeline.values.position import Coordinates
from lockstep.pipeline.values.table import TableStructure


@dataclass(frozen=True, slots=True)
class ReadMarks:
    """The places of the log around a consistent read.

    The read has everything that was committed before `low` (the transactions of `low_set`), and
    nothing that was committed after `high`. `ordered`: transactions become visible in the order
    of the log, so that the read shows the table after some transaction between the two.
    """

    low: Coordinates
    high: Coordinates
    low_set: str
    high_set: str
    ordered: bool


@dataclass(frozen=True, slots=True)
class SourceSum:
    """A table's rows, summed by the server."""

    sum: RowSum
    marks: ReadMarks


@dataclass(frozen=True, slots=True)
class SourceHashes:
    """A table's rows as pairs of hashes: of the key, and of the whole row. `batches` can be read
    once, and are in no particular order."""

    marks: ReadMarks
    batches: Iterator[tuple[Hashes, Hashes]]


@dataclass(frozen=True, slots=True)
class ComparedRows:
    """Some of a table's rows, with columns of the types in `schema.types`."""

    marks: ReadMarks
    rows: pa.Table


@dataclass(frozen=True, slots=True)
class SourceSample:
    """Stretches of a table's rows in the order of its key: where each was to begin, and its
    rows."""

    marks: ReadMarks
    starts: tuple[tuple[Any, ...], ...]
    rows: tuple[pa.Table, ...]


class ComparedServer(Protocol):
    """Part of `SourceServer`."""

    def row_sum(self, structure: TableStructure) -> SourceSum:
        """Return the sum of the hashes of all rows of a table with that structure
        (`proof.hashes`), added up by the server in one consistent read. `StructureMoved` if the
        table has another structure; `TableError` as for `snapshot`."""

    def row_hashes(self, structure: TableStructure) -> AbstractContextManager[SourceHashes]:
        """Return the same hashes row by row; raises as `row_sum`."""

    def rows_by_hash(self, structure: TableStructure, keys: Collection[int]) -> ComparedRows:
        """Return the rows whose keys have these hashes, at most a few hundred; raises as
        `row_sum`."""

    def sample(
        self,
        structure: TableStructure,
        starts: Sequence[tuple[Any, ...]] | Callable[[int, int], Sequence[int]],
    ) -> SourceSample:
        """Read `sampling.STRETCH` rows of a table from each of these keys on (from the first row
        for an empty one), in one consistent read. If `starts` is a function, the key is one column
        of whole numbers, and the function gets its least and greatest value. Raises as
        `row_sum`."""
