"""Checks that a source's folder in the lake belongs to this ledger, before anything is
read or written. The claim is a file in the folder that names the owning ledger and its
newest batch (a part of the log that a run captured at once)."""

from __future__ import annotations

from collections.abc import Iterable

from lockstep.pipeline.model.batch import Batch, BatchState
from lockstep.pipeline.model.claim import (
    BatchSpan,
    Claim,
    LedgerSide,
    Unclaimed,
    judge_claim,
    judge_unclaimed,
)
from lockstep.pipeline.run.agreement.lake_logs import (
    claim_obstacle,
    disagreeing_tables,
    unrecorded_commit_error,
)
from lockstep.pipeline.run.context import RunPorts
from lockstep.pipeline.values.errors import ForeignCommit, LockstepError

_PUBLISHED = (BatchState.MERGED, BatchState.ACKNOWLEDGED)


def require_agreement(ports: RunPorts) -> None:
    """Raise `ForeignCommit` if the folder belongs to another ledger, or if its history
    differs from the ledger's; nothing is written."""
    if (error := claim_error(ports)) is not None:
        raise error


def require_claim(ports: RunPorts) -> None:
    """Raise as `require_agreement` does. Claim the folder for this ledger if nobody has
    yet."""
    claim = ports.claims.read(ports.source.name)
    if (error := claim_error(ports, claim)) is not None:
        raise error
    if isinstance(claim, Unclaimed):
        claim_folder(ports)


def claim_error(ports: RunPorts, claim: Claim | Unclaimed | None = None) -> LockstepError | None:
    """Return why the ledger must not continue with the folder, or None; nothing is
    written."""
    source = ports.source.name
    try:
        claim = ports.claims.read(source) if claim is None else claim
    except ForeignCommit as unreadable:
        return unreadable
    batches = _newest_batches(ports)
    newest = next(iter(batches), None)
    published = next((batch for batch in batches if batch.state in _PUBLISHED), None)
    if isinstance(claim, Unclaimed):
        error = judge_unclaimed(
            source, claim, newest, published if _expects_tables(ports) else None
        )
        return error if error is not None or claim.is_unwritten else _disagreement(ports)
    claimed = None
    is_claimed_pruned = False
    if claim.batch is not None:
        # The claim may name a batch that was abandoned since.
        claimed = _batch_with_id(batches, claim.batch) or _batch_with_id(
            ports.ledger.batches(source, limit=None), claim.batch
        )
        is_claimed_pruned = claimed is None and claim.batch < ports.ledger.pruned_through(source)
    return judge_claim(
        claim,
        LedgerSide(
            ports.ledger.identity(),
            newest=newest,
            published=published,
            claimed=claimed,
            is_claimed_pruned=is_claimed_pruned,
            highest_number=ports.ledger.highest_number() if claim.void else 0,
            contradicted=contradicted_spans(ports, claim),
        ),
    )


def _disagreement(ports: RunPorts) -> LockstepError | None:
    """Return why the tables of a folder without a claim do not fit the ledger."""
    tables = disagreeing_tables(ports)
    if not tables:
        return claim_obstacle(ports)
    # While the source is refused, no run carries out the order that the table's hint names.
    source = ports.source.name
    return ForeignCommit(
        f"the ledger and the lake's folder {source} disagree: {tables[0].reason}",
        hint="mount or restore the lake's folder, or restore the ledger that belongs to it, then "
        f"run again; or `lockstep recover --source {source}` makes them agree (without `--yes` it "
        "only shows what it would do)",
    )


def lake_error(ports: RunPorts) -> LockstepError | None:
    """Return the error with which the next run would refuse the source; nothing is
    written."""
    return claim_error(ports) or unrecorded_commit_error(ports)


def contradicted_spans(ports: RunPorts, claim: Claim) -> list[BatchSpan]:
    """Return the spans of batches that the claim declares void although this ledger
    still has them. Either a recovery did not finish, or this ledger was given up for
    another one."""

    def has_batches(span: BatchSpan) -> bool:
        batches = ports.ledger.live_batches(ports.source.name, span.after + 1, span.through)
        return any(batch.state is not BatchState.CAPTURING for batch in batches)

    return [span for span in claim.void if has_batches(span)]


def claim_of(ports: RunPorts, ledger: str) -> Claim:
    """Return the folder's claim. If it does not exist or cannot be read, return one for
    `ledger` without batches."""
    source = ports.source.name
    try:
        claim = ports.claims.read(source)
    except ForeignCommit:
        return Claim(source, ledger, ports.clock(), is_void_complete=False)
    if isinstance(claim, Claim):
        return claim
    return Claim(source, ledger, ports.clock(), is_void_complete=claim.is_unwritten)


def claim_folder(ports: RunPorts) -> None:
    """Write a claim of the folder for this ledger. Void batches stay void."""
    source, ledger = ports.source.name, ports.ledger.identity()
    old_claim = claim_of(ports, ledger)
    claim = Claim(
        source,
        ledger,
        ports.clock(),
        void=old_claim.void,
        is_void_complete=old_claim.is_void_complete,
    )
    newest = next(iter(_newest_batches(ports)), None)
    ports.claims.write(claim if newest is None else claim.with_batch(newest))


def claim_up_to(ports: RunPorts, batch: Batch) -> None:
    """Record a batch in the folder's claim, before the tables have anything of it. A
    restored ledger that does not know the batch is then recognized as being behind its
    lake. Raise `ForeignCommit` if the folder was meanwhile claimed for a batch that
    this ledger does not know.
    """
    claim = ports.claims.read(ports.source.name)
    assert isinstance(claim, Claim), "a run claims its folder before it publishes"
    new_claim = claim.with_batch(batch)
    if new_claim == claim:
        return
    # A run with another copy of this ledger (a restored backup) holds the lock of that
    # copy, so both runs may be active.
    if (error := claim_error(ports, claim)) is not None:
        raise error
    # Tables are merged one by one, so a later batch may already be claimed: its claim
    # stays.
    if claim.batch is None or batch.id >= claim.batch:
        ports.claims.write(new_claim)


def _expects_tables(ports: RunPorts) -> bool:
    """Return whether the ledger records any table in the lake. Batches without captured
    rows may be acknowledged although no table exists."""
    source = ports.source.name
    states = ports.ledger.table_states(source).values()
    return bool(ports.ledger.examined_versions(source)) or any(
        state.mirror_schema_version for state in states
    )


def _newest_batches(ports: RunPorts) -> list[Batch]:
    """Return the last acknowledged batch and those that were captured after it, newest
    first."""
    source = ports.source.name
    acknowledged = ports.ledger.cursors(source).acknowledged
    first = 0 if acknowledged is None else acknowledged.batch
    batches = ports.ledger.live_batches(source, first)
    return [batch for batch in reversed(batches) if batch.state is not BatchState.CAPTURING]


def _batch_with_id(batches: Iterable[Batch], batch_id: int) -> Batch | None:
    return next((batch for batch in batches if batch.id == batch_id), None)
