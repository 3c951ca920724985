"""Decodes the row events of one table into row images (the rows before or after a
change).

The log does not name the columns by default, so events are decoded by the structure
that the table had at their place in the log. The structure comes from the history,
which records all versions of each structure, and is first compared with the table map
(the event that describes the columns before the rows).

With `binlog_row_image=MINIMAL` the image of an inserted row has only the columns that
got a value from the statement, a trigger, an expression, the clock or AUTO_INCREMENT.
Every other column has the default that the table had at that moment: a literal, NULL,
or, for NOT NULL outside of strict mode, the default of the type.

With the same setting, a column that an update leaves out was not changed on MySQL. On
MariaDB this is not certain: it logs REPLACE as an update without the columns that were
set back to their defaults, and ON DUPLICATE KEY UPDATE without the columns that a
trigger set. Such updates look like all others. MariaDB then does not log virtual
columns either. (Tried on MySQL 9.7.4, MariaDB 10.11.19 and 11.4.)
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Set
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lockstep.pipeline.binlog.rows.maps import split_by_map, split_portions
from lockstep.pipeline.binlog.rows.rows import TableDecoder
from lockstep.pipeline.binlog.rows.table_map import (
    OptionalField,
    TableMap,
    read_layouts,
    read_outlines,
    read_structure,
)
from lockstep.pipeline.binlog.stream import ring as columns
from lockstep.pipeline.binlog.stream.ring import Block
from lockstep.pipeline.binlog.transactions.buffer import TransactionBuffer
from lockstep.pipeline.mirror.mapping import cast_value
from lockstep.pipeline.run.dump.table_map_check import checked_hidden_columns, may_log_hidden
from lockstep.pipeline.run.stop_errors import logged_otherwise_errors, resume_reads_hint
from lockstep.pipeline.schema.consequences import PoliciesOf
from lockstep.pipeline.schema.fills import fill_of
from lockstep.pipeline.schema.hidden_columns import may_be_hidden
from lockstep.pipeline.schema.history import Knowledge, SchemaVersion
from lockstep.pipeline.schema.model import TableSchema, WrittenDefault
from lockstep.pipeline.schema.rows import key_columns
from lockstep.pipeline.schema.tracker import SchemaTracker
from lockstep.pipeline.schema.types import arrow_schema
from lockstep.pipeline.shape.shaper import Shaper
from lockstep.pipeline.shape.shaping import Shaping
from lockstep.pipeline.values.errors import (
    Need,
    SchemaUnknownAt,
    StructureUnknown,
    TableError,
    ValueLeftOut,
)
from lockstep.pipeline.values.policies import LakePolicies
from lockstep.pipeline.values.position import Coordinates
from lockstep.pipeline.values.row_images import (
    CHANGE_TYPES,
    RowImages,
    merge_images,
    pack_bits,
    unpack_bits,
)
from lockstep.pipeline.values.segment import ChangeType
from lockstep.pipeline.values.shown import name_list
from lockstep.pipeline.values.table import TableName, TableStructure


def _known_version(
    table_map: TableMap, structures: SchemaTracker, at: Coordinates, shaping: Shaping
) -> SchemaVersion:
    """Return the version of the table's structure at `at`. If the history does not have
    the structure, and the table map has column names, record a version from the map.

    Raise `SchemaUnknownAt` if the structure is known only from a later place on,
    because the run starts too early. Raise `StructureUnknown` if it is not known at
    all. Raise `TableError` if the structure cannot be shown in the lake as the settings
    say, or if the rows may be those of a table whose name is spelled otherwise.
    """
    table = table_map.table
    if structures.logs_lower_case:
        _require_same_database_name(structures, table)
    version = structures.version(table)
    if version is not None and version.knowledge is Knowledge.KNOWN:
        return version
    _require_shape(structures, table)
    if structures.logs_lower_case:
        _require_same_name(structures, table)
    is_dropped = version is not None and version.knowledge is Knowledge.DROPPED
    if not is_dropped and OptionalField.NAMES in read_outlines(table_map)[0].optional_fields:
        if structures.logs_lower_case:
            # Settings that hide columns may name the table as the server spells it.
            raise TableError(
                "its structure is known from the log alone, and these may be rows of a table whose "
                "name has capital letters, since lower_case_table_names is 2",
                hint=f"{resume_reads_hint(table)}; or exclude it",
                need=Need.ROWS,
            )
        structure = _structure_from_map(
            table_map, shaping, None if version is None else version.reason
        )
        version = structures.record_table_map(structure, at)
        _require_shape(structures, table)
        return version
    known_from = structures.next_known_position(table)
    if known_from is not None:
        raise SchemaUnknownAt(
            f"the log has rows of {table} at {at}, but the table's structure at this place is not "
            f"known: statements up to {known_from} changed it, and the log has no column names "
            "(binlog_row_metadata=MINIMAL)",
            hint=f"`lockstep start-at {known_from} --reason …` leaves out the log before it; "
            f"or exclude {table}; nothing was recorded",
        )
    reason = "it is not in the history" if version is None else version.reason or "it was dropped"
    raise StructureUnknown(
        f"its structure is not known: {reason}",
        hint=resume_reads_hint(table),
    )


def _require_shape(structures: SchemaTracker, table: TableName) -> None:
    error = structures.shape_error(table)
    if error is not None:
        raise error


def _require_same_database_name(structures: SchemaTracker, table: TableName) -> None:
    """Raise `TableError` if the name of the table's database has capital letters. The
    structure may be known under this name nevertheless, because a CREATE TABLE spelled
    it so."""
    database = structures.server_schema().database(table.database)
    if database is not None and database.name != table.database:
        raise logged_otherwise_errors(TableName(database.name, table.name), table)[table]


def _require_same_name(structures: SchemaTracker, table: TableName) -> None:
    """Raise `TableError` if the rows that the log has under this name are those of a
    table whose name has capital letters."""
    schema = structures.server_schema().table(table)
    if schema is not None and schema.name != table:
        raise logged_otherwise_errors(schema.name, table)[table]


def _structure_from_map(
    table_map: TableMap, shaping: Shaping, unknown_reason: str | None
) -> TableStructure:
    """Return the structure that the map describes. Raise `TableError` if one of its
    columns may be a hidden column of a functional index, or if the settings hide a
    column from which the server may compute another one. `unknown_reason`: why the
    history does not have the structure; None if no reason is recorded."""
    structure = read_structure(table_map)
    suspects = [name for name in structure.names if may_be_hidden(name)]
    if suspects and may_log_hidden(table_map.writer):
        raise TableError(
            f"its structure is known from the log alone, which does not say whether {suspects[0]} "
            "is a column of the table or a hidden column of a functional index",
            hint=resume_reads_hint(table_map.table),
        )
    hidden = [name for name in structure.names if shaping.hides_column(structure.name, name)]
    if hidden and len(hidden) < len(structure.names):
        reason = unknown_reason or (
            "its structure is known from the log alone, which does not say whether a column is "
            f"computed from {name_list(hidden)}, which the settings hide"
        )
        raise StructureUnknown(reason, hint=resume_reads_hint(structure.name))
    return structure


class ImageDecoder:
    """Decodes the events of one buffer, with a decoder for each table map and version
    of a structure. A shaper then hides or changes columns as the settings say.
    `policies_of`: returns a table's policies, which say whether its changelog records
    the columns that each update changed. `unshaped_tables`: tables whose images are
    yielded as the log has them."""

    buffer: TransactionBuffer

    def __init__(
        self,
        structures: SchemaTracker,
        shaping: Shaping,
        *,
        policies_of: PoliciesOf = lambda table: LakePolicies(),
        unshaped_tables: Collection[TableName] = (),
    ) -> None:
        self._structures, self._shaping = structures, shaping
        self._shapers: dict[tuple[int, int], Shaper | None] = {}
        self._policies_of, self._unshaped_tables = policies_of, unshaped_tables
        self._decoders: dict[tuple[int, int], TableDecoder] = {}
        self.tables_with_defaults: set[TableName] = set()
        """Tables with inserted rows that lacked a column in the log, and got the
        DEFAULT that the history has for it."""

    def use_buffer(self, buffer: TransactionBuffer) -> None:
        self.buffer = buffer

    def images(self, block: Block, at: Coordinates) -> Iterator[RowImages]:
        """Yield the images of one table's events in the order of the log. `at`: the
        place of the first event. Raise `TableError` if they cannot be decoded."""
        map_index = int(block.events[0, columns.MAP])
        if (block.events[:, columns.MAP] == map_index).all():
            return self._images_of_map(map_index, block, at)
        return self._images_of_maps(block, at)

    def _images_of_maps(self, block: Block, at: Coordinates) -> Iterator[RowImages]:
        """Yield the images of events with several table maps, in the order of the log."""
        for first, portion in split_portions(block):
            yield merge_images(
                [
                    (images, first + indexes)
                    for map_index, indexes, events in split_by_map(portion)
                    for images in self._images_of_map(map_index, events, at)
                ]
            )

    def _images_of_map(self, map_index: int, events: Block, at: Coordinates) -> Iterator[RowImages]:
        version, decoder = self.decoder_of_map(map_index, at)
        if version.table in self._unshaped_tables:
            yield from decoder.decode(events)
            return
        is_mariadb = self.buffer.maps.table_maps[map_index].writer.is_mariadb
        shaper = self._shapers[map_index, version.version]
        filled_later = frozenset[int]() if shaper is None else shaper.indexes_filled_later
        for images in decoder.decode(events):
            if is_mariadb:
                _refuse_partial_updates(images)
            shown_images = self._with_default_values(
                images, version.table, version.schema, filled_later
            )
            if shaper is not None:
                shown_images = shaper.shape_images(shown_images)
                # The history has the default of a hashed or masked column as the shaper
                # would return it. So this default is filled in after the shaper.
                shown_images = self._with_default_values(
                    shown_images, version.table, version.shown_schema
                )
            if len(shown_images.event):
                yield shown_images

    def _with_default_values(
        self,
        images: RowImages,
        table: TableName,
        schema: TableSchema | None,
        filled_later: Set[int] = frozenset(),
    ) -> RowImages:
        if self._structures.is_from_table_map(table):
            schema = None
        filled_images = with_default_values(images, schema, filled_later=filled_later)
        if filled_images is not images:
            self.tables_with_defaults.add(table)
        return filled_images

    def decoder_of_map(self, map_index: int, at: Coordinates) -> tuple[SchemaVersion, TableDecoder]:
        """Return the version of the structure at `at`, and the decoder for it.
        `map_index`: the index of the table map in the buffer."""
        table_map = self.buffer.maps.table_maps[map_index]
        version = _known_version(table_map, self._structures, at, self._shaping)
        key = map_index, version.version
        if key not in self._decoders:
            hidden = checked_hidden_columns(version, table_map)
            is_shaped = version.table not in self._unshaped_tables
            self._shapers[key] = self._shaping.shaper(version) if is_shaped else None
            keys = () if version.schema is None else key_columns(version.schema)
            self._decoders[key] = TableDecoder(
                version.structure,
                read_layouts(table_map),
                arrow_schema(version.structure),
                keys,
                hidden_indexes=hidden,
                reports_updates=self._policies_of(version.table).updated_columns,
            )
        return version, self._decoders[key]


_INSERT = CHANGE_TYPES.index(ChangeType.INSERT)
_UPDATE = CHANGE_TYPES.index(ChangeType.UPDATE_POSTIMAGE)


def with_default_values(
    images: RowImages, schema: TableSchema | None, *, filled_later: Set[int] = frozenset()
) -> RowImages:
    """Return the images with defaults in the columns that inserted rows leave out.
    `filled_later`: indexes of columns that are not filled here. `schema`: None if the
    table's defaults are not known.

    Raise `ValueLeftOut` if only the source knows a value, so that the table has to be
    read there. Raise `TableError` if the value may differ from row to row, or if a
    column of the primary key would get a zero or partial date."""
    if images.present is None:
        return images
    inserted = images.change_type.to_numpy() == _INSERT
    present = unpack_bits(images.present, images.columns.num_columns)
    is_missing = inserted[:, None] & ~present
    is_missing[:, sorted(filled_later)] = False
    if not is_missing.any():
        return images
    arrays = list(images.columns.columns)
    for index in np.flatnonzero(is_missing.any(axis=0)):
        value = _default_value(images.columns.schema.field(int(index)), schema, int(index))
        if value.is_valid:
            arrays[index] = pc.if_else(pa.array(is_missing[:, index]), value, arrays[index])
    filled_columns = pa.RecordBatch.from_arrays(arrays, schema=images.columns.schema)
    present = present | is_missing
    is_complete = present.all(axis=1)
    bits = None if is_complete.all() else pack_bits(present, is_complete)
    return replace(images, columns=filled_columns, present=bits)


def _refuse_partial_updates(images: RowImages) -> None:
    """Raise `TableError` if the image after an update leaves out a column. This is for
    MariaDB: it sometimes leaves out columns that did change."""
    if images.present is None:
        return
    is_update = images.change_type.to_numpy() == _UPDATE
    if (is_update & images.present.is_valid().to_numpy(zero_copy_only=False)).any():
        raise TableError(
            "an update leaves columns out (binlog_row_image is not FULL), and MariaDB also leaves "
            "out columns that REPLACE or a trigger changed",
            hint="set binlog_row_image=FULL for every session that writes this table",
        )


def _default_value(field: pa.Field, schema: TableSchema | None, index: int) -> pa.Scalar:
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
        # The next run reads the table from MySQL, and with it the missing value and the
        # default for later rows.
        raise ValueLeftOut(reason)
    raise TableError(
        reason,
        hint="set binlog_row_image=FULL for every session that writes this table",
    )
