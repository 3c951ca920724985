"""Events of one table → images, by the structure of the moment, held against the table map.

With `binlog_row_metadata=MINIMAL`, MySQL's default, a table map tells types, widths, what
may be NULL, signs and character sets; with FULL names, the key and members besides; on
MariaDB by default nothing but types, widths and NULL.

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

from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import replace
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeline.binlog.rows.parts import by_map, in_portions
from pipeline.binlog.rows.rows import TableDecoder
from pipeline.binlog.rows.table_map import (
    OptionalField,
    Outline,
    TableMap,
    read_layouts,
    read_outlines,
    read_structure,
)
from pipeline.binlog.stream import ring as columns
from pipeline.binlog.stream.description import LogWriter
from pipeline.binlog.stream.ring import Block
from pipeline.binlog.transactions.buffer import TransactionBuffer
from pipeline.changes.mapping import cast_value
from pipeline.errors import SchemaUnknownAt, StructureUnknown, TableError, ValueLeftOut
from pipeline.position import Coordinates
from pipeline.row_images import CHANGE_TYPES, RowImages, in_order, packed, unpacked
from pipeline.runs.capturing.captured_tables import CapturedTable, CapturedTables
from pipeline.schema.fills import fill_of
from pipeline.schema.hidden_columns import (
    FIRST,
    FIRST_WITHOUT,
    LAST_PLACED,
    expressions,
    hidden_places,
    is_hidden,
    may_be_hidden,
)
from pipeline.schema.history import Knowledge, SchemaVersion
from pipeline.schema.model import TableSchema, WrittenDefault
from pipeline.schema.rows import key_columns, logged_structure
from pipeline.schema.tracker import SchemaTracker
from pipeline.schema.types import arrow_schema
from pipeline.segment import ChangeType
from pipeline.shape.shaper import Shaper
from pipeline.shape.shaping import Shaping, redacted_members
from pipeline.table import Column, TableName, TableStructure

_SHOWN = 5
"""So many disagreements are told."""


def version_for(mapped: TableMap, structures: SchemaTracker, at: Coordinates) -> SchemaVersion:
    """The version in force at `at`; what the log itself says where the history does not
    know and the log says all.

    `SchemaUnknownAt` where the table's structure is known only from a later place on: the
    start lies too far back. StructureUnknown where it is not known at all. TableError where it is
    known and cannot be shown as the settings say.
    """
    table = mapped.table
    version = structures.version(table)
    if version is not None and version.knowledge is Knowledge.KNOWN:
        return version
    _require_shown(structures, table)
    dropped = version is not None and version.knowledge is Knowledge.DROPPED
    if not dropped and OptionalField.NAMES in read_outlines(mapped)[0].said:
        told = structures.told_by_map(_told(mapped), at)
        _require_shown(structures, table)
        return told
    later = structures.known_from(table)
    if later is not None:
        raise SchemaUnknownAt(
            f"there are rows of {table} at {at}, but its structure there is not known: statements "
            f"up to {later} changed it, and the log has no column names "
            "(binlog_row_metadata=MINIMAL)",
            hint=f"start at {later} or later, or exclude {table}; nothing was recorded",
        )
    why = "it is not in the history" if version is None else version.reason or "it was dropped"
    raise StructureUnknown(
        f"its structure is not known: {why}",
        hint=f"`lockstep resume {table} --reason …` re-reads it from MySQL",
    )


def _require_shown(structures: SchemaTracker, table: TableName) -> None:
    why = structures.not_shown(table)
    if why is not None:
        raise why


def _told(mapped: TableMap) -> TableStructure:
    """The structure as the map tells it; TableError where a column may be one that MySQL hides."""
    structure = read_structure(mapped)
    suspects = [name for name in structure.names if may_be_hidden(name)]
    if suspects and may_log_hidden(mapped.writer):
        raise TableError(
            f"its structure is known from the log alone, which does not tell whether {suspects[0]} "
            "is a column of its own or one that MySQL hides behind a functional index",
            hint=f"`lockstep resume {mapped.table} --reason …` re-reads it from MySQL",
        )
    return structure


def checked(version: SchemaVersion, mapped: TableMap) -> tuple[int, ...]:
    """Hold the log's own account of a table against the version: return which columns of the
    map, from 0, are none of the version's, because MySQL hides them behind functional indexes.

    TableError where the two disagree, or where it is not known which columns are hidden.
    """
    if version.schema is None:
        raise ValueError(f"{version.table}: version {version.version} is {version.knowledge}")
    outlines, structure = read_outlines(mapped), logged_structure(version.schema)
    hidden = hidden_in(outlines, structure, version.schema, mapped)
    found = min((disagreements(without(one, hidden), structure) for one in outlines), key=len)
    expected = len(expressions(version.schema.keys)) if logs_hidden(mapped.writer) else 0
    if not found and len(hidden) < expected:
        count = len(structure.columns)
        found = (f"columns: {count}, {count} and {expected} that functional indexes hide",)
    if found:
        more = f"; and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
        raise TableError(
            "the log and the history disagree about it (log, history): "
            f"{'; '.join(found[:_SHOWN])}{more}",
            hint="either a statement is not in the log (sql_log_bin=0, another server), or "
            f"Lockstep read one differently from the server: `lockstep schema {mapped.table}` "
            f"shows the history, `lockstep resume {mapped.table} --reason …` re-reads the table "
            "from MySQL",
        )
    return hidden


_AS_LOGGED: Final = {
    "binary": "char",
    "varbinary": "varchar",
    "blob": "text",
}
"""What the log tells apart by character sets alone."""

_STRINGS: Final = frozenset({"char", "varchar", "text", "binary", "varbinary", "blob"})
_TEMPORAL: Final = frozenset({"time", "datetime", "timestamp"})
_MEMBERS: Final = frozenset({"enum", "set"})
_SIGNED: Final = frozenset(
    {"tinyint", "smallint", "mediumint", "int", "bigint", "float", "double", "decimal"}
)


def disagreements(outline: Outline, structure: TableStructure) -> tuple[str, ...]:
    """What the log says otherwise than the structure, each as "what: log, history"."""
    return tuple(_disagreements(outline, structure))


def agrees(logged: Column, known: Column, said: frozenset[OptionalField]) -> bool:
    """Return whether a column of the log may be that one, as far as the log says."""
    return all(one == other for _, one, other in _parts(logged, known, said))


def _disagreements(outline: Outline, structure: TableStructure) -> Iterator[str]:
    theirs, ours = outline.columns, structure.columns
    if len(theirs) != len(ours):
        yield f"columns: {len(theirs)}, {len(ours)} ({', '.join(c.name for c in ours)})"
        return
    for number, (logged, known) in enumerate(zip(theirs, ours, strict=True), start=1):
        for what, one, other in _parts(logged, known, outline.said):
            if one != other:
                yield f"column {number} ({known.name}) {what}: {one}, {other}"
    if OptionalField.NAMES in outline.said and outline.primary_key != structure.primary_key:
        keys = (", ".join(key) or "none" for key in (outline.primary_key, structure.primary_key))
        yield f"primary key: {', '.join(keys)}"


def _parts(
    logged: Column, known: Column, said: frozenset[OptionalField]
) -> Iterator[tuple[str, object, object]]:
    charsets = OptionalField.CHARSETS in said
    if OptionalField.NAMES in said:
        yield "name", logged.name, known.name
    yield "type", _type(logged, bare=not charsets), _type(known, bare=not charsets)
    yield "width", _width(logged), _width(known)
    yield "nullable", logged.nullable, known.nullable
    if OptionalField.SIGNS in said and known.type in _SIGNED:
        yield "unsigned", logged.unsigned, known.unsigned
    if charsets and known.type in _STRINGS:
        yield "character set", logged.charset, known.charset
    if OptionalField.MEMBER_CHARSETS in said and known.type in _MEMBERS:
        yield "character set", logged.charset, known.charset
    if OptionalField.MEMBERS in said and known.type in _MEMBERS:
        if known.members == redacted_members(known.members):
            yield "number of members", len(logged.members), len(known.members)
        else:
            yield "members", logged.members, known.members


def _type(column: Column, *, bare: bool) -> str:
    return _AS_LOGGED.get(column.type, column.type) if bare else column.type


def _width(column: Column) -> object:
    length = column.length
    if column.type in _TEMPORAL:
        # Columns that are older than MySQL 5.6 have a type code of their own, without a width.
        length = length or 0
    return length, column.precision, column.scale


def may_log_hidden(writer: LogWriter) -> bool:
    """Return whether the log may have hidden columns."""
    return writer.between(FIRST, FIRST_WITHOUT - 1)


def logs_hidden(writer: LogWriter) -> bool:
    """Return whether the log has hidden columns for certain, in places that are known."""
    return writer.version is not None and writer.between(FIRST, LAST_PLACED)


def hidden_in(
    outlines: Sequence[Outline], structure: TableStructure, schema: TableSchema, mapped: TableMap
) -> tuple[int, ...]:
    """Return which columns of a table map, from 0, are hidden; none where the number of its
    columns, or its writer, says that none is. TableError where it is not known which are.

    They are told by their names, or by the one way in which the others are the structure, or by
    the places in the history. A version of which nobody knows whether it logs them may have columns
    too many for another reason: there only names count.
    """
    logged = outlines[0]
    count = len(logged.columns) - len(structure.columns)
    if not may_log_hidden(mapped.writer) or not 0 < count == len(expressions(schema.keys)):
        return ()
    certain = logs_hidden(mapped.writer)
    ways = {way for one in outlines for way in ways_to_hide(one, structure, schema)}
    if len(ways) == 1 and (certain or OptionalField.NAMES in logged.said):
        return ways.pop()
    places = hidden_places(schema) if certain else None
    if ways and places is None:
        columns = "a column" if count == 1 else f"{count} columns"
        raise TableError(
            f"the log has {columns} more than the history, which MySQL may hide behind functional "
            "indexes, and does not tell which of all columns these are",
            hint="set binlog_row_metadata=FULL on the source, then `lockstep resume "
            f"{mapped.table} --reason …` re-reads the table from MySQL",
        )
    return places or ()


def without(outline: Outline, places: tuple[int, ...]) -> Outline:
    """Return the outline without the columns at these places."""
    columns = (column for at, column in enumerate(outline.columns) if at not in places)
    return replace(outline, columns=tuple(columns))


def ways_to_hide(
    outline: Outline, structure: TableStructure, schema: TableSchema
) -> list[tuple[int, ...]]:
    """Return the ways in which the map without its hidden columns is the structure, by the places
    of these columns, from 0; of more than two ways only two."""
    named = OptionalField.NAMES in outline.said
    logged, known = outline.columns, structure.columns
    most = len(logged) - len(known)
    # ways[hidden]: those for the columns from the one at hand on, if so many before it are hidden.
    ways: list[list[tuple[int, ...]]] = [[] for _ in range(most)] + [[()]]
    for at in range(len(logged) - 1, -1, -1):
        hides = not named or is_hidden(logged[at].name, schema.keys)
        before = ways
        ways = []
        for hidden in range(most + 1):
            found: list[tuple[int, ...]] = []
            if hides and hidden < most:
                found += ((at, *way) for way in before[hidden + 1])
            place = at - hidden
            if 0 <= place < len(known) and agrees(logged[at], known[place], outline.said):
                found += before[hidden]
            ways.append(found[:2])
    return ways[0]


class Decoding:
    """The decoders for one buffer's table maps, by map and version, and what is shown of the
    images. `updated`: whether updates of a table say which columns changed."""

    buffer: TransactionBuffer
    """Whose table maps are read."""

    def __init__(
        self,
        structures: SchemaTracker,
        shaping: Shaping,
        *,
        updated: Callable[[TableName], bool] = lambda table: False,
    ) -> None:
        self._structures, self._shaping = structures, shaping
        self._shapers: dict[tuple[int, int], Shaper | None] = {}
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
        shaper = self._shapers[number, version.version]
        later = frozenset[int]() if shaper is None else shaper.filled_later
        for images in decoder.decode(events):
            if mariadb:
                refuse_updates(images)
            shown = self._with_defaults(images, version.table, version.schema, later)
            if shaper is not None:
                shown = shaper.images(shown)
                # Defaults of hidden columns are known as they are shown alone.
                shown = self._with_defaults(shown, version.table, version.shown)
            if len(shown.event):
                yield shown

    def _with_defaults(
        self,
        images: RowImages,
        table: TableName,
        schema: TableSchema | None,
        later: Set[int] = frozenset(),
    ) -> RowImages:
        if images.present is None:
            return images
        told = self._structures.told_by_log(table)
        filled = with_defaults(images, None if told else schema, later=later)
        if filled is not images:
            self.filled.add(table)
        return filled

    def decoder(self, number: int, at: Coordinates) -> tuple[SchemaVersion, TableDecoder]:
        """Of a table map, by the version that holds at `at`."""
        mapped = self.buffer.maps.known[number]
        version = version_for(mapped, self._structures, at)
        key = number, version.version
        if key not in self._decoders:
            hidden, structure = checked(version, mapped), version.structure
            self._shapers[key] = self._shaping.shaper(version)
            told_by = () if version.schema is None else key_columns(version.schema)
            self._decoders[key] = TableDecoder(
                structure,
                read_layouts(mapped),
                arrow_schema(structure),
                told_by,
                hidden=hidden,
                updated=self._updated(version.table),
            )
        return version, self._decoders[key]


_INSERT = CHANGE_TYPES.index(ChangeType.INSERT)
_UPDATE = CHANGE_TYPES.index(ChangeType.UPDATE_POSTIMAGE)


def with_defaults(
    images: RowImages, schema: TableSchema | None, *, later: Set[int] = frozenset()
) -> RowImages:
    """The images with every inserted row whole, but for the columns `later`, by index. `schema`:
    the table's, None where nobody knows its defaults. `ValueLeftOut` where a value that is left out
    is known to the source only, and asked for when the table is read; TableError where it differs
    in each row."""
    if images.present is None:
        return images
    inserted = images.change_type.to_numpy() == _INSERT
    there = unpacked(images.present)[:, : images.columns.num_columns]
    lacks = inserted[:, None] & ~there
    lacks[:, sorted(later)] = False
    if not lacks.any():
        return images
    arrays = list(images.columns.columns)
    for index in np.flatnonzero(lacks.any(axis=0)):
        value = _default(images.columns.schema.field(int(index)), schema, int(index))
        if value.is_valid:
            arrays[index] = pc.if_else(pa.array(lacks[:, index]), value, arrays[index])
    columns = pa.RecordBatch.from_arrays(arrays, schema=images.columns.schema)
    there = there | lacks
    whole = there.all(axis=1)
    present = None if whole.all() else packed(there, whole)
    return replace(images, columns=columns, present=present)


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
            "resume it",
        )


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
        hint="set binlog_row_image=FULL for every session that writes this table, then resume it",
    )
