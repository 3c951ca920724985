"""What upkeep found and did: lines and JSON.

Belongs here: how it looks. Does not: what is found (`pipeline.runs.upkeeping`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from lockstep.context import CommandContext
from pipeline.runs.upkeeping.upkeep import StepDone, TableDone, UpkeepReport
from pipeline.upkeep.changes import ChangesPlan
from pipeline.upkeep.decide import StepKind, UpkeepStep
from pipeline.upkeep.facts import Pile


def show_upkeep(
    context: CommandContext, source: str, report: UpkeepReport, *, planned: bool
) -> None:
    for line in _lines(report, planned=planned):
        context.say(f"{source}: {line}")


def _lines(report: UpkeepReport, *, planned: bool) -> Iterator[str]:
    yield from changes_lines(report.changes, planned=planned)
    if report.logs.files:
        would = "would be deleted" if planned else "deleted"
        yield f"logs: {pile_text(report.logs)} of checkpoints {would}"
    idle = 0
    for table in report.tables:
        lines = [*_table_lines(table, planned=planned)]
        idle += not lines
        yield from lines
    if idle:
        yield f"{idle} {'table has' if idle == 1 else 'tables have'} nothing to do"
    elif not report.tables:
        yield "no table has a mirror yet"
    if planned:
        yield "nothing was changed (--dry-run)"


def changes_lines(changes: ChangesPlan, *, planned: bool) -> Iterator[str]:
    """About changelogs, all of them together."""
    if changes.left is not None:
        yield f"changes: nothing old is deleted: {changes.left}"
    if changes.held is not None:
        yield f"changes: {changes.held}"
    would = "would be " if planned else ""
    if changes.unlisted.files or changes.through is not None:
        yield f"changes: {pile_text(changes.unlisted)} {would}taken off the changelogs"
    if changes.deleted.files:
        yield f"changes: {pile_text(changes.deleted)} {would}deleted"
    if changes.rows:
        yield f"ledger: {changes.rows:,} rows about them deleted"


def _table_lines(done: TableDone, *, planned: bool) -> Iterator[str]:
    table = done.planned.table
    if done.planned.why is not None:
        yield f"{table}: left alone: {done.planned.why}"
    if planned:
        for step in done.planned.plan.steps:
            yield f"{table}: would {step.kind.value} {pile_text(step.pile)}: {step.reason}"
    for one in done.steps:
        yield f"{table}: {_told(one)}"
    for left in done.left:
        yield f"{table}: {left}"


def _told(done: StepDone) -> str:
    if done.step.kind is StepKind.VACUUM:
        return f"vacuum: {pile_text(done.gone)} deleted"
    return f"{done.step.kind.value}: version {done.delta_version}, {done.step.reason}"


def pile_text(pile: Pile) -> str:
    return f"{pile.files:,} {'file' if pile.files == 1 else 'files'} ({_size(pile.bytes)})"


def _size(size: int) -> str:
    value = float(size)
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if value < 1024:
            return f"{value:.0f} {unit}" if unit == "bytes" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} TiB"


def upkeep_json(report: UpkeepReport, *, planned: bool) -> dict[str, Any]:
    return {
        "dry_run": planned,
        "seconds": round(report.seconds, 3),
        "checkpoint_files": report.logs.files,
        "checkpoint_bytes": report.logs.bytes,
        "changes": _changes_json(report.changes),
        "tables": {str(table.planned.table): _table_json(table) for table in report.tables},
    }


def _changes_json(changes: ChangesPlan) -> dict[str, Any]:
    return {
        "through_batch": changes.through,
        "held": changes.held,
        "left": changes.left,
        "unlisted_files": changes.unlisted.files,
        "unlisted_bytes": changes.unlisted.bytes,
        "deleted_files": changes.deleted.files,
        "deleted_bytes": changes.deleted.bytes,
        "ledger_rows": changes.rows,
    }


def _table_json(done: TableDone) -> dict[str, Any]:
    files = done.planned.files
    return {
        "mirror": done.planned.mirror,
        "left_alone": done.planned.why,
        "files": None if files is None else len(files.sizes),
        "bytes": None if files is None else sum(files.sizes),
        "planned": [_step_json(step) for step in done.planned.plan.steps],
        "done": [
            {
                "step": step.step.kind.value,
                "delta_version": step.delta_version,
                "deleted_files": step.gone.files,
                "deleted_bytes": step.gone.bytes,
                "seconds": round(step.seconds, 3),
            }
            for step in done.steps
        ],
        "left": list(done.left),
    }


def _step_json(step: UpkeepStep) -> dict[str, Any]:
    return {
        "step": step.kind.value,
        "files": step.pile.files,
        "bytes": step.pile.bytes,
        "reason": step.reason,
    }
