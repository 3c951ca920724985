"""What becomes of tables where the reading of a log begins, before its first event: some
stop, and others are gone since a part of the log was skipped. A capture carries it out,
and a plan foresees it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from lockstep.pipeline.model.table_state import TableEventKind
from lockstep.pipeline.run.dump.basis import Basis
from lockstep.pipeline.run.dump.initial_schemas import case_folding
from lockstep.pipeline.run.mirror_folders import collisions
from lockstep.pipeline.run.stop_errors import (
    collision_error,
    engine_error,
    logged_otherwise_errors,
)
from lockstep.pipeline.schema.history import Knowledge
from lockstep.pipeline.values.decisions import Continuity
from lockstep.pipeline.values.engines import reason_refused
from lockstep.pipeline.values.errors import TableError
from lockstep.pipeline.values.table import TableName

DROPPED_IN_GAP: Final = (
    "the source does not have it any more: it was dropped, or got another name, in a part of the "
    "log that was skipped"
)
"""Reason of the DROPPED event of a table that a gap dropped."""


def record_drops_in_gap(basis: Basis, at_source: Iterable[TableName]) -> list[TableName]:
    """After a gap, record that followed tables are dropped which the server does not
    have any more, and return them: no statement of the log that is read says so. A
    table that the account cannot see is left as it is. `at_source`: the tables that it
    can see."""
    if basis.run_start.decision.continuity is not Continuity.GAP:
        return []
    fold_case = case_folding(basis.run_start.facts)
    visible_tables = {*map(fold_case, at_source)}
    missing = [
        version
        for version in basis.structures.history.versions
        if version.knowledge is Knowledge.DROPPED
        and fold_case(version.table) not in visible_tables
        and basis.tables.is_followed(version.table)
    ]
    hidden_tables = basis.ports.server.missing_grants([version.table for version in missing])
    dropped = [version for version in missing if version.table not in hidden_tables]
    for version in dropped:
        basis.tables.record_event(TableEventKind.DROPPED, version, DROPPED_IN_GAP)
    return [version.table for version in dropped]


def stops_at_start(
    basis: Basis, engines: Mapping[TableName, str]
) -> Iterator[tuple[TableName, TableError]]:
    """Yield the tables that stop where the reading begins, each with its error. The
    caller stops a table before it takes the next one. `engines`: the storage engines of
    the server's tables."""
    yield from unsupported_tables(basis, engines)
    yield from tables_logged_otherwise(basis, engines)
    yield from _tables_with_taken_folders(basis, engines)
    yield from _tables_not_to_be_shown(basis)


def unsupported_tables(
    basis: Basis, engines: Mapping[TableName, str], *, at_end: bool = False
) -> Iterator[tuple[TableName, TableError]]:
    """Yield the tables whose storage engine is not supported. The server's `engines`
    decide, because a CREATE TABLE in the log may name no engine, or one that the server
    replaced. `at_end`: the log was read. Before that, a followed table is left alone if
    its last known engine is supported, since the ALTER TABLE in the log stops it."""
    for table, engine in engines.items():
        reason = reason_refused(engine)
        if reason is None or not basis.tables.is_wanted(table):
            continue
        schema = basis.structures.last_known_schema(table)
        was_supported = schema is not None and reason_refused(schema.engine) is None
        if at_end or not (was_supported and basis.tables[table].is_known):
            yield table, engine_error(table, reason)


def tables_logged_otherwise(
    basis: Basis, at_source: Iterable[TableName]
) -> Iterator[tuple[TableName, TableError]]:
    """Yield the tables whose rows the log has under another name, and the names under
    which it has them: with `lower_case_table_names = 2`, a server keeps the case of a
    table's name, and logs its rows in lower case. The name in the log must stop, too:
    settings for the table do not match it, so the lake would show hidden columns."""
    facts = basis.run_start.facts
    for table in at_source:
        for name, error in logged_otherwise_errors(table, facts.name_in_log(table)).items():
            if basis.tables.is_wanted(name):
                yield name, error


def _tables_with_taken_folders(
    basis: Basis, at_source: Iterable[TableName]
) -> Iterator[tuple[TableName, TableError]]:
    """Yield the tables whose mirrors would have the folder of another table's."""
    source, ledger = basis.ports.source, basis.ports.ledger
    states = ledger.table_states(source.name)
    tables = filter(source.patterns.matches, at_source)
    for table, other in collisions(basis.ports, states, tables).items():
        if basis.tables.is_wanted(table):
            in_lake = table in states
            yield table, collision_error(table, other, source.mirror_names, in_lake=in_lake)


def _tables_not_to_be_shown(basis: Basis) -> Iterator[tuple[TableName, TableError]]:
    """Yield the tables to whose structures at the start the settings cannot be applied.
    Without a change in the log, such a table would keep its old mirror, or be read from
    the source by the next run, which does not know any more that a person has to
    consent."""
    for version in basis.structures.history.versions:
        error = basis.structures.shape_error(version.table)
        if error is not None and basis.tables[version.table].takes(basis.run_start.start.at):
            yield version.table, error
