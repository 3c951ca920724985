"""Repair: each capture begins by cleaning up after a dead run. It also abandons
captured batches if an operator chose another start.

A batch with damaged files is abandoned and captured again, as long as no table in the
lake shows changes of it. If a table does, a second capture would apply these changes
twice, so only the tables with damaged files are quarantined.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from lockstep.pipeline.mirror.layout import snapshot_path
from lockstep.pipeline.model.batch import Batch, BatchContent, BatchState, Cursor
from lockstep.pipeline.model.claim import recovery_hint
from lockstep.pipeline.model.table_state import StoppedTable
from lockstep.pipeline.ports.ledger import batch_content, captured_batches
from lockstep.pipeline.run.abandon import abandon, discard
from lockstep.pipeline.run.acknowledge import (
    remove_dropped_mirrors,
    remove_unneeded_files,
)
from lockstep.pipeline.run.agreement.changelog_files import (
    ChangelogTable,
    changelog_table,
    system_table,
)
from lockstep.pipeline.run.begin import StartProposal, foresee_start
from lockstep.pipeline.run.context import RunPorts
from lockstep.pipeline.run.publish import lost_files_error
from lockstep.pipeline.run.replay.settle import settle_replays
from lockstep.pipeline.values.decisions import Lease, Override
from lockstep.pipeline.values.errors import SegmentsLost
from lockstep.pipeline.values.segment import SegmentFile, SystemTable
from lockstep.pipeline.values.table import TableName

_SWEPT_BATCHES = 10
"""Number of newest batches among which abandoned batches are searched for remaining
files."""


@dataclass(frozen=True, slots=True)
class Abandonment:
    """A batch that has to be abandoned, and the reason."""

    batch: Batch
    reason: str


@dataclass(frozen=True, slots=True)
class DamagedFile:
    """A captured file that is missing, or differs from its record in the ledger.
    `table`: None if the file has rows of a prepared XA transaction. `sentence`: says
    what is damaged."""

    batch: Batch
    table: TableName | SystemTable | None
    sentence: str


def repair(ports: RunPorts, lease: Lease) -> tuple[str, ...]:
    """Clean up after a dead run: abandon the batches whose capture did not finish, and
    the batches that `batches_to_abandon` names besides. Return a sentence for each
    repair."""
    source = ports.source.name
    replay_notes = settle_replays(ports, lease)
    if all(
        batch.state is not BatchState.MERGED for batch in ports.ledger.unfinished_batches(source)
    ):
        # If a batch is merged and not acknowledged, its acknowledgement deletes dropped
        # mirrors.
        remove_dropped_mirrors(ports, lease)
    acknowledged = ports.ledger.cursors(source).acknowledged
    if acknowledged is not None:
        # Only the newest acknowledged batch can have files left, because the files of
        # each batch are deleted before the next one is acknowledged.
        remove_unneeded_files(ports, batch_content(ports.ledger, source, acknowledged.batch))
    for batch in ports.ledger.batches(source, limit=_SWEPT_BATCHES):
        # A process that hung may have written files after its batch was abandoned.
        if batch.state is BatchState.ABANDONED:
            discard(ports, batch)
    override = ports.ledger.open_override(source)
    damaged_files = damaged_files_of(ports)
    abandonments = list(batches_to_abandon(ports, override, damaged_files))
    abandoned_ids = {abandonment.batch.id for abandonment in abandonments}
    notes = [
        abandon(ports, lease, abandonment.batch, abandonment.reason) for abandonment in abandonments
    ]
    if abandonments:
        ports.segments.abort_uploads(source)
    for file in damaged_files:
        if file.batch.id not in abandoned_ids:
            notes += _quarantine_damaged(ports, lease, file)
    notes = [*replay_notes, *notes]
    for note in notes:
        ports.progress.note(note)
    return tuple(notes)


def batches_to_abandon(
    ports: RunPorts, override: Override | None, damaged_files: Sequence[DamagedFile] | None = None
) -> Iterator[Abandonment]:
    """Yield the batches that `repair` abandons, in its order, and write nothing.
    `override`: a start that an operator chose for the next run. `damaged_files`: the
    result of `damaged_files_of`, if the caller has it."""
    source = ports.source.name
    unfinished = ports.ledger.unfinished_batches(source)
    for batch in unfinished:
        if batch.state is BatchState.CAPTURING:
            yield Abandonment(batch, "its capture did not finish")
    if damaged_files is None:
        damaged_files = damaged_files_of(ports)
    batches = captured_batches(ports.ledger, source)
    if damaged_files:
        yield from _batches_to_capture_again(ports, batches, damaged_files)
    elif not any(batch.state is BatchState.MERGED for batch in unfinished):
        yield from _captured_before_override(ports, batches, override)


def _batches_to_capture_again(
    ports: RunPorts, captured: list[Batch], damaged_files: Sequence[DamagedFile]
) -> Iterator[Abandonment]:
    """Yield all captured batches from the first damaged one on, unless a table shows
    changes of them. If one does, and rows of a prepared XA transaction are damaged,
    raise `SegmentsLost`: these rows belong to no table yet that could be
    quarantined."""
    first_file = damaged_files[0]
    batches = [batch for batch in captured if batch.id >= first_file.batch.id]
    tables = [table for batch in batches for table in _tables_showing(ports, batch)]
    if not tables:
        yield from (Abandonment(batch, first_file.sentence) for batch in reversed(batches))
        return
    for file in damaged_files:
        if file.table is None:
            raise SegmentsLost(
                f"rows that batch {file.batch.id} keeps for a prepared transaction are damaged "
                f"({file.sentence}), and {tables[0]} already shows part of what was read since",
                hint=recovery_hint(ports.source.name),
            )


def _captured_before_override(
    ports: RunPorts, captured: list[Batch], override: Override | None
) -> Iterator[Abandonment]:
    """Yield all captured batches if an operator chose another start, nothing was ever
    acknowledged, and no table shows changes of them."""
    if override is None or ports.ledger.cursors(ports.source.name).acknowledged is not None:
        return
    if any(_tables_showing(ports, batch) for batch in captured):
        return
    reason = f"{override.author} chose another start ({override.place})"
    yield from (Abandonment(batch, reason) for batch in reversed(captured))


def cursor_after(ports: RunPorts, abandonments: Sequence[Abandonment]) -> Cursor | None:
    """Return the captured cursor as it will be once these batches are abandoned."""
    cursors = ports.ledger.cursors(ports.source.name)
    captured, acknowledged = cursors.captured, cursors.acknowledged
    abandoned_ids = {abandonment.batch.id for abandonment in abandonments}
    if captured is None or captured.batch not in abandoned_ids:
        return captured
    first = 0 if acknowledged is None else acknowledged.batch + 1
    live_batches = ports.ledger.live_batches(ports.source.name, first)
    batches = [batch for batch in live_batches if batch.id not in abandoned_ids]
    if not batches:
        return acknowledged
    # All batches whose capture has not finished are abandoned.
    cursor = batches[-1].captured_cursor
    by_gtid = cursor.by_gtid and captured.by_gtid
    return replace(cursor, by_gtid=by_gtid, was_by_gtid=captured.was_by_gtid)


def foresee_next_start(ports: RunPorts) -> StartProposal:
    """Return the start of the next run, after the batches that it abandons; nothing is
    written."""
    override = ports.ledger.open_override(ports.source.name)
    abandonments = list(batches_to_abandon(ports, override))
    return foresee_start(ports, cursor_after(ports, abandonments), override)


def _quarantine_damaged(ports: RunPorts, lease: Lease, file: DamagedFile) -> list[str]:
    """Quarantine the table with a damaged file, and return a sentence about it. Return
    no sentence if the table is already stopped, or if the file is of a system table
    (`_transactions`, `_ddl`): `publish` reports that."""
    table, batch = file.table, file.batch
    if not isinstance(table, TableName):
        return []
    if ports.ledger.table_states(batch.source)[table].has_stopped:
        return []
    stopped = StoppedTable.of(
        table, lost_files_error(batch, table, file.sentence), f"batch {batch.id}"
    )
    ports.ledger.quarantine(lease, stopped)
    return [f"{table} was quarantined: {stopped.reason}"]


def damaged_files_of(ports: RunPorts) -> list[DamagedFile]:
    """Return the damaged files of batches that are captured and not merged, oldest
    first."""
    batches = captured_batches(ports.ledger, ports.source.name)
    return [file for batch in batches for file in _damaged_files_in(ports, batch)]


def _damaged_files_in(ports: RunPorts, batch: Batch) -> Iterator[DamagedFile]:
    content = batch_content(ports.ledger, batch.source, batch.id)
    for changelog, files in _changelog_files(ports, content):
        for sentence in ports.segments.damage_sentences(changelog.folder, files):
            yield DamagedFile(batch, changelog.table, sentence)
    for snapshot in content.snapshots:
        folder = snapshot_path(batch.source, snapshot.table)
        for sentence in ports.segments.damage_sentences(folder, snapshot.files):
            yield DamagedFile(batch, snapshot.table, sentence)
    for prepared in ports.ledger.open_prepared(batch.source):
        if prepared.batch == batch.id and prepared.file is not None:
            try:
                ports.spool.open(batch.source, prepared.file).close()
            except SegmentsLost as error:
                yield DamagedFile(batch, None, error.message)


def _tables_showing(ports: RunPorts, batch: Batch) -> list[str]:
    """Return the tables that may show changes of the batch, because it is published or
    partly merged. A table with a recorded intent to merge the batch counts even if the
    lake, set back to an earlier time, does not show the changes: the ledger refuses to
    abandon a batch that has an intent."""
    tables = [str(intent.table) for intent in ports.ledger.intents_of_batch(batch.source, batch.id)]
    content = batch_content(ports.ledger, batch.source, batch.id)
    for changelog, _ in _changelog_files(ports, content):
        if (ports.changelog.newest_batch(changelog.folder, changelog.app_id) or 0) >= batch.id:
            tables.append(str(changelog.table))
    return tables


def _changelog_files(
    ports: RunPorts, content: BatchContent
) -> Iterator[tuple[ChangelogTable, Sequence[SegmentFile]]]:
    """Yield the changelogs and system tables of a batch, with the files that it has for
    each."""
    ledger, source = ports.ledger, ports.source.name
    states = ledger.table_states(source)
    history = ledger.schema_versions(source, *sorted(content.changed_tables))
    generations = {(version.table, version.version): version.generation for version in history}
    for segment in content.segments:
        generation = generations[segment.table, segment.schema_version]
        yield changelog_table(source, states[segment.table], generation), segment.files
    for part in content.system_segments:
        yield system_table(source, part.table), part.files
