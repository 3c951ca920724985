"""What a replay that was killed left: a write of a mirror, or a revision of captured batches."""

from __future__ import annotations

from collections.abc import Iterator

from pipeline.decisions import Lease
from pipeline.errors import SegmentsLost
from pipeline.intent import REPLAY
from pipeline.runs.context import Workplace
from pipeline.segment import Revision


def settle_replays(work: Workplace, lease: Lease) -> tuple[str, ...]:
    """Record the writes that were made, and give up those that were not: their mirrors are as they
    were. Carry out an open revision, whose files are durable; give it up if they are lost. Return a
    sentence for each."""
    notes = list(settle_writes(work, lease))
    revision = work.ledger.revisions(work.source.name).open
    if revision is not None:
        notes.append(_carried_out(work, lease, revision))
    return tuple(notes)


def _carried_out(work: Workplace, lease: Lease, revision: Revision) -> str:
    from pipeline.runs.replaying.revise import carry_out  # a run needs it only here

    told = f"revision {revision.id} of captured batches was"
    try:
        carry_out(work, lease, revision)
    except SegmentsLost as error:
        if work.ledger.revisions(work.source.name).open is not None:
            raise
        return f"{told} given up, and nothing was changed: {error.message}. Repeat the replay"
    return f"{told} taken up where a replay was cut off: repeat the replay for its mirrors"


def settle_writes(work: Workplace, lease: Lease) -> Iterator[str]:
    """Record or give up the open writes of replays, and yield a sentence for each."""
    ledger, source = work.ledger, work.source.name
    open_ones = [one for one in ledger.open_intents(source) if one.step == REPLAY]
    states = ledger.table_states(source) if open_ones else {}
    for intent in open_ones:
        mirror = states[intent.table].mirror
        made = work.mirrors.recorded(mirror, intent.app_id, intent.txn_version)
        if made is None:
            ledger.give_up(lease, intent.table)
            yield f"the replay of {intent.table} ended before its mirror was written: repeat it"
            continue
        table_id = made.table_id
        ledger.settle(lease, intent, made.delta_version, reason=REPLAY, table_id=table_id)
        ledger.note_looked(lease, {mirror: made.delta_version})
        yield f"the replay of {intent.table} had written its mirror when it was cut off"
