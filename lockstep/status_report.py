"""How a source stands, as a person sees it, and the exit code of that. Values in, text out; as JSON
in `status_json`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from lockstep import exits
from lockstep.proof_report import proof_lines
from lockstep.report import counted, lines, partial_lines
from pipeline.batch import Cursor
from pipeline.decisions import RecordedDecision
from pipeline.errors import Recovery
from pipeline.preflight.retention import spoken
from pipeline.standing.facts import Headroom, Standing
from pipeline.standing.measures import why_not_by_gtid
from pipeline.standing.verdict import State, Verdict, clock, verdict

_GTIDS: Final = 100


def exit_code(standing: Standing, now: datetime, pause: timedelta | None) -> int:
    """0 if nothing waits for anybody. While a run goes on, what waits for a run does not count,
    and what waits for a person does."""
    found = verdict(standing, now, pause)
    if found.state is State.BUSY and found.recovery is None:
        code = exit_code(replace(standing, lease=None), now, pause)
        return exits.DONE if code == exits.TRY_AGAIN else code
    if found.recovery is not None:
        return found.recovery.exit_code
    return exits.DONE if found.state is State.FINE else exits.QUARANTINED


def status_lines(
    standing: Standing,
    judged: Verdict,
    now: datetime,
    decisions: Iterable[RecordedDecision] = (),
    tables: Iterable[str] = (),
) -> Iterator[str]:
    """What is the matter and what to type; then everything else that is known. `decisions`: the
    newest, newest first; `tables`: lines on those that are not followed just now."""
    yield f"{standing.source}: {judged.state}: {judged.sentence}"
    if judged.hint:
        yield f"  hint: {judged.hint}"
    pairs = {
        "captured": _place(standing.captured),
        "acknowledged": _place(standing.acknowledged),
        "lag": _lag(standing),
        **_server(standing),
    }
    for batch in standing.waiting:
        waits = ", ".join(map(str, batch.tables))
        pairs[f"batch {batch.batch.id}"] = (
            f"{batch.batch.state.value}, from {batch.batch.start}"
            + (f", waits for {waits}" if waits else "")
        )
    if (lease := standing.lease) is not None and lease.live:
        beat = f", last sign of life {clock(lease.beat_at)}" if lease.beat_at else ""
        pairs["being run by"] = f"{lease.holder}, since {clock(lease.taken_at)}{beat}"
    if (choice := standing.override) is not None:
        pairs["next start"] = f"{choice.place}, chosen by {choice.author}: {choice.reason}"
    yield lines(pairs)
    yield from _scars(standing)
    for table in standing.loading:
        yield f"  being read from the source: {table.sentence()}"
    yield from partial_lines(standing.partial)
    yield from proof_lines(standing.proofs, standing.stopped, now)
    yield from _unproven(standing)
    yield from tables
    for done in decisions:
        yield f"  {clock(done.decided_at)}  {done.decision.rule}: {done.decision.reason}"


def _scars(standing: Standing) -> Iterator[str]:
    """What the lake lacks, or has twice."""
    for gap in standing.gaps:
        if gap.is_open:
            again = f"; right again: {', '.join(gap.closed)}" if gap.closed else ""
            yield (
                f"  gap: {gap.begin} to {gap.end} was never read ({gap.reason}); rows of "
                f"{', '.join(gap.open_tables)} may be wrong{again}"
            )
    for overlap in standing.overlaps:
        until = f" committed up to {clock(overlap.until)}" if overlap.until else ""
        yield (
            f"  read twice: rows with _batch = {overlap.batch}{until} may be in the changelogs "
            f"under "
            f"_batch <= {overlap.after} as well; mirrors are exact"
        )


def _unproven(standing: Standing) -> Iterator[str]:
    if standing.unproven is not None:
        names = ", ".join(map(str, sorted(standing.unproven.tables)))
        since = clock(standing.unproven.since)
        yield f"  not compared with the server: the structures of {names}, since {since}"


def _server(standing: Standing) -> dict[str, str]:
    facts, cursor = standing.facts, standing.captured
    found = {}
    if facts is not None:
        other = ", not the one that was read last" if standing.other_server else ""
        standby = ", the standby" if facts.standby else ""
        found["server"] = f"{facts.server_uuid}{standby}{other}, its log ends at {facts.head}"
    elif standing.trouble is not None:
        asked = standing.trouble.recovery is not Recovery.CONFIGURATION
        answer = "does not answer" if asked else "was not asked"
        found["server"] = f"{answer}: {standing.trouble.message}"
    if len(standing.lineage.reigns) > 1:
        found["read from"] = str(standing.lineage)
    if cursor is not None:
        why = why_not_by_gtid(cursor, facts)
        found["failover"] = f"would be refused: {why}" if why else "could be followed by GTIDs"
    if standing.headroom is not None:
        found["headroom"] = _headroom(standing.headroom)
    return found


def _headroom(room: Headroom) -> str:
    rate = f"; {room.bytes_per_day / 1e6:,.1f} MB of log a day" if room.bytes_per_day else ""
    if room.gone:
        return f"the log at the cursor is already gone{rate}"
    if room.remaining is None:
        return f"logs are kept until somebody purges them{rate}"
    if not room.remaining:
        return f"the log at the cursor may be purged at any time{rate}"
    return f"{spoken(room.remaining)} until the log at the cursor may be purged{rate}"


def _lag(standing: Standing) -> str:
    lag = standing.lag
    parts = []
    if lag.seconds is not None:
        parts.append("none" if not lag.seconds else spoken(timedelta(seconds=lag.seconds)))
    if lag.transactions is not None:
        parts.append(counted(lag.transactions, "transaction"))
    if lag.log_bytes is not None:
        parts.append(f"{lag.log_bytes:,} bytes of log")
    return ", ".join(parts) or "unknown"


def _place(cursor: Cursor | None) -> str:
    if cursor is None:
        return "nothing yet"
    at = cursor.position
    committed = f", committed {clock(at.committed_at)}" if at.committed_at else ""
    gtids = f", GTIDs {at.gtid_set.shortened(_GTIDS)}" if at.gtid_set else ""
    return f"{at}{committed}{gtids}"
