"""Some rows of a mirror, by spans of a column: none of them is left out."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from lockstep.pipeline.proof.sampling import ValueRange
from lockstep.resources.lake.delta.versions import scan

COLUMNS: dict[str, tuple[pa.DataType, list[Any], list[ValueRange]]] = {
    "numbers": (
        pa.int32(),
        [-5, 0, 3, 2**31 - 1, None],
        [ValueRange(-9, 0), ValueRange(7, 2**31 - 1)],
    ),
    "long numbers": (
        pa.decimal128(20, 0),
        [Decimal(0), Decimal(2**64 - 1), Decimal(2**63)],
        [ValueRange(2**63, 10**20 - 1)],
    ),
    "long numbers from a short one": (
        pa.decimal128(20, 0),
        [Decimal(1), Decimal(3), Decimal(2**64 - 1), Decimal(9)],
        [ValueRange(5, 2**64 - 1), ValueRange(1, 1)],
    ),
    "texts": (
        pa.string(),
        ["a", "it's", 'a "quoted" one', "\\", "é😀", "", None],
        [ValueRange(one, one) for one in ("it's", 'a "quoted" one', "\\", "é😀", "")],
    ),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_rows_in_spans_are_all_there(tmp_path: Path, name: str) -> None:
    """Whatever the values hold; a column's name may hold anything too."""
    kind, values, spans = COLUMNS[name]
    column = 'it\'s "a" column'
    write_deltalake(tmp_path, pa.table({column: pa.array(values, kind)}))
    found = [
        value
        for batch in scan(tmp_path, [column], 0, (column, spans))
        for value in batch.column(0).to_pylist()
    ]
    inside = [
        one
        for one in values
        if one is not None and any(span.low <= one <= span.high for span in spans)
    ]
    assert set(inside) <= set(found)
    assert len(found) < len(values)
    none = scan(tmp_path, [column], 0, (column, []))
    assert sum(batch.num_rows for batch in none) == 0
