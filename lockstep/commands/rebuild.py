"""`lockstep rebuild TABLE`: a mirror as of any transaction of the past, or the live one again."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lockstep import exits
from lockstep.context import CommandContext, Outcome
from lockstep.grammar import UsageError, place_argument, table_name
from lockstep.report import counted
from pipeline.changes.layout import rebuilt_path
from pipeline.json_values import parts
from pipeline.places import Place
from pipeline.runs.context import Workplace
from pipeline.runs.rebuilding.rebuild import (
    RebuildReport,
    plan_rebuild,
    rebuild_as_of,
    rebuild_live,
)
from pipeline.runs.replaying.waiting import lock_when_free
from pipeline.table import TableName
from resources.adapters import Adapters
from resources.holders import holder
from resources.lake.paths import LakePath, is_url


def perform(arguments: argparse.Namespace, context: CommandContext) -> Outcome:
    """0, or a refusal: 2 for what the past does not have, 3 while batches wait."""
    table = table_name(arguments.table)
    if arguments.into and not arguments.as_of:
        raise UsageError(
            "--into is where a table of the past goes; the live mirror stays where it is.",
            hint="say as of when, with `--as-of PLACE`, or leave --into out",
        )
    place = place_argument(arguments.as_of, "--as-of", "rebuild") if arguments.as_of else None
    with context.adapters() as adapters:
        source = context.source_of(adapters, arguments.source, table)
        with context.watch(source) as progress:
            work = adapters.workplace(source, progress)
            done = _done(arguments, context, adapters, work, table, place)
    context.say(*_lines(done, planned=arguments.dry_run))
    told = {"source": source, "dry_run": arguments.dry_run, **_values(done)}
    return Outcome(exits.DONE, told)


def _done(
    arguments: argparse.Namespace,
    context: CommandContext,
    adapters: Adapters,
    work: Workplace,
    table: TableName,
    place: Place | None,
) -> RebuildReport:
    from dataclasses import replace

    if place is None and arguments.dry_run:
        return plan_rebuild(work, table, None)
    if place is None:
        name = work.source.name
        with lock_when_free(work.ledger, name, holder("rebuild"), context.note) as lease:
            return rebuild_live(work, lease, adapters.lake().copies, table)
    lake = context.settings.lake_path().absolute()
    planned = plan_rebuild(work, table, place)
    chosen = _chosen(arguments.into or "", lake, work, planned)
    if arguments.dry_run:
        return replace(planned, into=str(chosen))
    return rebuild_as_of(work, adapters.lake().copies, table, place, str(chosen))


def _chosen(into: str, lake: LakePath, work: Workplace, planned: RebuildReport) -> Path:
    """Where a table of the past goes: what was named, or beside the lake, named by its place."""
    if is_url(into) or (not into and not isinstance(lake, Path)):
        raise UsageError(
            "A table of the past is made in a folder of this machine.",
            hint="name one with `--into`",
        )
    if not isinstance(lake, Path):
        return Path(into).absolute()
    at = str(planned.cut.at).replace(":", "-")
    below = rebuilt_path(work.source.name, planned.table, at)
    chosen = Path(into).absolute() if into else lake.with_name(f"{lake.name}-as-of") / below
    _require_outside(chosen, lake)
    return chosen


def _require_outside(chosen: Path, lake: Path) -> None:
    resolved = chosen.resolve()
    if resolved == lake.resolve() or lake.resolve() in resolved.parents:
        raise UsageError(
            f"{chosen} lies in the lake, whose tables are kept as they are now.",
            hint="name a place outside of it with `--into`",
        )


def _lines(report: RebuildReport, *, planned: bool) -> Iterator[str]:
    table, cut = report.table, report.cut
    rows = "" if report.rows is None else f", {counted(report.rows, 'row')}"
    if report.into is not None:
        verb = "would be made in" if planned else "is in"
        yield f"{table} as of {cut} {verb} {report.into}{rows}"
    elif planned:
        yield f"the mirror of {table} would be made again, as of {cut}"
    else:
        yield (
            f"the mirror of {table} was made again as version {report.delta_version}, "
            f"as of {cut}{rows}"
        )
    yield f"made from {_made_from(report)}"
    if planned:
        yield "nothing is read or written (--dry-run)"


def _made_from(report: RebuildReport) -> str:
    origin = report.origin
    changes = f"{counted(len(origin.parts), 'batch', 'batches')} of its changelog"
    if origin.parts:
        changes += f", {origin.parts[0].batch} to {origin.parts[-1].batch}"
        changes += f" ({counted(origin.images, 'row image')})"
    if origin.base is None:
        return changes
    entry = origin.base.entry
    base = f"version {entry.delta_version} of {entry.mirror}, as of batch {origin.base.batch}"
    return f"{base}, and {changes}" if origin.parts else base


def _values(report: RebuildReport) -> dict[str, Any]:
    origin, base = report.origin, report.origin.base
    place = "at as position, gtid, committed_at, batch.id as batch, whole as whole_batch"
    return {
        "table": report.table,
        "as_of": parts(report.cut, place),
        "base": base and {**parts(base.entry, "mirror", "delta_version"), "batch": base.batch},
        "batches": [part.batch for part in origin.parts],
        "row_images": origin.images,
        **parts(report, "into", "delta_version", "rows", "seconds"),
    }
