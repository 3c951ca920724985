"""What a statement did to one table, and what of it concerns the rows that are stored.

Belongs here: an effect as the rules see it, and the questions that rules ask of a
change; each answers why, or None. Among them, whether a change of a column's definition
changes the values that its rows hold, as the server's ALTER TABLE makes it; and which
column of a structure that a person gave is which of the structure before. Does not:
what follows (`consequences`), what the statement does to the structure (`evolve`).

A server writes no row event for what ALTER TABLE does to values. So a change counts as
value-preserving only where it cannot do anything else; in doubt it is not.

Sources: the MySQL manual, "ALTER TABLE Statement" and "Data Types"; the code tables
behind "superset" are those of `pipeline.binlog.text.charsets`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Final

from pipeline.engines import why_refused
from pipeline.errors import TableError
from pipeline.schema.collations import SINGLE_BYTE, UTF8, WIDE
from pipeline.schema.context import StatementContext
from pipeline.schema.evolving.effects import (
    Changed,
    Created,
    Dirty,
    Dropped,
    Effect,
    NotFollowed,
    Renamed,
    Truncated,
    UnknownTable,
)
from pipeline.schema.fills import StatementMoment, fill_of
from pipeline.schema.model import (
    BLOBS,
    GEOMETRIES,
    INTEGER_BITS,
    LARGE,
    TEXTS,
    ColumnSchema,
    ExpressionDefault,
    TableSchema,
)
from pipeline.schema.rows import row_structure
from pipeline.schema.statements.reader import CannotRead, StatementReader
from pipeline.schema.tracker import ColumnsFrom
from pipeline.schema.treatments import LEFT_OUT, ROWS_BY
from pipeline.schema.types import arrow_type
from pipeline.table import Column, TableName

NOT_TREATED: Final[Mapping[str, str]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Happened:
    """One table's part of a statement. `before` and `after` are there for a change, `after`
    for a new table; `strict` is of the session's sql_mode; `moment`: when the statement ran.
    `treated`: columns, in lower case, that the lake does not show as they are or by which it takes
    rows, each with what becomes of it."""

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
        assert self.before is not None
        assert self.after is not None
        return self.before, self.after

    @property
    def pairs(self) -> Iterator[tuple[ColumnSchema | None, ColumnSchema]]:
        before, after = self.schemas
        for origin, column in zip(self.columns_from, after.columns, strict=True):
            yield (before.column(origin) if origin is not None else None), column


def happened(
    effect: Effect,
    *,
    strict: bool,
    moment: StatementMoment | None = None,
    treated: Callable[[TableSchema], Mapping[str, str]] = lambda _: NOT_TREATED,
) -> Iterator[Happened]:
    """An effect as the rules see it, for each table it concerns."""
    match effect:
        case Created(table, after):
            yield Happened(table, "created", after=after)
        case Dropped(table):
            yield Happened(table, "dropped")
        case Renamed(table, to):
            yield Happened(table, "dropped", f"it is now called {to}")
            yield Happened(to, "renamed", f"it was called {table}")
        case Truncated(table):
            yield Happened(table, "truncated")
        case Dirty(table, reason):
            yield Happened(table, "dirty", f"{reason} changes rows that the log does not have")
        case NotFollowed(table, reason):
            yield Happened(table, "not followed", reason)
        case UnknownTable(table, statement):
            yield Happened(table, "not followed", f"{statement}, but its structure was not known")
        case Changed(table, before, after, columns_from):
            both = {**treated(before), **treated(after)}
            yield Happened(table, "changed", "", before, after, columns_from, strict, moment, both)
        case _:
            return


_ROWS_KEPT: Final = frozenset({"innodb", "myisam", "aria", "rocksdb"})
"""Engines that keep rows when a table changes from one to the other."""


def engine_refused(event: Happened) -> str | None:
    return None if event.after is None else why_refused(event.after.engine)


def versioned(event: Happened) -> str | None:
    return None if event.after is None else why_versioned(event.after)


def why_versioned(schema: TableSchema) -> str | None:
    """Return why a system-versioned table is quarantined; None for any other table."""
    if not schema.system_versioned:
        return None
    return "it is system-versioned: rows of the past are logged under the key of the present one"


def engine_changed(event: Happened) -> str | None:
    before, after = (schema.engine for schema in event.schemas)
    if before.lower() == after.lower() or {before.lower(), after.lower()} <= _ROWS_KEPT:
        return None
    return f"its engine {before} became {after}"


def values_changed(event: Happened) -> str | None:
    for before, after in event.pairs:
        if before is not None and (why := why_values_change(before, after, strict=event.strict)):
            return f"stored values of {after.name} may have changed: {why}"
    return None


def key_changed(event: Happened) -> str | None:
    origin = dict(zip((c.name for c in event.schemas[1].columns), event.columns_from, strict=True))
    before, after = (schema.primary_key for schema in event.schemas)
    if tuple(origin.get(name) for name in after) == before:
        return None
    return f"its primary key was ({', '.join(before)}) and is ({', '.join(after)})"


def differs_per_row(event: Happened) -> str | None:
    _, schema = event.schemas
    structure = row_structure(schema)
    kinds = {column.name: column for column in structure.columns}
    for before, after in event.pairs:
        if before is not None:
            continue
        if after.generated is not None:
            return f"the new column {after.name} is generated"
        if after.auto_increment:
            return f"the new column {after.name} is numbered by the server"
        expression = after.default.text if isinstance(after.default, ExpressionDefault) else None
        if expression is not None and not expression.upper().startswith("CURRENT_TIMESTAMP"):
            return f"the new column {after.name} has a default that differs per row"
        if _is_known(after, kinds[after.name], event.moment):
            continue
        if expression is not None:
            return f"the new column {after.name} has a moment of a zone that the log does not name"
        return f"the new column {after.name} has a default whose value only the server knows"
    return None


def _is_known(column: ColumnSchema, decoded: Column, moment: StatementMoment | None) -> bool:
    """Whether the lake can tell what the rows got; of a type that it does not read it says so
    elsewhere."""
    try:
        return fill_of(column, arrow_type(decoded), moment) is not None
    except TableError:
        return True


def shape_concerned(event: Happened) -> str | None:
    """Whether the lake has to be told again what it shows of a column. A new column is shown with
    its default, unless rows are taken by it."""
    for before, after in event.pairs:
        now = event.treated.get(after.name.lower(), "")
        if before is None:
            if ROWS_BY in now:
                return f"rows are taken by the new column {after.name}"
            continue
        if event.treated.get(before.name.lower(), "") != now:
            return f"column {before.name} is now called {after.name}, which is shown otherwise"
        if ROWS_BY in now and before.name.lower() != after.name.lower():
            return f"rows are taken by {after.name}, which was called {before.name}"
        if now and now != LEFT_OUT and _definition(before) != _definition(after):
            return f"column {after.name} was redefined, of which the lake shows something else"
    return None


def _definition(column: ColumnSchema) -> ColumnSchema:
    """What its values depend on."""
    return replace(column, name="", default=None, on_update=False, invisible=False)


def columns_changed(event: Happened) -> str | None:
    """Its rows have other columns, or other types. One that goes and comes again in the same
    statement is another, however much it looks like the old one."""
    before, after = (row_structure(schema).columns for schema in event.schemas)
    names = tuple(column.name for column in event.schemas[0].columns)
    return "its columns changed" if before != after or event.columns_from != names else None


_GROW: Final = frozenset({"datetime", "timestamp", "bit", "vector"})
"""Types of which a longer one holds every value of a shorter one."""

_WHOLE_DIGITS: Final = {
    ("tinyint", False): 3,
    ("tinyint", True): 3,
    ("smallint", False): 5,
    ("smallint", True): 5,
    ("mediumint", False): 7,
    ("mediumint", True): 8,
    ("int", False): 10,
    ("int", True): 10,
    ("bigint", False): 19,
    ("bigint", True): 20,
}
"""Decimal digits that every value of an integer type, signed or UNSIGNED, has room in."""

_PRINTED_DIGITS: Final = 38
"""A DECIMAL of more digits is text in the lake, with all its digits behind the point."""

_IN_UTF8MB3: Final = SINGLE_BYTE | {"ascii", "ucs2"}
"""Character sets whose every character is in the basic plane, and so in utf8mb3."""

_AS_BYTES: Final = frozenset({"utf8mb4", "utf8mb3", "ascii"})
"""Sets whose bytes are those of UTF-8, in which members of bytes are kept here."""

_IN_UTF8MB4: Final = SINGLE_BYTE | WIDE | {"ascii", "utf8mb3"}


def why_values_change(before: ColumnSchema, after: ColumnSchema, *, strict: bool) -> str | None:
    """What an ALTER may have done to a column's stored values, in a few words; None where
    it can have done nothing. `strict`: the session's sql_mode refused bad values."""
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
    if _is_text(before) and _is_text(after):
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
    if signs and room >= _WHOLE_DIGITS[before.type, before.unsigned]:
        return None
    return f"{_words(before)} became {_words(after)}, which holds less"


def _is_text(column: ColumnSchema) -> bool:
    return column.type in ("char", "varchar") or column.type in TEXTS


def _texts(before: ColumnSchema, after: ColumnSchema) -> str | None:
    if not _superset(before.charset or "", after.charset or ""):
        return f"its character set {before.charset} became {after.charset}"
    if after.type == "char" and before.type != "char":
        return f"{_words(before)} became {_words(after)}, which keeps no trailing spaces"
    if _characters(before) > _characters(after):
        return f"{_words(before)} became {_words(after)}, which is shorter"
    return None


def _superset(before: str, after: str) -> bool:
    if before == after:
        return True
    if after == "utf8mb4":
        return before in _IN_UTF8MB4
    if after == "utf8mb3":
        return before in _IN_UTF8MB3
    return before == "ascii" and after in SINGLE_BYTE | UTF8


def _characters(column: ColumnSchema) -> int:
    """So many characters it surely holds; the TEXT family counts bytes, but a conversion
    that needs more makes the column's type larger (`converted`) and is compared as such."""
    return LARGE.get(column.type, column.length or 0)


def _others(before: ColumnSchema, after: ColumnSchema) -> str | None:
    changed = f"{_words(before)} became {_words(after)}"
    match before.type, after.type:
        case ("enum", "enum") | ("set", "set"):
            kept = after.members[: len(before.members)] == before.members
            same_set = _superset(before.charset or "", after.charset or "") or (
                after.charset == "binary" and before.charset in _AS_BYTES
            )
            return None if kept and same_set else "its members are others, or in another order"
        case ("decimal", "decimal"):
            return None if _digits_kept(before, after) else changed
        case ("float" | "double", "float" | "double"):
            return None if _floats_kept(before, after) else changed
        case ("date", "datetime"):
            return None
        case (one, other) if one == other and one in _GROW:
            return None if (after.length or 0) >= (before.length or 0) else changed
        case ("binary" | "varbinary" | "tinyblob" | "blob" | "mediumblob" | "longblob", _):
            return None if _bytes_kept(before, after) else changed
        case (one, "geometry") if one in GEOMETRIES:
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
    """FLOAT(M,D) rounds, so only columns without digits count."""
    plain = before.precision is None and after.precision is None
    same = (before.precision, before.scale) == (after.precision, after.scale)
    signs = before.unsigned or not after.unsigned
    return signs and (plain or same) and not (before.type == "double" and after.type == "float")


def _bytes_kept(before: ColumnSchema, after: ColumnSchema) -> bool:
    """BINARY keeps its padding as any other bytes; only a longer BINARY pads further."""
    if before.type == after.type == "binary":
        return before.length == after.length
    if after.type != "varbinary" and after.type not in BLOBS:
        return False
    room = [LARGE.get(column.type, column.length or 0) for column in (before, after)]
    return room[0] <= room[1]


def _kind(column: ColumnSchema) -> tuple[object, ...]:
    digits = column.length, column.precision, column.scale
    signs = column.unsigned, column.zerofill
    return column.type, *digits, *signs, column.charset, column.members


def _words(column: ColumnSchema) -> str:
    sizes = [one for one in (column.length, column.precision, column.scale) if one is not None]
    size = f"({','.join(map(str, sizes))})" if sizes else ""
    return f"{column.type}{size}{' unsigned' if column.unsigned else ''}"


Renames = Sequence[tuple[str, str]]
"""A person's word: the name that a column had, and the name that it has."""


def may_rename_columns(text: str, context: StatementContext) -> bool:
    try:
        reader = StatementReader(text, context)
    except CannotRead:
        return True
    while not reader.over:
        if reader.next().keyword in ("CHANGE", "RENAME"):
            return True
    return False


def columns_from(before: TableSchema, given: TableSchema, renames: Renames) -> ColumnsFrom:
    """For each column of `given` its name in `before`, None for a new one: by what the person
    said, and else by its name."""
    was = {new.lower(): old for old, new in renames}
    gone = {old.lower() for old, _ in renames}
    found = []
    for column in given.columns:
        folded = column.name.lower()
        same = None if folded in gone and folded not in was else before.column(column.name)
        old = before.column(was[folded]) if folded in was else same
        found.append(None if old is None else old.name)
    return tuple(found)


def why_renames_refused(before: TableSchema, given: TableSchema, renames: Renames) -> str | None:
    """Why what a person says of columns cannot be; None where it can."""
    olds = [old.lower() for old, _ in renames]
    news = [new.lower() for _, new in renames]
    for old, new in renames:
        said = f"{old}={new}"
        if before.column(old) is None:
            there = ", ".join(column.name for column in before.columns)
            return f"{said}: the table had no column {old} where it stopped, only {there}"
        if given.column(new) is None:
            there = ", ".join(column.name for column in given.columns)
            return f"{said}: the given structure has no column {new}, only {there}"
        if old.lower() == new.lower():
            return f"{said}: a column that keeps its name needs no --rename; leave it out"
        if olds.count(old.lower()) > 1:
            return f"{old} cannot have become two columns"
        if news.count(new.lower()) > 1:
            return f"{new} cannot have been two columns"
        if before.column(new) is not None and new.lower() not in olds:
            return f"{said}: there was already a column {new}, and nothing says what became of it"
        if given.column(old) is not None and old.lower() not in news:
            return (
                f"{said}: the given structure has a column {old} as well, and nothing says which "
                "column that was"
            )
    return None


def why_unclear(
    before: TableSchema, given: TableSchema, renames: Renames = (), *, renaming: bool
) -> str | None:
    """Why rows of before cannot go on under the structure given: it is not told which column is
    which, or the rules of statements (`consequences`) have them read for such a change.
    `renaming`: the statement between the two may have given columns other names."""
    if renaming and not renames:
        return "the statement that stopped it renames, which the given structure does not show"
    origins = columns_from(before, given, renames)
    stays = {name for name in origins if name is not None}
    gone = [column.name for column in before.columns if column.name not in stays]
    new = [
        column.name for column, origin in zip(given.columns, origins, strict=True) if origin is None
    ]
    if gone and new:
        return (
            f"by the structure given {', '.join(gone)} may have become {', '.join(new)}, or have "
            "gone while that is new"
        )
    change = Happened(given.name, "changed", "", before, given, origins, strict=False)
    for test in (engine_changed, values_changed, key_changed, differs_per_row):
        if why := test(change):
            return f"by the structure given, {why}"
    return None
