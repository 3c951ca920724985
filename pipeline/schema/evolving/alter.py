"""ALTER TABLE on a table with a known structure.

All clauses of a statement apply at once, as in `mysql_prepare_alter_table` of MySQL's
`sql/sql_table.cc`. First the clauses are sorted by what they concern, and IF [NOT]
EXISTS is resolved. Then columns that stay keep their places, columns that are moved or
new follow in the statement's order, and the keys come last. Columns are identified by
their names before the statement. RENAME, and clauses that change rows, are followed in
`pipeline.schema.evolve`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace

from lockstep.pipeline.schema.context import ServerDialect, StatementContext
from lockstep.pipeline.schema.effects import CannotFollow
from lockstep.pipeline.schema.evolving.column_changes import (
    Charset,
    chosen_charset,
    convert_column,
    inherited_charset,
    resolve_column,
    session_charset,
    text_type_with_convert,
    with_convert_charset,
    with_implicit_timestamps,
    with_zero_defaults,
)
from lockstep.pipeline.schema.evolving.defaults import resolve_default
from lockstep.pipeline.schema.evolving.keys import (
    PREFIX_TYPES,
    declared_key,
    indexed_prefix_length,
    kept_key,
    keys_and_references,
    resolve_keys,
    resolve_references,
    with_not_null_keys,
)
from lockstep.pipeline.schema.hidden_columns import (
    add_hidden_columns,
    expression_parts,
    remaining_hidden_columns,
    renumber_hidden,
    with_hidden_columns,
)
from lockstep.pipeline.schema.model import (
    LOB_SIZES,
    ColumnSchema,
    ExpressionColumn,
    ExpressionDefault,
    ForeignKey,
    KeyPart,
    KeySchema,
    ServerSchema,
    TableSchema,
)
from lockstep.pipeline.schema.statements.changes import (
    FIRST,
    AddElement,
    AlterDefault,
    Clause,
    ConvertCharset,
    DefineColumn,
    DropElement,
    Element,
    ElementKind,
    RenameElement,
    RenameTo,
    SetOptions,
    SetVisibility,
    WrittenColumn,
    WrittenKey,
    WrittenOptions,
    WrittenPeriod,
    WrittenReference,
)


def alter_table(
    table: TableSchema,
    clauses: tuple[Clause, ...],
    schema: ServerSchema,
    context: StatementContext,
) -> tuple[TableSchema, tuple[str | None, ...]]:
    """Return the table after all clauses, and each column's former name, None for a new
    column. Raise CannotFollow if a clause does not fit the table."""
    _refuse_rename_of_own_parent(table, clauses, context)
    plan = _make_plan(table, clauses, context.facts)
    target_charset = _target_charset(table, plan, schema, context)
    charset = _table_charset(table, plan, target_charset, context)
    options = plan.options
    engine = options.engine or table.engine
    definitions = [change.column for change in plan.column_definitions]
    if target_charset is not None:
        definitions = [
            with_convert_charset(column, charset, target_charset, context) for column in definitions
        ]
    new_columns = [resolve_column(column, charset, context) for column in definitions]
    placed_columns, hidden = _place_columns(table, plan, new_columns, target_charset, context)
    defined_names = {column.name.lower() for column in new_columns}
    kept_not_null = {c.name.lower() for c in table.columns if not c.nullable} - defined_names
    columns = with_implicit_timestamps(
        (placed.column for placed in placed_columns), defined_names, context
    )
    kept_keys = _remaining_keys(table, plan, placed_columns)
    new_keys, references = keys_and_references(tuple(plan.elements), context)
    written_keys = [*map(kept_key, kept_keys), *new_keys]
    row_format = options.row_format or table.row_format
    keys = resolve_keys(written_keys, columns, engine, context.facts, row_format)
    after = replace(
        table,
        columns=with_zero_defaults(
            with_not_null_keys(columns, keys, plan.periods), kept_not_null, context
        ),
        keys=keys,
        charset=None if charset is None else charset.name,
        collation=None if charset is None else charset.collation,
        engine=engine,
        row_format=row_format,
        partitioned=table.partitioned if options.partitioned is None else options.partitioned,
        system_versioned=(
            table.system_versioned if options.system_versioned is None else options.system_versioned
        ),
        expression_columns=_with_new_hidden_columns(
            hidden, kept_keys, keys, len(placed_columns), context
        ),
    )
    former_names = tuple(placed.former_name for placed in placed_columns)
    kept_references = _remaining_references(table, plan, new_column_names(former_names, after))
    foreign_keys = resolve_references(kept_references, references, after, schema, context)
    return replace(after, foreign_keys=foreign_keys), former_names


def new_column_names(former_names: tuple[str | None, ...], after: TableSchema) -> Mapping[str, str]:
    """Return the new names of renamed columns, by their old names in lower case."""
    pairs = zip(former_names, after.names, strict=True)
    return {old.lower(): new for old, new in pairs if old is not None and old != new}


@dataclass(slots=True)
class _AlterPlan:
    """A statement's clauses, sorted by what they concern; names are in lower case.
    `column_definitions`: ADD, CHANGE and MODIFY COLUMN. `elements`: new columns, keys
    and foreign keys, in their order. `column_clauses`: ALTER COLUMN."""

    column_definitions: list[DefineColumn] = field(default_factory=list)
    elements: list[Element] = field(default_factory=list)
    periods: list[WrittenPeriod] = field(default_factory=list)
    dropped_columns: set[str] = field(default_factory=set)
    new_column_names: dict[str, str] = field(default_factory=dict)
    column_clauses: dict[str, list[AlterDefault | SetVisibility]] = field(default_factory=dict)
    dropped_keys: set[str] = field(default_factory=set)
    dropped_references: set[str] = field(default_factory=set)
    new_key_names: dict[str, str] = field(default_factory=dict)
    key_visibility: dict[str, bool] = field(default_factory=dict)
    options: WrittenOptions = field(default_factory=WrittenOptions)
    convert: ConvertCharset | None = None


def _make_plan(table: TableSchema, clauses: tuple[Clause, ...], facts: ServerDialect) -> _AlterPlan:
    """Sort all clauses. Raise CannotFollow if one names a column or key that does not
    exist."""
    plan = _AlterPlan()
    for clause in clauses:
        _add_clause(clause, table, plan, facts)
    charset_clauses = [
        clause
        for clause in clauses
        if isinstance(clause, ConvertCharset)
        or (isinstance(clause, SetOptions) and (clause.options.charset or clause.options.collation))
    ]
    if facts.is_mariadb and plan.convert is not None and len(charset_clauses) > 1:
        raise CannotFollow("it names two character sets")
    # `_with_column_clauses` says which of the defined columns ALTER COLUMN may name.
    defined_names = {
        change.column.name.lower()
        for change in plan.column_definitions
        if change.old is None or change.after is not None
    }
    for name in plan.column_clauses:
        remains = table.column(name) is not None and name not in plan.dropped_columns
        if not remains and name not in defined_names:
            raise CannotFollow(f"it alters the column {name}, which does not exist")
    return plan


def _add_clause(clause: Clause, table: TableSchema, plan: _AlterPlan, facts: ServerDialect) -> None:
    """Add a clause to the plan, unless IF [NOT] EXISTS makes it do nothing."""
    match clause:
        case DefineColumn(old, column, _, has_if_clause):
            if old is None:
                added_names = {change.column.name.lower() for change in plan.column_definitions}
                exists = table.column(column.name) is not None or column.name.lower() in added_names
                if has_if_clause and exists:
                    # The key in the definition is added all the same.
                    plan.elements += _new_declared_key(column, table, plan)
                    return
            elif _is_missing(table, old, has_if_clause):
                return
            plan.column_definitions.append(clause)
            plan.elements.append(
                _without_existing_key(column, table, plan) if has_if_clause else column
            )
        case DropElement(ElementKind.COLUMN, name, if_exists):
            if not _is_missing(table, name, if_exists):
                plan.dropped_columns.add(name.lower())
        case RenameElement(ElementKind.COLUMN, old, new, if_exists):
            if not _is_missing(table, old, if_exists):
                plan.new_column_names[old.lower()] = new
        case AlterDefault(name, _, if_exists):
            if not if_exists or table.column(name) is not None:
                plan.column_clauses.setdefault(name.lower(), []).append(clause)
        case SetVisibility(ElementKind.COLUMN, name):
            plan.column_clauses.setdefault(name.lower(), []).append(clause)
        case ConvertCharset():
            plan.options = replace(plan.options, charset=None, collation=None)
            plan.convert = clause
        case SetOptions(options):
            plan.options = _merge_options(plan.options, options, facts)
        case _:
            _add_key_clause(clause, table, plan)


def _new_declared_key(
    column: WrittenColumn, table: TableSchema, plan: _AlterPlan
) -> list[WrittenKey]:
    """Return the key in a column's definition with IF [NOT] EXISTS; none if that key
    exists."""
    if column.key is None:
        return []
    key = declared_key(column)
    return [] if _key_exists(key, table, plan) else [key]


def _without_existing_key(
    column: WrittenColumn, table: TableSchema, plan: _AlterPlan
) -> WrittenColumn:
    return column if _new_declared_key(column, table, plan) else replace(column, key=None)


def _key_exists(key: WrittenKey, table: TableSchema, plan: _AlterPlan) -> bool:
    """Return whether the key exists in the sense of IF NOT EXISTS. A key without a name
    is searched by its first column's name, in the table and among earlier keys of its
    kind in the statement (MariaDB's `handle_if_exists_options`)."""
    earlier = (
        declared_key(element) if isinstance(element, WrittenColumn) and element.key else element
        for element in plan.elements
    )
    return table.key(_key_name(key)) is not None or any(
        isinstance(element, WrittenKey)
        and element.kind == key.kind
        and _key_name(element) == _key_name(key)
        for element in earlier
    )


def _key_name(key: WrittenKey) -> str:
    return ("primary" if key.kind == "primary" else key.name or key.parts[0].column or "").lower()


def _add_key_clause(clause: Clause, table: TableSchema, plan: _AlterPlan) -> None:
    match clause:
        case AddElement(WrittenKey() as key):
            if not (key.if_not_exists and _key_exists(key, table, plan)):
                plan.elements.append(key)
        case AddElement(WrittenReference() as reference):
            names = {key.name.lower() for key in table.foreign_keys}
            if not (reference.if_not_exists and (reference.name or "").lower() in names):
                plan.elements.append(reference)
        case AddElement(WrittenPeriod() as period):
            plan.periods.append(period)
        case DropElement(ElementKind.KEY, name, if_exists):
            folded = name.lower()
            if table.key(folded) is None and not if_exists:
                raise CannotFollow(f"it drops the key {folded}, which does not exist")
            plan.dropped_keys.add(folded)
        case DropElement(ElementKind.FOREIGN_KEY, name):
            plan.dropped_references.add(name.lower())
        case DropElement(ElementKind.CONSTRAINT, name):
            if any(key.name.lower() == name.lower() for key in table.foreign_keys):
                plan.dropped_references.add(name.lower())
            elif table.key(name) is not None:
                plan.dropped_keys.add(name.lower())
        case RenameElement(ElementKind.KEY, old, new):
            plan.new_key_names[old.lower()] = new
        case SetVisibility(ElementKind.KEY, name, invisible):
            plan.key_visibility[name.lower()] = invisible
        case _:
            return


def _merge_options(
    options: WrittenOptions, later: WrittenOptions, facts: ServerDialect
) -> WrittenOptions:
    """Return the options of two clauses; the later clause wins."""
    if facts.charset_resets_collation and later.charset is not None:
        options = replace(options, collation=None)
    written = {name: value for name, value in asdict(later).items() if value is not None}
    return replace(options, **written)


def _is_missing(table: TableSchema, name: str, if_exists: bool) -> bool:
    """Return whether the column is missing. Raise CannotFollow if it is missing and
    IF EXISTS was not written."""
    if table.column(name) is not None:
        return False
    if if_exists:
        return True
    raise CannotFollow(f"it names the column {name}, which does not exist")


def _with_new_hidden_columns(
    hidden: tuple[ExpressionColumn, ...],
    kept_keys: Sequence[KeySchema],
    keys: Sequence[KeySchema],
    visible_count: int,
    context: StatementContext,
) -> tuple[ExpressionColumn, ...]:
    """Return the hidden columns of kept keys, and those of new keys after all other
    columns; none if their places are unknown. `visible_count`: the number of columns
    that are not hidden."""
    if not context.facts.knows_hidden_places or len(hidden) != len(expression_parts(kept_keys)):
        return ()
    names = {key.name for key in kept_keys}
    return add_hidden_columns(hidden, visible_count, [key for key in keys if key.name not in names])


def _refuse_rename_of_own_parent(
    table: TableSchema, clauses: tuple[Clause, ...], context: StatementContext
) -> None:
    """Raise CannotFollow if the statement renames and changes a table whose foreign key
    refers to the table itself: servers drop this foreign key, or leave the old name in
    it."""
    if len(clauses) == 1 or not any(isinstance(clause, RenameTo) for clause in clauses):
        return
    refers_to_itself = any(key.references == table.name for key in table.foreign_keys)
    elements = (clause.element for clause in clauses if isinstance(clause, AddElement))
    added_names = {
        element.references.name for element in elements if isinstance(element, WrittenReference)
    }
    if (refers_to_itself and context.facts.is_mariadb) or table.name.name in added_names:
        raise CannotFollow("it renames a table that refers to itself")


def _target_charset(
    table: TableSchema, plan: _AlterPlan, schema: ServerSchema, context: StatementContext
) -> Charset | None:
    """Return the character set of CONVERT TO; None without such a clause. DEFAULT means
    the character set of the table's database in MariaDB, of the session's database in
    MySQL."""
    if plan.convert is None:
        return None
    inherited = inherited_charset(schema, table.name.database)
    if not context.facts.is_mariadb and plan.convert.charset is None:
        inherited = session_charset(schema, context)
    return chosen_charset(plan.convert.charset, plan.convert.collation, inherited, context)


def _table_charset(
    table: TableSchema, plan: _AlterPlan, target_charset: Charset | None, context: StatementContext
) -> Charset | None:
    """Return the table's default character set; None if it is unknown, so that each new
    column has to name its own. CHARACTER SET after CONVERT TO applies to the table
    alone, not to columns."""
    default = target_charset
    if default is None and table.charset is not None and table.collation is not None:
        default = Charset(table.charset, table.collation)
    options = plan.options
    if plan.convert is not None:
        written = WrittenOptions(charset=plan.convert.charset, collation=plan.convert.collation)
        options = _merge_options(written, options, context.facts)
    if default is None and options.charset is None and options.collation is None:
        return None
    return chosen_charset(options.charset, options.collation, default, context)


def _remaining_references(
    table: TableSchema, plan: _AlterPlan, new_names: Mapping[str, str]
) -> tuple[ForeignKey, ...]:
    return tuple(
        replace(key, columns=tuple(new_names.get(name.lower(), name) for name in key.columns))
        for key in table.foreign_keys
        if key.name.lower() not in plan.dropped_references
    )


@dataclass(frozen=True, slots=True)
class _PlacedColumn:
    """A column of the new table, and its name in the old one; None for a new column."""

    column: ColumnSchema
    former_name: str | None


def _place_columns(
    table: TableSchema,
    plan: _AlterPlan,
    new_columns: list[ColumnSchema],
    target_charset: Charset | None,
    context: StatementContext,
) -> tuple[list[_PlacedColumn], tuple[ExpressionColumn, ...]]:
    """Return the columns in their order, and the hidden columns that stay among them
    (none if their places are unknown). Columns that stay keep their places. Then each
    new or moved column goes where its clause says, in the order of the clauses."""
    hidden: tuple[ExpressionColumn, ...] = ()
    if context.facts.knows_hidden_places:
        hidden = remaining_hidden_columns(table, plan.dropped_keys, plan.new_key_names) or ()
    changed_columns = {
        change.old.lower(): (change.column.type, column)
        for change, column in zip(plan.column_definitions, new_columns, strict=True)
        if change.old is not None
    }
    columns: list[_PlacedColumn | ExpressionColumn] = []
    for column in with_hidden_columns(table.columns, table.expression_columns):
        if isinstance(column, ExpressionColumn):
            columns += (remaining for remaining in hidden if remaining.place == column.place)
            continue
        folded = column.name.lower()
        if folded in changed_columns:
            written_type, new_column = changed_columns[folded]
            is_unsized = written_type.name in LOB_SIZES and written_type.length is None
            if target_charset is not None and is_unsized and context.facts.is_mysql_8:
                new_column = text_type_with_convert(new_column, column)
            columns.append(_PlacedColumn(new_column, column.name))
        elif folded not in plan.dropped_columns:
            columns.append(
                _PlacedColumn(_remaining_column(column, plan, target_charset, context), column.name)
            )
    for clause, column in zip(plan.column_definitions, new_columns, strict=True):
        if clause.old is None:
            placed = _PlacedColumn(column, None)
        elif clause.after is not None:
            placed = _take_out(columns, column.name)
        else:
            continue
        placed = replace(placed, column=_with_column_clauses(placed.column, plan, context))
        _insert_column(columns, placed, clause.after)
    visible_columns = [column for column in columns if isinstance(column, _PlacedColumn)]
    _refuse_columns(visible_columns, table)
    return visible_columns, renumber_hidden(columns)


def _refuse_columns(placed_columns: Sequence[_PlacedColumn], table: TableSchema) -> None:
    """Raise CannotFollow if the server would refuse the table's new columns, or may
    order them in another way."""
    names = {placed.column.name.lower() for placed in placed_columns}
    if len(names) != len(placed_columns):
        raise CannotFollow("two columns would have one name")
    if not placed_columns:
        raise CannotFollow("no column would be left")
    # While MySQL's `sql_generate_invisible_primary_key` is on, its column stays first.
    # The log does not have that variable.
    first = table.columns[0]
    is_generated_key = first.name == "my_row_id" and first.invisible and first.auto_increment
    if is_generated_key and any(placed.former_name == first.name for placed in placed_columns[1:]):
        raise CannotFollow("the log does not tell whether a column goes before my_row_id")


def _take_out(columns: list[_PlacedColumn | ExpressionColumn], name: str) -> _PlacedColumn:
    """Remove a changed column from its old place, and return it. Until then, earlier
    clauses with AFTER find the column at the old place, under its new name."""
    for column in columns:
        if isinstance(column, _PlacedColumn) and column.column.name.lower() == name.lower():
            columns.remove(column)
            return column
    raise CannotFollow(f"it changes the column {name} twice")


def _with_column_clauses(
    column: ColumnSchema, plan: _AlterPlan, context: StatementContext
) -> ColumnSchema:
    """Return a new or moved column with the ALTER COLUMN clauses of the same statement.
    MariaDB allows them for a column that MODIFY or CHANGE moves. No server allows them
    for a column that MODIFY or CHANGE leaves in place."""
    if column.name.lower() in plan.column_clauses and isinstance(column.default, ExpressionDefault):
        raise CannotFollow(f"{column.name} is defined with two defaults")
    return _apply_column_clauses(column, plan, context)


def _insert_column(
    columns: list[_PlacedColumn | ExpressionColumn], column: _PlacedColumn, after: str | None
) -> None:
    """Insert a column after the one named `after`; None means the end, FIRST the
    beginning."""
    if after is None:
        columns.append(column)
    elif after == FIRST:
        columns.insert(0, column)
    else:
        names = [
            None if isinstance(other, ExpressionColumn) else other.column.name.lower()
            for other in columns
        ]
        if after.lower() not in names:
            raise CannotFollow(f"a column goes after {after}, which does not exist")
        columns.insert(names.index(after.lower()) + 1, column)


def _remaining_column(
    column: ColumnSchema,
    plan: _AlterPlan,
    target_charset: Charset | None,
    context: StatementContext,
) -> ColumnSchema:
    folded = column.name.lower()
    if folded in plan.new_column_names:
        # If other clauses have the old name, they mean a column that is added under it.
        column = replace(column, name=plan.new_column_names[folded])
    else:
        column = _apply_column_clauses(column, plan, context)
    return column if target_charset is None else convert_column(column, target_charset)


def _apply_column_clauses(
    column: ColumnSchema, plan: _AlterPlan, context: StatementContext
) -> ColumnSchema:
    for clause in plan.column_clauses.get(column.name.lower(), ()):
        match clause:
            case AlterDefault() if column.generated is not None:
                continue
            case AlterDefault(default=default):
                if context.facts.is_mariadb and isinstance(column.default, ExpressionDefault):
                    # MariaDB drops ON UPDATE CURRENT_TIMESTAMP together with such a
                    # DEFAULT.
                    column = replace(column, on_update=False)
                column = replace(column, default=resolve_default(default, column, context))
            case SetVisibility(invisible=invisible):
                column = replace(column, invisible=invisible)
    return column


def _remaining_keys(
    table: TableSchema, plan: _AlterPlan, placed_columns: list[_PlacedColumn]
) -> list[KeySchema]:
    """Return the keys that are not dropped, without their dropped columns. A key is
    also dropped if all its columns are."""
    keys = []
    for key in table.keys:
        folded = key.name.lower()
        if folded in plan.dropped_keys:
            continue
        remaining = [_remaining_part(part, table, placed_columns) for part in key.parts]
        parts = tuple(part for part in remaining if part is not None)
        if not parts:
            continue
        keys.append(
            replace(
                key,
                parts=parts,
                name=plan.new_key_names.get(folded, key.name),
                invisible=plan.key_visibility.get(folded, key.invisible),
                generated=key.generated and folded not in plan.new_key_names,
            )
        )
    return keys


def _remaining_part(
    part: KeyPart, table: TableSchema, placed_columns: list[_PlacedColumn]
) -> KeyPart | None:
    """Return a key's part in the new table; None if its column is dropped. If a new
    column has the name of a dropped one, it takes the dropped one's place in the
    key."""
    if part.column is None:
        return part
    folded = part.column.lower()
    columns = (
        placed
        for placed in placed_columns
        if (placed.former_name or placed.column.name).lower() == folded
    )
    placed = next(columns, None)
    if placed is None:
        return None
    after = placed.column
    if placed.former_name is None:
        return replace(part, column=after.name, prefix=_prefix_of_new_column(part, after, table))
    before = table.column(placed.former_name)
    if before is not None and before.members and after.type in PREFIX_TYPES:
        raise CannotFollow(f"the length of the prefix of {after.name} in its key is unknown")
    if part.prefix is None or before is None:
        return replace(part, column=after.name)
    shorter = after.length is not None and after.length < part.prefix
    return replace(part, column=after.name, prefix=None if shorter else part.prefix)


def _prefix_of_new_column(part: KeyPart, after: ColumnSchema, table: TableSchema) -> int | None:
    """Return the prefix of a part whose column is dropped and added again in one
    statement: the length that the key indexed before."""
    if after.type not in PREFIX_TYPES:
        return None
    dropped = table.column(part.column or "")
    prefix = None if dropped is None else indexed_prefix_length(part, dropped)
    if prefix is None:
        raise CannotFollow(f"the length of the prefix of {after.name} in its key is unknown")
    return prefix or None
