"""Upkeep of a source's mirrors, carried out.

No run waits for upkeep: a mirror's files are written anew without the source's lock, and only while
no run has it. The commit is bound to the version that it was planned on, so if a run writes to the
mirror meanwhile, the run's commit stands and upkeep's is never made; the next upkeep tries again.
The lock is taken once, for as long as it takes the ledger to note what was made. Only then files
are deleted: what an upkeep that died had made is noted first (`gather.Kept.unnoted`).
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
    """Of all tables that were looked at. `changes`: what became of old ones; `logs`:
    checkpoints that were deleted; `cleared`: tightenings of tables that stand in clear no more;
    `former`: folders that mirrors had before.
    Nothing of these where only some tables were asked for."""

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
    """Whatever concerns one table is told of it, and the others go on. `holder`: who takes the
    source's lock. Where there is nothing to do, Java is not started."""
    begun = perf_counter()
    tables = plan_upkeep(work, lake, policy, only)
    made = {one.mirror: one.kept for one in tables if one.kept and one.kept.unnoted}
    if any(one.planned for one in tables):
        work.mirrors.prepare()
    for table in tables:
        kept = _commits(work, lake, table)
        if kept is not None:
            made[kept.mirror] = kept
    noted = _noted(work, holder, list(made.values()))
    for table in tables:
        if table.mirror in made and not noted:
            table.left.append("a run has the source: the next upkeep notes what was made")
        else:
            _deletes(work, lake, table)
    changes, logs, cleared = ChangesPlan(), Pile(), list[InClear]()
    former: tuple[FormerMirror, ...] = ()
    if only is None:
        logs = thin_logs(work, lake, delete=True)
        changes = let_go(work, plan_changes(work, policy.keep_changes, lake.keep), holder)
        under_lock(work, holder, lambda lease: cleared.extend(clear(work, lease)))
        former = let_former_go(work, plan_former(work, lake.keep), holder)
    seconds = perf_counter() - begun
    return UpkeepReport(tuple(tables), seconds, changes, tuple(cleared), logs, former)


def _commits(work: Workplace, lake: MirrorUpkeep, table: TableUpkeep) -> Kept | None:
    """The steps that commit; the newest commit, None where there was none."""
    made: Kept | None = None
    for step in table.planned:
        if not step.kind.commits:
            continue
        clock, version = perf_counter(), None
        kept: Kept | str = "a run has the source; the next upkeep does it"
        try:
            if _free(work):
                kept = made or _still(work, lake, table)
            if isinstance(kept, Kept):
                version = lake.carry_out(kept.mirror, step, kept.said, kept.version)
        except CommitConflict:
            kept = "a run wrote to it first; the next upkeep does it"
        except TableError as error:
            kept = error.reason
        if isinstance(kept, str):
            table.left.append(f"{step.kind.value}: {kept}")
        elif version is not None:
            made = replace(kept, version=version)
            table.done.append(StepDone(step, perf_counter() - clock, version))
            work.progress.note(f"{kept.table}: {step.kind.value}, {step.reason}")
    return made


def _still(work: Workplace, lake: MirrorUpkeep, table: TableUpkeep) -> Kept | str:
    """The mirror as it stands now, for what was planned may be minutes old."""
    books = UpkeepFacts.read(work)
    state = books.states[table.table]
    if state.mirror != table.mirror:
        return "it got another mirror meanwhile"
    return kept_of(work, lake, books, state)


def _free(work: Workplace) -> bool:
    """Whether no run has the source; it is waited for a little."""
    leases = (work.ledger.lease(work.source.name) for _ in UPKEEP_TURN.tries(work.pause))
    return any(lease is None or not lease.live for lease in leases)


def _noted(work: Workplace, holder: str, made: Sequence[Kept]) -> bool:
    """Version sets name the commits from here on. False where a run has the source."""

    def note(lease: Lease) -> None:
        for one in made:
            work.ledger.note_upkept(lease, one.mirror, shows=one.shows, delta_version=one.version)

    return not made or under_lock(work, holder, note)


def _deletes(work: Workplace, lake: MirrorUpkeep, table: TableUpkeep) -> None:
    for step in table.planned:
        if step.kind is not StepKind.VACUUM:
            continue
        clock = perf_counter()
        try:
            gone = lake.vacuum(table.mirror)
        except LakeUnavailable:
            raise
        except (LockstepError, TableError) as error:
            table.left.append(f"{step.kind.value}: {error}")
            continue
        table.done.append(StepDone(step, perf_counter() - clock, gone=gone))
        work.progress.note(f"{table.table}: {step.kind.value}, {step.reason}")


def thin_logs(work: Workplace, lake: MirrorUpkeep, *, delete: bool) -> Pile:
    """Checkpoints that others replace: those that were deleted, or would be."""
    now = work.clock()
    piles = [lake.thin_log(folder, now, delete=delete) for folder in _folders(work)]
    return Pile(sum(one.files for one in piles), sum(one.bytes for one in piles))


def _folders(work: Workplace) -> Iterator[str]:
    source = work.source.name
    for table, state in work.ledger.table_states(source).items():
        if state.mirror_version is not None:
            yield state.mirror
        for generation in range(1, state.changelog_generation + 1):
            yield changelog_path(source, table, generation)
    for part in SourceTable:
        yield source_table_path(source, part)
