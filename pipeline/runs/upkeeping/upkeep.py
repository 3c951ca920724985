"""The upkeep of a source's mirrors, carried out.

No run waits for upkeep: files of mirrors are rewritten without the source's lock, and only while no
run has it. A commit of upkeep is bound to the version that it was planned for. If a run writes to
the mirror meanwhile, the run's commit stands and upkeep's is not made; the next upkeep tries again.
The lock is taken once, while the ledger records the commits. Files are deleted only after that, and
commits of an upkeep that died are recorded first (`gather.Kept.unnoted`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from time import perf_counter

from pipeline.changes.layout import changelog_path
from pipeline.changes.source_tables import source_table_path
from pipeline.decisions import Lease
from pipeline.errors import CommitConflict, LakeUnavailable, LockstepError, TableError
from pipeline.ports.upkeep import MirrorUpkeep
from pipeline.retries import UPKEEP_TURN
from pipeline.runs.clear import clear
from pipeline.runs.context import Workplace
from pipeline.runs.upkeeping.changes import let_go, plan_changes
from pipeline.runs.upkeeping.former import FormerMirror, let_former_go, plan_former
from pipeline.runs.upkeeping.gather import (
    Kept,
    StepDone,
    TableUpkeep,
    UpkeepFacts,
    kept_of,
    plan_upkeep,
    under_lock,
)
from pipeline.segment import SourceTable
from pipeline.table import TableName
from pipeline.upkeep.changes import ChangesPlan
from pipeline.upkeep.clearing import InClear
from pipeline.upkeep.decide import Pile, StepKind, UpkeepPolicy


@dataclass(frozen=True, slots=True)
class UpkeepReport:
    """The outcome of an upkeep. `changes`: the deletion of old changes; `logs`: deleted
    checkpoints; `cleared`: tightenings whose tables show no hidden values any more; `former`:
    folders that mirrors had before. These are empty if the upkeep was for some tables only."""

    tables: tuple[TableUpkeep, ...]
    seconds: float
    changes: ChangesPlan = field(default_factory=ChangesPlan)
    cleared: tuple[InClear, ...] = ()
    logs: Pile = field(default_factory=Pile)
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
    commits = {table.mirror: table.kept for table in tables if table.kept and table.kept.unnoted}
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
    changes, logs, cleared = ChangesPlan(), Pile(), list[InClear]()
    former: tuple[FormerMirror, ...] = ()
    if only is None:
        logs = thin_logs(work, lake, delete=True)
        changes = let_go(work, plan_changes(work, policy.keep_changes, lake.keep), holder)
        under_lock(work, holder, lambda lease: cleared.extend(clear(work, lease)))
        former = let_former_go(work, plan_former(work, lake.keep), holder)
    seconds = perf_counter() - clock
    return UpkeepReport(tuple(tables), seconds, changes, tuple(cleared), logs, former)


def _commits(work: Workplace, lake: MirrorUpkeep, table: TableUpkeep) -> Kept | None:
    """Carry out the steps that commit. Return the mirror after its last commit; None without a
    commit."""
    newest: Kept | None = None
    for step in table.planned:
        if not step.kind.commits:
            continue
        clock, version = perf_counter(), None
        kept: Kept | str = "a run has the source; the next upkeep does it"
        try:
            if _is_free(work):
                kept = newest or _current(work, lake, table)
            if isinstance(kept, Kept):
                version = lake.carry_out(kept.mirror, step, kept.said, kept.version)
        except CommitConflict:
            kept = "a run wrote to it first; the next upkeep does it"
        except TableError as error:
            kept = error.reason
        if isinstance(kept, str):
            table.left.append(f"{step.kind.value}: {kept}")
        elif version is not None:
            newest = replace(kept, version=version)
            table.done.append(StepDone(step, perf_counter() - clock, version))
            work.progress.note(f"{kept.table}: {step.kind.value}, {step.reason}")
    return newest


def _current(work: Workplace, lake: MirrorUpkeep, table: TableUpkeep) -> Kept | str:
    """Return the mirror as it is now: the plan may be minutes old."""
    facts = UpkeepFacts.read(work)
    state = facts.states[table.table]
    if state.mirror != table.mirror:
        return "it got another mirror meanwhile"
    return kept_of(work, lake, facts, state)


def _is_free(work: Workplace) -> bool:
    """Return whether no run has the source, after a short wait at most."""
    leases = (work.ledger.lease(work.source.name) for _ in UPKEEP_TURN.tries(work.pause))
    return any(lease is None or not lease.live for lease in leases)


def _noted(work: Workplace, holder: str, commits: Sequence[Kept]) -> bool:
    """Record commits, so that version sets name them. Return False if a run has the source."""

    def note(lease: Lease) -> None:
        for kept in commits:
            work.ledger.note_upkept(
                lease, kept.mirror, shows=kept.shows, delta_version=kept.version
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


def thin_logs(work: Workplace, lake: MirrorUpkeep, *, delete: bool) -> Pile:
    """Delete checkpoints that newer ones replace. Return those that were deleted, or would be."""
    now = work.clock()
    piles = [lake.thin_log(folder, now, delete=delete) for folder in _folders(work)]
    return Pile(sum(pile.files for pile in piles), sum(pile.bytes for pile in piles))


def _folders(work: Workplace) -> Iterator[str]:
    source = work.source.name
    for table, state in work.ledger.table_states(source).items():
        if state.mirror_version is not None:
            yield state.mirror
        for generation in range(1, state.changelog_generation + 1):
            yield changelog_path(source, table, generation)
    for part in SourceTable:
        yield source_table_path(source, part)
