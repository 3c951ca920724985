"""Whole rows → batches of Arrow columns, by the table from types to decoders."""

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
"""Most rows of a batch."""

MOST_BYTES: Final = 32 << 20
"""Bytes of rows, as received, after which a batch takes no further row."""

_MOST_CELLS: Final = 1 << 22
_FEWEST_ROWS: Final = 64

_BYTES: Final = frozenset({15, 242, 245, *range(247, 256)})
"""VARCHAR, VECTOR, JSON, ENUM, SET, the BLOBs, VAR_STRING, STRING, GEOMETRY: bytes with a length
before them."""


@dataclass(frozen=True, slots=True)
class Decoder:
    """The type codes of the protocol that a type's values may have, and the function that decodes
    them."""

    codes: frozenset[int]
    decode: Callable[[Column, Answers], pa.Array]


READ_BY: Final[Mapping[str, Decoder]] = MappingProxyType(
    {
        "tinyint": Decoder(frozenset({1}), integers),
        "smallint": Decoder(frozenset({2}), integers),
        "mediumint": Decoder(frozenset({9}), integers),
        "int": Decoder(frozenset({3}), integers),
        "bigint": Decoder(frozenset({8}), integers),
        "float": Decoder(frozenset({4}), integers),
        "double": Decoder(frozenset({5}), integers),
        "decimal": Decoder(frozenset({246}), decimals),
        # `select` asks for a BIT as a number.
        "bit": Decoder(frozenset({1, 2, 3, 8, 9}), bits),
        "year": Decoder(frozenset({13}), years),
        "date": Decoder(frozenset({10, 14}), dates),
        "time": Decoder(frozenset({11}), times),
        "datetime": Decoder(frozenset({12}), moments),
        "timestamp": Decoder(frozenset({7}), moments),
        **dict.fromkeys(("char", "varchar", "text", "enum", "set", "json"), Decoder(_BYTES, texts)),
        **dict.fromkeys(("binary", "varbinary", "blob"), Decoder(_BYTES, binaries)),
        "geometry": Decoder(_BYTES, geometries),
        "vector": Decoder(_BYTES, vectors),
    }
)


def unlike(columns: Sequence[Column], definitions: Sequence[Definition]) -> Column | None:
    """Return the first column whose definition in the result differs from the table's structure."""
    for column, definition in zip(columns, definitions, strict=True):
        integer = column.type.endswith("int")
        if definition.code not in READ_BY[column.type].codes or (
            integer and definition.unsigned != column.unsigned
        ):
            return column
    return None


class ResultBatches:
    """The rows of one result as batches, to be iterated once; `ending` is set after the last.

    `sequence`: the number of the first row's packet. A batch has at most `most_rows` rows (fewer
    for a table of hundreds of columns), and ends with the row that exceeds `most_bytes`.
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
        self._forms = np.array([column.size for column in definitions], np.int64)
        self._schema = pa.schema([(column.name, arrow_type(column)) for column in columns])
        most_rows = max(min(most_rows, _FEWEST_ROWS), min(most_rows, _MOST_CELLS // len(columns)))
        self._rows = ResultRows(sequence=sequence, most_rows=most_rows, most_bytes=most_bytes)
        self._at = np.empty((len(columns), most_rows), np.int32)
        self._size = np.empty((len(columns), most_rows), np.int32)

    @property
    def ending(self) -> Ending | None:
        return self._rows.ending

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """Yield the batches. TableError for a value that is invalid for its column's type,
        SourceUnavailable for a malformed answer, `packets.ErrorPacket` for the server's error."""
        rows = self._rows
        for piece in self._pieces:
            rows.put(piece.data[piece.begin : piece.end])
            while rows.fill():
                if len(rows):
                    yield self._batch()
                rows.clear()
                if rows.ending is not None:
                    return
        raise broken("it has no last packet")

    def _batch(self) -> pa.RecordBatch:
        rows, count = self._rows, len(self._rows)
        at, size = self._at[:, :count], self._size[:, :count]
        nulls = np.zeros(len(self._columns), np.int64)
        if walk(rows.data, rows.starts, count, self._forms, self._at, self._size, nulls) >= 0:
            raise broken("a row does not consist of its columns")
        parts = zip(self._columns, self._definitions, at, size, nulls.tolist(), strict=True)
        arrays = [
            _array(column, Answers(rows.data, places, sizes, null_count, definition))
            for column, definition, places, sizes, null_count in parts
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)


def _array(column: Column, answers: Answers) -> pa.Array:
    try:
        return READ_BY[column.type].decode(column, answers)
    except ValueError as error:
        raise TableError(
            f"column {column.name!r} holds a value that is not a valid {column.type}",
            hint="correct those rows in the source, or exclude the table",
        ) from error
