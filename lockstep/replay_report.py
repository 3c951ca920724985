"""What a replay found and did: lines, JSON, and the exit code.

Belongs here: how it looks. Does not: what is found (`pipeline.runs.replaying`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Final

from lockstep import exits
from lockstep.context import CommandContext
from pipeline.replay.rows import ReplayDifference
from pipeline.runs.agreement.changelog_files import Agreement
from pipeline.runs.replaying.heal import Healed
from pipeline.runs.replaying.report import BatchReplayed, ReplayReport
from pipeline.runs.replaying.segments_found import SegmentFound, SegmentStanding

_SHOWN: Final = 20
"""So many rows that differ are shown of a table or file; JSON has more of them."""

_RIGHT: Final = (SegmentStanding.SAME, SegmentStanding.UNTOLD)


def exit_code(report: ReplayReport) -> int:
    codes = [exits.DONE]
    wrong = report.left or report.wrong_changelogs
    if wrong or (report.differs and not report.committed):
        codes.append(exits.DIFFERENCES)
    if any(mirror.why is not None for mirror in report.mirrors):
        codes.append(exits.QUARANTINED)
    return exits.most_serious(codes)


def show_replay(
    context: CommandContext, source: str, report: ReplayReport, *, planned: bool
) -> None:
    for line in _lines(report, planned=planned):
        context.say(f"{source}: {line}")


def _lines(report: ReplayReport, *, planned: bool) -> Iterator[str]:
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
    if healed.why is not None:
        return f"{table}: its mirror was not compared: {healed.why}; {healed.hint}"
    if not healed.wrong:
        return f"{table}: {healed.keys:,} keys, all as the changelog says"
    what = f"{table}: {healed.wrong:,} of {healed.keys:,} keys"
    if healed.delta_version is None:
        return f"{what} are not what the changelog says"
    return f"{what} put right, version {healed.delta_version}" if committed else what


def replay_json(report: ReplayReport) -> dict[str, Any]:
    return {
        "from": str(report.span.since),
        "to": str(report.span.until),
        "committed": report.committed,
        "ends_at": report.early,
        "seconds": round(report.seconds, 3),
        "batches": [_batch_json(batch) for batch in report.batches],
        "tables": {str(table): _found_json(report, str(table)) for table in report.tables},
        "changelogs": [_agreement_json(agreement) for agreement in report.changelogs],
    }


def _agreement_json(agreement: Agreement) -> dict[str, Any]:
    return {
        "table": str(agreement.changelog.table),
        "folder": agreement.changelog.folder,
        "foreign": None if agreement.error is None else agreement.error.reason,
        "not_recorded": list(agreement.found.surplus),
        "not_listed": [file.path for file in agreement.found.lacking],
        "set_right": agreement.righted,
        "why_not": agreement.left,
    }


def _batch_json(replay: BatchReplayed) -> dict[str, Any]:
    batch = replay.batch
    return {
        "batch": batch.id,
        "start": str(batch.start),
        "end": str(batch.end),
        "as_recorded": replay.as_recorded,
        "revision": replay.revision,
    }


def _found_json(report: ReplayReport, table: str) -> dict[str, Any]:
    segments = [segment for segment in report.segments if str(segment.table) == table]
    healed = next((mirror for mirror in report.mirrors if str(mirror.table) == table), None)
    return {
        "segments": dict(Counter(segment.standing.value for segment in segments)),
        "replaced": sum(segment.replaced for segment in segments) if report.committed else 0,
        "changelog": [
            _segment_json(segment) for segment in segments if segment.standing not in _RIGHT
        ],
        "mirror": None if healed is None else _mirror_json(healed),
    }


def _segment_json(segment: SegmentFound) -> dict[str, Any]:
    return {
        "batch": segment.batch,
        "schema_version": segment.schema_version,
        "standing": segment.standing.value,
        "why": segment.why,
        "wrong": segment.wrong,
        "columns": list(segment.columns),
        "rows": [_row_json(row) for row in segment.rows],
    }


def _row_json(row: ReplayDifference) -> dict[str, Any]:
    told: dict[str, Any] = {"kind": row.kind, "key": row.key, "columns": list(row.columns)}
    if row.told is not None:
        told |= {"told": row.told, "shown": row.shown}
    return told


def _mirror_json(healed: Healed) -> dict[str, Any]:
    return {
        "keys": healed.keys,
        "wrong": healed.wrong,
        "delta_version": healed.delta_version,
        "not_compared": healed.why,
        "hint": healed.hint,
        "rows": [_row_json(row) for row in healed.rows],
    }
