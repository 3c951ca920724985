"""The ledger of a source: all its books, subject by subject.

Belongs here: what the subjects' ports have in common, and the order their methods are
called in. Does not: the methods; consumers' cursors, which need no lease (`ports.consumers`).
"""

from __future__ import annotations

from typing import Protocol

from pipeline.ports.batches import Batches
from pipeline.ports.decisions import Decisions
from pipeline.ports.forgotten import ForgottenChanges
from pipeline.ports.leases import Leases
from pipeline.ports.schemas import Schemas
from pipeline.ports.tables import Tables
from pipeline.ports.writes import Writes


class Ledger(
    Leases,
    Decisions,
    Batches,
    Schemas,
    Tables,
    Writes,
    ForgottenChanges,
    Protocol,
):
    """The books. Each writing method is one transaction that checks the lease's token
    (`LeaseLost` if another run took over) and is refused whole (`LedgerRefused`) when
    it is out of order. Connection trouble is `LedgerUnavailable`.

    Order within a run: `lock` → `begin_batch` → `record_capture` → per table
    `open_intent` → `settle` → `mark_merged` → `acknowledge`. Any step may be the first
    that a new process makes: it asks the ledger, never its own memory.
    """
