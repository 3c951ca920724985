"""The record of a comparison in the ledger, and the repair of tables that differ."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from random import Random
from typing import Final

from lockstep.pipeline.model.table_state import StoppedTable
from lockstep.pipeline.proof.proven import Compared, Proven
from lockstep.pipeline.run.context import Workplace
from lockstep.pipeline.run.load.part import require_readable
from lockstep.pipeline.run.proof.verify_sample import verify_sample
from lockstep.pipeline.run.reports import TableDifference, VerifyReport
from lockstep.pipeline.run.stop_errors import read_by_next_run
from lockstep.pipeline.snapshot.condition import read_condition
from lockstep.pipeline.source_plan import RereadRows
from lockstep.pipeline.values.decisions import Lease
from lockstep.pipeline.values.errors import ConditionRefused, LockstepError
from lockstep.pipeline.values.table import TableName


def record_proofs(work: Workplace, report: VerifyReport) -> None:
    """Record what was proven and what differs. No lease is needed: runs do not read this record."""
    work.ledger.note_compared(work.source.name, list(compared(report)))


WHY: Final = "`lockstep verify --repair`"
"""The reason that is recorded with the order to read rows again."""

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


def orders_to_read(work: Workplace, report: VerifyReport, author: str) -> list[RereadRows]:
    """Return orders to read the differing rows again, for each table where a condition
    selects them. Return none if the log has partial row images: rows that are read by a
    condition cannot be merged with them."""
    if work.server.facts().settings.get("binlog_row_image", "FULL").upper() != "FULL":
        return []
    orders = []
    for table in report.tables:
        if table.equal or table.where is None:
            continue
        order = RereadRows(table.table, read_condition(table.where), author, WHY)
        with suppress(ConditionRefused):
            require_readable(work, order)
            orders.append(order)
    return orders


def repair(work: Workplace, lease: Lease, report: VerifyReport) -> tuple[TableName, ...]:
    """Stop the tables that differ from MySQL, so that the next run reads them again,
    and return them. Single rows are never corrected in the mirror: consumers must find
    every change in the changelog."""
    states = work.ledger.table_states(work.source.name)
    wrong = []
    for table in report.tables:
        state = states.get(table.table)
        if table.equal or state is None or not state.complete:
            continue
        count = differing(table)
        rows = "1 row that differs" if count == 1 else f"{count:,} rows that differ"
        error = read_by_next_run(f"a comparison found {rows}, and it is to be repaired")
        work.ledger.quarantine(lease, StoppedTable.of(table.table, error, str(report.position.at)))
        wrong.append(table.table)
    return tuple(wrong)
