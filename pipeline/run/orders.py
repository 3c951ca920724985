"""People's orders about tables (pause, resume, reload) are planned and recorded here.
Runs carry them out.

Before a resume is recorded, its outcome is shown: the plan of the next run, and what
today's settings make of the statement at which the table stopped.

A reload writes a mirror (the Delta table with the current rows), or some of its rows,
again. A person orders it, or a comparison found a difference. The plan decides whether
MySQL, the changelog or the log supplies the rows. The next run carries it out; only a
reload of rows under a condition is carried out by the run to which it is given.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Final

from lockstep.pipeline.mirror.layout import mirror_path, snapshot_path
from lockstep.pipeline.mirror.merging import ChangelogOrigin, OriginOrReason
from lockstep.pipeline.model.batch import TableContent
from lockstep.pipeline.model.table_state import OrderKind, Supplier, TableOrder, TableState
from lockstep.pipeline.ports.ledger import Structures
from lockstep.pipeline.run.agreement.lake_logs import (
    checked_version,
    foreign_mirrors,
    mirror_judgement,
)
from lockstep.pipeline.run.begin import StartProposal
from lockstep.pipeline.run.consent import unknown_structure_error
from lockstep.pipeline.run.context import RunPorts
from lockstep.pipeline.run.dump.logged_statements import dialect_of, recorded_statements
from lockstep.pipeline.run.follow_pasts import Pasts, find_pasts
from lockstep.pipeline.run.load.by_condition import condition_refusal
from lockstep.pipeline.run.mirror_folders import collisions, next_folder
from lockstep.pipeline.run.repair import foresee_next_start
from lockstep.pipeline.run.reports import VerifyReport
from lockstep.pipeline.run.status.schema_history import unknown_table_error
from lockstep.pipeline.run.stop_errors import (
    collision_error,
    logged_otherwise_errors,
    unsupported_error,
)
from lockstep.pipeline.run.table_plans import (
    TablePlans,
    needs_of,
    plan_orders,
)
from lockstep.pipeline.run.write.usable_origin import (
    changelog_origin_of,
    earlier_version_origin_of,
)
from lockstep.pipeline.schema.consequences import (
    NOT_FOLLOWED_RULE,
    ROW_KEEPING_ACTIONS,
    Action,
    Consequence,
    consequences,
)
from lockstep.pipeline.schema.context import ServerDialect, read_context
from lockstep.pipeline.schema.effects import (
    Created,
    FollowedStatement,
    LoggedStatement,
    NotFollowed,
)
from lockstep.pipeline.schema.evolve import evolve
from lockstep.pipeline.schema.evolving.defaults import with_plain_default
from lockstep.pipeline.schema.history import Knowledge, SchemaVersion
from lockstep.pipeline.schema.history_check import logged_statement
from lockstep.pipeline.schema.model import ServerSchema, TableSchema
from lockstep.pipeline.schema.statements.changes import CreateTable, Irrelevant, NotUnderstood
from lockstep.pipeline.schema.statements.read import read_change
from lockstep.pipeline.schema.table_effects import (
    match_columns,
    may_rename_columns,
    reason_given_shape_changed,
    reason_renames_refused,
    reason_unclear,
)
from lockstep.pipeline.shape.shaping import Shaping, consent_hint
from lockstep.pipeline.snapshot.condition import read_condition
from lockstep.pipeline.source_plan import RereadRows
from lockstep.pipeline.start.question import Refusal
from lockstep.pipeline.supply import ColumnsFromServer, FromChangelog, Past, RowsFromServer
from lockstep.pipeline.values.decisions import Lease
from lockstep.pipeline.values.errors import (
    AccessDenied,
    ConfigurationError,
    HostUnknown,
    LedgerRefused,
    LockstepError,
    MirrorRefused,
    Need,
    NothingMatches,
    PastRefused,
    Recovery,
    SegmentsLost,
    SourceRefused,
    TableError,
)
from lockstep.pipeline.values.table import TableName


@dataclass(frozen=True, slots=True)
class OrderOutcome:
    """An order, and a sentence on what happens next. An order that is only planned has
    the number 0."""

    order: TableOrder
    sentence: str


@dataclass(frozen=True, slots=True)
class OrderRequest:
    """A person's request for an order. `statement`: a CREATE TABLE with the table's
    structure from where it stopped on; `renames`: pairs of an old and a new column
    name."""

    table: TableName
    author: str
    reason: str
    statement: str | None = None
    renames: tuple[tuple[str, str], ...] = ()

    def as_order(self, ports: RunPorts, kind: OrderKind, state: TableState) -> TableOrder:
        """Return the order for a table in this state, not recorded yet."""
        return TableOrder(
            id=0,
            table=self.table,
            kind=kind,
            author=self.author,
            reason=self.reason,
            ordered_at=ports.clock(),
            stopped=state.stopped,
            renames=self.renames,
        )


def give_order(
    ports: RunPorts,
    lease: Lease,
    kind: OrderKind,
    request: OrderRequest,
    planned: OrderOutcome | None = None,
) -> OrderOutcome:
    """Record an order. `planned`: the result of `plan_resume`, if the caller has it.

    Raise `NothingMatches` for an unknown table, or for a resume of a table that no
    pattern of the source matches; `ConfigurationError` for a statement that cannot be
    used, or for a resume of a table whose mirror's name is taken; and `LedgerRefused`
    for an order that does not fit the table's state. Then nothing is recorded. A pause
    needs no run, so it is recorded for any captured table.
    """
    ledger, table = ports.ledger, request.table
    _require_captured_table(ledger.table_states(ports.source.name), ports.source.name, table)
    author, reason = request.author, request.reason
    if kind is OrderKind.RESUME:
        planned = planned or plan_resume(ports, request)
        schema, renames = planned.order.schema, request.renames
        order = ledger.order_table(
            lease, table, kind, author=author, reason=reason, schema=schema, renames=renames
        )
        return replace(planned, order=order)
    loads = [load for load in ledger.open_loads(ports.source.name) if load.table == table]
    order = ledger.order_table(lease, table, kind, author=author, reason=reason)
    for load in loads:  # The pause voided them.
        ports.segments.delete_load(snapshot_path(ports.source.name, table), load.id)
    place = f" at {order.stopped.at}" if order.stopped is not None else ""
    back_clause = f"`lockstep resume {table.word}` brings it back"
    return OrderOutcome(order, f"{table} stops{place}; the other tables go on. {back_clause}")


def plan_resume(
    ports: RunPorts, request: OrderRequest, next_start: Callable[[], StartProposal] | None = None
) -> OrderOutcome:
    """Return the order of a resume, and a sentence on what it would do; nothing is
    recorded. Raise the errors of `give_order`. `next_start`: returns the start of the
    next run, if the caller plans several resumes: to find it, the log is read."""
    states = ports.ledger.table_states(ports.source.name)
    _require_captured_table(states, ports.source.name, request.table)
    state = states[request.table]
    schema: TableSchema | None = None
    if request.statement is not None:
        dialect = dialect_of(ports.server.facts())
        newest = _newest_schema(ports.ledger, ports.source.name, dialect.lower_case_table_names)
        # The order is kept for good, so values of columns that the settings hide are
        # removed.
        definition = read_definition(request.statement, request.table, newest, dialect)
        schema = ports.shaping.redact(definition)
    if not state.has_stopped:
        raise LedgerRefused(
            f"{request.table} is {state.in_words}: only a table that is stopped is resumed.",
            hint="`lockstep status` shows which tables are stopped, and what to do.",
        )
    _require_followed(ports, states, request.table)
    order = replace(request.as_order(ports, OrderKind.RESUME, state), schema=schema)
    history = _history_at_stop(ports, order)
    if schema is not None and request.renames:
        _require_renames(request, history.schema_before, schema)
    if schema is not None and not history.is_followed:
        _require_nothing_hidden_shown(ports, request, history, schema)
    next_start = next_start or partial(foresee_next_start, ports)
    return OrderOutcome(order, _resume_sentence(ports, order, history, next_start))


def _require_captured_table(
    states: Mapping[TableName, TableState], source: str, table: TableName
) -> None:
    """Raise `NothingMatches` for a table that no run has captured."""
    if table not in states:
        raise unknown_table_error(table, states, f"the lake of {source}")


def _require_followed(
    ports: RunPorts, states: Mapping[TableName, TableState], table: TableName
) -> None:
    """Raise an error if no run with the present settings follows the table, so that an
    order to resume it would wait for ever: `NothingMatches` if no pattern matches it,
    `ConfigurationError` if another table has its mirror's name."""
    if not ports.source.patterns.matches(table):
        raise NothingMatches(
            f"no run follows {table}: the source's patterns do not match it",
            hint=f"change `tables` or `exclude` of {ports.source.name}, then repeat the command; "
            "`lockstep tables` shows what is captured",
        )
    if (other := collisions(ports, states).get(table)) is not None:
        error = collision_error(table, other, ports.source.mirror_names, in_lake=True)
        raise ConfigurationError(f"no run follows {table}: {error.reason}", hint=error.hint)


def _require_renames(
    request: OrderRequest, schema_before: TableSchema | None, definition: TableSchema
) -> None:
    reason = "its earlier columns are not known"
    if schema_before is not None:
        reason = reason_renames_refused(schema_before, definition, request.renames) or ""
    if reason:
        raise ConfigurationError(
            f"--rename does not fit {request.table}: {reason}.",
            hint="give --rename OLD=NEW for each column whose name has changed since the table "
            "stopped; without --rename the table is re-read from MySQL where names are not enough",
        )


def _require_nothing_hidden_shown(
    ports: RunPorts, request: OrderRequest, history: HistoryAtStop, definition: TableSchema
) -> None:
    """Raise `ConfigurationError` if a given structure would show hidden values. Such a
    structure says only where columns come from; it is no consent to show more."""
    if history.version is None or history.schema_before is None:
        return
    origins = match_columns(history.schema_before, definition, request.renames)
    try:
        ports.shaping.for_history(definition, history.version, origins)
    except TableError as error:
        raise ConfigurationError(
            f"The structure given for {request.table} cannot be used: {error.reason}.",
            hint=error.hint,
        ) from error


_EMPTIED: Final = (Action.EMPTY, Action.CREATE)
"""Actions after which the log has all rows of a table."""


@dataclass(frozen=True, slots=True)
class HistoryAtStop:
    """The history at the place where a table stopped. `version`: the version of the
    table's structure there; None if unknown. `statement`: the statement that begins
    there; `consequence`: what today's settings make of this statement; `schema_after`:
    the table's structure after it."""

    version: SchemaVersion | None = None
    statement: LoggedStatement | None = None
    consequence: Consequence | None = None
    schema_after: TableSchema | None = None

    @property
    def schema_before(self) -> TableSchema | None:
        return None if self.version is None else self.version.schema

    @property
    def is_followed(self) -> bool:
        return self.consequence is not None and self.consequence.rule_name != NOT_FOLLOWED_RULE

    @property
    def reason_to_read(self) -> str | None:
        """The reason to re-read the table from MySQL whatever structure is given. There
        is one if the statement is followed and changes rows in a way that no structure
        describes; otherwise None."""
        if (
            self.consequence is None
            or not self.is_followed
            or self.consequence.action in ROW_KEEPING_ACTIONS
        ):
            return None
        return self.consequence.reason

    def reason_log_insufficient(self, order: TableOrder, shaping: Shaping) -> str | None:
        """Return why the log alone does not suffice; None if it does. Either the table
        would stop here again, or its earlier rows do not fit the given structure."""
        if order.schema is None:
            if self.consequence is None:
                return None
            if not self.is_followed:
                return self.consequence.reason
            return None if self.consequence.action in _EMPTIED else self.reason_to_read
        if self.reason_to_read is not None:
            return self.reason_to_read
        schema = self.schema_after if self.is_followed else self.schema_before
        if schema is None:
            return None
        if self.is_followed:
            return reason_unclear(schema, order.schema, (), may_rename=False)
        may_rename = (
            self.statement is not None
            and self.consequence is not None
            and may_rename_columns(self.statement.text, self.statement.context)
        )
        return reason_unclear(
            schema, order.schema, order.renames, may_rename=may_rename
        ) or reason_given_shape_changed(schema, order.schema, order.renames, shaping.column_uses)


def _history_at_stop(ports: RunPorts, order: TableOrder) -> HistoryAtStop:
    """Return the history at the place where the order's table stopped."""
    ledger, source, stopped = ports.ledger, ports.source.name, order.stopped
    if stopped is None:
        return HistoryAtStop()
    version_at_stop = ledger.schema_at(source, order.table, batch=stopped.batch, place=stopped.at)
    if version_at_stop is not None and version_at_stop.schema is None:
        known_versions = [
            version
            for version in ledger.schema_versions(source, order.table)
            if version.version < version_at_stop.version and version.schema is not None
        ]
        version_at_stop = known_versions[-1] if known_versions else None
    statements = [
        statement
        for statement in recorded_statements(ledger, source)
        if statement.begin == stopped.at
    ]
    if not statements:
        return HistoryAtStop(version_at_stop)
    statement = logged_statement(statements[-1])
    schema = ServerSchema(lower_case_table_names=statement.context.facts.lower_case_table_names)
    for database in ledger.databases_at(source, batch=stopped.batch, place=stopped.at):
        if database.schema is not None:
            schema = schema.with_database(database.schema)
    for version in ledger.schemas_at(source, batch=stopped.batch, place=stopped.at):
        schema = (
            schema.with_unknown_tables(version.table)
            if version.schema is None
            else schema.with_table(version.schema)
        )
    followed_statement, schema_after = _follow_statement(schema, statement)
    by_table = consequences(
        followed_statement, ports.source.policies_of, statement, ports.shaping.column_uses
    )
    return HistoryAtStop(
        version_at_stop, statement, by_table.get(order.table), schema_after.table(order.table)
    )


def _follow_statement(
    schema: ServerSchema, logged: LoggedStatement
) -> tuple[FollowedStatement, ServerSchema]:
    change = read_change(logged.text, logged.context)
    if isinstance(change, Irrelevant):
        return FollowedStatement(), schema
    if isinstance(change, NotUnderstood):
        return FollowedStatement(not_understood=change), schema
    evolution = evolve(schema, change, logged.context)
    return FollowedStatement(evolution.effects), evolution.schema


# -- in words --------------------------------------------------------------------------


def _plans_of_next_run(ports: RunPorts, order: TableOrder) -> TablePlans:
    """Return how the next run without `--until` carries out the order."""
    return plan_orders(replace(ports, source=replace(ports.source, until=None)), [order])


def _waits_sentence(table: TableName, refusal: LockstepError) -> str:
    return f"{table} waits until a run starts: {refusal.message}; {refusal.hint}"


def _resume_sentence(
    ports: RunPorts,
    order: TableOrder,
    history: HistoryAtStop,
    next_start: Callable[[], StartProposal],
) -> str:
    """Return a sentence or two on what a resume would do; nothing is written."""
    table = order.table
    plans: TablePlans | None = None
    try:
        if (error := _present_error(ports, table)) is not None:
            return f"it would be quarantined again: {error.reason}. First {error.hint}"
        if isinstance(refusal := next_start().outcome, Refusal):
            return _waits_sentence(table, refusal.error)
        plans = _plans_of_next_run(ports, order)
    except SegmentsLost as error:
        return _waits_sentence(table, error)
    except (AccessDenied, HostUnknown, SourceRefused):
        pass  # An order needs no server: the run that carries it out reports the problem.
    except LockstepError as error:
        if error.recovery is not Recovery.RETRY:
            raise
    doubt = history.reason_log_insufficient(order, ports.shaping)
    if plans is None:  # Only the server knows what its log still has.
        if doubt is None:
            return f"the next run {_both_outcomes_clause(order)}{_structure_clause(order, None)}"
        return f"the next run reads {table} from the source: {doubt}; {_GOES_ON}"
    plan = plans.plans[table]
    state = ports.ledger.table_states(ports.source.name)[table]
    step = plan.step_after_log
    reads_rows = step is not None and isinstance(step.supply, RowsFromServer)
    if step is not None and reads_rows and plan.span is None:
        # The cause of the stop may be cured by now, so the sentence has the past tense.
        cause = f"it stopped because {step.reason}" if step.reason == state.reason else step.reason
        return (
            f"the next run reads {table} from the source: {cause}; {_GOES_ON}"
            f"{_consent_clause(ports, state)}"
        )
    if plan.span is not None:
        end = "the others" if plans.cursor is None else plans.cursor.position.at
        sentence = f"catches {table} up through the log, from {plan.span.low} to {end}"
    else:
        sentence = f"follows {table} as it is, because the log has nothing that it lacks"
    reason = step.reason if step is not None and reads_rows else doubt
    if reason is not None:
        sentence += f", and reads it from the source: {reason}"
    elif step is not None and isinstance(step.supply, ColumnsFromServer):
        sentence += f", and reads its new columns from the source: {step.reason}"
    consent = "" if reason is None else _consent_clause(ports, state)
    return f"the next run {sentence}; {_GOES_ON}{_structure_clause(order, reason)}{consent}"


def _present_error(ports: RunPorts, table: TableName) -> TableError | None:
    """Return why the table cannot be captured with its present structure; None if it
    can."""
    schema = ports.server.current_schemas([table]).tables.get(table)
    if schema is None:
        return None
    name_in_log = ports.server.facts().name_in_log(schema.name)
    return (
        unsupported_error(schema)
        or logged_otherwise_errors(schema.name, name_in_log).get(table)
        or next(ports.shaping.faults(schema), None)
    )


def _consent_clause(ports: RunPorts, state: TableState) -> str:
    """Return a clause for a resume that reads the table and is a consent. The clause
    says what the lake then shows of the table by the present settings. The reason for
    the stop does not say that: the settings may have changed since."""
    table = state.table
    if state.need is not Need.CONSENT and unknown_structure_error(ports, table) is None:
        return ""
    schema = ports.server.current_schemas([table]).tables.get(table)
    if schema is None:
        return ""
    shown = ports.shaping.describe(schema) or "every column and row as it is"
    return f". To resume it is your consent to what the lake then shows of it: {shown}"


_GOES_ON: Final = "then it goes on with the others"


def _both_outcomes_clause(order: TableOrder) -> str:
    """Return a clause with both outcomes that are possible while it is unknown what the
    log still has."""
    place = f" at {order.stopped.at}" if order.stopped is not None else ""
    return (
        f"catches {order.table} up through the log, from where it stopped{place}, or reads it from "
        f"the source if the log is not complete; {_GOES_ON}"
    )


def _structure_clause(order: TableOrder, reason: str | None) -> str:
    if order.schema is None or order.stopped is None:
        return ""
    sentence = f". From {order.stopped.at} on it has the given structure"
    if reason is not None:
        return sentence
    renames_clause = "".join(f", {old} becomes {new}" for old, new in order.renames)
    return (
        f"{sentence}: no row is read from the source{renames_clause}, the other columns keep "
        "their names"
    )


# -- a structure given by a person -----------------------------------------------------


def _newest_schema(ledger: Structures, source: str, folding: int) -> ServerSchema:
    """Return the newest structures in the history, to which a CREATE TABLE may
    refer."""
    schema = ServerSchema(lower_case_table_names=folding)
    for database in ledger.databases_at(source):
        if database.schema is not None:
            schema = schema.with_database(database.schema)
    newest = (version.schema for version in ledger.schemas_at(source))
    tables = {schema.fold_case(table.name): table for table in newest if table is not None}
    return replace(schema, tables=tables)


def read_definition(
    statement: str, table: TableName, schema: ServerSchema, dialect: ServerDialect
) -> TableSchema:
    """Return the structure that one CREATE TABLE of this table defines, as `show create
    table` prints it. Omitted defaults are those of the database. Raise
    `ConfigurationError` for anything else."""
    text = statement.strip().removesuffix(";")
    # SHOW CREATE TABLE prints the defaults of TIMESTAMP columns, and omits default
    # collations.
    context = replace(read_context(b"", dialect, table.database), explicit_timestamps=True)
    changes = read_change(text, context)
    if isinstance(changes, NotUnderstood):
        raise _definition_error(f"it is not understood: {changes.reason}", table)
    if (
        isinstance(changes, Irrelevant)
        or len(changes) != 1
        or not isinstance(changes[0], CreateTable)
    ):
        raise _definition_error("it is not one CREATE TABLE with columns", table)
    if schema.fold_case(changes[0].table) != schema.fold_case(table):
        raise _definition_error(f"it creates {changes[0].table}", table)
    evolution = evolve(schema.without_table(table), changes, context)
    for effect in evolution.effects:
        if isinstance(effect, Created):
            columns = tuple(map(with_plain_default, effect.after.columns))
            return replace(effect.after, name=table, columns=columns)
        if isinstance(effect, NotFollowed):
            raise _definition_error(effect.reason, table)
    raise _definition_error("it creates nothing", table)


def _definition_error(reason: str, table: TableName) -> ConfigurationError:
    return ConfigurationError(
        f"The structure given for {table} cannot be used: {reason}.",
        hint=f"give what `show create table` prints for {table}",
    )


@dataclass(frozen=True, slots=True)
class Reload:
    """A mirror that is to be written again.

    - `named_supplier`: the one that the person named, if any. `supplier`: the one that
      is used.
    - `sentence`: what the next run does.
    - `reason_from_source`: why rows come from MySQL although nobody asked for that.
    - `estimated_rows`: the server's estimate of the rows to read; None if none are
      read.
    - `is_stopped`: the table is stopped, and the reload resumes it.
    - `is_already_reading`: its rows are already being read, so nothing has to be
      recorded.
    - `origin`: the changelog that the mirror is written from; None if rows are read.
    - `condition_rows`: the only rows that are read; None for all.
    - `order`, `load_id`: set once the reload is recorded: the order that stops or
      resumes the table, or else the load.
    """

    request: OrderRequest
    named_supplier: Supplier | None
    supplier: Supplier
    sentence: str
    reason_from_source: str = ""
    estimated_rows: int | None = None
    is_stopped: bool = False
    is_already_reading: bool = False
    origin: ChangelogOrigin | None = None
    condition_rows: RereadRows | None = None
    order: TableOrder | None = None
    load_id: int | None = None

    @property
    def table(self) -> TableName:
        return self.request.table


class ReloadFacts:
    """The facts about tables that will be reloaded. Each fact is read only once for all
    of them."""

    def __init__(self, ports: RunPorts, tables: Collection[TableName]) -> None:
        self.ports, self.tables = ports, tables
        self.states = ports.ledger.table_states(ports.source.name)
        self.loads = {load.table: load for load in ports.ledger.open_loads(ports.source.name)}
        self._new_tables = [table for table in tables if table not in self.states]

    @cached_property
    def pasts(self) -> Pasts:
        """The pasts of the tables that are not in the lake yet."""
        return find_pasts(self.ports, self._new_tables)

    @cached_property
    def estimated_rows(self) -> Mapping[TableName, int]:
        return self.ports.server.estimated_rows(self.tables)

    @cached_property
    def foreign_tables(self) -> Collection[TableName]:
        """Tables that no run has captured, and in whose mirrors' folders other programs
        have tables."""
        return foreign_mirrors(self.ports, self._new_tables).keys() if self._new_tables else ()

    @cached_property
    def _contents(self) -> Mapping[TableName, list[TableContent]]:
        contents: dict[TableName, list[TableContent]] = {table: [] for table in self.tables}
        ledger, source = self.ports.ledger, self.ports.source.name
        newest = ledger.cursors(source).captured
        if newest is not None:
            for batch in ledger.contents(source, 1, newest.batch, self.tables):
                for table, content in batch.by_table().items():
                    contents[table].append(content)
        return contents

    def is_being_read(self, table: TableName) -> bool:
        """Return whether the table's rows are being read from MySQL and the table has
        not stopped since."""
        load, state = self.loads.get(table), self.states.get(table)
        if state is not None and state.is_loading:
            return True
        has_stopped = state is not None and state.has_stopped
        return not has_stopped and load is not None and load.basis is not None

    def origin(self, request: OrderRequest, supplier: Supplier | None) -> OriginOrReason:
        """Return the changelog from which the mirror would be written, or a sentence
        that says why it is read from MySQL. `supplier`: the one that the person named,
        if any."""
        state = self.states.get(request.table)
        if state is None:
            return "it is not in the lake yet"
        if state.has_stopped:
            return _origin_once_resumed(self.ports, request, state, supplier)
        if needs_of(state) - {Need.MIRROR}:
            return "it lacks rows that only MySQL has"
        # The files are examined by the run, because that takes too long here.
        contents = self._contents[request.table]
        origin = changelog_origin_of(self.ports, state, check_files=False, contents=contents)
        if not isinstance(origin, str) or supplier is not Supplier.CHANGELOG:
            return origin
        earlier = earlier_version_origin_of(self.ports, state, check_files=False, contents=contents)
        return f"{origin}, and {earlier}" if isinstance(earlier, str) else earlier


def _origin_once_resumed(
    ports: RunPorts, request: OrderRequest, state: TableState, supplier: Supplier | None
) -> OriginOrReason:
    """Return what the mirror of a stopped table is written from, as the next run would
    decide."""
    order = replace(request.as_order(ports, OrderKind.RELOAD, state), supplier=supplier)
    table_plan = _plans_of_next_run(ports, order).plans[request.table]
    if table_plan.reason_to_wait is not None:
        return table_plan.reason_to_wait
    step = table_plan.step_after_log
    assert step is not None, "a mirror that is written again has a supply besides the log"
    return step.supply.origin if isinstance(step.supply, FromChangelog) else step.reason


def plan_reload(
    ports: RunPorts,
    request: OrderRequest,
    supplier: Supplier | None,
    facts: ReloadFacts | None = None,
) -> Reload:
    """Return a reload, which `give_reload` records. `supplier`: None for the changelog
    if it is complete, else MySQL. `facts`: given if several tables are reloaded. Raise
    `PastRefused` if the named changelog or log cannot supply the table. Raise
    `LedgerRefused` if the reload would show more than before; a person must consent to
    that."""
    facts = facts or ReloadFacts(ports, [request.table])
    table, state = request.table, facts.states.get(request.table)
    if supplier is Supplier.LOG:
        return _plan_reload_from_log(request, facts)
    if state is not None:
        _require_consent(ports, state)
    is_being_read = facts.is_being_read(table)
    if is_being_read and supplier is not Supplier.CHANGELOG:
        sentence = f"{table} is being read from the source already; the next run continues"
        load = facts.loads[table].id if table in facts.loads else None
        return Reload(
            request, supplier, Supplier.SOURCE, sentence, is_already_reading=True, load_id=load
        )
    origin: OriginOrReason = ""
    if is_being_read:
        origin = "its rows are being read from MySQL"
    elif supplier is not Supplier.SOURCE:
        origin = facts.origin(request, supplier)
    if supplier is Supplier.CHANGELOG and isinstance(origin, str):
        raise PastRefused(
            f"the mirror of {table} cannot be written again from its changelog: {origin}",
            hint=f"`lockstep reload {table.word} --from source --reason …` reads it from MySQL",
        )
    is_stopped = state is not None and state.has_stopped
    resumes = "; this also resumes the table" if is_stopped else ""
    sentence = f"the next run rewrites the mirror of {table}{_new_folder_clause(ports, state)}"
    if isinstance(origin, ChangelogOrigin):
        sentence += f", {origin.clause}: {origin.size}; no row is read from the source"
        sentence += resumes or "; until then the table stops"
        return Reload(
            request, supplier, Supplier.CHANGELOG, sentence, is_stopped=is_stopped, origin=origin
        )
    sentence += ", from the source" + (f": {origin}" if origin else "") + resumes
    if table in facts.foreign_tables:
        mirror = mirror_path(ports.source.name, ports.source.mirror_name(table))
        sentence += f"; it replaces what somebody else made in the lake at {mirror}"
    return Reload(
        request,
        named_supplier=supplier,
        supplier=Supplier.SOURCE,
        sentence=sentence,
        reason_from_source=origin,
        estimated_rows=facts.estimated_rows.get(table),
        is_stopped=is_stopped,
    )


def _new_folder_clause(ports: RunPorts, state: TableState | None) -> str:
    """Return the clause that names the mirror's new folder; empty if the present one
    can be written."""
    if state is None or state.mirror_schema_version is None:
        return ""
    examined_version = ports.ledger.examined_versions(ports.source.name).get(state.mirror)
    try:
        checked_version(
            ports, state, mirror_judgement(ports, state, examined_version, will_be_replaced=True)
        )
    except MirrorRefused as error:
        return f" in a new folder, {next_folder(ports, state.table)} ({error.reason})"
    except (TableError, LockstepError):  # the run says what follows
        pass
    return ""


def plan_condition_reload(
    ports: RunPorts, reread: RereadRows, facts: ReloadFacts | None = None
) -> Reload:
    """Return the reload of the rows that meet a condition. The run that is given its
    `condition_rows` carries it out. If these rows cannot be merged alone, return the
    reload of all rows."""
    table, condition = reread.table, reread.condition
    if (refusal := condition_refusal(ports, table)) is not None:
        request = OrderRequest(table, reread.author, f"{reread.reason}; {refusal.message}")
        return plan_reload(ports, request, Supplier.SOURCE, facts)
    column_names = ", ".join(dict.fromkeys(limit.column for limit in condition.limits))
    other_rows = (
        f"other rows of the mirror that may match by {column_names}"
        if column_names
        else "all other rows of the mirror (no column is compared with a plain number or date)"
    )
    sentence = (
        f"rows of {table} are read from the source again, where {condition.short_text}; "
        f"{other_rows} are looked up by key, and deleted if the source does not have them"
    )
    request, source = OrderRequest(table, reread.author, reread.reason), Supplier.SOURCE
    rows = ports.server.estimated_rows_where(table, condition)
    return Reload(request, source, source, sentence, estimated_rows=rows, condition_rows=reread)


def plan_repairs(ports: RunPorts, report: VerifyReport, author: str) -> list[Reload]:
    """Return how each table that differs from MySQL is repaired: the differing rows are
    read, or all rows if no condition can name them. Rows are never corrected in the
    mirror alone, because consumers must find every change in the changelog. Tables that
    are stopped or incomplete are left out."""
    states = ports.ledger.table_states(ports.source.name)
    differences = [
        difference
        for difference in report.tables
        if not difference.equal
        and difference.table in states
        and states[difference.table].is_complete
    ]
    facts = ReloadFacts(ports, [difference.table for difference in differences])
    repairs = []
    for difference in differences:
        count = difference.difference_count
        rows = "1 row that differs" if count == 1 else f"{count:,} rows that differ"
        verb = "is" if count == 1 else "are"
        request = OrderRequest(
            difference.table, author, f"a comparison found {rows}, and it is to be repaired"
        )
        if difference.where is None:
            repairs.append(plan_reload(ports, request, Supplier.SOURCE, facts))
        else:
            where = read_condition(difference.where)
            reread = RereadRows(request.table, where, author, request.reason)
            repair = plan_condition_reload(ports, reread, facts)
            if repair.condition_rows is not None:
                # The comparison has named the keys already.
                sentence = f"{difference.table}: {rows} {verb} read from the source by key, at once"
                repair = replace(repair, sentence=sentence)
            repairs.append(repair)
    return repairs


def _plan_reload_from_log(request: OrderRequest, facts: ReloadFacts) -> Reload:
    """Return the reload of a new table from the earliest place after which the log has
    all its changes."""
    table = request.table
    if table in facts.states:
        past: Past | str = "it is in the lake, and its changelog cannot begin earlier"
    elif table in facts.loads and facts.loads[table].basis is not None:
        past = "its rows are being read from MySQL already"
    else:
        past = facts.pasts.by_table[table]
    if isinstance(past, str):
        raise PastRefused(
            f"{table} cannot be followed from the log's past: {past}",
            hint=f"`lockstep reload {table.word} --from source --reason …` reads it from MySQL as "
            "it is",
        )
    sentence = (
        f"the next run follows {table} from {past.begins} on, and not earlier, because "
        f"{past.reason}; {facts.pasts.log_bytes(past):,} bytes of log are read again"
    )
    if past.is_whole:
        return Reload(request, Supplier.LOG, Supplier.LOG, f"{sentence}, which has all of its rows")
    return Reload(
        request,
        named_supplier=Supplier.LOG,
        supplier=Supplier.LOG,
        sentence=f"{sentence}, then its rows from MySQL",
        reason_from_source="it has rows from before that",
        estimated_rows=facts.estimated_rows.get(table),
    )


def _require_consent(ports: RunPorts, state: TableState) -> None:
    """Raise `LedgerRefused` if a reload might show more than the lake showed under the
    table's former columns or name. Only an explicit `resume` is a consent to that."""
    reason = state.reason if state.need is Need.CONSENT else None
    if ports.shaping.has_rules:
        newest = ports.ledger.schema_at(ports.source.name, state.table)
        if newest is not None and newest.knowledge is Knowledge.UNKNOWN:
            reason = newest.reason
    if reason is not None:
        raise LedgerRefused(
            f"{state.table} is not reloaded, because it might show more than before: {reason}.",
            hint=consent_hint(state.table),
        )


def give_reload(ports: RunPorts, lease: Lease, reload: Reload) -> Reload:
    """Record a reload. A table that is read from MySQL is still followed, unless it is
    stopped. A table whose mirror is written from its changelog stops until the next
    run."""
    request, table = reload.request, reload.table
    if reload.is_already_reading:
        return reload
    with_past = reload.supplier is Supplier.LOG
    if with_past or (reload.supplier is Supplier.SOURCE and not reload.is_stopped):
        reasons = filter(None, (request.reason, reload.reason_from_source))
        load = ports.ledger.order_load(
            lease, table, author=request.author, reason="; ".join(reasons), with_past=with_past
        )
        return replace(reload, load_id=load.id)
    order = ports.ledger.order_table(
        lease,
        table,
        OrderKind.RELOAD,
        author=request.author,
        reason=request.reason,
        supplier=reload.named_supplier,
    )
    return replace(reload, order=order)
