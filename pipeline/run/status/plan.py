"""Plans the next run without writing anything. Also records the start that an operator
chooses, after examining it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Final

from lockstep.pipeline.check import require_ready
from lockstep.pipeline.model.table_state import StoppedTable
from lockstep.pipeline.ports.ledger import live_lease
from lockstep.pipeline.ports.source import ServerFacts
from lockstep.pipeline.run.begin import RunStart, foresee_start, tables_in_gap
from lockstep.pipeline.run.consent import consent_errors
from lockstep.pipeline.run.context import RunPorts
from lockstep.pipeline.run.follow_pasts import plan_pasts
from lockstep.pipeline.run.left_out import left_out_now
from lockstep.pipeline.run.repair import (
    Abandonment,
    batches_to_abandon,
    cursor_after,
    foresee_next_start,
)
from lockstep.pipeline.run.reshaping import new_tightenings, plaintext_sentence, reshaped_tables
from lockstep.pipeline.run.status.plan_reading import PlannedReading, estimate_seconds, read_ahead
from lockstep.pipeline.run.stop_errors import stopped_tables
from lockstep.pipeline.run.table_plans import (
    KnownTables,
    TablePlans,
    foreseen_orders,
    plan_orders,
    plan_readings,
    with_prices,
)
from lockstep.pipeline.snapshot.log_retention import ReadingTime, log_retention, week_statement
from lockstep.pipeline.source_plan import settings_in_words
from lockstep.pipeline.start.question import Refusal
from lockstep.pipeline.supply import RowsFromServer
from lockstep.pipeline.values.decisions import Continuity, Lease, LeaseView, Override
from lockstep.pipeline.values.errors import (
    LockstepError,
    Need,
    NotYet,
    Recovery,
    StoppedBy,
    TableError,
)
from lockstep.pipeline.values.places import AtCoordinates, Latest, Place, Snapshot
from lockstep.pipeline.values.position import Position
from lockstep.pipeline.values.table import TableName


@dataclass(frozen=True, slots=True)
class PlannedStart:
    """The start of the next run. `rule`, `reason`: which start rule decided, and why.
    `position`: None for a refusal. `continuity`, `gap_tables`: if the run does not
    continue the last batch, whether a gap or an overlap lies between them, and the
    tables that it concerns."""

    rule: str
    reason: str
    position: Position | None
    continuity: Continuity | None = None
    gap_tables: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PlannedShape:
    """A table whose settings now select or mask other columns or rows than before.
    `refusal_hint`: the hint if the settings cannot be applied and the table is
    quarantined; None if it is re-read. `remains`: hidden values that the lake still
    has."""

    json_keys: ClassVar = ("reason", "refusal_hint as refused", "remains")

    reason: str
    refusal_hint: str | None
    remains: str | None = None


@dataclass(frozen=True, slots=True)
class RunPlan:
    """The plan of the next run.

    - `abandoned_sentences`: one for each batch that would be abandoned.
    - `waiting_batches`: captured batches that are not merged, each with the tables that
      have yet to be merged.
    - `capture_seconds`: estimate for the capture; None if earlier batches give none.
    - `stopped_tables`: those that are stopped already.
    - `active_run`: the lease of the run that is active now.
    - `table_plans`: the steps that bring tables to the log's end, with their cost for
      MySQL.
    - `load_forecasts`: sentences on reading rows from MySQL.
    - `settings`: the policies of tables that have a block in lockstep.toml.
    - `shapes`: tables whose settings show other columns or rows than the lake has.
    - `left_out`: tables that the run stops because the patterns leave them out, with
      the reasons.
    """

    abandoned_sentences: tuple[str, ...]
    waiting_batches: Mapping[int, tuple[TableName, ...]]
    start: PlannedStart | None
    reading: PlannedReading | None
    capture_seconds: float | None
    refusal: LockstepError | None
    stopped_tables: tuple[StoppedTable, ...]
    active_run: LeaseView | None
    table_plans: TablePlans = field(default_factory=TablePlans)
    load_forecasts: tuple[str, ...] = ()
    settings: Mapping[TableName, str] = field(default_factory=dict)
    shapes: Mapping[TableName, PlannedShape] = field(default_factory=dict)
    left_out: Mapping[TableName, str] = field(default_factory=dict)

    @property
    def new_quarantines(self) -> list[TableName]:
        """The tables that the run would quarantine."""
        refused = {table for table, shape in self.shapes.items() if shape.refusal_hint is not None}
        quarantines = self.reading.quarantines if self.reading is not None else ()
        return sorted(refused.union(stopped.table for stopped in quarantines))

    @property
    def remaining_stops(self) -> list[TableName]:
        """The tables that are stopped already, and that the run would not bring back."""
        plans = self.table_plans
        resumed = plans.plans.keys() - plans.wait_reasons.keys()
        return [stopped.table for stopped in self.stopped_tables if stopped.table not in resumed]


def make_plan(ports: RunPorts) -> RunPlan:
    """Return the plan of the next run, including its refusal; nothing is written. Raise
    errors that a retry may resolve."""
    abandonments: list[Abandonment] = []
    start: PlannedStart | None = None
    reading: PlannedReading | None = None
    refusal: LockstepError | None = None
    tables = TablePlans()
    load_forecasts: tuple[str, ...] = ()
    shapes: dict[TableName, PlannedShape] = {}
    left_out: dict[TableName, TableError] = {}
    try:
        override = ports.ledger.open_override(ports.source.name)
        abandonments.extend(batches_to_abandon(ports, override))
        cursor = cursor_after(ports, abandonments)
        if cursor is None:
            ports.mirrors.require_ready()
        require_ready(ports.server, ports.ledger, ports.source)
        outcome = foresee_start(ports, cursor, override).outcome
        left_out = left_out_now(ports)
        shapes, known = _shapes_and_tables(ports, left_out)
        start = _planned_start(ports, outcome)
        tables = plan_tables(ports, outcome, known)
        if isinstance(outcome, Refusal):
            refusal = outcome.error
        else:
            reading = read_ahead(ports, outcome, tables)
            refusal = reading.refusal
            if tables.tables_supplied(RowsFromServer):
                load_forecasts = forecast_loads(ports, outcome.facts, tables.estimated_rows)
    except LockstepError as error:
        if error.recovery is Recovery.RETRY:
            raise
        refusal = error
    return RunPlan(
        abandoned_sentences=tuple(
            f"batch {abandonment.batch.id} is abandoned: {abandonment.reason}"
            for abandonment in abandonments
        ),
        waiting_batches=_waiting_batches(ports, abandonments),
        start=start,
        reading=reading,
        capture_seconds=estimate_seconds(ports, reading),
        refusal=refusal,
        stopped_tables=stopped_tables(
            ports.ledger.table_states(ports.source.name), ports.source.patterns.matches
        ),
        active_run=live_lease(ports.ledger, ports.source.name),
        table_plans=tables,
        load_forecasts=load_forecasts,
        settings=_settings(ports),
        shapes=shapes,
        left_out={
            table: error.reason
            for table, error in left_out.items()
            if not ports.source.patterns.matches(table)
        },
    )


def plan_tables(
    ports: RunPorts, start: RunStart | Refusal, known: KnownTables | None = None
) -> TablePlans:
    """Return, with prices, what a run with this start does to each table that it does
    not simply continue; nothing is written. If the start is refused, only stopped
    tables are planned. `known`: the tables' states; None for the states in the
    ledger."""
    tables = plan_orders(ports, foreseen_orders(ports, known), known=known)
    if isinstance(start, RunStart):
        tables = plan_pasts(ports, plan_readings(ports, start, tables, known))
    return with_prices(ports, tables)


def _settings(ports: RunPorts) -> Mapping[TableName, str]:
    source = ports.source
    if not source.table_settings:
        return {}
    names = {*ports.ledger.table_states(source.name), *ports.server.engines()}
    return settings_in_words(filter(source.patterns.matches, names), source.table_settings)


def _shapes_and_tables(
    ports: RunPorts, left_out: Mapping[TableName, TableError]
) -> tuple[dict[TableName, PlannedShape], KnownTables]:
    """Return the tables whose shape (columns and rows that are shown) the settings
    change. Return also the states of all tables as they will be once the run has
    stopped these tables (`stop_reshaped_tables`) and those that are `left_out`."""
    known = KnownTables.of(ports)
    notes = ports.ledger.uncleared_values(ports.source.name)
    errors = dict(reshaped_tables(ports, notes))
    cursor = ports.ledger.cursors(ports.source.name).captured
    if cursor is None:
        return {}, known
    consents = {table: error for table, error in errors.items() if error.need is Need.CONSENT}
    left_out = {table: error for table, error in left_out.items() if table not in consents}
    tightened_tables = {tightening.table for tightening in new_tightenings(ports, notes)}
    known = replace(
        known.with_stopped(cursor, errors | left_out),
        stale_mirrors=known.stale_mirrors | tightened_tables,
    )
    shapes = {
        table: PlannedShape(error.reason, None, plaintext_sentence(ports, table))
        if error.by is StoppedBy.RUN
        else PlannedShape(error.reason, error.hint)
        for table, error in {**consent_errors(ports), **errors}.items()
        if table not in left_out
    }
    return shapes, known


SPACE_SENTENCE: Final = "a table's rows are in the lake twice until its mirror is acknowledged"
"""The sentence on the disk space that reading a table takes."""


def forecast_loads(ports: RunPorts, facts: ServerFacts, row_count: int) -> tuple[str, ...]:
    """Return sentences on reading `row_count` rows from MySQL: how long it takes, how
    much space it needs, and whether the server keeps its log long enough."""
    snapshot_plan = ports.source.snapshot
    reading_time = ReadingTime(log_retention(facts.settings), snapshot_plan.max_seconds)
    sentences = [reading_time.forecast(row_count, snapshot_plan.connections), SPACE_SENTENCE]
    if reading_time.shortening_sentence is not None:
        sentences.append(f"{reading_time.shortening_sentence}: {week_statement(facts.settings)}")
    return tuple(sentences)


def next_start(ports: RunPorts) -> PlannedStart:
    """Return where the next run would begin, or raise its refusal."""
    outcome = foresee_next_start(ports).outcome
    if isinstance(outcome, Refusal):
        raise outcome.error
    return _planned_start(ports, outcome)


def _planned_start(ports: RunPorts, outcome: RunStart | Refusal) -> PlannedStart:
    if isinstance(outcome, Refusal):
        return PlannedStart(outcome.rule.value, outcome.reason, None)
    decision, tables = outcome.decision, tables_in_gap(ports, outcome.decision)
    return PlannedStart(
        decision.rule.value, decision.reason, outcome.start, decision.continuity, tables
    )


def _waiting_batches(
    ports: RunPorts, abandonments: Sequence[Abandonment]
) -> dict[int, tuple[TableName, ...]]:
    abandoned_ids = {abandonment.batch.id for abandonment in abandonments}
    pending = ports.ledger.pending_batches(ports.source.name)
    return {
        batch.id: tuple(table for table, batches in pending.items() if batch.id in batches)
        for batch in ports.ledger.unfinished_batches(ports.source.name)
        if batch.id not in abandoned_ids
    }


# -- a start that is chosen ------------------------------------------------------------


_PROPOSED: Final = 0
"""The id of a chosen start that is not recorded yet."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A chosen start, and what the next run makes of it. `abandoned_batches`: those
    that it abandons; `position`: where it starts; `captured_end`: the end of what was
    captured; `continuity`, `gap_tables`: whether a gap or an overlap lies between these
    two, and the tables that it concerns. `server_error`: why the server could not be
    asked; then the rest is unknown."""

    override: Override
    abandoned_batches: tuple[int, ...] = ()
    position: Position | None = None
    captured_end: Position | None = None
    continuity: Continuity | None = None
    gap_tables: tuple[str, ...] = ()
    server_error: LockstepError | None = None


def choose_start(
    ports: RunPorts, lease: Lease, place: Place | Snapshot, reason: str, author: str
) -> Choice:
    """Record where the next run is to start. This replaces an earlier choice.

    Raise `StartBehindCursor`, `StartUnreachable` or another refusal if the log does not
    have the place; then nothing is recorded. If the server does not answer, the choice
    is recorded without examination.
    """
    if isinstance(place, Snapshot):
        raise _snapshot_chosen_error()
    proposed = Override(_PROPOSED, str(place), reason, author, ports.clock())
    try:
        choice = _examine_choice(ports, proposed)
    except LockstepError as error:
        if error.recovery is not Recovery.RETRY:
            raise
        choice = Choice(proposed, server_error=error)
    if isinstance(place, Latest) and choice.position is not None:
        # `latest` means the log's end now, not its end when the run starts.
        place = AtCoordinates(choice.position.at)
    override = ports.ledger.choose_start(lease, place=str(place), reason=reason, author=author)
    return replace(choice, override=override)


def _snapshot_chosen_error() -> NotYet:
    """Return the error for `start-at snapshot`. A chosen start is a place in the log,
    but `snapshot` is a way to begin a source that was never captured."""
    return NotYet(
        "'snapshot' cannot be chosen: only a source's first run starts that way, "
        'if lockstep.toml has start = "snapshot"',
        hint="to read tables from the source again, `lockstep reload TABLE --from source "
        "--reason …`; to go on elsewhere in the log, choose earliest, latest, a place or a moment",
    )


def _examine_choice(ports: RunPorts, proposed_override: Override) -> Choice:
    abandonments = list(batches_to_abandon(ports, proposed_override))
    cursor = cursor_after(ports, abandonments)
    outcome = foresee_start(ports, cursor, proposed_override).outcome
    if isinstance(outcome, Refusal):
        raise outcome.error
    return Choice(
        proposed_override,
        abandoned_batches=tuple(abandonment.batch.id for abandonment in abandonments),
        position=outcome.start,
        captured_end=cursor.position if cursor else None,
        continuity=outcome.decision.continuity,
        gap_tables=tables_in_gap(ports, outcome.decision),
    )
