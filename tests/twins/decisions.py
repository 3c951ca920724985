"""What was decided, and what a person chose, in memory: `pipeline.ports.decisions`."""

from __future__ import annotations

from collections.abc import Iterator

from pipeline.batch import Batch, BatchState
from pipeline.decisions import (
    STRUCTURES,
    Attempt,
    AttemptOutcome,
    Continuity,
    Decision,
    Lease,
    Override,
    RecordedDecision,
    Unproven,
)
from pipeline.gaps import CLOSING, ClosingEvent, Gap, found_equal, with_closed
from resources.postgres.refusals import refusal
from tests.twins.books import MemoryBooks, MemorySubject

_ATTEMPTS = frozenset(outcome.value for outcome in AttemptOutcome)


class MemoryDecisions(MemorySubject):
    def decide(self, lease: Lease, decision: Decision) -> RecordedDecision:
        with self._step(lease) as books:
            _may_decide(books, lease.source, decision)
            number = books.next_number("decision", len(books.decisions))
            recorded = RecordedDecision(number, self._clock(), decision)
            books.decisions.append((lease.source, recorded))
            return recorded

    def decisions(self, source: str, *, limit: int = 5) -> list[RecordedDecision]:
        return [one for of, one in reversed(self.books.decisions) if of == source][:limit]

    def attempts(self, source: str, *, limit: int = 100) -> list[Attempt]:
        newest = reversed(self.books.decisions)
        found = (one for of, one in newest if of == source and one.decision.kind in _ATTEMPTS)
        return [_attempt(one) for one in found][:limit]

    def unproven(self, source: str) -> Unproven | None:
        newest = reversed(self.books.decisions)
        kind = (one for of, one in newest if of == source and one.decision.kind == STRUCTURES)
        one = next(kind, None)
        if one is None or not one.decision.structures:
            return None
        return Unproven(frozenset(one.decision.structures), one.decided_at, one.decision.reason)

    def note_gtids_off(self, lease: Lease) -> None:
        with self._step(lease) as books:
            books.gtids_off[lease.source] = self._clock()

    def choose_start(self, lease: Lease, *, place: str, reason: str, author: str) -> Override:
        with self._step(lease) as books:
            if not place:
                raise refusal("overrides_place_named")
            if not reason.strip():
                raise refusal("overrides_reasoned")
            number = len(books.overrides) + 1
            choice = Override(number, place, reason, author, self._clock())
            books.overrides[number] = (lease.source, choice)
            return choice

    def open_override(self, source: str) -> Override | None:
        chosen = [choice for of, choice in self.books.overrides.values() if of == source]
        if not chosen or any(d.override == chosen[-1].id for d, _ in self.books.begun(source)):
            return None
        return chosen[-1]

    def gaps(self, source: str) -> list[Gap]:
        happened = list(_happened(self.books, source))
        proofs = [one for (of, *_), one in self.books.proofs.items() if of == source]
        return [
            with_closed(
                _gap(self.books, decision, decision.follows, batch),
                happened,
                found_equal(proofs, batch.start, batch.acknowledged_at),
            )
            for decision, batch in self.books.begun(source)
            if decision.continuity is Continuity.GAP and decision.follows is not None
        ]


def _may_decide(books: MemoryBooks, source: str, decision: Decision) -> None:
    followed = books.batches.get(decision.follows) if decision.follows is not None else None
    if decision.follows is not None and (followed is None or followed.source != source):
        raise refusal("decisions_follows")
    if (decision.follows is None) != (decision.continuity is None):
        raise refusal("decisions_continuity_told")
    if (decision.continuity is Continuity.GAP) != bool(decision.gap_tables):
        raise refusal("decisions_gap_named")
    failed = decision.kind in (AttemptOutcome.REFUSED, AttemptOutcome.FAILED)
    if decision.head is not None and decision.kind != AttemptOutcome.IDLE:
        raise refusal("decisions_head_told")
    if decision.hint and decision.recovery is None:
        raise refusal("decisions_hint_told")
    if failed != (decision.recovery is not None):
        raise refusal("decisions_recovery_told")
    if (decision.kind == STRUCTURES) != (decision.structures is not None):
        raise refusal("decisions_structures_told")
    if decision.override is not None:
        of, _ = books.overrides.get(decision.override, ("", None))
        if of != source:
            raise refusal("decisions_override")


def _attempt(recorded: RecordedDecision) -> Attempt:
    decision = recorded.decision
    return Attempt(
        AttemptOutcome(decision.kind),
        recorded.decided_at,
        decision.reason,
        decision.recovery,
        decision.hint,
        decision.head,
    )


def _gap(books: MemoryBooks, decision: Decision, follows: int, batch: Batch) -> Gap:
    recorded = books.decision(batch.start_decision)
    return Gap(
        recorded.id,
        batch.id,
        recorded.decided_at,
        decision.author,
        decision.reason,
        decision.gap_tables,
        str(books.batches[follows].end),
        str(batch.start),
    )


def _happened(books: MemoryBooks, source: str) -> Iterator[ClosingEvent]:
    """What may have closed parts of gaps, in the order of the log."""
    for batch in books.of_source(source, BatchState.ACKNOWLEDGED):
        at = batch.acknowledged_at
        if at is None:
            continue
        handed = books.handovers.get(batch.id, ())
        for gone in handed:
            for taker in handed:
                if taker.mirror == gone.before.mirror:
                    yield ClosingEvent(str(gone.table), batch.id, at, None, str(taker.table))
        for event in sorted(books.events.get(batch.id, ()), key=lambda one: one.sequence):
            if event.kind in CLOSING:
                yield ClosingEvent(str(event.table), batch.id, at, event.kind)
