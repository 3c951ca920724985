"""Reports of a run's steps → metadata of their assets.

Only what the lake and the ledger may show anyway goes in: positions, counts, names. Numbers
are plotted by Dagster, so a step says each of them at every run, 0 too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime

import dagster as dg

from assets.pages.records import partial_table, quarantine_table
from pipeline.batch import Requests
from pipeline.ports.source import ServerFacts
from pipeline.position import Position
from pipeline.runs.registering.register import CatalogReport
from pipeline.runs.reports import AcknowledgeReport, CaptureReport, MergeReport
from pipeline.segment import RowCounts
from pipeline.shown import in_markdown
from pipeline.standing.facts import Headroom, Lag

Metadata = dict[str, dg.MetadataValue]

_LISTED = 50
"""Tables in a run's summary."""


def captured_metadata(report: CaptureReport, began: datetime) -> Metadata:
    """`began`: before the run looked where the log ends."""
    counts = sum(report.counts.values(), RowCounts())
    found: Metadata = {
        "decision": dg.MetadataValue.text(f"{report.rule}: {report.reason}"),
        "start": dg.MetadataValue.text(str(report.start)),
        "end": dg.MetadataValue.text(str(report.end)),
        "transactions": dg.MetadataValue.int(report.transactions),
        "rows": dg.MetadataValue.int(report.rows),
        **rows_metadata(counts),
        "log bytes": dg.MetadataValue.int(report.log_bytes),
        "largest transaction bytes": dg.MetadataValue.int(report.largest),
        **_lag_at_start(report, began),
        "tables": dg.MetadataValue.int(len(report.counts)),
        "seconds": seconds(report.start_seconds + report.capture_seconds),
    }
    if report.continuity is not None:
        found["continuity"] = dg.MetadataValue.text(report.continuity.value)
    if report.batch is not None:
        found["batch"] = dg.MetadataValue.int(report.batch)
    if report.end.gtid_set:
        found["GTIDs"] = dg.MetadataValue.text(str(report.end.gtid_set))
    if report.repaired:
        found["repaired"] = dg.MetadataValue.text("\n".join(report.repaired))
    if report.loading:
        told = "\n".join(progress.sentence() for progress in report.loading)
        found["loading"] = dg.MetadataValue.text(told)
    if report.quarantined:
        found["quarantined"] = quarantine_table(report.quarantined)
    return found


def _lag_at_start(report: CaptureReport, began: datetime) -> Metadata:
    """Since the last change that the lake had when the run began, as far as that is known; 0 where
    there was nothing to read."""
    last = report.start.committed_at
    if report.batch is not None and last is None:
        return {}
    behind = 0.0 if report.batch is None or last is None else (began - last).total_seconds()
    return {"lag seconds at start": seconds(max(behind, 0.0))}


def merged_metadata(report: MergeReport) -> Metadata:
    found: Metadata = {
        "tables changed": dg.MetadataValue.int(len({done.table for done in report.merged})),
        "rows": dg.MetadataValue.int(sum(done.counts.total for done in report.merged)),
        **rows_metadata(sum((done.counts for done in report.merged), RowCounts())),
        "rows read from the source": dg.MetadataValue.int(sum(done.read for done in report.merged)),
        "publish seconds": seconds(report.publish_seconds),
        "merge seconds": seconds(report.merge_seconds),
    }
    if report.waiting:
        found["waiting"] = dg.MetadataValue.text(", ".join(map(str, report.waiting)))
    if report.failed:
        found["quarantined"] = quarantine_table(report.failed)
    return found


def acknowledged_metadata(
    report: AcknowledgeReport, now: datetime, merged: MergeReport | None = None
) -> Metadata:
    """`merged`: what the same run merged, for its summary."""
    found = position_metadata(report.position, now)
    found["batches"] = dg.MetadataValue.text(", ".join(map(str, report.acknowledged)) or "none")
    found["seconds"] = seconds(report.seconds)
    if merged is not None:
        found["summary"] = dg.MetadataValue.md(summary(merged, report))
    if report.held:
        found["held"] = dg.MetadataValue.text(held_sentence(report.held))
    if report.quarantined:
        found["quarantined"] = quarantine_table(report.quarantined)
    if report.partial:
        found["partial"] = partial_table(report.partial)
    return found


def registered_metadata(report: CatalogReport) -> Metadata:
    """What became of entries in the catalog."""
    deeds = Counter(one.deed.value for one in report.done)
    told = [f"{count} {deed}" for deed, count in sorted(deeds.items())]
    if report.left:
        told.append(f"{len(report.left)} left: `lockstep catalog` says why")
    if report.waiting:
        told.append(f"{report.waiting} more with the next run")
    if report.trouble is not None:
        told.append(f"{report.trouble.message}; the next run goes on")
    return {"catalog": dg.MetadataValue.text("; ".join(told) or "nothing to do")}


def distance_metadata(lag: Lag, room: Headroom | None) -> Metadata:
    """How far the lake is behind the server, and how long the log behind it is kept."""
    found: Metadata = {}
    if lag.seconds is not None:
        found["lag seconds"] = seconds(lag.seconds)
    if lag.log_bytes is not None:
        found["lag bytes"] = dg.MetadataValue.int(lag.log_bytes)
    if lag.transactions is not None:
        found["lag transactions"] = dg.MetadataValue.int(lag.transactions)
    if room is not None and room.remaining is not None:
        hours = room.remaining.total_seconds() / 3600
        found["headroom hours"] = dg.MetadataValue.float(round(hours, 2))
    if room is not None and room.bytes_per_day is not None:
        found["log bytes a day"] = dg.MetadataValue.int(round(room.bytes_per_day))
    return found


def log_observation(
    key: dg.AssetKey, facts: ServerFacts, lag: Lag, room: Headroom | None
) -> dg.AssetObservation:
    """The server's log as a run saw it at its end, and how far the lake is behind it."""
    found: Metadata = {
        "head": dg.MetadataValue.text(str(facts.head)),
        "server": dg.MetadataValue.text(f"{facts.flavour} {facts.version}, {facts.server_uuid}"),
        "log files": dg.MetadataValue.int(len(facts.binlogs)),
        **distance_metadata(lag, room),
    }
    if facts.gtid_executed:
        found["GTIDs executed"] = dg.MetadataValue.text(str(facts.gtid_executed))
    return dg.AssetObservation(key, description=f"The log ends at {facts.head}.", metadata=found)


def requests_metadata(asked: Requests | None) -> Metadata:
    """Of a lake in an object store; delta-rs' are in neither figure."""
    if asked is None:
        return {}
    found: Metadata = {"requests by Lockstep": dg.MetadataValue.int(asked.own)}
    if asked.spark is not None:
        found["requests by Spark"] = dg.MetadataValue.int(asked.spark)
    return found


def position_metadata(position: Position | None, now: datetime) -> Metadata:
    if position is None:
        return {}
    found: Metadata = {"position": dg.MetadataValue.text(str(position))}
    if position.gtid_set:
        found["GTIDs"] = dg.MetadataValue.text(str(position.gtid_set))
    if position.committed_at is not None:
        found["committed at"] = dg.MetadataValue.timestamp(position.committed_at)
        lag = (now - position.committed_at).total_seconds()
        found["lag seconds"] = seconds(max(lag, 0.0))
    return found


def summary(merged: MergeReport, report: AcknowledgeReport) -> str:
    """The run in Markdown: what changed, table by table, and what did not take part."""
    lines = []
    if merged.merged:
        lines += [
            "| table | inserted | updated | deleted | read from the source | Delta version |",
            "|---|--:|--:|--:|--:|--:|",
        ]
        lines += [
            f"| {in_markdown(str(done.table))} | {done.counts.inserted:,} "
            f"| {done.counts.updated:,} | {done.counts.deleted:,} | {done.read:,} "
            f"| {done.delta_version} |"
            for done in merged.merged[:_LISTED]
        ]
        if len(merged.merged) > _LISTED:
            lines.append(f"\nand {len(merged.merged) - _LISTED:,} tables more")
    else:
        lines.append("No table changed.")
    for quarantine in report.quarantined:
        table, reason = (in_markdown(str(one)) for one in (quarantine.table, quarantine.reason))
        lines.append(f"\n**{table}** does not follow: {reason}  ")
        lines.append(f"what to do: {in_markdown(quarantine.hint)}")
    return "\n".join(lines)


def rows_metadata(counts: RowCounts) -> Metadata:
    """An update is one row."""
    return {
        "rows inserted": dg.MetadataValue.int(counts.inserted),
        "rows updated": dg.MetadataValue.int(counts.updated),
        "rows deleted": dg.MetadataValue.int(counts.deleted),
    }


def held_sentence(held: Mapping[int, Sequence[object]]) -> str:
    """Which batches are not acknowledged, and the tables they wait for."""
    return "; ".join(
        f"batch {batch} waits for {', '.join(map(str, tables)) or 'its merge'}"
        for batch, tables in held.items()
    )


def seconds(value: float) -> dg.MetadataValue:
    return dg.MetadataValue.float(round(value, 3))
