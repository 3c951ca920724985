"""Follows the log of statements that were run, and compares after every one of them.

Belongs here: the harness. A statement is taken from the log with its own context, never
from what was sent. What the server then has is read from information_schema right after
the statement, so the log can be read once, at the end. Of the rows written in between, each
TABLE_MAP must be that of the structure that was followed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from lockstep.pipeline.binlog.rows.table_map import (
    OptionalField,
    Outline,
    TableMap,
    read_outlines,
    read_structure,
    read_table_map,
)
from lockstep.pipeline.binlog.stream.control import LogWriter
from lockstep.pipeline.run.dump.structure_proof import decoding_differences
from lockstep.pipeline.run.dump.table_map_check import logs_hidden, map_differences, without_columns
from lockstep.pipeline.schema.compare import differences, with_unlogged_properties
from lockstep.pipeline.schema.context import ServerDialect
from lockstep.pipeline.schema.effects import Effect, NotFollowed, UnknownTable
from lockstep.pipeline.schema.evolve import evolve
from lockstep.pipeline.schema.hidden_columns import hidden_places
from lockstep.pipeline.schema.model import ServerSchema, TableSchema
from lockstep.pipeline.schema.rows import logged_structure, schema_of
from lockstep.pipeline.schema.statements.changes import Irrelevant, NotUnderstood
from lockstep.pipeline.schema.statements.read import read_change
from lockstep.pipeline.values.errors import TableError
from lockstep.pipeline.values.table import Column, TableName, TableStructure
from tests.fix_mysql import MySqlStand
from tests.mysql.logged import head
from tests.schema.cases import Case
from tests.schema.information_schema import comparable
from tests.schema.logged_items import Logged, Mapped, facts_of, logged
from tests.schema.running import Ran, run

_NO_KEY: Final = b"\x08\x00"
"""The field of a TABLE_MAP that names the primary key's columns, with none."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """`kind`: followed, quarantined or wrong. `maps`: TABLE_MAPs that were compared."""

    case: str
    statement: str
    kind: str
    why: tuple[str, ...] = ()
    effects: tuple[Effect, ...] = ()
    maps: int = 0


@dataclass(slots=True)
class _Followed:
    """What came of one statement so far; `lost`: it may have touched any table."""

    schema: ServerSchema
    effects: list[Effect]
    quarantined: list[str]
    wrong: list[str]
    texts: list[str]
    lost: bool = False
    maps: int = 0


def outcomes(
    stand: MySqlStand, cases: Sequence[Case], refused: list[str], *, metadata: Sequence[str] = ()
) -> list[Outcome]:
    """Runs and follows all cases on one server; `refused` is told what it did not accept, and
    `metadata` is as `run` has it."""
    facts = facts_of(stand)
    start = head(stand)
    ran = run(stand, cases, mariadb=facts.is_mariadb, refused=refused, metadata=metadata)
    return follow(ran, logged(stand, start, facts), facts)


def counted(found: Iterable[Outcome]) -> Counter[str]:
    """How many statements were followed, quarantined or wrong."""
    return Counter(one.kind for one in found)


# -- following --------------------------------------------------------------------


def follow(
    ran: Sequence[Ran], log: Iterable[Logged | Mapped], facts: ServerDialect
) -> list[Outcome]:
    """Each statement that was run, followed by what the log has of it."""
    empty = ServerSchema(lower_case_table_names=facts.lower_case_table_names)
    waiting = iter(log)
    current = next(waiting, None)
    schema, found, case = empty, [], None
    for one in ran:
        if one.case != case:
            case, schema = one.case, empty
        state = _Followed(schema, [], [], [], [])
        while current is not None and current.end <= one.begin:
            current = next(waiting, None)
        while current is not None and current.end <= one.end:
            _take(current, state, facts)
            current = next(waiting, None)
        state.wrong += _compare(state, one.server)
        while current is not None and current.end <= one.behind_rows:
            if isinstance(current, Mapped):
                _check(current, state, facts)
            current = next(waiting, None)
        # What was lost is read anew, so that the next statement can be followed.
        lost = state.quarantined or state.wrong
        schema = replace(one.server, unknown_tables=frozenset()) if lost else state.schema
        if state.texts or state.wrong:
            found.append(_outcome(one, state))
    return found


def _outcome(one: Ran, state: _Followed) -> Outcome:
    kind = "wrong" if state.wrong else "quarantined" if state.quarantined else "followed"
    text = " ;; ".join(state.texts) or one.sent
    why = tuple(state.wrong or state.quarantined)
    return Outcome(one.case, text, kind, why, tuple(state.effects), state.maps)


def _take(item: Logged | Mapped, state: _Followed, facts: ServerDialect) -> None:
    match item:
        case Logged():
            state.texts.append(item.text)
            _step(item, state)
        case Mapped():
            _check(item, state, facts)


def _step(statement: Logged, state: _Followed) -> None:
    read = read_change(statement.text, statement.context)
    match read:
        case Irrelevant():
            return
        case NotUnderstood(reason, may_touch):
            state.quarantined.append(f"not understood: {reason} (may touch {may_touch})")
            state.lost = state.lost or may_touch is None
            state.schema = state.schema.with_unknown_tables(*(may_touch or ()))
            return
    done = evolve(state.schema, read, statement.context)
    state.schema = done.schema
    state.effects += done.effects
    for effect in done.effects:
        if isinstance(effect, NotFollowed):
            state.quarantined.append(f"not followed: {effect.table}: {effect.reason}")
        if isinstance(effect, UnknownTable):
            state.quarantined.append(f"unknown table: {effect.table}: {effect.statement}")


def _check(mapped: Mapped, state: _Followed, facts: ServerDialect) -> None:
    """A TABLE_MAP is that of the structure that was followed."""
    writer = LogWriter("mariadb" if facts.is_mariadb else "mysql", facts.version)
    table_map = read_table_map(mapped.raw, writer)
    name = table_map.table
    ours = state.schema.table(name)
    if state.lost:
        return
    if ours is None:
        if name not in state.schema.unknown_tables and name.database in state.schema.databases:
            state.wrong.append(f"{name}: rows of a table that is not there")
        return
    state.maps += 1
    try:
        (outline,) = read_outlines(table_map)
        hidden = _hidden(outline, ours, table_map)
        if OptionalField.NAMES not in outline.optional_fields:
            unlike = map_differences(without_columns(outline, hidden), logged_structure(ours))
            state.wrong += [f"{name}: in the log: {one}" for one in unlike]
            return
        theirs = _mapped(table_map)
    except TableError as error:
        # Compressed columns are not read from the log; all else is worth a look.
        if not any(column.compressed for column in ours.columns):
            state.quarantined.append(f"its TABLE_MAP cannot be read: {name}: {error}")
        return
    hidden_names = {theirs.columns[place].name for place in hidden}
    theirs = replace(theirs, columns=tuple(_shown(theirs, hidden_names)))
    for difference in decoding_differences(schema_of(theirs), ours, from_table_map=True):
        state.wrong.append(f"{name}: rows are said to mean something else: {difference}")
    structure = logged_structure(ours)
    if facts.is_mariadb and not ours.primary_key:
        # Which UNIQUE key stands in, if any, MariaDB does not decide by what is declared.
        structure = replace(structure, primary_key=theirs.primary_key)
    if structure != theirs:
        state.wrong += [f"{name}: in the log: {one}" for one in _unlike(structure, theirs)]


def _hidden(outline: Outline, ours: TableSchema, mapped: TableMap) -> tuple[int, ...]:
    """Where the history has the columns that MySQL hides, if they are in the log: with names, as
    with places alone."""
    more = len(outline.columns) > len(ours.columns)
    return (hidden_places(ours) or ()) if more and logs_hidden(mapped.writer) else ()


def _shown(structure: TableStructure, hidden: set[str]) -> Iterator[Column]:
    for column in structure.columns:
        if column.name not in hidden:
            yield column


def _mapped(mapped: TableMap) -> TableStructure:
    try:
        return read_structure(mapped)
    except TableError as error:
        if "no PRIMARY KEY" not in str(error):
            raise
        return read_structure(replace(mapped, raw=mapped.raw + _NO_KEY))


def _unlike(ours: TableStructure, theirs: TableStructure) -> Iterator[str]:
    if ours.primary_key != theirs.primary_key:
        yield f"key {ours.primary_key}, {theirs.primary_key}"
    if len(ours.columns) != len(theirs.columns):
        yield f"{len(ours.columns)} columns, {len(theirs.columns)}"
    for one, other in zip(ours.columns, theirs.columns, strict=False):
        if one != (replace(other, nullable=True) if "DB_ROW_HASH" in other.name else other):
            yield f"{one}, {other}"


# -- comparing --------------------------------------------------------------------


def _compare(state: _Followed, theirs: ServerSchema) -> Iterator[str]:
    if state.lost:
        return
    ours = state.schema
    for name in sorted({*ours.databases, *theirs.databases}):
        our, their = ours.databases.get(name), theirs.databases.get(name)
        if our is not None:
            our = replace(our, code=None)  # which information_schema is not asked for here
        if our != their:
            yield f"database {name}: {our}, {their}"
    for table in sorted({*ours.tables, *theirs.tables} - ours.unknown_tables - _asked(state)):
        yield from _compare_table(table, ours.tables.get(table), theirs.tables.get(table))


def _asked(state: _Followed) -> set[TableName]:
    """Tables that a statement named and the schema does not hold."""
    return {effect.table for effect in state.effects if isinstance(effect, UnknownTable)}


def _compare_table(
    name: TableName, here: TableSchema | None, there: TableSchema | None
) -> Iterator[str]:
    if here is None or there is None:
        yield f"{name}: {'missing' if here is None else 'there'} in ours, not in theirs"
        return
    if not there.columns:
        return  # MySQL 5.7 shows none of a MERGE table whose members do not fit.
    for difference in differences(
        comparable(here), with_unlogged_properties(comparable(there), here)
    ):
        yield f"{name}: {difference}"
    for difference in decoding_differences(here, there):
        yield f"{name}: rows are said to mean something else: {difference}"
