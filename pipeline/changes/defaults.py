"""What an inserted row has in the columns that its image leaves out.

With `binlog_row_image=MINIMAL` the server logs of an inserted row only the columns that the
statement or a trigger gave a value, or that took one from an expression, the clock or
AUTO_INCREMENT. Every other column has the table's default of that moment: the literal one, NULL,
or the type's own for NOT NULL outside of strict mode. What an update leaves out it did not
change, on MySQL. MariaDB logs REPLACE as an update that leaves out the columns which went back
to their defaults, and ON DUPLICATE KEY UPDATE without what a trigger set: nothing tells such
updates from others. It logs no virtual column then. (Tried on MySQL 9.7.4, MariaDB 10.11.19
and 11.4.)

Belongs here: putting defaults in, and refusing what cannot be told. Does not: which value a
default is (`fills`), what an update leaves out (`coalescing`).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pipeline.changes.mapping import cast_value
from pipeline.errors import TableError, ValueLeftOut
from pipeline.row_images import CHANGE_TYPES, RowImages, packed, unpacked
from pipeline.schema.fills import fill_of
from pipeline.schema.model import TableSchema, WrittenDefault
from pipeline.segment import ChangeType

_INSERT = CHANGE_TYPES.index(ChangeType.INSERT)
_UPDATE = CHANGE_TYPES.index(ChangeType.UPDATE_POSTIMAGE)


def with_defaults(images: RowImages, schema: TableSchema | None) -> RowImages:
    """The images with every inserted row whole. `schema`: the table's, None where nobody knows
    its defaults. `ValueLeftOut` where a value that is left out is known to the source only, and
    asked for when the table is read; TableError where it differs in each row."""
    if images.present is None:
        return images
    inserted = images.change_type.to_numpy() == _INSERT
    there = unpacked(images.present)[:, : images.columns.num_columns]
    lacks = inserted[:, None] & ~there
    if not lacks.any():
        return images
    arrays = list(images.columns.columns)
    for index in np.flatnonzero(lacks.any(axis=0)):
        value = _default(images.columns.schema.field(int(index)), schema, int(index))
        if value.is_valid:
            arrays[index] = pc.if_else(pa.array(lacks[:, index]), value, arrays[index])
    columns = pa.RecordBatch.from_arrays(arrays, schema=images.columns.schema)
    return replace(images, columns=columns, present=_without(there, inserted))


def refuse_updates(images: RowImages) -> None:
    """TableError where an update leaves a column out that its before image has not either: for
    servers whose updates do not tell that it stays."""
    if images.present is None:
        return
    updated = images.change_type.to_numpy() == _UPDATE
    if (updated & images.present.is_valid().to_numpy(zero_copy_only=False)).any():
        raise TableError(
            "an update leaves columns out (binlog_row_image is not FULL), and MariaDB also leaves "
            "out columns that REPLACE or a trigger changed",
            hint="set binlog_row_image=FULL for every session that writes this table, then "
            "release it",
        )


def _without(
    there: npt.NDArray[np.bool_], inserted: npt.NDArray[np.bool_]
) -> pa.BinaryArray | None:
    whole = inserted | there.all(axis=1)
    return None if whole.all() else packed(there, whole)


def _default(field: pa.Field, schema: TableSchema | None, index: int) -> pa.Scalar:
    column = None if schema is None else schema.columns[index]
    value = None if column is None else fill_of(column, field.type, None)
    if schema is not None and value is not None:
        if not value.is_valid and field.name in schema.primary_key:
            raise TableError(
                f"column {field.name!r} of its key holds a zero or partial date",
                hint="correct those rows in the source, or exclude the table",
            )
        return cast_value(value, field.type)
    reason = (
        f"an inserted row's image leaves out column {field.name!r} (binlog_row_image is not FULL), "
        "and only the source knows what the row has there"
    )
    if column is None or isinstance(column.default, WrittenDefault):
        raise ValueLeftOut(reason)  # from the place of a reading on it is known
    raise TableError(
        reason,
        hint="set binlog_row_image=FULL for every session that writes this table, then release it",
    )
