"""The clauses of an ALTER TABLE, sorted by what they concern.

Belongs here: IF [NOT] EXISTS, and whether what a clause names is there. What becomes of
the table is `alter`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from pipeline.schema.context import ServerDialect
from pipeline.schema.evolving.create import key_of
from pipeline.schema.evolving.effects import CannotFollow
from pipeline.schema.model import (
    TableSchema,
)
from pipeline.schema.statements.changes import (
    AddColumn,
    AddForeignKey,
    AddKey,
    AddPeriod,
    AlterDefault,
    AlterKeyVisibility,
    AlterVisibility,
    ChangeColumn,
    Clause,
    ConvertCharset,
    DropColumn,
    DropConstraint,
    DropForeignKey,
    DropKey,
    RenameColumn,
    RenameKey,
    SetOptions,
)
from pipeline.schema.statements.written import (
    Element,
    WrittenColumn,
    WrittenKey,
    WrittenOptions,
    WrittenPeriod,
)


@dataclass(slots=True)
class AlterPlan:
    """A statement's clauses, sorted by what they concern; names in lower case.
    `convert_again`: before CONVERT TO it names a character set, of which nothing is left."""

    defined: list[AddColumn | ChangeColumn] = field(default_factory=list)
    elements: list[Element] = field(default_factory=list)
    periods: list[WrittenPeriod] = field(default_factory=list)
    dropped: set[str] = field(default_factory=set)
    renamed: dict[str, str] = field(default_factory=dict)
    altered: dict[str, list[AlterDefault | AlterVisibility]] = field(default_factory=dict)
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
        if isinstance(change, AddColumn) or change.after is not None
    }
    for name in plan.altered:
        if name not in placed and (table.column(name) is None or name in plan.dropped):
            raise CannotFollow(f"it alters the column {name}, which is not there")
    return plan


def _sort(clause: Clause, table: TableSchema, plan: AlterPlan, facts: ServerDialect) -> None:
    match clause:
        case AddColumn(column, _, if_not_exists):
            if if_not_exists and _has(table, column.name, plan):
                # The key that stands with it is added all the same.
                plan.elements += _own_key(column, table, plan)
                return
            plan.defined.append(clause)
            plan.elements.append(_unless_keyed(column, table, plan) if if_not_exists else column)
        case ChangeColumn(old, column, _, if_exists):
            if _missing(table, old, if_exists):
                return
            plan.defined.append(clause)
            plan.elements.append(_unless_keyed(column, table, plan) if if_exists else column)
        case DropColumn(name, if_exists):
            if not _missing(table, name, if_exists):
                plan.dropped.add(name.lower())
        case RenameColumn(old, new, if_exists):
            if not _missing(table, old, if_exists):
                plan.renamed[old.lower()] = new
        case AlterDefault(name, _, if_exists):
            if not if_exists or table.column(name) is not None:
                plan.altered.setdefault(name.lower(), []).append(clause)
        case AlterVisibility(name):
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
    return table.key(_sought(key)) is not None or any(
        one.kind == key.kind and _sought(one) == _sought(key) for one in _keys_so_far(plan)
    )


def _sought(key: WrittenKey) -> str:
    return ("primary" if key.kind == "primary" else key.name or key.parts[0].column or "").lower()


def _keys_so_far(plan: AlterPlan) -> Iterator[WrittenKey]:
    for element in plan.elements:
        if isinstance(element, WrittenKey):
            yield element
        elif isinstance(element, WrittenColumn) and element.key is not None:
            yield key_of(element)


def _sort_key(clause: Clause, table: TableSchema, plan: AlterPlan) -> None:
    match clause:
        case AddKey(key):
            if not (key.if_not_exists and _is_there(key, table, plan)):
                plan.elements.append(key)
        case AddForeignKey(reference):
            there = {key.name.lower() for key in table.foreign_keys}
            if not (reference.if_not_exists and (reference.name or "").lower() in there):
                plan.elements.append(reference)
        case AddPeriod(period):
            plan.periods.append(period)
        case DropKey(name, if_exists):
            _drop_key(name, if_exists, table, plan)
        case DropForeignKey(name):
            plan.dropped_references.add(name.lower())
        case DropConstraint(name):
            if any(key.name.lower() == name.lower() for key in table.foreign_keys):
                plan.dropped_references.add(name.lower())
            elif table.key(name) is not None:
                plan.dropped_keys.add(name.lower())
        case RenameKey(old, new):
            plan.renamed_keys[old.lower()] = new
        case AlterKeyVisibility(name, invisible):
            plan.key_visibility[name.lower()] = invisible
        case _:
            return


def _drop_key(name: str | None, if_exists: bool, table: TableSchema, plan: AlterPlan) -> None:
    folded = "primary" if name is None else name.lower()
    if table.key(folded) is None and not if_exists:
        raise CannotFollow(f"it drops the key {folded}, which is not there")
    plan.dropped_keys.add(folded)


def merged(options: WrittenOptions, other: WrittenOptions, facts: ServerDialect) -> WrittenOptions:
    """What either gives; the other wins."""
    if facts.charset_resets and other.charset is not None:
        options = replace(options, collation=None)
    given = {
        name: value
        for name in WrittenOptions.__dataclass_fields__
        if (value := getattr(other, name)) is not None
    }
    return replace(options, **given)


def _has(table: TableSchema, name: str, plan: AlterPlan) -> bool:
    added = any(change.column.name.lower() == name.lower() for change in plan.defined)
    return added or table.column(name) is not None


def _missing(table: TableSchema, name: str, if_exists: bool) -> bool:
    if table.column(name) is not None:
        return False
    if if_exists:
        return True
    raise CannotFollow(f"it names the column {name}, which is not there")
