"""`lockstep replay`: a span of the past once more; the live position stays where it is."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from lockstep import exits
from lockstep.context import CommandContext, Outcome
from lockstep.grammar import UsageError, place_argument, table_name
from lockstep.holder import holder
from pipeline.runs.replaying.segments_found import SegmentFound, SegmentStanding

if TYPE_CHECKING:
    from pipeline.replay.rows import ReplayDifference
    from pipeline.replay.spans import Span
    from pipeline.runs.context import Workplace
    from pipeline.runs.replaying.heal import Healed
    from pipeline.runs.replaying.replay import ReplayReport
    from pipeline.table import TableName

_SHOWN: Final = 20
"""So many rows that differ are shown of a table or file; JSON has more of them."""

_RIGHT: Final = (SegmentStanding.SAME, SegmentStanding.UNTOLD)


def perform(arguments: argparse.Namespace, context: CommandContext) -> Outcome:
    """4 where `--compare` finds a difference, or a damaged file could not be replaced; 6 where
    tables could not be compared."""
    from pipeline.replay.spans import Span

    if arguments.show_values and not arguments.compare:
        raise UsageError(
            "--show-values is for --compare: a replay that writes tells of no rows.",
            hint="add --compare, or leave --show-values out",
        )
    since = place_argument(arguments.since, "--from", "replay")
    until = place_argument(arguments.until, "--to", "replay")
    only = frozenset(map(table_name, arguments.tables)) or None
    source = context.one_source(arguments.source)
    with context.work_on(source.name) as (_, work):
        done = _done(arguments, context, work, Span(since, until), only)
    for line in replay_lines(done, planned=arguments.dry_run):
        context.say(f"{source.name}: {line}")
    code = exits.DONE if arguments.dry_run else exit_code(done)
    return Outcome(code, {"source": source.name, **replay_values(done)})


def _done(
    arguments: argparse.Namespace,
    context: CommandContext,
    work: Workplace,
    span: Span,
    only: frozenset[TableName] | None,
) -> ReplayReport:
    from pipeline.runs.replaying.replay import plan_replay, replay
    from pipeline.runs.replaying.waiting import lock_when_free

    if arguments.dry_run:
        return plan_replay(work, span, only)
    with lock_when_free(work.ledger, work.source.name, holder("replay"), context.note) as lease:
        compares, shows = arguments.compare, arguments.show_values
        return replay(work, lease, span, only, commit=not compares, show_values=shows)


def exit_code(report: ReplayReport) -> int:
    codes = [exits.DONE]
    wrong = report.left or report.wrong_changelogs
    if wrong or (report.differs and not report.committed):
        codes.append(exits.DIFFERENCES)
    if any(mirror.not_compared is not None for mirror in report.mirrors):
        codes.append(exits.QUARANTINED)
    return exits.most_serious(codes)


def replay_lines(report: ReplayReport, *, planned: bool) -> Iterator[str]:
    batches = report.batches
    if not batches:
        yield f"no batch touches {report.span}: nothing is replayed"
        return
    first, last = batches[0].batch, batches[-1].batch
    count = "1 batch" if len(batches) == 1 else f"{len(batches)} batches"
    yield f"{count}, {first.id} to {last.id}: {first.start} to {last.end}"
    if report.early is not None:
        yield f"the span goes on beyond the lake, which ends at {report.early}"
    for batch in batches:
        if batch.as_recorded is not None:
            yield f"batch {batch.batch.id} from its changelog alone: {batch.as_recorded}"
    if planned:
        yield f"tables: {', '.join(map(str, report.tables)) or 'none'}"
        yield "nothing is read or written (--dry-run)"
        return
    for changelog in report.changelogs:
        yield f"{changelog.changelog.table}: {changelog.told}"
    for segment in report.segments:
        if segment.standing in (SegmentStanding.DIFFERENT, SegmentStanding.DAMAGED):
            yield _segment_line(segment, committed=report.committed)
            yield from _rows(segment.rows, segment.wrong)
    for healed in report.mirrors:
        yield _mirror_line(healed, committed=report.committed)
        yield from _rows(healed.rows, healed.wrong if healed.rows else 0)
    if not report.committed:
        yield "nothing was written (--compare)"


def _rows(rows: Sequence[ReplayDifference], count: int) -> Iterator[str]:
    """Some rows that differ, and how many more there are."""
    for row in rows[:_SHOWN]:
        columns = f" ({', '.join(row.columns)})" if row.columns else ""
        yield f"  {row.kind}: {row.key}{columns}"
        for where, values in (("the log says", row.told), ("the lake has", row.shown)):
            if values:
                told = ", ".join(f"{name}={value}" for name, value in values.items())
                yield f"    {where}: {told}"
    if count > len(rows[:_SHOWN]):
        yield f"  {count - len(rows[:_SHOWN]):,} more"


def _segment_line(segment: SegmentFound, *, committed: bool) -> str:
    what = f"{segment.table} in batch {segment.batch} is {segment.standing.value}"
    if segment.columns:
        what += f" in {', '.join(segment.columns)}"
    if segment.why is not None:
        what += f" ({segment.why})"
    if segment.waits is not None:
        return f"{what}; the log brings it again, and it waits: {segment.waits}"
    if not segment.replaced:
        return (
            f"{what}; the log cannot bring it back: restore the file from a copy of the lake, or "
            f"`lockstep verify {segment.table} --repair`"
        )
    return f"{what}: replaced" if committed else f"{what}: a replay replaces it"


def _mirror_line(healed: Healed, *, committed: bool) -> str:
    table = healed.table
    if healed.not_compared is not None:
        return f"{table}: its mirror was not compared: {healed.not_compared}; {healed.hint}"
    if not healed.wrong:
        return f"{table}: {healed.keys:,} keys, all as the changelog says"
    what = f"{table}: {healed.wrong:,} of {healed.keys:,} keys"
    if healed.delta_version is None:
        return f"{what} are not what the changelog says"
    return f"{what} put right, version {healed.delta_version}" if committed else what


def replay_values(report: ReplayReport) -> dict[str, Any]:
    mirrors = {mirror.table: mirror for mirror in report.mirrors}
    return {
        "from": str(report.span.since),
        "to": str(report.span.until),
        "committed": report.committed,
        "ends_at": report.early,
        "seconds": report.seconds,
        "batches": [
            {
                "batch": replayed.batch.id,
                "start": replayed.batch.start.at,
                "end": replayed.batch.end and replayed.batch.end.at,
                "as_recorded": replayed.as_recorded,
                "revision": replayed.revision,
            }
            for replayed in report.batches
        ],
        "tables": {
            table: {**_segment_values(report, table), "mirror": mirrors.get(table)}
            for table in report.tables
        },
        "changelogs": [
            {
                "table": str(agreement.changelog.table),
                "folder": agreement.changelog.folder,
                "foreign": None if agreement.error is None else agreement.error.reason,
                "not_recorded": agreement.found.surplus,
                "not_listed": [file.path for file in agreement.found.lacking],
                "set_right": agreement.righted,
                "why_not": agreement.left,
            }
            for agreement in report.changelogs
        ],
    }


def _segment_values(report: ReplayReport, table: TableName) -> dict[str, Any]:
    segments = [segment for segment in report.segments if segment.table == table]
    return {
        "segments": Counter(segment.standing for segment in segments),
        "replaced": sum(segment.replaced for segment in segments) if report.committed else 0,
        "changelog": [segment for segment in segments if segment.standing not in _RIGHT],
    }
