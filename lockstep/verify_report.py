"""What `lockstep verify` shows: tables, and the rows of those that differ.

Belongs here: a comparison as lines and as JSON. Does not: comparing (`pipeline.runs.inspecting`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from lockstep import exits
from lockstep.report import (
    counted,
    show_quarantined,
    show_table,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from lockstep.context import CommandContext
    from pipeline.runs.reports import NotCompared, RowDifference, TableDifference, VerifyReport

_GTIDS: Final = 200
"""Characters of a set at the most."""

_ROWS: Final = 20
"""So many differing rows of a table are shown; JSON has more of them."""


def exit_code(report: VerifyReport) -> int:
    """4 if a table differs or could not be compared, 3 if one could not be proven now, 6 if
    tables are quarantined."""
    if report.differs:
        return exits.DIFFERENCES
    if report.not_proven:
        return exits.TRY_AGAIN
    return exits.QUARANTINED if report.quarantined else exits.DONE


def verify_json(report: VerifyReport) -> dict[str, Any]:
    return {
        "position": report.position,
        "seconds": report.seconds,
        "tables": {str(table.table): _table_json(table) for table in report.tables},
        "not_compared": _reasons(report.not_compared),
        "not_proven": _reasons(report.not_proven),
        "quarantined": report.quarantined,
    }


def _table_json(difference: TableDifference) -> dict[str, Any]:
    return {
        "equal": difference.equal,
        "source_rows": difference.source_rows,
        "lake_rows": difference.lake_rows,
        "only_in_source": difference.only_in_source,
        "only_in_lake": difference.only_in_lake,
        "different": difference.different,
        "examples": list(difference.examples),
        "proof": difference.proof.value,
        "at": str(difference.at.at) if difference.at else None,
        "gtid_set": difference.at.gtids if difference.at else None,
        "compared": difference.compared,
        "rows": [_row_json(row) for row in difference.rows],
    }


def _row_json(row: RowDifference) -> dict[str, Any]:
    found: dict[str, Any] = {"kind": row.kind, "key": row.key, "columns": list(row.columns)}
    if row.source is not None:
        found["source"], found["lake"] = row.source, row.lake
    return found


def _reasons(tables: Sequence[NotCompared]) -> dict[str, dict[str, str]]:
    return {str(table.table): {"reason": table.reason, "hint": table.hint} for table in tables}


def _tables_are(count: int) -> str:
    return "table is" if count == 1 else "tables are"


def show_verify(context: CommandContext, source: str, report: VerifyReport) -> None:
    """A line, the tables, the rows that differ, and what was not compared or proven."""
    equal = sum(difference.equal for difference in report.tables)
    count = len(report.tables) + len(report.not_compared) + len(report.not_proven)
    context.say(
        f"{source} at {report.position}: {equal} of {count} {_tables_are(count)} equal, "
        f"{report.seconds:.1f} s"
    )
    if gtids := report.position.gtid_set:
        context.say(f"  GTIDs: {gtids.shortened(_GTIDS)}")
    show_table(
        context,
        ("table", "rows", "in the lake", "missing", "too many", "different", "proven"),
        [
            (
                str(difference.table),
                f"{difference.source_rows:,}",
                f"{difference.lake_rows:,}",
                f"{difference.only_in_source:,}",
                f"{difference.only_in_lake:,}",
                f"{difference.different:,}",
                _proven(difference),
            )
            for difference in report.tables
        ],
    )
    for table in report.tables:
        for line in _differences(table):
            context.say(line)
    for one in report.not_compared:
        context.say(f"{one.table} was not compared: {one.reason}\n  {one.hint}")
    for one in report.not_proven:
        context.say(f"{one.table} is not proven: {one.reason}\n  {one.hint}")
    show_quarantined(context, report.quarantined)


def show_sampled(context: CommandContext, source: str, report: VerifyReport) -> None:
    """What a run compared once it was done: a line, and what differs."""
    rows = sum(difference.compared or 0 for difference in report.tables)
    wrong = [difference for difference in report.tables if not difference.equal]
    told = f"{len(wrong)} tables DIFFER from MySQL" if wrong else "all equal to MySQL"
    context.say(f"{source}: {counted(rows, 'row')} compared at {report.position}: {told}")
    for table in wrong:
        for line in _differences(table):
            context.say(line)
        context.say(f"  `lockstep verify {table.table}` finds all of them")


def _proven(difference: TableDifference) -> str:
    if not difference.equal:
        return "-"
    rows = "" if difference.compared is None else f"{difference.compared:,} rows, "
    return f"{rows}{difference.at.at}" if difference.at else "-"


def _differences(table: TableDifference) -> Iterator[str]:
    for row in table.rows[:_ROWS]:
        columns = f" ({', '.join(row.columns)})" if row.columns else ""
        yield f"{table.table}: {row}{columns}"
        yield from _values("MySQL", row.source)
        yield from _values("the lake", row.lake)
    more = table.only_in_source + table.only_in_lake + table.different - len(table.rows[:_ROWS])
    if more > 0:
        yield f"{table.table}: {more:,} more"


def _values(where: str, values: Mapping[str, str] | None) -> Iterator[str]:
    if values:
        yield f"  {where}: {', '.join(f'{name}={value}' for name, value in values.items())}"
