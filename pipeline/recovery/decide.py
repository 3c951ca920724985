"""Which of a ledger and a lake follows the other, and where a ledger that is made from a lake goes
on. Pure.

Belongs here: which batch is the newest that all mirrors show, and what becomes of each table. Does
not: reaching that batch's end in a log, structures (`pipeline.runs.recovering.recover`).

A mirror shows the end of batch N exactly if it has a version whose last batch is not behind N, and
no batch between the two has anything of the table: files in its changelog, a place among the tables
that a commit to `_transactions` says the batch touched, or the beginning of a later write. That
version is taken, and made the newest once more if another one is. So nothing is applied twice,
whether rows have a key or not, and whatever a statement did to the columns meanwhile. A table of
which all that the lake has lies behind N begins anew.

N is one of the `NEAR` newest batches, the one for which the fewest tables must be read from the
source, of those the newest; where the log reaches none of them, an older one. Only batches count
that were published in all tables: `_transactions` has them, or a mirror shows them. Where a person
named a batch to go back behind, N is the newest of these up to that one.

The lake has gone back to an earlier batch if a run was undone, or if a ledger went on that did not
know the later ones. Whatever it still shows of these is void; the folder's claim says which they
are (`pipeline.claim`). If the claim may lack some, N is a batch that `_transactions` has: void ones
are not listed there.

| of two ledgers' commits | |
|---|---|
| those of the ledger that the folder belongs to | count |
| those of one whose batches all have lower numbers: it was followed by this one | count |
| any other's | show nothing that counts |
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from enum import StrEnum
from typing import Final

from pipeline.recovery.facts import (
    Adopted,
    LakeFacts,
    MirrorFacts,
    RecoveryPlan,
    ShownBatch,
    Told,
    newest_of_each,
)

NEAR: Final = 8
"""So many batches are read again at most, so that a table need not be read from the source."""

DROPPED: Final = "dropped"
"""How a table stands still that the source dropped."""


class Standing(StrEnum):
    """What a ledger has of a source. `MADE`: what it was made of from the lake, which shows
    just that; the recovery did not end."""

    NOTHING = "nothing"
    MADE = "made"
    HOLDS = "holds"


class Case(StrEnum):
    """What `recover` does."""

    AGREE = "agree"
    """Nothing."""
    FROM_LAKE = "from-lake"
    """The ledger is made from the lake."""
    FINISH = "finish"
    """It was, and has yet to claim the folder."""
    KEEP_LEDGER = "keep-ledger"
    """The ledger goes on as it is, and the lake follows it."""
    START_OVER = "start-over"
    """The folder moves away; the next run is a first run."""
    REFUSED = "refused"
    """The ledger has to be given up first; what would be done then can be shown."""


def case_of(
    standing: Standing,
    differs: Callable[[], bool],
    there: Callable[[], bool],
    *,
    back_to: bool = False,
    start_over: bool = False,
) -> Case:
    """`differs`: whether the ledger and the lake tell different things; `there`: whether the
    lake has the source's folder. Either is asked only where it counts. `back_to`, `start_over`:
    what a person wants."""
    if standing is Standing.NOTHING:
        if not start_over:
            return Case.FROM_LAKE
        return Case.START_OVER if there() else Case.AGREE
    if start_over:
        return Case.REFUSED
    if standing is Standing.MADE:
        return Case.FINISH
    if back_to:
        return Case.REFUSED
    return Case.KEEP_LEDGER if differs() else Case.AGREE


def decide(
    facts: LakeFacts, reached: Callable[[Told], bool], behind: int | None = None
) -> RecoveryPlan | None:
    """The best batch that the source's log reaches; None where it reaches none, or there is none.
    `reached` is asked for one batch after another, the best first. `behind`: the batch that a
    person named."""
    highest = highest_of(facts)
    facts, doubts = _trusted(facts)
    points = _points(facts)
    if behind is not None:
        near = [point.batch for point in points if point.batch <= behind]
        points = [point for point in points if point.batch == max(near, default=None)]
    found = [_as_of(facts, point) for point in points]
    found.sort(key=lambda one: -one.told.batch)
    found[:NEAR] = sorted(found[:NEAR], key=lambda one: (len(one.reloads), -one.told.batch))
    best = next((one for one in found if reached(one.told)), None)
    if best is None:
        return None
    return replace(best, batch=highest, doubts=(*doubts, *_doubts(facts, best.told)))


def choices(facts: LakeFacts) -> range:
    """Return the batches that a person may name; for one that the lake does not tell of, the
    newest one before it is taken."""
    points = [one.batch for one in _points(_trusted(facts)[0])]
    return range(min(points), highest_of(facts) + 1) if points else range(0)


def highest_of(facts: LakeFacts) -> int:
    """Return the highest number of any batch that the lake tells of, void ones included."""
    return max(_numbers(facts), default=0)


def _trusted(facts: LakeFacts) -> tuple[LakeFacts, list[str]]:
    """With all that is told, and without what does not count: batches that are void, ledgers
    that wrote beside the one the folder belongs to."""
    told = [*facts.told, *(one for mirror in facts.mirrors for one in mirror.told)]
    numbers: dict[str, set[int]] = {}
    for one in told:
        if facts.counts(one.batch):
            numbers.setdefault(one.ledger, set()).add(one.batch)
    owner = facts.owner
    if owner not in numbers:
        owner = max(numbers, key=lambda number: max(numbers[number]), default=None)
    if owner is None:
        return replace(facts, told=()), []
    least = min(numbers[owner])
    others = {one for one, of in numbers.items() if one != owner and max(of) >= least}

    def counts(batch: int, ledger: str) -> bool:
        return facts.counts(batch) and ledger not in others

    mirrors = tuple(
        replace(
            mirror,
            shown=tuple(shown for shown in mirror.shown if counts(shown.last, shown.ledger)),
            begins=frozenset(filter(facts.counts, mirror.begins)),
            published=frozenset(filter(facts.counts, mirror.published)),
        )
        for mirror in facts.mirrors
    )
    doubts = [
        f"the ledger {one} wrote to this lake too, besides {owner}: what it wrote does not count"
        for one in sorted(others)
    ]
    trusted = tuple(one for one in told if counts(one.batch, one.ledger))
    return replace(facts, owner=owner, told=trusted, mirrors=mirrors), doubts


def _points(facts: LakeFacts) -> list[Told]:
    """The batches that may be gone on behind, one `Told` for each."""
    shown = max((one.last for mirror in facts.mirrors for one in mirror.shown), default=-1)
    if not facts.complete and any(told.whole for told in facts.told):
        shown = -1
    found: dict[int, Told] = {}
    for told in facts.told:
        known = found.get(told.batch)
        if (told.whole or told.batch <= shown) and (known is None or _tells(told) > _tells(known)):
            found[told.batch] = told
    return list(found.values())


def _tells(told: Told) -> tuple[bool, bool]:
    """How much is told, to be compared."""
    return told.whole, told.cursor.gtids is not None


def _as_of(facts: LakeFacts, told: Told) -> RecoveryPlan:
    """The tables as of one batch."""
    said = max(
        (one for one in facts.told if one.whole and one.batch <= told.batch),
        key=lambda one: one.batch,
        default=None,
    )
    adopted, reloads, left = [], [], []
    for mirror in newest_of_each(facts.mirrors, told.batch):
        shown = _exact(facts, mirror, told.batch)
        condition = None if said is None else said.still.get(mirror.table)
        back = said is not None and shown is not None and shown.last > said.batch
        if condition == DROPPED and not back:
            left.append(mirror)
        elif condition is not None and not back:
            reloads.append((mirror.table, f"it was {condition} by then"))
        elif min(_touching(facts, mirror), default=0) > told.batch:
            continue
        elif shown is None:
            why = f"no version of its mirror shows exactly what there was at {told.at}"
            reloads.append((mirror.table, why))
        else:
            adopted.append(Adopted(mirror, shown))
    for table, first in facts.unmirrored:
        if first <= told.batch:
            reloads.append((table, "it has no mirror in the lake"))
    return RecoveryPlan(told, tuple(adopted), tuple(reloads), tuple(left))


def _exact(facts: LakeFacts, mirror: MirrorFacts, batch: int) -> ShownBatch | None:
    """The mirror's newest version that shows the end of the batch and nothing else."""
    shown = next((one for one in mirror.shown if one.last <= batch), None)
    if shown is None or any(shown.last < one <= batch for one in _touching(facts, mirror)):
        return None
    return shown


def _touching(facts: LakeFacts, mirror: MirrorFacts) -> Iterator[int]:
    yield from mirror.published
    yield from mirror.begins
    for told in facts.told:
        if mirror.table in told.touched:
            yield told.batch


def _numbers(facts: LakeFacts) -> Iterator[int]:
    yield facts.highest
    yield from (span.through for span in facts.void)
    yield from (told.batch for told in facts.told)
    for mirror in facts.mirrors:
        yield from (one.last for one in mirror.shown)
        yield from mirror.published
        yield from mirror.begins


def _doubts(facts: LakeFacts, told: Told) -> Iterator[str]:
    if not told.whole:
        yield (
            "no commit to _transactions describes this batch: nothing says which tables had been "
            "quarantined or were partial"
        )
    if not facts.complete and not told.whole:
        yield (
            "the folder's claim may lack batches that it went back from: this one may have been "
            "undone"
        )
    if told.prepared:
        yield (
            f"{told.prepared} XA transactions were prepared by then: a run that finds one of them "
            "committed stops there"
        )
