"""Writes of mirrors that bring nothing they lack by the books, a replay's and a rebuild's: as an
intent that the next process finds; and what a replay left that was cut off."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from pipeline.batch import Batch
from pipeline.changes.layout import application_id
from pipeline.decisions import Lease
from pipeline.errors import SegmentsLost
from pipeline.intent import REPLAY, Intent
from pipeline.lake_commit import WriteKind
from pipeline.ports.mirror_writes import MirrorTarget, MirrorWrite
from pipeline.revision import Revision
from pipeline.runs.commit_records import commit_metadata
from pipeline.runs.context import Workplace
from pipeline.segment import SegmentFile
from pipeline.table_state import TableState


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


@dataclass(frozen=True, slots=True)
class MirrorCommitting:
    """One write to the live mirror, as an intent that a cut-off process's successor finds. `last`:
    the newest acknowledged batch, whose end the mirror shows before and after."""

    work: Workplace
    lease: Lease
    state: TableState
    last: Batch
    intent: Intent

    @classmethod
    def begun(
        cls, work: Workplace, lease: Lease, state: TableState, last: Batch
    ) -> MirrorCommitting:
        intent = work.ledger.open_intent(
            lease,
            state.table,
            app_id=application_id(work.source.name, state, "mirror"),
            first_batch=last.id,
            last_batch=last.id,
            step=REPLAY,
        )
        return cls(work, lease, state, last, intent)

    def target(
        self, schema: pa.Schema, kind: WriteKind, files: Sequence[SegmentFile]
    ) -> MirrorTarget:
        """`files`: what the write is made of."""
        work, policies = self.work, self.work.source.lake
        return MirrorTarget(
            mirror=self.state.mirror,
            schema=schema,
            app_id=self.intent.app_id,
            txn_version=self.intent.txn_version,
            user_metadata=commit_metadata(work, kind, self.state.table, [self.last], files),
            deletes=policies.deletes,
            readers=policies.readers,
        )

    def settled(self, write: MirrorWrite, reason: str) -> int:
        """Commit and say so in the ledger; the mirror's Delta version."""
        work, lease = self.work, self.lease
        done = work.mirrors.write(write, lambda: work.ledger.require_held(lease))
        version = done.delta_version
        work.ledger.settle(lease, self.intent, version, reason=reason, table_id=done.table_id)
        work.ledger.note_looked(lease, {self.state.mirror: version})
        return version
