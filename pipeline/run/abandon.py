"""Abandoning a batch (the part of the log that one run captures): the ledger takes it
back, and its files are deleted. Another batch can then read that part of the log again.

Four modules abandon a batch, each with its reason:

- `repair`: a dead run left it unfinished, its files are damaged, or a person chose
  another start (`batches_to_abandon`);
- `capture`: rows were decoded with a wrong structure (`_abandon_misread`);
- `catch_up`, `follow_pasts`: the log cannot be read or decoded as planned.

`lockstep recover` abandons the batch of an earlier recovery that did not finish. That
batch has no files, so only the ledger is changed (`_record_basis` in
`pipeline.run.recovery.recover`).

Only the newest batch can be abandoned, and only while no table shows changes of it. The
ledger keeps its row, and gives its tables the states that they would have without its
events (`undo_batch` in `resources.postgres.life_events`).
"""

from __future__ import annotations

from lockstep.pipeline.model.batch import Batch
from lockstep.pipeline.run.agreement.claim import require_agreement
from lockstep.pipeline.run.context import RunPorts
from lockstep.pipeline.values.decisions import Lease
from lockstep.pipeline.values.shown import pluralize


def abandon(ports: RunPorts, lease: Lease, batch: Batch, reason: str) -> str:
    """Abandon a batch and delete its files. Return a sentence about it. Raise
    `ForeignCommit` if another copy of this ledger (a restored backup) has claimed the
    folder since this run began: its batch may have the same number, and its files are
    listed in changelogs."""
    require_agreement(ports)
    # First the ledger, which checks the lease: a run that lost it must not delete files
    # of the run that took over.
    ports.ledger.abandon(lease, batch.id, reason)
    files = discard(ports, batch)
    return f"batch {batch.id} was abandoned: {reason} ({pluralize(files, 'file')} deleted)"


def discard(ports: RunPorts, batch: Batch) -> int:
    """Delete the files of an abandoned batch, and return their number."""
    files = ports.segments.delete_batch(ports.source.name, batch.id)
    return files + ports.spool.delete_batch(ports.source.name, batch.id)
