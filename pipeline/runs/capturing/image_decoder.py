"""Events of one table → images, by the structure of the moment.

With `binlog_row_image=MINIMAL` the server logs of an inserted row only the columns that the
statement or a trigger gave a value, or that took one from an expression, the clock or
AUTO_INCREMENT. Every other column has the table's default of that moment: the literal one, NULL,
or the type's own for NOT NULL outside of strict mode. What an update leaves out it did not
change, on MySQL. MariaDB logs REPLACE as an update that leaves out the columns which went back
to their defaults, and ON DUPLICATE KEY UPDATE without what a trigger set: nothing tells such
updates from others. It logs no virtual column then. (Tried on MySQL 9.7.4, MariaDB 10.11.19
and 11.4.)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pipeline.binlog.rows.parts import by_map, in_portions
from pipeline.binlog.rows.rows import TableDecoder
from pipeline.binlog.rows.table_map import read_layouts
from pipeline.binlog.stream import ring as columns
from pipeline.binlog.stream.ring import Block
from pipeline.binlog.transactions.buffer import TransactionBuffer
from pipeline.changes.mapping import cast_value
from pipeline.errors import TableError, ValueLeftOut
from pipeline.position import Coordinates
from pipeline.row_images import CHANGE_TYPES, RowImages, in_order, packed, unpacked
from pipeline.runs.capturing.captured_tables import CapturedTable, CapturedTables
from pipeline.runs.capturing.schema_choice import checked, version_for
from pipeline.schema.fills import fill_of
from pipeline.schema.history import SchemaVersion
from pipeline.schema.model import TableSchema, WrittenDefault
from pipeline.schema.row_keys import key_columns
from pipeline.schema.tracker import SchemaTracker
from pipeline.schema.types import arrow_schema
from pipeline.segment import ChangeType
from pipeline.table import TableName


class Decoding:
    """The decoders for one buffer's table maps, by map and version. `updated`: updates say
    which columns changed."""

    buffer: TransactionBuffer
    """Whose table maps are read."""

    def __init__(self, structures: SchemaTracker, *, updated: bool = False) -> None:
        self._structures = structures
        self._updated = updated
        self._decoders: dict[tuple[int, int], TableDecoder] = {}
        self.filled: set[TableName] = set()
        """Tables whose inserted rows were given defaults that the history has."""

    def follow(self, buffer: TransactionBuffer) -> None:
        self.buffer = buffer

    def decoded(
        self, part: Block, at: Coordinates, tables: CapturedTables
    ) -> tuple[CapturedTable, list[RowImages]]:
        """The images of one table's events, in their order, and the table they belong to.
        TableError where they cannot be decoded, or not captured."""
        version, _ = self.decoder(int(part.events[0, columns.MAP]), at)
        return tables.opened(version, at), list(self.images(part, at))

    def images(self, part: Block, at: Coordinates) -> Iterator[RowImages]:
        """The images of one table's events, in their order; TableError where they cannot be
        decoded."""
        number = int(part.events[0, columns.MAP])
        if (part.events[:, columns.MAP] == number).all():
            return self._of_map(number, part, at)
        return self._of_maps(part, at)

    def _of_maps(self, part: Block, at: Coordinates) -> Iterator[RowImages]:
        """Events of several maps: decoded map by map, put into their order again."""
        for first, portion in in_portions(part):
            yield in_order(
                [
                    (images, first + which)
                    for number, which, events in by_map(portion)
                    for images in self._of_map(number, events, at)
                ]
            )

    def _of_map(self, number: int, events: Block, at: Coordinates) -> Iterator[RowImages]:
        version, decoder = self.decoder(number, at)
        mariadb = self.buffer.maps.known[number].writer.mariadb
        for images in decoder.decode(events):
            yield self._with_defaults(images, version, mariadb=mariadb)

    def _with_defaults(
        self, images: RowImages, version: SchemaVersion, *, mariadb: bool
    ) -> RowImages:
        if images.present is None:
            return images
        if mariadb:
            refuse_updates(images)
        told = self._structures.told_by_log(version.table)
        filled = with_defaults(images, None if told else version.schema)
        if filled is not images:
            self.filled.add(version.table)
        return filled

    def decoder(self, number: int, at: Coordinates) -> tuple[SchemaVersion, TableDecoder]:
        """Of a table map, by the version that holds at `at`."""
        mapped = self.buffer.maps.known[number]
        version = version_for(mapped, self._structures, at)
        key = number, version.version
        if key not in self._decoders:
            hidden, structure = checked(version, mapped), version.structure
            told_by = () if version.schema is None else key_columns(version.schema)
            self._decoders[key] = TableDecoder(
                structure,
                read_layouts(mapped),
                arrow_schema(structure),
                told_by,
                hidden=hidden,
                updated=self._updated,
            )
        return version, self._decoders[key]


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
