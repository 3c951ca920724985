"""`lockstep rebuild TABLE --as-of PLACE`: write a table as it was after any past
transaction. A place is a point in the source's log."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lockstep import exits
from lockstep.arguments import parse_table_name, place_argument
from lockstep.context import CommandContext, Outcome
from lockstep.grammar import UsageError
from lockstep.pipeline.mirror.layout import rebuilt_path
from lockstep.pipeline.model.json_values import attributes
from lockstep.pipeline.run.context import RunPorts
from lockstep.pipeline.run.rebuild import RebuildOrigin, RebuildReport, origin_at, rebuild_as_of
from lockstep.pipeline.values.shown import pluralize
from lockstep.printing import origin_values
from lockstep.resources.lake.store.paths import LakePath, is_url


def perform(arguments: argparse.Namespace, context: CommandContext) -> Outcome:
    """Write the table to a folder outside the lake. With `--dry-run`, only show the
    Delta version and the changes from which the table would be made. The exit code is 2
    if the lake does not have that version and these changes."""
    table = parse_table_name(arguments.table)
    place = place_argument(arguments, "--as-of", arguments.as_of)
    with context.adapters() as adapters:
        source = context.source_with_table(adapters, arguments.source, table)
        with context.watch(source) as progress:
            ports = adapters.ports(source, progress)
            origin = origin_at(ports, table, place)
            lake = context.settings.lake_path().absolute()
            into = str(_target_folder(arguments.into or "", lake, ports, origin))
            report = RebuildReport(origin, into)
            if not arguments.dry_run:
                report = rebuild_as_of(ports, adapters.lake().copies, origin, into)
    context.say(*report_lines(report, is_planned=arguments.dry_run))
    values = {"source": source, "dry_run": arguments.dry_run, **report_values(report)}
    return Outcome(exits.DONE, values)


def _target_folder(into: str, lake: LakePath, ports: RunPorts, origin: RebuildOrigin) -> Path:
    """Return the folder of the new table: `--into`, or else a folder beside the lake
    whose name contains the place. Raise `UsageError` if it is not a local folder
    outside the lake."""
    if is_url(into) or (not into and not isinstance(lake, Path)):
        raise UsageError(
            "A table of the past is made in a folder of this machine.",
            hint="name one with `--into`",
        )
    if not isinstance(lake, Path):
        return Path(into).absolute()
    place = str(origin.cut.at).replace(":", "-")
    default = lake.with_name(f"{lake.name}-as-of") / rebuilt_path(
        ports.source.name, origin.table, place
    )
    folder = Path(into).absolute() if into else default
    _require_outside(folder, lake)
    return folder


def _require_outside(folder: Path, lake: Path) -> None:
    resolved = folder.resolve()
    if resolved == lake.resolve() or lake.resolve() in resolved.parents:
        raise UsageError(
            f"{folder} lies in the lake, whose mirrors show the current rows.",
            hint="name a folder outside the lake with `--into`",
        )


def report_lines(report: RebuildReport, *, is_planned: bool) -> Iterator[str]:
    rows = "" if report.rows is None else f", {pluralize(report.rows, 'row')}"
    verb = "would be made in" if is_planned else "is in"
    yield f"{report.table} as of {report.cut} {verb} {report.into}{rows}"
    yield f"made from {_origin_words(report)}"
    if is_planned:
        yield "nothing is read or written (--dry-run)"
    if (extent := report.origin.extent) is not None:
        yield f"{report.table} is {extent.sentence}"


def _origin_words(report: RebuildReport) -> str:
    origin = report.origin.changelog_origin
    contents = origin.contents
    changes = f"{pluralize(len(contents), 'batch', 'batches')} of its changelog"
    if contents:
        changes += f", {contents[0].batch} to {contents[-1].batch}"
        changes += f" ({pluralize(origin.images, 'row image')})"
    if origin.base is None:
        return changes
    version = f"{origin.base}, as of batch {origin.base.last_batch}"
    return f"{version}, and {changes}" if contents else version


def report_values(report: RebuildReport) -> dict[str, Any]:
    cut_keys = "at as place, gtid, committed_at, batch.id as batch, is_end_of_batch as whole_batch"
    return {
        "table": report.table,
        "as_of": attributes(report.cut, cut_keys),
        **origin_values(report.origin.changelog_origin),
        **attributes(report.origin.extent, "begins"),
        **attributes(report, "into, rows, seconds"),
    }
