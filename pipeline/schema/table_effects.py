"""A statement's effect on one table, and the tests that the rules of `consequences`
apply to it.

Each test returns a reason, or None if it does not apply. The main question is whether a
new definition of a column changes stored values, since servers log no row events when
ALTER TABLE changes values. In doubt the answer is yes. The last section compares a
structure that a person gave with the structure before it.

Sources: the MySQL manual, "ALTER TABLE Statement" and "Data Types". Which character set
is a superset of which follows from the code tables of
`pipeline.binlog.values.charsets`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from lockstep.pipeline.schema.collations import SINGLE_BYTE_CHARSETS, UTF8_CHARSETS, WIDE_CHARSETS
from lockstep.pipeline.schema.context import StatementContext
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
from lockstep.pipeline.schema.history import LEFT_OUT_TEXT, USED_BY_CONDITION
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
from lockstep.pipeline.schema.types import arrow_type
from lockstep.pipeline.values.engines import why_refused
from lockstep.pipeline.values.errors import TableError
from lockstep.pipeline.values.table import Column, TableName


@dataclass(frozen=True, slots=True)
class TableEffect:
    """A statement's effect on one table. `kind`: created, dropped, renamed, truncated,
    changed, dirty (rows changed without row events) or not followed. A change has
    `before` and `after`, a new table `after`. `columns_from`: the former name of each
    column. `strict`: the session's sql_mode was strict. `moment`: when the statement
    ran. `treated`: columns, in lower case, that the settings hide or convert, or by
    which they choose rows, each with its treatment in words."""

    table: TableName
    kind: str
    reason: str = ""
    before: TableSchema | None = None
    after: TableSchema | None = None
    columns_from: tuple[str | None, ...] = ()
    strict: bool = True
    moment: StatementMoment | None = None
    treated: Mapping[str, str] = field(default_factory=dict)

    @property
    def schemas(self) -> tuple[TableSchema, TableSchema]:
        """The table's schemas before and after a change."""
        assert self.before is not None
        assert self.after is not None
        return self.before, self.after

    @property
    def pairs(self) -> Iterator[tuple[ColumnSchema | None, ColumnSchema]]:
        """Each column of a changed table before and after; None before for a new
        column."""
        before, after = self.schemas
        for origin, column in zip(self.columns_from, after.columns, strict=True):
            yield (before.column(origin) if origin is not None else None), column


def table_effects(
    effect: Effect,
    *,
    strict: bool,
    moment: StatementMoment | None = None,
    treated: Callable[[TableSchema], Mapping[str, str]] = lambda _: {},
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
            yield TableEffect(table, "dirty", f"{reason} changes rows that the log does not have")
        case NotFollowed(table, reason):
            yield TableEffect(table, "not followed", reason)
        case UnknownTable(table, statement):
            reason = f"{statement}, but its structure was not known"
            yield TableEffect(table, "not followed", reason)
        case Changed(table, before, after, columns_from):
            columns = {**treated(before), **treated(after)}
            yield TableEffect(
                table, "changed", "", before, after, columns_from, strict, moment, columns
            )
        case _:
            return


_ROWS_KEPT: Final = frozenset({"innodb", "myisam", "aria", "rocksdb"})
"""Engines between which ALTER TABLE moves all rows of a table unchanged."""


def engine_refused(effect: TableEffect) -> str | None:
    return None if effect.after is None else why_refused(effect.after.engine)


def versioned(effect: TableEffect) -> str | None:
    return None if effect.after is None else why_versioned(effect.after)


def why_versioned(schema: TableSchema) -> str | None:
    """Return why a system-versioned table is quarantined (not captured until a person
    resumes it); None for any other table."""
    if not schema.system_versioned:
        return None
    return "it is system-versioned: rows of the past are logged under the key of the present one"


def engine_changed(effect: TableEffect) -> str | None:
    before, after = (schema.engine for schema in effect.schemas)
    if before.lower() == after.lower() or {before.lower(), after.lower()} <= _ROWS_KEPT:
        return None
    return f"its engine {before} became {after}"


def values_changed(effect: TableEffect) -> str | None:
    for before, after in effect.pairs:
        if before is not None and (why := why_values_change(before, after, strict=effect.strict)):
            return f"stored values of {after.name} may have changed: {why}"
    return None


def key_changed(effect: TableEffect) -> str | None:
    origins = dict(zip(effect.schemas[1].names, effect.columns_from, strict=True))
    before, after = (schema.primary_key for schema in effect.schemas)
    if tuple(origins.get(name) for name in after) == before:
        return None
    return f"its primary key was ({', '.join(before)}) and is ({', '.join(after)})"


def differs_per_row(effect: TableEffect) -> str | None:
    """Return why only the source knows the values of a new column in existing rows."""
    _, schema = effect.schemas
    decoded = {column.name: column for column in row_structure(schema).columns}
    for before, after in effect.pairs:
        if before is not None:
            continue
        if after.generated is not None:
            return f"the new column {after.name} is generated"
        if after.auto_increment:
            return f"the new column {after.name} is numbered by the server"
        expression = after.default.text if isinstance(after.default, ExpressionDefault) else None
        if expression is not None and not expression.upper().startswith("CURRENT_TIMESTAMP"):
            return f"the new column {after.name} has a default that differs per row"
        if _is_known(after, decoded[after.name], effect.moment):
            continue
        if expression is not None:
            return (
                f"the new column {after.name} has a moment in a time zone that the log does not "
                "name"
            )
        return f"the new column {after.name} has a default whose value only the server knows"
    return None


def _is_known(column: ColumnSchema, decoded: Column, moment: StatementMoment | None) -> bool:
    """Return whether the new column's value in existing rows is known. Return True for
    a type that Lockstep does not read: the table is quarantined for its type
    instead."""
    try:
        return fill_of(column, arrow_type(decoded), moment) is not None
    except TableError:
        return True


def shape_changed(effect: TableEffect) -> str | None:
    """Return why the settings that hide, convert or select values have another result
    after the change, so that the table has to be read again. A new column has its
    default in all rows; this matters only if the condition on rows uses the column."""
    for before, after in effect.pairs:
        now = effect.treated.get(after.name.lower(), "")
        if before is None:
            if USED_BY_CONDITION in now:
                return f"the condition on rows uses the new column {after.name}"
            continue
        if effect.treated.get(before.name.lower(), "") != now:
            return f"column {before.name} is now called {after.name}, which is shown in another way"
        if USED_BY_CONDITION in now and before.name.lower() != after.name.lower():
            return f"the condition on rows uses {after.name}, which was called {before.name}"
        if now and now != LEFT_OUT_TEXT and _definition(before) != _definition(after):
            return f"column {after.name} was redefined, and the lake does not show it as it is"
    return None


def _definition(column: ColumnSchema) -> ColumnSchema:
    """Return the column with only those properties on which its values depend."""
    return replace(column, name="", default=None, on_update=False, invisible=False)


def columns_changed(effect: TableEffect) -> str | None:
    """Return a reason if rows have other columns or types. A column that is dropped and
    added again in one statement is a new column, even with the same definition."""
    before, after = (row_structure(schema).columns for schema in effect.schemas)
    kept = before == after and effect.columns_from == effect.schemas[0].names
    return None if kept else "its columns changed"


_GROW: Final = frozenset({"datetime", "timestamp", "bit", "vector"})
"""Types whose values all fit in a longer column of the same type."""

_PRINTED_DIGITS: Final = 38
"""A DECIMAL with more digits is a text in the lake, which shows all digits of its
scale."""

_IN_UTF8MB3: Final = SINGLE_BYTE_CHARSETS | {"ascii", "ucs2"}
"""Character sets whose characters are all in the basic plane, and so in utf8mb3."""

_AS_BYTES: Final = frozenset({"utf8mb4", "utf8mb3", "ascii"})
"""Character sets whose bytes are valid UTF-8. Members of ENUM and SET in the character
set `binary` are decoded as UTF-8."""

_IN_UTF8MB4: Final = SINGLE_BYTE_CHARSETS | WIDE_CHARSETS | {"ascii", "utf8mb3"}


def why_values_change(before: ColumnSchema, after: ColumnSchema, *, strict: bool) -> str | None:
    """Return how an ALTER TABLE may have changed a column's stored values, in a few
    words; None if it kept them for certain. `strict`: the session's sql_mode refused
    invalid values."""
    if before.generated is not None or after.generated is not None:
        return _generated(before, after)
    if after.auto_increment and not before.auto_increment:
        return "it became AUTO_INCREMENT, which numbers rows that hold 0"
    if before.nullable and not after.nullable and not strict:
        return "it became NOT NULL, which turns NULL into a value"
    if before.nullable and not after.nullable and after.type == "timestamp":
        return "it became NOT NULL, which turns NULL into the moment of the statement"
    if before.type in INTEGER_BITS and after.type in INTEGER_BITS:
        return _integers(before, after)
    if before.type in INTEGER_BITS and after.type == "decimal":
        return _integer_as_decimal(before, after)
    if before.type in CHARACTER_STRINGS and after.type in CHARACTER_STRINGS:
        return _texts(before, after)
    return _others(before, after)


def _generated(before: ColumnSchema, after: ColumnSchema) -> str | None:
    if after.generated is None:
        return _others(before, after)
    if before.generated is None:
        return "it became a generated column"
    if before.generated != after.generated:
        return "it is generated in another way"
    if _kind(before) != _kind(after):
        return "it is generated as another type"
    return None


def _integers(before: ColumnSchema, after: ColumnSchema) -> str | None:
    grown = INTEGER_BITS[after.type] - INTEGER_BITS[before.type]
    fits = grown >= 0 if before.unsigned == after.unsigned else grown > 0 and before.unsigned
    return None if fits else f"{_words(before)} became {_words(after)}, which holds less"


def _integer_as_decimal(before: ColumnSchema, after: ColumnSchema) -> str | None:
    room = (after.precision or 0) - (after.scale or 0)
    signs = before.unsigned or not after.unsigned
    largest = (1 << INTEGER_BITS[before.type] - (not before.unsigned)) - 1
    if signs and room >= len(str(largest)):
        return None
    return f"{_words(before)} became {_words(after)}, which holds less"


def _texts(before: ColumnSchema, after: ColumnSchema) -> str | None:
    if not _superset(before.charset or "", after.charset or ""):
        return f"its character set {before.charset} became {after.charset}"
    if after.type == "char" and before.type != "char":
        return f"{_words(before)} became {_words(after)}, which keeps no trailing spaces"
    if _characters(before) > _characters(after):
        return f"{_words(before)} became {_words(after)}, which is shorter"
    return None


def _superset(before: str, after: str) -> bool:
    """Return whether the character set `after` has all characters of `before`."""
    if before == after:
        return True
    if after == "utf8mb4":
        return before in _IN_UTF8MB4
    if after == "utf8mb3":
        return before in _IN_UTF8MB3
    return before == "ascii" and after in SINGLE_BYTE_CHARSETS | UTF8_CHARSETS


def _characters(column: ColumnSchema) -> int:
    """Return how many characters the column holds. For TEXT types this is a number of
    bytes, since a conversion that needs more bytes enlarges the type
    (`column_changes.converted`)."""
    return LOB_SIZES.get(column.type, column.length or 0)


def _others(before: ColumnSchema, after: ColumnSchema) -> str | None:
    changed = f"{_words(before)} became {_words(after)}"
    match before.type, after.type:
        case ("enum", "enum") | ("set", "set"):
            appended = after.members[: len(before.members)] == before.members
            readable = _superset(before.charset or "", after.charset or "") or (
                after.charset == "binary" and before.charset in _AS_BYTES
            )
            kept = appended and readable
            return None if kept else "its members are others, or in another order"
        case ("decimal", "decimal"):
            return None if _digits_kept(before, after) else changed
        case ("float" | "double", "float" | "double"):
            return None if _floats_kept(before, after) else changed
        case ("date", "datetime"):
            return None
        case (kind, other) if kind == other and kind in _GROW:
            return None if (after.length or 0) >= (before.length or 0) else changed
        case ("binary" | "varbinary" | "tinyblob" | "blob" | "mediumblob" | "longblob", _):
            return None if _bytes_kept(before, after) else changed
        case (kind, "geometry") if kind in GEOMETRY_TYPES:
            return None
    return None if _kind(before) == _kind(after) else changed


def _digits_kept(before: ColumnSchema, after: ColumnSchema) -> bool:
    precision, scale = before.precision or 0, before.scale or 0
    wider, longer = after.precision or 0, after.scale or 0
    signs = before.unsigned or not after.unsigned
    if max(precision, wider) > _PRINTED_DIGITS and scale != longer:
        return False
    return signs and longer >= scale and wider - longer >= precision - scale


def _floats_kept(before: ColumnSchema, after: ColumnSchema) -> bool:
    """Return whether ALTER TABLE keeps values of FLOAT or DOUBLE. FLOAT(M,D) rounds all
    others."""
    plain = before.precision is None and after.precision is None
    same = (before.precision, before.scale) == (after.precision, after.scale)
    signs = before.unsigned or not after.unsigned
    return signs and (plain or same) and not (before.type == "double" and after.type == "float")


def _bytes_kept(before: ColumnSchema, after: ColumnSchema) -> bool:
    """Return whether ALTER TABLE keeps bytes. A BINARY of another length pads or cuts
    them; the zero bytes that pad a BINARY stay in other types."""
    if before.type == after.type == "binary":
        return before.length == after.length
    if after.type != "varbinary" and after.type not in BLOB_FAMILY:
        return False
    room = [LOB_SIZES.get(column.type, column.length or 0) for column in (before, after)]
    return room[0] <= room[1]


def _kind(column: ColumnSchema) -> tuple[object, ...]:
    """Return everything on which the column's stored values depend, except an
    expression."""
    digits = column.length, column.precision, column.scale
    signs = column.unsigned, column.zerofill
    return column.type, *digits, *signs, column.charset, column.members


def _words(column: ColumnSchema) -> str:
    """Return the type as `decimal(10,2) unsigned`, for messages."""
    sizes = [
        str(size) for size in (column.length, column.precision, column.scale) if size is not None
    ]
    size = f"({','.join(sizes)})" if sizes else ""
    return f"{column.type}{size}{' unsigned' if column.unsigned else ''}"


# -- a structure that a person gave ---------------------------------------------------------

Renames = Sequence[tuple[str, str]]
"""Columns that a person says were renamed: old and new names."""


def may_rename_columns(text: str, context: StatementContext) -> bool:
    """Return whether a statement may rename columns; True if it cannot be read."""
    try:
        reader = StatementReader(text, context)
    except CannotRead:
        return True
    while not reader.over:
        if reader.next().keyword in ("CHANGE", "RENAME"):
            return True
    return False


def columns_from(before: TableSchema, given: TableSchema, renames: Renames) -> ColumnsFrom:
    """Return for each column of `given` its name in `before`, None for a new column. A
    column that the person did not list in `renames` is matched by its name."""
    old_names = {new.lower(): old for old, new in renames}
    renamed = {old.lower() for old, _ in renames}
    origins = []
    for column in given.columns:
        folded = column.name.lower()
        if folded in old_names:
            origin = before.column(old_names[folded])
        else:
            origin = None if folded in renamed else before.column(column.name)
        origins.append(None if origin is None else origin.name)
    return tuple(origins)


def why_renames_refused(before: TableSchema, given: TableSchema, renames: Renames) -> str | None:
    """Return why the columns cannot have been renamed as the person says; None if they
    can."""
    olds = [old.lower() for old, _ in renames]
    news = [new.lower() for _, new in renames]
    for old, new in renames:
        pair = f"{old}={new}"
        if before.column(old) is None:
            names = ", ".join(before.names)
            return f"{pair}: the table had no column {old} where it stopped, only {names}"
        if given.column(new) is None:
            names = ", ".join(given.names)
            return f"{pair}: the given structure has no column {new}, only {names}"
        if old.lower() == new.lower():
            return f"{pair}: a column that keeps its name needs no --rename; leave it out"
        if olds.count(old.lower()) > 1:
            return f"{old} cannot have become two columns"
        if news.count(new.lower()) > 1:
            return f"{new} cannot have been two columns"
        if before.column(new) is not None and new.lower() not in olds:
            return f"{pair}: there was already a column {new}, and nothing says what became of it"
        if given.column(old) is not None and old.lower() not in news:
            return (
                f"{pair}: the given structure has a column {old} as well, and nothing says which "
                "column that was"
            )
    return None


def why_unclear(
    before: TableSchema, given: TableSchema, renames: Renames = (), *, renaming: bool
) -> str | None:
    """Return why the mirror (the Delta table with the current rows) cannot keep its
    rows under the given structure; None if it can. Either it is unclear which column is
    which, or a statement with this change would require reading the table again
    (`consequences`). `renaming`: the statement before the given structure may have
    renamed columns."""
    if renaming and not renames:
        return "the statement that stopped it renames, which the given structure does not show"
    origins = columns_from(before, given, renames)
    kept = {name for name in origins if name is not None}
    missing = [name for name in before.names if name not in kept]
    new = [name for name, origin in zip(given.names, origins, strict=True) if origin is None]
    if missing and new:
        return (
            f"by the structure given, {', '.join(missing)} may have been renamed to "
            f"{', '.join(new)}, or dropped and {', '.join(new)} added"
        )
    change = TableEffect(given.name, "changed", "", before, given, origins, strict=False)
    for test in (engine_changed, values_changed, key_changed, differs_per_row):
        if why := test(change):
            return f"by the structure given, {why}"
    return None
