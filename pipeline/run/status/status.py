"""Gathers the facts about the state of a source, from the ledger, and from the server
if it answers. `pipeline.status` judges them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from typing import Final

from lockstep.pipeline.binlog.search.log_scan import read_file_head
from lockstep.pipeline.check import invisible_tables
from lockstep.pipeline.model.batch import Batch
from lockstep.pipeline.model.gaps import Gap
from lockstep.pipeline.model.table_state import StoppedTable
from lockstep.pipeline.ports.ledger import Ledger, attempts_of, live_lease, unproven_structures
from lockstep.pipeline.ports.source import ServerFacts, SourceServer
from lockstep.pipeline.proof.proven import ComparisonRecord
from lockstep.pipeline.run.agreement.claim import claim_error
from lockstep.pipeline.run.agreement.lake_logs import (
    changed_changelogs,
    changelogs_with_moved_rows,
    tables_to_quarantine,
    unrecorded_commit_error,
)
from lockstep.pipeline.run.begin import gather_facts
from lockstep.pipeline.run.context import RunPorts
from lockstep.pipeline.run.dump.table_extents import partial_tables
from lockstep.pipeline.run.left_out import states_of_next_run
from lockstep.pipeline.run.mirror_folders import former_folders, unused_folders
from lockstep.pipeline.run.stop_errors import stopped_tables
from lockstep.pipeline.start.question import Refusal, Start
from lockstep.pipeline.start.rules import decide_start
from lockstep.pipeline.status.facts import (
    Headroom,
    Lag,
    Standing,
    WaitingBatch,
    failures,
    headroom,
    is_other_log,
    lag,
    log_end_reached_at,
    overlaps,
)
from lockstep.pipeline.status.tables import TableStanding, table_standings
from lockstep.pipeline.values.decisions import Attempt
from lockstep.pipeline.values.errors import LockstepError
from lockstep.pipeline.values.position import LogFile, Position
from lockstep.pipeline.values.table import TableName, TablePatterns

_BATCHES: Final = 1_000
"""Number of newest batches that are examined."""


def standings_of(
    ledger: Ledger, source: str, patterns: TablePatterns
) -> dict[TableName, TableStanding]:
    """Return the state of each captured table as people see it, from the ledger."""
    return table_standings(
        states_of_next_run(ledger, source, patterns),
        patterns,
        extents=ledger.partial_tables(source),
        loads=[load.progress for load in ledger.open_loads(source)],
        gaps=ledger.gaps(source),
        proofs=ledger.proofs(source),
        uncleared_values=ledger.uncleared_values(source),
    )


def standing_of(
    source: str,
    patterns: TablePatterns,
    ledger: Ledger,
    ports: RunPorts | LockstepError,
    now: datetime,
) -> Standing:
    """Return the state of a source, even if its server does not answer. Nothing is
    written. `patterns`: the tables to capture; tables that no pattern matches any more
    are left out. `ports`: the ports, or the error that prevented their set-up."""
    cursors = ledger.cursors(source)
    acknowledged, captured = cursors.acknowledged, cursors.captured
    override = ledger.open_override(source)
    attempts = attempts_of(ledger, source)
    batches = ledger.batches(source, limit=_BATCHES)
    unfinished = ledger.unfinished_batches(source)
    pending = ledger.pending_batches(source)
    states = states_of_next_run(ledger, source, patterns)
    position = acknowledged.position if acknowledged else None
    needed_position = position or (captured.position if captured else None)
    facts: ServerFacts | None = None
    server_error: LockstepError | None = None
    start: Start | Refusal | None = None
    room: Headroom | None = None
    invisible: tuple[StoppedTable, ...] = ()
    try:
        if isinstance(ports, LockstepError):
            raise ports
        facts = ports.server.facts()
        room = _headroom(ports.server, facts, needed_position) if needed_position else None
        if override is None:
            start = decide_start(gather_facts(ports, captured, None))
        if states:
            visible_tables = ports.server.engines()
            invisible = invisible_tables(ports.server, patterns, states, visible_tables)
    except LockstepError as error:
        server_error = error
    lake_error: LockstepError | None = None
    upcoming: Iterable[StoppedTable] = ()
    rewritten: Iterable[StoppedTable] = ()
    if isinstance(ports, RunPorts):
        changelogs = changed_changelogs(ports)
        lake_error = claim_error(ports) or unrecorded_commit_error(ports, changelogs)
        upcoming = tables_to_quarantine(ports, changelogs)
        rewritten = changelogs_with_moved_rows(ports, changelogs)
    return Standing(
        source=source,
        captured=captured,
        acknowledged=acknowledged,
        lineage=ledger.server_periods(source),
        facts=facts,
        server_error=server_error,
        start=start,
        lag=Lag()
        if is_other_log(start)
        else lag(facts, position, now, _log_end_known_at(attempts, batches, position)),
        headroom=None if is_other_log(start) else room,
        waiting_batches=tuple(
            WaitingBatch(
                batch, tuple(table for table, batch_ids in pending.items() if batch.id in batch_ids)
            )
            for batch in unfinished
        ),
        failures=failures(attempts, batches, has_waiting_batches=bool(unfinished)),
        lease=live_lease(ledger, source),
        override=override,
        gaps=captured_gaps(ledger, source, patterns, states),
        overlaps=overlaps(batches),
        stopped_tables=stopped_tables(states, patterns.matches),
        tables_to_resume=frozenset(
            filter(patterns.matches, (order.table for order in ledger.open_orders(source)))
        ),
        extents=partial_tables(ledger, source, patterns),
        batches=tuple(batches),
        lake_error=lake_error,
        loads=tuple(
            load.progress for load in ledger.open_loads(source) if patterns.matches(load.table)
        ),
        upcoming_quarantines=tuple(table for table in upcoming if patterns.matches(table.table)),
        rewritten_changelogs=tuple(table for table in rewritten if patterns.matches(table.table)),
        invisible_tables=invisible,
        proofs=captured_proofs(ledger, source, patterns),
        unproven=unproven_structures(ledger, source),
        uncleared_values=tuple(ledger.uncleared_values(source)),
        former_folders=tuple(
            unused_folders(ledger, source)
            if isinstance(ports, LockstepError)
            else former_folders(ports)
        ),
    )


def log_state(ports: RunPorts, now: datetime) -> tuple[ServerFacts | None, Lag, Headroom | None]:
    """Return the server's facts, the lake's lag, and how long the server still keeps
    the log after the acknowledged position. The first and the last are None if the
    server does not answer or nothing was acknowledged."""
    source, ledger = ports.source.name, ports.ledger
    cursor = ledger.cursors(source).acknowledged
    if cursor is None:
        return None, Lag(), None
    facts: ServerFacts | None = None
    room: Headroom | None = None
    with suppress(LockstepError):
        facts = ports.server.facts()
        room = _headroom(ports.server, facts, cursor.position)
    attempts = attempts_of(ledger, source)
    since = _log_end_known_at(attempts, ledger.batches(source, limit=1), cursor.position)
    return facts, lag(facts, cursor.position, now, since), room


def captured_gaps(
    ledger: Ledger, source: str, patterns: TablePatterns, known_tables: Collection[TableName]
) -> tuple[Gap, ...]:
    """Return the gaps of the source, without those of the known tables that its
    patterns do not match any more. `known_tables`: those that have a state in the
    ledger."""
    left_out = {str(table) for table in known_tables if not patterns.matches(table)}
    return tuple(
        replace(gap, tables=tuple(table for table in gap.tables if table not in left_out))
        for gap in ledger.gaps(source)
    )


def captured_proofs(
    ledger: Ledger, source: str, patterns: TablePatterns
) -> tuple[ComparisonRecord, ...]:
    """Return the results of comparisons, without those of tables that the source's
    patterns do not match any more."""
    return tuple(proof for proof in ledger.proofs(source) if patterns.matches(proof.table))


def _log_end_known_at(
    attempts: Sequence[Attempt], batches: Sequence[Batch], position: Position | None
) -> datetime | None:
    """Return the last moment at which the position is known to have been the log's end.
    It is the moment when a run found nothing after the position. If the position is the
    source's start, before any captured commit, it is the creation of the batch that
    ends there."""
    reached_at = log_end_reached_at(attempts, position)
    if reached_at is not None or position is None or position.committed_at is not None:
        return reached_at
    return next((batch.created_at for batch in batches if batch.end == position), None)


def _headroom(server: SourceServer, facts: ServerFacts, position: Position) -> Headroom | None:
    """Return how long the server still keeps the log after the position; None if
    another server answers. At most two log files are read, and only their first
    events."""
    files = [log.file for log in facts.binlogs]
    if facts.server_uuid != position.server_uuid or not files:
        return None
    following: LogFile | None = None
    if position.at.file in files[:-1]:
        following = files[files.index(position.at.file) + 1]
    oldest_file_at = read_file_head(server, files[0]).created
    next_file_at = read_file_head(server, following).created if following is not None else None
    return headroom(facts, position, next_file_at=next_file_at, oldest_file_at=oldest_file_at)
