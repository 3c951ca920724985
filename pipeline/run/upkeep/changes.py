"""Deletes changes whose retention has ended, in four steps:

1. The ledger records up to which batch (what one run captured) changes are deleted. Readers get
none of them any more.

2. The changelogs (the tables with all changes) stop listing them, in one commit each,
`_transactions` first. If the ledger is lost, a new one continues after a batch that `_transactions`
lists; all changelogs must then still list what came after it.

3. Once no Delta version of that time is promised any more, the files are deleted.

4. The ledger deletes its rows about these files, then the decisions of runs that captured nothing,
then batches to which nothing refers. Each transaction deletes a limited number.

The next upkeep continues an interrupted one. The source's lock is held only while the
ledger records something. A run that publishes meanwhile commits before or after this.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final, TypeVar

import pyarrow as pa

from lockstep.pipeline.model.lake_commit import WriteKind
from lockstep.pipeline.run.agreement.changelog_files import (
    ChangelogTable,
    changelog_table,
    correct_changelogs,
    system_table,
)
from lockstep.pipeline.run.commit_metadata import removal_metadata
from lockstep.pipeline.run.context import RunPorts
from lockstep.pipeline.upkeep.changes import (
    ChangeFile,
    ChangesPlan,
    DeletedChanges,
    DeletionStep,
    PrunableRows,
    last_deletable_batch,
)
from lockstep.pipeline.upkeep.decide import FileTotal, clock_doubt
from lockstep.pipeline.values.decisions import Lease
from lockstep.pipeline.values.errors import LockstepError, SourceBusy, TableError
from lockstep.pipeline.values.retries import UPKEEP_TURN
from lockstep.pipeline.values.segment import SegmentFile, SystemTable

Result = TypeVar("Result")

_NO_COLUMNS: Final = pa.schema([])
_BATCHES_AT_ONCE: Final = 1000
"""Number of batches, or of leases, whose rows in the ledger one transaction deletes."""
_BUSY_SENTENCE: Final = "a run has the source: the next upkeep does it"


def last_lease_at(ports: RunPorts) -> datetime | None:
    """Return when a run last held the source's lock; None if never."""
    lease = ports.ledger.newest_lease(ports.source.name)
    return None if lease is None else lease.beat_at or lease.taken_at


def under_lock(ports: RunPorts, holder: str, act: Callable[[Lease], Result]) -> Result | None:
    """Take the source's lock, call `act`, and return its result. Return None if a run
    holds the lock and does not release it soon."""
    for _ in UPKEEP_TURN.tries(ports.pause):
        with suppress(SourceBusy), ports.ledger.lock(ports.source.name, holder, None) as lease:
            return act(lease)
    return None


def plan_changes(
    ports: RunPorts, keep_changes: timedelta | None, keep_files: timedelta
) -> ChangesPlan:
    """Plan the deletion; only the ledger is read, and nothing is written.
    `keep_changes`: how long changes are kept, None for ever. `keep_files`: how long
    files are kept after changelogs stop listing them."""
    ledger, source = ports.ledger, ports.source.name
    notes = ledger.deletion_notes(source).unfinished
    if keep_changes is None and not notes:
        return ChangesPlan()
    now = ledger.clock()
    doubt = clock_doubt(ports.clock(), now, None, last_lease_at(ports), keep_changes or keep_files)
    to_unlist = _listed_notes(notes)
    to_delete = list[DeletedChanges]()
    if doubt is None:
        to_delete = [
            note
            for note in notes
            if not note.is_deleted and note.unlisted_at and note.unlisted_at < now - keep_files
        ]
    plan = ChangesPlan(
        obstacle=doubt,
        unlisted=_file_total(ports, to_unlist),
        deleted=_file_total(ports, to_delete),
        to_unlist=to_unlist,
        to_delete=to_delete,
        to_prune=[*(note for note in notes if note.is_deleted), *to_delete],
    )
    if doubt is None and keep_changes is not None and not to_unlist:
        return _with_old_changes(ports, plan, now - keep_changes)
    return plan


def _listed_notes(notes: Iterable[DeletedChanges]) -> list[DeletedChanges]:
    """Return the notes whose files are still listed by changelogs."""
    return [note for note in notes if note.unlisted_at is None]


def _with_old_changes(ports: RunPorts, plan: ChangesPlan, moment: datetime) -> ChangesPlan:
    """Extend the plan by the changes that were acknowledged before a moment."""
    ledger, source = ports.ledger, ports.source.name
    changes = ledger.deletable_changes(source, moment)
    above = ledger.deletion_notes(source).last_batch
    if changes.last_old_batch <= above:
        return plan
    through, sentence = last_deletable_batch(changes, above)
    files = [] if through is None else ledger.change_files(source, above, through)
    total = FileTotal.of([file.size for file in files])
    return replace(plan, last_batch=through, holder_sentence=sentence, unlisted=total)


def _file_total(ports: RunPorts, notes: Iterable[DeletedChanges]) -> FileTotal:
    return FileTotal.of([file.size for note in notes for file in _files(ports, note)])


def _files(ports: RunPorts, note: DeletedChanges) -> list[ChangeFile]:
    return ports.ledger.change_files(ports.source.name, note.after_batch, note.last_batch)


def delete_changes(ports: RunPorts, plan: ChangesPlan, holder: str) -> ChangesPlan:
    """Carry out the plan, and return what was done. Raise `LakeUnavailable` if the lake
    does not answer."""
    if plan.is_empty:
        return plan
    to_unlist = plan.to_unlist
    if plan.last_batch is not None:
        obstacle = _record_steps(ports, holder, begin_through=plan.last_batch)
        if obstacle is not None:
            plan = replace(plan, last_batch=None, obstacle=obstacle, unlisted=FileTotal())
        else:
            to_unlist = _listed_notes(ports.ledger.deletion_notes(ports.source.name).unfinished)
    for note in to_unlist:
        _unlist_files(ports, note)
        ports.progress.note(f"changelogs list only what was captured after {note.place}")
    for note in plan.to_delete:
        _delete_files(ports, note)
        ports.progress.note(f"files of changes up to {note.place} are deleted")
    if to_unlist or plan.to_delete:
        obstacle = _record_steps(ports, holder, unlisted=to_unlist, deleted=plan.to_delete)
        if obstacle is not None:
            return replace(plan, obstacle=obstacle)
    return replace(
        plan, ledger_rows=sum(_prune_ledger(ports, holder, note) for note in plan.to_prune)
    )


def _prune_ledger(ports: RunPorts, holder: str, note: DeletedChanges) -> int:
    """Delete the ledger's rows of a note, and return their number. If a run takes the
    source meanwhile, the next upkeep does the rest."""
    ledger = ports.ledger
    count = 0
    with suppress(SourceBusy):
        for rows in PrunableRows:
            above = note.after_batch if rows is PrunableRows.CONTENTS else 0
            is_complete = False
            while not is_complete:
                with ledger.lock(ports.source.name, holder, None) as lease:
                    result = ledger.prune(lease, rows, above, note.last_batch, _BATCHES_AT_ONCE)
                count += result.deleted_rows
                above = result.last_id
                is_complete = result.is_complete
        with ledger.lock(ports.source.name, holder, None) as lease:
            ledger.note_deletion_step(lease, DeletionStep.PRUNED, note.last_batch)
    return count


def _record_steps(
    ports: RunPorts,
    holder: str,
    *,
    begin_through: int | None = None,
    unlisted: Sequence[DeletedChanges] = (),
    deleted: Sequence[DeletedChanges] = (),
) -> str | None:
    """Record steps in the ledger and return None; or return why that is impossible.
    Before that, each changelog is made to list exactly the captured files: a foreign
    file with changes of several batches would keep old changes listed.
    `begin_through`: the last batch of a deletion that begins; `unlisted`, `deleted`:
    notes for which that step is done."""
    ledger = ports.ledger

    def record(lease: Lease) -> list[str]:
        obstacles = [
            check.reason_not_corrected
            for check in correct_changelogs(ports, lease)
            if check.reason_not_corrected is not None
        ]
        if obstacles:
            return obstacles
        if begin_through is not None:
            ledger.begin_deletion(lease, begin_through)
        for note in unlisted:
            ledger.note_deletion_step(lease, DeletionStep.UNLISTED, note.last_batch)
        for note in deleted:
            ledger.note_deletion_step(lease, DeletionStep.DELETED, note.last_batch)
        return []

    try:
        obstacles = under_lock(ports, holder, record)
    except LockstepError as error:
        # For example, a consumer registered after the plan was made, and needs these
        # changes.
        return error.message
    if obstacles is None:
        return _BUSY_SENTENCE
    return obstacles[0] if obstacles else None


def _unlist_files(ports: RunPorts, note: DeletedChanges) -> None:
    """Make changelogs stop listing the files of these batches, in one commit each."""
    for changelog, files in _by_changelog(ports, note):
        folder = changelog.folder
        listed = ports.changelog.listed_files(folder)
        if not listed or not any(file.path in listed for file in files):
            continue
        try:
            ports.changelog.revise(
                folder,
                app_id=f"{changelog.app_id}/forgotten",
                revision=note.last_batch,
                schema=_NO_COLUMNS,
                removed_paths=[file.path for file in files],
                files=(),
                user_metadata=removal_metadata(
                    ports,
                    WriteKind.FORGET,
                    changelog.table,
                    (note.after_batch + 1, note.last_batch),
                ),
            )
        except TableError as error:
            ports.progress.note(f"{folder} still lists old changes: {error.reason}")


def _delete_files(ports: RunPorts, note: DeletedChanges) -> None:
    """Delete the files of these batches. Keep files that a changelog lists again
    because it was restored from a backup."""
    for changelog, files in _by_changelog(ports, note):
        listed = ports.changelog.listed_files(changelog.folder) or {}
        unlisted = [
            SegmentFile(file.path, size=file.size) for file in files if file.path not in listed
        ]
        ports.segments.delete_files(changelog.folder, unlisted)


def _by_changelog(
    ports: RunPorts, note: DeletedChanges
) -> list[tuple[ChangelogTable, list[ChangeFile]]]:
    """Return the files by their changelog, `_transactions` first."""
    source = ports.source.name
    states = ports.ledger.table_states(source)
    files = dict[ChangelogTable, list[ChangeFile]]()
    for file in _files(ports, note):
        if isinstance(file.table, SystemTable):
            changelog = system_table(source, file.table)
        else:
            changelog = changelog_table(source, states[file.table], file.changelog_generation)
        files.setdefault(changelog, []).append(file)
    return sorted(files.items(), key=lambda item: item[0].table is not SystemTable.TRANSACTIONS)
