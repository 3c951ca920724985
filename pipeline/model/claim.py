"""The claim: a file in a source's folder of the lake. It names the ledger to which the
folder belongs, and the newest batch that may be in the folder's tables. If claim and
ledger disagree, one of them was restored from a backup or belongs to another
installation, and no run may write. Pure.

Not here: reading and writing it (`ports.claims`), each table's log
(`pipeline.model.foreign_commits`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from lockstep.pipeline.model.batch import Batch, BatchState
from lockstep.pipeline.values.errors import ForeignCommit, LockstepError

_RECOVER: Final = "`lockstep recover --source {source}`"

_RESTART: Final = "`lockstep recover --start-over --source {source}` starts over"

_DRY: Final = "without `--yes` it only shows what it would do"

HINT: Final = (
    "restore ledger and lake from the same moment, then run again; or, if this is the ledger to "
    f"go on with, {_RECOVER} ({_DRY})"
)
"""The hint of a refusal; `{source}` becomes the source's name."""

_LOST_LEDGER_HINT: Final = (
    f"restore the ledger it belongs to; or, if that is gone for good, {_RECOVER} makes this one "
    f"from the lake, {_RESTART} ({_DRY})"
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
    numbers are never used again. `complete`: False if the claim was lost at some time,
    so that `void` may lack some.
    """

    source: str
    ledger: str
    claimed_at: datetime
    batch: int | None = None
    position: str | None = None
    captured_at: datetime | None = None
    void: tuple[BatchSpan, ...] = ()
    complete: bool = True

    def with_batch(self, batch: Batch) -> Claim:
        """Return the claim to write before the files of that batch are listed in
        changelogs."""
        position = None if batch.end is None else str(batch.end.at)
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
    """A folder without a claim. `empty`: it has no table that any Lockstep wrote
    either; files of a capture that was never recorded do not count."""

    empty: bool


def judge_claim(
    source: str,
    folder: Claim | Unclaimed,
    ledger: str,
    newest: Batch | None,
    published: Batch | None,
    batch: Callable[[int], Batch | None],
    pruned: Callable[[], int],
    given: Callable[[], int],
    contradicted: Sequence[BatchSpan] = (),
) -> LockstepError | None:
    """Return why a ledger may not continue with a folder, or None if it may.

    `newest`: the last batch that the ledger captured; `published`: the last batch that
    is merged or acknowledged. `batch` returns the ledger's batch with a number, or None
    if the ledger never gave that number; it may also return None for numbers below
    `pruned()`, whose batches upkeep may have deleted. `given` returns the highest
    number that the ledger gave to a batch or passed over. `contradicted`: batches that
    were undone in the folder although this ledger still has them.
    """
    if isinstance(folder, Unclaimed):
        return _unclaimed(source, folder, newest, published)
    ledger_ends = _ledger_clause(newest)
    if folder.ledger != ledger:
        return _refusal(
            source,
            f"the lake's folder {source} belongs to another ledger ({folder.ledger}, "
            f"{_claims(folder)}); this one is {ledger}, and {ledger_ends}",
            HINT if newest is not None else _LOST_LEDGER_HINT,
        )
    if contradicted:
        return _refusal(
            source,
            f"the lake is behind its ledger: the folder {source} went back to the end of batch "
            f"{contradicted[0].after}, and {ledger_ends}",
        )
    if folder.batch is not None:
        recorded = batch(folder.batch)
        forgotten = recorded is None and folder.batch < pruned()
        if not forgotten and (recorded is None or not _is_claimed_batch(recorded, folder)):
            return _refusal(
                source,
                f"the ledger is behind its lake: the folder {_claims(folder)}, and {ledger_ends}",
            )
    undone = max(folder.void, key=lambda span: span.through, default=None)
    if undone is not None and undone.through > given():
        # The ledger with which the folder went back never gives these numbers again. An
        # older copy of that ledger would, and would take commits of the undone batches
        # for its own.
        return _refusal(
            source,
            f"the ledger is behind its lake: the folder {source} went back from batch "
            f"{undone.through} to the end of batch {undone.after}, which this ledger does not "
            f"know; {ledger_ends}",
        )
    if published is not None and (folder.batch is None or folder.batch < published.id):
        return _refusal(
            source,
            f"the lake is behind its ledger: the folder {_claims(folder)}, and {ledger_ends}",
        )
    return None


def _unclaimed(
    source: str, folder: Unclaimed, newest: Batch | None, published: Batch | None
) -> LockstepError | None:
    if folder.empty and published is not None:
        return _refusal(
            source,
            f"the lake is behind its ledger: there is no table of {source} in it, and "
            f"{_ledger_clause(newest)}",
            "mount or restore the lake's folder, then run again; or, if it is gone for good, "
            f"{_RECOVER} ({_DRY})",
        )
    if not folder.empty and newest is None:
        return _refusal(
            source,
            f"the ledger is behind its lake: the lake has a folder {source} that another ledger "
            "wrote, and this ledger has captured nothing yet",
            f"restore the ledger that wrote it; or, if it is gone for good, {_RECOVER} goes on "
            f"with the lake, {_RESTART} ({_DRY}); else give this source another name or "
            "another [lake] path",
        )
    return None


def _is_claimed_batch(batch: Batch, folder: Claim) -> bool:
    end = None if batch.end is None else str(batch.end.at)
    return (
        batch.state is not BatchState.CAPTURING
        and end == folder.position
        and batch.captured_at == folder.captured_at
    )


def _claims(folder: Claim) -> str:
    if folder.batch is None:
        return "holds no batch yet"
    since = "" if folder.captured_at is None else f", captured {_utc_text(folder.captured_at)}"
    place = "" if folder.position is None else f" up to {folder.position}"
    return f"has batch {folder.batch}{place}{since}"


def _ledger_clause(batch: Batch | None) -> str:
    if batch is None:
        return "the ledger captured nothing yet"
    end = None if batch.end is None else batch.end.at
    since = "" if batch.captured_at is None else f", captured {_utc_text(batch.captured_at)}"
    return f"the ledger ends with batch {batch.id} at {end}{since}"


def _utc_text(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC"


def _refusal(source: str, message: str, hint: str = HINT) -> ForeignCommit:
    return ForeignCommit(message, hint=hint.format(source=source))
