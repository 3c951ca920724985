"""The ledger's side of `lockstep recover`: the one batch that stands for all that the lake has.

Belongs here: that batch, and the numbers that go on behind the lake's. Does not: what is decided
(`pipeline.recovery`), the lake's side (`recovered_lake`), ending it (`recover`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pipeline.batch import CaptureRecord
from pipeline.changes.layout import changelog_path
from pipeline.decisions import Decision, Lease
from pipeline.position import Position
from pipeline.recovery.facts import Adopted, RecoveryPlan
from pipeline.runs.context import Workplace
from pipeline.runs.recovering.lake_facts import GatheredLake
from pipeline.runs.recovering.recovered_structures import Structures
from pipeline.runs.recovering.recovery_place import PlacedRecovery
from pipeline.schema.history import History
from pipeline.table_state import Extent, Handover, TableCondition, TableState

RULE = "recovered"
"""The start decision of the batch that stands for all that the lake has."""


@dataclass(frozen=True, slots=True)
class RecoveryBasis:
    """What is recovered, and what it was decided from."""

    gathered: GatheredLake
    plan: RecoveryPlan
    placed: PlacedRecovery
    structures: Structures


def record(
    work: Workplace,
    lease: Lease,
    basis: RecoveryBasis,
    adopted: Iterable[tuple[Adopted, int]],
    author: str,
) -> None:
    """`adopted`: the tables that go on, with the Delta versions of their mirrors."""
    ledger, plan, placed = work.ledger, basis.plan, basis.placed
    for left in ledger.unfinished(work.source.name):
        ledger.abandon(lease, left.id, "its recovery did not finish")
    ledger.number_above(lease, batch=plan.batch, txn_version=basis.gathered.txn_version)
    ledger.inherit(lease, basis.gathered.facts.counting(plan.told.batch))
    facts = {
        "batch": plan.told.batch,
        "of_ledger": plan.told.ledger,
        "highest_batch": plan.batch,
        "adopted": [str(adoption.mirror.table) for adoption, _ in adopted],
        "read_again": [str(table) for table, _ in basis.structures.reloads],
        "doubts": list(plan.doubts),
    }
    reason = f"made from the lake, which shows batch {plan.told.batch} up to {plan.told.at}"
    decision = ledger.decide(lease, Decision("start", RULE, reason, facts, author))
    start: Position = placed.position
    batch = ledger.begin_batch(lease, start, predecessor=None, start_decision=decision.id)
    handovers = [
        _handover(work, adoption, version, basis.structures.generation(adoption.mirror.table))
        for adoption, version in adopted
    ]
    record = CaptureRecord(
        end=start,
        witness=placed.witness,
        changes=plan.told.cursor.sequence,
        transactions=0,
        log_bytes=0,
        segments=(),
        tables=tuple(handover.adopted() for handover in handovers),
        quarantined=(),
        by_gtid=placed.by_gtid,
        history=History((), basis.structures.versions, basis.structures.databases),
        handovers=tuple(handovers),
        extents=tuple(
            Extent(adoption.mirror.table, plan.told.partial[adoption.mirror.table])
            for adoption, _ in adopted
            if adoption.mirror.table in plan.told.partial
        ),
        scope=work.source.patterns,
    )
    ledger.record_capture(lease, batch.id, record)


def _handover(work: Workplace, adoption: Adopted, version: int, generation: int) -> Handover:
    """`generation`: of the changelog."""
    mirror = adoption.mirror
    changelog = changelog_path(work.source.name, mirror.table, generation)
    before = TableState(
        mirror.table,
        TableCondition.ACTIVE,
        mirror.generation,
        mirror.folder,
        changelog,
        changelog_generation=generation,
    )
    return Handover(mirror.table, mirror.generation + 1, mirror.folder, version, 1, before)
