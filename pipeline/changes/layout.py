"""Where tables live in the lake, and which columns a changelog has.

Names become path parts by one rule: `[A-Za-z0-9_-]` stay, every other byte of the UTF-8
name becomes `=XX`. Never `%`, which delta-rs decodes, nor `?`, a glob to Spark. A
database whose name begins with `_` has that byte escaped, so it cannot meet `_changes`; so has
a table whose name Delta looks for in paths. A part that would be longer than a file's name may be
is shortened: its beginning, a `.`, which no other part has, and a hash of the whole.
"""

from __future__ import annotations

import hashlib
import string
from collections.abc import Collection, Sequence

import pyarrow as pa

from pipeline.schema.column_names import escaped, folded
from pipeline.schema.model import TableSchema
from pipeline.schema.rows import row_structure
from pipeline.schema.types import arrow_schema
from pipeline.segment import SegmentFile
from pipeline.stamps import STAMPS
from pipeline.table import TableName, TableStructure
from pipeline.table_state import TableCondition, TableState

_KEPT = frozenset((string.ascii_letters + string.digits + "_-").encode())

_DELTAS = ("_change_data", "_delta_index", "_delta_log")
"""Folders of Delta's inside a table: what lies below one of that name is no table to it."""

_LONGEST = 255
"""NAME_MAX of Linux's file systems, in bytes. A key of an object store may have 1,024: two such
parts, a source's name, and Delta's files below them leave 300 for the lake's own prefix."""

_BEGINNING = 80
_HASH_DIGITS = 40
"""Of a shortened part: how much of it stays, and how much of its SHA-256 follows."""

MARKS = pa.schema(
    [
        pa.field("_change_type", pa.string()),
        STAMPS.field("_sequence"),
        pa.field("_file", pa.string()),
        pa.field("_offset", pa.int64()),
        pa.field("_row", pa.int32()),
        STAMPS.field("_gtid"),
        STAMPS.field("_committed_at"),
        pa.field("_executed_at", pa.timestamp("us", tz="UTC")),
        pa.field("_server_id", pa.int64()),
        pa.field("_batch", pa.int64()),
        pa.field("_schema_version", pa.int32()),
        pa.field("_derived", pa.bool_()),
    ]
)
"""A changelog's own columns, before the table's; the whole set from its first version."""

_MARKS = frozenset(map(folded, MARKS.names))


DELETED_AT = pa.field("_deleted_at", pa.timestamp("us", tz="UTC"))
"""A mirror's own column where deleted rows stay (`deletes = "soft"`): when, or NULL."""


def path_part(name: str, end: str = "", *, hidden: bool = True) -> str:
    """A name as one path part, before an `end` of the layout's own; different names give
    different parts. `hidden`: a part may begin with `_`."""
    part = "".join(chr(byte) if byte in _KEPT else f"={byte:02X}" for byte in name.encode())
    if part.startswith("_") and not hidden:
        part = f"=5F{part[1:]}"
    return _fitting(part, end)


def _fitting(part: str, end: str = "") -> str:
    """An escaped part and its end, shortened if no file can be called so."""
    if len(part) + len(end) <= _LONGEST:
        return part + end
    told = hashlib.sha256(part.encode()).hexdigest()[:_HASH_DIGITS]
    return f"{part[:_BEGINNING]}.{told}{end}"


def _database_part(name: str) -> str:
    return path_part(name, hidden=False)


def _table_part(name: str, end: str = "") -> str:
    return path_part(name, end, hidden=name not in _DELTAS)


def mirror_path(
    source: str, table: TableName, generation: int = 1, mirror_generation: int = 1
) -> str:
    """The mirror's folder, relative to the lake. With a generation it ends with `@` and its
    number: so it is called where the folder of the plain name went with another table. A
    mirror that was lost has successors: `@1-2`."""
    end = "" if generation == 1 else f"@{generation}"
    if mirror_generation > 1:
        end = f"@{generation}-{mirror_generation}"
    return f"{source}/{_database_part(table.database)}/{_table_part(table.name, end)}"


NO_PLACE = "@0"
"""The end of the folder of a table that has no place, because another table's mirror is called as
its own would be: nothing is ever there."""


def no_place(source: str, table: TableName) -> str:
    """The folder of such a table: its own name, which no other table has."""
    return f"{source}/{_database_part(table.database)}/{_table_part(table.name, NO_PLACE)}"


def free_place(
    source: str,
    name: TableName,
    generation: int,
    taken: Collection[str],
    number: int = 1,
    *,
    fold: bool = False,
) -> str:
    """The first folder of a mirror's name that is not taken, from that successor on. `fold`: nor is
    one that differs from it in case alone, as stores that do not tell them apart need."""
    others = {path.lower() for path in taken} if fold else taken
    while True:
        path = mirror_path(source, name, generation, number)
        if (path.lower() if fold else path) not in others:
            return path
        number += 1


def lies_at(mirror: str, source: str, name: TableName) -> bool:
    """Return whether a mirror's folder is one of that name, of whichever generation."""
    _, at, end = mirror.rpartition("/")[2].partition("@")
    part = _table_part(name.name, f"{at}{end}")
    return f"{at}{end}" != NO_PLACE and mirror == f"{source}/{_database_part(name.database)}/{part}"


def rebuilt_path(source: str, table: TableName, at: str) -> str:
    """The folder of the mirror as of a place of the past, relative to a lake of such tables."""
    return f"{source}/{_database_part(table.database)}/{_table_part(table.name, f'@{at}')}"


def changelog_path(source: str, table: TableName, generation: int = 1) -> str:
    """The changelog's folder, relative to the lake. From the second generation on it ends
    with `@` and its number: no table's name gives an `@`."""
    end = "" if generation == 1 else f"@{generation}"
    return f"{source}/_changes/{_database_part(table.database)}/{_table_part(table.name, end)}"


def snapshot_path(source: str, table: TableName) -> str:
    """Where the rows of a table that was read from the source wait to be merged, relative
    to the lake: no database's changelogs are called so."""
    name = f"{_database_part(table.database)}@{path_part(table.name)}"
    return f"{source}/_changes/_snapshots/{_fitting(name)}"


def scratch_path(source: str, folder: str = "") -> str:
    """Where the files of a replay wait before anything tells of them; or those for one folder of
    the source: no database has a folder of that name."""
    return f"{source}/_replays{folder.removeprefix(source)}"


def changelog_schema(structure: TableStructure) -> pa.Schema:
    """The marks, then the table's columns.

    What Delta refuses in names is `%XX` there (`column_names.escaped`). A column named like a mark
    gets a `_` in front, as often as it takes.
    """
    table = arrow_schema(structure)
    names = changelog_names(table.names)
    return pa.schema([*MARKS, *(table.field(i).with_name(name) for i, name in enumerate(names))])


def mirror_columns(table: TableSchema) -> pa.Schema:
    """Return the columns of a table that a mirror has: those that were declared. A row image may
    end with columns that MariaDB adds for itself, such as `DB_ROW_HASH_1`."""
    return pa.schema(list(arrow_schema(row_structure(table)))[: len(table.columns)])


def changelog_names(columns: list[str]) -> list[str]:
    """The table's column names as a changelog spells them, in the same order."""
    names = list(map(escaped, columns))
    taken = set(map(folded, (*MARKS.names, *names)))
    result = []
    for name in names:
        spelled = name
        if folded(name) in _MARKS:
            while folded(spelled) in taken:
                spelled = f"_{spelled}"
            taken.add(folded(spelled))
        result.append(spelled)
    return result


def keep_names(columns: list[str]) -> list[str]:
    """Names, in the same order, for the marks that tell whether a mirror's value stays; none
    is a name in `changelog_names`."""
    return _all_free("_keeps_", columns)


def lack_names(columns: list[str]) -> list[str]:
    """The same for the marks that tell whether a value is to be looked up, because every
    image left it out …"""
    return _all_free("_lacks_", columns)


def origin_names(columns: list[str]) -> list[str]:
    """… and for the key of the row to look it up in."""
    return _all_free("_origin_", columns)


def present_name(columns: list[str]) -> str:
    """What `RowImages.present` is called in a segment's files: a column that no Delta table
    lists."""
    return _free("_present", _taken(columns))


def logged_field(columns: list[str]) -> pa.Field:
    """The changelog's column for which of a row's columns the log had: NULL in a row of which it
    had all. A changelog has it from the first row on of which it had not."""
    return pa.field(_free("_logged", _taken(columns)), pa.list_(pa.string()))


def updated_field(columns: list[str]) -> pa.Field:
    """The changelog's column for which columns an update changed, where that is asked for."""
    return pa.field(_free("_updated", _taken(columns)), pa.list_(pa.string()))


def captured_schema(structure: TableStructure, *, updated: bool) -> pa.Schema:
    """`changelog_schema`, and with `updated` the columns that an update changed."""
    schema = changelog_schema(structure)
    if not updated:
        return schema
    return schema.append(updated_field([column.name for column in structure.columns]))


def published_schema(structure: TableStructure, files: Sequence[SegmentFile]) -> pa.Schema:
    """The columns that these files of a structure's images bring to its changelog."""
    schema = captured_schema(structure, updated=any(file.updated for file in files))
    if not any(file.listed for file in files):
        return schema
    return schema.append(logged_field([column.name for column in structure.columns]))


def _all_free(prefix: str, columns: list[str]) -> list[str]:
    taken = _taken(columns)
    return [_free(f"{prefix}{index}", taken) for index in range(len(columns))]


def _taken(columns: list[str]) -> set[str]:
    return set(map(folded, changelog_names(columns)))


def _free(name: str, taken: Collection[str]) -> str:
    while name in taken:
        name = f"_{name}"
    return name


def application_id(source: str, state: TableState, part: str, changelog_generation: int = 1) -> str:
    """The Delta application id of a table's `part` ("mirror" or "changelog"); each
    generation of the changelog, and of the mirror, has one of its own."""
    within = state.mirror_generation if part == "mirror" else changelog_generation
    end = "" if within == 1 else f"@{within}"
    return f"lockstep/{source}/{table_id(state.table)}/{part}{end}/{state.generation}"


def table_id(table: TableName) -> str:
    """A table's name as no other is written, although a name may have the point in it that stands
    between database and table."""
    names = (table.database, table.name)
    return ".".join(name.replace("%", "%25").replace(".", "%2E") for name in names)


def new_table(source: str, table: TableName, mirror: str | None = None) -> TableState:
    """The state of a table seen for the first time. `mirror`: its folder, if it is not of the
    table's own name."""
    return TableState(
        table=table,
        condition=TableCondition.FOLLOWING,
        generation=1,
        mirror=mirror_path(source, table) if mirror is None else mirror,
        changelog=changelog_path(source, table),
    )
