"""Whether a ledger and a source's folder in the lake belong together, asked before anything
is read or written.
"""

from __future__ import annotations

from pipeline.batch import Batch, BatchState
from pipeline.claim import BatchSpan, Claim, Unclaimed, judge_claim
from pipeline.errors import ForeignCommit, LockstepError
from pipeline.runs.agreement.lake_logs import changelogs_parted, parted, unknown_batches
from pipeline.runs.context import Workplace

_PUBLISHED = (BatchState.MERGED, BatchState.ACKNOWLEDGED)
_NEWEST = 50


def require_agreement(work: Workplace) -> None:
    """`ForeignCommit` where the folder belongs to another ledger, or the two tell different
    histories; writes nothing."""
    if (error := disagreement(work)) is not None:
        raise error


def require_claim(work: Workplace) -> None:
    """`require_agreement`; a folder that nobody claimed, a new one or one of a version that made
    no claims, is this ledger's from here on."""
    folder = work.claims.read(work.source.name)
    if (error := disagreement(work, folder)) is not None:
        raise error
    if isinstance(folder, Unclaimed):
        claim_folder(work)


def disagreement(work: Workplace, folder: Claim | Unclaimed | None = None) -> LockstepError | None:
    """Why the ledger may not go on with the folder; writes nothing."""
    source = work.source.name
    folder = work.claims.read(source) if folder is None else folder
    batches = work.ledger.batches(source, limit=_NEWEST)
    newest = next((batch for batch in batches if _captured(batch)), None)
    published = next((batch for batch in batches if batch.state in _PUBLISHED), None)
    if isinstance(folder, Unclaimed) and not _expects_tables(work):
        published = None
    error = judge_claim(
        source,
        folder,
        work.ledger.identity(),
        newest,
        published,
        lambda number: _batch(work, batches, number),
        lambda: work.ledger.pruned_through(source),
        contradicted(work, folder),
    )
    if error is None and isinstance(folder, Unclaimed) and not folder.empty:
        tables = parted(work)
        if tables:
            return ForeignCommit(
                f"the ledger and the lake's folder {source} disagree: {tables[0].why}",
                hint=tables[0].hint,
            )
        return unknown_batches(work)
    return error


def lake_trouble(work: Workplace) -> LockstepError | None:
    """What the next run would refuse the source for; writes nothing."""
    return disagreement(work) or changelogs_parted(work)


def contradicted(work: Workplace, folder: Claim | Unclaimed) -> list[BatchSpan]:
    """What the folder went back from although this ledger still has it: a recovery did not finish,
    or this ledger was given up for another one."""

    def known(span: BatchSpan) -> bool:
        batches = work.ledger.live_batches(work.source.name, span.after + 1, span.through)
        return any(_captured(batch) for batch in batches)

    return [] if isinstance(folder, Unclaimed) else [span for span in folder.void if known(span)]


def said_by(work: Workplace, ledger: str) -> Claim:
    """Return the folder's claim; where there is none, or it cannot be read, one of this ledger that
    says nothing else."""
    source = work.source.name
    try:
        folder = work.claims.read(source)
    except ForeignCommit:
        return Claim(source, ledger, work.clock(), complete=False)
    if isinstance(folder, Claim):
        return folder
    return Claim(source, ledger, work.clock(), complete=folder.empty)


def claim_folder(work: Workplace) -> Claim:
    """The folder belongs to this ledger from here on. What it went back from stays void."""
    source, ledger = work.source.name, work.ledger.identity()
    before = said_by(work, ledger)
    claim = Claim(source, ledger, work.clock(), void=before.void, complete=before.complete)
    batches = work.ledger.batches(source, limit=_NEWEST)
    newest = next((batch for batch in batches if _captured(batch)), None)
    if newest is not None:
        claim = claim.at(newest)
    work.claims.write(claim)
    return claim


def claim_up_to(work: Workplace, batch: Batch) -> None:
    """Before anything of a batch is in the tables, the folder says so: a ledger that does not
    know the batch is known to be behind."""
    folder = work.claims.read(work.source.name)
    assert isinstance(folder, Claim), "a run claims its folder before it publishes"
    claim = folder.at(batch)
    # A later batch may be merged already, where tables are merged one by one: its claim stays.
    if claim != folder and (folder.batch is None or batch.id >= folder.batch):
        work.claims.write(claim)


def _expects_tables(work: Workplace) -> bool:
    """Whether the ledger knows of a table in the lake. A source in which nothing was written
    yet has none, whatever was acknowledged."""
    source = work.source.name
    states = work.ledger.table_states(source).values()
    return bool(work.ledger.looked(source)) or any(state.mirror_version for state in states)


def _captured(batch: Batch) -> bool:
    return batch.state not in (BatchState.CAPTURING, BatchState.ABANDONED)


def _batch(work: Workplace, batches: list[Batch], number: int) -> Batch | None:
    known = {batch.id: batch for batch in batches}
    if number in known:
        return known[number]
    found = work.ledger.live_batches(work.source.name, number, number)
    return found[0] if found else None
