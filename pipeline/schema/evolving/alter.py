"""ALTER TABLE on a known table → the table after it.

Belongs here: all clauses of one statement at once, as `mysql_prepare_alter_table` in
MySQL's `sql/sql_table.cc` does it: columns that stay, in their places; columns that move
or are new, in the statement's order; then the keys. Before that the clauses are sorted by what
they concern: IF [NOT] EXISTS, and whether what a clause names is there. Which column is which is
told by its name before. Does not: types and defaults (`column_changes`), new keys (`keys`), RENAME
and clauses that change rows (`pipeline.schema.evolve`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from pipeline.schema.context import ServerDialect, StatementContext
from pipeline.schema.evolving.column_changes import (
    Charset,
    beside_convert,
    chosen,
    converted,
    converted_text,
    resolve_column,
    with_timestamps,
    with_zero_moments,
)
from pipeline.schema.evolving.create import (
    inherited_charset,
    kept_by,
    key_of,
    resolve_references,
    session_charset,
    split,
)
from pipeline.schema.evolving.defaults import resolve_default
from pipeline.schema.evolving.effects import CannotFollow
from pipeline.schema.evolving.keys import (
    WITH_PREFIX,
    in_key,
    pending_key,
    resolve_keys,
    with_key_columns,
)
from pipeline.schema.hidden_columns import appended, expressions, kept, numbered, with_hidden
from pipeline.schema.model import (
    LARGE,
    ColumnSchema,
    ExpressionDefault,
    ForeignKey,
    HiddenColumn,
    KeyPart,
    KeySchema,
    ServerSchema,
    TableSchema,
)
from pipeline.schema.statements.changes import (
    FIRST,
    AddElement,
    AlterDefault,
    Clause,
    ConvertCharset,
    DefineColumn,
    Drop,
    Element,
    Part,
    Rename,
    RenameTo,
    SetOptions,
    SetVisibility,
    WrittenColumn,
    WrittenKey,
    WrittenOptions,
    WrittenPeriod,
    WrittenReference,
)


def altered(
    table: TableSchema,
    clauses: tuple[Clause, ...],
    schema: ServerSchema,
    context: StatementContext,
) -> tuple[TableSchema, Mapping[str, str], tuple[str | None, ...]]:
    """The table after all clauses; its columns' new names by the old ones in lower case; for each
    column its name before, None for a new one. CannotFollow for a clause that does not fit it."""
    _check_rename(table, clauses, context)
    plan = planned(table, clauses, context.facts)
    convert = _converted_to(table, plan, schema, context)
    charset = _charset(table, plan, convert, context)
    options = plan.options
    engine = options.engine or table.engine
    written = [change.column for change in plan.defined]
    if convert is not None:
        written = [beside_convert(column, charset, convert, context) for column in written]
    new = [resolve_column(column, charset, context) for column in written]
    placed, hidden = placed_columns(table, plan, new, convert, context)
    defined = {column.name.lower() for column in new}
    kept = {column.name.lower() for column in table.columns if not column.nullable} - defined
    columns = with_timestamps((placement.column for placement in placed), defined, context)
    names = {
        placement.before.lower(): placement.column.name
        for placement in placed
        if placement.before is not None and placement.before != placement.column.name
    }
    keys = kept_keys(table, plan, placed)
    pending, references = split(tuple(plan.elements), context)
    made = [*map(pending_key, keys), *pending]
    row_format = options.row_format or table.row_format
    resolved = resolve_keys(made, columns, engine, context.facts, row_format)
    foreign: tuple[ForeignKey, ...] = ()
    if kept_by(engine):
        foreign = _references(table, plan, names) + resolve_references(
            references, table.name, table.foreign_keys, columns, schema, context
        )
    after = replace(
        table,
        columns=with_zero_moments(with_key_columns(columns, resolved, plan.periods), kept, context),
        keys=resolved,
        foreign_keys=foreign,
        charset=None if charset is None else charset.name,
        collation=None if charset is None else charset.collation,
        engine=engine,
        row_format=row_format,
        partitioned=table.partitioned if options.partitioned is None else options.partitioned,
        system_versioned=(
            table.system_versioned if options.system_versioned is None else options.system_versioned
        ),
        hidden=_with_new_keys(hidden, keys, resolved, len(placed), context),
    )
    return after, names, tuple(placement.before for placement in placed)


@dataclass(slots=True)
class AlterPlan:
    """A statement's clauses, sorted by what they concern; names in lower case.
    `convert_again`: before CONVERT TO it names a character set, of which nothing is left."""

    defined: list[DefineColumn] = field(default_factory=list)
    elements: list[Element] = field(default_factory=list)
    periods: list[WrittenPeriod] = field(default_factory=list)
    dropped: set[str] = field(default_factory=set)
    renamed: dict[str, str] = field(default_factory=dict)
    altered: dict[str, list[AlterDefault | SetVisibility]] = field(default_factory=dict)
    dropped_keys: set[str] = field(default_factory=set)
    dropped_references: set[str] = field(default_factory=set)
    renamed_keys: dict[str, str] = field(default_factory=dict)
    key_visibility: dict[str, bool] = field(default_factory=dict)
    options: WrittenOptions = field(default_factory=WrittenOptions)
    convert: ConvertCharset | None = None
    convert_again: bool = False


def planned(table: TableSchema, clauses: tuple[Clause, ...], facts: ServerDialect) -> AlterPlan:
    """All clauses; CannotFollow where one names what is not there."""
    plan = AlterPlan()
    for clause in clauses:
        _sort(clause, table, plan, facts)
    placed = {
        change.column.name.lower()
        for change in plan.defined
        if change.old is None or change.after is not None
    }
    for name in plan.altered:
        if name not in placed and (table.column(name) is None or name in plan.dropped):
            raise CannotFollow(f"it alters the column {name}, which is not there")
    return plan


def _sort(clause: Clause, table: TableSchema, plan: AlterPlan, facts: ServerDialect) -> None:
    match clause:
        case DefineColumn(None, column, _, if_not_exists):
            added = {change.column.name.lower() for change in plan.defined}
            there = table.column(column.name) is not None or column.name.lower() in added
            if if_not_exists and there:
                # The key that stands with it is added all the same.
                plan.elements += _own_key(column, table, plan)
                return
            plan.defined.append(clause)
            plan.elements.append(_unless_keyed(column, table, plan) if if_not_exists else column)
        case DefineColumn(str(old), column, _, if_exists):
            if _missing(table, old, if_exists):
                return
            plan.defined.append(clause)
            plan.elements.append(_unless_keyed(column, table, plan) if if_exists else column)
        case Drop(Part.COLUMN, name, if_exists):
            if not _missing(table, name, if_exists):
                plan.dropped.add(name.lower())
        case Rename(Part.COLUMN, old, new, if_exists):
            if not _missing(table, old, if_exists):
                plan.renamed[old.lower()] = new
        case AlterDefault(name, _, if_exists):
            if not if_exists or table.column(name) is not None:
                plan.altered.setdefault(name.lower(), []).append(clause)
        case SetVisibility(Part.COLUMN, name):
            plan.altered.setdefault(name.lower(), []).append(clause)
        case ConvertCharset():
            before = plan.options.charset, plan.options.collation, plan.convert
            plan.convert_again = any(one is not None for one in before)
            plan.options = replace(plan.options, charset=None, collation=None)
            plan.convert = clause
        case SetOptions(options):
            plan.options = merged(plan.options, options, facts)
        case _:
            _sort_key(clause, table, plan)


def _own_key(column: WrittenColumn, table: TableSchema, plan: AlterPlan) -> list[WrittenKey]:
    """The key a definition behind IF [NOT] EXISTS asks for, unless it is there."""
    if column.key is None:
        return []
    key = key_of(column)
    return [] if _is_there(key, table, plan) else [key]


def _unless_keyed(column: WrittenColumn, table: TableSchema, plan: AlterPlan) -> WrittenColumn:
    return column if _own_key(column, table, plan) else replace(column, key=None)


def _is_there(key: WrittenKey, table: TableSchema, plan: AlterPlan) -> bool:
    """Whether IF NOT EXISTS finds the key by its name, or its first column's: in the table, or
    earlier in the statement and of its kind (MariaDB's `handle_if_exists_options`)."""
    earlier = (
        key_of(element) if isinstance(element, WrittenColumn) and element.key else element
        for element in plan.elements
    )
    return table.key(_sought(key)) is not None or any(
        isinstance(one, WrittenKey) and one.kind == key.kind and _sought(one) == _sought(key)
        for one in earlier
    )


def _sought(key: WrittenKey) -> str:
    return ("primary" if key.kind == "primary" else key.name or key.parts[0].column or "").lower()


def _sort_key(clause: Clause, table: TableSchema, plan: AlterPlan) -> None:
    match clause:
        case AddElement(WrittenKey() as key):
            if not (key.if_not_exists and _is_there(key, table, plan)):
                plan.elements.append(key)
        case AddElement(WrittenReference() as reference):
            there = {key.name.lower() for key in table.foreign_keys}
            if not (reference.if_not_exists and (reference.name or "").lower() in there):
                plan.elements.append(reference)
        case AddElement(WrittenPeriod() as period):
            plan.periods.append(period)
        case Drop(Part.KEY, name, if_exists):
            folded = name.lower()
            if table.key(folded) is None and not if_exists:
                raise CannotFollow(f"it drops the key {folded}, which is not there")
            plan.dropped_keys.add(folded)
        case Drop(Part.FOREIGN_KEY, name):
            plan.dropped_references.add(name.lower())
        case Drop(Part.CONSTRAINT, name):
            if any(key.name.lower() == name.lower() for key in table.foreign_keys):
                plan.dropped_references.add(name.lower())
            elif table.key(name) is not None:
                plan.dropped_keys.add(name.lower())
        case Rename(Part.KEY, old, new):
            plan.renamed_keys[old.lower()] = new
        case SetVisibility(Part.KEY, name, invisible):
            plan.key_visibility[name.lower()] = invisible
        case _:
            return


def merged(options: WrittenOptions, other: WrittenOptions, facts: ServerDialect) -> WrittenOptions:
    if facts.charset_resets and other.charset is not None:
        options = replace(options, collation=None)
    given = {
        name: value
        for name in WrittenOptions.__dataclass_fields__
        if (value := getattr(other, name)) is not None
    }
    return replace(options, **given)


def _missing(table: TableSchema, name: str, if_exists: bool) -> bool:
    if table.column(name) is not None:
        return False
    if if_exists:
        return True
    raise CannotFollow(f"it names the column {name}, which is not there")


def _with_new_keys(
    hidden: tuple[HiddenColumn, ...],
    kept: Sequence[KeySchema],
    keys: Sequence[KeySchema],
    visible: int,
    context: StatementContext,
) -> tuple[HiddenColumn, ...]:
    """The hidden columns of kept keys, and behind all columns those of new ones; none where their
    places are not known."""
    if not context.facts.places_hidden or len(hidden) != len(expressions(kept)):
        return ()
    names = {key.name for key in kept}
    return appended(hidden, visible, [key for key in keys if key.name not in names])


def _check_rename(
    table: TableSchema, clauses: tuple[Clause, ...], context: StatementContext
) -> None:
    """Foreign keys of a table that points at itself get lost or astray where it is renamed
    and changed at once."""
    if len(clauses) == 1 or not any(isinstance(clause, RenameTo) for clause in clauses):
        return
    own = any(key.references == table.name for key in table.foreign_keys)
    elements = (clause.element for clause in clauses if isinstance(clause, AddElement))
    added = {one.references.name for one in elements if isinstance(one, WrittenReference)}
    if (own and context.facts.mariadb) or table.name.name in added:
        raise CannotFollow("it renames a table that points at itself")


def _converted_to(
    table: TableSchema, plan: AlterPlan, schema: ServerSchema, context: StatementContext
) -> Charset | None:
    """What CONVERT TO makes of the columns; None without one. DEFAULT is of the table's
    database to MariaDB, and of the session's to MySQL."""
    if plan.convert is None:
        return None
    if context.facts.mariadb and plan.convert_again:
        raise CannotFollow("it names two character sets")
    inherited = inherited_charset(schema, table.name.database)
    if not context.facts.mariadb and plan.convert.charset is None:
        inherited = session_charset(schema, context)
    return chosen(plan.convert.charset, plan.convert.collation, inherited, context)


def _charset(
    table: TableSchema, plan: AlterPlan, convert: Charset | None, context: StatementContext
) -> Charset | None:
    """The table's own; None where nothing tells it: then columns of characters have to name
    theirs. CHARACTER SET behind CONVERT TO is for the table alone."""
    before = convert
    if before is None and table.charset is not None and table.collation is not None:
        before = Charset(table.charset, table.collation)
    options = plan.options
    if plan.convert is not None:
        if context.facts.mariadb and (options.charset or options.collation):
            raise CannotFollow("it names two character sets")
        written = WrittenOptions(charset=plan.convert.charset, collation=plan.convert.collation)
        options = merged(written, options, context.facts)
    if before is None and options.charset is None and options.collation is None:
        return None
    return chosen(options.charset, options.collation, before, context)


def _references(
    table: TableSchema, plan: AlterPlan, names: Mapping[str, str]
) -> tuple[ForeignKey, ...]:
    return tuple(
        replace(key, columns=tuple(names.get(name.lower(), name) for name in key.columns))
        for key in table.foreign_keys
        if key.name.lower() not in plan.dropped_references
    )


@dataclass(frozen=True, slots=True)
class PlacedColumn:
    """A column of the new table, and its name in the old one."""

    column: ColumnSchema
    before: str | None


def placed_columns(
    table: TableSchema,
    plan: AlterPlan,
    new: list[ColumnSchema],
    convert: Charset | None,
    context: StatementContext,
) -> tuple[list[PlacedColumn], tuple[HiddenColumn, ...]]:
    """The columns in their order: all that stay in their places, then each new and each moved
    one goes where its clause says, in the order of the clauses. The hidden columns that stay
    among them come apart; none where their places are not known."""
    hidden: tuple[HiddenColumn, ...] = ()
    if context.facts.places_hidden:
        hidden = kept(table, plan.dropped_keys, plan.renamed_keys) or ()
    changes = {
        change.old.lower(): column
        for change, column in zip(plan.defined, new, strict=True)
        if change.old is not None
    }
    unsized = {
        change.old.lower()
        for change in plan.defined
        if change.old is not None
        and change.column.type.name in LARGE
        and not change.column.type.sized
    }
    columns: list[PlacedColumn | HiddenColumn] = []
    for column in with_hidden(table.columns, table.hidden):
        if isinstance(column, HiddenColumn):
            columns += (one for one in hidden if one.place == column.place)
            continue
        folded = column.name.lower()
        if folded in changes:
            made = changes[folded]
            if convert is not None and folded in unsized and context.facts.mysql_8:
                made = converted_text(made, column)
            columns.append(PlacedColumn(made, column.name))
        elif folded not in plan.dropped:
            columns.append(PlacedColumn(_kept(column, plan, convert, context), column.name))
    for one, made in zip(plan.defined, new, strict=True):
        if one.old is None:
            _place(columns, PlacedColumn(_defined(made, plan, context), None), one.after)
        elif one.after is not None:
            moved = _taken_out(columns, one.column.name)
            after = replace(moved, column=_defined(moved.column, plan, context))
            _place(columns, after, one.after)
    visible = [column for column in columns if isinstance(column, PlacedColumn)]
    if len({placement.column.name.lower() for placement in visible}) != len(visible):
        raise CannotFollow("two columns would have one name")
    if not visible:
        raise CannotFollow("no column would be left")
    # MySQL's `sql_generate_invisible_primary_key`: while it is on, the column stays first.
    first = table.columns[0]
    by_server = first.name == "my_row_id" and first.invisible and first.auto_increment
    if by_server and any(placed.before == first.name for placed in visible[1:]):
        raise CannotFollow("the server does not say whether a column goes before its own key")
    return visible, numbered(columns)


def _taken_out(columns: list[PlacedColumn | HiddenColumn], name: str) -> PlacedColumn:
    """A column that was changed stands in its old place until its own clause moves it: a
    clause before that one finds it there, under its new name."""
    for column in columns:
        if isinstance(column, PlacedColumn) and column.column.name.lower() == name.lower():
            columns.remove(column)
            return column
    raise CannotFollow(f"it changes the column {name} twice")


def _defined(made: ColumnSchema, plan: AlterPlan, context: StatementContext) -> ColumnSchema:
    """A column that a clause puts in its place, as ALTER COLUMN has it then. MariaDB lets that
    name one that MODIFY or CHANGE moves; of one that they leave in its place no server does."""
    if made.name.lower() in plan.altered and isinstance(made.default, ExpressionDefault):
        raise CannotFollow(f"{made.name} is defined with two defaults")
    return _altered(made, plan, context)


def _place(
    columns: list[PlacedColumn | HiddenColumn], column: PlacedColumn, after: str | None
) -> None:
    if after is None:
        columns.append(column)
    elif after == FIRST:
        columns.insert(0, column)
    else:
        names = [
            None if isinstance(one, HiddenColumn) else one.column.name.lower() for one in columns
        ]
        if after.lower() not in names:
            raise CannotFollow(f"a column goes after {after}, which is not there")
        columns.insert(names.index(after.lower()) + 1, column)


def _kept(
    column: ColumnSchema, plan: AlterPlan, convert: Charset | None, context: StatementContext
) -> ColumnSchema:
    folded = column.name.lower()
    if folded in plan.renamed:
        # What else is said of that name is said of a column that is added under it.
        column = replace(column, name=plan.renamed[folded])
    else:
        column = _altered(column, plan, context)
    return column if convert is None else converted(column, convert)


def _altered(column: ColumnSchema, plan: AlterPlan, context: StatementContext) -> ColumnSchema:
    for clause in plan.altered.get(column.name.lower(), ()):
        match clause:
            case AlterDefault() if column.generated is not None:
                continue
            case AlterDefault(default=default):
                if context.facts.mariadb and isinstance(column.default, ExpressionDefault):
                    # DEFAULT and ON UPDATE CURRENT_TIMESTAMP go together there.
                    column = replace(column, on_update=False)
                column = replace(column, default=resolve_default(default, column, context))
            case SetVisibility(invisible=invisible):
                column = replace(column, invisible=invisible)
    return column


def kept_keys(table: TableSchema, plan: AlterPlan, placed: list[PlacedColumn]) -> list[KeySchema]:
    """Keys that were not dropped, on what is left of their columns; none without any."""
    found = []
    for key in table.keys:
        folded = key.name.lower()
        if folded in plan.dropped_keys:
            continue
        parts = tuple(part for old in key.parts if (part := _kept_part(old, table, placed)))
        if not parts:
            continue
        key = replace(
            key,
            parts=parts,
            name=plan.renamed_keys.get(folded, key.name),
            invisible=plan.key_visibility.get(folded, key.invisible),
            generated=key.generated and folded not in plan.renamed_keys,
        )
        found.append(key)
    return found


def _kept_part(part: KeyPart, table: TableSchema, placed: list[PlacedColumn]) -> KeyPart | None:
    """The first column, from the left, that is the part's own or new under its name."""
    if part.column is None:
        return part
    folded = part.column.lower()
    found = next(
        (
            placement
            for placement in placed
            if (placement.before or placement.column.name).lower() == folded
        ),
        None,
    )
    if found is None:
        return None
    after = found.column
    if found.before is None:
        return replace(part, column=after.name, prefix=_of_another(part, after, table))
    before = table.column(found.before)
    if before is not None and before.members and after.type in WITH_PREFIX:
        raise CannotFollow(f"how much of {after.name} its key holds is not known")
    if part.prefix is None or before is None:
        return replace(part, column=after.name)
    shorter = after.length is not None and after.length < part.prefix
    return replace(part, column=after.name, prefix=None if shorter else part.prefix)


def _of_another(part: KeyPart, after: ColumnSchema, table: TableSchema) -> int | None:
    """The prefix of a part whose column was dropped and added anew: as long as it was."""
    if after.type not in WITH_PREFIX:
        return None
    gone = table.column(part.column or "")
    held = None if gone is None else in_key(part, gone)
    if held is None:
        raise CannotFollow(f"how much of the new {after.name} its key holds is not known")
    return held or None
