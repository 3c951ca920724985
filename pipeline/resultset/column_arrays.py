"""Which type of a result's columns is read where; whole rows → a batch of Arrow columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

import numpy as np
import pyarrow as pa

from pipeline.errors import TableError
from pipeline.ports.source import Received
from pipeline.resultset.moments import dates, moments, times
from pipeline.resultset.numbers import bits, decimals, integers, years
from pipeline.resultset.packets import Ending, ResultRows, broken
from pipeline.resultset.strings import binaries, geometries, texts, vectors
from pipeline.resultset.walk import Answers, Definition, walk
from pipeline.schema.types import arrow_type
from pipeline.table import Column

MOST_ROWS: Final = 10_000
"""Of a batch."""

MOST_BYTES: Final = 32 << 20
"""No row of a batch begins behind so many bytes of it, as they came."""

_MOST_CELLS: Final = 1 << 22
_FEWEST_ROWS: Final = 64

_BYTES: Final = frozenset({15, 242, 245, *range(247, 256)})
"""VARCHAR, VECTOR, JSON, ENUM, SET, the BLOBs, VAR_STRING, STRING, GEOMETRY: bytes with a length
before them."""


@dataclass(frozen=True, slots=True)
class Reading:
    """How a type's values come: with which of the protocol's `codes`, and what makes Arrow of
    them."""

    codes: frozenset[int]
    read: Callable[[Column, Answers], pa.Array]


READ_BY: Final[Mapping[str, Reading]] = MappingProxyType(
    {
        "tinyint": Reading(frozenset({1}), integers),
        "smallint": Reading(frozenset({2}), integers),
        "mediumint": Reading(frozenset({9}), integers),
        "int": Reading(frozenset({3}), integers),
        "bigint": Reading(frozenset({8}), integers),
        "float": Reading(frozenset({4}), integers),
        "double": Reading(frozenset({5}), integers),
        "decimal": Reading(frozenset({246}), decimals),
        # It is asked for as a number.
        "bit": Reading(frozenset({1, 2, 3, 8, 9}), bits),
        "year": Reading(frozenset({13}), years),
        "date": Reading(frozenset({10, 14}), dates),
        "time": Reading(frozenset({11}), times),
        "datetime": Reading(frozenset({12}), moments),
        "timestamp": Reading(frozenset({7}), moments),
        **dict.fromkeys(("char", "varchar", "text", "enum", "set", "json"), Reading(_BYTES, texts)),
        **dict.fromkeys(("binary", "varbinary", "blob"), Reading(_BYTES, binaries)),
        "geometry": Reading(_BYTES, geometries),
        "vector": Reading(_BYTES, vectors),
    }
)


def unlike(columns: Sequence[Column], definitions: Sequence[Definition]) -> Column | None:
    """The first column that the result does not define as the table's structure does."""
    for column, definition in zip(columns, definitions, strict=True):
        number = column.type.endswith("int")
        if definition.code not in READ_BY[column.type].codes or (
            number and definition.unsigned != column.unsigned
        ):
            return column
    return None


class ResultBatches:
    """The rows of one result as batches, read once; `ending` says then how it ended.

    `sequence`: the number of the first row's packet. A batch has at most `most_rows` rows (fewer
    of a table of hundreds of columns) and the row that crosses `most_bytes`.
    """

    def __init__(
        self,
        columns: Sequence[Column],
        definitions: Sequence[Definition],
        pieces: Iterable[Received],
        *,
        sequence: int,
        most_rows: int = MOST_ROWS,
        most_bytes: int = MOST_BYTES,
    ) -> None:
        self._columns = columns
        self._definitions = definitions
        self._pieces = pieces
        self._forms = np.array([each.size for each in definitions], np.int64)
        self._schema = pa.schema([(each.name, arrow_type(each)) for each in columns])
        most_rows = max(min(most_rows, _FEWEST_ROWS), min(most_rows, _MOST_CELLS // len(columns)))
        self._rows = ResultRows(sequence=sequence, most_rows=most_rows, most_bytes=most_bytes)
        self._at = np.empty((len(columns), most_rows), np.int32)
        self._size = np.empty((len(columns), most_rows), np.int32)

    @property
    def ending(self) -> Ending | None:
        return self._rows.ending

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """TableError for a value that is none of its column's type, SourceUnavailable for an
        answer that is none, `packets.ErrorPacket` where the server gave up."""
        rows = self._rows
        for piece in self._pieces:
            rows.put(piece.data[piece.begin : piece.end])
            while rows.fill():
                if len(rows):
                    yield self._batch()
                rows.clear()
                if rows.ending is not None:
                    return
        raise broken("it has no end")

    def _batch(self) -> pa.RecordBatch:
        rows, count = self._rows, len(self._rows)
        at, size = self._at[:, :count], self._size[:, :count]
        nulls = np.zeros(len(self._columns), np.int64)
        if walk(rows.data, rows.starts, count, self._forms, self._at, self._size, nulls) >= 0:
            raise broken("a row is not made of its columns")
        parts = zip(self._columns, self._definitions, at, size, nulls.tolist(), strict=True)
        arrays = [
            _array(column, Answers(rows.data, places, sizes, empty, definition))
            for column, definition, places, sizes, empty in parts
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)


def _array(column: Column, answers: Answers) -> pa.Array:
    try:
        return READ_BY[column.type].read(column, answers)
    except ValueError as error:
        raise TableError(
            f"column {column.name!r} holds a value that is no {column.type}",
            hint="correct those rows in the source, or exclude the table",
        ) from error
