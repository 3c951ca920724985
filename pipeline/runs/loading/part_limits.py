"""A condition's limits, applied to rows of a mirror.

Belongs here: for which columns' types a literal means the same in the lake as at the source; what
is not one of them bounds nothing. Does not: reading limits out of a condition
(`pipeline.snapshot.condition`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pipeline.proof.sampling import ValueRange
from pipeline.snapshot.condition import Limit, Literal

_BIG = pa.decimal128(20, 0)
_DAY = pa.date32()


def columns_of(schema: pa.Schema, key: Sequence[str], limits: Sequence[Limit]) -> list[str]:
    """The key's columns, and those besides that a limit is about."""
    more = [name for name, _ in _applied(schema, limits)]
    return list(dict.fromkeys([*key, *more]))


def span_of(schema: pa.Schema, limits: Sequence[Limit]) -> tuple[str, list[ValueRange]]:
    """A column of whole numbers that is bounded, and to what; ("", []) for none."""
    for name, limit in _applied(schema, limits):
        kind = schema.field(name).type
        if pa.types.is_integer(kind):
            most = 2 ** (kind.bit_width - 1)
            low = -most if limit.low is None else limit.low
            high = most - 1 if limit.high is None else limit.high
            return name, [ValueRange(low, high)]
    return "", []


def bounded(batch: pa.RecordBatch, limits: Sequence[Limit]) -> npt.NDArray[np.bool_]:
    """Which rows the limits leave; one whose value is NULL stays."""
    found = np.ones(batch.num_rows, np.bool_)
    for name, limit in _applied(batch.schema, limits):
        column = _comparable(batch.column(name))
        for value, compare in ((limit.low, pc.greater_equal), (limit.high, pc.less_equal)):
            if value is not None:
                inside = compare(column, pa.scalar(_scalar(value, column.type), column.type))
                found &= inside.fill_null(True).to_numpy(zero_copy_only=False).astype(np.bool_)
    return found


def _applied(schema: pa.Schema, limits: Sequence[Limit]) -> Iterator[tuple[str, Limit]]:
    spelled = {name.lower(): name for name in schema.names}
    for limit in limits:
        name = spelled.get(limit.column.lower())
        if name is not None and all(
            _fits(schema.field(name).type, value)
            for value in (limit.low, limit.high)
            if value is not None
        ):
            yield name, limit


def _fits(kind: pa.DataType, value: Literal) -> bool:
    if isinstance(value, datetime):
        return bool(kind == _DAY or pa.types.is_timestamp(kind))
    if kind == _BIG:
        return abs(value) < 10**20
    # A YEAR is as wide as no whole number of MySQL's but SMALLINT: 70 may be 1970 there.
    return bool(pa.types.is_integer(kind) and abs(value) < 2 ** (kind.bit_width - 1)) and (
        kind != pa.int16() or not 0 <= value < 100
    )


def _comparable(column: pa.Array) -> pa.Array:
    if column.type == _DAY:
        return column.cast(pa.timestamp("us"))
    if pa.types.is_integer(column.type):
        return column.cast(pa.int64())
    return column


def _scalar(value: Literal, kind: pa.DataType) -> Any:
    if isinstance(value, datetime):
        return value.replace(tzinfo=UTC)
    return Decimal(value) if kind == _BIG else value
