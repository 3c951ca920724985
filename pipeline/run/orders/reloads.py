"""Plans and records reloads: mirrors (the Delta tables with the current rows), or some
of their rows, that are written again. A person orders a reload, or a comparison found a
difference. The plan decides what supplies each one. The next run carries it out; only a
reload of rows under a condition is carried out by the run to which it is given."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from lockstep.pipeline.mirror.layout import mirror_path
from lockstep.pipeline.mirror.merging import ChangelogOrigin, ReloadOrigin
from lockstep.pipeline.model.batch import TableContent
from lockstep.pipeline.model.table_state import OrderKind, Supplier, TableOrder, TableState
from lockstep.pipeline.run.agreement.lake_logs import foreign_mirrors
from lockstep.pipeline.run.context import RunPorts
from lockstep.pipeline.run.follow_pasts import Pasts, find_pasts
from lockstep.pipeline.run.load.by_condition import condition_refusal
from lockstep.pipeline.run.orders.table_orders import OrderRequest, plans_of_next_run
from lockstep.pipeline.run.reports import VerifyReport
from lockstep.pipeline.run.table_plans import (
    changelog_origin_of,
    earlier_version_origin_of,
    needs_of,
)
from lockstep.pipeline.schema.history import Knowledge
from lockstep.pipeline.shape.shaping import consent_hint
from lockstep.pipeline.snapshot.condition import read_condition
from lockstep.pipeline.source_plan import RereadRows
from lockstep.pipeline.supply import FromChangelog, Past
from lockstep.pipeline.values.decisions import Lease
from lockstep.pipeline.values.errors import LedgerRefused, Need, PastRefused
from lockstep.pipeline.values.table import TableName


@dataclass(frozen=True, slots=True)
class Reload:
    """A mirror that is to be written again.

    - `named_supplier`: the one that the person named, if any. `supplier`: the one that is used.
    - `sentence`: what the next run does.
    - `reason_from_source`: why rows come from MySQL although nobody asked for that.
    - `estimated_rows`: the server's estimate of the rows to read; None if none are read.
    - `is_stopped`: the table is stopped, and the reload resumes it.
    - `is_already_reading`: its rows are already being read, so nothing has to be recorded.
    - `origin`: the changelog that the mirror is written from; None if rows are read.
    - `condition_rows`: the only rows that are read; None for all.
    - `order`, `load_id`: set once the reload is recorded: the order that stops or resumes the
      table, or else the load.
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
        """What the log has of each table that is not in the lake yet."""
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
        if state is not None and (state.has_stopped or state.is_loading):
            return state.is_loading
        return load is not None and load.basis is not None

    def origin(self, request: OrderRequest, supplier: Supplier | None) -> ReloadOrigin:
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
) -> ReloadOrigin:
    """Return what the mirror of a stopped table is written from, as the next run would
    decide."""
    order = replace(request.as_order(ports, OrderKind.RELOAD, state), supplier=supplier)
    table_plan = plans_of_next_run(ports, order).plans[request.table]
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
    origin: ReloadOrigin = ""
    if is_being_read:
        origin = "its rows are being read from MySQL"
    elif supplier is not Supplier.SOURCE:
        origin = facts.origin(request, supplier)
    if supplier is Supplier.CHANGELOG and isinstance(origin, str):
        raise PastRefused(
            f"the mirror of {table} cannot be written again from its changelog: {origin}",
            hint=f"`lockstep reload {table} --from source --reason …` reads it from MySQL",
        )
    is_stopped = state is not None and state.has_stopped
    resumes = "; this also resumes the table" if is_stopped else ""
    sentence = f"the next run rewrites the mirror of {table}"
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


def plan_condition_reload(
    ports: RunPorts, order: RereadRows, facts: ReloadFacts | None = None
) -> Reload:
    """Return the reload of the rows that meet a condition. The run that is given its
    `condition_rows` carries it out. If these rows cannot be merged alone, return the
    reload of all rows."""
    table, condition = order.table, order.condition
    if (refusal := condition_refusal(ports, table)) is not None:
        request = OrderRequest(table, order.author, f"{order.reason}; {refusal.message}")
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
    request, source = OrderRequest(table, order.author, order.reason), Supplier.SOURCE
    rows = ports.server.estimated_rows_where(table, condition)
    return Reload(request, source, source, sentence, estimated_rows=rows, condition_rows=order)


def plan_repairs(ports: RunPorts, report: VerifyReport, author: str) -> list[Reload]:
    """Return how each table that differs from MySQL is repaired: the differing rows are
    read, or all rows if no condition can name them. Rows are never corrected in the
    mirror alone, because consumers must find every change in the changelog. Tables that
    are stopped or incomplete are left out."""
    states = ports.ledger.table_states(ports.source.name)
    differing_tables = [
        difference
        for difference in report.tables
        if not difference.equal
        and difference.table in states
        and states[difference.table].is_complete
    ]
    facts = ReloadFacts(ports, [difference.table for difference in differing_tables])
    repairs = []
    for difference in differing_tables:
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
            order = RereadRows(request.table, where, author, request.reason)
            repair = plan_condition_reload(ports, order, facts)
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
            hint=f"`lockstep reload {table} --from source --reason …` reads it from MySQL as it is",
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
