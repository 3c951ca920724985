"""A run against the plan that was made before it: which supplies each table has, each with its
reason, and what is asked of MySQL for it.

Belongs here: what the plan says, what the run did, and their comparison. Does not: what happens to
the tables before (the tests).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Final, cast

import pyarrow as pa

from lockstep.pipeline.model.batch import Batch
from lockstep.pipeline.model.table_state import TableEventKind
from lockstep.pipeline.ports.ledger import batch_content
from lockstep.pipeline.ports.source import ConditionSnapshot, SourceServer, TableSnapshot
from lockstep.pipeline.run.context import RunPorts
from lockstep.pipeline.run.status.plan import RunPlan, make_plan
from lockstep.pipeline.run.table_plans import TablePlans
from lockstep.pipeline.schema.consequences import Action
from lockstep.pipeline.schema.model import TableSchema
from lockstep.pipeline.snapshot.chunks import Range
from lockstep.pipeline.snapshot.condition import RowCondition
from lockstep.pipeline.supply import (
    ColumnsFromServer,
    FromChangelog,
    FromLog,
    FromPast,
    Price,
    RowsFromServer,
    SupplyStep,
)
from lockstep.pipeline.values.table import TableName
from tests.positions.follower import SOURCE, Follower

Supplied = tuple[str, str]
"""What a table is supplied with, and the reason, or what says the same of it."""

_CATCHES_UP: Final = re.compile(r"(\S+) catches up through the log, from (\S+) to \S+")
_WITH_PAST: Final = re.compile(r"(\S+) is followed from (\S+) on: ")
_STOPPED: Final = re.compile(r"(\S+) (?:was quarantined|stops at .+ until a run reads it)")
_EVENTS: Final = {
    TableEventKind.REREAD: "rows",
    TableEventKind.REBUILT: "changelog",
    TableEventKind.COPIED: "copy",
}


class CountedServer:
    """A server that counts the rows that it is asked for, by table."""

    def __init__(self, server: SourceServer) -> None:
        self._server = server
        self.rows = Counter[TableName]()
        self.asked = set[TableName]()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._server, name)

    @contextmanager
    def snapshot(
        self, table: TableSchema, columns: Sequence[str] | None = None
    ) -> Iterator[TableSnapshot]:
        with self._server.snapshot(table, columns) as snapshot:
            yield self._counted(snapshot)

    @contextmanager
    def chunk(
        self, schema: TableSchema, key_range: Range, **options: Any
    ) -> Iterator[TableSnapshot]:
        with self._server.chunk(schema, key_range, **options) as snapshot:
            yield self._counted(snapshot)

    @contextmanager
    def rows_where(
        self, table: TableSchema, condition: RowCondition, **options: Any
    ) -> Iterator[ConditionSnapshot]:
        with self._server.rows_where(table, condition, **options) as snapshot:
            yield replace(snapshot, rows=self._counted(snapshot.rows))

    def _counted(self, snapshot: TableSnapshot) -> TableSnapshot:
        self.asked.add(snapshot.table)
        return replace(snapshot, batches=self._passed_on(snapshot.table, snapshot.batches))

    def _passed_on(
        self, table: TableName, batches: Iterator[pa.RecordBatch]
    ) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            self.rows[table] += batch.num_rows
            yield batch


@contextmanager
def counted(follower: Follower) -> Iterator[CountedServer]:
    """The rows that the follower asks its server for are counted."""
    server, count = follower.server, CountedServer(follower.server)
    follower.server = cast("SourceServer", count)
    try:
        yield count
    finally:
        follower.server = server


@dataclass(frozen=True)
class Done:
    """What a run did: the supplies of each table, the rows that MySQL was asked for, and of which
    tables, its batches, and the tables that it quarantined."""

    supplied: set[tuple[TableName, Supplied]]
    rows: Counter[TableName]
    asked: set[TableName]
    batches: list[Batch]
    stopped: set[TableName]


def run_as_planned(follower: Follower, *, exact: bool = False) -> tuple[RunPlan, Done]:
    """A run does what the plan before it says. Only a table that catches up may stop once more in
    that part of the log, which no plan reads. `exact`: the server's estimates are its rows."""
    with counted(follower) as count:
        plan = make_plan(follower.ports())
        assert count.asked == set(), "a plan reads no rows"
    assert plan.refusal is None and plan.reading is not None
    done = carried_out(follower)
    again = plan.table_plans.spans.keys() & done.stopped
    planned = {one for one in planned_supplies(plan) if one[0] not in again}
    supplied = {one for one in done.supplied if one[0] not in again}
    assert planned == supplied, (planned - supplied, supplied - planned)
    require_price(plan, done, again, exact=exact)
    return plan, done


def carried_out(follower: Follower) -> Done:
    """Run, and return what was done."""
    before = max((batch.id for batch in follower.live_batches()), default=0)
    noted = len(follower.notes)
    with counted(follower) as count:
        follower.run()
    batches = [batch for batch in follower.live_batches() if batch.id > before]
    supplied = set[tuple[TableName, Supplied]]()
    for batch in batches:
        content = batch_content(follower.ledger, SOURCE, batch.id)
        for event in content.events:
            if event.kind in _EVENTS:
                supplied.add((event.table, (_EVENTS[event.kind], event.reason or "")))
        for part in content.snapshots:
            if part.columns is not None:
                supplied.add((part.table, ("columns", ", ".join(part.columns))))
    notes = follower.notes[noted:]
    for note in notes:
        for kind, pattern in (("log", _CATCHES_UP), ("past", _WITH_PAST)):
            if (found := pattern.match(note)) is not None:
                supplied.add((_table(found[1]), (kind, found[2])))
    stopped = {_table(found[1]) for note in notes if (found := _STOPPED.search(note))}
    return Done(supplied, count.rows, count.asked, batches, stopped)


def _table(name: str) -> TableName:
    return TableName(*name.split(".", 1))


def planned_supplies(plan: RunPlan) -> set[tuple[TableName, Supplied]]:
    """Return what the plan says, of the log that is unread also."""
    assert plan.reading is not None
    found = {
        (table, _supplied(step))
        for table, one in plan.table_plans.plans.items()
        for step in one.steps
    }
    found |= {(table, ("rows", why)) for table, why in plan.reading.rereads.items()}
    for statement in plan.reading.statements:
        for effect in statement.effect.split("; "):
            table, _, told = effect.partition(": ")
            action, _, reason = told.partition(", ")
            if action == Action.COPY:
                found.add((_table(table), ("copy", reason)))
    return found


def _supplied(step: SupplyStep) -> Supplied:
    match step.supply:
        case FromLog(span):
            return "log", str(span.low)
        case FromPast(past):
            return "past", str(past.begins)
        case FromChangelog():
            return "changelog", step.reason
        case RowsFromServer():
            return "rows", step.reason
        case ColumnsFromServer(columns):
            return "columns", ", ".join(columns.names)


def require_told(told: TablePlans, ports: RunPorts) -> None:
    """What was told of the next run, before something was done that the ledger records, is what
    `lockstep plan` says of it afterwards: each table's supplies, their reasons and prices."""
    plan = make_plan(ports)
    if plan.refusal is None:
        assert steps_of(told) == steps_of(plan.table_plans)


def steps_of(plans: TablePlans) -> dict[TableName, list[tuple[Supplied, Price]]]:
    """What each table is supplied with that lacks anything, and what that asks of MySQL."""
    return {
        table: [(_supplied(step), step.price) for step in one.steps]
        for table, one in plans.plans.items()
        if one.steps
    }


def require_price(plan: RunPlan, done: Done, again: set[TableName], *, exact: bool) -> None:
    """MySQL was asked for rows of the tables that the plan names, and of no other; and for the
    bytes of log that the plan says."""
    assert plan.reading is not None
    prices = {
        table: step.price
        for table, one in plan.table_plans.plans.items()
        for step in one.steps
        if step.reads_server
    }
    read_again = plan.reading.rereads.keys()
    some = {table for table, price in prices.items() if price.rows != 0}
    assert some - again <= done.asked <= prices.keys() | read_again | again
    for table, price in prices.items():
        if exact and table not in {*read_again, *again}:
            assert price.rows == done.rows[table], table
    caught_up = [batch for batch in done.batches if batch.catches_up]
    steps = [step for one in plan.table_plans.plans.values() for step in one.steps]
    by_kind = [
        [step.price.log_bytes for step in steps if isinstance(step.supply, kind)]
        for kind in (FromPast, FromLog)
    ]
    log = [max(sizes) for sizes in by_kind if sizes]
    for foreseen, batch in zip(log, caught_up, strict=True):
        # Between two files there are bytes of no transaction, and pasts are searched for first.
        assert foreseen >= batch.log_bytes
    ordinary = [batch for batch in done.batches if not batch.catches_up]
    if ordinary:
        assert ordinary[0].log_bytes == plan.reading.log_bytes
    else:
        assert plan.reading.transaction_count == 0
