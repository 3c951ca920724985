"""`lockstep upkeep`: compact small files of mirrors, and delete files that no version
needs."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any, Final

from lockstep import exits
from lockstep.assets.run_page import size
from lockstep.context import CommandContext, Outcome
from lockstep.grammar import table_name
from lockstep.pipeline.model.json_values import attributes
from lockstep.pipeline.run.clear import clearable
from lockstep.pipeline.run.upkeep.changes import plan_changes
from lockstep.pipeline.run.upkeep.upkeep import (
    TableUpkeep,
    UpkeepReport,
    plan_former,
    plan_upkeep,
    thin_logs,
    upkeep,
)
from lockstep.pipeline.upkeep.changes import ChangesPlan
from lockstep.pipeline.upkeep.decide import FileTotal, StepKind
from lockstep.pipeline.values.table import TableName
from lockstep.printing import counted
from lockstep.resources.adapters import Adapters
from lockstep.resources.holders import holder_name


def perform(arguments: argparse.Namespace, context: CommandContext) -> Outcome:
    """Carry out or plan the upkeep of each source. The exit code is 0 even if a table
    is left to the next upkeep; the answer names the table."""
    only = frozenset(map(table_name, arguments.tables)) or None
    payload: dict[str, Any] = {}
    with context.adapters() as adapters:
        for source in context.sources(arguments.source):
            report = _report(arguments, context, adapters, source.name, only)
            for line in _lines(report, planned=arguments.dry_run):
                context.say(f"{source.name}: {line}")
            payload[source.name] = _values(report, planned=arguments.dry_run)
    return Outcome(exits.DONE, {"sources": payload})


def _report(
    arguments: argparse.Namespace,
    context: CommandContext,
    adapters: Adapters,
    source: str,
    only: frozenset[TableName] | None,
) -> UpkeepReport:
    """Carry out the upkeep, or with `--dry-run` plan it."""
    policy = context.settings.upkeep_policy(purge=arguments.purge)
    with context.watch(source) as progress:
        work, lake = adapters.workplace(source, progress), adapters.lake().upkeep
        if arguments.dry_run:
            tables = tuple(plan_upkeep(work, lake, policy, only))
            if only is not None:
                return UpkeepReport(tables, 0.0)
            changes = plan_changes(work, policy.keep_changes, lake.keep)
            logs = thin_logs(work, lake, delete=False)
            former = plan_former(work, lake.keep)
            cleared = tuple(clearable(work))
            return UpkeepReport(tables, 0.0, changes, cleared, logs, former)
        return upkeep(work, lake, policy, holder_name("upkeep"), only)


def _lines(report: UpkeepReport, *, planned: bool) -> Iterator[str]:
    deleted = "would be deleted" if planned else "deleted"
    yield from _changes_lines(report.changes, planned=planned)
    if report.logs.files:
        yield f"logs: {_pile(report.logs)} of checkpoints {deleted}"
    for note in report.cleared:
        values = f"values of {note.tightening.hidden_in_words}"
        if planned:
            yield f"{note.table}: {values} in plaintext would be deleted: {note.sentence}"
        else:
            yield f"{note.table}: no {values} are left in plaintext"
    for former in report.former:
        yield f"{former.folder}, where a mirror was before: {former.kept or deleted}"
    idle = 0
    for table in report.tables:
        lines = [*_table_lines(table, planned=planned)]
        idle += not lines
        yield from lines
    if idle:
        yield f"{counted(idle, 'table has', 'tables have')} nothing to do"
    elif not report.tables:
        yield "no table has a mirror yet"
    if planned:
        yield "nothing was changed (--dry-run)"


def _changes_lines(changes: ChangesPlan, *, planned: bool) -> Iterator[str]:
    if changes.left is not None:
        yield f"changes: nothing old is deleted: {changes.left}"
    if changes.held is not None:
        yield f"changes: {changes.held}"
    would_be = "would be " if planned else ""
    if changes.unlisted.files or changes.through is not None:
        yield f"changes: {_pile(changes.unlisted)} {would_be}removed from the changelogs"
    if changes.deleted.files:
        yield f"changes: {_pile(changes.deleted)} {would_be}deleted"
    if changes.rows:
        yield f"ledger: {counted(changes.rows, 'row')} about them deleted"


def _table_lines(upkeep: TableUpkeep, *, planned: bool) -> Iterator[str]:
    table = upkeep.table
    if upkeep.why is not None:
        yield f"{table}: left alone: {upkeep.why}"
    if planned:
        for step in upkeep.planned:
            yield f"{table}: would {step.kind.value} {_pile(step.total)}: {step.reason}"
    for done in upkeep.done:
        result = f"version {done.delta_version}, {done.step.reason}"
        if done.step.kind is StepKind.VACUUM:
            result = f"{_pile(done.gone)} deleted"
        yield f"{table}: {done.step.kind.value}: {result}"
    for left in upkeep.left:
        yield f"{table}: {left}"


def _pile(pile: FileTotal) -> str:
    return f"{counted(pile.files, 'file')} ({size(pile.bytes)})"


_CHANGES: Final = (
    "through as through_batch, held, left, unlisted.files as unlisted_files, "
    "unlisted.bytes as unlisted_bytes, deleted.files as deleted_files, "
    "deleted.bytes as deleted_bytes, rows as ledger_rows"
)
_PLANNED: Final = "kind as step, total.files as files, total.bytes as bytes, reason"
_DONE: Final = (
    "step.kind as step, delta_version, gone.files as deleted_files, gone.bytes as deleted_bytes, "
    "seconds"
)


def _values(report: UpkeepReport, *, planned: bool) -> dict[str, Any]:
    return {
        "dry_run": planned,
        **attributes(
            report, "seconds, logs.files as checkpoint_files, logs.bytes as checkpoint_bytes"
        ),
        "changes": attributes(report.changes, _CHANGES),
        "cleared": [note.table for note in report.cleared],
        "former_mirrors": report.former,
        "tables": {table.table: _table_values(table) for table in report.tables},
    }


def _table_values(upkeep: TableUpkeep) -> dict[str, Any]:
    files = upkeep.files
    return {
        **attributes(upkeep, "mirror", "why as left_alone"),
        "files": None if files is None else len(files.sizes),
        "bytes": None if files is None else sum(files.sizes),
        "planned": [attributes(step, _PLANNED) for step in upkeep.planned],
        "done": [attributes(step, _DONE) for step in upkeep.done],
        "left": upkeep.left,
    }
