"""What Dagster's pages show of a run's steps and of a table: reports and standings → metadata.

Only what the lake and the ledger may show anyway goes in: positions, counts, names. Numbers
are plotted by Dagster, so a step says each of them at every run, 0 too. Gathering is `table_news`'.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

import dagster as dg

from assets.catalogue import CatalogueEntry
from assets.names import SourceNames
from pipeline.batch import Requests
from pipeline.policies import LakePolicies
from pipeline.ports.source import ServerFacts
from pipeline.position import Position
from pipeline.runs.inspecting.repeated_keys import KeyCount
from pipeline.runs.reports import AcknowledgeReport, CaptureReport, MergeReport, TableMerge
from pipeline.schema.column_words import written_type
from pipeline.schema.history import SchemaStatement, SchemaVersion
from pipeline.schema.types import sql_type
from pipeline.segment import RowCounts
from pipeline.shown import first_words, in_markdown
from pipeline.standing.facts import Headroom, Lag
from pipeline.standing.tables import TableStanding
from pipeline.table import TableName
from pipeline.table_state import Extent, Quarantine, TableEvent
from resources.lake.paths import LakePath

Metadata = dict[str, Any]

CHECK = "follows_source"
KEYS = "keys_are_unique"

DATA_VERSION = "dagster/data_version"
"""A tag of Dagster's."""

_LISTED = 50
"""Tables in a run's summary."""

_WORDS = 40
"""Words and symbols of a statement."""


# -- lists ---------------------------------------------------------------------------------


def records(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> dg.MetadataValue:
    """A small table of texts; nothing for None."""
    return dg.MetadataValue.table(
        [dg.TableRecord(dict(zip(heads, map(_cell, row), strict=True))) for row in rows],
        schema=dg.TableSchema([dg.TableColumn(head, "string") for head in heads]),
    )


def _cell(value: object) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    return "" if value is None else str(value)


def partial_table(tables: Sequence[Extent]) -> dg.MetadataValue:
    heads = ("table", "begins", "hint")
    return records(heads, [(table.table, table.begins, table.hint) for table in tables])


def quarantine_table(tables: Sequence[Quarantine]) -> dg.MetadataValue:
    rows = [(table.table, table.reason, table.hint, table.position) for table in tables]
    return records(("table", "reason", "hint", "position"), rows)


# -- a run's steps -------------------------------------------------------------------------


def captured_metadata(report: CaptureReport, began: datetime) -> Metadata:
    """`began`: before the run looked where the log ends."""
    found: Metadata = {
        "decision": f"{report.rule}: {report.reason}",
        "start": str(report.start),
        "end": str(report.end),
        "transactions": report.transactions,
        "rows": report.rows,
        **rows_metadata(sum(report.counts.values(), RowCounts())),
        "log bytes": report.log_bytes,
        "largest transaction bytes": report.largest,
        **_lag_at_start(report, began),
        "tables": len(report.counts),
        "seconds": seconds(report.start_seconds + report.capture_seconds),
        "continuity": report.continuity and report.continuity.value,
        "batch": report.batch,
        "GTIDs": str(report.end.gtid_set) or None,
        "repaired": "\n".join(report.repaired) or None,
        "reading rows": "\n".join(progress.sentence() for progress in report.loading) or None,
    }
    if report.quarantined:
        found["quarantined"] = quarantine_table(report.quarantined)
    return _known(found)


def _known(metadata: Metadata) -> Metadata:
    return {name: value for name, value in metadata.items() if value is not None}


def _lag_at_start(report: CaptureReport, began: datetime) -> Metadata:
    """Since the last change that the lake had when the run began, as far as that is known; 0 where
    there was nothing to read."""
    last = report.start.committed_at
    if report.batch is not None and last is None:
        return {}
    behind = 0.0 if report.batch is None or last is None else (began - last).total_seconds()
    return {"lag seconds at start": seconds(max(behind, 0.0))}


def merged_metadata(report: MergeReport) -> Metadata:
    counts = sum((done.counts for done in report.merged), RowCounts())
    found: Metadata = {
        "tables changed": len({done.table for done in report.merged}),
        "rows": counts.total,
        **rows_metadata(counts),
        "rows read from the source": sum(done.read for done in report.merged),
        "publish seconds": seconds(report.publish_seconds),
        "merge seconds": seconds(report.merge_seconds),
        "waiting": ", ".join(map(str, report.waiting)) or None,
    }
    if report.failed:
        found["quarantined"] = quarantine_table(report.failed)
    return _known(found)


def acknowledged_metadata(
    report: AcknowledgeReport, now: datetime, merged: MergeReport | None = None
) -> Metadata:
    """`merged`: what the same run merged, for its summary."""
    found = position_metadata(report.position, now)
    found["batches"] = ", ".join(map(str, report.acknowledged)) or "none"
    found["seconds"] = seconds(report.seconds)
    if merged is not None:
        found["summary"] = dg.MetadataValue.md(summary(merged, report))
    if report.held:
        found["held"] = held_sentence(report.held)
    if report.quarantined:
        found["stopped"] = quarantine_table(report.quarantined)
    if report.partial:
        found["partial"] = partial_table(report.partial)
    return found


def distance_metadata(lag: Lag, room: Headroom | None) -> Metadata:
    """How far the lake is behind the server, and how long the log behind it is kept."""
    found: Metadata = {
        "lag seconds": None if lag.seconds is None else seconds(lag.seconds),
        "lag bytes": lag.log_bytes,
        "lag transactions": lag.transactions,
    }
    if room is not None and room.remaining is not None:
        found["headroom hours"] = round(room.remaining.total_seconds() / 3600, 2)
    if room is not None and room.bytes_per_day is not None:
        found["log bytes a day"] = round(room.bytes_per_day)
    return _known(found)


def log_observation(
    key: dg.AssetKey, facts: ServerFacts, lag: Lag, room: Headroom | None
) -> dg.AssetObservation:
    """The server's log as a run saw it at its end, and how far the lake is behind it."""
    found: Metadata = {
        "head": str(facts.head),
        "server": f"{facts.flavour} {facts.version}, {facts.server_uuid}",
        "log files": len(facts.binlogs),
        **distance_metadata(lag, room),
        "GTIDs executed": str(facts.gtid_executed) or None,
    }
    described = f"The log ends at {facts.head}."
    return dg.AssetObservation(key, description=described, metadata=_known(found))


def requests_metadata(asked: Requests | None) -> Metadata:
    """Of a lake in an object store; delta-rs' are in neither figure."""
    if asked is None:
        return {}
    return _known({"requests by Lockstep": asked.own, "requests by Spark": asked.spark})


def position_metadata(position: Position | None, now: datetime) -> Metadata:
    if position is None:
        return {}
    found: Metadata = {"position": str(position)}
    if position.gtid_set:
        found["GTIDs"] = str(position.gtid_set)
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
        "rows inserted": counts.inserted,
        "rows updated": counts.updated,
        "rows deleted": counts.deleted,
    }


def held_sentence(held: Mapping[int, Sequence[object]]) -> str:
    """Which batches are not acknowledged, and the tables they wait for."""
    return "; ".join(
        f"batch {batch} waits for {', '.join(map(str, tables)) or 'its merge'}"
        for batch, tables in held.items()
    )


def seconds(value: float) -> float:
    return round(float(value), 3)


# -- one table: what changed, what it is, how it stands, what its structure did -------------


def declared_metadata(
    entry: CatalogueEntry, lake: LakePath, policies: LakePolicies | None
) -> Metadata:
    """`policies`: None where the table's own are not known here."""
    return {
        **({"policies": policies.words or "the defaults"} if policies else {}),
        **_address(entry.table, lake / entry.mirror),
        "mirror": entry.mirror,
        "changelog": entry.changelog,
        "dropped": entry.dropped,
    }


def materialization(
    names: SourceNames,
    done: TableMerge,
    lake: LakePath,
    now: datetime,
    position: Position | None,
    change_bytes: int,
    version: SchemaVersion | None,
    comments: Mapping[str, str],
) -> dg.AssetMaterialization:
    """One write of a mirror. `position`, which the mirror shows now, is the version of its data;
    `change_bytes`: of the changes merged; `version`: what the mirror shows, where it is known;
    `comments` of columns."""
    size, first, last = done.size, done.first_batch, done.last_batch
    lineage = {
        name: [dg.TableColumnDep(names.log, f"{done.table}.{name}")] for name, _ in done.columns
    }
    metadata: Metadata = {
        **rows_metadata(done.counts),
        "rows read from the source": done.read,
        "bytes": change_bytes,
        "Delta version": done.delta_version,
        "seconds": seconds(done.seconds),
        "reason": done.reason,
        "batches": str(first) if first == last else f"{first}-{last}",
        "mirror": done.mirror,
        "changelog": done.changelog,
        "files": size and size.files,
        "mirror bytes": size and size.size,
        **_shape_metadata(version),
        **position_metadata(position, now),
        # Under the keys that Dagster has a page for.
        **_address(done.table, lake / done.mirror),
        "dagster/column_schema": _columns(done, version, comments),
        "dagster/column_lineage": dg.TableColumnLineage(lineage),
        "dagster/row_count": size and size.rows,
    }
    tags = {DATA_VERSION: str(position)} if position else {}
    return dg.AssetMaterialization(names.table(done.table), metadata=_known(metadata), tags=tags)


def _address(table: TableName, folder: LakePath) -> Metadata:
    return {
        "dagster/table_name": str(table),
        "dagster/storage_kind": "delta",
        "dagster/uri": folder.as_uri(),
    }


def _shape_metadata(version: SchemaVersion | None) -> Metadata:
    """What of the source's table the mirror does not show as it is."""
    shown_as = None if version is None else version.shown_as
    if version is None or shown_as is None:
        return {}
    treated = [f"{name} {words}" for name, words in version.treated.items()]
    return {
        "columns not shown as they are": ", ".join(treated) or None,
        "rows taken": shown_as.rows and f"those where {shown_as.rows}",
        "privacy key": shown_as.key,
    }


def _columns(
    done: TableMerge, version: SchemaVersion | None, comments: Mapping[str, str]
) -> dg.TableSchema:
    """Types as Spark's SQL calls them in the lake; MySQL's own, what becomes of the values, and
    the comment there, as the description. A tag says the same of values that are not shown."""
    shown = []
    source = schema = None
    treated: Mapping[str, str] = {}
    if version is not None:
        source, schema, treated = version.schema, version.shown, version.treated
    for name, kind in done.columns:
        column = None if schema is None else schema.column(name)
        origin = None if source is None or column is None else source.column(name)
        told = None if origin is None else f"MySQL: {written_type(origin)}"
        words = treated.get(name)
        described = in_markdown(
            ". ".join(filter(None, (told, words and words.capitalize(), comments.get(name))))
        )
        null = dg.TableColumnConstraints(nullable=column is None or column.nullable)
        shown.append(
            dg.TableColumn(
                name,
                sql_type(kind),
                description=described or None,
                constraints=null,
                tags={"lockstep": words} if words else {},
            )
        )
    return dg.TableSchema(shown)


def check_result(names: SourceNames, standing: TableStanding) -> dg.AssetCheckResult:
    serious = standing.health.serious
    words = {
        "state": standing.health.value,
        "reason": standing.sentence,
        "hint": standing.hint,
        "position": standing.position,
        "progress": standing.progress,
    }
    return dg.AssetCheckResult(
        asset_key=names.table(standing.table),
        check_name=CHECK,
        passed=standing.follows,
        severity=dg.AssetCheckSeverity.ERROR if serious else dg.AssetCheckSeverity.WARN,
        description=f"{standing.health}: {standing.sentence}",
        metadata={name: text for name, text in words.items() if text},
    )


def keys_result(names: SourceNames, count: KeyCount) -> dg.AssetCheckResult:
    """A key that is there twice is an error; where nothing was counted, that is said."""
    figures: Metadata = {"key": ", ".join(count.key) or "none"}
    told = f"not counted: {count.why}"
    if count.repeated is not None:
        figures["rows"] = count.rows
        figures["rows with the key of another"] = count.repeated
        told = f"{count.rows:,} rows, {count.repeated:,} of them with the key of another"
    if count.repeated:
        told += f": `lockstep verify {count.table} --repair`"
    return dg.AssetCheckResult(
        asset_key=names.table(count.table),
        check_name=KEYS,
        passed=not count.repeated,
        severity=dg.AssetCheckSeverity.ERROR,
        description=told,
        metadata=figures,
    )


def evaluation_of(result: dg.AssetCheckResult) -> dg.AssetCheckEvaluation:
    """Return the result as an event, for an asset check that the process was not asked for."""
    assert result.asset_key is not None
    assert result.check_name is not None
    return dg.AssetCheckEvaluation(
        asset_key=result.asset_key,
        check_name=result.check_name,
        passed=result.passed,
        severity=result.severity,
        description=result.description,
        metadata=result.metadata,
    )


def structure_observation(
    names: SourceNames, event: TableEvent, statement: SchemaStatement | None
) -> dg.AssetObservation:
    """What a statement did to a table's structure; its literals are not shown."""
    told = {
        "change": event.kind.value,
        "position": str(event.place),
        "schema version": str(event.version),
    }
    if event.reason and event.reason != event.kind.value:
        told["reason"] = event.reason
    if statement is not None:
        own = [effect for effect in statement.effects if effect.startswith(f"{event.table}:")]
        told["statement"] = first_words(statement.text, _WORDS)
        told["effect"] = "\n".join(own or statement.effects)
    described = told.get("effect") or event.reason or event.kind.value
    return dg.AssetObservation(names.table(event.table), description=described, metadata=told)
