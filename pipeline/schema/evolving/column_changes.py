"""Columns as the server makes them from their definitions.

This covers character sets and collations (of tables and databases too), types that
depend on a character set or a length, nullability, and the implicit defaults of
TIMESTAMP.

Rules: MySQL manual, "Specifying Character Sets and Collations", "Silent Column
Specification Changes", "Data Type Default Values", "Automatic Initialization and
Updating for TIMESTAMP and DATETIME".
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import dataclass, replace
from typing import Final

from lockstep.pipeline.schema.collations import (
    UTF8_CHARSETS,
    WIDE_CHARSETS,
    binary_collation,
    canonical_charset,
    canonical_collation,
    charset_of,
    default_collation,
    max_character_bytes,
)
from lockstep.pipeline.schema.context import StatementContext
from lockstep.pipeline.schema.effects import CannotFollow
from lockstep.pipeline.schema.evolving.defaults import (
    is_in_basic_plane,
    literal_text,
    reinterpret_text,
    resolve_default,
    with_plain_default,
    zero_default,
)
from lockstep.pipeline.schema.evolving.keys import column_character_bytes
from lockstep.pipeline.schema.model import (
    BLOB_FAMILY,
    CHARACTER_STRINGS,
    LOB_SIZES,
    SIZED_STRINGS,
    TEXT_FAMILY,
    ColumnSchema,
    ExpressionDefault,
    ServerSchema,
    ValueDefault,
    now_expression,
)
from lockstep.pipeline.schema.statements.changes import WrittenColumn, WrittenType

_CHARACTER_TYPES: Final = CHARACTER_STRINGS | {"enum", "set"}
_BYTE_TYPES: Final = {
    "char": "binary",
    "varchar": "varbinary",
    **dict(zip(TEXT_FAMILY, BLOB_FAMILY, strict=True)),
}
_PRINTED_LENGTHS: Final = {
    **dict.fromkeys(("tinyint", "smallint", "mediumint", "int", "bigint", "float"), 20),
    **dict.fromkeys(("double", "year", "date", "datetime", "timestamp", "time"), 26),
}
"""Upper bounds of the printed length of a type, in characters; each fits in a
TINYTEXT."""

_MAX_VARCHAR: Final = 65535


@dataclass(frozen=True, slots=True)
class Charset:
    """A character set with one of its collations."""

    name: str
    collation: str


def charset_with_collation(collation: str) -> Charset:
    """Return the collation with its character set."""
    return Charset(charset_of(collation) or "binary", collation)


def inherited_charset(schema: ServerSchema, database: str) -> Charset | None:
    """Return the default character set of a database's tables; None if the database is
    unknown."""
    parent = schema.database(database)
    return None if parent is None else Charset(parent.charset, parent.collation)


def session_charset(schema: ServerSchema, context: StatementContext) -> Charset | None:
    """Return the character set of the session's default database, or the server's if
    the session has none (its variable `collation_database`); None if it is unknown."""
    if context.database_collation is not None:
        return charset_with_collation(context.database_collation)
    if context.database:
        return inherited_charset(schema, context.database)
    server = context.server_collation
    return None if server is None else charset_with_collation(server)


def chosen_charset(
    charset: str | None,
    collation: str | None,
    inherited: Charset | None,
    context: StatementContext,
    *,
    binary: bool = False,
) -> Charset:
    """Return the character set that was written, else the inherited one. A set that is
    written without a collation gets its default collation, even if it is the inherited
    set. `binary`: the attribute BINARY, which chooses the set's `_bin` collation."""
    name = None if charset is None else _resolved_charset_name(charset, inherited)
    if collation is not None and collation.upper() != "DEFAULT":
        canonical = canonical_collation(collation, name or (inherited.name if inherited else None))
        if canonical is None:
            raise CannotFollow(f"the collation {collation} is unknown")
        written = charset_with_collation(canonical)
        if binary and (name is None or not context.facts.is_mysql_8):
            # MariaDB refuses BINARY with COLLATE; in MySQL 8.0 COLLATE wins if a set is
            # named too.
            return Charset(written.name, binary_collation(written.name))
        return written
    if name is None:
        if inherited is None:
            raise CannotFollow("the character set that it inherits is unknown")
        return Charset(inherited.name, binary_collation(inherited.name)) if binary else inherited
    if binary:
        return Charset(name, binary_collation(name))
    session_collation = context.charset_collations.get(name)
    return Charset(name, session_collation or default_collation(name, context.utf8mb4_collation))


def _resolved_charset_name(written: str, inherited: Charset | None) -> str:
    if written.upper() == "DEFAULT" and inherited is not None:
        return inherited.name
    canonical = canonical_charset(written)
    if canonical is None:
        raise CannotFollow(f"the character set {written} is unknown")
    return canonical


_MARIADB_JSON_CHARSET: Final = Charset("utf8mb4", "utf8mb4_bin")


def with_implicit_timestamps(
    columns: Iterable[ColumnSchema], defined_names: Container[str], context: StatementContext
) -> list[ColumnSchema]:
    """Return the columns with TIMESTAMP's implicit defaults. `defined_names`: names, in
    lower case, of the columns that the statement defines. Without
    `explicit_defaults_for_timestamp`, the table's first TIMESTAMP gets other defaults,
    even if the statement does not name it."""
    resolved = list(columns)
    if context.explicit_timestamps:
        return resolved
    for index, column in enumerate(resolved):
        if column.type == "timestamp":
            resolved[index] = _first_timestamp(
                column, column.name.lower() in defined_names, context
            )
            break
    return [
        _zero_timestamp(column) if column.name.lower() in defined_names else column
        for column in resolved
    ]


def _first_timestamp(
    column: ColumnSchema, is_defined: bool, context: StatementContext
) -> ColumnSchema:
    """Return the table's first TIMESTAMP, with the implicit ON UPDATE CURRENT_TIMESTAMP
    and, if the statement defines the column, DEFAULT CURRENT_TIMESTAMP."""
    if not _is_timestamp_without_default(column) or column.on_update:
        return column
    if not is_defined and context.facts.is_mariadb:
        raise CannotFollow(f"the default of the TIMESTAMP {column.name} is unknown")
    now = ExpressionDefault(now_expression(column.length or 0))
    return replace(column, default=now if is_defined else None, on_update=True)


def _zero_timestamp(column: ColumnSchema) -> ColumnSchema:
    """Return the column with the implicit default zero if it is a TIMESTAMP without a
    default."""
    if not _is_timestamp_without_default(column):
        return column
    return replace(column, default=ValueDefault(zero_default(column.length or 0)))


def _is_timestamp_without_default(column: ColumnSchema) -> bool:
    is_plain = column.type == "timestamp" and column.generated is None
    return is_plain and not column.nullable and column.default is None


def with_zero_defaults(
    columns: Iterable[ColumnSchema], kept_names: Container[str], context: StatementContext
) -> tuple[ColumnSchema, ...]:
    """Return the columns with the implicit default 0000-00-00 00:00:00. MariaDB gives
    it to a NOT NULL column with ON UPDATE and no default and, without
    `explicit_defaults_for_timestamp`, to each NOT NULL TIMESTAMP. `kept_names`: names,
    in lower case, of columns that were NOT NULL before and that the statement does not
    define."""
    if not context.facts.is_mariadb:
        return tuple(columns)
    resolved = list(columns)
    for index, column in enumerate(resolved):
        if column.name.lower() in kept_names:
            continue
        if column.on_update and not column.nullable and column.default is None:
            zero = ValueDefault(zero_default(column.length or 0))
            resolved[index] = replace(column, default=zero)
        elif not context.explicit_timestamps:
            resolved[index] = _zero_timestamp(column)
    return tuple(resolved)


def resolve_column(
    written: WrittenColumn, inherited: Charset | None, context: StatementContext
) -> ColumnSchema:
    """Return the column that a definition makes. `inherited`: the table's character
    set."""
    column = _column_of_type(written.type, inherited, context)
    column = replace(
        column,
        name=written.name,
        nullable=_is_nullable(written, context),
        on_update=written.on_update,
        auto_increment=written.auto_increment,
        generated=written.generated,
        stored=written.stored,
        invisible=written.invisible,
        srid=written.srid,
        compressed=written.type.compressed,
        system_period=written.system_period,
    )
    return replace(column, default=resolve_default(written.default, column, context))


def with_convert_charset(
    written: WrittenColumn, inherited: Charset | None, convert: Charset, context: StatementContext
) -> WrittenColumn:
    """Return a column's definition in a statement with CONVERT TO. The column gets the
    character set and collation of CONVERT TO, even if it names others, unless it names
    `binary`. The attribute BINARY without a set (MySQL 5.7: even with one) chooses
    the `_bin` collation of CONVERT TO's set (`get_sql_field_charset` in MySQL's
    `sql/sql_table.cc`)."""
    written_type = written.type
    if written_type.name not in _CHARACTER_TYPES:
        return written
    if _charset_of_type(written_type, inherited, context).name == "binary":
        return written
    chooses_bin = written_type.binary and (
        written_type.charset is None or context.facts.is_mysql_57
    )
    collation = None if chooses_bin else convert.collation
    written_type = replace(
        written_type, charset=convert.name, collation=collation, binary=chooses_bin
    )
    return replace(written, type=written_type)


def _is_nullable(written: WrittenColumn, context: StatementContext) -> bool:
    if written.nullable is not None:
        return written.nullable
    if written.auto_increment or written.key == "primary":
        return False
    if written.type.name != "timestamp" or context.explicit_timestamps:
        return True
    # Without `explicit_defaults_for_timestamp`, a TIMESTAMP is NOT NULL unless NULL is
    # written.
    return context.facts.is_mariadb and written.generated is not None


def _column_of_type(
    written_type: WrittenType, inherited: Charset | None, context: StatementContext
) -> ColumnSchema:
    column = ColumnSchema(
        "",
        written_type.name,
        length=written_type.length,
        precision=written_type.precision,
        scale=written_type.scale,
        unsigned=written_type.unsigned,
        zerofill=written_type.zerofill,
    )
    if written_type.name in _CHARACTER_TYPES:
        if written_type.check_json:
            inherited = _MARIADB_JSON_CHARSET
        column = _with_charset(column, _charset_of_type(written_type, inherited, context))
    if written_type.members:
        is_in_bytes = charset_of(context.connection_collation) == "binary"
        if is_in_bytes and column.charset in WIDE_CHARSETS:
            raise CannotFollow(
                f"the members of an ENUM or SET were given as bytes, not in {column.charset}"
            )
        texts = (literal_text(member, column.charset) for member in written_type.members)
        column = replace(column, members=tuple(text.rstrip(" ") for text in texts))
    # TEXT(0) is a TINYTEXT in MySQL 8.0, and the same as TEXT in MariaDB and MySQL 5.7.
    length = written_type.length
    has_length = length is not None and (length > 0 or context.facts.is_mysql_8)
    return _fitting_column(column, has_length=has_length)


def _charset_of_type(
    written_type: WrittenType, inherited: Charset | None, context: StatementContext
) -> Charset:
    charset, collation = written_type.charset, written_type.collation
    return chosen_charset(charset, collation, inherited, context, binary=written_type.binary)


def _with_charset(column: ColumnSchema, charset: Charset) -> ColumnSchema:
    """Return a column of characters with this character set. CHAR, VARCHAR and TEXT
    become the corresponding type of bytes if the set is `binary`."""
    if charset.name == "binary" and column.type in _BYTE_TYPES:
        return replace(column, type=_BYTE_TYPES[column.type], charset=None, collation=None)
    return replace(column, charset=charset.name, collation=charset.collation)


def _fitting_column(column: ColumnSchema, *, has_length: bool = False) -> ColumnSchema:
    """Return TEXT(n) and BLOB(n) as the smallest type that holds n, and a VARCHAR that
    is too long as a TEXT. `has_length`: a length of the TEXT or BLOB was written."""
    if column.type in TEXT_FAMILY or column.type in BLOB_FAMILY:
        family = TEXT_FAMILY if column.type in TEXT_FAMILY else BLOB_FAMILY
        name = column.type
        if has_length:
            name = _smallest_type(family, (column.length or 0) * column_character_bytes(column))
        return replace(column, type=name, length=None)
    if column.type in ("varchar", "varbinary") and column.length is not None:
        size = column.length * column_character_bytes(column)
        if size > _MAX_VARCHAR:
            family = TEXT_FAMILY if column.type == "varchar" else BLOB_FAMILY
            return replace(column, type=_smallest_type(family, size), length=None)
    return column


def _smallest_type(family: tuple[str, ...], size: int) -> str:
    """Return the smallest type of a family that holds `size` bytes."""
    return next((name for name in family if size <= LOB_SIZES[name]), family[-1])


def convert_column(column: ColumnSchema, charset: Charset) -> ColumnSchema:
    """Return a column after CONVERT TO CHARACTER SET. A TEXT becomes a larger type if
    it would hold fewer characters than before."""
    if column.charset in (None, "binary"):
        return column
    if column.members and not _has_same_bytes(column, charset):
        column = _with_decoded_members(column, charset.name)
    former_bytes = column_character_bytes(column)
    # In the new character set, a default that is not plain may have another value.
    after = with_plain_default(_with_charset(column, charset))
    if column.type in TEXT_FAMILY:
        name = _smallest_type(
            TEXT_FAMILY, LOB_SIZES[column.type] // former_bytes * max_character_bytes(charset.name)
        )
        larger_type = TEXT_FAMILY[max(TEXT_FAMILY.index(name), TEXT_FAMILY.index(column.type))]
        return replace(
            after, type=_BYTE_TYPES[larger_type] if after.type in BLOB_FAMILY else larger_type
        )
    return _fitting_column(after)


def text_type_with_convert(column: ColumnSchema, before: ColumnSchema) -> ColumnSchema:
    """Return a TEXT or BLOB that MODIFY defines in the same statement as CONVERT TO,
    for MySQL 8.0. Except for LONGTEXT and LONGBLOB, the server replaces the written
    type by the smallest type that holds any former value of the column."""
    family = TEXT_FAMILY if column.type in TEXT_FAMILY else BLOB_FAMILY
    if column.type not in family[:-1]:
        return column
    if before.type in LOB_SIZES:
        size: int | None = LOB_SIZES[before.type] // column_character_bytes(before)
    elif before.members:
        lengths = [len(member) for member in before.members]
        size = max(lengths) if before.type == "enum" else sum(lengths) + len(lengths) - 1
    elif before.type == "decimal" and before.precision is not None:
        # Digits, point and sign (`my_decimal_precision_to_length` in decimal.h).
        size = before.precision + bool(before.scale) + (not before.unsigned)
    else:
        size = before.length if before.type in SIZED_STRINGS else _PRINTED_LENGTHS.get(before.type)
    if size is None:
        raise CannotFollow(f"only the server knows how long the text {column.name} may be")
    return replace(column, type=_smallest_type(family, size * column_character_bytes(column)))


def _has_same_bytes(column: ColumnSchema, charset: Charset) -> bool:
    """Return whether both character sets encode the column's members as the same
    bytes."""
    before, after = column.charset or "", charset.name
    are_ascii = all(member.isascii() for member in column.members)
    if before == after or (
        {before, after} <= UTF8_CHARSETS and all(map(is_in_basic_plane, column.members))
    ):
        return True
    return are_ascii and not {before, after} & WIDE_CHARSETS


def _with_decoded_members(column: ColumnSchema, charset: str) -> ColumnSchema:
    """Return an ENUM or SET after CONVERT TO. Servers convert the stored values, but
    decode the bytes of the members by the new set, without converting them."""
    try:
        members = tuple(
            reinterpret_text(member, column.charset or "", charset) for member in column.members
        )
    except UnicodeError:
        raise CannotFollow(f"the members of {column.name} in {charset} are unknown") from None
    if members != column.members and isinstance(column.default, ValueDefault):
        raise CannotFollow(f"the default of {column.name} in {charset} is unknown")
    return replace(column, members=members)
