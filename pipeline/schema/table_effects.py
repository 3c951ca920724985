"""A statement's effect on one table, and the tests that the rules of `consequences`
apply to it.

Each test returns a reason, or None if it does not apply. The main question is whether a
new definition of a column changes stored values, since servers log no row events when
ALTER TABLE changes values. In doubt the answer is yes. The last section compares a
structure that a person gave with the structure before it.

Sources: the MySQL manual, "ALTER TABLE Statement" and "Data Types"; for the character
sets that have all characters of another, `pipeline.binlog.values.charsets`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Literal

from lockstep.pipeline.schema.collations import (
    SINGLE_BYTE_CHARSETS,
    UTF8_CHARSETS,
    UTF8_COMPATIBLE_CHARSETS,
    WIDE_CHARSETS,
    max_character_bytes,
)
from lockstep.pipeline.schema.context import PAD_CHAR_TO_FULL_LENGTH, STRICT, StatementContext
from lockstep.pipeline.schema.effects import (
    Changed,
    Created,
    Dropped,
    Effect,
    NotFollowed,
    Renamed,
    Truncated,
    UnknownTable,
    UnloggedChange,
)
from lockstep.pipeline.schema.fills import StatementMoment, fill_of
from lockstep.pipeline.schema.model import (
    BLOB_FAMILY,
    CHARACTER_STRINGS,
    GEOMETRY_TYPES,
    INTEGER_BITS,
    LOB_SIZES,
    ColumnSchema,
    ExpressionDefault,
    TableSchema,
)
from lockstep.pipeline.schema.rows import row_structure
from lockstep.pipeline.schema.statements.reader import CannotRead, StatementReader
from lockstep.pipeline.schema.tracker import ColumnsFrom
from lockstep.pipeline.schema.treatments import ColumnUse
from lockstep.pipeline.schema.types import MAX_DECIMAL_DIGITS, arrow_type
from lockstep.pipeline.values.engines import reason_refused
from lockstep.pipeline.values.errors import TableError
from lockstep.pipeline.values.table import Column, TableName

Renames = Sequence[tuple[str, str]]
"""Columns that a person says were renamed: old and new names."""

EffectKind = Literal[
    "created", "dropped", "renamed", "truncated", "changed", "unlogged", "not followed"
]
"""The kind of a `TableEffect`. Unlogged: rows changed without row events."""


@dataclass(frozen=True, slots=True)
class TableEffect:
    """A statement's effect on one table. A change has `before` and `after`, a new table
    `after`. `columns_from`: the former name of each column. `sql_mode`: the session's.
    `moment`: when the statement ran. `column_uses`: the columns that the settings hide
    or convert, or by which they choose rows, by their names in lower case."""

    table: TableName
    kind: EffectKind
    reason: str = ""
    before: TableSchema | None = None
    after: TableSchema | None = None
    columns_from: tuple[str | None, ...] = ()
    sql_mode: int = STRICT
    moment: StatementMoment | None = None
    column_uses: Mapping[str, ColumnUse] = field(default_factory=dict)

    @property
    def schemas(self) -> tuple[TableSchema, TableSchema]:
        """The table's schemas before and after a change."""
        assert self.before is not None
        assert self.after is not None
        return self.before, self.after

    @property
    def column_pairs(self) -> Iterator[tuple[ColumnSchema | None, ColumnSchema]]:
        """Each column of a changed table before and after the statement; a new column
        is paired with None."""
        before, after = self.schemas
        for origin, column in zip(self.columns_from, after.columns, strict=True):
            yield (before.column(origin) if origin is not None else None), column


ColumnUsesOf = Callable[[TableSchema], Mapping[str, ColumnUse]]
"""Returns `TableEffect.column_uses` for the columns of a structure."""


def table_effects(
    effect: Effect, sql_mode: int, moment: StatementMoment, column_uses_of: ColumnUsesOf
) -> Iterator[TableEffect]:
    """Yield a `TableEffect` for each table that an effect on the schema concerns."""
    match effect:
        case Created(table, after):
            yield TableEffect(table, "created", after=after)
        case Dropped(table):
            yield TableEffect(table, "dropped")
        case Renamed(table, to):
            yield TableEffect(table, "dropped", f"it is now called {to}")
            yield TableEffect(to, "renamed", f"it was called {table}")
        case Truncated(table):
            yield TableEffect(table, "truncated")
        case UnloggedChange(table, reason):
            sentence = f"{reason} changes rows that the log does not have"
            yield TableEffect(table, "unlogged", sentence)
        case NotFollowed(table, reason):
            yield TableEffect(table, "not followed", reason)
        case UnknownTable(table, statement):
            reason = f"{statement}, but its structure was not known"
            yield TableEffect(table, "not followed", reason)
        case Changed(table, before, after, columns_from):
            yield TableEffect(
                table,
                "changed",
                before=before,
                after=after,
                columns_from=columns_from,
                sql_mode=sql_mode,
                moment=moment,
                column_uses={**column_uses_of(before), **column_uses_of(after)},
            )
        case _:
            return


_ROW_KEEPING_ENGINES: Final = frozenset({"innodb", "myisam", "aria", "rocksdb"})
"""Engines between which ALTER TABLE moves all rows of a table unchanged."""


def reason_engine_refused(effect: TableEffect) -> str | None:
    return None if effect.after is None else reason_refused(effect.after.engine)


def reason_versioned(effect: TableEffect) -> str | None:
    return None if effect.after is None else reason_schema_versioned(effect.after)


def reason_schema_versioned(schema: TableSchema) -> str | None:
    """Return why a system-versioned table is quarantined (not captured until a person
    resumes it); None for any other table."""
    if not schema.system_versioned:
        return None
    return "it is system-versioned: past versions of a row are logged with the row's present key"


def reason_engine_changed(effect: TableEffect) -> str | None:
    before, after = (schema.engine for schema in effect.schemas)
    if before.lower() == after.lower() or {before.lower(), after.lower()} <= _ROW_KEEPING_ENGINES:
        return None
    return f"its engine {before} became {after}"


def reason_values_changed(effect: TableEffect) -> str | None:
    for before, after in effect.column_pairs:
        if before is None:
            continue
        reason = reason_column_values_change(before, after, effect.sql_mode)
        if reason is not None:
            return f"stored values of {after.name} may have changed: {reason}"
    return None


def reason_key_changed(effect: TableEffect) -> str | None:
    origins = dict(zip(effect.schemas[1].names, effect.columns_from, strict=True))
    before, after = (schema.primary_key for schema in effect.schemas)
    if tuple(origins.get(name) for name in after) == before:
        return None
    return f"its primary key was ({', '.join(before)}) and is ({', '.join(after)})"


def reason_values_unknown(effect: TableEffect) -> str | None:
    """Return why only the source knows the values of a new column in existing rows."""
    _, schema = effect.schemas
    row_columns = {column.name: column for column in row_structure(schema).columns}
    for before, after in effect.column_pairs:
        if before is not None:
            continue
        if after.generated is not None:
            return f"the new column {after.name} is generated"
        if after.auto_increment:
            return f"the new column {after.name} is numbered by the server"
        expression = after.default.text if isinstance(after.default, ExpressionDefault) else None
        if expression is not None and not expression.upper().startswith("CURRENT_TIMESTAMP"):
            return f"the new column {after.name} has an expression as default"
        if _is_fill_known(after, row_columns[after.name], effect.moment):
            continue
        if expression is not None:
            return (
                f"the new column {after.name} has a moment in a time zone that the log does not "
                "name"
            )
        return f"the new column {after.name} has a default whose value only the server knows"
    return None


def _is_fill_known(
    column: ColumnSchema, row_column: Column, moment: StatementMoment | None
) -> bool:
    """Return whether the new column's value in existing rows is known. Return True for
    a type that Lockstep does not read: the table is quarantined for its type
    instead."""
    try:
        return fill_of(column, arrow_type(row_column), moment) is not None
    except TableError:
        return True


def reason_shape_changed(effect: TableEffect) -> str | None:
    """Return why the settings that hide, convert or select values have another result
    after the change, so that the table has to be read again. A new column has its
    default in all rows; this matters only if the condition on rows uses the column."""
    for before, after in effect.column_pairs:
        use = effect.column_uses.get(after.name.lower(), ColumnUse())
        if before is None:
            if use.is_in_condition:
                return f"the condition on rows uses the new column {after.name}"
            continue
        if effect.column_uses.get(before.name.lower(), ColumnUse()) != use:
            return f"column {before.name} is now called {after.name}, which is shown in another way"
        if use.is_in_condition and before.name.lower() != after.name.lower():
            return f"the condition on rows uses {after.name}, which was called {before.name}"
        if use.needs_values and _definition(before) != _definition(after):
            return (
                f"column {after.name} was redefined, and it is hidden, converted or used by the "
                "condition on rows"
            )
    return None


def reason_given_shape_changed(
    before: TableSchema, given_schema: TableSchema, renames: Renames, column_uses_of: ColumnUsesOf
) -> str | None:
    """Return `reason_shape_changed` for a structure that a person gives."""
    effect = TableEffect(
        before.name,
        "changed",
        before=before,
        after=given_schema,
        columns_from=match_columns(before, given_schema, renames),
        column_uses={**column_uses_of(before), **column_uses_of(given_schema)},
    )
    return reason_shape_changed(effect)


def _definition(column: ColumnSchema) -> ColumnSchema:
    """Return the column with only those properties on which its values depend."""
    return replace(column, name="", default=None, on_update=False, invisible=False)


def reason_columns_changed(effect: TableEffect) -> str | None:
    """Return a reason if rows have other columns or types. A column that is dropped and
    added again in one statement is a new column, even with the same definition."""
    before, after = (row_structure(schema).columns for schema in effect.schemas)
    is_same = before == after and effect.columns_from == effect.schemas[0].names
    return None if is_same else "its columns changed"


_GROWING_TYPES: Final = frozenset({"datetime", "timestamp", "bit", "vector"})
"""Types whose values all fit in a longer column of the same type."""

_SUBSETS_OF_UTF8MB3: Final = SINGLE_BYTE_CHARSETS | {"ascii", "ucs2"}
"""Character sets whose characters are all in the basic plane, and so in utf8mb3."""

_SUBSETS_OF_UTF8MB4: Final = SINGLE_BYTE_CHARSETS | WIDE_CHARSETS | {"ascii", "utf8mb3"}

_MAX_GROWTH: Final = 3
"""Factor by which the bytes of a text grow at most, if another character set stores it
in UTF-8."""

_MAX_PACKET_BYTES: Final = 1 << 30
"""Largest `max_allowed_packet`, which no value exceeds."""


def reason_column_values_change(
    before: ColumnSchema, after: ColumnSchema, sql_mode: int
) -> str | None:
    """Return how an ALTER TABLE may have changed a column's stored values, in a few
    words; None if it kept them for certain."""
    if after.generated is not None:
        return _generated_reason(before, after)
    if after.auto_increment and not before.auto_increment:
        return "it became AUTO_INCREMENT, which numbers rows that hold 0"
    if before.nullable and not after.nullable:
        if not sql_mode & STRICT:
            return "it became NOT NULL, which turns NULL into a value"
        if after.type == "timestamp":
            return "it became NOT NULL, which turns NULL into the moment of the statement"
    if before.type in INTEGER_BITS and after.type in INTEGER_BITS:
        return _integers_reason(before, after)
    if before.type in CHARACTER_STRINGS and after.type in CHARACTER_STRINGS:
        return _texts_reason(before, after, sql_mode)
    return _other_types_reason(before, after)


def _generated_reason(before: ColumnSchema, after: ColumnSchema) -> str | None:
    if before.generated is None:
        return "it became a generated column"
    if before.generated != after.generated:
        return "it is generated in another way"
    if _value_properties(before) != _value_properties(after):
        return "it is generated as another type"
    return None


def _integers_reason(before: ColumnSchema, after: ColumnSchema) -> str | None:
    added_bits = INTEGER_BITS[after.type] - INTEGER_BITS[before.type]
    fits_all = added_bits >= 0
    if before.unsigned != after.unsigned:
        fits_all = before.unsigned and added_bits > 0
    if fits_all:
        return None
    return f"{_type_words(before)} became {_type_words(after)}, which holds less"


def _texts_reason(before: ColumnSchema, after: ColumnSchema, sql_mode: int) -> str | None:
    if not _is_superset(before.charset or "", after.charset or ""):
        return f"its character set {before.charset} became {after.charset}"
    change = f"{_type_words(before)} became {_type_words(after)}"
    if after.type == "char" and before.type != "char":
        return f"{change}, which keeps no trailing spaces"
    if before.type == "char" and after.type != "char" and sql_mode & PAD_CHAR_TO_FULL_LENGTH:
        return f"{change}, in which PAD_CHAR_TO_FULL_LENGTH keeps the padding"
    if after.type in LOB_SIZES:
        is_shorter = _max_bytes(before, after) > LOB_SIZES[after.type]
    else:
        is_shorter = LOB_SIZES.get(before.type, before.length or 0) > (after.length or 0)
    return f"{change}, which is shorter" if is_shorter else None


def _max_bytes(before: ColumnSchema, after: ColumnSchema) -> int:
    """Return the largest number of bytes of a text of `before` in the character set of
    `after`, which has all its characters."""
    if before.type in LOB_SIZES:
        stored = min(LOB_SIZES[before.type], _MAX_PACKET_BYTES)
    else:
        stored = (before.length or 0) * max_character_bytes(before.charset or "utf8mb4")
    keeps_bytes = before.charset == after.charset or before.charset in UTF8_COMPATIBLE_CHARSETS
    return stored if keeps_bytes else stored * _MAX_GROWTH


def _is_superset(before: str, after: str) -> bool:
    """Return whether the character set `after` has all characters of `before`."""
    if before == after:
        return True
    if after == "utf8mb4":
        return before in _SUBSETS_OF_UTF8MB4
    if after == "utf8mb3":
        return before in _SUBSETS_OF_UTF8MB3
    return before == "ascii" and after in SINGLE_BYTE_CHARSETS | UTF8_CHARSETS


def _other_types_reason(before: ColumnSchema, after: ColumnSchema) -> str | None:
    reason = f"{_type_words(before)} became {_type_words(after)}"
    match before.type, after.type:
        case ("enum", "enum") | ("set", "set"):
            is_appended = after.members[: len(before.members)] == before.members
            # Members in the character set `binary` are decoded as UTF-8.
            is_readable = _is_superset(before.charset or "", after.charset or "") or (
                after.charset == "binary" and before.charset in UTF8_COMPATIBLE_CHARSETS
            )
            if not is_appended:
                return "its members are others, or in another order"
            charset_reason = f"its character set {before.charset} became {after.charset}"
            return None if is_readable else charset_reason
        case (kind, "decimal") if kind == "decimal" or kind in INTEGER_BITS:
            return None if _keeps_digits(before, after) else reason
        case ("float" | "double", "float" | "double"):
            return None if _keeps_floats(before, after) else reason
        case ("date", "datetime"):
            return None
        case (kind, other) if kind == other and kind in _GROWING_TYPES:
            return None if (after.length or 0) >= (before.length or 0) else reason
        case ("binary" | "varbinary" | "tinyblob" | "blob" | "mediumblob" | "longblob", _):
            return None if _keeps_bytes(before, after) else reason
        case (kind, "geometry") if kind in GEOMETRY_TYPES:
            return None
    return None if _value_properties(before) == _value_properties(after) else reason


def _keeps_digits(before: ColumnSchema, after: ColumnSchema) -> bool:
    """Return whether a DECIMAL keeps values of an integer or of another DECIMAL. The
    lake shows a DECIMAL with more digits than Delta's as texts: existing texts would
    keep the former scale."""
    precision, scale = before.precision or 0, before.scale or 0
    if before.type in INTEGER_BITS:
        precision = len(str((1 << INTEGER_BITS[before.type] - (not before.unsigned)) - 1))
    new_precision, new_scale = after.precision or 0, after.scale or 0
    keeps_sign = before.unsigned or not after.unsigned
    if max(precision, new_precision) > MAX_DECIMAL_DIGITS and scale != new_scale:
        return False
    return keeps_sign and new_scale >= scale and new_precision - new_scale >= precision - scale


def _keeps_floats(before: ColumnSchema, after: ColumnSchema) -> bool:
    """Return whether ALTER TABLE keeps values of FLOAT or DOUBLE. A FLOAT(M,D) rounds
    the values of any other type."""
    are_plain = before.precision is None and after.precision is None
    is_same_type = (before.precision, before.scale) == (after.precision, after.scale)
    keeps_sign = before.unsigned or not after.unsigned
    is_narrowed = before.type == "double" and after.type == "float"
    return keeps_sign and not is_narrowed and (are_plain or is_same_type)


def _keeps_bytes(before: ColumnSchema, after: ColumnSchema) -> bool:
    """Return whether ALTER TABLE keeps bytes. A BINARY of another length pads or cuts
    them; the zero bytes that pad a BINARY stay in other types."""
    if before.type == after.type == "binary":
        return before.length == after.length
    if after.type != "varbinary" and after.type not in BLOB_FAMILY:
        return False
    size, new_size = (LOB_SIZES.get(c.type, c.length or 0) for c in (before, after))
    return size <= new_size


def _value_properties(column: ColumnSchema) -> tuple[object, ...]:
    """Return everything on which the column's stored values depend, except an
    expression."""
    digits = column.length, column.precision, column.scale
    signs = column.unsigned, column.zerofill
    return column.type, *digits, *signs, column.charset, column.members


def _type_words(column: ColumnSchema) -> str:
    """Return the type as `decimal(10,2) unsigned`, for messages."""
    sizes = [
        str(size) for size in (column.length, column.precision, column.scale) if size is not None
    ]
    size = f"({','.join(sizes)})" if sizes else ""
    return f"{column.type}{size}{' unsigned' if column.unsigned else ''}"


# -- a structure that a person gave ----------------------------------------------------


def may_rename_columns(text: str, context: StatementContext) -> bool:
    """Return whether a statement may rename columns; True if it cannot be read."""
    try:
        reader = StatementReader(text, context)
    except CannotRead:
        return True
    while not reader.is_over:
        if reader.next().keyword in ("CHANGE", "RENAME"):
            return True
    return False


def match_columns(before: TableSchema, given_schema: TableSchema, renames: Renames) -> ColumnsFrom:
    """Return for each column of `given_schema` its name in `before`, None for a new
    column. A column that the person did not list in `renames` is matched by its
    name."""
    old_names = {new.lower(): old for old, new in renames}
    renamed = {old.lower() for old, _ in renames}
    origins = []
    for column in given_schema.columns:
        folded = column.name.lower()
        if folded in old_names:
            origin = before.column(old_names[folded])
        else:
            origin = None if folded in renamed else before.column(column.name)
        origins.append(None if origin is None else origin.name)
    return tuple(origins)


def reason_renames_refused(
    before: TableSchema, given_schema: TableSchema, renames: Renames
) -> str | None:
    """Return why the columns cannot have been renamed as the person says; None if they
    can."""
    old_names = [old.lower() for old, _ in renames]
    new_names = [new.lower() for _, new in renames]
    for old, new in renames:
        pair = f"{old}={new}"
        if before.column(old) is None:
            names = ", ".join(before.names)
            return f"{pair}: the table had no column {old} where it stopped, only {names}"
        if given_schema.column(new) is None:
            names = ", ".join(given_schema.names)
            return f"{pair}: the given structure has no column {new}, only {names}"
        if old.lower() == new.lower():
            return f"{pair}: a column that keeps its name needs no --rename; leave it out"
        if old_names.count(old.lower()) > 1:
            return f"{old} cannot have become two columns"
        if new_names.count(new.lower()) > 1:
            return f"{new} cannot have been two columns"
        if before.column(new) is not None and new.lower() not in old_names:
            return f"{pair}: there was already a column {new}, and nothing says what became of it"
        if given_schema.column(old) is not None and old.lower() not in new_names:
            return (
                f"{pair}: the given structure has a column {old} as well, and nothing says which "
                "column that was"
            )
    return None


def reason_unclear(
    before: TableSchema, given_schema: TableSchema, renames: Renames, *, may_rename: bool
) -> str | None:
    """Return why the mirror (the Delta table with the current rows) cannot keep its
    rows under the given structure; None if it can. Either it is unclear which column is
    which, or a statement with this change would require reading the table again
    (`consequences`). `may_rename`: the statement before the given structure may have
    renamed columns."""
    if may_rename and not renames:
        return "the statement that stopped it renames, which the given structure does not show"
    origins = match_columns(before, given_schema, renames)
    kept_names = {name for name in origins if name is not None}
    missing = ", ".join(name for name in before.names if name not in kept_names)
    added = ", ".join(
        name for name, origin in zip(given_schema.names, origins, strict=True) if origin is None
    )
    if missing and added:
        return (
            f"the given structure does not say whether {missing} was renamed to {added}, or "
            f"dropped and {added} added"
        )
    change = TableEffect(
        given_schema.name,
        "changed",
        before=before,
        after=given_schema,
        columns_from=origins,
        # The worst mode: it is not strict, and keeps the padding of a CHAR.
        sql_mode=PAD_CHAR_TO_FULL_LENGTH,
    )
    for test in (
        reason_engine_changed,
        reason_values_changed,
        reason_key_changed,
        reason_values_unknown,
    ):
        if reason := test(change):
            return f"with the given structure, {reason}"
    return None
