"""Upkeep: compact the files of a source's mirrors (the Delta tables with the current
rows), and delete files and changes that nothing needs.

No run waits for upkeep. Files of mirrors are rewritten without the source's lock, and
only while no run holds it. Each upkeep commit is based on the version that was planned.
If a run writes to the mirror meanwhile, the run's commit stays and upkeep's conflicts;
the next upkeep tries again. The lock is taken once, while the ledger records the
commits, also those of an upkeep that died (`UpkeepTarget.is_unrecorded`). Files are
deleted only after that.

Changes whose retention has ended are deleted in four steps:

1. The ledger records up to which batch (a part of the log that a run captured at once)
changes are deleted. Readers get none of them any more.

2. The changelogs (the tables with all changes) stop listing them, in one commit each,
`_transactions` first. If the ledger is lost, a new one continues after a batch that
`_transactions` lists; all changelogs must then still list what came after it.

3. Once no Delta version of that time is promised any more, the files are deleted.

4. The ledger deletes its rows about these files, then the decisions of runs that
captured nothing, then batches to which nothing refers. Each transaction deletes a
limited number.

The next upkeep continues an interrupted one. The source's lock is held only while the
ledger records something. A run that publishes meanwhile commits before or after this.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from time import perf_counter
from typing import Final, TypeVar

import pyarrow as pa

from lockstep.pipeline.model.lake_commit import WriteKind
from lockstep.pipeline.model.table_state import TableState
from lockstep.pipeline.ports.ledger import live_lease
from lockstep.pipeline.ports.mirrors import MirrorUpkeep
from lockstep.pipeline.run.agreement.changelog_files import (
    ChangelogTable,
    all_changelogs,
    changelog_table,
    correct_changelogs,
    system_table,
)
from lockstep.pipeline.run.clear import UpkeepTarget, clear, upkeep_target
from lockstep.pipeline.run.commit_metadata import removal_metadata
from lockstep.pipeline.run.context import RunPorts
from lockstep.pipeline.run.mirror_folders import former_folders, remove_former_folders
from lockstep.pipeline.upkeep.changes import (
    ChangeFile,
    ChangesPlan,
    DeletedChanges,
    DeletionStep,
    PrunableRows,
    last_deletable_batch,
)
from lockstep.pipeline.upkeep.clearing import UnclearedValues
from lockstep.pipeline.upkeep.decide import (
    FileTotal,
    MirrorFiles,
    StepKind,
    UpkeepPolicy,
    UpkeepStep,
    clock_doubt,
    decide,
)
from lockstep.pipeline.values.decisions import Lease
from lockstep.pipeline.values.errors import (
    CommitConflict,
    LakeUnavailable,
    LockstepError,
    SourceBusy,
    TableError,
)
from lockstep.pipeline.values.retries import UPKEEP_TURN
from lockstep.pipeline.values.segment import SegmentFile, SystemTable
from lockstep.pipeline.values.table import TableName

_Result = TypeVar("_Result")

_NEXT_UPKEEP: Final = "the next upkeep tries again"
_BUSY_SENTENCE: Final = "a run has the source: the next upkeep does it"
_NO_COLUMNS: Final = pa.schema([])
_BATCHES_AT_ONCE: Final = 1000
"""Number of batches, or of leases, whose rows in the ledger one transaction deletes."""


@dataclass(frozen=True, slots=True)
class CompletedStep:
    """A step that was carried out. `delta_version`: the version that it made, None
    without a commit; `deleted`: total of the files that it deleted."""

    step: UpkeepStep
    seconds: float
    delta_version: int | None = None
    deleted: FileTotal = field(default_factory=FileTotal)


@dataclass(slots=True)
class TableUpkeep:
    """The upkeep of one mirror.

    - `mirror`: its folder. `files`: of its newest version.
    - `target`: the version to which upkeep may write. If it is None,
      `reason_left_alone` says why upkeep leaves the mirror alone.
    - `obstacles`: a sentence on each step that is needed but cannot be done.
    """

    table: TableName
    mirror: str
    reason_left_alone: str | None = None
    planned_steps: tuple[UpkeepStep, ...] = ()
    obstacles: list[str] = field(default_factory=list)
    files: MirrorFiles | None = None
    target: UpkeepTarget | None = None
    completed_steps: list[CompletedStep] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class UpkeepFacts:
    """The ledger's records about the source's mirrors.

    - `busy_tables`: tables with changes that wait for their merge, or with unfinished
      writes.
    - `examined_versions`: the version of each mirror up to which its log was examined.
    - `upkeep_versions`: the newest version of each mirror that upkeep made.
    - `last_lease_at`: when a run last held the source's lock. `now`: the ledger's time.
    """

    states: Mapping[TableName, TableState]
    busy_tables: frozenset[TableName]
    examined_versions: Mapping[str, int]
    upkeep_versions: Mapping[str, int]
    last_lease_at: datetime | None
    now: datetime

    @classmethod
    def read(cls, ports: RunPorts) -> UpkeepFacts:
        ledger, source = ports.ledger, ports.source.name
        intended_tables = (intent.table for intent in ledger.open_intents(source))
        return cls(
            states=ledger.table_states(source),
            busy_tables=frozenset((*ledger.pending_batches(source), *intended_tables)),
            examined_versions=ledger.examined_versions(source),
            upkeep_versions=ledger.upkeep_versions(source),
            last_lease_at=_last_lease_at(ports),
            now=ledger.clock(),
        )


def plan_upkeep(
    ports: RunPorts,
    lake: MirrorUpkeep,
    policy: UpkeepPolicy,
    only_tables: Collection[TableName] | None = None,
) -> list[TableUpkeep]:
    """Return the plan for each table with a mirror, or for each of `only_tables`.
    Nothing is written."""
    facts = UpkeepFacts.read(ports)
    mirror_states = {
        table: state
        for table, state in facts.states.items()
        if state.mirror_schema_version is not None
    }
    return [
        _plan_table(ports, lake, policy, facts, mirror_states[table])
        if table in mirror_states
        else TableUpkeep(table, mirror="", reason_left_alone="it has no mirror in the lake")
        for table in sorted(mirror_states if only_tables is None else only_tables)
    ]


def _plan_table(
    ports: RunPorts, lake: MirrorUpkeep, policy: UpkeepPolicy, facts: UpkeepFacts, state: TableState
) -> TableUpkeep:
    try:
        target = _target(ports, facts, state)
        files = lake.files(state.mirror)
        newest = next(ports.mirrors.history(target.mirror), None)
    except TableError as error:
        return TableUpkeep(state.table, state.mirror, error.reason)
    committed_at = None if newest is None else newest.committed_at
    doubt = clock_doubt(ports.clock(), facts.now, committed_at, facts.last_lease_at, lake.keep)
    plan = decide(files, policy, doubt)
    return TableUpkeep(
        state.table,
        state.mirror,
        planned_steps=plan.steps,
        obstacles=[*plan.obstacles],
        files=files,
        target=target,
    )


def _target(ports: RunPorts, facts: UpkeepFacts, state: TableState) -> UpkeepTarget:
    """Return the mirror version to which upkeep may write now. Raise TableError if
    upkeep leaves the mirror alone."""
    if not state.is_complete:
        raise TableError(f"the table is {state.in_words}", hint=_NEXT_UPKEEP)
    if state.table in facts.busy_tables:
        raise TableError("captured changes wait for their merge", hint=_NEXT_UPKEEP)
    examined_version = facts.examined_versions.get(state.mirror)
    upkeep_version = facts.upkeep_versions.get(state.mirror, -1)
    return upkeep_target(ports, state, examined_version, upkeep_version)


@dataclass(frozen=True, slots=True)
class FormerMirror:
    """A folder that a mirror had before. `reason_kept`: None if it is deleted."""

    folder: str
    reason_kept: str | None = None


@dataclass(frozen=True, slots=True)
class UpkeepReport:
    """The outcome of an upkeep. The report of a plan has what would be done. The fields
    after `seconds` are empty if the upkeep was for some tables only.

    - `changes`: the deletion of old changes.
    - `cleared_notes`: the ledger's notes of hidden values that were cleared.
    - `checkpoints`: total of the checkpoints that were deleted.
    """

    tables: tuple[TableUpkeep, ...]
    seconds: float
    changes: ChangesPlan = field(default_factory=ChangesPlan)
    cleared_notes: tuple[UnclearedValues, ...] = ()
    checkpoints: FileTotal = field(default_factory=FileTotal)
    former_mirrors: tuple[FormerMirror, ...] = ()


def carry_out_upkeep(
    ports: RunPorts,
    lake: MirrorUpkeep,
    policy: UpkeepPolicy,
    holder: str,
    only_tables: Collection[TableName] | None = None,
) -> UpkeepReport:
    """Carry out the upkeep of all tables, or of `only_tables`. An error that concerns
    one table is reported, and the others are handled. `holder`: the name under which
    the source's lock is taken. Spark is not started if no step is planned."""
    timer_start = perf_counter()
    tables = plan_upkeep(ports, lake, policy, only_tables)
    to_record = {
        table.mirror: table.target
        for table in tables
        if table.target and table.target.is_unrecorded
    }
    if any(table.planned_steps for table in tables):
        ports.mirrors.prepare()
    for table in tables:
        newest = _commit_steps(ports, lake, table)
        if newest is not None:
            to_record[newest.mirror] = newest
    has_recorded = _record_commits(ports, holder, list(to_record.values()))
    for table in tables:
        if table.mirror in to_record and not has_recorded:
            table.obstacles.append("a run has the source: the next upkeep records the new version")
        else:
            _vacuum(ports, lake, table)
    if only_tables is not None:
        return UpkeepReport(tuple(tables), perf_counter() - timer_start)
    checkpoints = thin_logs(ports, lake, delete=True)
    changes = delete_changes(ports, plan_changes(ports, policy.keep_changes, lake.keep), holder)
    cleared = _under_lock(ports, holder, partial(clear, ports)) or ()
    former_mirrors = delete_former_folders(ports, plan_former_folders(ports, lake.keep), holder)
    seconds = perf_counter() - timer_start
    return UpkeepReport(tuple(tables), seconds, changes, cleared, checkpoints, former_mirrors)


def _commit_steps(ports: RunPorts, lake: MirrorUpkeep, table: TableUpkeep) -> UpkeepTarget | None:
    """Carry out the steps that commit. Return the mirror after the last commit; None
    without one."""
    newest: UpkeepTarget | None = None
    for step in table.planned_steps:
        if not step.kind.makes_commit:
            continue
        timer_start = perf_counter()
        try:
            _require_free(ports)
            target = newest or _target_now(ports, table)
            version = lake.carry_out(target.mirror, step, target.metadata, target.version)
        except CommitConflict:
            table.obstacles.append(f"{step.kind.value}: a run wrote to it first; {_NEXT_UPKEEP}")
            continue
        except TableError as error:
            table.obstacles.append(f"{step.kind.value}: {error.reason}")
            continue
        if version is not None:
            newest = replace(target, version=version)
            table.completed_steps.append(CompletedStep(step, perf_counter() - timer_start, version))
            ports.progress.note(f"{target.table}: {step.kind.value}, {step.reason}")
    return newest


def _target_now(ports: RunPorts, table: TableUpkeep) -> UpkeepTarget:
    """Return the mirror version to which upkeep may write now; that of the plan may be
    minutes old. Raise TableError if upkeep leaves the mirror alone."""
    facts = UpkeepFacts.read(ports)
    state = facts.states[table.table]
    if state.mirror != table.mirror:
        raise TableError("it got another mirror meanwhile", hint=_NEXT_UPKEEP)
    return _target(ports, facts, state)


def _require_free(ports: RunPorts) -> None:
    """Raise TableError if a run holds the source, and still does after a short wait."""
    for _ in UPKEEP_TURN.tries(ports.pause):
        if live_lease(ports.ledger, ports.source.name) is None:
            return
    raise TableError(f"a run has the source; {_NEXT_UPKEEP}", hint=_NEXT_UPKEEP)


def _record_commits(ports: RunPorts, holder: str, targets: Sequence[UpkeepTarget]) -> bool:
    """Record the mirrors' new versions in the ledger, so that version sets name them.
    Return False if a run holds the source."""

    def record(lease: Lease) -> bool:
        for target in targets:
            ports.ledger.note_upkeep_version(
                lease, target.mirror, shows=target.written_version, delta_version=target.version
            )
        return True

    return not targets or _under_lock(ports, holder, record) is not None


def _vacuum(ports: RunPorts, lake: MirrorUpkeep, table: TableUpkeep) -> None:
    for step in table.planned_steps:
        if step.kind is not StepKind.VACUUM:
            continue
        timer_start = perf_counter()
        try:
            deleted = lake.vacuum(table.mirror)
        except LakeUnavailable:
            raise
        except (LockstepError, TableError) as error:
            table.obstacles.append(f"{step.kind.value}: {error}")
            continue
        table.completed_steps.append(
            CompletedStep(step, perf_counter() - timer_start, deleted=deleted)
        )
        ports.progress.note(f"{table.table}: {step.kind.value}, {step.reason}")


def thin_logs(ports: RunPorts, lake: MirrorUpkeep, *, delete: bool) -> FileTotal:
    """Delete checkpoints that are not needed (`checkpoints_to_delete`). Return the
    total of those that were deleted, or would be."""
    now = ports.clock()
    states = ports.ledger.table_states(ports.source.name).values()
    folders = [state.mirror for state in states if state.mirror_schema_version is not None]
    folders += [changelog.folder for changelog in all_changelogs(ports)]
    totals = [lake.thin_log(folder, now, delete=delete) for folder in folders]
    return FileTotal(sum(total.count for total in totals), sum(total.bytes for total in totals))


# -- folders that mirrors had before ---------------------------------------------------


def plan_former_folders(ports: RunPorts, keep: timedelta) -> tuple[FormerMirror, ...]:
    """Plan the deletion of former folders; nothing is written. `keep`: how long a
    version stays readable after it was replaced.

    A mirror gets another folder if the settings give it another name, if its folder was
    lost, or if it was made for other readers. Version sets (the versions of all mirrors
    that show one moment) may name versions in the former folder. So that folder is
    deleted as a whole, once `keep` has passed since a version set named the new one.
    """
    ledger, source = ports.ledger, ports.source.name
    folders = former_folders(ports)
    if not folders:
        return ()
    examined_versions = ledger.examined_versions(source)
    replacement_times = ledger.replacement_times(source, folders)
    now, lease_at = ledger.clock(), _last_lease_at(ports)
    plan = []
    for folder in folders:
        reason_kept: str | None
        try:
            newest = next(iter(ports.mirrors.history(folder)), None)
            if newest is None:
                reason_kept = None  # The folder is gone already: the ledger must record that.
            elif newest.delta_version != examined_versions[folder]:
                reason_kept = "somebody else wrote to it; delete it yourself"
            elif folder in replacement_times and replacement_times[folder] is None:
                reason_kept = "the newest version set names it"
            else:
                # A folder that no version set ever named has no replacement time.
                moments = [newest.committed_at, replacement_times.get(folder)]
                replaced_at = max((moment for moment in moments if moment), default=None)
                doubt = clock_doubt(ports.clock(), now, newest.committed_at, lease_at, keep)
                reason_kept = doubt or _reason_promised(replaced_at, now, keep)
        except (LockstepError, TableError) as error:
            reason_kept = str(error)
        plan.append(FormerMirror(folder, reason_kept))
    return tuple(plan)


def _reason_promised(replaced_at: datetime | None, now: datetime, keep: timedelta) -> str | None:
    """Return why versions that were replaced at a moment are still kept, or None."""
    if replaced_at is None:
        return "it is unknown when its versions were replaced; delete it yourself"
    until = replaced_at + keep
    return None if until <= now else f"its versions are promised until {until:%Y-%m-%d %H:%M} UTC"


def delete_former_folders(
    ports: RunPorts, plan: Sequence[FormerMirror], holder: str
) -> tuple[FormerMirror, ...]:
    """Carry out the plan, and return the folders with the reasons of those that stay."""
    folders = [former.folder for former in plan if former.reason_kept is None]
    if not folders:
        return tuple(plan)
    deleted = _under_lock(ports, holder, lambda lease: remove_former_folders(ports, lease, folders))
    if deleted is None:
        reason = "a run has the source: the next upkeep deletes it"
        return tuple(replace(former, reason_kept=former.reason_kept or reason) for former in plan)
    for folder in deleted:
        ports.progress.note(f"{folder}, where a mirror was before, is deleted")
    return tuple(plan)


def _last_lease_at(ports: RunPorts) -> datetime | None:
    """Return when a run last held the source's lock; None if never."""
    lease = ports.ledger.newest_lease(ports.source.name)
    return None if lease is None else lease.beat_at or lease.taken_at


def _under_lock(ports: RunPorts, holder: str, act: Callable[[Lease], _Result]) -> _Result | None:
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
    doubt = clock_doubt(ports.clock(), now, None, _last_lease_at(ports), keep_changes or keep_files)
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
    deleted_through = ledger.deletion_notes(source).last_batch
    if changes.last_old_batch <= deleted_through:
        return plan
    last_batch, sentence = last_deletable_batch(changes, deleted_through)
    files = [] if last_batch is None else ledger.change_files(source, deleted_through, last_batch)
    total = FileTotal.of([file.size for file in files])
    return replace(plan, last_batch=last_batch, holder_sentence=sentence, unlisted=total)


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
            last_id = note.after_batch if rows is PrunableRows.CONTENTS else 0
            is_complete = False
            while not is_complete:
                with ledger.lock(ports.source.name, holder, None) as lease:
                    result = ledger.prune(lease, rows, last_id, note.last_batch, _BATCHES_AT_ONCE)
                count += result.deleted_rows
                last_id = result.last_id
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
        obstacles = _under_lock(ports, holder, record)
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
