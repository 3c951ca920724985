"""The layout of the lake: the paths and application ids of mirrors (Delta tables with a
table's present rows) and changelogs (Delta tables with all its changes), the columns of
changelogs, and the columns that folded changes have besides.

Names become path parts by one rule: `[A-Za-z0-9_-]` stay, and every other byte of the
UTF-8 name becomes `=XX`. So no part has a `%`, which delta-rs decodes, or a `?`, which
is a glob for Spark. If a database's name begins with `_`, this byte is escaped, too, so
that the folder cannot be `_changes`; the same is done for a table with the name of one
of Delta's folders. A part that is too long for a file name becomes its beginning, a
`.`, which no other part contains, and a hash of the whole part.
"""

from __future__ import annotations

import hashlib
import string
from collections.abc import Collection, Sequence

import pyarrow as pa

from lockstep.pipeline.model.table_state import TableCondition, TableState
from lockstep.pipeline.schema.model import TableSchema
from lockstep.pipeline.schema.rows import row_structure
from lockstep.pipeline.schema.types import arrow_schema, comparable_name, escape_name
from lockstep.pipeline.values.segment import SegmentFile
from lockstep.pipeline.values.stamps import STAMPS
from lockstep.pipeline.values.table import TableName, TableStructure

_UNESCAPED = frozenset((string.ascii_letters + string.digits + "_-").encode())

_DELTA_FOLDERS = ("_change_data", "_delta_index", "_delta_log")
"""Delta's folders inside a table: Delta does not accept a table in a folder of such a
name."""

_LONGEST = 255
"""NAME_MAX of Linux's file systems, in bytes. A key of an object store can have 1,024
bytes: two such parts, a source's name, and Delta's files below them leave 300 for the
lake's own prefix."""

_BEGINNING = 80
_HASH_DIGITS = 40
"""A shortened part has this many characters of its beginning, and this many hexadecimal
digits of the whole part's SHA-256."""

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
"""The marks: a changelog's own columns, which every changelog has before the table's
columns. `_sequence` numbers all changes of a source; `_file`, `_offset` and `_row` are
a change's place in the binary log; `_derived` is true for a row that was read by
SELECT, not from the log."""

_MARKS = frozenset(map(comparable_name, MARKS.names))


DELETED_AT = pa.field("_deleted_at", pa.timestamp("us", tz="UTC"))
"""A mirror's own column with `deletes = "soft"`: when a row was deleted, or NULL."""


def path_part(name: str, end: str = "", *, hidden: bool = True) -> str:
    """Return a name as one path part, followed by `end`. Different names give different
    parts. `hidden`: the part may begin with `_`, as hidden folders do."""
    part = "".join(chr(byte) if byte in _UNESCAPED else f"={byte:02X}" for byte in name.encode())
    if part.startswith("_") and not hidden:
        part = f"=5F{part[1:]}"
    return _fitting(part, end)


def _fitting(part: str, end: str = "") -> str:
    """Return an escaped part and its end, shortened if it is too long for a file's
    name."""
    if len(part) + len(end) <= _LONGEST:
        return part + end
    digest = hashlib.sha256(part.encode()).hexdigest()[:_HASH_DIGITS]
    return f"{part[:_BEGINNING]}.{digest}{end}"


def _database_part(name: str) -> str:
    return path_part(name, hidden=False)


def _table_part(name: str, end: str) -> str:
    return path_part(name, end, hidden=name not in _DELTA_FOLDERS)


def mirror_path(
    source: str, table: TableName, generation: int = 1, mirror_generation: int = 1
) -> str:
    """Return the mirror's folder, relative to the lake, for a table in these generations
    (`TableState`). The successor of a lost mirror ends with, for example, `@1-2`, as
    does a mirror whose plain folder another table has or had."""
    end = "" if generation == 1 else f"@{generation}"
    if mirror_generation > 1:
        end = f"@{generation}-{mirror_generation}"
    return f"{source}/{_database_part(table.database)}/{_table_part(table.name, end)}"


NO_MIRROR = "@0"
"""The end of a folder's name for a table that gets no mirror, because the settings give
another table's mirror the same name. Nothing is ever written to such a folder."""


def no_mirror_path(source: str, table: TableName) -> str:
    """Return the folder name that marks a table as having no mirror (`NO_MIRROR`).
    Different tables have different ones."""
    return f"{source}/{_database_part(table.database)}/{_table_part(table.name, NO_MIRROR)}"


def free_mirror_path(
    source: str,
    name: TableName,
    generation: int,
    taken: Collection[str],
    mirror_generation: int = 1,
    *,
    ignores_case: bool = False,
) -> str:
    """Return the first folder of a mirror that is not `taken`; `mirror_generation` is
    the one to try first. `ignores_case`: folders are compared without regard to case,
    as by some storage."""
    others = {path.lower() for path in taken} if ignores_case else taken
    while True:
        path = mirror_path(source, name, generation, mirror_generation)
        if (path.lower() if ignores_case else path) not in others:
            return path
        mirror_generation += 1


def is_folder_of(mirror: str, source: str, name: TableName) -> bool:
    """Return whether `mirror` is a mirror's folder for the table name, of any
    generation."""
    _, separator, number = mirror.rpartition("/")[2].partition("@")
    end = f"{separator}{number}"
    path = f"{source}/{_database_part(name.database)}/{_table_part(name.name, end)}"
    return end != NO_MIRROR and mirror == path


def rebuilt_path(source: str, table: TableName, at: str) -> str:
    """Return the folder of a mirror that is rebuilt as of an earlier place of the log,
    in a lake that has only rebuilt mirrors. `at` names the place."""
    return f"{source}/{_database_part(table.database)}/{_table_part(table.name, f'@{at}')}"


def changelog_path(source: str, table: TableName, changelog_generation: int = 1) -> str:
    """Return the changelog's folder, relative to the lake. From the second generation
    on it ends with `@` and the number; the path part of a table's name has no `@`."""
    end = "" if changelog_generation == 1 else f"@{changelog_generation}"
    return f"{source}/_changes/{_database_part(table.database)}/{_table_part(table.name, end)}"


def snapshot_path(source: str, table: TableName) -> str:
    """Return the folder, relative to the lake, of rows that were read from the source
    and wait to be merged. No database's folder is called `_snapshots`, since none
    begins with `_`."""
    name = f"{_database_part(table.database)}@{path_part(table.name)}"
    return f"{source}/_changes/_snapshots/{_fitting(name)}"


def scratch_path(source: str, folder: str = "") -> str:
    """Return the folder in which a replay, which reads a part of the log again to
    correct the lake, keeps its files until the ledger records them. With `folder`:
    return its subfolder for the files that are to replace files of `folder`."""
    return f"{source}/_replays{folder.removeprefix(source)}"


def changelog_schema(structure: TableStructure) -> pa.Schema:
    """Return a changelog's columns: `MARKS`, then the table's. Characters that Delta
    refuses in names become `%XX` (`schema.types.escape_name`). A column with the name
    of a mark is prefixed with `_` until the name is free."""
    table = arrow_schema(structure)
    names = changelog_names(table.names)
    return pa.schema([*MARKS, *(table.field(i).with_name(name) for i, name in enumerate(names))])


def mirror_columns(table: TableSchema) -> pa.Schema:
    """Return a mirror's columns: those that the table declares. A row image can end
    with columns that MariaDB adds for itself, such as `DB_ROW_HASH_1`."""
    return pa.schema(list(arrow_schema(row_structure(table)))[: len(table.columns)])


def changelog_names(columns: Sequence[str]) -> list[str]:
    """Return the table's column names as a changelog spells them, in the same order."""
    names = list(map(escape_name, columns))
    taken = set(map(comparable_name, (*MARKS.names, *names)))
    result = []
    for name in names:
        spelled = name
        if comparable_name(name) in _MARKS:
            while comparable_name(spelled) in taken:
                spelled = f"_{spelled}"
            taken.add(comparable_name(spelled))
        result.append(spelled)
    return result


def changelog_spelling(columns: Sequence[str]) -> dict[str, str]:
    """Return for each of the table's column names its spelling in a changelog."""
    return dict(zip(columns, changelog_names(columns), strict=True))


def keep_flag_names(columns: Sequence[str]) -> dict[str, str]:
    """Return for each column the name of a boolean column of folded changes. It is true
    where the mirror's row of the same key keeps its value. No such name is in
    `changelog_names`."""
    return _all_free("_keeps_", columns)


def lack_flag_names(columns: Sequence[str]) -> dict[str, str]:
    """Return for each column the name of a boolean column of folded changes. It is true
    where all of the row's images left the value out, so that the value must be looked
    up in the mirror, in a row that may have had another key (`origin_names`)."""
    return _all_free("_lacks_", columns)


def origin_names(columns: Sequence[str]) -> dict[str, str]:
    """Return for each key column the name of a column of folded changes. That column
    has the key of the mirror's row from which left-out values are taken."""
    return _all_free("_origin_", columns)


def present_name(columns: Sequence[str]) -> str:
    """Return the name of the column in a segment's files that lists the columns of each
    image whose values are known (`RowImages.present`). No Delta table has the
    column."""
    return _free("_present", _taken(columns))


def logged_field(columns: Sequence[str]) -> pa.Field:
    """Return the changelog's column that lists the columns of a row that were in the
    log; NULL if all were. A changelog gets this column with its first incomplete
    row."""
    return pa.field(_free("_logged", _taken(columns)), pa.list_(pa.string()))


def updated_field(columns: Sequence[str]) -> pa.Field:
    """Return the changelog's column that lists the columns that an update changed. A
    changelog has this column only if the settings ask for it."""
    return pa.field(_free("_updated", _taken(columns)), pa.list_(pa.string()))


def columns_or_nulls(rows: pa.Table | pa.RecordBatch, schema: pa.Schema) -> list[pa.Array]:
    """Return the columns `schema` of these rows; a column that the rows lack is NULL."""
    return [
        rows.column(field.name).cast(field.type)
        if field.name in rows.schema.names
        else pa.nulls(rows.num_rows, field.type)
        for field in schema
    ]


def captured_schema(structure: TableStructure, *, updated: bool) -> pa.Schema:
    """Return `changelog_schema`, and with `updated` also `updated_field`."""
    schema = changelog_schema(structure)
    if not updated:
        return schema
    return schema.append(updated_field(structure.names))


def published_schema(structure: TableStructure, files: Sequence[SegmentFile]) -> pa.Schema:
    """Return the columns that a changelog needs for `files`, whose images have
    `structure`."""
    schema = captured_schema(structure, updated=any(file.has_updated for file in files))
    if not any(file.has_logged for file in files):
        return schema
    return schema.append(logged_field(structure.names))


def _all_free(prefix: str, columns: Sequence[str]) -> dict[str, str]:
    taken = _taken(columns)
    return {name: _free(f"{prefix}{index}", taken) for index, name in enumerate(columns)}


def _taken(columns: Sequence[str]) -> set[str]:
    return set(map(comparable_name, changelog_names(columns)))


def _free(name: str, taken: Collection[str]) -> str:
    while name in taken:
        name = f"_{name}"
    return name


def application_id(source: str, state: TableState, part: str, changelog_generation: int = 1) -> str:
    """Return the Delta application id of a table's `part` ("mirror" or "changelog").
    Each generation of the changelog and of the mirror has its own id, and so has each
    generation of both together (`TableState.generation`)."""
    part_generation = state.mirror_generation if part == "mirror" else changelog_generation
    end = "" if part_generation == 1 else f"@{part_generation}"
    return f"lockstep/{source}/{table_id(state.table)}/{part}{end}/{state.generation}"


def table_id(table: TableName) -> str:
    """Return `database.table` with dots inside the two names escaped, so that different
    tables have different results."""
    names = (table.database, table.name)
    return ".".join(name.replace("%", "%25").replace(".", "%2E") for name in names)


def new_table(source: str, table: TableName, mirror: str | None = None) -> TableState:
    """Return the state of a table that is captured for the first time. `mirror`: the
    folder of its mirror; None for the one of the table's own name."""
    return TableState(
        table=table,
        condition=TableCondition.FOLLOWING,
        generation=1,
        mirror=mirror_path(source, table) if mirror is None else mirror,
        changelog=changelog_path(source, table),
    )
