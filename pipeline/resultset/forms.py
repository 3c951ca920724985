"""How a cell lies in a row of the binary protocol, by the type that the result names.

Belongs here: the protocol's type codes, which of them a column's cells may come as. Does not:
what is in a cell (`columns` and the modules it names).

Protocol: MySQL manual, "Protocol::ColumnDefinition", "Binary Protocol Value".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from pipeline.table import Column


@dataclass(frozen=True, slots=True)
class Definition:
    """A column as the result defines it: its type code; whether it is unsigned; how many
    characters or bytes it shows at most."""

    code: int
    unsigned: bool
    length: int

    @property
    def size(self) -> int:
        """Bytes of a cell; 0 where a length stands before it."""
        return _FIXED.get(self.code, 0)


_TINY, _SHORT, _LONG, _FLOAT, _DOUBLE, _LONGLONG, _INT24, _YEAR = 1, 2, 3, 4, 5, 8, 9, 13
_FIXED: Final = {
    _TINY: 1,
    _SHORT: 2,
    _LONG: 4,
    _FLOAT: 4,
    _DOUBLE: 8,
    _LONGLONG: 8,
    _INT24: 4,
    _YEAR: 2,
}
_BYTES: Final = frozenset({15, 242, 245, *range(247, 256)})
"""VARCHAR, VECTOR, JSON, ENUM, SET, the BLOBs, VAR_STRING, STRING, GEOMETRY: bytes with a length
before them."""

CODES: Final[Mapping[str, frozenset[int]]] = MappingProxyType(
    {
        "tinyint": frozenset({_TINY}),
        "smallint": frozenset({_SHORT}),
        "mediumint": frozenset({_INT24}),
        "int": frozenset({_LONG}),
        "bigint": frozenset({_LONGLONG}),
        "float": frozenset({_FLOAT}),
        "double": frozenset({_DOUBLE}),
        "decimal": frozenset({246}),
        "bit": frozenset({_TINY, _SHORT, _INT24, _LONG, _LONGLONG}),
        "year": frozenset({_YEAR}),
        "date": frozenset({10, 14}),
        "time": frozenset({11}),
        "datetime": frozenset({12}),
        "timestamp": frozenset({7}),
        "char": _BYTES,
        "varchar": _BYTES,
        "text": _BYTES,
        "binary": _BYTES,
        "varbinary": _BYTES,
        "blob": _BYTES,
        "enum": _BYTES,
        "set": _BYTES,
        "json": _BYTES,
        "geometry": _BYTES,
        "vector": _BYTES,
    }
)
"""Column type → the codes that its cells come with. A BIT comes as a number: it is asked for so."""


def unlike(columns: Sequence[Column], definitions: Sequence[Definition]) -> Column | None:
    """The first column that the result does not define as the table's structure does."""
    for column, definition in zip(columns, definitions, strict=True):
        number = column.type.endswith("int")
        if definition.code not in CODES[column.type] or (
            number and definition.unsigned != column.unsigned
        ):
            return column
    return None
