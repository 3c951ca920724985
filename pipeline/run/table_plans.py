"""The facts from which a run plans its tables: what is wanted of each table, what the
lake has of it, and how far each supply reaches. Supplies of a table's rows are the log,
its changelog in the lake, and the server (MySQL).

The rules are in `pipeline.supply`. Planning writes nothing but orders. A run plans
twice. Before it knows its start, it plans the stopped tables, because a separate batch
captures the part of the log that they lack. Once it knows its start, it adds the tables
whose rows are read from the server.

A table that a run cannot follow by the log alone is quarantined, and the next run reads
it from the server. That run fixes its end after the reading, so that it covers the log
up to the reading's high watermark. Changes in the log after the low watermark take
precedence over the rows that were read.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final, TypeVar, assert_never

from lockstep.pipeline.binlog.search.log_scan import log_bytes_between
from lockstep.pipeline.mirror.layout import application_id, snapshot_path
from lockstep.pipeline.mirror.lineage import ColumnsRead
from lockstep.pipeline.mirror.merging import (
    SETTLING_EVENTS,
    ChangelogOrigin,
    OriginOrReason,
)
from lockstep.pipeline.model.batch import Batch, Cursor, PreparedTransaction, Xid
from lockstep.pipeline.model.load import Load, reason_void
from lockstep.pipeline.model.table_state import (
    OrderKind,
    StopPlace,
    Supplier,
    TableCondition,
    TableOrder,
    TableState,
)
from lockstep.pipeline.ports.ledger import stale_tables
from lockstep.pipeline.ports.source import ServerFacts
from lockstep.pipeline.run.agreement.lake_logs import foreign_mirrors
from lockstep.pipeline.run.begin import RunStart
from lockstep.pipeline.run.consent import consent_errors
from lockstep.pipeline.run.context import RunPorts
from lockstep.pipeline.run.find_place import read_anchor_of
from lockstep.pipeline.run.mirror_folders import (
    collisions,
    move_reason,
    pending_moves,
    replace_mirror,
)
from lockstep.pipeline.run.stop_errors import states_once_stopped
from lockstep.pipeline.run.write.job import (
    lineage_over,
    versions_between,
)
from lockstep.pipeline.run.write.usable_origin import (
    changelog_origin_of,
    earlier_version_origin_of,
)
from lockstep.pipeline.start.question import AnchorReading
from lockstep.pipeline.supply import (
    ColumnsFromServer,
    FromChangelog,
    FromLog,
    FromPast,
    Have,
    LogSpan,
    NewColumns,
    Past,
    Plan,
    Price,
    Reach,
    RowsFromServer,
    Supply,
    SupplyStanding,
    SupplyStep,
    Want,
    plan,
)
from lockstep.pipeline.values.decisions import Continuity, Lease
from lockstep.pipeline.values.errors import Need, StoppedBy, TableError
from lockstep.pipeline.values.table import TableName

_LARGEST_MISSING_SHARE: Final = 1 / 2
"""Largest share of a table's columns (without the key) that are read alone if the
mirror lacks them. If it lacks more, all rows are read."""

_PREPARED_GONE: Final = (
    "rows that it lacks are of an XA transaction, and the log from its XA PREPARE on is gone"
)


@dataclass(frozen=True, slots=True)
class KnownTables:
    """The tables as a run plans them. `stale_mirrors`: tables whose mirrors (the Delta
    tables with the current rows) still show values that the settings hide."""

    states: Mapping[TableName, TableState]
    stale_mirrors: frozenset[TableName]

    @classmethod
    def of(cls, ports: RunPorts) -> KnownTables:
        """Return the tables as the ledger has them."""
        ledger, source = ports.ledger, ports.source.name
        return cls(ledger.table_states(source), stale_tables(ledger, source))

    def with_stopped(self, at: Cursor, errors: Mapping[TableName, TableError]) -> KnownTables:
        """Return the tables as they will be once these errors stopped some of them.
        `at`: the end of the newest batch, where they stop."""
        return replace(self, states=states_once_stopped(self.states, at, errors))


# -- orders ----------------------------------------------------------------------------


def record_orders(ports: RunPorts, lease: Lease) -> list[TableOrder]:
    """Record the orders that Lockstep gives itself, and return all open orders that a
    run carries out. Lockstep's own orders are about tables that the last run stopped,
    and about mirrors that the settings place in another folder. A run with `--until`
    leaves the mirrors to the next run."""
    if ports.source.until is None:
        for table, name in pending_moves(ports).unwritten.items():
            replace_mirror(ports, lease, table, move_reason(name))
    for order in foreseen_orders(ports):
        if not order.id:
            ports.ledger.order_table(
                lease, order.table, order.kind, author=order.author, reason=order.reason
            )
    return _executable_orders(ports, ports.ledger.open_orders(ports.source.name))


def foreseen_orders(ports: RunPorts, known: KnownTables | None = None) -> list[TableOrder]:
    """Return the orders that `record_orders` would return, and write nothing. Orders
    that are not recorded yet have the id 0. `known`: the tables, if not as the ledger
    has them."""
    source, now = ports.source.name, ports.clock()
    states_before = ports.ledger.table_states(source)
    states = states_before if known is None else known.states
    orders = [
        order
        for order in ports.ledger.open_orders(source)
        # The ledger omits orders of tables that need consent. This table will need it.
        if states[order.table].need is not Need.CONSENT
        or states_before[order.table].need is Need.CONSENT
    ]
    ordered_tables = {order.table for order in orders}
    orders += [
        TableOrder(0, table, OrderKind.RESUME, "lockstep", _reason(state), now, state.stopped)
        for table, state in states.items()
        if state.stopped_by is StoppedBy.RUN and table not in ordered_tables
    ]
    cursor = ports.ledger.cursors(source).captured
    if ports.source.until is None and cursor is not None:
        at_cursor = StopPlace(cursor.batch, cursor.position.at)
        orders += [
            TableOrder(0, table, OrderKind.RELOAD, "lockstep", move_reason(name), now, at_cursor)
            for table, name in pending_moves(ports, states).to_reload.items()
        ]
    return _executable_orders(ports, orders)


def _executable_orders(ports: RunPorts, orders: Sequence[TableOrder]) -> list[TableOrder]:
    """Return the orders that a run can carry out. The others wait for other
    settings."""
    colliding = collisions(ports, ports.ledger.table_states(ports.source.name)) if orders else {}
    matches = ports.source.patterns.matches
    return [order for order in orders if matches(order.table) and order.table not in colliding]


def _reason(state: TableState) -> str:
    return state.reason or "the next run reads it from the source"


# -- what the lake has of a table ------------------------------------------------------


def needs_of(state: TableState) -> frozenset[Need]:
    """Return what the lake lacks of a table besides its changes in the log."""
    needs = set[Need]() if state.need is None else {state.need}
    if state.mirror_schema_version is None and state.mirror_generation > 1:
        needs.add(Need.ROWS)  # its mirror was replaced, and the new one has no rows
    if state.mirror_schema_version is None and state.generation > 1:
        needs.add(Need.MIRROR)  # its lake tables began a new generation
    return frozenset(needs)


def only_server_supplies(state: TableState, order: TableOrder) -> bool:
    """Return whether only the server can supply the rows of the order's table, not the
    log or a changelog."""
    is_dropped = state.condition is TableCondition.DROPPED
    needs_rows = bool(needs_of(state) & {Need.ROWS, Need.CONSENT})
    return is_dropped or needs_rows or _would_stop_again(state, order)


def _would_stop_again(state: TableState, order: TableOrder) -> bool:
    """Return whether the log shows another structure than the history at the place
    where the table stopped, and the order gives none."""
    return order.schema is None and state.need is Need.STRUCTURE


def _have_of_stopped(state: TableState, stale_mirrors: Collection[TableName]) -> Have:
    """Return what the lake has and lacks of a stopped table. `stale_mirrors`: tables
    whose mirrors still show values that the settings hide."""
    needs = needs_of(state)
    if state.table in stale_mirrors:
        needs |= {Need.SHAPE}
    return Have(state.table, SupplyStanding.STOPPED, needs, _reason(state))


def _want_of(order: TableOrder) -> Want:
    """Return what a person's order, or Lockstep's own, wants of its table."""
    return Want(
        rewrite=order.kind is OrderKind.RELOAD,
        supplier=order.supplier,
        has_structure=order.schema is not None,
        author=order.author,
    )


# -- how far each supply reaches -------------------------------------------------------


@dataclass
class StoppedReach:
    """The reach of each supply of a stopped table, computed on first use. A sentence
    instead of a value says why a supply cannot be used. `cursor`: the end of the newest
    batch.

    `reason_without_log`: why the log after the place where the table stopped is not
    read; None if it may be read. It is empty after this run read that part of the log
    and the table stopped again: the reason for that stop stands for it."""

    ports: RunPorts
    state: TableState
    order: TableOrder
    cursor: Cursor | None
    facts: ServerFacts
    reason_without_log: str | None = None

    @property
    def log(self) -> LogSpan | str | None:
        """`log_span`, or why that part of the log is not read. This is not cached,
        because `reason_without_log` may be set later."""
        span = self.log_span
        if self.reason_without_log is None or not isinstance(span, LogSpan):
            return span
        return self.reason_without_log or _reason(self.state)

    @cached_property
    def log_span(self) -> LogSpan | str | None:
        """The part of the log that the table lacks; None if it lacks none. If the log
        cannot supply it, a sentence that says why: it was purged, another server
        answers, or the table did not stop at a known place of this log."""
        ports, order, cursor, facts = self.ports, self.order, self.cursor, self.facts
        if order.stopped is None or cursor is None:
            return "nothing says where in the log it stopped"
        if _would_stop_again(self.state, order):
            return _reason(self.state)
        low, end = order.stopped.at, cursor.position
        batch = None
        if low.file.base == end.at.file.base:
            batch = ports.ledger.captured_batch(ports.source.name, end.server_uuid, low)
        since = order.stopped.batch if batch is None else min(batch.id, order.stopped.batch)
        chain = ports.ledger.live_batches(ports.source.name, since + 1, cursor.batch)
        if batch is None or _is_interrupted(chain):
            return "the source was read from another server or another place since it stopped"
        if low == end.at and order.schema is None:
            return None
        if facts.server_uuid != end.server_uuid:
            return "another server answers than the one that was read when it stopped"
        if low == batch.captured_end.at:
            span = LogSpan(batch, batch.captured_end, batch.anchor, low)
        else:
            span = LogSpan(batch, batch.start, None, low)
        if not facts.lists(span.start.at.file):
            return f"the server purged the log after its place ({span.start.at.file})"
        if any(
            read_anchor_of(ports, place, facts) is not AnchorReading.SAME
            for place in (cursor, batch.captured_cursor)
        ):
            return "the server's log is not the one that was read when it stopped"
        return span

    @property
    def past(self) -> str:
        """Why the log before the table's first capture is not read for it."""
        return "it is in the lake already"

    @cached_property
    def changelog(self) -> OriginOrReason:
        return changelog_origin_of(self.ports, self.state)

    @cached_property
    def earlier_version(self) -> OriginOrReason:
        return earlier_version_origin_of(self.ports, self.state)

    @cached_property
    def has_whole_mirror(self) -> bool:
        """True if the mirror was written, and no later event determines all rows of the
        table."""
        ports, state, source = self.ports, self.state, self.ports.source.name
        app_id = application_id(source, state, "mirror")
        settled_write = ports.ledger.newest_writes(source, [app_id])[app_id].settled_write
        if settled_write is None or self.cursor is None or state.mirror_schema_version is None:
            return False
        return not any(
            event.kind in SETTLING_EVENTS
            for content in ports.ledger.contents(
                source, settled_write.intent.last_batch + 1, self.cursor.batch, [state.table]
            )
            for event in content.events
        )

    @cached_property
    def columns(self) -> NewColumns | str:
        """The new columns to read from the server, if the mirror lacks nothing else;
        otherwise the reason to read all rows."""
        ports, state, cursor = self.ports, self.state, self.cursor
        reason = _reason(state)
        if cursor is None or state.mirror_schema_version is None or not self.has_whole_mirror:
            return reason
        at = cursor.position.at
        newest = ports.ledger.schema_at(
            ports.source.name, state.table, batch=cursor.batch, place=at
        )
        if newest is None or newest.schema is None:
            return reason
        structure = newest.shown_structure
        if not structure.primary_key:
            return reason
        try:
            versions = versions_between(
                ports, state.table, state.mirror_schema_version, newest.version
            )
            lineage = lineage_over(ports, versions, columns_read=ColumnsRead(newest.version))
        except TableError:
            return reason
        other_column_count = len(structure.columns) - len(structure.primary_key)
        if (
            lineage.reasons_to_reread
            or not lineage.columns_by_key
            or lineage.key_of(lineage.versions) != structure.primary_key
        ):
            return reason
        if len(lineage.columns_by_key) > _LARGEST_MISSING_SHARE * other_column_count:
            return reason
        return NewColumns(newest.version, lineage.columns_by_key)


@dataclass(frozen=True, slots=True)
class KnownReach:
    """The reach of each supply of a table, known beforehand. By default only the
    server has anything of it."""

    log: None = None
    changelog: str = ""
    earlier_version: str = ""
    has_whole_mirror: bool = False
    columns: str = ""
    past: Past | str = ""


# -- plans -----------------------------------------------------------------------------


SupplyKind = TypeVar("SupplyKind", bound=Supply)


@dataclass(frozen=True, slots=True)
class TablePlans:
    """The plans of the tables that a run does not simply continue by the log.

    - `orders`: orders of persons, or of earlier runs, for stopped tables.
    - `cursor`: the end of the newest batch, up to which stopped tables catch up.
    - `first_span`: the part of the log that is read for all of them.
    - `prepared_transactions`: the XA transactions that are prepared where it begins.
    - `void_loads`: loads that are no longer valid, each with the reason.
    - `new_consent_errors`: tables that the ledger does not know yet, each with the
      error that stops it, because a person has to consent before it is taken.
    """

    plans: Mapping[TableName, Plan] = field(default_factory=dict)
    wants: Mapping[TableName, Want] = field(default_factory=dict)
    orders: tuple[TableOrder, ...] = ()
    cursor: Cursor | None = None
    facts: ServerFacts | None = None
    first_span: LogSpan | None = None
    prepared_transactions: Mapping[Xid, PreparedTransaction] = field(default_factory=dict)
    void_loads: tuple[tuple[Load, str], ...] = ()
    new_consent_errors: Mapping[TableName, TableError] = field(default_factory=dict)

    def __bool__(self) -> bool:
        """True if this run does something for one of the tables."""
        if self.new_consent_errors:
            return True
        return any(table_plan.reason_to_wait is None for table_plan in self.plans.values())

    @property
    def spans(self) -> dict[TableName, LogSpan]:
        """The tables that catch up through the log, each with the part of the log that
        it lacks."""
        return {
            table: table_plan.span
            for table, table_plan in self.plans.items()
            if table_plan.span is not None
        }

    @property
    def resumed_orders(self) -> list[TableOrder]:
        """The orders whose tables do not wait. Tables whose rows are read from the
        server come last."""
        resumed_tables = self.plans.keys() - self.wait_reasons.keys()
        orders = [order for order in self.orders if order.table in resumed_tables]
        return sorted(orders, key=lambda order: self.plans[order.table].reads_server)

    @property
    def catch_up_orders(self) -> list[TableOrder]:
        """The orders of tables that catch up through the log."""
        spans = self.spans
        return [order for order in self.orders if order.table in spans]

    @property
    def wait_reasons(self) -> dict[TableName, str]:
        """The tables that this run leaves as they are, each with the reason why it
        needs rows of the server."""
        return {
            table: table_plan.reason_to_wait
            for table, table_plan in self.plans.items()
            if table_plan.reason_to_wait is not None
        }

    def wait_sentence(self, table: TableName) -> str:
        """Return a sentence for people that says what a table of `wait_reasons` waits
        for."""
        if self.wants[table].supplier is not Supplier.CHANGELOG:
            return f"a run without --until reads it from the source: {self.wait_reasons[table]}"
        return (
            f"its changelog is not enough to write its mirror again: {self.wait_reasons[table]}; "
            f"`lockstep reload {table.word} --from source --reason …` reads it from MySQL"
        )

    def supplies(self, kind: type[SupplyKind]) -> list[tuple[TableName, SupplyKind, str]]:
        """Return the tables with a supply of this kind besides the log, each with the
        supply and its reason, in the order of the plans."""
        return [
            (table, step.supply, step.reason)
            for table, table_plan in self.plans.items()
            if (step := table_plan.step_after_log) is not None and isinstance(step.supply, kind)
        ]

    def tables_supplied(self, kind: type[Supply]) -> dict[TableName, str]:
        """Return the tables with a supply of this kind besides the log, each with the
        reason."""
        return dict(sorted((table, reason) for table, _, reason in self.supplies(kind)))

    @property
    def changelog_origins(self) -> dict[TableName, ChangelogOrigin]:
        """The tables whose mirrors are rewritten from their changelogs, each with the
        part of the changelog that is used."""
        return {table: supply.origin for table, supply, _ in self.supplies(FromChangelog)}

    @property
    def estimated_rows(self) -> int:
        """Estimated number of rows that are read from the server with all columns."""
        steps = (step for table_plan in self.plans.values() for step in table_plan.steps)
        return sum(
            step.price.rows or 0 for step in steps if isinstance(step.supply, RowsFromServer)
        )


def plan_orders(
    ports: RunPorts,
    orders: Sequence[TableOrder],
    *,
    earlier_plans: TablePlans | None = None,
    reason_without_log: str = "",
    known: KnownTables | None = None,
) -> TablePlans:
    """Return the plans for the tables of these orders, and write nothing.

    - `earlier_plans`: the plans that this run made before stopped tables caught up
      through the log. A table that was to catch up then, or had no order then, is now
      planned without the log.
    - `reason_without_log`: why (`StoppedReach.reason_without_log`).
    - `known`: the tables, if not as the ledger has them.

    A run with `--until` reads no rows from the server, because its end is fixed before
    they would be read. It leaves such a table to the next run without `--until`.
    """
    if not orders:
        return TablePlans()
    cursor = ports.ledger.cursors(ports.source.name).captured
    facts = ports.server.facts()
    known = known or KnownTables.of(ports)
    states = known.states
    haves = {
        order.table: _have_of_stopped(states[order.table], known.stale_mirrors) for order in orders
    }
    reaches = {
        order.table: StoppedReach(ports, states[order.table], order, cursor, facts)
        for order in orders
    }
    if earlier_plans is not None:
        catch_up_orders = {order.id for order in earlier_plans.catch_up_orders}
        other_orders = {order.id for order in earlier_plans.orders} - catch_up_orders
        for order in orders:
            if order.id not in other_orders:
                reaches[order.table].reason_without_log = reason_without_log
    wants = {order.table: _want_of(order) for order in orders}

    def plan_table(table: TableName) -> Plan:
        return _plan_in_run(ports, haves[table], wants[table], reaches[table])

    plans = {table: plan_table(table) for table in haves}
    first_span = None
    prepared = dict[Xid, PreparedTransaction]()
    spans = [table_plan.span for table_plan in plans.values() if table_plan.span is not None]
    if spans and cursor is not None:
        earliest = min(spans, key=lambda span: span.start.at)
        with_prepared = _span_with_prepared(ports, earliest, cursor)
        if with_prepared is not None and facts.lists(with_prepared[0].start.at.file):
            first_span, prepared = with_prepared
        else:
            for table, table_plan in plans.items():
                if table_plan.span is not None:
                    reaches[table].reason_without_log = _PREPARED_GONE
            plans = {table: plan_table(table) for table in haves}
    return TablePlans(plans, wants, tuple(orders), cursor, facts, first_span, prepared)


def _plan_in_run(ports: RunPorts, have: Have, want: Want, reach: Reach) -> Plan:
    """Return the plan for a table. A run with `--until` reads no rows from the
    server."""
    table_plan = plan(have, want, reach)
    return table_plan if ports.source.until is None else table_plan.without_reading_rows


def with_prices(ports: RunPorts, plans: TablePlans) -> TablePlans:
    """Return the plans with the price of each step, in rows and bytes read from MySQL.
    All tables that catch up share one reading of the log, from `first_span` on."""
    tables = [table for table, table_plan in plans.plans.items() if table_plan.reads_server]
    estimates = estimates_of(ports, tables)

    def price(table: TableName, step: SupplyStep) -> Price:
        match step.supply:
            case FromLog():
                first_span, cursor, facts = plans.first_span, plans.cursor, plans.facts
                assert first_span is not None, "a table lacks log"
                assert cursor is not None and facts is not None, "there are orders"
                end = cursor.position.at
                return Price(log_bytes=log_bytes_between(first_span.start.at, end, facts.binlogs))
            case RowsFromServer(Load() as load) if load.is_complete:
                return Price()
            case RowsFromServer(Load() as load) if load.progress.estimated_rows is not None:
                return Price(max(load.progress.estimated_rows - load.row_count, 0), None)
            case RowsFromServer():
                return estimates[table]
            case ColumnsFromServer():
                return replace(estimates[table], bytes=None)
            case FromChangelog():
                return Price()
            case FromPast():
                return step.price
        assert_never(step.supply)

    def plan_with_prices(table: TableName, table_plan: Plan) -> Plan:
        return replace(
            table_plan,
            steps=tuple(replace(step, price=price(table, step)) for step in table_plan.steps),
        )

    return replace(
        plans,
        plans={
            table: plan_with_prices(table, table_plan) for table, table_plan in plans.plans.items()
        },
    )


def estimates_of(ports: RunPorts, tables: Collection[TableName]) -> dict[TableName, Price]:
    """Return the server's estimate of each table's rows and bytes."""
    if not tables:
        return {}
    rows, sizes = ports.server.estimated_rows(tables), ports.server.estimated_bytes(tables)
    return {table: Price(rows.get(table), sizes.get(table)) for table in tables}


def _span_with_prepared(
    ports: RunPorts, span: LogSpan, cursor: Cursor
) -> tuple[LogSpan, dict[Xid, PreparedTransaction]] | None:
    """Extend the span backwards to the XA PREPARE of each XA transaction that ended
    after its place, because their spooled rows were deleted when they ended. Return the
    span, and the XA transactions that are prepared where it begins. Return None if the
    batches do not cover the log from there on without interruption."""
    source = ports.source.name
    at_end = span.batch.end is not None and span.start.at == span.batch.end.at
    first_batch = span.batch.id + 1 if at_end else span.batch.id
    ended_transactions = _ended_transactions(ports, first_batch, cursor.batch)
    earliest = min((transaction.batch for transaction in ended_transactions), default=first_batch)
    if earliest >= first_batch:
        return span, {}
    earlier_batches = ports.ledger.live_batches(source, earliest, span.batch.id)
    if _is_interrupted(earlier_batches[1:]):
        return None
    longer_span = LogSpan(earlier_batches[0], earlier_batches[0].start, None, span.low)
    ended_transactions += _ended_transactions(ports, earliest, first_batch - 1)
    return longer_span, {
        transaction.xid: replace(transaction, file=None)
        for transaction in ended_transactions
        if transaction.batch < earliest
    }


def _ended_transactions(ports: RunPorts, first: int, last: int) -> list[PreparedTransaction]:
    contents = ports.ledger.contents(ports.source.name, first, last)
    return [transaction for content in contents for transaction in content.ended_transactions]


def plan_readings(
    ports: RunPorts,
    run_start: RunStart,
    order_plans: TablePlans,
    known: KnownTables | None = None,
) -> TablePlans:
    """Return `order_plans`, and the plans of all other tables that a run with this
    start reads from the server: loads that continue or begin again, tables for which
    part of the log was lost, and new tables. A stopped table is planned only if an
    order resumes it. Nothing is written. `known`: the tables, if not as the ledger has
    them."""
    states = ports.ledger.table_states(ports.source.name) if known is None else known.states
    valid_loads, void = _valid_and_void_loads(ports, run_start, states)
    tables_without_log = find_tables_without_log(run_start, states, order_plans)
    void_by_table = {load.table: load for load, _ in void}
    tables = {
        *tables_without_log,
        *valid_loads,
        *void_by_table,
        *_new_tables(ports, states, valid_loads.keys() | void_by_table.keys()),
    }
    tables |= {table for table, state in states.items() if state.is_loading}
    plans, wants = dict(order_plans.plans), dict(order_plans.wants)
    errors = {table: error for table, error in consent_errors(ports).items() if table not in states}
    tables -= errors.keys()
    for table in sorted(filter(ports.source.patterns.matches, tables)):
        state = states.get(table)
        load = valid_loads.get(table) or void_by_table.get(table)
        if table in plans and (table not in tables_without_log or plans[table].reads_all_rows):
            if ports.source.until is None:
                plans[table] = plans[table].continuing(valid_loads.get(table))
            continue
        if table not in plans and state is not None and state.has_stopped:
            continue  # the table waits for an order
        needs = {Need.LOG} if table in tables_without_log else set()
        have = _have_of(state, table, valid_loads.get(table), frozenset(needs))
        if load is not None:
            have = replace(have, reason=load.reason, needs=have.needs | {Need.ROWS})
        wants.setdefault(table, Want() if load is None else Want(author=load.author))
        plans[table] = _plan_in_run(ports, have, wants[table], KnownReach())
    return replace(
        order_plans,
        plans=plans,
        wants=wants,
        void_loads=tuple(void),
        new_consent_errors=errors,
    )


def _have_of(
    state: TableState | None,
    table: TableName,
    load: Load | None,
    needs: frozenset[Need],
) -> Have:
    """Return what the lake has and lacks of a table that is read from the server."""
    if state is None:
        return Have(table, SupplyStanding.NEW, load=load)
    standing = SupplyStanding.LOADING if state.is_loading else SupplyStanding.FOLLOWING
    reason = "what was read of it no longer counts"
    return Have(table, standing, needs, reason, load)


def _valid_and_void_loads(
    ports: RunPorts, run_start: RunStart, states: Mapping[TableName, TableState]
) -> tuple[dict[TableName, Load], list[tuple[Load, str]]]:
    """Return the open loads that are valid, and those that are not, each with the
    reason."""
    valid_loads, void = dict[TableName, Load](), list[tuple[Load, str]]()
    for load in ports.ledger.open_loads(ports.source.name):
        has_gap = run_start.decision.continuity is Continuity.GAP
        if load.followed_from is not None:
            has_gap = _has_gap_since(ports, run_start, load.followed_from.batch)
        facts = run_start.facts
        log = (run_start.start.at, facts.head)
        reason = reason_void(load, states.get(load.table), facts.server_uuid, log, has_gap=has_gap)
        reason = reason or _reason_shape_changed(ports, load)
        if reason is None and load.is_complete:
            folder = snapshot_path(ports.source.name, load.table)
            reason = next(iter(ports.segments.damage_sentences(folder, load.files)), None)
        if reason is None:
            valid_loads[load.table] = load
        else:
            void.append((load, reason))
    return valid_loads, void


def _reason_shape_changed(ports: RunPorts, load: Load) -> str | None:
    """Return why the present settings make the load void; None if they do not."""
    if load.basis is None:
        return None
    try:
        present_shape = ports.shaping.shape_fingerprint(load.basis.schema)
    except TableError as error:
        return error.reason
    if present_shape == load.basis.shape:
        return None
    return "its settings show something else of it now"


def _has_gap_since(ports: RunPorts, run_start: RunStart, batch: int) -> bool:
    """Return whether part of the log after a batch was skipped or read twice."""
    if run_start.decision.continued_batch is None:
        return True
    return _is_interrupted(
        ports.ledger.live_batches(ports.source.name, batch + 1, run_start.decision.continued_batch)
    )


def _is_interrupted(batches: Iterable[Batch]) -> bool:
    """Return whether one of the batches does not begin where the one before it
    ended."""
    return any(batch.continued_batch is None and not batch.catches_up for batch in batches)


def find_tables_without_log(
    run_start: RunStart, states: Mapping[TableName, TableState], plans: TablePlans
) -> set[TableName]:
    """Return the tables that lack a part of the log because the start passes over that
    part: the captured tables, and the tables that `plans` resume. Return none if a
    person chose such a start."""
    decision = run_start.decision
    if decision.continuity is not Continuity.GAP or decision.override is not None:
        return set()
    resumed = {
        table for table, table_plan in plans.plans.items() if table_plan.reason_to_wait is None
    }
    return {table for table, state in states.items() if not state.has_stopped or table in resumed}


def _new_tables(
    ports: RunPorts, states: Mapping[TableName, TableState], loading: Iterable[TableName]
) -> Iterator[TableName]:
    """Yield the tables that no run has captured and that are older than the log that is
    still to be read, if the settings want their rows (`start = "snapshot"`)."""
    if not ports.source.loads_new_tables:
        return
    source, captured_tables = ports.source.name, states.keys() | loading
    names = [table.name for table in ports.server.tables()]
    new_tables = [
        name
        for name in names
        if ports.source.patterns.matches(name) and name not in captured_tables
    ]
    cursor = ports.ledger.cursors(source).captured
    if cursor is not None:
        batch, place = cursor.batch, cursor.position.at
        new_tables = [
            table
            for table in new_tables
            if ports.ledger.schema_at(source, table, batch=batch, place=place) is not None
        ]
    excluded_tables = (
        foreign_mirrors(ports, new_tables).keys() | collisions(ports, states, new_tables).keys()
    )
    yield from (table for table in new_tables if table not in excluded_tables)
