"""`lockstep recover`: a ledger that holds nothing of a source goes on with its lake.

Belongs here: what it would do, and doing it. Does not: which batch all mirrors show
(`pipeline.recovery`), asking the lake (`lake_facts`) and the server (`recovered_structures`).

In the lake first, then in the ledger, then the folder's claim; what was cut off is done again.

1. Changelogs list nothing behind the batch, and mirrors that show later ones show it once more:
   commits of metadata, which the next try finds done.
2. One batch stands for all that was ever captured: it ends where the lake ends, and its changes
   are the numbers that were given. Tables take their mirrors over in a new generation, so no
   transaction and no file of before is taken for one of this ledger's.
3. The folder belongs to this ledger.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial

import pyarrow.compute as pc

from pipeline.batch import CaptureRecord
from pipeline.changes.layout import changelog_path
from pipeline.claim import Claim
from pipeline.decisions import Decision, Lease
from pipeline.errors import ForeignCommit, PositionPurged
from pipeline.position import Position
from pipeline.recovery.decide import decide
from pipeline.recovery.facts import Adopted, Plan
from pipeline.runs.agreement.claim import claim_folder
from pipeline.runs.agreement.lake_facts import Gathered, gather
from pipeline.runs.agreement.recovered_lake import cut_changelogs, restore_mirrors
from pipeline.runs.agreement.recovered_structures import Structures, structures_of
from pipeline.runs.agreement.recovery_place import Placed, Places
from pipeline.runs.context import Workplace
from pipeline.schema.history import History
from pipeline.segment import SourceTable, batch_of
from pipeline.table import TableName
from pipeline.table_state import Extent, Handover, TableCondition, TableState

RULE = "recovered"
"""The start decision of the batch that stands for all that the lake has."""


@dataclass(frozen=True, slots=True)
class Recovery:
    """What `recover` does. `plan` None: all of it is done but the folder's claim."""

    plan: Plan | None
    reloads: tuple[tuple[TableName, str], ...] = ()
    cut: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Basis:
    gathered: Gathered
    plan: Plan
    placed: Placed
    structures: Structures


def foresee(work: Workplace) -> Recovery:
    """What it would do; writes nothing. `ForeignCommit`, `PositionPurged` where it cannot."""
    if _begun(work):
        return Recovery(None)
    return _told(_basis(work))


def recover(work: Workplace, lease: Lease, *, author: str) -> Recovery:
    """Do it, and record who wanted it."""
    if _begun(work):
        _end(work, lease)
        return Recovery(None)
    basis = _basis(work)
    held = partial(work.ledger.require_held, lease)
    told = _told(basis)
    assert told.plan is not None, "nothing is done yet"
    adopted, refused = restore_mirrors(work, told.plan.adopted, held)
    looked = basis.gathered.folders | {one.mirror.folder: version for one, version in adopted}
    looked |= cut_changelogs(work, basis.gathered, basis.plan.told, held)
    reloads = (*told.reloads, *refused)
    # Before the batch: once that is recorded, the next try does no more than end.
    for table, why in reloads:
        work.ledger.order_load(lease, table, author=author, reason=why)
    work.ledger.note_looked(lease, looked)
    _record(work, lease, basis, adopted, author)
    _end(work, lease)
    return replace(told, reloads=reloads)


def _basis(work: Workplace) -> _Basis:
    gathered = gather(work)
    if not gathered.facts.mirrors:
        raise ForeignCommit(
            f"there is no mirror of {work.source.name} in the lake that a Lockstep wrote",
            hint=f"mount or restore the lake's folder; or begin anew: `lockstep run --source "
            f"{work.source.name}`",
        )
    places = Places(work)
    plan = decide(gathered.facts, places.reaches)
    if plan is None:
        tables = ", ".join(str(mirror.table) for mirror in gathered.facts.mirrors)
        why = "; ".join(places.why) or "no commit tells a place that all tables show"
        raise PositionPurged(
            f"the server's log reaches no batch that the lake shows ({why}): these tables must be "
            f"read from the source: {tables}",
            hint=f"`lockstep adopt --source {work.source.name} --reason …` moves what is there to "
            "_before, and the next run reads them",
        )
    placed = places.found[plan.told.batch]
    return _Basis(gathered, plan, placed, structures_of(work, gathered, plan, placed))


def _told(basis: _Basis) -> Recovery:
    structures, plan = basis.structures, basis.plan
    adopted = tuple(one for one in plan.adopted if one.mirror.table in structures.adopted)
    gone = tuple(one.mirror for one in plan.adopted if one.mirror.table in structures.gone)
    doubts = (*plan.doubts, *_mixed(basis))
    plan = replace(plan, adopted=adopted, left=(*plan.left, *gone), doubts=doubts)
    cut = tuple(one.folder for one in basis.gathered.listed if one.above(plan.told.batch))
    return Recovery(plan, structures.reloads, cut)


def _mixed(basis: _Basis) -> Iterator[str]:
    for one in basis.gathered.listed:
        if any(batch_of(file) is None for file in one.files):
            yield (
                f"somebody else wrote files to {one.folder}: which of its rows came when nothing "
                "tells, so all of them stay"
            )


def _begun(work: Workplace) -> bool:
    """Whether this ledger recovered the source already, and was cut off before the end;
    `ForeignCommit` where it holds the source otherwise."""
    source = work.source.name
    newest = work.ledger.captured_cursor(source)
    if newest is None:
        return False
    batches = work.ledger.live_batches(source, 0, newest.batch)
    states = work.ledger.table_states(source).values()
    folder = work.claims.read(source)
    mine = isinstance(folder, Claim) and folder.ledger == work.ledger.identity()
    taken_over = bool(states) and all(state.adopted is not None for state in states)
    if not mine and len(batches) == 1 and taken_over:
        return True
    raise ForeignCommit(
        f"this ledger holds {source} already, up to batch {newest.batch} at {newest.position.at}",
        hint="where it and the lake disagree, restore both from the same moment, or `lockstep "
        f"adopt --source {source} --reason …`; to give it up for a new one, move it away first "
        "(docs/recovery.md)",
    )


def _end(work: Workplace, lease: Lease) -> None:
    """The batch that stands for the past is acknowledged, and the folder is this ledger's."""
    work.ledger.mark_merged(lease)
    for batch in work.ledger.unfinished(work.source.name):
        work.ledger.acknowledge(lease, batch.id)
    claim_folder(work)


def _sequence(work: Workplace, basis: _Basis) -> int:
    """The number of the last change up to there; commits of before do not tell, the changelogs
    do."""
    told = basis.plan.told
    if told.cursor is not None:
        return told.cursor.sequence
    highest = 0
    for one in basis.gathered.listed:
        version = work.mirrors.version(one.folder)
        if isinstance(one.table, SourceTable) or version is None:
            continue
        for rows in work.mirrors.rows(one.folder, ["_sequence"], version):
            highest = max(highest, pc.max(rows.column(0)).as_py() or 0)
    return highest


def _record(
    work: Workplace,
    lease: Lease,
    basis: _Basis,
    adopted: Iterable[tuple[Adopted, int]],
    author: str,
) -> None:
    ledger, plan, placed = work.ledger, basis.plan, basis.placed
    for left in ledger.unfinished(work.source.name):
        ledger.abandon(lease, left.id, "its recovery did not finish")
    ledger.number_above(lease, batch=plan.batch, txn_version=basis.gathered.txn_version)
    facts = {
        "batch": plan.told.batch,
        "of_ledger": plan.told.ledger,
        "adopted": [str(one.mirror.table) for one, _ in adopted],
        "read_again": [str(table) for table, _ in basis.structures.reloads],
        "doubts": list(plan.doubts),
    }
    reason = f"made from the lake, which shows batch {plan.told.batch} up to {plan.told.at}"
    decision = ledger.decide(lease, Decision("start", RULE, reason, facts, author))
    start: Position = placed.position
    batch = ledger.begin_batch(lease, start, predecessor=None, start_decision=decision.id)
    handovers = [
        _handover(work, one, version, basis.structures.generation(one.mirror.table))
        for one, version in adopted
    ]
    record = CaptureRecord(
        end=start,
        witness=placed.witness,
        changes=_sequence(work, basis),
        transactions=0,
        log_bytes=0,
        segments=(),
        tables=tuple(handover.adopted() for handover in handovers),
        quarantined=(),
        by_gtid=placed.by_gtid,
        history=History((), basis.structures.versions, basis.structures.databases),
        handovers=tuple(handovers),
        extents=tuple(
            Extent(one.mirror.table, plan.told.partial[one.mirror.table])
            for one, _ in adopted
            if one.mirror.table in plan.told.partial
        ),
        scope=work.source.patterns,
    )
    ledger.record_capture(lease, batch.id, record)


def _handover(work: Workplace, one: Adopted, version: int, generation: int) -> Handover:
    """`generation`: of the changelog."""
    mirror = one.mirror
    changelog = changelog_path(work.source.name, mirror.table, generation)
    before = TableState(
        mirror.table,
        TableCondition.ACTIVE,
        mirror.generation,
        mirror.folder,
        changelog,
        changelog_generation=generation,
    )
    return Handover(mirror.table, mirror.generation + 1, mirror.folder, version, 1, before)
