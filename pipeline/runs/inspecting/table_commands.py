"""What people order about one table: stop it, take it up again, bring it back.

Belongs here: whether an order names a table that there is, the structure given with a
release, and what happens next, in words. Does not: carrying it out (`capture`), the rules
of order, which the ledger keeps.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from pipeline.changes.reload import FromSource, Origin
from pipeline.decisions import Lease
from pipeline.errors import ConfigurationError, LedgerRefused, Remedy
from pipeline.ports.ledger import Ledger
from pipeline.runs.capturing.logged_statements import facts_of_server
from pipeline.runs.context import Workplace
from pipeline.runs.inspecting.schema_history import unknown_table
from pipeline.runs.rejoining.forecast import foretold, stopped_at
from pipeline.runs.rejoining.rejoin import remedy_of
from pipeline.runs.rejoining.reload import origin_of
from pipeline.schema.context import ServerDialect, read_context
from pipeline.schema.correspondence import why_refused
from pipeline.schema.evolve import evolve
from pipeline.schema.evolving.effects import Created, NotFollowed
from pipeline.schema.model import ServerSchema, TableSchema
from pipeline.schema.plain import believed
from pipeline.schema.statements.changes import CreateTable, Irrelevant, NotUnderstood
from pipeline.schema.statements.read import read_change
from pipeline.table import TableName
from pipeline.table_state import OrderKind, TableCondition, TableOrder, TableState


@dataclass(frozen=True, slots=True)
class Ordered:
    """An order as it is recorded, and what happens next, in a sentence."""

    order: TableOrder
    next: str


def require_known(states: Mapping[TableName, TableState], source: str, table: TableName) -> None:
    """`NothingMatches` for a table that no run has captured."""
    if table not in states:
        raise unknown_table(table, states, f"the lake of {source}")


@dataclass(frozen=True, slots=True)
class Asked:
    """What a person says. `statement`: a CREATE TABLE that says how the table is built from
    where it stopped, for a release; `renames`: which of its columns were called what before."""

    table: TableName
    author: str
    reason: str
    statement: str | None = None
    renames: tuple[tuple[str, str], ...] = ()


def give_order(
    work: Workplace,
    lease: Lease,
    kind: OrderKind,
    asked: Asked,
    tell: Callable[[str], None] = lambda told: None,
) -> Ordered:
    """Record it. `tell`: what a release will do, before that is ordered.

    `NothingMatches`, `ConfigurationError` for a statement that cannot be taken, and
    `LedgerRefused` for an order that does not fit the table's state: nothing is recorded.
    """
    ledger, table = work.ledger, asked.table
    states = ledger.table_states(work.source.name)
    require_known(states, work.source.name, table)
    release = None
    if kind is OrderKind.RELEASE:
        release = foresee_release(work, asked)
        tell(release.next)
    order = ledger.order_table(
        lease,
        table,
        kind,
        author=asked.author,
        reason=asked.reason,
        remedy=remedy_of(states[table]) if kind is OrderKind.PAUSE else None,
        schema=None if release is None else release.order.schema,
        renames=() if release is None else asked.renames,
    )
    if release is not None:
        return replace(release, order=order)
    if kind is OrderKind.RELOAD:
        return Ordered(order, _reloads(work, order, states[table]))
    return Ordered(order, what_next(order))


def foresee_release(work: Workplace, asked: Asked) -> Ordered:
    """The order as it would be recorded, under no number, and what would happen by it.
    Refused as `give_order` is; nothing is recorded."""
    states = work.ledger.table_states(work.source.name)
    require_known(states, work.source.name, asked.table)
    state = states[asked.table]
    schema = None if asked.statement is None else _given(work, asked.table, asked.statement)
    order = TableOrder(
        0,
        asked.table,
        OrderKind.RELEASE,
        asked.author,
        asked.reason,
        work.clock(),
        state.stopped,
        schema,
        asked.renames,
    )
    if state.condition is not TableCondition.QUARANTINED:
        raise LedgerRefused(
            f"{asked.table} is {state.condition}: only a table that is quarantined is released.",
            hint="`lockstep status` shows what is quarantined or paused, and what to do.",
        )
    place = stopped_at(work, order)
    if schema is not None and asked.renames:
        _require_renames(asked, place.before, schema)
    return Ordered(order, foretold(work, order, place))


def _require_renames(asked: Asked, before: TableSchema | None, given: TableSchema) -> None:
    why = "its earlier columns are not known"
    if before is not None:
        why = why_refused(before, given, asked.renames) or ""
    if why:
        raise ConfigurationError(
            f"--rename does not fit {asked.table}: {why}.",
            hint="give --rename OLD=NEW for each column whose name has changed since the table "
            "stopped; without --rename the table is re-read from MySQL where names are not enough",
        )


def _reloads(work: Workplace, order: TableOrder, state: TableState) -> str:
    """How a reload would be carried out now; its files are looked at by the run."""
    origin: Origin = FromSource("the log alone cannot bring it")
    if remedy_of(state) in (None, Remedy.REWRITE_MIRROR):
        origin = origin_of(work, state, files=False)
    return f"the next run rewrites the mirror of {order.table}, {origin.told}"


def what_next(order: TableOrder) -> str:
    """What happens by a pause or a resumption, in a sentence."""
    table = order.table
    at = f" at {order.stopped.at}" if order.stopped is not None else ""
    if order.kind is OrderKind.PAUSE:
        return (
            f"{table} stops{at}; the other tables go on. `lockstep resume {table}` brings it back"
        )
    return (
        f"the next run catches {table} up through the log, from where it stopped{at}, or reads it "
        "from the source where the log cannot bring it; then it goes on with the others"
    )


# -- a structure given by a person ----------------------------------------------------------


def _given(work: Workplace, table: TableName, statement: str) -> TableSchema:
    facts = facts_of_server(work.server.facts())
    schema = _known_now(work.ledger, work.source.name, facts.lower_case_table_names)
    return read_definition(statement, table, schema, facts)


def _known_now(ledger: Ledger, source: str, folding: int) -> ServerSchema:
    """What the history knows of the server: what a definition refers to."""
    schema = ServerSchema(lower_case_table_names=folding)
    for database in ledger.databases_at(source):
        if database.schema is not None:
            schema = schema.with_database(database.schema)
    known = (version.schema for version in ledger.schemas_at(source))
    tables = {schema.fold(table.name): table for table in known if table is not None}
    return replace(schema, tables=tables)


def read_definition(
    statement: str, table: TableName, schema: ServerSchema, facts: ServerDialect
) -> TableSchema:
    """One CREATE TABLE of that table, as `show create table` prints it → its structure;
    what it leaves open is the database's. `ConfigurationError` for anything else."""
    text = statement.strip().removesuffix(";")
    # SHOW CREATE TABLE writes out what TIMESTAMP columns have, and leaves default collations out.
    context = replace(read_context(b"", facts, table.database), explicit_timestamps=True)
    found = read_change(text, context)
    if isinstance(found, NotUnderstood):
        raise _refused(f"it is not understood: {found.reason}", table)
    if isinstance(found, Irrelevant) or len(found) != 1 or not isinstance(found[0], CreateTable):
        raise _refused("it is not one CREATE TABLE with columns", table)
    if schema.fold(found[0].table) != schema.fold(table):
        raise _refused(f"it creates {found[0].table}", table)
    done = evolve(schema.without_table(table), found, context)
    for effect in done.effects:
        if isinstance(effect, Created):
            columns = tuple(map(believed, effect.after.columns))
            return replace(effect.after, name=table, columns=columns)
        if isinstance(effect, NotFollowed):
            raise _refused(effect.reason, table)
    raise _refused("it creates nothing", table)


def _refused(why: str, table: TableName) -> ConfigurationError:
    return ConfigurationError(
        f"The structure given for {table} cannot be taken: {why}.",
        hint=f"give what `show create table` prints for {table}",
    )
