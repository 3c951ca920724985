"""Makes the lake agree with a ledger (the Postgres database with positions) that
continues as it is, although the lake is ahead of it, behind it, or missing.

Nothing in the lake is trusted. Changelogs (the tables with all changes) are made to
list what the ledger acknowledged and no more. Folders that the ledger does not know are
moved to `_before`. The next run reads the log from the ledger's position on, and
re-reads from MySQL the tables whose mirrors (the tables with the current rows) differ.

The lake may have batches and writes of another history: another ledger made them, or
this one before it was restored. The next batch and write get higher numbers than any of
these, so that no file or transaction is mistaken for one of this ledger.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from lockstep.pipeline.mirror.layout import application_id
from lockstep.pipeline.model.batch import BatchState
from lockstep.pipeline.model.claim import BatchSpan, Claim
from lockstep.pipeline.model.life import LakeRestarted
from lockstep.pipeline.model.table_state import StoppedTable, TableCondition
from lockstep.pipeline.ports.changelog import Restatement
from lockstep.pipeline.run.agreement.changelog_files import (
    ChangelogTable,
    all_changelogs,
    recorded_files_by_batch,
)
from lockstep.pipeline.run.agreement.claim import (
    claim_folder,
    claim_of,
    contradicted_spans,
    lake_error,
)
from lockstep.pipeline.run.agreement.lake_logs import disagreeing_tables
from lockstep.pipeline.run.commit_metadata import restatement_metadata
from lockstep.pipeline.run.context import RunPorts
from lockstep.pipeline.run.mirror_folders import unused_folders
from lockstep.pipeline.run.recovery.recovered_structures import transaction_numbers
from lockstep.pipeline.run.repair import damaged_files_of
from lockstep.pipeline.run.stop_errors import reread_error
from lockstep.pipeline.values.decisions import Lease
from lockstep.pipeline.values.segment import SegmentFile, batch_of
from lockstep.pipeline.values.table import TableName

_WRITE_NUMBER_MARGIN: Final = 1_000_000
"""Added to the last known write number if the numbers of the other history are unknown,
because the mirror's log is missing."""


@dataclass(frozen=True, slots=True)
class LakeDisagreement:
    """A disagreement between ledger and lake, as a sentence. `reloads`: the tables that
    are re-read from MySQL if the ledger continues as it is, with the reasons."""

    sentence: str
    reloads: tuple[tuple[TableName, str], ...]


def lake_disagreement(ports: RunPorts) -> LakeDisagreement | None:
    """Return how the ledger and the lake disagree, or None; nothing is written."""
    reloads = tuple((_reloads_of_disagreeing_tables(ports) | _reloads_of_lost_files(ports)).items())
    error = lake_error(ports)
    revision = ports.ledger.revisions(ports.source.name).open
    if error is not None:
        return LakeDisagreement(error.message, reloads)
    if revision is not None:
        sentence = f"revision {revision.id} of an interrupted replay is in some changelogs only"
        return LakeDisagreement(sentence, reloads)
    if not reloads:
        return None
    table, reason = reloads[0]
    return LakeDisagreement(f"{table}: {reason}", reloads)


def _reloads_of_disagreeing_tables(ports: RunPorts) -> dict[TableName, str]:
    source = ports.source.name
    pending = ports.ledger.pending_batches(source)
    states = ports.ledger.table_states(source)
    return {
        disagreeing.table: disagreeing.reason
        for disagreeing in disagreeing_tables(ports)
        if states[disagreeing.table].condition is not TableCondition.DROPPED
        or disagreeing.table in pending
    }


def move_away(ports: RunPorts, folder: str) -> str:
    """Move a folder to `_before`, and return its new place relative to the lake."""
    return ports.claims.move_away(folder, f"{ports.clock():%Y%m%dT%H%M%SZ}")


@dataclass(frozen=True, slots=True)
class LakeChanges:
    """The changes to the lake of a ledger that continues as it is. `restatements`: the
    changed changelogs by folder; `unknown_folders`: folders that the ledger does not
    know, which move to `_before`; `moved_folders`: the new places of folders that were
    moved away, relative to the lake."""

    restatements: tuple[tuple[str, Restatement], ...] = ()
    unknown_folders: tuple[str, ...] = ()
    moved_folders: tuple[str, ...] = ()


def plan_lake_changes(ports: RunPorts, reloads: Iterable[tuple[TableName, str]]) -> LakeChanges:
    """Return what `keep_ledger` would change in the lake; nothing is written."""
    source = ports.source.name
    cursor = ports.ledger.cursors(source).captured
    highest, _ = _highest_numbers(ports)
    assert cursor is not None, "this ledger holds the source"
    reread = {table for table, _ in reloads}
    pending = ports.ledger.pending_batches(source)
    # `keep_ledger` marks a batch as merged if only tables to re-read still need it.
    waiting_batches = {
        batch for table, batches in pending.items() if table not in reread for batch in batches
    }
    unmerged_batches = _unmerged_batches(ports) & waiting_batches
    void_spans = _claim_with_void(ports, cursor.batch, highest).void
    restatements = {
        (folder := listing.changelog.folder): Restatement.between(
            ports.changelog.listed_files(folder),
            listing.files,
            partial(ports.segments.damage_sentences, folder),
        )
        for listing in _listings(ports, unmerged_batches, void_spans)
    }
    return LakeChanges(_without_empty(restatements), _unknown_folders(ports))


def keep_ledger(
    ports: RunPorts, lease: Lease, reloads: Iterable[tuple[TableName, str]]
) -> LakeChanges:
    """Make the lake agree with the ledger. Return what changed in it. `reloads`: the
    tables to re-read, with the reasons."""
    source = ports.source.name
    highest = _skip_used_numbers(ports, lease)
    captured_cursor = ports.ledger.cursors(source).captured
    assert captured_cursor is not None, "this ledger holds the source"
    ports.ledger.require_held(lease)
    ports.claims.write(_claim_with_void(ports, captured_cursor.batch, highest))
    if (revision := ports.ledger.revisions(source).open) is not None:
        # Changelogs are restated with the files from before the revision.
        ports.ledger.end_revision(lease, revision, settled=False)
    states = ports.ledger.table_states(source)
    for table, reason in reloads:
        error = reread_error(reason)
        ports.ledger.quarantine(
            lease, StoppedTable.of(table, error, str(captured_cursor.position.at))
        )
        ports.ledger.record_event(lease, table, LakeRestarted())
        mirror = states[table].mirror
        ports.ledger.note_examined_versions(lease, {mirror: ports.mirrors.version(mirror)})
    # Batches that only the quarantined tables still needed are merged by now.
    ports.ledger.mark_merged(lease)
    unknown_folders = _unknown_folders(ports)
    moved_folders = tuple(move_away(ports, folder) for folder in unknown_folders)
    restatements = _restate_changelogs(ports, lease)
    claim_folder(ports)
    return LakeChanges(restatements, unknown_folders, moved_folders)


def _unknown_folders(ports: RunPorts) -> tuple[str, ...]:
    """Return the folders of tables in the lake that the ledger does not know."""
    source = ports.source.name
    known_folders = {changelog.folder for changelog in all_changelogs(ports)} | {
        state.mirror for state in ports.ledger.table_states(source).values()
    }
    examined_versions = ports.ledger.examined_versions(source)
    known_folders |= {
        folder
        for folder in unused_folders(ports.ledger, source)
        if ports.mirrors.version(folder) == examined_versions[folder]
    }
    return tuple(
        folder for folder in ports.claims.table_folders(source) if folder not in known_folders
    )


def _reloads_of_lost_files(ports: RunPorts) -> dict[TableName, str]:
    """Return the tables whose captured changes were lost before their merge, with the
    reason."""
    reasons: dict[TableName, str] = {}
    pending = ports.ledger.pending_batches(ports.source.name)
    for file in damaged_files_of(ports):
        tables = [table for table, batch_ids in pending.items() if file.batch.id in batch_ids]
        reasons |= dict.fromkeys(tables, f"captured changes of it are lost: {file.sentence}")
    return reasons


def _claim_with_void(ports: RunPorts, newest: int, highest: int) -> Claim:
    """Return the folder's claim, in which the batches after `newest` (the ledger's
    newest one) up to `highest` are void. It is written before any table is changed.
    Batches that the ledger has are no longer void, even if another ledger had declared
    them so."""
    claim = claim_of(ports, ports.ledger.identity())
    contradicted = contradicted_spans(ports, claim)
    void_spans = tuple(span for span in claim.void if span not in contradicted)
    return replace(claim, void=void_spans).reset_to(newest, highest)


def _skip_used_numbers(ports: RunPorts, lease: Lease) -> int:
    """Give the ledger's next batch and next write higher numbers than any that a commit
    or file in the lake may have. Return the highest batch number in the lake."""
    batch, write_number = _highest_numbers(ports)
    ports.ledger.skip_numbers(lease, batch=batch, txn_version=write_number)
    return batch


def _highest_numbers(ports: RunPorts) -> tuple[int, int]:
    """Return the highest number of a batch and of a write in the lake. If a number
    cannot be known, return one that is certainly not lower."""
    source = ports.source.name
    claim = claim_of(ports, ports.ledger.identity())
    batch_ids = [claim.batch or 0, *(span.through for span in claim.void)]
    write_numbers = [0]
    examined_versions = ports.ledger.examined_versions(source)
    for state in ports.ledger.table_states(source).values():
        log = ports.mirrors.log_since(state.mirror, examined_versions.get(state.mirror, -1))
        if log.missing_version is not None:
            app_id = application_id(source, state, "mirror")
            write_numbers.append(
                ports.ledger.newest_writes(source, [app_id])[app_id].last_txn_version
                + _WRITE_NUMBER_MARGIN
            )
        write_numbers += transaction_numbers(log.commits)
        for commit in log.commits:
            batches = (commit.metadata or {}).get("batches", [])
            batch_ids += [batch for batch in batches if isinstance(batch, int)]
    for changelog in all_changelogs(ports):
        batch_ids.append(ports.changelog.newest_batch(changelog.folder, changelog.app_id) or 0)
    return max(batch_ids), max(write_numbers)


@dataclass(frozen=True, slots=True)
class _Listing:
    """The files that a changelog must list. `newest_batch`: the newest merged batch
    that this ledger recorded of it, even if its files were deleted since; 0 for
    none."""

    changelog: ChangelogTable
    newest_batch: int
    files: tuple[SegmentFile, ...]


def _unmerged_batches(ports: RunPorts) -> set[int]:
    unfinished = ports.ledger.unfinished_batches(ports.source.name)
    return {batch.id for batch in unfinished if batch.state is not BatchState.MERGED}


def _listings(
    ports: RunPorts, unmerged_batches: Collection[int], void_spans: Collection[BatchSpan]
) -> Iterator[_Listing]:
    """Yield for each changelog the files that it must list, without those of the
    batches in `unmerged_batches`: the next run publishes these. A ledger that was made from
    the lake has no record of the files of older batches. The changelog keeps them,
    unless the batch is void or its changes were deleted on purpose."""
    ledger, source = ports.ledger, ports.source.name
    adopted_spans = ledger.inherited_batches(source)
    for changelog in all_changelogs(ports):
        table = changelog.table if isinstance(changelog.table, TableName) else None
        deleted_through = ledger.deletion_notes(source, table).last_batch
        recorded_files = recorded_files_by_batch(ports, changelog).items()
        merged_files = {
            batch_id: files
            for batch_id, files in recorded_files
            if batch_id not in unmerged_batches
        }
        files = [
            file
            for batch_id, batch_files in merged_files.items()
            if batch_id > deleted_through
            for file in batch_files
        ]
        for file, size in (ports.changelog.listed_files(changelog.folder) or {}).items():
            batch = batch_of(file)
            if (
                batch is not None
                and batch > deleted_through
                and any(batch in span for span in adopted_spans)
                and not any(batch in span for span in void_spans)
            ):
                files.append(SegmentFile(file, size=size))
        yield _Listing(changelog, max(merged_files, default=0), tuple(files))


def _restate_changelogs(ports: RunPorts, lease: Lease) -> tuple[tuple[str, Restatement], ...]:
    """Make each changelog list what the ledger acknowledged."""
    ledger = ports.ledger
    restatements = dict[str, Restatement]()
    void_spans = claim_of(ports, ledger.identity()).void
    for listing in _listings(ports, _unmerged_batches(ports), void_spans):
        changelog = listing.changelog
        restatements[changelog.folder] = ports.changelog.restate(
            changelog.folder,
            app_id=changelog.app_id,
            batch=listing.newest_batch,
            files=listing.files,
            user_metadata=restatement_metadata(ports, changelog.table, listing.newest_batch),
            require_held=lambda: ledger.require_held(lease),
        )
    ledger.note_examined_versions(
        lease, {folder: restated.delta_version for folder, restated in restatements.items()}
    )
    return _without_empty(restatements)


def _without_empty(restatements: Mapping[str, Restatement]) -> tuple[tuple[str, Restatement], ...]:
    return tuple(item for item in restatements.items() if not item[1].is_empty)
