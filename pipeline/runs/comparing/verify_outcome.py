"""What becomes of a comparison: noted in the ledger, and repaired where that was asked for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from random import Random
from typing import Final

from pipeline.decisions import Lease
from pipeline.errors import ConditionRefused, LockstepError
from pipeline.proof.proven import Compared, Proven
from pipeline.runs.comparing.verify_sample import verify_sample
from pipeline.runs.context import Workplace
from pipeline.runs.cures import owed
from pipeline.runs.loading.part import require_readable
from pipeline.runs.reports import TableDifference, VerifyReport
from pipeline.snapshot.condition import read_condition
from pipeline.source_plan import PartOrder
from pipeline.table import TableName
from pipeline.table_state import Quarantine


def note(work: Workplace, report: VerifyReport) -> None:
    """What was proven, and what differs; needs no lease, and changes nothing that a run does."""
    work.ledger.note_compared(work.source.name, list(compared(report)))


WHY: Final = "`lockstep verify --repair`"
"""The reason that is kept with rows that are read again."""

SAMPLED_TABLES: Final = 5
"""Tables that a run compares rows of."""


def prove_sample(work: Workplace, chance: Random) -> VerifyReport | None:
    """What a run compares once its tables are merged, noted; None where that was not asked for.
    Trouble with it is told, and ends no run."""
    rows = work.source.prove_rows
    if not rows:
        return None
    try:
        report = verify_sample(work, None, rows, chance, most_tables=SAMPLED_TABLES)
        note(work, report)
    except LockstepError as error:
        work.progress.note(f"no rows were compared: {error.message}")
        return None
    for table in report.tables:
        if not table.equal:
            work.progress.note(
                f"{table.table} DIFFERS from MySQL: {differing(table)} of {table.compared} rows "
                f"that "
                f"were compared; `lockstep verify {table.table}` finds all of them"
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
    """Rows that one side has otherwise."""
    return difference.only_in_source + difference.only_in_lake + difference.different


def parts_of(work: Workplace, report: VerifyReport, author: str) -> list[PartOrder]:
    """Of the tables that differ, those whose rows can be read again by themselves."""
    if work.server.facts().settings.get("binlog_row_image", "FULL").upper() != "FULL":
        return []
    orders = []
    for table in report.tables:
        if table.equal or table.where is None:
            continue
        order = PartOrder(table.table, read_condition(table.where), author, WHY)
        with suppress(ConditionRefused):
            require_readable(work, order)
            orders.append(order)
    return orders


def repair(work: Workplace, lease: Lease, report: VerifyReport) -> tuple[TableName, ...]:
    """Have the next run read the tables that differ from the source; which ones. Rows are never
    written one by one: a mirror has one writer, and its changelog tells readers of every row."""
    states = work.ledger.table_states(work.source.name)
    wrong = []
    for table in report.tables:
        state = states.get(table.table)
        if table.equal or state is None or not state.complete:
            continue
        count = differing(table)
        rows = "1 row that differs" if count == 1 else f"{count:,} rows that differ"
        error = owed(f"a comparison found {rows}, and it is to be repaired")
        work.ledger.quarantine(lease, Quarantine.of(table.table, error, str(report.position.at)))
        wrong.append(table.table)
    return tuple(wrong)
