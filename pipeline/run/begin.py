"""The beginning of a run: gather the facts, decide the start in the log, prove that the
server has this part of the log, and record the decision."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from lockstep.pipeline.binlog.search.log_scan import read_file_head
from lockstep.pipeline.binlog.search.places import find_anchors
from lockstep.pipeline.model.batch import Batch, Cursor, Xid
from lockstep.pipeline.model.table_state import TableCondition
from lockstep.pipeline.ports.source import ServerFacts
from lockstep.pipeline.run.context import RunPorts
from lockstep.pipeline.run.find_place import (
    end_of_transactions_to_leave_out,
    find_place,
    read_anchor_of,
    resolve_start,
)
from lockstep.pipeline.start.question import (
    ChosenPlace,
    Question,
    Refusal,
    SetReading,
    Start,
    StartRule,
)
from lockstep.pipeline.start.rules import compare_set, decide_start, decision_record
from lockstep.pipeline.values.decisions import Continuity, Lease, Override
from lockstep.pipeline.values.errors import (
    LockstepError,
    Recovery,
)
from lockstep.pipeline.values.gtid import GtidSet
from lockstep.pipeline.values.places import parse_place
from lockstep.pipeline.values.position import Anchor, Coordinates, Position
from lockstep.pipeline.values.retries import GTID_EXECUTED


@dataclass(frozen=True, slots=True)
class RunStart:
    """The proven start of a run, and the decision behind it.

    - `decision_id`: the decision's number in the ledger; 0 if it is not recorded.
    - `anchor`: checksum and place of the event before the start. It shows that the log
      is the same.
    - `leave_out`: transactions after the start that were read before. All of them lie
      before `known_until`. The run must not end before that place, because its end
      position could not say which transactions to leave out.
    - `by_gtid`: later runs may find this run's end by its GTID set, as long as this run
      reads no transaction without a GTID.
    - `prepared_xids`: XA transactions that are prepared on the server. If the XA
      PREPARE of one lies before the start, its rows would be missing.
    """

    decision: Start
    start: Position
    anchor: Anchor | None
    facts: ServerFacts
    decision_id: int = 0
    leave_out: GtidSet = field(default_factory=GtidSet)
    known_until: Coordinates | None = None
    by_gtid: bool = False
    prepared_xids: frozenset[Xid] = frozenset()


@dataclass(frozen=True, slots=True)
class StartProposal:
    """The start of a run, or the refusal to start, and the facts that decided it
    (`question`)."""

    question: Question
    outcome: RunStart | Refusal


def begin(ports: RunPorts, lease: Lease) -> RunStart:
    """Decide the start and record the decision. If it is a refusal, raise its error
    afterwards."""
    override = ports.ledger.open_override(ports.source.name)
    proposal = foresee_start(ports, ports.ledger.cursors(ports.source.name).captured, override)
    question, outcome, patterns = proposal.question, proposal.outcome, ports.source.patterns
    if isinstance(outcome, Refusal):
        record = decision_record(outcome, question, patterns)
    else:
        decision, at = outcome.decision, outcome.start.at
        tables = tables_in_gap(ports, decision)
        record = decision_record(decision, question, patterns, at=at, tables=tables)
    if not question.has_gtid_mode_on:
        ports.ledger.note_gtids_off(lease)
    entry = ports.ledger.decide(lease, record)
    if isinstance(outcome, Refusal):
        outcome.error.is_recorded = True
        raise outcome.error
    return replace(outcome, decision_id=entry.id)


def foresee_start(
    ports: RunPorts, cursor: Cursor | None, override: Override | None
) -> StartProposal:
    """Decide and prove the start of a run that would continue at `cursor`, the end of
    the last batch, and write nothing. `override`: another start that a person chose."""
    question = gather_facts(ports, cursor, override)
    decision = decide_start(question)
    if isinstance(decision, Refusal):
        return StartProposal(question, decision)
    try:
        return StartProposal(question, _place_start(ports, question, decision))
    except LockstepError as error:
        if error.recovery is not Recovery.OPERATOR:
            raise
        return StartProposal(question, Refusal(decision.rule, error))


def start_at_known_place(
    start: Position,
    anchor: Anchor | None,
    facts: ServerFacts,
    reason: str,
    *,
    leave_out: GtidSet | None = None,
    by_gtid: bool = False,
) -> RunStart:
    """Return a start at a place that was read before. The rules for a run's start do
    not apply."""
    decision = Start(
        StartRule.RESUME_SAME_SERVER, reason, start.at, continuity=Continuity.CONTIGUOUS
    )
    return RunStart(
        decision, start, anchor, facts, leave_out=leave_out or GtidSet(), by_gtid=by_gtid
    )


def start_to_continue(ports: RunPorts, cursor: Cursor) -> RunStart:
    """Return the start of a run that would continue at the cursor, after its anchor has
    proven that the log is the same. Write nothing. Raise the error that would refuse
    that run."""
    outcome = foresee_start(ports, cursor, None).outcome
    if isinstance(outcome, Refusal):
        raise outcome.error
    return outcome


def gather_facts(ports: RunPorts, cursor: Cursor | None, override: Override | None) -> Question:
    """Return all facts that decide the start, and write nothing."""
    facts = _settled_facts(ports, cursor)
    set_reading, reused_gtid = _compare_gtids(ports, cursor, facts)
    return Question(
        source=ports.source.name,
        facts=facts,
        cursor=cursor,
        anchor_reading=read_anchor_of(ports, cursor, facts),
        configured_start=ports.source.start_at(facts),
        policies=ports.source.start_policies,
        override=override,
        chosen_place=_place_of_override(ports, override, facts) if override else None,
        set_reading=set_reading,
        reused_gtid=reused_gtid,
        load_watermark=_lowest_load_watermark(ports, facts) if cursor is None else None,
        unpruned_batches=_batches_before_divergence(ports, cursor, facts),
    )


def _batches_before_divergence(
    ports: RunPorts, cursor: Cursor | None, facts: ServerFacts
) -> Sequence[Batch]:
    """Return the batches up to the cursor, oldest first, without those that the ledger
    has pruned. They are only looked up if another server answers, and it lacks
    transactions that were read; otherwise return none."""
    if cursor is None or facts.server_uuid == cursor.position.server_uuid:
        return ()
    if GtidSet.parse(facts.gtid_executed).contains(cursor.position.gtid_set):
        return ()
    source = ports.source.name
    return ports.ledger.live_batches(source, ports.ledger.pruned_through(source), cursor.batch)


def _lowest_load_watermark(ports: RunPorts, facts: ServerFacts) -> Coordinates | None:
    """Return the lowest watermark of the open loads that read rows from this server;
    None if its file is younger than the load, because the server's log was reset."""
    loads = [
        (load.basis.low, load.ordered_at)
        for load in ports.ledger.open_loads(ports.source.name)
        if load.basis is not None and load.basis.server_uuid == facts.server_uuid
    ]
    if not loads:
        return None
    low, ordered_at = min(loads)
    ordered_at += facts.read_at - ports.ledger.clock()  # by the server's clock
    if facts.lists(low.file) and read_file_head(ports.server, low.file).created > ordered_at:
        return None
    return low


def _settled_facts(ports: RunPorts, cursor: Cursor | None) -> ServerFacts:
    """Return the server's facts. Read them again while gtid_executed lacks transactions
    that were read from its log: the server adds a transaction to it after logging
    it. A log that ends before the cursor lacks them for good."""
    for _ in GTID_EXECUTED.tries(ports.pause):
        facts = ports.server.facts()
        if cursor is None or facts.server_uuid != cursor.position.server_uuid:
            break
        at, head = cursor.position.at, facts.head
        if head.file.base != at.file.base or head < at:
            break
        if GtidSet.parse(facts.gtid_executed).contains(cursor.position.gtid_set):
            break
    return facts


def _place_of_override(
    ports: RunPorts, override: Override, facts: ServerFacts
) -> ChosenPlace | LockstepError:
    try:
        return resolve_start(ports, parse_place(override.place), facts)
    except LockstepError as error:
        if error.recovery is Recovery.RETRY:
            raise
        return error


def _place_start(ports: RunPorts, question: Question, decision: Start) -> RunStart:
    """Return the start after finding its place in the server's log."""
    facts, cursor = question.facts, question.cursor
    if decision.continued_batch is not None and cursor is not None:  # where that batch ended
        # Transactions without a GTID may have been read, which the set does not tell.
        by_gtid = question.has_gtid_mode_on and not cursor.was_by_gtid
        return RunStart(decision, cursor.position, cursor.anchor, facts, by_gtid=by_gtid)
    place = find_place(ports, decision.where, facts)
    start = Position(place.at, place.gtid_set, facts.server_uuid)
    if cursor is not None and decision.previous_batch is not None:
        start = replace(start, committed_at=cursor.position.committed_at)
    run_start = RunStart(decision, start, place.anchor, facts, by_gtid=question.has_gtid_mode_on)
    if place.leave_out:
        known_until = end_of_transactions_to_leave_out(ports, place, facts)
        run_start = replace(run_start, leave_out=place.leave_out, known_until=known_until)
    if decision.continuity is not Continuity.CONTIGUOUS:
        run_start = replace(run_start, prepared_xids=ports.server.prepared())
    return run_start


def _compare_gtids(
    ports: RunPorts, cursor: Cursor | None, facts: ServerFacts
) -> tuple[SetReading, str]:
    """Return whether the server executed the same transactions under the GTIDs of the
    cursor, and if not, a GTID that it used for another transaction. They are only
    compared if the GTID set alone says where to continue."""
    if cursor is None or not cursor.by_gtid or facts.gtid_mode != "ON":
        return SetReading.NOT_COMPARED, ""
    place, read_gtids = cursor.position.at, cursor.position.gtid_set
    same_server = facts.server_uuid == cursor.position.server_uuid
    if same_server and facts.lists(place.file):
        return SetReading.NOT_COMPARED, ""
    if same_server and facts.server_process is not None:
        # A process without a RESET still has all that was read from it.
        [batch] = ports.ledger.live_batches(ports.source.name, cursor.batch, cursor.batch)
        if facts.server_process.is_same_process(batch.server_process):
            return SetReading.SAME, ""
    executed_gtids = GtidSet.parse(facts.gtid_executed)
    shared_anchors = [
        anchor
        for anchor in ports.ledger.set_anchors(ports.source.name, cursor.batch)
        if (gtid := GtidSet.parse(anchor.gtid))
        and read_gtids.contains(gtid)
        and executed_gtids.contains(gtid)
    ]
    gtids = [anchor.gtid for anchor in shared_anchors]
    return compare_set(shared_anchors, find_anchors(ports.server, facts.binlogs, facts.head, gtids))


def tables_in_gap(ports: RunPorts, decision: Start) -> tuple[str, ...]:
    """Return the captured tables that may have changes in the part of the log that the
    decision skips, sorted: tables of the ledger, and of the server, where the skipped
    part may have created some. Return the patterns if there is no such table, and
    nothing if no log is skipped."""
    if decision.continuity is not Continuity.GAP:
        return ()
    source, patterns = ports.source.name, ports.source.patterns
    tables = set(ports.server.engines())
    tables |= {schema.table for schema in ports.ledger.schemas_at(source)}
    tables |= {
        table
        for table, state in ports.ledger.table_states(source).items()
        if state.condition is not TableCondition.DROPPED
    }
    return (
        tuple(sorted(str(table) for table in tables if patterns.matches(table))) or patterns.include
    )
