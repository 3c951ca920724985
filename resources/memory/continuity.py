"""How the memory ledger's chains go on elsewhere: choices, gaps, the servers read from.

The rules are those of `resources/postgres/migrations`, by the same names. Does not
belong here: batches themselves (`books`).
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from pipeline.batch import Batch, BatchState, CaptureRecord, Cursor
from pipeline.coverage import CaptureScope
from pipeline.decisions import Continuity, Decision, Override
from pipeline.gaps import CLOSING, Gap, Happened, with_closed
from pipeline.position import Lineage, Reign, SetWitness
from resources.ledger_rules import refusal
from resources.memory.books import ENDED, MemoryBooks


def may_decide(books: MemoryBooks, source: str, decision: Decision) -> None:
    followed = books.batches.get(decision.follows) if decision.follows is not None else None
    if decision.follows is not None and (followed is None or followed.source != source):
        raise refusal("decisions_follows")
    if (decision.follows is None) != (decision.continuity is None):
        raise refusal("decisions_continuity_told")
    if (decision.continuity is Continuity.GAP) != bool(decision.gap_tables):
        raise refusal("decisions_gap_named")
    if decision.override is not None:
        of, _ = books.overrides.get(decision.override, ("", None))
        if of != source:
            raise refusal("decisions_override")


def choose(books: MemoryBooks, source: str, choice: Override) -> None:
    if not choice.place:
        raise refusal("overrides_place_named")
    if not choice.reason.strip():
        raise refusal("overrides_reasoned")
    books.overrides[choice.id] = (source, choice)


def open_override(books: MemoryBooks, source: str) -> Override | None:
    chosen = [choice for of, choice in books.overrides.values() if of == source]
    if not chosen or any(d.override == chosen[-1].id for d, _ in begun(books, source)):
        return None
    return chosen[-1]


def begun(books: MemoryBooks, source: str) -> list[tuple[Decision, Batch]]:
    """The source's live batches that a decision began, with it."""
    return [
        (books.decision(batch.start_decision).decision, batch)
        for batch in books.of_source(source)
        if batch.state is not BatchState.ABANDONED and batch.start_decision is not None
    ]


def gaps(books: MemoryBooks, source: str) -> list[Gap]:
    found = []
    for decision, batch in begun(books, source):
        if decision.continuity is not Continuity.GAP or decision.follows is None:
            continue
        recorded = books.decision(batch.start_decision)
        before = books.batches[decision.follows]
        found.append(
            Gap(
                recorded.id,
                batch.id,
                recorded.decided_at,
                decision.author,
                decision.reason,
                decision.gap_tables,
                str(before.end),
                str(batch.start),
            )
        )
    happened = list(_happened(books, source))
    return [with_closed(gap, happened) for gap in found]


def _happened(books: MemoryBooks, source: str) -> Iterator[Happened]:
    """What may have closed parts of gaps, in the order of the log."""
    for batch in books.of_source(source, BatchState.ACKNOWLEDGED):
        at = batch.acknowledged_at
        if at is None:
            continue
        handed = books.handovers.get(batch.id, ())
        for gone in handed:
            for taker in handed:
                if taker.mirror == gone.before.mirror:
                    yield Happened(str(gone.table), batch.id, at, None, str(taker.table))
        for event in sorted(books.events.get(batch.id, ()), key=lambda one: one.sequence):
            if event.kind in CLOSING:
                yield Happened(str(event.table), batch.id, at, event.kind)


def overlaps(books: MemoryBooks, source: str) -> list[Batch]:
    return [
        batch
        for decision, batch in begun(books, source)
        if decision.continuity is Continuity.OVERLAP
    ]


def lineage(books: MemoryBooks, source: str) -> Lineage:
    found: list[Reign] = []
    for batch in books.of_source(source):
        uuid = batch.start.server_uuid
        if batch.state is not BatchState.ABANDONED and (not found or found[-1].server_uuid != uuid):
            found.append(Reign(uuid, batch.id))
    return Lineage(tuple(found))


def cursor_at(books: MemoryBooks, source: str, *states: BatchState) -> Cursor | None:
    """The end of the newest batch in one of these states."""
    batches = books.of_source(source, *states)
    if not batches:
        return None
    newest = batches[-1]
    if newest.end is None or newest.witness is None or newest.captured_at is None:
        raise refusal("batches_end_recorded")
    off = books.gtids_off.get(source)
    resumable = newest.by_gtid and not (off is not None and off > newest.captured_at)
    live = [one for one in books.of_source(source) if one.state is not BatchState.ABANDONED]
    once = any(one.by_gtid for one in live)
    return Cursor(newest.id, newest.end, newest.witness, resumable, once and not resumable)


def record_scope(books: MemoryBooks, batch: Batch, record: CaptureRecord) -> None:
    known = capture_scopes(books, batch.source)
    if record.scope is None or (known and known[-1].patterns == record.scope):
        return
    if batch.state is not BatchState.CAPTURING:
        raise refusal("capture_scopes_while_capturing")
    books.scopes[batch.id] = record.scope


def capture_scopes(books: MemoryBooks, source: str) -> list[CaptureScope]:
    return [
        CaptureScope(one.id, str(one.start), books.scopes[one.id])
        for one in books.of_source(source, *ENDED)
        if one.id in books.scopes
    ]


def record_set_witnesses(books: MemoryBooks, batch: Batch, record: CaptureRecord) -> None:
    if record.set_witnesses and batch.state is not BatchState.CAPTURING:
        raise refusal("set_witnesses_while_capturing")
    if len({one.origin for one in record.set_witnesses}) < len(record.set_witnesses):
        raise refusal("set_witnesses_once")
    for one in record.set_witnesses:
        if one.committed_at < 0:
            raise refusal("set_witnesses_moment_counts")
        if (one.committed_at == 0) != bool(one.digest):
            raise refusal("set_witnesses_told")
    books.set_witnesses[batch.id] = record.set_witnesses


def set_witnesses(books: MemoryBooks, source: str, batch: int) -> list[SetWitness]:
    found: dict[str, SetWitness] = {}
    for one in reversed(books.of_source(source, *ENDED)):
        if one.id <= batch:
            for witness in books.set_witnesses.get(one.id, ()):
                found.setdefault(witness.origin, witness)
    return list(found.values())


def captured_by(books: MemoryBooks, source: str, dagster_run: str) -> Batch | None:
    found = [
        batch
        for batch in books.of_source(source, *ENDED)
        if (batch.dagster_run or "").startswith(dagster_run)
    ]
    return found[-1] if found else None


def reaching(books: MemoryBooks, source: str, server_uuid: str, moment: datetime) -> Batch | None:
    for batch in books.of_source(source, *ENDED):
        end = batch.end
        if end is None or end.server_uuid != server_uuid or end.committed_at is None:
            continue
        if end.committed_at >= moment:
            return batch
    return None
