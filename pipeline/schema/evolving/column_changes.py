"""Column definitions → columns as the server makes them.

Belongs here: which character set and collation a column, a table or a database comes to have,
types that depend on a character set or a length, nullability, the old rules for TIMESTAMP. Does
not: keys, and positions in the table.

Rules: MySQL manual, "Specifying Character Sets and Collations", "Silent Column Specification
Changes", "Data Type Default Values", "Automatic Initialization and Updating for TIMESTAMP and
DATETIME".
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import dataclass, replace
from typing import Final

from pipeline.schema.collations import (
    UTF8,
    WIDE,
    binary_collation,
    canonical_charset,
    canonical_collation,
    charset_of,
    default_collation,
    widest,
)
from pipeline.schema.context import StatementContext
from pipeline.schema.evolving.defaults import as_text, read_anew, resolve_default, zero_moment
from pipeline.schema.evolving.effects import CannotFollow
from pipeline.schema.evolving.keys import character_bytes
from pipeline.schema.model import (
    BLOBS,
    LARGE,
    TEXTS,
    ColumnSchema,
    ExpressionDefault,
    LiteralDefault,
)
from pipeline.schema.plain import believed
from pipeline.schema.statements.changes import WrittenColumn, WrittenType

_CHARACTERS: Final = frozenset({"char", "varchar", "enum", "set", *TEXTS})
_AS_BYTES: Final = {
    "char": "binary",
    "varchar": "varbinary",
    **dict(zip(TEXTS, BLOBS, strict=True)),
}
_STRINGS: Final = frozenset({"char", "varchar", "binary", "varbinary"})
_PRINTED: Final = {
    **dict.fromkeys(("tinyint", "smallint", "mediumint", "int", "bigint", "float"), 20),
    **dict.fromkeys(("double", "year", "date", "datetime", "timestamp", "time"), 26),
}
"""Characters of a type as it is printed, at most: few enough for a TINYTEXT."""

_MAX_VARCHAR: Final = 65535


@dataclass(frozen=True, slots=True)
class Charset:
    name: str
    collation: str


def of_collation(collation: str) -> Charset:
    return Charset(charset_of(collation) or "binary", collation)


def chosen(
    charset: str | None,
    collation: str | None,
    inherited: Charset | None,
    context: StatementContext,
    *,
    binary: bool = False,
) -> Charset:
    """What was written, or inherited. A set alone brings its default collation, never the
    one inherited, not even where the sets are the same."""
    name = None if charset is None else _charset(charset, inherited)
    if collation is not None and collation.upper() != "DEFAULT":
        known = canonical_collation(collation, name or (inherited.name if inherited else None))
        if known is None:
            raise CannotFollow(f"the collation {collation} is not known")
        found = of_collation(known)
        if binary and (name is None or not context.facts.mysql_8):
            # MariaDB refuses the two together; MySQL 8.0 lets COLLATE win beside a set alone.
            return Charset(found.name, binary_collation(found.name))
        return found
    if name is None:
        if inherited is None:
            raise CannotFollow("what character set it inherits is not known")
        return Charset(inherited.name, binary_collation(inherited.name)) if binary else inherited
    if binary:
        return Charset(name, binary_collation(name))
    return Charset(name, _default(name, context))


def _charset(written: str, inherited: Charset | None) -> str:
    if written.upper() == "DEFAULT" and inherited is not None:
        return inherited.name
    known = canonical_charset(written)
    if known is None:
        raise CannotFollow(f"the character set {written} is not known")
    return known


def _default(name: str, context: StatementContext) -> str:
    preferred = context.charset_collations.get(name)
    return preferred or default_collation(name, context.utf8mb4_collation)


_JSON_OF_MARIADB: Final = Charset("utf8mb4", "utf8mb4_bin")


def with_timestamps(
    columns: Iterable[ColumnSchema], defined: Container[str], context: StatementContext
) -> list[ColumnSchema]:
    """All columns of a table after a statement; those in `defined` (by lower-case names) it
    has definitions for. By the old rules the table's first TIMESTAMP is another thing than
    the next, even where the statement does not name it."""
    found = list(columns)
    if context.explicit_timestamps:
        return found
    for index, column in enumerate(found):
        if column.type == "timestamp":
            found[index] = _first_timestamp(column, column.name.lower() in defined, context)
            break
    return [_zero_timestamp(one) if one.name.lower() in defined else one for one in found]


def _first_timestamp(
    column: ColumnSchema, defined: bool, context: StatementContext
) -> ColumnSchema:
    if not _without_default(column) or column.on_update:
        return column
    if not defined and context.facts.mariadb:
        raise CannotFollow(f"what the TIMESTAMP {column.name} has by default is not known")
    now = f"CURRENT_TIMESTAMP({column.length})" if column.length else "CURRENT_TIMESTAMP"
    return replace(column, default=ExpressionDefault(now) if defined else None, on_update=True)


def _zero_timestamp(column: ColumnSchema) -> ColumnSchema:
    if not _without_default(column):
        return column
    return replace(column, default=LiteralDefault(zero_moment(column.length or 0)))


def _without_default(column: ColumnSchema) -> bool:
    plain = column.type == "timestamp" and column.generated is None
    return plain and not column.nullable and column.default is None


def with_zero_moments(
    columns: Iterable[ColumnSchema], kept: Container[str], context: StatementContext
) -> tuple[ColumnSchema, ...]:
    """MariaDB: a moment that is kept up to date, NOT NULL and without a default has a zero;
    by the old rules so has each TIMESTAMP, a key's too. Columns in `kept` (lower-case names)
    were so before."""
    if not context.facts.mariadb:
        return tuple(columns)
    found = list(columns)
    for index, column in enumerate(found):
        if column.name.lower() in kept:
            continue
        if column.on_update and not column.nullable and column.default is None:
            zero = LiteralDefault(zero_moment(column.length or 0))
            found[index] = replace(column, default=zero)
        elif not context.explicit_timestamps:
            found[index] = _zero_timestamp(column)
    return tuple(found)


def resolve_column(
    written: WrittenColumn, inherited: Charset | None, context: StatementContext
) -> ColumnSchema:
    """One definition, on a table whose columns inherit this character set."""
    column = _typed(written.type, inherited, context)
    column = replace(
        column,
        name=written.name,
        nullable=_nullable(written, context),
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


def beside_convert(
    written: WrittenColumn, inherited: Charset | None, convert: Charset, context: StatementContext
) -> WrittenColumn:
    """A definition in a statement that has CONVERT TO as well: whatever set and collation it
    names, the column is in those of CONVERT TO, but for one that names `binary`; with BINARY and
    no set (in MySQL 5.7 with any set) it has the `_bin` of that one (`get_sql_field_charset` in
    MySQL's `sql/sql_table.cc`)."""
    kind = written.type
    if kind.name not in _CHARACTERS:
        return written
    named = chosen(kind.charset, kind.collation, inherited, context, binary=kind.binary)
    if named.name == "binary":
        return written
    before_8 = not (context.facts.mariadb or context.facts.mysql_8)
    binary = kind.binary and (kind.charset is None or before_8)
    collation = None if binary else convert.collation
    kind = replace(kind, charset=convert.name, collation=collation, binary=binary)
    return replace(written, type=kind)


def _nullable(written: WrittenColumn, context: StatementContext) -> bool:
    if written.nullable is not None:
        return written.nullable
    if written.auto_increment or written.key == "primary":
        return False
    if written.type.name != "timestamp" or context.explicit_timestamps:
        return True
    return context.facts.mariadb and written.generated is not None


def _typed(kind: WrittenType, inherited: Charset | None, context: StatementContext) -> ColumnSchema:
    column = ColumnSchema(
        "",
        kind.name,
        length=kind.length,
        precision=kind.precision,
        scale=kind.scale,
        unsigned=kind.unsigned,
        zerofill=kind.zerofill,
    )
    if kind.name in _CHARACTERS:
        if kind.check_json:
            inherited = _JSON_OF_MARIADB
        charset = chosen(kind.charset, kind.collation, inherited, context, binary=kind.binary)
        column = in_charset(column, charset)
        if kind.members:
            if charset_of(context.connection_collation) == "binary" and column.charset in WIDE:
                raise CannotFollow(f"its members are bytes, which {column.charset} reads otherwise")
            members = tuple(as_text(member, column.charset).rstrip(" ") for member in kind.members)
            column = replace(column, members=members)
    # TEXT(0) is a TINYTEXT to MySQL 8.0, and as TEXT without a length to MariaDB and MySQL 5.7.
    return fitted(column, sized=kind.sized and bool(kind.length or context.facts.mysql_8))


def in_charset(column: ColumnSchema, charset: Charset) -> ColumnSchema:
    """A column of characters in that set; of bytes where the set is `binary`."""
    if charset.name == "binary" and column.type in _AS_BYTES:
        return replace(column, type=_AS_BYTES[column.type], charset=None, collation=None)
    return replace(column, charset=charset.name, collation=charset.collation)


def fitted(column: ColumnSchema, *, sized: bool = False) -> ColumnSchema:
    """TEXT(n) and BLOB(n) become the smallest that holds n; a VARCHAR that is too long for
    one becomes a TEXT."""
    if column.type in TEXTS or column.type in BLOBS:
        family = TEXTS if column.type in TEXTS else BLOBS
        name = column.type
        if sized:
            name = _smallest(family, (column.length or 0) * character_bytes(column))
        return replace(column, type=name, length=None)
    if column.type in ("varchar", "varbinary") and column.length is not None:
        size = column.length * character_bytes(column)
        if size > _MAX_VARCHAR:
            family = TEXTS if column.type == "varchar" else BLOBS
            return replace(column, type=_smallest(family, size), length=None)
    return column


def _smallest(family: tuple[str, ...], size: int) -> str:
    return next((name for name in family if size <= LARGE[name]), family[-1])


def converted(column: ColumnSchema, charset: Charset) -> ColumnSchema:
    """CONVERT TO CHARACTER SET: a TEXT grows so that it holds as many characters."""
    if column.charset in (None, "binary"):
        return column
    if column.members and not _same_bytes(column, charset):
        column = _members_read_anew(column, charset.name)
    before = character_bytes(column)
    after = believed(in_charset(column, charset))
    if column.type in TEXTS:
        name = _smallest(TEXTS, LARGE[column.type] // before * widest(charset.name))
        family = after.type in BLOBS
        larger = TEXTS[max(TEXTS.index(name), TEXTS.index(column.type))]
        return replace(after, type=_AS_BYTES[larger] if family else larger)
    return fitted(after)


def converted_text(made: ColumnSchema, before: ColumnSchema) -> ColumnSchema:
    """MySQL 8.0, MODIFY beside CONVERT TO: whichever TEXT or BLOB is written, but LONGTEXT and
    LONGBLOB, the column is the smallest that holds as much as there was room for before."""
    family = TEXTS if made.type in TEXTS else BLOBS
    if made.type not in family[:-1]:
        return made
    if before.type in LARGE:
        size: int | None = LARGE[before.type] // character_bytes(before)
    elif before.members:
        lengths = [len(member) for member in before.members]
        size = max(lengths) if before.type == "enum" else sum(lengths) + len(lengths) - 1
    elif before.type == "decimal" and before.precision is not None:
        # The digits, a point and a sign (`my_decimal_precision_to_length` in decimal.h).
        size = before.precision + bool(before.scale) + (not before.unsigned)
    else:
        size = before.length if before.type in _STRINGS else _PRINTED.get(before.type)
    if size is None:
        raise CannotFollow(f"only the server knows how long the text {made.name} may be")
    return replace(made, type=_smallest(family, size * character_bytes(made)))


def _same_bytes(column: ColumnSchema, charset: Charset) -> bool:
    before, after = column.charset or "", charset.name
    ascii_only = all(member.isascii() for member in column.members)
    basic = all(max(member, default="") <= "\uffff" for member in column.members)
    if before == after or ({before, after} <= UTF8 and basic):
        return True
    return ascii_only and not {before, after} & WIDE


def _members_read_anew(column: ColumnSchema, charset: str) -> ColumnSchema:
    """Servers convert a column's values, and read the bytes of its members anew; those of
    bytes are kept as the text that they are in UTF-8."""
    try:
        members = tuple(
            read_anew(member, column.charset or "", charset) for member in column.members
        )
    except UnicodeError:
        why = f"what {column.name} has for members in {charset} is not known"
        raise CannotFollow(why) from None
    if members != column.members and isinstance(column.default, LiteralDefault):
        raise CannotFollow(f"what {column.name} has by default in {charset} is not known")
    return replace(column, members=members)
