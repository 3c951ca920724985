"""The record of a comparison in the ledger, and the sample of rows that a run compares."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Final

from lockstep.pipeline.proof.proven import Compared, Proven
from lockstep.pipeline.run.context import Workplace
from lockstep.pipeline.run.proof.verify_sample import verify_sample
from lockstep.pipeline.run.reports import TableDifference, VerifyReport
from lockstep.pipeline.values.errors import LockstepError


def record_proofs(work: Workplace, report: VerifyReport) -> None:
    """Record what was proven and what differs. No lease is needed: runs do not read this record."""
    work.ledger.note_compared(work.source.name, list(compared(report)))


SAMPLED_TABLES: Final = 5
"""Largest number of tables of which a run compares a sample of rows."""


def prove_sample(work: Workplace, chance: Random) -> VerifyReport | None:
    """Compare a sample of rows after a run's merges, if one is configured, and record
    the result. An error is reported and does not end the run."""
    rows = work.source.prove_rows
    if not rows:
        return None
    try:
        report = verify_sample(work, None, rows, chance, most_tables=SAMPLED_TABLES)
        record_proofs(work, report)
    except LockstepError as error:
        work.progress.note(f"no rows were compared: {error.message}")
        return None
    for table in report.tables:
        if not table.equal:
            work.progress.note(
                f"{table.table} DIFFERS from MySQL in {differing(table)} of {table.compared} "
                f"compared rows; `lockstep verify {table.table}` finds all of them"
            )
    return report


def compared(report: VerifyReport) -> Iterator[Compared]:
    for table in report.tables:
        whole = table.compared is None
        if not table.equal:
            yield Compared(table.table, whole, None, differing(table))
        elif table.place is not None:
            rows = table.source_rows if table.compared is None else table.compared
            proven = Proven(table.proof, rows, table.place.at, table.place.gtids)
            yield Compared(table.table, whole, proven, 0)


def differing(difference: TableDifference) -> int:
    """Return the number of rows that differ."""
    return difference.only_in_source + difference.only_in_lake + difference.different
