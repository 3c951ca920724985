"""The table from type names to decoders.

Each type name of `table_map` has a function that turns a column's cells into an Arrow array, of the
type that `schema.types` gives; a test checks that both tables agree.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

import pyarrow as pa

from lockstep.pipeline.binlog.arrays.cells import Cells
from lockstep.pipeline.binlog.values.decimals import decimals
from lockstep.pipeline.binlog.values.integers import bits, integers, years
from lockstep.pipeline.binlog.values.json import documents
from lockstep.pipeline.binlog.values.members import enums, sets
from lockstep.pipeline.binlog.values.strings import binaries, geometries, texts, vectors
from lockstep.pipeline.binlog.values.temporal import dates, datetimes, times, timestamps
from lockstep.pipeline.values.table import Column

DECODED_BY: Final[Mapping[str, Callable[[Column, Cells], pa.Array]]] = MappingProxyType(
    {
        **dict.fromkeys(("tinyint", "smallint", "mediumint", "int", "bigint"), integers),
        **dict.fromkeys(("float", "double"), integers),
        "decimal": decimals,
        "bit": bits,
        "year": years,
        "date": dates,
        "time": times,
        "datetime": datetimes,
        "timestamp": timestamps,
        **dict.fromkeys(("char", "varchar", "text"), texts),
        **dict.fromkeys(("binary", "varbinary", "blob"), binaries),
        "enum": enums,
        "set": sets,
        "json": documents,
        "geometry": geometries,
        "vector": vectors,
    }
)
