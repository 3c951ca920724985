"""Decides whether a ledger follows its lake or the lake its ledger, and at the end of which batch a
ledger that is made from a lake continues. Pure.

Not here: finding the batch's end in a log, structures (`pipeline.run.recovery.recover`).

A mirror shows exactly the end of batch N if it has a version whose last batch is N or earlier, and
no batch after that one and up to N concerns the table. A batch concerns it if the table's changelog
has files of it, if its commit to `_transactions` lists the table, or if a later write begins with
it. The new ledger continues with that version. If the mirror has a newer one, it is set back. So no
change is applied twice, also to rows without a key, and whatever happened to the columns. A table
of which the lake has only later batches is captured as a new one.

N is one of the `NEAR` newest batches: the one for which the fewest tables have to be read from the
source, and of several the newest. If the source's log reaches none of them, N is an older one. N
must have been published in all tables, so `_transactions` has it, or a mirror shows it. If a person
names a batch to go back to, N is the newest of these up to that one.

If a run was undone, or another ledger continued from an earlier batch, the lake went back to that
batch. What it still shows of later batches is void; the folder's claim says which they are
(`pipeline.model.claim`). If the claim may be incomplete, N is a batch that `_transactions` has,
because void ones are not listed there.

| commits of | |
|---|---|
| the ledger that owns the folder | count |
| a ledger whose batches all have lower numbers, so that the owner continued it | count |
| any other ledger | do not count |
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from enum import StrEnum
from typing import Final

from lockstep.pipeline.recovery.facts import (
    Adopted,
    BatchRecord,
    LakeFacts,
    MirrorFacts,
    RecoveryPlan,
    ShownBatch,
    newest_of_each,
)

NEAR: Final = 8
"""Number of newest batches among which N is chosen by the tables that it saves from being read."""

DROPPED: Final = "dropped"
"""The condition of a table that was dropped at the source."""


class LedgerContent(StrEnum):
    """The content of a ledger about a source. `MADE`: only what a recovery from the lake, which did
    not end, has recorded."""

    NOTHING = "nothing"
    MADE = "made"
    HOLDS = "holds"


class Case(StrEnum):
    """The action of `lockstep recover`."""

    AGREE = "agree"
    """Nothing, because ledger and lake agree."""
    FROM_LAKE = "from-lake"
    """It makes the ledger from the lake."""
    FINISH = "finish"
    """It ends an earlier recovery from the lake: the ledger claims the folder."""
    KEEP_LEDGER = "keep-ledger"
    """It keeps the ledger, and the lake goes back to it."""
    START_OVER = "start-over"
    """It moves the folder away, so that the next run is the first one."""
    REFUSED = "refused"
    """It refuses until the ledger is given up, but can show what it would do then."""


def case_of(
    standing: LedgerContent,
    differs: Callable[[], bool],
    has_folder: Callable[[], bool],
    *,
    back_to: bool = False,
    start_over: bool = False,
) -> Case:
    """Return what to do. `differs`: returns whether ledger and lake disagree; `has_folder`: returns
    whether the lake has the source's folder. Either is called only if it is needed. `back_to`,
    `start_over`: the options that a person gave."""
    if standing is LedgerContent.NOTHING:
        if not start_over:
            return Case.FROM_LAKE
        return Case.START_OVER if has_folder() else Case.AGREE
    if start_over:
        return Case.REFUSED
    if standing is LedgerContent.MADE:
        return Case.FINISH
    if back_to:
        return Case.REFUSED
    return Case.KEEP_LEDGER if differs() else Case.AGREE


def decide(
    facts: LakeFacts, reached: Callable[[BatchRecord], bool], behind: int | None = None
) -> RecoveryPlan | None:
    """Return the plan for the best batch whose end the source's log has, or None if there is none.
    `reached`: returns whether the log has a batch's end; it is called for the best batch first.
    `behind`: the batch that a person named."""
    highest = highest_of(facts)
    facts, doubts = _trusted(facts)
    points = _points(facts)
    if behind is not None:
        near = [point.batch for point in points if point.batch <= behind]
        points = [point for point in points if point.batch == max(near, default=None)]
    plans = [_as_of(facts, point) for point in points]
    plans.sort(key=lambda plan: -plan.told.batch)
    plans[:NEAR] = sorted(plans[:NEAR], key=lambda plan: (len(plan.reloads), -plan.told.batch))
    best = next((plan for plan in plans if reached(plan.told)), None)
    if best is None:
        return None
    return replace(best, batch=highest, doubts=(*doubts, *_doubts(facts, best.told)))


def nameable_batches(facts: LakeFacts) -> range:
    """Return the batches that a person may name. For one that cannot be chosen, `decide` takes the
    newest one before it."""
    points = [point.batch for point in _points(_trusted(facts)[0])]
    return range(min(points), highest_of(facts) + 1) if points else range(0)


def highest_of(facts: LakeFacts) -> int:
    """Return the highest number of any batch in the lake, including void ones."""
    return max(_numbers(facts), default=0)


def _trusted(facts: LakeFacts) -> tuple[LakeFacts, list[str]]:
    """Return the facts with the records of all tables' commits, but without void batches and
    without ledgers that wrote beside the owner of the folder; and a doubt for each of these."""
    records = [*facts.told, *(record for mirror in facts.mirrors for record in mirror.told)]
    batches: dict[str, set[int]] = {}
    for record in records:
        if facts.counts(record.batch):
            batches.setdefault(record.ledger, set()).add(record.batch)
    owner = facts.owner
    if owner not in batches:
        owner = max(batches, key=lambda ledger: max(batches[ledger]), default=None)
    if owner is None:
        return replace(facts, told=()), []
    first = min(batches[owner])
    others = {ledger for ledger, own in batches.items() if ledger != owner and max(own) >= first}

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
        f"the ledger {other} wrote to this lake too, besides {owner}: what it wrote does not count"
        for other in sorted(others)
    ]
    trusted = tuple(record for record in records if counts(record.batch, record.ledger))
    return replace(facts, owner=owner, told=trusted, mirrors=mirrors), doubts


def _points(facts: LakeFacts) -> list[BatchRecord]:
    """Return the most complete record of each batch after which a ledger can continue."""
    shown = max((version.last for mirror in facts.mirrors for version in mirror.shown), default=-1)
    if not facts.complete and any(record.whole for record in facts.told):
        shown = -1
    points: dict[int, BatchRecord] = {}
    for record in sorted(
        facts.told, key=lambda told: (told.whole, told.cursor.gtids is not None), reverse=True
    ):
        if record.whole or record.batch <= shown:
            points.setdefault(record.batch, record)
    return list(points.values())


def _as_of(facts: LakeFacts, told: BatchRecord) -> RecoveryPlan:
    """Return the plan for a ledger that continues after one batch."""
    said = max(
        (record for record in facts.told if record.whole and record.batch <= told.batch),
        key=lambda record: record.batch,
        default=None,
    )
    adopted, reloads, left = [], [], []
    for mirror in newest_of_each(facts.mirrors, told.batch):
        shown = _exact(facts, mirror, told.batch)
        condition = None if said is None else said.still.get(mirror.table)
        resumed = said is not None and shown is not None and shown.last > said.batch
        if condition == DROPPED and not resumed:
            left.append(mirror)
        elif condition is not None and not resumed:
            reloads.append((mirror.table, f"it was {condition} by then"))
        elif min(_touching(facts, mirror), default=0) > told.batch:
            continue
        elif shown is None:
            why = f"no version of its mirror shows exactly the table at {told.at}"
            reloads.append((mirror.table, why))
        else:
            adopted.append(Adopted(mirror, shown))
    for table, first in facts.unmirrored:
        if first <= told.batch:
            reloads.append((table, "it has no mirror in the lake"))
    return RecoveryPlan(told, tuple(adopted), tuple(reloads), tuple(left))


def _exact(facts: LakeFacts, mirror: MirrorFacts, batch: int) -> ShownBatch | None:
    """Return the mirror's version that shows exactly the end of the batch, or None."""
    shown = next((version for version in mirror.shown if version.last <= batch), None)
    if shown is None or any(shown.last < other <= batch for other in _touching(facts, mirror)):
        return None
    return shown


def _touching(facts: LakeFacts, mirror: MirrorFacts) -> Iterator[int]:
    """Yield the batches that concern the mirror's table."""
    yield from mirror.published
    yield from mirror.begins
    for record in facts.told:
        if mirror.table in record.touched:
            yield record.batch


def _numbers(facts: LakeFacts) -> Iterator[int]:
    yield facts.highest
    yield from (span.through for span in facts.void)
    yield from (record.batch for record in facts.told)
    for mirror in facts.mirrors:
        yield from (version.last for version in mirror.shown)
        yield from mirror.published
        yield from mirror.begins


def _doubts(facts: LakeFacts, told: BatchRecord) -> Iterator[str]:
    if not told.whole:
        yield (
            "no commit to _transactions describes this batch, so it is unknown which tables were "
            "quarantined or partial"
        )
    if not facts.complete and not told.whole:
        yield (
            "the folder's claim may lack batches that were undone, and this one may be among them"
        )
    if told.prepared:
        yield (
            f"{told.prepared} XA transactions were prepared by then: a run that finds one of them "
            "committed stops there"
        )
