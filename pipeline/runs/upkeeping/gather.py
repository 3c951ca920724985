"""What is known of a source's mirrors before their upkeep."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime

from pipeline.changes.layout import application_id
from pipeline.decisions import Lease
from pipeline.errors import SourceBusy, TableError
from pipeline.foreign_commits import Passed
from pipeline.ports.upkeep import MirrorUpkeep
from pipeline.retries import UPKEEP_TURN
from pipeline.runs.agreement.lake_logs import judged
from pipeline.runs.commit_records import upkept_metadata
from pipeline.runs.context import Workplace
from pipeline.table import TableName
from pipeline.table_state import TableState
from pipeline.upkeep.decide import (
    MirrorFiles,
    Pile,
    UpkeepPolicy,
    UpkeepStep,
    decide,
    doubt_of,
)


@dataclass(frozen=True, slots=True)
class Kept:
    """A mirror that upkeep may write to. `version`: its newest; `shows`: that of the write whose
    rows it shows; `said`: what a commit of upkeep says; `unnoted`: whether `version` is upkeep's,
    and the ledger does not know it yet."""

    table: TableName
    mirror: str
    version: int
    shows: int
    said: str
    unnoted: bool


@dataclass(frozen=True, slots=True)
class StepDone:
    """A step that was carried out: the Delta version it made, or what it deleted."""

    step: UpkeepStep
    seconds: float
    delta_version: int | None = None
    gone: Pile = field(default_factory=Pile)


@dataclass(slots=True)
class TableUpkeep:
    """A table's mirror, its files, the steps that are planned and those that were done; `left`:
    what is not done, with the reason. `kept` None: it is left alone, `why` says for what reason."""

    table: TableName
    mirror: str
    why: str | None = None
    planned: tuple[UpkeepStep, ...] = ()
    left: list[str] = field(default_factory=list)
    files: MirrorFiles | None = None
    kept: Kept | None = None
    done: list[StepDone] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class UpkeepFacts:
    """What the ledger has on the source's mirrors, asked once. `busy`: tables with changes or
    writes that wait; `upkept`: the newest version of each mirror that upkeep made; `held`: when
    somebody had the source last; `clock`: the ledger's."""

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
            last_held(work),
            ledger.clock(),
        )


def last_held(work: Workplace) -> datetime | None:
    """When somebody had the source last."""
    lease = work.ledger.lease(work.source.name)
    return None if lease is None else lease.beat_at or lease.taken_at


def under_lock(work: Workplace, holder: str, act: Callable[[Lease], None]) -> bool:
    """Take the source's lock for `act`; False where a run has it, which is waited for a little."""
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
    """For each table that has a mirror, or each of `only`; reads logs, writes nothing."""
    books = UpkeepFacts.read(work)
    mirrored = {t: state for t, state in books.states.items() if state.mirror_version is not None}
    wanted = mirrored if only is None else only
    return [
        _planned(work, lake, policy, books, mirrored[table])
        if table in mirrored
        else TableUpkeep(table, "", "it has no mirror in the lake")
        for table in sorted(wanted)
    ]


def _planned(
    work: Workplace, lake: MirrorUpkeep, policy: UpkeepPolicy, books: UpkeepFacts, state: TableState
) -> TableUpkeep:
    try:
        kept = kept_of(work, lake, books, state)
        if isinstance(kept, str):
            return TableUpkeep(state.table, state.mirror, kept)
        files = lake.files(state.mirror)
        newest = lake.commit(kept.mirror, kept.version)
        moment = None if newest is None else newest.committed_at
        doubt = doubt_of(work.clock(), books.clock, moment, books.held, lake.keep)
        plan = decide(files, policy, doubt)
        return TableUpkeep(state.table, state.mirror, None, plan.steps, [*plan.left], files, kept)
    except TableError as error:
        return TableUpkeep(state.table, state.mirror, error.reason)


def kept_of(
    work: Workplace, lake: MirrorUpkeep, books: UpkeepFacts, state: TableState
) -> Kept | str:
    """The mirror as it stands; or, in a sentence, why upkeep leaves it alone."""
    mirror = state.mirror
    if not state.complete:
        return f"the table is {state.in_words}"
    if state.table in books.busy:
        return "captured changes wait for their merge"
    app_id = application_id(work.source.name, state, "mirror")
    settled = work.ledger.newest_writes(work.source.name, [app_id])[app_id].settled
    if settled is None or settled.delta_version < (state.adopted or 0):
        return "nothing was written to it since it was taken over"
    relation = judged(work, state, books.looked.get(mirror))
    if not isinstance(relation, Passed) or relation.newest is None:
        return "its log has a commit that is not Lockstep's; the next run reports it"
    newest, shows = relation.newest, settled.delta_version
    head = lake.commit(mirror, newest)
    repeated = head is not None and head.repeats == shows
    commit = head if repeated else lake.commit(mirror, shows)
    if commit is None or commit.user_metadata is None:
        return f"the log no longer tells what made version {shows} of it; its next write will"
    said = upkept_metadata(settled, commit.user_metadata)
    unnoted = repeated and books.upkept.get(mirror, -1) < newest
    return Kept(state.table, mirror, newest, shows, said, unnoted)
