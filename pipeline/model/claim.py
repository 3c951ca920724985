"""The claim: a file in a source's folder of the lake. It names the ledger to which the
folder belongs, and the newest batch that may be in the folder's tables. If claim and
ledger disagree, one of them was restored from a backup or belongs to another
installation, and no run may write. Pure.

Not here: reading and writing the claim (`ports.claims`), each table's log
(`pipeline.model.foreign_commits`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from lockstep.pipeline.model.batch import Batch, BatchState
from lockstep.pipeline.values.errors import ForeignCommit

_DRY_RUN: Final = "without `--yes` it only shows what it would do"


def recovery_hint(source: str) -> str:
    """Return the hint of a refusal, which says how to make ledger and lake agree again."""
    return (
        "restore ledger and lake from the same moment, then run again; or, if this is the ledger "
        f"to go on with, `lockstep recover --source {source}` ({_DRY_RUN})"
    )


@dataclass(frozen=True, slots=True)
class BatchSpan:
    """The batches with ids from `after` (excluded) to `through` (included)."""

    after: int
    through: int

    def __contains__(self, batch: int) -> bool:
        return self.after < batch <= self.through


@dataclass(frozen=True, slots=True)
class Claim:
    """The claim of a source's folder.

    `ledger`: id of the ledger that wrote it. `batch`: the newest batch that may have
    files in the folder's tables, with its end `position` and the moment of its capture.
    `void`: batches, of any ledger, that were undone when the folder went back to an
    earlier batch. Their commits may still be in the tables, but do not count, and their
    numbers are never used again. `is_void_complete`: False if the claim was lost at
    some time, so that `void` may lack some.
    """

    source: str
    ledger: str
    claimed_at: datetime
    batch: int | None = None
    position: str | None = None
    captured_at: datetime | None = None
    void: tuple[BatchSpan, ...] = ()
    is_void_complete: bool = True

    def with_batch(self, batch: Batch) -> Claim:
        """Return the claim to write before the files of that batch are listed in
        changelogs."""
        position = str(batch.captured_end.at)
        return replace(self, batch=batch.id, position=position, captured_at=batch.captured_at)

    def reset_to(self, batch: int, highest: int) -> Claim:
        """Return the claim to write before the tables go back to the end of a batch.
        `highest`: the highest batch number in the folder. Because `batch` stays the
        newest one, every ledger is refused until the tables have gone back."""
        earlier = tuple(span for span in self.void if span.after < batch)
        undone = (BatchSpan(batch, highest),) if highest > batch else ()
        newest = highest if self.batch is None else self.batch
        return replace(self, batch=newest, void=(*earlier, *undone))


@dataclass(frozen=True, slots=True)
class Unclaimed:
    """A folder without a claim. `is_unwritten`: no Lockstep has written a table into it;
    files of a capture that was never recorded do not count."""

    is_unwritten: bool


@dataclass(frozen=True, slots=True)
class LedgerSide:
    """The facts of a ledger about a source, which are compared with the claim of the
    source's folder.

    `id`: that of the ledger. `newest`: the last batch that it captured. `published`:
    the last batch that is merged or acknowledged. `claimed`: the batch with the number
    in the claim; None if the ledger does not have it. `is_claimed_pruned`: upkeep may
    have deleted this batch. `highest_number`: the highest number that the ledger gave
    to a batch or passed over. `contradicted`: batches that were undone in the folder
    although this ledger still has them.
    """

    id: str
    newest: Batch | None
    published: Batch | None
    claimed: Batch | None
    is_claimed_pruned: bool
    highest_number: int
    contradicted: Sequence[BatchSpan] = ()


def judge_claim(claim: Claim, ledger: LedgerSide) -> ForeignCommit | None:
    """Return why a ledger may not continue with a claimed folder, or None if it may."""
    source = claim.source
    ledger_clause = _ledger_clause(ledger.newest)
    hint = recovery_hint(source)
    if claim.ledger != ledger.id:
        lost_ledger_hint = (
            "restore the ledger it belongs to; or, if that is gone for good, `lockstep recover "
            f"--source {source}` makes this one from the lake, `lockstep recover --start-over "
            f"--source {source}` starts over ({_DRY_RUN})"
        )
        return ForeignCommit(
            f"the lake's folder {source} belongs to another ledger, {claim.ledger}, and "
            f"{_claim_clause(claim)}; this ledger is {ledger.id}, and {ledger_clause}",
            hint=lost_ledger_hint if ledger.newest is None else hint,
        )
    if ledger.contradicted:
        return ForeignCommit(
            f"the lake is behind its ledger: with another copy of this ledger, the folder {source} "
            f"went back to the end of batch {ledger.contradicted[0].after}, and the ledger "
            f"{ledger_clause}",
            hint="stop the runs of one of the two copies for good, and go on with the one that "
            f"agrees with the lake; or with this one: `lockstep recover --source {source}` "
            f"({_DRY_RUN})",
        )
    if (
        claim.batch is not None
        and not ledger.is_claimed_pruned
        and (ledger.claimed is None or not _is_claimed_batch(ledger.claimed, claim))
    ):
        return ForeignCommit(
            f"the ledger is behind its lake: the folder {_claim_clause(claim)}, and the ledger "
            f"{ledger_clause}",
            hint=hint,
        )
    undone = max(claim.void, key=lambda span: span.through, default=None)
    if undone is not None and undone.through > ledger.highest_number:
        # The ledger with which the folder went back never gives these numbers again. An
        # older copy of that ledger would give them, and would take commits of the
        # undone batches for its own.
        return ForeignCommit(
            f"the ledger is behind its lake: the folder {source} went back from batch "
            f"{undone.through} to the end of batch {undone.after}, which this ledger does not "
            f"know; the ledger {ledger_clause}",
            hint=hint,
        )
    published = ledger.published
    if published is not None and (claim.batch is None or claim.batch < published.id):
        return ForeignCommit(
            f"the lake is behind its ledger: the folder {_claim_clause(claim)}, and the ledger "
            f"{ledger_clause}",
            hint=hint,
        )
    return None


def judge_unclaimed(
    source: str, folder: Unclaimed, newest: Batch | None, published: Batch | None
) -> ForeignCommit | None:
    """Return why a ledger may not continue with a folder without a claim, or None if it
    may. `newest`, `published`: as in `LedgerSide`."""
    recover = f"`lockstep recover --source {source}`"
    if folder.is_unwritten and published is not None:
        return ForeignCommit(
            f"the lake is behind its ledger: there is no table of {source} in it, and the ledger "
            f"{_ledger_clause(newest)}",
            hint="mount or restore the lake's folder, then run again; or, if it is gone for good, "
            f"{recover} ({_DRY_RUN})",
        )
    if not folder.is_unwritten and newest is None:
        return ForeignCommit(
            f"the ledger is behind its lake: the lake has a folder {source} that another ledger "
            "wrote, and this ledger has captured nothing yet",
            hint=f"restore the ledger that wrote it; or, if it is gone for good, {recover} goes on "
            f"with the lake, `lockstep recover --start-over --source {source}` starts over "
            f"({_DRY_RUN}); else give this source another name or another [lake] path",
        )
    return None


def _is_claimed_batch(batch: Batch, claim: Claim) -> bool:
    return batch.state is not BatchState.CAPTURING and claim.with_batch(batch) == claim


def _claim_clause(claim: Claim) -> str:
    if claim.batch is None:
        return "holds no batch yet"
    position = "" if claim.position is None else f" up to {claim.position}"
    return f"has batch {claim.batch}{position}{_captured_clause(claim.captured_at)}"


def _ledger_clause(newest: Batch | None) -> str:
    if newest is None:
        return "captured nothing yet"
    captured = _captured_clause(newest.captured_at)
    return f"ends with batch {newest.id} at {newest.captured_end.at}{captured}"


def _captured_clause(moment: datetime | None) -> str:
    return "" if moment is None else f", captured {moment:%Y-%m-%d %H:%M:%S} UTC"
