"""What people order about one table: stop it, bring it back, write its mirror again. Carried out by
runs.

Before a table is resumed it is told what happens next: the plan of the next run,
and what the statement that the table stopped at comes to today.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

from pipeline.batch import TableContent
from pipeline.changes.layout import mirror_path, snapshot_path
from pipeline.changes.merging import FromChangelog, Origin
from pipeline.decisions import Lease
from pipeline.errors import (
    AccessDenied,
    ConfigurationError,
    HostUnknown,
    LedgerRefused,
    LockstepError,
    Need,
    PastRefused,
    Recovery,
    SourceRefused,
    TableError,
)
from pipeline.ports.ledger import Ledger
from pipeline.runs.agreement.lake_logs import foreign_mirrors
from pipeline.runs.capturing.logged_statements import facts_of_server, recorded_statements
from pipeline.runs.context import Workplace
from pipeline.runs.cures import refusal
from pipeline.runs.inspecting.schema_history import unknown_table
from pipeline.runs.mirror_places import meetings
from pipeline.runs.past import Pasts, find_pasts
from pipeline.runs.wanted import (
    TablePlans,
    earlier_version_of,
    needs_of,
    origin_of,
    plan_returns,
)
from pipeline.schema.consequences import GOES_ON, NOT_FOLLOWED, Consequence, consequences
from pipeline.schema.context import ServerDialect, read_context
from pipeline.schema.evolve import evolve
from pipeline.schema.evolving.effects import Created, NotFollowed
from pipeline.schema.history import Knowledge, SchemaVersion
from pipeline.schema.logged import FollowedStatement, LoggedStatement
from pipeline.schema.model import ServerSchema, TableSchema
from pipeline.schema.plain import believed
from pipeline.schema.refold import logged_statement
from pipeline.schema.statements.changes import CreateTable, Irrelevant, NotUnderstood
from pipeline.schema.statements.read import read_change
from pipeline.schema.table_effects import (
    columns_from,
    may_rename_columns,
    why_renames_refused,
    why_unclear,
)
from pipeline.shape.shaping import consent_hint
from pipeline.supply.past import Past
from pipeline.supply.plan import ColumnsRead, Rewritten, RowsRead
from pipeline.table import TableName
from pipeline.table_state import (
    OrderKind,
    Supplier,
    TableOrder,
    TableState,
)


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
    where it stopped; `renames`: which of its columns were called what before."""

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
    """Record it. `tell` is given what the next run does for a table that is resumed, before that is
    ordered.

    `NothingMatches`, `ConfigurationError` for a statement that cannot be taken, and
    `LedgerRefused` for an order that does not fit the table's state: nothing is recorded.
    """
    ledger, table = work.ledger, asked.table
    states = ledger.table_states(work.source.name)
    require_known(states, work.source.name, table)
    resumed = None
    if kind is OrderKind.RESUME:
        resumed = foresee_resume(work, asked)
        tell(resumed.next)
    loads = ledger.open_loads(work.source.name) if kind is OrderKind.PAUSE else []
    order = ledger.order_table(
        lease,
        table,
        kind,
        author=asked.author,
        reason=asked.reason,
        schema=None if resumed is None else resumed.order.schema,
        renames=() if resumed is None else asked.renames,
    )
    if resumed is not None:
        return replace(resumed, order=order)
    for load in loads:
        if load.table == table:  # it is void by the pause
            work.segments.discard_load(snapshot_path(work.source.name, table), load.id)
    at = f" at {order.stopped.at}" if order.stopped is not None else ""
    back = f"`lockstep resume {table}` brings it back"
    return Ordered(order, f"{table} stops{at}; the other tables go on. {back}")


@dataclass(frozen=True, slots=True)
class Reload:
    """A mirror that is to be written again. `said`: from where, if a person says so; `supplier`:
    what that comes to today, and `why`, where that is MySQL and nobody said so. `next`: what the
    next run does, a sentence; `rows`: how many it reads from MySQL, as the server estimates, None
    for none. `stopped`: the table has stopped, and goes on by this; `reading`: its rows are being
    read already, and nothing has to be recorded; `origin`: what it is written from without MySQL,
    None where its rows are read. Once it is recorded: the `order` of a table that
    stops for it, or the number of the `load` of one that does not."""

    asked: Asked
    said: Supplier | None
    supplier: Supplier
    next: str
    why: str = ""
    rows: int | None = None
    stopped: bool = False
    reading: bool = False
    origin: FromChangelog | None = None
    order: TableOrder | None = None
    load: int | None = None

    @property
    def table(self) -> TableName:
        return self.asked.table


class Reloading:
    """What is known of tables that are to be reloaded, asked once for all of them."""

    def __init__(self, work: Workplace, tables: Collection[TableName]) -> None:
        self.work, self.tables = work, tables
        self.states = work.ledger.table_states(work.source.name)
        self.loads = {load.table: load for load in work.ledger.open_loads(work.source.name)}

    @cached_property
    def pasts(self) -> Pasts:
        """What the log has of those that are not in the lake yet."""
        return find_pasts(self.work, [table for table in self.tables if table not in self.states])

    @cached_property
    def rows(self) -> Mapping[TableName, int]:
        return self.work.server.estimated_rows(self.tables)

    @cached_property
    def foreign(self) -> Collection[TableName]:
        """Tables that no run has captured, at whose places somebody else made something."""
        new = [table for table in self.tables if table not in self.states]
        return foreign_mirrors(self.work, new).keys() if new else ()

    @cached_property
    def _contents(self) -> Mapping[TableName, list[TableContent]]:
        found: dict[TableName, list[TableContent]] = {table: [] for table in self.tables}
        ledger, source = self.work.ledger, self.work.source.name
        newest = ledger.cursors(source).captured
        if newest is not None:
            for batch in ledger.contents(source, 1, newest.batch, self.tables):
                for table, content in batch.by_table().items():
                    found[table].append(content)
        return found

    def reads(self, table: TableName) -> bool:
        """Whether its rows are being read from MySQL already, and it has not stopped since."""
        load, state = self.loads.get(table), self.states.get(table)
        if state is not None and (state.has_stopped or state.loading):
            return state.loading
        return load is not None and load.reading is not None

    def origin(self, asked: Asked, supplier: Supplier | None) -> Origin:
        """What the mirror would be written from; a sentence where that is MySQL."""
        state = self.states.get(asked.table)
        if state is None:
            return "it is not in the lake yet"
        if state.has_stopped:
            return _on_return(self.work, asked, state, supplier)
        if needs_of(state) - {Need.MIRROR}:
            return "rows of it are missing that only MySQL has"
        # The run looks at its files.
        contents = self._contents[asked.table]
        origin = origin_of(self.work, state, files=False, contents=contents)
        if not isinstance(origin, str) or supplier is not Supplier.CHANGELOG:
            return origin
        earlier = earlier_version_of(self.work, state, files=False, contents=contents)
        return f"{origin}, and {earlier}" if isinstance(earlier, str) else earlier


def _on_return(
    work: Workplace, asked: Asked, state: TableState, supplier: Supplier | None
) -> Origin:
    """What the mirror of a table that stopped is written from, by the plan of the next run."""
    order = TableOrder(
        0,
        asked.table,
        OrderKind.RELOAD,
        asked.author,
        asked.reason,
        work.clock(),
        state.stopped,
        supplier=supplier,
    )
    plans = plan_returns(replace(work, source=replace(work.source, until=None)), [order])
    way = plans.plans[asked.table]
    if way.waits is not None:
        return way.waits
    assert way.besides is not None, "a mirror that is written again has a supply besides the log"
    supply = way.besides.supply
    return supply.origin if isinstance(supply, Rewritten) else way.besides.reason


def foresee_reload(
    work: Workplace, asked: Asked, supplier: Supplier | None, known: Reloading | None = None
) -> Reload:
    """Return what is done, and recorded by `give_reload`. `supplier`: None for the changelog if it
    is complete, else MySQL; `known`: of several tables. `PastRefused` if it is to be the changelog
    or the log and cannot, `LedgerRefused` if a person has to consent to what it would show."""
    known = known or Reloading(work, [asked.table])
    table, state = asked.table, known.states.get(asked.table)
    if supplier is Supplier.LOG:
        return _foresee_past(asked, known)
    if state is not None:
        _require_consent(work, state)
    reads = known.reads(table)
    origin: Origin = "its rows are being read from MySQL"
    if not reads and supplier is not Supplier.SOURCE:
        origin = known.origin(asked, supplier)
    if supplier is Supplier.CHANGELOG and isinstance(origin, str):
        raise PastRefused(
            f"the mirror of {table} cannot be written again from its changelog: {origin}",
            hint=f"`lockstep reload {table} --from source --reason …` reads it from MySQL",
        )
    stopped = state is not None and state.has_stopped
    if reads:
        told = f"{table} is being read from the source already; the next run reads on"
        load = known.loads[table].id if table in known.loads else None
        return Reload(asked, supplier, Supplier.SOURCE, told, reading=True, load=load)
    goes_on = "; it goes on by this" if stopped else ""
    told = f"the next run rewrites the mirror of {table}"
    if supplier is not Supplier.SOURCE and isinstance(origin, FromChangelog):
        told += f", {origin.told}: {origin.size}; no row is read from the source"
        told += goes_on or "; until then it stops"
        return Reload(asked, supplier, Supplier.CHANGELOG, told, stopped=stopped, origin=origin)
    why = "" if supplier is Supplier.SOURCE else str(origin)
    told += f", from the source{why and f': {why}'}{goes_on}"
    if table in known.foreign:
        mirror = mirror_path(work.source.name, work.source.mirror_name(table))
        told += f"; what somebody else made in the lake at {mirror} is replaced"
    rows = known.rows.get(table)
    return Reload(asked, supplier, Supplier.SOURCE, told, why, rows, stopped)


def _foresee_past(asked: Asked, known: Reloading) -> Reload:
    """Return how a table is followed from where the log still tells all of it."""
    table = asked.table
    if table in known.states:
        past: Past | str = "it is in the lake, and nothing can be put before its changelog"
    elif table in known.loads and known.loads[table].reading is not None:
        past = "its rows are being read from MySQL already"
    else:
        past = known.pasts.of[table]
    if isinstance(past, str):
        raise PastRefused(
            f"{table} cannot be followed from the log's past: {past}",
            hint=f"`lockstep reload {table} --from source --reason …` reads it from MySQL as it is",
        )
    told = (
        f"the next run follows {table} from {past.begins} on, and not earlier, because {past.why}; "
        f"{known.pasts.log_bytes(past):,} bytes of log are read again"
    )
    if past.whole:
        return Reload(asked, Supplier.LOG, Supplier.LOG, f"{told}, which has all of its rows")
    rows = known.rows.get(table)
    return Reload(asked, Supplier.LOG, Supplier.LOG, f"{told}, then its rows from MySQL", rows=rows)


def _require_consent(work: Workplace, state: TableState) -> None:
    """Refuse what would show more than the settings of its former columns or name show: that is a
    person's word (`resume`), and no side effect."""
    why = state.reason if state.need is Need.CONSENT else None
    if work.shaping.hides:
        newest = work.ledger.schema_versions(work.source.name, state.table)[-1:]
        unknown = [one.reason for one in newest if one.knowledge is Knowledge.UNKNOWN]
        why = next(iter(unknown), why)
    if why is not None:
        raise LedgerRefused(
            f"{state.table} is not reloaded, because it may show more then: {why}.",
            hint=consent_hint(state.table),
        )


def give_reload(work: Workplace, lease: Lease, reload: Reload) -> Reload:
    """Record it. A table that is read from MySQL is followed meanwhile, unless it has stopped; one
    whose mirror is written from its changelog stops until the next run."""
    asked, table = reload.asked, reload.table
    if reload.reading:
        return reload
    if reload.supplier is Supplier.LOG:
        values = {"author": asked.author, "reason": asked.reason}
        load = work.ledger.order_load(lease, table, **values, with_past=True)
        return replace(reload, load=load.id)
    if reload.supplier is Supplier.SOURCE and not reload.stopped:
        why = f"{asked.reason}; {reload.why}" if reload.why else asked.reason
        load = work.ledger.order_load(lease, table, author=asked.author, reason=why)
        return replace(reload, load=load.id)
    order = work.ledger.order_table(
        lease,
        table,
        OrderKind.RELOAD,
        author=asked.author,
        reason=asked.reason,
        supplier=reload.said,
    )
    return replace(reload, order=order)


def foresee_resume(work: Workplace, asked: Asked) -> Ordered:
    """The order as it would be recorded, under no number, and what would happen by it.
    Refused as `give_order` is; nothing is recorded."""
    states = work.ledger.table_states(work.source.name)
    require_known(states, work.source.name, asked.table)
    state = states[asked.table]
    schema: TableSchema | None = None
    if asked.statement is not None:
        facts = facts_of_server(work.server.facts())
        known = _known_now(work.ledger, work.source.name, facts.lower_case_table_names)
        # The order is kept for good: without values of columns that the settings hide.
        given = read_definition(asked.statement, asked.table, known, facts)
        schema = work.shaping.redacted(given)
    order = TableOrder(
        0,
        asked.table,
        OrderKind.RESUME,
        asked.author,
        asked.reason,
        work.clock(),
        state.stopped,
        schema,
        asked.renames,
    )
    if not state.has_stopped:
        raise LedgerRefused(
            f"{asked.table} is {state.in_words}: only a table that is stopped is resumed.",
            hint="`lockstep status` shows which tables are stopped, and what to do.",
        )
    place = stopped_at(work, order)
    if schema is not None and asked.renames:
        _require_renames(asked, place.before, schema)
    if schema is not None and not place.followed:
        _require_no_more(work, asked, place, schema)
    return Ordered(order, foretold(work, order, place))


def _require_renames(asked: Asked, before: TableSchema | None, given: TableSchema) -> None:
    why = "its earlier columns are not known"
    if before is not None:
        why = why_renames_refused(before, given, asked.renames) or ""
    if why:
        raise ConfigurationError(
            f"--rename does not fit {asked.table}: {why}.",
            hint="give --rename OLD=NEW for each column whose name has changed since the table "
            "stopped; without --rename the table is re-read from MySQL where names are not enough",
        )


def _require_no_more(work: Workplace, asked: Asked, place: StoppedAt, given: TableSchema) -> None:
    """A structure that is given tells which columns have which values; it is no consent to show
    values that were hidden."""
    if place.version is None or place.before is None:
        return
    origins = columns_from(place.before, given, asked.renames)
    try:
        work.shaping.recorded(given, place.version, origins)
    except TableError as error:
        raise ConfigurationError(
            f"The structure given for {asked.table} cannot be taken: {error.reason}.",
            hint=error.hint,
        ) from error


@dataclass(frozen=True, slots=True)
class StoppedAt:
    """What a table's history has of the place it stopped at. `version`: its structure there, None
    where nobody knew it; `statement`: the one that begins there; `consequence` and `after`: what it
    comes to today, and the structure it leaves."""

    version: SchemaVersion | None = None
    statement: LoggedStatement | None = None
    consequence: Consequence | None = None
    after: TableSchema | None = None

    @property
    def before(self) -> TableSchema | None:
        return None if self.version is None else self.version.schema

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
    ledger, source, stopped = work.ledger, work.source.name, order.stopped
    if stopped is None:
        return StoppedAt()
    held = ledger.schema_at(source, order.table, batch=stopped.batch, place=stopped.at)
    before = held
    if held is not None and held.schema is None:
        earlier = ledger.schema_versions(source, order.table)
        known = [one for one in earlier if one.version < held.version and one.schema is not None]
        before = known[-1] if known else None
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
    found = consequences(followed, work.source.policies_of, logged, work.shaping.treated)
    consequence = found.get(order.table)
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
    """What happens by a resume that is not yet given, in a sentence or two; writes nothing."""
    table = order.table
    if not work.source.patterns.matches(table):
        return f"no run takes {table} up: the source's patterns leave it out"
    states = work.ledger.table_states(work.source.name)
    if (other := meetings(work, states).get(table)) is not None:
        return f"no run takes {table} up: its mirror would lie where that of {other} does"
    returns: TablePlans | None = None
    try:
        if (again := _refused_again(work, table)) is not None:
            return f"it would be quarantined again: {again.reason}. First {again.hint}"
        returns = plan_returns(replace(work, source=replace(work.source, until=None)), [order])
    except (AccessDenied, HostUnknown, SourceRefused):
        pass  # an order needs no server: the run that carries it out tells of this
    except LockstepError as error:
        if error.recovery is not Recovery.RETRY:
            raise
    doubt = place.doubt(order)
    if returns is None:  # the server tells what its log still has
        if doubt is None:
            return f"the next run {_either_way(order)}{_by_the_given_structure(order, doubt)}"
        return f"the next run reads {table} from the source: {doubt}; {_GOES_ON}"
    way = returns.plans[table]
    step = way.besides
    read = step is not None and isinstance(step.supply, RowsRead)
    if step is not None and read and way.span is None:
        return f"the next run reads {table} from the source: {step.reason}; {_GOES_ON}"
    if way.span is not None:
        end = "the others" if returns.cursor is None else returns.cursor.position.at
        told = f"catches {table} up through the log, from {way.span.low} to {end}"
    else:
        told = f"takes {table} up as it is, because the log has nothing that it lacks"
    why = step.reason if step is not None and read else doubt
    if why is not None:
        told += f", and reads it from the source: {why}"
    elif step is not None and isinstance(step.supply, ColumnsRead):
        told += f", and reads its new columns from the source: {step.reason}"
    return f"the next run {told}; {_GOES_ON}{_by_the_given_structure(order, why)}"


def _refused_again(work: Workplace, table: TableName) -> TableError | None:
    """Why the table, as the server has it now, is not captured."""
    try:
        schemas = work.server.current_schemas([table]).tables
    except TableError:
        return None
    return refusal(schemas[table]) if table in schemas else None


_GOES_ON: Final = "then it goes on with the others"


def _either_way(order: TableOrder) -> str:
    """What becomes of a table where nobody knows what the log still has."""
    at = f" at {order.stopped.at}" if order.stopped is not None else ""
    return (
        f"catches {order.table} up through the log, from where it stopped{at}, or reads it from "
        f"the source where the log cannot bring it; {_GOES_ON}"
    )


def _by_the_given_structure(order: TableOrder, why: str | None) -> str:
    if order.schema is None or order.stopped is None:
        return ""
    told = f". From {order.stopped.at} on it has the given structure"
    if why is not None:
        return told
    renamed = "".join(f", {old} becomes {new}" for old, new in order.renames)
    return f"{told}: no row is read from the source{renamed}, the other columns keep their names"


# -- a structure given by a person ----------------------------------------------------------


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
