"""Whether two sets of files hold the same rows in the same order. Pure.

Belongs here: the comparison, however the rows are cut into pieces. Does not: reading the pieces.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa


def same_rows(one: Iterable[pa.Table], other: Iterable[pa.Table]) -> bool:
    """All columns, by name, type and value."""
    ones, others = _filled(one), _filled(other)
    a, b = next(ones, None), next(others, None)
    while a is not None and b is not None:
        if not a.schema.equals(b.schema):
            return False
        count = min(a.num_rows, b.num_rows)
        if not a.slice(0, count).equals(b.slice(0, count)):
            return False
        a = a.slice(count) if count < a.num_rows else next(ones, None)
        b = b.slice(count) if count < b.num_rows else next(others, None)
    return a is None and b is None


def _filled(pieces: Iterable[pa.Table]) -> Iterator[pa.Table]:
    return (piece for piece in pieces if piece.num_rows)
