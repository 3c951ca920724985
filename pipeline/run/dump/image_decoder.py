"""Decodes the row events of one table into row images (the rows before or after a
change).

The log does not name the columns by default, so events are decoded by the structure
that the table had at their place in the log. The structure comes from the history,
which records all versions of each structure, and is first compared with the table map
(the event that describes the columns before the rows).

With `binlog_row_metadata=MINIMAL`, MySQL's default, a table map has the columns' types,
widths, nullability, signs and character sets; with FULL also their names, members and
the primary key. MariaDB's default has only types, widths and nullability.

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

from collections.abc import Iterator, Sequence, Set
from dataclasses import replace
from typing import Final, assert_never

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lockstep.pipeline.binlog.rows.maps import split_by_map, split_portions
from lockstep.pipeline.binlog.rows.rows import TableDecoder
from lockstep.pipeline.binlog.rows.table_map import (
    OptionalField,
    Outline,
    TableMap,
    read_layouts,
    read_outlines,
    read_structure,
)
from lockstep.pipeline.binlog.stream import ring as columns
from lockstep.pipeline.binlog.stream.control import LogWriter
from lockstep.pipeline.binlog.stream.ring import Block
from lockstep.pipeline.binlog.transactions.buffer import TransactionBuffer
from lockstep.pipeline.mirror.mapping import cast_value
from lockstep.pipeline.schema.consequences import PoliciesOf
from lockstep.pipeline.schema.fills import fill_of
from lockstep.pipeline.schema.history import Knowledge, SchemaVersion
from lockstep.pipeline.schema.model import TableSchema, WrittenDefault
from lockstep.pipeline.schema.rows import (
    FIRST_WITH_HIDDEN,
    FIRST_WITHOUT_HIDDEN,
    LAST_WITH_PLACES,
    expression_parts,
    hidden_places,
    is_hidden,
    key_columns,
    logged_structure,
    may_be_hidden,
)
from lockstep.pipeline.schema.tracker import SchemaTracker
from lockstep.pipeline.schema.types import FAMILIES, Family, arrow_schema
from lockstep.pipeline.shape.shaper import Shaper
from lockstep.pipeline.shape.shaping import Shaping, placeholder_members
from lockstep.pipeline.values.errors import (
    SchemaUnknownAt,
    StructureUnknown,
    TableError,
    ValueLeftOut,
)
from lockstep.pipeline.values.position import Coordinates
from lockstep.pipeline.values.row_images import (
    CHANGE_TYPES,
    RowImages,
    merge_images,
    pack_bits,
    unpack_bits,
)
from lockstep.pipeline.values.segment import ChangeType
from lockstep.pipeline.values.table import Column, TableName, TableStructure

_MOST_NAMED = 5
"""Largest number of differences between log and history that a message names."""


def known_version(table_map: TableMap, structures: SchemaTracker, at: Coordinates) -> SchemaVersion:
    """Return the version of the table's structure at `at`. If the history does not have
    the structure, and the table map has column names, record a version from the map.

    Raise `SchemaUnknownAt` if the structure is known only from a later place on,
    because the run starts too early. Raise `StructureUnknown` if it is not known at
    all. Raise `TableError` if the structure cannot be shown in the lake as the settings
    say.
    """
    table = table_map.table
    version = structures.version(table)
    if version is not None and version.knowledge is Knowledge.KNOWN:
        return version
    _require_shape(structures, table)
    is_dropped = version is not None and version.knowledge is Knowledge.DROPPED
    if not is_dropped and OptionalField.NAMES in read_outlines(table_map)[0].optional_fields:
        version = structures.record_table_map(_structure_from_map(table_map), at)
        _require_shape(structures, table)
        return version
    known_from = structures.next_known_position(table)
    if known_from is not None:
        raise SchemaUnknownAt(
            f"the log has rows of {table} at {at}, but the table's structure at this place is not "
            f"known: statements up to {known_from} changed it, and the log has no column names "
            "(binlog_row_metadata=MINIMAL)",
            hint=f"start at {known_from} or later, or exclude {table}; nothing was recorded",
        )
    reason = "it is not in the history" if version is None else version.reason or "it was dropped"
    raise StructureUnknown(
        f"its structure is not known: {reason}",
        hint=f"`lockstep resume {table} --reason …` re-reads it from MySQL",
    )


def _require_shape(structures: SchemaTracker, table: TableName) -> None:
    error = structures.shape_error(table)
    if error is not None:
        raise error


def _structure_from_map(table_map: TableMap) -> TableStructure:
    """Return the structure that the map describes. Raise `TableError` if one of its
    columns may be a hidden column of a functional index."""
    structure = read_structure(table_map)
    suspects = [name for name in structure.names if may_be_hidden(name)]
    if suspects and may_log_hidden(table_map.writer):
        raise TableError(
            f"its structure is known from the log alone, which does not say whether {suspects[0]} "
            "is a column of the table or a hidden column of a functional index",
            hint=f"`lockstep resume {table_map.table} --reason …` re-reads it from MySQL",
        )
    return structure


def checked_hidden_columns(version: SchemaVersion, table_map: TableMap) -> tuple[int, ...]:
    """Compare a table map with the version, and return the indexes, from 0, of the
    map's hidden columns. MySQL 8.0 also logs the hidden column that it makes for each
    expression of a functional index.

    Raise `TableError` if map and version disagree, or if the hidden columns cannot be
    determined.
    """
    if version.schema is None:
        raise ValueError(f"{version.table}: version {version.version} is {version.knowledge}")
    outlines, structure = read_outlines(table_map), logged_structure(version.schema)
    hidden = hidden_column_indexes(outlines, structure, version.schema, table_map)
    # There are two outlines if it is unknown whether the server wrote a sign for YEAR
    # columns; the one with fewer differences counts.
    differences = min(
        (map_differences(without_columns(o, hidden), structure) for o in outlines), key=len
    )
    expected = len(expression_parts(version.schema.keys)) if logs_hidden(table_map.writer) else 0
    if not differences and len(hidden) < expected:
        count = len(structure.columns)
        differences = (f"columns: {count}, {count} and {expected} hidden",)
    if differences:
        more = (
            f"; and {len(differences) - _MOST_NAMED} more" if len(differences) > _MOST_NAMED else ""
        )
        raise TableError(
            "the log and the history disagree about its structure (log, history): "
            f"{'; '.join(differences[:_MOST_NAMED])}{more}",
            hint="either a statement is not in the log (sql_log_bin=0, another server), or "
            f"Lockstep read one differently from the server: `lockstep schema {table_map.table}` "
            f"shows the history, `lockstep resume {table_map.table} --reason …` re-reads the table "
            "from MySQL",
        )
    return hidden


_TYPE_IN_TABLE_MAP: Final = {
    "binary": "char",
    "varbinary": "varchar",
    "blob": "text",
}
"""Types of binary columns, each with the type that a table map shows for it. Only the
character set tells the two apart, so they are treated as equal if the map has none."""

_TYPES_WITH_FRACTION: Final = frozenset({"time", "datetime", "timestamp"})


def map_differences(outline: Outline, structure: TableStructure) -> tuple[str, ...]:
    """Return the differences between the table map and the structure, each as text:
    "what: log, history"."""
    return tuple(_map_differences(outline, structure))


def is_same_column(
    logged: Column, recorded: Column, optional_fields: frozenset[OptionalField]
) -> bool:
    """Return whether a column of the table map equals the recorded column in all
    attributes that the map has. `optional_fields`: the optional fields of the map."""
    return all(
        in_log == in_history
        for _, in_log, in_history in _comparable_attributes(logged, recorded, optional_fields)
    )


def _map_differences(outline: Outline, structure: TableStructure) -> Iterator[str]:
    map_columns, recorded_columns = outline.columns, structure.columns
    if len(map_columns) != len(recorded_columns):
        names = ", ".join(column.name for column in recorded_columns)
        yield f"columns: {len(map_columns)}, {len(recorded_columns)} ({names})"
        return
    for number, (logged, recorded) in enumerate(
        zip(map_columns, recorded_columns, strict=True), start=1
    ):
        for attribute, in_log, in_history in _comparable_attributes(
            logged, recorded, outline.optional_fields
        ):
            if in_log != in_history:
                yield f"column {number} ({recorded.name}) {attribute}: {in_log}, {in_history}"
    if (
        OptionalField.NAMES in outline.optional_fields
        and outline.primary_key != structure.primary_key
    ):
        keys = (", ".join(key) or "none" for key in (outline.primary_key, structure.primary_key))
        yield f"primary key: {', '.join(keys)}"


def _comparable_attributes(
    logged: Column, recorded: Column, optional_fields: frozenset[OptionalField]
) -> Iterator[tuple[str, object, object]]:
    """Yield each attribute of a column that the table map has: its name, its value in
    the map, and its value in the history."""
    has_charsets = OptionalField.CHARSETS in optional_fields
    described = _fields_of(FAMILIES.get(recorded.type)) & optional_fields
    if OptionalField.NAMES in optional_fields:
        yield "name", logged.name, recorded.name
    yield (
        "type",
        _type_name(logged, bare=not has_charsets),
        _type_name(recorded, bare=not has_charsets),
    )
    yield "width", _length_and_precision(logged), _length_and_precision(recorded)
    yield "nullable", logged.nullable, recorded.nullable
    if OptionalField.SIGNS in described:
        yield "unsigned", logged.unsigned, recorded.unsigned
    if described & {OptionalField.CHARSETS, OptionalField.MEMBER_CHARSETS}:
        yield "character set", logged.charset, recorded.charset
    if OptionalField.MEMBERS in described:
        if recorded.members == placeholder_members(recorded.members):
            yield "number of members", len(logged.members), len(recorded.members)
        else:
            yield "members", logged.members, recorded.members


def _fields_of(family: Family | None) -> frozenset[OptionalField]:
    """Return the parts of the optional metadata that describe columns of a family."""
    match family:
        case Family.INTEGER | Family.FLOATING | Family.DECIMAL:
            return frozenset({OptionalField.SIGNS})
        case Family.TEXT | Family.BYTES:
            return frozenset({OptionalField.CHARSETS})
        case Family.ENUM | Family.SET:
            return frozenset({OptionalField.MEMBER_CHARSETS, OptionalField.MEMBERS})
        case Family.BIT | Family.YEAR | Family.DATE | Family.TIME | Family.DATETIME:
            return frozenset()
        case Family.TIMESTAMP | Family.JSON | Family.GEOMETRY | Family.VECTOR | None:
            return frozenset()
        case _:
            assert_never(family)


def _type_name(column: Column, *, bare: bool) -> str:
    return _TYPE_IN_TABLE_MAP.get(column.type, column.type) if bare else column.type


def _length_and_precision(column: Column) -> object:
    length = column.length
    if column.type in _TYPES_WITH_FRACTION:
        # Columns created before MySQL 5.6 have other type codes, without a width.
        length = length or 0
    return length, column.precision, column.scale


def may_log_hidden(writer: LogWriter) -> bool:
    """Return whether a server of this version may log hidden columns. True if the
    version is not known exactly."""
    return writer.is_mysql_between(FIRST_WITH_HIDDEN, FIRST_WITHOUT_HIDDEN - 1)


def logs_hidden(writer: LogWriter) -> bool:
    """Return whether a server of this version certainly logs hidden columns, at places
    that can be computed from the table's structure."""
    return writer.version is not None and writer.is_mysql_between(
        FIRST_WITH_HIDDEN, LAST_WITH_PLACES
    )


def hidden_column_indexes(
    outlines: Sequence[Outline], structure: TableStructure, schema: TableSchema, table_map: TableMap
) -> tuple[int, ...]:
    """Return the indexes, from 0, of a table map's hidden columns. The result is empty
    if the number of columns, or the version of the server that wrote the log, rules
    them out. Raise `TableError` if the hidden columns cannot be determined.

    The names tell which columns are hidden. Without names, there may be only one choice
    of hidden columns with which all others match the structure. If there are several,
    the places that the history has decide. If it is not certain that the server's
    version logs hidden columns, the map may have more columns for another reason, so
    only the names count.
    """
    logged = outlines[0]
    hidden_count = len(logged.columns) - len(structure.columns)
    if not may_log_hidden(table_map.writer) or not 0 < hidden_count == len(
        expression_parts(schema.keys)
    ):
        return ()
    is_certain = logs_hidden(table_map.writer)
    choices = {
        choice for outline in outlines for choice in hiding_choices(outline, structure, schema)
    }
    if len(choices) == 1 and (is_certain or OptionalField.NAMES in logged.optional_fields):
        return choices.pop()
    recorded_indexes = hidden_places(schema) if is_certain else None
    if choices and recorded_indexes is None:
        columns = "1 column" if hidden_count == 1 else f"{hidden_count} columns"
        raise TableError(
            f"the log has {columns} more than the history, probably because it includes the hidden "
            "columns of functional indexes, but it does not say which columns are hidden",
            hint="set binlog_row_metadata=FULL on the source, then `lockstep resume "
            f"{table_map.table} --reason …` re-reads the table from MySQL",
        )
    return recorded_indexes or ()


def without_columns(outline: Outline, places: tuple[int, ...]) -> Outline:
    """Return the outline without the columns at these places."""
    columns = (column for at, column in enumerate(outline.columns) if at not in places)
    return replace(outline, columns=tuple(columns))


def hiding_choices(
    outline: Outline, structure: TableStructure, schema: TableSchema
) -> list[tuple[int, ...]]:
    """Return the ways to choose hidden columns, by index from 0, so that the map's
    other columns match the structure's. At most two are returned, because two already
    make the result ambiguous."""
    has_names = OptionalField.NAMES in outline.optional_fields
    logged, recorded = outline.columns, structure.columns
    hidden_total = len(logged) - len(recorded)
    # From the last column to the first. choices_by_hidden[n]: the choices among the
    # columns from `at` on, if n columns before `at` are hidden.
    choices_by_hidden: list[list[tuple[int, ...]]] = [[] for _ in range(hidden_total)] + [[()]]
    for at in range(len(logged) - 1, -1, -1):
        may_hide = not has_names or is_hidden(logged[at].name, schema.keys)
        from_next, choices_by_hidden = choices_by_hidden, []
        for hidden in range(hidden_total + 1):
            choices: list[tuple[int, ...]] = []
            if may_hide and hidden < hidden_total:
                choices += ((at, *choice) for choice in from_next[hidden + 1])
            recorded_index = at - hidden
            if 0 <= recorded_index < len(recorded) and is_same_column(
                logged[at], recorded[recorded_index], outline.optional_fields
            ):
                choices += from_next[hidden]
            choices_by_hidden.append(choices[:2])
    return choices_by_hidden[0]


class ImageDecoder:
    """Decodes the events of one buffer, with a decoder for each table map and version
    of a structure. A shaper then hides or changes columns as the settings say.
    `policies_of`: returns a table's policies, which say whether its changelog records
    the columns that each update changed; None if no changelog records them."""

    buffer: TransactionBuffer

    def __init__(
        self,
        structures: SchemaTracker,
        shaping: Shaping,
        *,
        policies_of: PoliciesOf | None = None,
    ) -> None:
        self._structures, self._shaping = structures, shaping
        self._shapers: dict[tuple[int, int], Shaper | None] = {}
        self._policies_of = policies_of
        self._decoders: dict[tuple[int, int], TableDecoder] = {}
        self.tables_with_defaults: set[TableName] = set()
        """Tables with inserted rows whose missing columns got the DEFAULT of the
        history."""

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
        is_mariadb = self.buffer.maps.table_maps[map_index].writer.is_mariadb
        shaper = self._shapers[map_index, version.version]
        filled_later = frozenset[int]() if shaper is None else shaper.late_fill_indexes
        for images in decoder.decode(events):
            if is_mariadb:
                refuse_partial_updates(images)
            shown_images = self._with_default_values(
                images, version.table, version.schema, filled_later
            )
            if shaper is not None:
                shown_images = shaper.shape_images(shown_images)
                # If the settings hash or mask a column, the history has its default
                # hashed or masked, too, so that this default is filled in after the
                # shaper.
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
        if images.present is None:
            return images
        is_from_log = self._structures.is_from_table_map(table)
        filled_images = with_default_values(
            images, None if is_from_log else schema, later=filled_later
        )
        if filled_images is not images:
            self.tables_with_defaults.add(table)
        return filled_images

    def decoder_of_map(self, map_index: int, at: Coordinates) -> tuple[SchemaVersion, TableDecoder]:
        """Return the version of the structure at `at`, and the decoder for it.
        `map_index`: the number of the table map."""
        table_map = self.buffer.maps.table_maps[map_index]
        version = known_version(table_map, self._structures, at)
        key = map_index, version.version
        if key not in self._decoders:
            hidden, structure = checked_hidden_columns(version, table_map), version.structure
            self._shapers[key] = self._shaping.shaper(version)
            policies = None if self._policies_of is None else self._policies_of(version.table)
            keys = () if version.schema is None else key_columns(version.schema)
            self._decoders[key] = TableDecoder(
                structure,
                read_layouts(table_map),
                arrow_schema(structure),
                keys,
                hidden_indexes=hidden,
                reports_updates=policies is not None and policies.updated_columns,
            )
        return version, self._decoders[key]


_INSERT = CHANGE_TYPES.index(ChangeType.INSERT)
_UPDATE = CHANGE_TYPES.index(ChangeType.UPDATE_POSTIMAGE)


def with_default_values(
    images: RowImages, schema: TableSchema | None, *, later: Set[int] = frozenset()
) -> RowImages:
    """Return the images with defaults in the columns that inserted rows leave out.
    `later`: indexes of columns that are not filled here. `schema`: None if the table's
    defaults are not known.

    Raise `ValueLeftOut` if only the source knows a value, so that the table has to be
    read there. Raise `TableError` if the value may differ from row to row, or if a
    column of the primary key would get a zero or partial date."""
    if images.present is None:
        return images
    inserted = images.change_type.to_numpy() == _INSERT
    present = unpack_bits(images.present)[:, : images.columns.num_columns]
    is_missing = inserted[:, None] & ~present
    is_missing[:, sorted(later)] = False
    if not is_missing.any():
        return images
    arrays = list(images.columns.columns)
    for index in np.flatnonzero(is_missing.any(axis=0)):
        value = _default_value(images.columns.schema.field(int(index)), schema, int(index))
        if value.is_valid:
            arrays[index] = pc.if_else(pa.array(is_missing[:, index]), value, arrays[index])
    columns = pa.RecordBatch.from_arrays(arrays, schema=images.columns.schema)
    present = present | is_missing
    is_complete = present.all(axis=1)
    bits = None if is_complete.all() else pack_bits(present, is_complete)
    return replace(images, columns=columns, present=bits)


def refuse_partial_updates(images: RowImages) -> None:
    """Raise `TableError` if the image after an update leaves out a column. This is for
    MariaDB: it sometimes leaves out columns that did change."""
    if images.present is None:
        return
    is_update = images.change_type.to_numpy() == _UPDATE
    if (is_update & images.present.is_valid().to_numpy(zero_copy_only=False)).any():
        raise TableError(
            "an update leaves columns out (binlog_row_image is not FULL), and MariaDB also leaves "
            "out columns that REPLACE or a trigger changed",
            hint="set binlog_row_image=FULL for every session that writes this table, then "
            "resume it",
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
        # The table is then read from MySQL, which gives this value, and the default for
        # later rows.
        raise ValueLeftOut(reason)
    raise TableError(
        reason,
        hint="set binlog_row_image=FULL for every session that writes this table, then resume it",
    )
