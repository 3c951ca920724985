"""What a replay left that was cut off: taken up, or given up."""

from __future__ import annotations

from collections.abc import Iterator

from pipeline.decisions import Lease
from pipeline.errors import SegmentsLost
from pipeline.intent import REPLAY
from pipeline.revision import Revision
from pipeline.runs.context import Workplace


def settle_replays(work: Workplace, lease: Lease) -> tuple[str, ...]:
    """A write that was made is noted, one that was not is given up: the mirror is as it was. A
    revision is carried out: its files are durable; or given up, where they are lost for all that. A
    sentence for each."""
    notes = list(settle_writes(work, lease))
    revision = work.ledger.open_revision(work.source.name)
    if revision is not None:
        notes.append(_carried_out(work, lease, revision))
    return tuple(notes)


def _carried_out(work: Workplace, lease: Lease, revision: Revision) -> str:
    from pipeline.runs.replaying.revise import carry_out  # a run needs it only here

    told = f"revision {revision.id} of captured batches was"
    try:
        carry_out(work, lease, revision)
    except SegmentsLost as error:
        if work.ledger.open_revision(work.source.name) is not None:
            raise
        return f"{told} given up, and nothing was changed: {error.message}. Repeat the replay"
    return f"{told} taken up where a replay was cut off: repeat the replay for its mirrors"


def settle_writes(work: Workplace, lease: Lease) -> Iterator[str]:
    """Those of mirrors alone."""
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
