"""`lockstep upkeep`: compact small files of mirrors, and delete files that no version
needs."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any, Final

from lockstep import exits
from lockstep.arguments import parse_table_name
from lockstep.assets.run_page import format_bytes
from lockstep.context import CommandContext, Outcome
from lockstep.pipeline.model.json_values import attributes
from lockstep.pipeline.run.clear import clearable
from lockstep.pipeline.run.upkeep import (
    TableUpkeep,
    UpkeepReport,
    carry_out_upkeep,
    plan_changes,
    plan_former_folders,
    plan_upkeep,
    thin_logs,
)
from lockstep.pipeline.upkeep.changes import ChangesPlan
from lockstep.pipeline.upkeep.decide import FileTotal, StepKind
from lockstep.pipeline.values.shown import pluralize
from lockstep.pipeline.values.table import TableName
from lockstep.resources.adapters import Adapters
from lockstep.resources.holders import holder_name


def perform(arguments: argparse.Namespace, context: CommandContext) -> Outcome:
    """Carry out or plan the upkeep of each source. The exit code is 0 even if a table
    is left to the next upkeep; the answer names the table."""
    only_tables = frozenset(map(parse_table_name, arguments.tables)) or None
    payload: dict[str, Any] = {}
    with context.adapters() as adapters:
        for source in context.sources(arguments.source):
            report = _upkeep_report(arguments, context, adapters, source.name, only_tables)
            for line in upkeep_lines(report, is_planned=arguments.dry_run):
                context.say(f"{source.name}: {line}")
            payload[source.name] = _report_values(report, is_planned=arguments.dry_run)
    return Outcome(exits.DONE, {"sources": payload})


def _upkeep_report(
    arguments: argparse.Namespace,
    context: CommandContext,
    adapters: Adapters,
    source: str,
    only_tables: frozenset[TableName] | None,
) -> UpkeepReport:
    """Carry out the upkeep, or with `--dry-run` plan it."""
    policy = context.settings.upkeep_policy(purge=arguments.purge)
    with context.watch(source) as progress:
        ports, lake = adapters.ports(source, progress), adapters.upkeep()
        if arguments.dry_run:
            tables = tuple(plan_upkeep(ports, lake, policy, only_tables))
            if only_tables is not None:
                return UpkeepReport(tables, 0.0)
            return UpkeepReport(
                tables,
                0.0,
                changes=plan_changes(ports, policy.keep_changes, lake.keep),
                checkpoints=thin_logs(ports, lake, delete=False),
                former_mirrors=plan_former_folders(ports, lake.keep),
                cleared_notes=tuple(clearable(ports)),
            )
        return carry_out_upkeep(ports, lake, policy, holder_name("upkeep"), only_tables)


def upkeep_lines(report: UpkeepReport, *, is_planned: bool) -> Iterator[str]:
    """Yield the lines that the command prints about one source's upkeep."""
    deleted_words = "would be deleted" if is_planned else "deleted"
    yield from _changes_lines(report.changes, is_planned=is_planned)
    if report.checkpoints.count:
        yield f"logs: {_total_words(report.checkpoints)} of checkpoints {deleted_words}"
    for note in report.cleared_notes:
        values = f"values of {note.tightening.hidden_in_words}"
        if is_planned:
            yield f"{note.table}: {values} in plaintext would be deleted: {note.sentence}"
        else:
            yield f"{note.table}: no {values} are left in plaintext"
    for former_mirror in report.former_mirrors:
        result = former_mirror.reason_kept or deleted_words
        yield f"{former_mirror.folder}, where a mirror was before: {result}"
    idle_count = 0
    for table in report.tables:
        lines = [*_table_lines(table, is_planned=is_planned)]
        if not lines:
            idle_count += 1
        yield from lines
    if idle_count:
        yield f"nothing to do for {pluralize(idle_count, 'table')}"
    elif not report.tables:
        yield "no table has a mirror yet"
    if is_planned:
        yield "nothing was changed (--dry-run)"


def _changes_lines(changes: ChangesPlan, *, is_planned: bool) -> Iterator[str]:
    if changes.obstacle is not None:
        yield f"changes: nothing old is deleted: {changes.obstacle}"
    if changes.holder_sentence is not None:
        yield f"changes: {changes.holder_sentence}"
    would_be = "would be " if is_planned else ""
    if changes.unlisted.count or changes.last_batch is not None:
        yield f"changes: {_total_words(changes.unlisted)} {would_be}removed from the changelogs"
    if changes.deleted.count:
        yield f"changes: {_total_words(changes.deleted)} {would_be}deleted"
    if changes.ledger_rows:
        yield f"ledger: {pluralize(changes.ledger_rows, 'row')} about them {would_be}deleted"


def _table_lines(upkeep: TableUpkeep, *, is_planned: bool) -> Iterator[str]:
    table = upkeep.table
    if upkeep.reason_left_alone is not None:
        yield f"{table}: left alone: {upkeep.reason_left_alone}"
    if is_planned:
        for step in upkeep.planned_steps:
            yield f"{table}: would {step.kind.value} {_total_words(step.total)}: {step.reason}"
    for completed_step in upkeep.completed_steps:
        result = f"version {completed_step.delta_version}, {completed_step.step.reason}"
        if completed_step.step.kind is StepKind.VACUUM:
            result = f"{_total_words(completed_step.deleted)} deleted"
        yield f"{table}: {completed_step.step.kind.value}: {result}"
    for obstacle in upkeep.obstacles:
        yield f"{table}: {obstacle}"


def _total_words(total: FileTotal) -> str:
    return f"{pluralize(total.count, 'file')} ({format_bytes(total.bytes)})"


_CHANGES_KEYS: Final = (
    "last_batch as through_batch, holder_sentence as held_because, obstacle, "
    "unlisted.count as unlisted_files, unlisted.bytes as unlisted_bytes, "
    "deleted.count as deleted_files, deleted.bytes as deleted_bytes, ledger_rows"
)
_PLANNED_KEYS: Final = "kind as step, total.count as files, total.bytes as bytes, reason"
_DONE_KEYS: Final = (
    "step.kind as step, delta_version, deleted.count as deleted_files, "
    "deleted.bytes as deleted_bytes, seconds"
)


def _report_values(report: UpkeepReport, *, is_planned: bool) -> dict[str, Any]:
    return {
        "dry_run": is_planned,
        **attributes(
            report,
            "seconds, checkpoints.count as checkpoint_files, checkpoints.bytes as checkpoint_bytes",
        ),
        "changes": attributes(report.changes, _CHANGES_KEYS),
        "cleared": [note.table for note in report.cleared_notes],
        "former_mirrors": [
            attributes(former, "folder, reason_kept as kept") for former in report.former_mirrors
        ],
        "tables": {table.table: _table_values(table) for table in report.tables},
    }


def _table_values(upkeep: TableUpkeep) -> dict[str, Any]:
    files = upkeep.files
    return {
        **attributes(upkeep, "mirror, reason_left_alone as left_alone"),
        "files": None if files is None else len(files.sizes),
        "bytes": None if files is None else sum(files.sizes),
        "planned": [attributes(step, _PLANNED_KEYS) for step in upkeep.planned_steps],
        "done": [attributes(step, _DONE_KEYS) for step in upkeep.completed_steps],
        "obstacles": upkeep.obstacles,
    }
