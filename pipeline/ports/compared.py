"""What a comparison with a mirror asks of the source: sums, hashes and samples of rows."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa

from pipeline.position import Coordinates
from pipeline.proof.hashes import Hashes, RowSum
from pipeline.table import TableStructure


@dataclass(frozen=True, slots=True)
class ReadMarks:
    """Where the log was around a consistent read.

    Whatever was committed before `low` (the transactions of `low_set`) is in what was read, and
    nothing that was committed behind `high`. `ordered`: transactions become visible in the order
    of the log, so that what was read is the table behind some transaction between the two.
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
    """A table's rows, a pair of hashes each: of its key, of all of it. `batches` can be read
    once; in no particular order."""

    marks: ReadMarks
    batches: Iterator[tuple[Hashes, Hashes]]


@dataclass(frozen=True, slots=True)
class ComparedRows:
    """Some of a table's rows, columns typed by `schema.types`."""

    marks: ReadMarks
    rows: pa.Table


@dataclass(frozen=True, slots=True)
class SourceSample:
    """Stretches of a table's rows in the order of its key: of each, where it was to begin, and
    its rows."""

    marks: ReadMarks
    starts: tuple[tuple[Any, ...], ...]
    rows: tuple[pa.Table, ...]


class ComparedServer(Protocol):
    """Part of `SourceServer`."""

    def row_sum(self, structure: TableStructure) -> SourceSum:
        """The hashes of all rows of a table that is built like that (`proof.hashes`), added up
        by the server in one consistent read. `StructureMoved` where it is built otherwise;
        `TableError` as for `snapshot`."""

    def row_hashes(self, structure: TableStructure) -> AbstractContextManager[SourceHashes]:
        """The same hashes, one by one; raises as `row_sum`."""

    def rows_by_hash(self, structure: TableStructure, keys: Collection[int]) -> ComparedRows:
        """The rows whose keys have these hashes, a few hundred of them; raises as `row_sum`."""

    def sample(
        self,
        structure: TableStructure,
        starts: Sequence[tuple[Any, ...]] | Callable[[int, int], Sequence[int]],
    ) -> SourceSample:
        """`sampling.STRETCH` rows of a table with a key from each of these keys on (an empty
        one: from the first row on), in one consistent read. A function is given the least and
        the greatest value of a key that is one column of whole numbers. Raises as `row_sum`."""
