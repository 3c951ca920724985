"""The facts about a source's mirrors, and the plan of their upkeep."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime

from lockstep.pipeline.mirror.layout import application_id
from lockstep.pipeline.model.foreign_commits import AllExpected
from lockstep.pipeline.model.table_state import TableState
from lockstep.pipeline.ports.mirrors import MirrorUpkeep
from lockstep.pipeline.run.agreement.lake_logs import judged_mirror
from lockstep.pipeline.run.commit_records import upkept_metadata
from lockstep.pipeline.run.context import Workplace
from lockstep.pipeline.upkeep.decide import (
    FileTotal,
    MirrorFiles,
    UpkeepPolicy,
    UpkeepStep,
    clock_doubt,
    decide,
)
from lockstep.pipeline.values.decisions import Lease
from lockstep.pipeline.values.errors import SourceBusy, TableError
from lockstep.pipeline.values.retries import UPKEEP_TURN
from lockstep.pipeline.values.table import TableName


@dataclass(frozen=True, slots=True)
class UpkeepTarget:
    """A mirror that upkeep may write to. `version`: its newest version; `shows`: the version that
    was made by the write whose rows the mirror shows; `said`: the metadata for upkeep's commits;
    `unrecorded`: upkeep made `version`, and the ledger has not recorded it yet."""

    table: TableName
    mirror: str
    version: int
    shows: int
    said: str
    unrecorded: bool


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


def last_lease(work: Workplace) -> datetime | None:
    """Return when a run last held the source's lock; None if none ever did."""
    lease = work.ledger.lease(work.source.name)
    return None if lease is None else lease.beat_at or lease.taken_at


def under_lock(work: Workplace, holder: str, act: Callable[[Lease], None]) -> bool:
    """Take the source's lock, call `act`, and return True. Return False if a run holds the lock
    and does not release it within a short time."""
    for _ in UPKEEP_TURN.tries(work.pause):
        with suppress(SourceBusy), work.ledger.lock(work.source.name, holder, None) as lease:
            act(lease)
            return True
    return False


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
        target = target_of(work, lake, facts, state)
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


def target_of(
    work: Workplace, lake: MirrorUpkeep, facts: UpkeepFacts, state: TableState
) -> UpkeepTarget | str:
    """Return the mirror as upkeep may write to it now, or a sentence on why upkeep leaves it
    alone."""
    mirror = state.mirror
    if not state.complete:
        return f"the table is {state.in_words}"
    if state.table in facts.busy:
        return "captured changes wait for their merge"
    app_id = application_id(work.source.name, state, "mirror")
    settled = work.ledger.newest_writes(work.source.name, [app_id])[app_id].settled
    if settled is None or settled.delta_version < (state.adopted or 0):
        return "nothing was written to it since it was adopted"
    relation = judged_mirror(work, state, facts.looked.get(mirror))
    if not isinstance(relation, AllExpected) or relation.newest is None:
        return "its log has a commit that is not Lockstep's; the next run reports it"
    newest, shows = relation.newest, settled.delta_version
    head = lake.commit(mirror, newest)
    repeated = head is not None and head.repeats == shows
    commit = head if repeated else lake.commit(mirror, shows)
    if commit is None or commit.user_metadata is None:
        return (
            f"its log no longer has the commit of version {shows}, whose metadata upkeep repeats: "
            "upkeep is possible again after the next write"
        )
    said = upkept_metadata(settled, commit.user_metadata)
    unrecorded = repeated and facts.upkept.get(mirror, -1) < newest
    return UpkeepTarget(state.table, mirror, newest, shows, said, unrecorded)
