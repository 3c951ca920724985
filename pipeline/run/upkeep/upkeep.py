"""The upkeep of a source's mirrors: the facts, the plan, and what is carried out.

No run waits for upkeep: files of mirrors are rewritten without the source's lock, and only while no
run has it. A commit of upkeep is bound to the version that it was planned for. If a run writes to
the mirror meanwhile, the run's commit stands and upkeep's is not made; the next upkeep tries again.
The lock is taken once, while the ledger records the commits. Files are deleted only after that, and
commits of an upkeep that died are recorded first (`UpkeepTarget.unrecorded`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from time import perf_counter

from lockstep.pipeline.model.table_state import TableState
from lockstep.pipeline.ports.mirrors import MirrorUpkeep
from lockstep.pipeline.run.agreement.changelog_files import all_changelogs
from lockstep.pipeline.run.clear import UpkeepTarget, clear, upkeep_target
from lockstep.pipeline.run.context import Workplace
from lockstep.pipeline.run.mirror_places import delete_former, former_places
from lockstep.pipeline.run.upkeep.changes import (
    delete_changes,
    last_lease,
    plan_changes,
    under_lock,
)
from lockstep.pipeline.upkeep.changes import ChangesPlan
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
    TableError,
)
from lockstep.pipeline.values.retries import UPKEEP_TURN
from lockstep.pipeline.values.table import TableName


@dataclass(frozen=True, slots=True)
class StepDone:
    """A step that was carried out, with the Delta version that it made, or the total of the files
    that it deleted (`gone`)."""

    step: UpkeepStep
    seconds: float
    delta_version: int | None = None
    gone: FileTotal = field(default_factory=FileTotal)


@dataclass(slots=True)
class TableUpkeep:
    """The upkeep of one mirror: its files, the planned steps, and the steps that were done.
    `left`: sentences on steps that are not done. `why`: the reason why upkeep leaves the mirror
    alone; in that case `target` is None."""

    table: TableName
    mirror: str
    why: str | None = None
    planned: tuple[UpkeepStep, ...] = ()
    left: list[str] = field(default_factory=list)
    files: MirrorFiles | None = None
    target: UpkeepTarget | None = None
    done: list[StepDone] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class UpkeepFacts:
    """The ledger's records about the source's mirrors. `busy`: tables with changes that wait for
    their merge, or with unfinished writes; `looked`: the version of each mirror up to which its log
    was checked; `upkept`: the newest version of each mirror that upkeep made; `held`: when a run
    last held the source's lock; `clock`: the ledger's time."""

    states: Mapping[TableName, TableState]
    busy: frozenset[TableName]
    looked: Mapping[str, int]
    upkept: Mapping[str, int]
    held: datetime | None
    clock: datetime

    @classmethod
    def read(cls, work: Workplace) -> UpkeepFacts:
        ledger, source = work.ledger, work.source.name
        intended = (intent.table for intent in ledger.open_intents(source))
        return cls(
            ledger.table_states(source),
            frozenset((*ledger.pending(source), *intended)),
            ledger.looked(source),
            ledger.upkept(source),
            last_lease(work),
            ledger.clock(),
        )


def plan_upkeep(
    work: Workplace,
    lake: MirrorUpkeep,
    policy: UpkeepPolicy,
    only: Collection[TableName] | None = None,
) -> list[TableUpkeep]:
    """Return the plan of upkeep for each table with a mirror, or for each table in `only`.
    Nothing is written."""
    facts = UpkeepFacts.read(work)
    mirrored = {
        table: state for table, state in facts.states.items() if state.mirror_version is not None
    }
    return [
        _planned(work, lake, policy, facts, mirrored[table])
        if table in mirrored
        else TableUpkeep(table, "", "it has no mirror in the lake")
        for table in sorted(mirrored if only is None else only)
    ]


def _planned(
    work: Workplace, lake: MirrorUpkeep, policy: UpkeepPolicy, facts: UpkeepFacts, state: TableState
) -> TableUpkeep:
    try:
        target = target_of(work, facts, state)
        if isinstance(target, str):
            return TableUpkeep(state.table, state.mirror, target)
        files = lake.files(state.mirror)
        newest = lake.commit(target.mirror, target.version)
        moment = None if newest is None else newest.committed_at
        doubt = clock_doubt(work.clock(), facts.clock, moment, facts.held, lake.keep)
        plan = decide(files, policy, doubt)
        return TableUpkeep(state.table, state.mirror, None, plan.steps, [*plan.left], files, target)
    except TableError as error:
        return TableUpkeep(state.table, state.mirror, error.reason)


def target_of(work: Workplace, facts: UpkeepFacts, state: TableState) -> UpkeepTarget | str:
    """Return the mirror as upkeep may write to it now, or a sentence on why upkeep leaves it
    alone."""
    if not state.complete:
        return f"the table is {state.in_words}"
    if state.table in facts.busy:
        return "captured changes wait for their merge"
    looked, upkept = facts.looked.get(state.mirror), facts.upkept.get(state.mirror, -1)
    return upkeep_target(work, state, looked, upkept)


@dataclass(frozen=True, slots=True)
class FormerMirror:
    """A folder that a mirror had before. `kept`: a sentence on why it stays; None if it is
    deleted."""

    folder: str
    kept: str | None = None


@dataclass(frozen=True, slots=True)
class UpkeepReport:
    """The outcome of an upkeep. `changes`: the deletion of old changes; `logs`: deleted
    checkpoints; `cleared`: tightenings whose tables show no hidden values any more; `former`:
    folders that mirrors had before. These are empty if the upkeep was for some tables only. If the
    upkeep was only planned, they are what it would delete."""

    tables: tuple[TableUpkeep, ...]
    seconds: float
    changes: ChangesPlan = field(default_factory=ChangesPlan)
    cleared: tuple[UnclearedValues, ...] = ()
    logs: FileTotal = field(default_factory=FileTotal)
    former: tuple[FormerMirror, ...] = ()


def upkeep(
    work: Workplace,
    lake: MirrorUpkeep,
    policy: UpkeepPolicy,
    holder: str,
    only: Collection[TableName] | None = None,
) -> UpkeepReport:
    """Carry out the upkeep of all tables, or of `only`. An error that concerns one table is
    reported, and the others are handled. `holder`: who takes the source's lock. Java is not started
    if nothing is planned."""
    clock = perf_counter()
    tables = plan_upkeep(work, lake, policy, only)
    commits = {
        table.mirror: table.target for table in tables if table.target and table.target.unrecorded
    }
    if any(table.planned for table in tables):
        work.mirrors.prepare()
    for table in tables:
        newest = _commits(work, lake, table)
        if newest is not None:
            commits[newest.mirror] = newest
    noted = _noted(work, holder, list(commits.values()))
    for table in tables:
        if table.mirror in commits and not noted:
            table.left.append("a run has the source: the next upkeep records the new version")
        else:
            _deletes(work, lake, table)
    changes, logs, cleared = ChangesPlan(), FileTotal(), list[UnclearedValues]()
    former: tuple[FormerMirror, ...] = ()
    if only is None:
        logs = thin_logs(work, lake, delete=True)
        changes = delete_changes(work, plan_changes(work, policy.keep_changes, lake.keep), holder)
        under_lock(work, holder, lambda lease: cleared.extend(clear(work, lease)))
        former = delete_former_folders(work, plan_former(work, lake.keep), holder)
    seconds = perf_counter() - clock
    return UpkeepReport(tuple(tables), seconds, changes, tuple(cleared), logs, former)


def _commits(work: Workplace, lake: MirrorUpkeep, table: TableUpkeep) -> UpkeepTarget | None:
    """Carry out the steps that commit. Return the mirror after its last commit; None without a
    commit."""
    newest: UpkeepTarget | None = None
    for step in table.planned:
        if not step.kind.commits:
            continue
        clock, version = perf_counter(), None
        target: UpkeepTarget | str = "a run has the source; the next upkeep does it"
        try:
            if _is_free(work):
                target = newest or _current(work, table)
            if isinstance(target, UpkeepTarget):
                version = lake.carry_out(target.mirror, step, target.said, target.version)
        except CommitConflict:
            target = "a run wrote to it first; the next upkeep does it"
        except TableError as error:
            target = error.reason
        if isinstance(target, str):
            table.left.append(f"{step.kind.value}: {target}")
        elif version is not None:
            newest = replace(target, version=version)
            table.done.append(StepDone(step, perf_counter() - clock, version))
            work.progress.note(f"{target.table}: {step.kind.value}, {step.reason}")
    return newest


def _current(work: Workplace, table: TableUpkeep) -> UpkeepTarget | str:
    """Return the mirror as it is now: the plan may be minutes old."""
    facts = UpkeepFacts.read(work)
    state = facts.states[table.table]
    if state.mirror != table.mirror:
        return "it got another mirror meanwhile"
    return target_of(work, facts, state)


def _is_free(work: Workplace) -> bool:
    """Return whether no run has the source, after a short wait at most."""
    leases = (work.ledger.lease(work.source.name) for _ in UPKEEP_TURN.tries(work.pause))
    return any(lease is None or not lease.live for lease in leases)


def _noted(work: Workplace, holder: str, commits: Sequence[UpkeepTarget]) -> bool:
    """Record commits, so that version sets name them. Return False if a run has the source."""

    def note(lease: Lease) -> None:
        for target in commits:
            work.ledger.note_upkept(
                lease, target.mirror, shows=target.shows, delta_version=target.version
            )

    return not commits or under_lock(work, holder, note)


def _deletes(work: Workplace, lake: MirrorUpkeep, table: TableUpkeep) -> None:
    for step in table.planned:
        if step.kind is not StepKind.VACUUM:
            continue
        clock = perf_counter()
        try:
            deleted = lake.vacuum(table.mirror)
        except LakeUnavailable:
            raise
        except (LockstepError, TableError) as error:
            table.left.append(f"{step.kind.value}: {error}")
            continue
        table.done.append(StepDone(step, perf_counter() - clock, gone=deleted))
        work.progress.note(f"{table.table}: {step.kind.value}, {step.reason}")


def thin_logs(work: Workplace, lake: MirrorUpkeep, *, delete: bool) -> FileTotal:
    """Delete checkpoints that newer ones replace. Return those that were deleted, or would be."""
    now, states = work.clock(), work.ledger.table_states(work.source.name).values()
    folders = [state.mirror for state in states if state.mirror_version is not None]
    folders += [changelog.folder for changelog in all_changelogs(work)]
    piles = [lake.thin_log(folder, now, delete=delete) for folder in folders]
    return FileTotal(sum(pile.files for pile in piles), sum(pile.bytes for pile in piles))


# -- folders that mirrors had before -----------------------------------------------------------


def plan_former(work: Workplace, keep: timedelta) -> tuple[FormerMirror, ...]:
    """Plan the deletion of former folders; nothing is written. `keep`: how long a version stays
    readable after it was replaced.

    A mirror gets another folder if the settings give it another name, if its folder was lost, or if
    it was made for other readers. Version sets name versions in the former folder, so that is
    deleted as a whole only once none of them is promised any more: the time counts from the moment
    when a newer version set names the new folder.
    """
    ledger, source = work.ledger, work.source.name
    folders = former_places(ledger, source)
    if not folders:
        return ()
    looked, left = ledger.looked(source), ledger.left_at(source, folders)
    now, held = ledger.clock(), last_lease(work)
    plan = []
    for folder in folders:
        kept: str | None
        try:
            newest = next(iter(work.mirrors.history(folder)), None)
            if newest is None:
                kept = None  # Somebody deleted it: the ledger must record that.
            elif newest.delta_version != looked[folder]:
                kept = "somebody else wrote to it; delete it yourself"
            elif folder in left and left[folder] is None:
                kept = "the newest versions that are acknowledged name it"
            else:
                moments = [newest.committed_at, left.get(folder)]
                since = max((moment for moment in moments if moment is not None), default=None)
                doubt = clock_doubt(work.clock(), now, newest.committed_at, held, keep)
                kept = doubt or _promised(since, now, keep)
        except (LockstepError, TableError) as error:
            kept = str(error)
        plan.append(FormerMirror(folder, kept))
    return tuple(plan)


def _promised(since: datetime | None, now: datetime, keep: timedelta) -> str | None:
    """Return why versions that were replaced at a moment are still kept, or None."""
    if since is None:
        return "it is unknown when its versions were replaced; delete it yourself"
    until = since + keep
    return None if until <= now else f"its versions are promised until {until:%Y-%m-%d %H:%M} UTC"


def delete_former_folders(
    work: Workplace, plan: Sequence[FormerMirror], holder: str
) -> tuple[FormerMirror, ...]:
    """Carry out the plan, and return what became of each folder."""
    due = [former.folder for former in plan if former.kept is None]
    deleted: list[str] = []
    if due and not under_lock(
        work, holder, lambda lease: deleted.extend(delete_former(work, lease, due))
    ):
        later = "a run has the source: the next upkeep deletes it"
        return tuple(replace(former, kept=former.kept or later) for former in plan)
    for folder in deleted:
        work.progress.note(f"{folder}, where a mirror was before, is deleted")
    return tuple(plan)
