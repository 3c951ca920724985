"""JSON columns: where the documents lie; their text is `json`'s work."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from pipeline.binlog.arrays.cells import Cells
from pipeline.binlog.values.json import json_array
from pipeline.binlog.values.strings import spans
from pipeline.table import Column


def documents(column: Column, cells: Cells) -> pa.Array:
    """JSON → its text, byte for byte what SELECT prints."""
    places, offsets, _ = spans(column, cells)
    lengths = np.diff(np.frombuffer(offsets, np.int32)).astype(np.int64)
    lengths[places < 0] = -1
    return json_array(cells.data, places, lengths, bare_doubles=cells.layout.bare_doubles)
