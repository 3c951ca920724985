"""What people order about one table: stop it, take it up again, bring it back.

Belongs here: whether an order names a table that there is, the structure given with a
release, and what happens next, in words. Does not: carrying it out (`capture`), the rules
of order, which the ledger keeps.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from pipeline.changes.reload import FromSource, Origin
from pipeline.decisions import Lease
from pipeline.errors import ConfigurationError, Remedy
from pipeline.ports.ledger import Ledger
from pipeline.runs.coming_back import may_rename_columns, which_is_which
from pipeline.runs.context import Workplace
from pipeline.runs.reloading import origin_of
from pipeline.runs.rereading import remedy_of
from pipeline.runs.showing_schema import unknown_table
from pipeline.runs.structures import facts_of_server
from pipeline.schema.context import ServerFacts, StatementContext
from pipeline.schema.evolve import evolve
from pipeline.schema.evolving.effects import Created, NotFollowed
from pipeline.schema.history import Knowledge
from pipeline.schema.model import ServerSchema, TableSchema
from pipeline.schema.plain import believed
from pipeline.schema.statements.changes import CreateTable, Irrelevant, NotUnderstood
from pipeline.schema.statements.read import read_change
from pipeline.table import TableName
from pipeline.table_state import OrderKind, TableOrder, TableState


@dataclass(frozen=True, slots=True)
class Ordered:
    """An order as it is recorded, and what happens next, in a sentence."""

    order: TableOrder
    next: str


def require_known(states: Mapping[TableName, TableState], source: str, table: TableName) -> None:
    """`NothingMatches` for a table that no run has captured."""
    if table not in states:
        raise unknown_table(table, states, f"the lake of {source}")


def give_order(
    work: Workplace,
    lease: Lease,
    kind: OrderKind,
    table: TableName,
    *,
    author: str,
    reason: str,
    statement: str | None = None,
) -> Ordered:
    """Record it. `statement`: a CREATE TABLE that says how the table is built from where it
    stopped, for a release.

    `NothingMatches`, `ConfigurationError` for a statement that cannot be taken, and
    `LedgerRefused` for an order that does not fit the table's state: nothing is recorded.
    """
    ledger, doubt = work.ledger, None
    states = ledger.table_states(work.source.name)
    require_known(states, work.source.name, table)
    match kind:
        case OrderKind.PAUSE:
            remedy = remedy_of(states[table])
            order = ledger.pause_table(lease, table, author=author, reason=reason, remedy=remedy)
        case OrderKind.RESUME:
            order = ledger.resume_table(lease, table, author=author, reason=reason)
        case OrderKind.RELEASE:
            schema = None if statement is None else _given(work, table, statement)
            order = ledger.release_table(lease, table, author=author, reason=reason, schema=schema)
            doubt = None if schema is None else _doubt(work, order, schema)
        case OrderKind.RELOAD:
            order = ledger.reload_table(lease, table, author=author, reason=reason)
            return Ordered(order, _reloads(work, order, states[table]))
    return Ordered(order, what_next(order, doubt))


def _reloads(work: Workplace, order: TableOrder, state: TableState) -> str:
    """How a reload would be carried out now; its files are looked at by the run."""
    origin: Origin = FromSource("the log alone cannot bring it")
    if remedy_of(state) in (None, Remedy.REWRITE_MIRROR):
        origin = origin_of(work, state, files=False)
    return f"the next run writes the mirror of {order.table} anew, {origin.told}"


def _doubt(work: Workplace, order: TableOrder, given: TableSchema) -> str | None:
    """Why the structure given does not tell which column is which; None where it does."""
    versions = work.ledger.schema_versions(work.source.name, order.table)
    before = next((one.schema for one in reversed(versions) if one.schema is not None), None)
    if before is None:
        return None
    last = versions[-1]
    renames = False
    if last.knowledge is Knowledge.UNKNOWN and last.statement is not None:
        facts = facts_of_server(work.server.facts())
        text = work.ledger.statement(work.source.name, last.statement).text
        renames = may_rename_columns(text, StatementContext(facts=facts))
    return which_is_which(before, given, renames=renames)


def what_next(order: TableOrder, doubt: str | None = None) -> str:
    """What happens by the order, in a sentence. `doubt`: why the structure given does not
    tell which column is which."""
    table = order.table
    at = f" at {order.stopped.at}" if order.stopped is not None else ""
    if order.kind is OrderKind.PAUSE:
        return f"{table} stops{at}; the other tables go on. `lockstep resume {table}` ends it"
    if doubt is not None:
        return (
            f"the next run reads {table} from the source, because names alone do not tell which "
            f"column is which: {doubt}; then it goes on with the others"
        )
    given = "; there it has the structure given" if order.schema is not None else ""
    return (
        f"the next run catches {table} up through the log, from where it stopped{at}, or reads it "
        f"from the source where the log cannot bring it; then it goes on with the others{given}"
    )


# -- a structure given by a person ----------------------------------------------------------


def _given(work: Workplace, table: TableName, statement: str) -> TableSchema:
    facts = facts_of_server(work.server.facts())
    schema = _known_now(work.ledger, work.source.name, facts.lower_case_table_names)
    return read_definition(statement, table, schema, facts)


def _known_now(ledger: Ledger, source: str, folding: int) -> ServerSchema:
    """What the history knows of the server: what a definition refers to."""
    schema = ServerSchema(lower_case_table_names=folding)
    for database in ledger.databases(source):
        if database.schema is not None:
            schema = schema.with_database(database.schema)
    known = (one.schema for one in ledger.newest_schemas(source))
    tables = {schema.fold(table.name): table for table in known if table is not None}
    return replace(schema, tables=tables)


def read_definition(
    statement: str, table: TableName, schema: ServerSchema, facts: ServerFacts
) -> TableSchema:
    """One CREATE TABLE of that table, as `show create table` prints it → its structure;
    what it leaves open is the database's. `ConfigurationError` for anything else."""
    text = statement.strip().removesuffix(";")
    context = StatementContext(facts=facts, database=table.database)
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
