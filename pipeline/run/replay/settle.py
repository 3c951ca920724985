"""Finishes a replay that was killed: its open write to a mirror (the Delta table with a
table's current rows), and its open revision (new changelog files in place of captured
ones)."""

from __future__ import annotations

from lockstep.pipeline.run.context import RunPorts
from lockstep.pipeline.values.decisions import Lease
from lockstep.pipeline.values.errors import SegmentsLost
from lockstep.pipeline.values.intent import REPLAY
from lockstep.pipeline.values.segment import Revision


def settle_replays(ports: RunPorts, lease: Lease) -> tuple[str, ...]:
    """Settle open writes (`settle_replay_writes`), and carry out an open revision. A
    revision is given up if its new files are lost, although they were durable before it
    was recorded. Return a sentence for each write and revision."""
    notes = settle_replay_writes(ports, lease)
    revision = ports.ledger.revisions(ports.source.name).open
    if revision is not None:
        notes.append(_finish_revision(ports, lease, revision))
    return tuple(notes)


def _finish_revision(ports: RunPorts, lease: Lease, revision: Revision) -> str:
    # Slow to import, and rarely needed.
    from lockstep.pipeline.run.replay.revise import carry_out_revision

    subject = f"revision {revision.id} of captured batches"
    try:
        carry_out_revision(ports, lease, revision)
    except SegmentsLost as error:
        if ports.ledger.revisions(ports.source.name).open is not None:
            raise
        return f"{subject} was given up, nothing changed: {error.message}. Repeat the replay"
    return (
        f"{subject} was finished after its replay was interrupted. Repeat the replay for the "
        "mirrors"
    )


def settle_replay_writes(ports: RunPorts, lease: Lease) -> list[str]:
    """Settle each open write of a replay. If the mirror's log has its commit, record
    the write as finished; otherwise give it up, since the mirror is unchanged. Return a
    sentence for each."""
    ledger, source = ports.ledger, ports.source.name
    intents = [intent for intent in ledger.open_intents(source) if intent.step == REPLAY]
    states = ledger.table_states(source) if intents else {}
    notes = []
    for intent in intents:
        mirror = states[intent.table].mirror
        commit = ports.mirrors.find_commit(mirror, intent.app_id, intent.txn_version)
        if commit is None:
            ledger.give_up(lease, intent.table)
            notes.append(
                f"the replay of {intent.table} ended before its mirror was written: repeat it"
            )
            continue
        version, table_id = commit.delta_version, commit.table_id
        ledger.settle(lease, intent, version, reason=REPLAY, table_id=table_id)
        ledger.note_examined_versions(lease, {mirror: version})
        notes.append(f"the replay of {intent.table} had written its mirror when it was interrupted")
    return notes
