"""`lockstep replay`: read a span of the log again and correct the lake. The position of
the next run does not move."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator
from functools import partial
from typing import Any, Final

from lockstep import exits
from lockstep.arguments import parse_table_name, place_argument
from lockstep.context import CommandContext, Outcome
from lockstep.grammar import UsageError
from lockstep.pipeline.model.json_values import attributes
from lockstep.pipeline.replay.spans import Span
from lockstep.pipeline.run.replay.mirror_correction import MirrorCorrection
from lockstep.pipeline.run.replay.replay import ReplayReport, plan_replay, replay
from lockstep.pipeline.run.replay.segment_comparison import SegmentResult, SegmentStanding
from lockstep.pipeline.run.run import lock_when_free
from lockstep.pipeline.values.shown import pluralize
from lockstep.pipeline.values.table import TableName
from lockstep.printing import differing_row_lines
from lockstep.resources.holders import holder_name


def perform(arguments: argparse.Namespace, context: CommandContext) -> Outcome:
    """Plan the replay with `--dry-run`, else carry it out."""
    if arguments.show_values and not arguments.compare:
        raise UsageError(
            "--show-values needs --compare: a replay that writes shows no rows.",
            hint="add --compare, or leave --show-values out",
        )
    since = place_argument(arguments, "--from", arguments.from_)
    until = place_argument(arguments, "--to", arguments.to)
    only_tables = frozenset(map(parse_table_name, arguments.tables)) or None
    source = context.one_source(arguments.source)
    with context.open_source(source.name) as (_, ports):
        if arguments.dry_run:
            report = plan_replay(ports, Span(since, until), only_tables)
        else:
            lock = partial(ports.ledger.lock, source.name, holder_name("replay"), None)
            with lock_when_free(lock, context.note) as lease:
                report = replay(
                    ports,
                    lease,
                    Span(since, until),
                    only_tables,
                    commit=not arguments.compare,
                    show_values=arguments.show_values,
                )
    for line in replay_lines(report, is_planned=arguments.dry_run):
        context.say(f"{source.name}: {line}")
    code = exits.DONE if arguments.dry_run else exit_code(report)
    return Outcome(code, {"source": source.name, **replay_values(report)})


def exit_code(report: ReplayReport) -> int:
    """Return 4 if `--compare` found a difference or a damaged file could not be
    replaced, 6 if tables could not be compared as they are now. A table whose mirror
    can never be compared by key does not count."""
    codes = [exits.DONE]
    damage = report.unreplaced_segments or report.wrong_changelogs
    if damage or (report.has_differences and not report.committed):
        codes.append(exits.DIFFERENCES)
    if any(mirror.not_compared and mirror.is_comparable for mirror in report.mirrors):
        codes.append(exits.QUARANTINED)
    return exits.most_serious(codes)


def replay_lines(report: ReplayReport, *, is_planned: bool) -> Iterator[str]:
    """Yield the batches of the span, then the files and mirrors that differed from the
    log."""
    batches = report.batches
    if not batches:
        yield f"no batch overlaps {report.span}: nothing is replayed"
        return
    first, last = batches[0].batch, batches[-1].batch
    count = pluralize(len(batches), "batch", "batches")
    yield f"{count}, {first.id} to {last.id}: {first.start} to {last.end}"
    if report.lake_end is not None:
        yield f"the span ends after the lake, which ends at {report.lake_end}"
    for batch in batches:
        if batch.reason_not_recaptured is not None:
            yield f"batch {batch.batch.id} from its changelog alone: {batch.reason_not_recaptured}"
    if is_planned:
        yield f"tables: {', '.join(map(str, report.tables)) or 'none'}"
        yield "nothing is read or written (--dry-run)"
        return
    for check in report.changelog_checks:
        yield f"{check.changelog.table}: {check.sentence}"
    standings = Counter(segment.standing for segment in report.segments)
    for standing, sentence in _CORRECT_SENTENCES.items():
        if standings[standing]:
            yield f"{pluralize(standings[standing], 'part')} of the changelogs: {sentence}"
    for segment in report.segments:
        if segment.standing not in _CORRECT_SENTENCES:
            yield _segment_line(segment, report)
            yield from differing_row_lines(segment.rows, segment.wrong, prefix="  ", indent="    ")
    for correction in report.mirrors:
        yield _mirror_line(correction)
        yield from differing_row_lines(
            correction.rows, correction.wrong, prefix="  ", indent="    "
        )
    if not report.committed:
        yield "nothing was written (--compare)"


_CORRECT_SENTENCES: Final = {
    SegmentStanding.SAME: "equal to the log",
    SegmentStanding.AS_RECORDED: "as recorded, but not compared with the log",
}


def _segment_line(segment: SegmentResult, report: ReplayReport) -> str:
    table = segment.table
    sentence = f"{table} in batch {segment.batch} is {segment.standing.value}"
    if segment.columns:
        sentence += f" in {', '.join(segment.columns)}"
    if segment.why is not None:
        sentence += f" ({segment.why})"
    if segment.reason_waiting is not None:
        return f"{sentence}; the log has it, but it is not replaced: {segment.reason_waiting}"
    if segment.has_replacement:
        return f"{sentence}: replaced" if report.committed else f"{sentence}: a replay replaces it"
    [batch] = (batch for batch in report.batches if batch.batch.id == segment.batch)
    sentence += f"; the log cannot bring it back, because {batch.reason_not_recaptured}: "
    if any(check.changelog.table == table for check in report.wrong_changelogs):
        return (
            f"{sentence}the changelog stays as it is; if the table is stopped, `lockstep resume "
            f"{table.word} --reason …` goes on with it"
        )
    return (
        f"{sentence}restore the file from a copy of the lake; `lockstep verify {table.word} "
        "--repair` proves the mirror without it"
    )


def _mirror_line(correction: MirrorCorrection) -> str:
    table = correction.table
    if correction.not_compared is not None:
        return f"{table}: its mirror was not compared: {correction.not_compared}; {correction.hint}"
    if not correction.wrong:
        return f"{table}: {pluralize(correction.keys, 'key')}, all as the changelog says"
    keys = f"{table}: {correction.wrong:,} of {pluralize(correction.keys, 'key')}"
    if correction.delta_version is None:
        return f"{keys} differ from the changelog"
    return f"{keys} corrected, version {correction.delta_version}"


_BATCH_KEYS: Final = (
    "batch.id as batch, batch.start as start, batch.end as end, "
    "reason_not_recaptured as as_recorded, revision_count as revision"
)
_CHANGELOG_KEYS: Final = (
    "changelog.table as table, changelog.folder as folder, error.reason as foreign, "
    "difference.surplus as not_recorded"
)


def replay_values(report: ReplayReport) -> dict[str, Any]:
    mirrors = {mirror.table: mirror for mirror in report.mirrors}
    return {
        "from": str(report.span.since),
        "to": str(report.span.until),
        **attributes(report, "committed, lake_end, seconds"),
        "batches": [attributes(batch, _BATCH_KEYS) for batch in report.batches],
        "tables": {
            table: {**_segment_values(report, table), "mirror": mirrors.get(table)}
            for table in report.tables
        },
        "changelogs": [
            {
                **attributes(check, _CHANGELOG_KEYS),
                "not_listed": [file.path for file in check.difference.missing],
                **attributes(check, "is_corrected as set_right, reason_not_corrected as why_not"),
            }
            for check in report.changelog_checks
        ],
    }


def _segment_values(report: ReplayReport, table: TableName) -> dict[str, Any]:
    segments = [segment for segment in report.segments if segment.table == table]
    return {
        "segments": Counter(segment.standing for segment in segments),
        "replaced": sum(segment.has_replacement for segment in segments) if report.committed else 0,
        "changelog": [
            segment for segment in segments if segment.standing not in _CORRECT_SENTENCES
        ],
    }
