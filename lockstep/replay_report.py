"""What a replay found and did: lines, JSON, and the exit code.

Belongs here: how it looks. Does not: what is found (`pipeline.runs.replaying`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from lockstep import exits
from lockstep.context import CommandContext
from pipeline.runs.replaying.heal import Healed
from pipeline.runs.replaying.report import BatchReplayed, ReplayReport
from pipeline.runs.replaying.segments_found import SegmentFound, Standing


def exit_code(report: ReplayReport) -> int:
    codes = [exits.DONE]
    if report.left or (report.differs and not report.committed):
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
        yield f"the span goes on behind the lake, which ends at {report.early}"
    for batch in batches:
        if batch.as_recorded is not None:
            yield f"batch {batch.batch.id} from its changelog alone: {batch.as_recorded}"
    if planned:
        yield f"tables: {', '.join(map(str, report.tables)) or 'none'}"
        yield "nothing is read or written (--dry-run)"
        return
    for found in report.segments:
        if found.standing in (Standing.DIFFERENT, Standing.DAMAGED):
            yield _segment_line(found, committed=report.committed)
    for healed in report.mirrors:
        yield _mirror_line(healed, committed=report.committed)
    if not report.committed:
        yield "nothing was written (--compare)"


def _segment_line(found: SegmentFound, *, committed: bool) -> str:
    what = f"{found.table} in batch {found.batch} is {found.standing.value}"
    if found.why is not None:
        what += f" ({found.why})"
    if not found.replaced:
        return (
            f"{what}; the log cannot bring it back: restore the file from a copy of the lake, or "
            f"`lockstep verify {found.table} --repair`"
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
    }


def _batch_json(one: BatchReplayed) -> dict[str, Any]:
    batch = one.batch
    return {
        "batch": batch.id,
        "start": str(batch.start),
        "end": str(batch.end),
        "as_recorded": one.as_recorded,
        "revision": one.revision,
    }


def _found_json(report: ReplayReport, table: str) -> dict[str, Any]:
    segments = [segment for segment in report.segments if str(segment.table) == table]
    healed = next((mirror for mirror in report.mirrors if str(mirror.table) == table), None)
    return {
        "segments": dict(Counter(segment.standing.value for segment in segments)),
        "replaced": sum(segment.replaced for segment in segments) if report.committed else 0,
        "mirror": None if healed is None else _mirror_json(healed),
    }


def _mirror_json(healed: Healed) -> dict[str, Any]:
    return {
        "keys": healed.keys,
        "wrong": healed.wrong,
        "delta_version": healed.delta_version,
        "not_compared": healed.why,
        "hint": healed.hint,
    }
