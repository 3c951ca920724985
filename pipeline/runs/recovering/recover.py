"""`lockstep recover`: a ledger that holds nothing of a source goes on with its lake.

Belongs here: what it would do, and doing it. Does not: which batch all mirrors show
(`pipeline.recovery`), asking the lake (`lake_facts`) and the server (`recovered_structures`).

In the lake first, then in the ledger, then the folder's claim; what was cut off is done again.

1. The folder's claim says that all batches after the one it goes back to are void: no later
   recovery goes on after one of them, although mirrors may still show it. Some are not set back,
   because they are read again or are of tables that no earlier batch had, and not each batch is
   one that `_transactions` lists.
2. Changelogs list nothing behind the batch, and mirrors that show later ones show it once more:
   commits of metadata, which the next try finds done.
3. One batch stands for all that was ever captured: it ends where the lake ends, and its changes
   are the numbers that were given. Tables take their mirrors over in a new generation, so no
   transaction and no file of before is taken for one of this ledger's.
4. The folder belongs to this ledger.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

from pipeline.claim import Claim
from pipeline.decisions import Lease
from pipeline.errors import ForeignCommit, PositionPurged, VersionSetUnknown
from pipeline.recovery.decide import choices, decide
from pipeline.recovery.facts import RecoveryPlan
from pipeline.runs.agreement.claim import claim_folder, said_by
from pipeline.runs.context import Workplace
from pipeline.runs.recovering.lake_facts import gather
from pipeline.runs.recovering.recovered_lake import (
    cut_changelogs,
    files_up_to,
    lost_with,
    restore_mirrors,
)
from pipeline.runs.recovering.recovered_ledger import RecoveryBasis, record
from pipeline.runs.recovering.recovered_structures import structures_of
from pipeline.runs.recovering.recovery_place import Places
from pipeline.segment import batch_of
from pipeline.table import TableName


@dataclass(frozen=True, slots=True)
class RecoveryOutcome:
    """What `recover` does. `plan` None: all of it is done but the folder's claim. `held`: it is
    only shown, because this ledger holds the source."""

    plan: RecoveryPlan | None
    reloads: tuple[tuple[TableName, str], ...] = ()
    cut: tuple[str, ...] = ()
    held: bool = False


def foresee(work: Workplace, behind: int | None = None) -> RecoveryOutcome:
    """What it would do; writes nothing. `behind`: the batch to go back behind, which is shown
    with a ledger that holds the source, too. `ForeignCommit`, `PositionPurged`,
    `VersionSetUnknown` where it cannot."""
    try:
        if _begun(work):
            return RecoveryOutcome(None)
    except ForeignCommit:
        if behind is None:
            raise
        return replace(_told(work, _basis(work, behind)), held=True)
    return _told(work, _basis(work, behind))


def recover(
    work: Workplace, lease: Lease, *, author: str, behind: int | None = None
) -> RecoveryOutcome:
    """Do it, and record who wanted it."""
    if _begun(work):
        _end(work, lease)
        return RecoveryOutcome(None)
    basis = _basis(work, behind)
    held = partial(work.ledger.require_held, lease)
    recovery = _told(work, basis)
    assert recovery.plan is not None, "nothing is done yet"
    claim = said_by(work, recovery.plan.told.ledger)
    held()
    work.claims.write(claim.gone_back(recovery.plan.told.batch, recovery.plan.batch))
    adopted, refused = restore_mirrors(work, recovery.plan.adopted, held)
    looked = basis.gathered.folders | {
        adoption.mirror.folder: version for adoption, version in adopted
    }
    looked |= cut_changelogs(work, basis.gathered, basis.plan.told, held)
    reloads = (*recovery.reloads, *refused)
    # Before the batch: once that is recorded, the next try does no more than end.
    for table, why in reloads:
        work.ledger.order_load(lease, table, author=author, reason=why)
    work.ledger.note_looked(lease, looked)
    record(work, lease, basis, adopted, author)
    _end(work, lease)
    return replace(recovery, reloads=reloads)


def _basis(work: Workplace, behind: int | None) -> RecoveryBasis:
    gathered = gather(work)
    if not gathered.facts.mirrors:
        raise ForeignCommit(
            f"the lake has no mirror of {work.source.name} that Lockstep wrote",
            hint=f"mount or restore the lake's folder; or start over: `lockstep run --source "
            f"{work.source.name}`",
        )
    places = Places(work)
    named = choices(gathered.facts)
    if behind is not None and named and behind not in named:
        raise VersionSetUnknown(
            f"the lake does not say where batch {behind} ended: it knows batches {named[0]} to "
            f"{named[-1]}",
            hint="`lockstep versions --list` has the batches, and what each shows",
        )
    plan = decide(gathered.facts, places.reaches, behind)
    if plan is None and behind is not None:
        why = "; ".join(places.why) or "no commit says where it ends"
        raise PositionPurged(
            f"the server's log does not reach the end of batch {behind} ({why})",
            hint="name a later batch: `lockstep versions --list` has them",
        )
    if plan is None:
        tables = ", ".join(str(mirror.table) for mirror in gathered.facts.mirrors)
        why = "; ".join(places.why) or "no commit names a place that all tables show"
        raise PositionPurged(
            f"the server's log reaches no batch that the lake shows ({why}): these tables must be "
            f"read from the source: {tables}",
            hint=f"`lockstep adopt --source {work.source.name} --reason …` moves what is there to "
            "_before, and the next run reads them",
        )
    placed = places.found[plan.told.batch]
    return RecoveryBasis(gathered, plan, placed, structures_of(work, gathered, plan, placed))


def _told(work: Workplace, basis: RecoveryBasis) -> RecoveryOutcome:
    structures, plan = basis.structures, basis.plan
    adopted = tuple(
        adoption for adoption in plan.adopted if adoption.mirror.table in structures.adopted
    )
    gone = tuple(
        adoption.mirror for adoption in plan.adopted if adoption.mirror.table in structures.gone
    )
    doubts = (*plan.doubts, *_mixed(work, basis))
    plan = replace(plan, adopted=adopted, left=(*plan.left, *gone), doubts=doubts)
    cut = tuple(
        changelog.folder
        for changelog in basis.gathered.listed
        if changelog.changes(plan.told.batch)
    )
    return RecoveryOutcome(plan, structures.reloads, cut)


def _mixed(work: Workplace, basis: RecoveryBasis) -> Iterator[str]:
    batch = basis.plan.told.batch
    for changelog in basis.gathered.listed:
        if lost := lost_with(work, changelog, batch):
            yield (
                f"changes that were captured are no longer in {changelog.folder}: {lost[0]}, and "
                "somebody else put them into a file with later ones"
            )
        elif any(batch_of(file.path) is None for file in files_up_to(work, changelog, batch)):
            yield (
                f"somebody else wrote files to {changelog.folder}: nothing says when its rows came"
                ", so all of them stay"
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
