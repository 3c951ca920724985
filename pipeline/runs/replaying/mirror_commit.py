"""A mirror's write that brings nothing the mirror lacks by the books: a replay's, a rebuild's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from pipeline.batch import Batch
from pipeline.changes.layout import application_id
from pipeline.decisions import Lease
from pipeline.intent import REPLAY, Intent
from pipeline.lake_commit import WriteKind
from pipeline.ports.mirror_writes import MirrorTarget, MirrorWrite
from pipeline.runs.commit_records import commit_metadata
from pipeline.runs.context import Workplace
from pipeline.segment import SegmentFile
from pipeline.table_state import TableState


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
