"""Rows without a key: copies of a row counted, all in memory.

Belongs here: what row images come to where both are few. Does not: the same in Spark
(`resources.lake.writing`).
"""

from __future__ import annotations

from collections import Counter

import pyarrow as pa


def counted(rows: pa.Table, come: pa.Table, go: pa.Table) -> pa.Table:
    """`rows` and those that `come`, without a copy of each that goes (all of one schema), in no
    particular order. Rows are told apart by the bits of all their values; what goes and was
    never there is passed over."""
    there = pa.concat_tables([rows, come])
    going = Counter(_told(go))
    stays = []
    for at, row in enumerate(_told(there)):
        if going[row]:
            going[row] -= 1
        else:
            stays.append(at)
    return there.take(pa.array(stays, pa.int64()))


def _told(rows: pa.Table) -> list[str]:
    """Each row as text: 0.0 and -0.0 are two, and NULL is like NULL."""
    return [repr(list(row.values())) for row in rows.to_pylist()]
