"""Which type of a result's columns is read where; whole rows → a batch of Arrow columns.

Belongs here: the table of types, and what is wrong with a column whose values are none of its
type. Does not: bytes (`numbers` and the others beside it), what a result's values prove or
break beyond their type (`resources.mysql.select`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final

import numpy as np
import pyarrow as pa

from pipeline.errors import TableError
from pipeline.ports.source import Received
from pipeline.resultset.decimals import decimals
from pipeline.resultset.forms import Definition
from pipeline.resultset.moments import dates, moments, times
from pipeline.resultset.numbers import bits, floats, integers, years
from pipeline.resultset.packets import Ending, ResultRows, broken
from pipeline.resultset.strings import binaries, geometries, texts, vectors
from pipeline.resultset.walk import Answers, walk
from pipeline.schema.types import arrow_type
from pipeline.table import Column

MOST_ROWS: Final = 10_000
"""Of a batch."""

MOST_BYTES: Final = 32 << 20
"""No row of a batch begins behind so many bytes of it, as they came."""

_MOST_CELLS: Final = 1 << 22
_FEWEST_ROWS: Final = 64

READ_BY: Final[Mapping[str, Callable[[Column, Answers], pa.Array]]] = MappingProxyType(
    {
        "tinyint": integers,
        "smallint": integers,
        "mediumint": integers,
        "int": integers,
        "bigint": integers,
        "float": floats,
        "double": floats,
        "decimal": decimals,
        "bit": bits,
        "year": years,
        "date": dates,
        "time": times,
        "datetime": moments,
        "timestamp": moments,
        "char": texts,
        "varchar": texts,
        "text": texts,
        "binary": binaries,
        "varbinary": binaries,
        "blob": binaries,
        "enum": texts,
        "set": texts,
        "json": texts,
        "geometry": geometries,
        "vector": vectors,
    }
)


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
        return READ_BY[column.type](column, answers)
    except ValueError as error:
        raise TableError(
            f"column {column.name!r} holds a value that is no {column.type}",
            hint="correct those rows in the source, or exclude the table",
        ) from error
