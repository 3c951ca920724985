"""A table's structure in words like those of SHOW CREATE TABLE, for people."""

from __future__ import annotations

from typing import Final

from lockstep.pipeline.schema.model import (
    SIZED_STRINGS,
    ColumnSchema,
    ExpressionDefault,
    ForeignKey,
    KeyPart,
    KeySchema,
    TableSchema,
    ValueDefault,
    WrittenDefault,
)

_DEFAULT_ACTIONS: Final = {"NO ACTION", "RESTRICT"}
"""The default action of foreign keys: NO ACTION since MySQL 8.0, RESTRICT in other
servers. Both mean the same in InnoDB."""


def type_in_sql(column: ColumnSchema) -> str:
    """Return the type as `varchar(20)`, `decimal(10,2) unsigned` or `enum('a','b')`.
    The display width of integers, which has no effect, is left out."""
    inside = ""
    if column.members:
        inside = ",".join(_quote(member) for member in column.members)
    elif column.precision is not None:
        scale = column.scale
        inside = str(column.precision) if scale is None else f"{column.precision},{scale}"
    elif column.length or (column.length == 0 and column.type in SIZED_STRINGS):
        inside = str(column.length)
    size = f"({inside})" if inside else ""
    signs = f"{' unsigned' if column.unsigned else ''}{' zerofill' if column.zerofill else ''}"
    return f"{column.type}{size}{signs}"


def _quote(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def default_in_sql(column: ColumnSchema) -> str | None:
    """Return the default as a statement writes it; None if there is none, or the column
    is generated."""
    match column.default:
        case ValueDefault(text):
            is_bytes = column.charset is None and text.startswith(("0x", "b'"))
            return text if is_bytes else _quote(text)
        case WrittenDefault(text):
            return text
        case ExpressionDefault(text):
            return text if text.upper().startswith("CURRENT_TIMESTAMP") else f"({text})"
    return "NULL" if column.nullable and column.generated is None else None


def key_kinds(column: ColumnSchema, table: TableSchema) -> tuple[str, ...]:
    """Return the kinds of the keys to which the column belongs, each once."""
    name = column.name.lower()
    kinds = (key.kind for key in table.keys if name in [part.lower() for part in key.columns])
    return tuple(dict.fromkeys(kinds))


def further_properties(column: ColumnSchema, table: TableSchema) -> str:
    """Return the column's properties besides type, nullability, default and keys: a
    collation that differs from the table's, auto_increment, the expression of a
    generated column, and the like."""
    words = []
    is_inherited = column.charset == table.charset and column.collation == table.collation
    if column.charset is not None and not is_inherited:
        words.append(column.collation or column.charset)
    if column.auto_increment:
        words.append("auto_increment")
    if column.on_update:
        words.append("on update CURRENT_TIMESTAMP")
    if column.generated is not None:
        words.append(f"as ({column.generated}) {'stored' if column.stored else 'virtual'}")
    if column.srid is not None:
        words.append(f"srid {column.srid}")
    if column.system_period is not None:
        words.append(column.system_period)
    if column.invisible:
        words.append("invisible")
    if column.compressed:
        words.append("compressed")
    return ", ".join(words)


def key_in_sql(key: KeySchema) -> str:
    """Return the key as `primary key (id)` or `unique index v (a, b(10) desc)`."""
    parts = ", ".join(map(_written_part, key.parts))
    if key.kind == "primary":
        return f"primary key ({parts})"
    kind = key.kind if key.kind == "index" else f"{key.kind} index"
    return f"{kind} {key.name} ({parts}){' invisible' if key.invisible else ''}"


def _written_part(part: KeyPart) -> str:
    name = part.column if part.column is not None else f"({part.expression})"
    prefix = f"({part.prefix})" if part.prefix is not None else ""
    return f"{name}{prefix}{' desc' if part.descending else ''}"


def reference_in_sql(key: ForeignKey) -> str:
    """Return the foreign key as `foreign key f (a) references shop.parents (id) on
    delete CASCADE`."""
    words = (
        f"foreign key {key.name} ({', '.join(key.columns)}) references {key.references} "
        f"({', '.join(key.referenced)})"
    )
    for word, action in (("delete", key.on_delete), ("update", key.on_update)):
        if action not in _DEFAULT_ACTIONS:
            words += f" on {word} {action}"
    return words


def options_in_sql(table: TableSchema) -> str:
    """Return the table's engine, its collation and its unusual options."""
    words = [table.engine]
    if table.collation:
        words.append(table.collation)
    if table.row_format:
        words.append(f"row_format {table.row_format}")
    if table.partitioned:
        words.append("partitioned")
    if table.system_versioned:
        words.append("with system versioning")
    return ", ".join(words)
