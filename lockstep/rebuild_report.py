"""What a rebuild made, and what of: lines and JSON.

Belongs here: how it looks. Does not: what is made (`pipeline.runs.rebuilding`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from lockstep.context import CommandContext
from lockstep.report import counted
from pipeline.runs.rebuilding.rebuild import RebuildReport


def show_rebuild(context: CommandContext, report: RebuildReport, *, planned: bool) -> None:
    for line in _lines(report, planned=planned):
        context.say(line)


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
    count = len(origin.parts)
    changes = f"{'1 batch' if count == 1 else f'{count:,} batches'} of its changelog"
    if origin.parts:
        changes += f", {origin.parts[0].batch} to {origin.parts[-1].batch}"
        changes += f" ({counted(origin.images, 'row image')})"
    if origin.base is None:
        return changes
    entry = origin.base.entry
    base = f"version {entry.delta_version} of {entry.mirror}, as of batch {origin.base.batch}"
    return f"{base}, and {changes}" if origin.parts else base


def rebuild_json(report: RebuildReport) -> dict[str, Any]:
    origin, cut = report.origin, report.cut
    base, moment = origin.base, cut.committed_at
    return {
        "table": str(report.table),
        "as_of": {
            "position": str(cut.at),
            "gtid": cut.gtid,
            "committed_at": None if moment is None else moment.isoformat(),
            "batch": cut.batch.id,
            "whole_batch": cut.whole,
        },
        "base": None
        if base is None
        else {
            "mirror": base.entry.mirror,
            "delta_version": base.entry.delta_version,
            "batch": base.batch,
        },
        "batches": [part.batch for part in origin.parts],
        "row_images": origin.images,
        "into": report.into,
        "delta_version": report.delta_version,
        "rows": report.rows,
        "seconds": report.seconds,
    }
