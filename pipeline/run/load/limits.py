"""The limits of a WHERE condition on the values of single columns, applied to rows of
Arrow. A row that is not within the limits cannot match the condition."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lockstep.pipeline.proof.sampling import ValueRange
from lockstep.pipeline.snapshot.condition import Limit, Literal

_UNSIGNED_BIGINT = pa.decimal128(20, 0)
_DAY = pa.date32()


def comparable_limits(limits: Sequence[Limit], treated_columns: Collection[str]) -> list[Limit]:
    """Return the limits on columns whose values the mirror has unchanged.
    `treated_columns`: columns that the settings hide or change, whose values cannot be
    compared with a limit."""
    hidden = {name.lower() for name in treated_columns}
    return [limit for limit in limits if limit.column.lower() not in hidden]


def columns_of(schema: pa.Schema, key: Sequence[str], limits: Sequence[Limit]) -> list[str]:
    """Return the columns of the key, and the other columns with a limit."""
    limited_columns = [name for name, _ in _applied(schema, limits)]
    return list(dict.fromkeys([*key, *limited_columns]))


def range_of_limits(schema: pa.Schema, limits: Sequence[Limit]) -> tuple[str, list[ValueRange]]:
    """Return an integer column with a limit, and its range; ("", []) if there is none."""
    for name, limit in _applied(schema, limits):
        column_type = schema.field(name).type
        if pa.types.is_integer(column_type):
            bound = 2 ** (column_type.bit_width - 1)
            low = -bound if limit.low is None else limit.low
            high = bound - 1 if limit.high is None else limit.high
            return name, [ValueRange(low, high)]
    return "", []


def rows_within(batch: pa.RecordBatch, limits: Sequence[Limit]) -> npt.NDArray[np.bool_]:
    """Return a mask of the rows within the limits. NULL counts as within."""
    within = np.ones(batch.num_rows, np.bool_)
    for name, limit in _applied(batch.schema, limits):
        column = _comparable(batch.column(name))
        for value, compare in ((limit.low, pc.greater_equal), (limit.high, pc.less_equal)):
            if value is not None:
                inside = compare(column, pa.scalar(_scalar(value, column.type), column.type))
                within &= inside.fill_null(True).to_numpy(zero_copy_only=False).astype(np.bool_)
    return within


def _applied(schema: pa.Schema, limits: Sequence[Limit]) -> Iterator[tuple[str, Limit]]:
    """Yield each limit on a column of the schema whose values can be compared with it,
    and the column's name."""
    exact_names = {name.lower(): name for name in schema.names}
    for limit in limits:
        name = exact_names.get(limit.column.lower())
        if name is not None and all(
            _can_compare(schema.field(name).type, value)
            for value in (limit.low, limit.high)
            if value is not None
        ):
            yield name, limit


def _can_compare(column_type: pa.DataType, value: Literal) -> bool:
    if isinstance(value, datetime):
        return bool(column_type == _DAY or pa.types.is_timestamp(column_type))
    if column_type == _UNSIGNED_BIGINT:
        return abs(value) < 10**20
    # An int16 column may be a SMALLINT or a YEAR, for which MySQL reads 70 as 1970.
    return bool(
        pa.types.is_integer(column_type) and abs(value) < 2 ** (column_type.bit_width - 1)
    ) and (column_type != pa.int16() or not 0 <= value < 100)


def _comparable(column: pa.Array) -> pa.Array:
    if column.type == _DAY:
        return column.cast(pa.timestamp("us"))
    if pa.types.is_integer(column.type):
        return column.cast(pa.int64())
    return column


def _scalar(value: Literal, column_type: pa.DataType) -> Any:
    if isinstance(value, datetime):
        return value.replace(tzinfo=UTC)
    return Decimal(value) if column_type == _UNSIGNED_BIGINT else value
