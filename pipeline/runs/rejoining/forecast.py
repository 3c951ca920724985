"""What the next run will do about a table that is to be released, told before it is ordered.

Belongs here: the way back as `rejoin` finds it, what the statement that the table stopped at
comes to today, and both in words. Does not: carrying it out (`catch_up_tables`, `catch_up`),
which column is which (`pipeline.schema.correspondence`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from pipeline.errors import LockstepError, Recovery, TableError
from pipeline.runs.context import Workplace
from pipeline.runs.cures import refusal
from pipeline.runs.recorded_statements import recorded_statements
from pipeline.runs.rejoining.log_reach import ReturnPlan, returns_of
from pipeline.runs.rejoining.rejoin import Backfill, CatchUp, ReadAgain
from pipeline.schema.consequences import GOES_ON, NOT_FOLLOWED, Consequence, consequences
from pipeline.schema.correspondence import may_rename_columns, why_unclear
from pipeline.schema.evolve import evolve
from pipeline.schema.logged import FollowedStatement, LoggedStatement
from pipeline.schema.model import ServerSchema, TableSchema
from pipeline.schema.refold import logged_statement
from pipeline.schema.statements.changes import Irrelevant, NotUnderstood
from pipeline.schema.statements.read import read_change
from pipeline.table import TableName
from pipeline.table_state import TableOrder


@dataclass(frozen=True, slots=True)
class StoppedAt:
    """What a table's history has of the place it stopped at. `before`: its structure there,
    None where nobody knew it; `statement`: the one that begins there; `consequence` and `after`:
    what it comes to today, and the structure it leaves."""

    before: TableSchema | None = None
    statement: LoggedStatement | None = None
    consequence: Consequence | None = None
    after: TableSchema | None = None

    @property
    def followed(self) -> bool:
        return self.consequence is not None and self.consequence.rule != NOT_FOLLOWED

    @property
    def why_read(self) -> str | None:
        """Why the table is read from the source whatever structure is given: a statement that
        is followed does to rows what no structure tells."""
        if self.consequence is None or not self.followed or self.consequence.action in GOES_ON:
            return None
        return self.consequence.reason

    def doubt(self, order: TableOrder) -> str | None:
        """Why the log alone does not bring the rows of before: it stops there again, or they
        cannot go on under the structure given."""
        if self.why_read is not None:
            return self.why_read
        if order.schema is None:
            return None if self.consequence is None or self.followed else self.consequence.reason
        before = self.after if self.followed else self.before
        if before is None:
            return None
        renaming = (
            self.statement is not None
            and self.consequence is not None
            and not self.followed
            and may_rename_columns(self.statement.text, self.statement.context)
        )
        renames = () if self.followed else order.renames
        return why_unclear(before, order.schema, renames, renaming=renaming)


def stopped_at(work: Workplace, order: TableOrder) -> StoppedAt:
    """By the ledger alone."""
    ledger, source, stopped = work.ledger, work.source.name, order.stopped
    if stopped is None:
        return StoppedAt()
    held = ledger.schema_at(source, order.table, batch=stopped.batch, place=stopped.at)
    before = None if held is None else held.schema
    if held is not None and before is None:
        earlier = ledger.schema_versions(source, order.table)
        known = [version.schema for version in earlier if version.version < held.version]
        before = next((one for one in reversed(known) if one is not None), None)
    statements = [
        statement
        for statement in recorded_statements(ledger, source)
        if statement.begin == stopped.at
    ]
    if not statements:
        return StoppedAt(before)
    logged = logged_statement(statements[-1])
    schema = ServerSchema(lower_case_table_names=logged.context.facts.lower_case_table_names)
    for database in ledger.databases_at(source, batch=stopped.batch, place=stopped.at):
        if database.schema is not None:
            schema = schema.with_database(database.schema)
    for one in ledger.schemas_at(source, batch=stopped.batch, place=stopped.at):
        schema = (
            schema.with_unknown(one.table) if one.schema is None else schema.with_table(one.schema)
        )
    followed, after = _followed(schema, logged)
    consequence = consequences(followed, work.source.lake, logged).get(order.table)
    return StoppedAt(before, logged, consequence, after.table(order.table))


def _followed(
    schema: ServerSchema, logged: LoggedStatement
) -> tuple[FollowedStatement, ServerSchema]:
    read = read_change(logged.text, logged.context)
    if isinstance(read, Irrelevant):
        return FollowedStatement(), schema
    if isinstance(read, NotUnderstood):
        return FollowedStatement(not_understood=read), schema
    done = evolve(schema, read, logged.context)
    return FollowedStatement(done.effects), done.schema


# -- in words -------------------------------------------------------------------------------


def foretold(work: Workplace, order: TableOrder, place: StoppedAt) -> str:
    """What happens by a release that is not yet given, in a sentence or two; writes nothing."""
    table = order.table
    if not work.source.patterns.matches(table):
        return f"no run takes {table} up: the source's patterns leave it out"
    try:
        if (again := _refused_again(work, table)) is not None:
            return f"it would be quarantined again: {again.reason}. First {again.hint}"
        returns = returns_of(replace(work, source=replace(work.source, until=None)), [order])
    except LockstepError as error:
        if error.recovery is not Recovery.RETRY:
            raise
        return _either_way(order, place.doubt(order))
    return _told(order, returns, place.doubt(order))


def _refused_again(work: Workplace, table: TableName) -> TableError | None:
    """Why the table, as the server has it now, is not captured."""
    try:
        schemas = work.server.current_schemas([table]).tables
    except TableError:
        return None
    return refusal(schemas[table]) if table in schemas else None


def _told(order: TableOrder, returns: ReturnPlan, doubt: str | None) -> str:
    table = order.table
    way, then = returns.ways[table], returns.besides[table]
    if isinstance(way, ReadAgain):
        return (
            f"the next run reads {table} from the source: {way.why}; then it goes on with the "
            "others"
        )
    if isinstance(way, CatchUp):
        end = "the others" if returns.cursor is None else returns.cursor.position.at
        told = f"catches {table} up through the log, from {way.span.low} to {end}"
    else:
        told = f"takes {table} up as it is, because the log has nothing that it lacks"
    why = then.why if isinstance(then, ReadAgain) else doubt
    if why is not None:
        told += f", and reads it from the source: {why}"
    elif isinstance(then, Backfill):
        told += f", and reads its new columns from the source: {then.why}"
    return f"the next run {told}; then it goes on with the others{_given(order, why)}"


def _either_way(order: TableOrder, doubt: str | None) -> str:
    """Without the server, which tells what its log still has."""
    at = f" at {order.stopped.at}" if order.stopped is not None else ""
    if doubt is not None:
        return (
            f"the next run reads {order.table} from the source: {doubt}; then it goes on with the "
            "others"
        )
    return (
        f"the next run catches {order.table} up through the log, from where it stopped{at}, or "
        "reads it from the source where the log cannot bring it; then it goes on with the others"
        f"{_given(order, doubt)}"
    )


def _given(order: TableOrder, why: str | None) -> str:
    if order.schema is None or order.stopped is None:
        return ""
    told = f". From {order.stopped.at} on it has the given structure"
    if why is not None:
        return told
    renamed = "".join(f", {old} becomes {new}" for old, new in order.renames)
    return f"{told}: no row is read from the source{renamed}, the other columns keep their names"
