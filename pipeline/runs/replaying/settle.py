"""Writes of mirrors that bring nothing they lack by the books, a replay's and a rebuild's: as an
intent that the next process finds; and what a replay left that was cut off."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa

from pipeline.batch import Batch
from pipeline.changes.clustering import clustered_by
from pipeline.changes.layout import application_id
from pipeline.decisions import Lease
from pipeline.errors import SegmentsLost
from pipeline.intent import REPLAY, Intent
from pipeline.lake_commit import WriteKind
from pipeline.ports.mirror_writes import MirrorTarget, MirrorWrite
from pipeline.runs.commit_records import commit_metadata
from pipeline.runs.context import Workplace
from pipeline.segment import Revision, SegmentFile
from pipeline.table_state import TableState


def settle_replays(work: Workplace, lease: Lease) -> tuple[str, ...]:
    """A write that was made is noted, one that was not is given up: the mirror is as it was. A
    revision is carried out: its files are durable; or given up, where they are lost for all that. A
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


def commit_mirror(
    work: Workplace,
    lease: Lease,
    state: TableState,
    last: Batch,
    schema: pa.Schema,
    files: Sequence[SegmentFile],
    write_to: Callable[[MirrorTarget], MirrorWrite],
    *,
    kind: WriteKind,
    reason: str,
) -> int:
    """One write to the live mirror, as an intent that a cut-off process's successor finds, settled
    and looked at; the mirror's Delta version. `last`: the newest acknowledged batch, whose end the
    mirror shows before and after; `files`: what the write is made of."""
    source, policies = work.source.name, work.source.policies_of(state.table)
    app_id = application_id(source, state, "mirror")
    planned = Intent(0, state.table, app_id, 0, last.id, last.id, REPLAY)
    intent = work.ledger.intend(lease, [planned])[state.table]
    target = MirrorTarget(
        mirror=state.mirror,
        schema=schema,
        app_id=intent.app_id,
        txn_version=intent.txn_version,
        user_metadata=commit_metadata(work, kind, state.table, [last], files),
        deletes=policies.deletes,
        readers=policies.readers,
        truncates=policies.truncates,
        cluster=clustered_by(policies.cluster_by, schema),
    )
    done = work.mirrors.write(write_to(target), lambda: work.ledger.require_held(lease))
    work.ledger.settle(lease, intent, done.delta_version, reason=reason, table_id=done.table_id)
    work.ledger.note_looked(lease, {state.mirror: done.delta_version})
    return done.delta_version
