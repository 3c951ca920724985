"""The metadata of a run's steps and of tables on Dagster's pages, made from reports.

It has positions, counts and names, but no values of rows. Dagster plots numbers, so
each step has the same numbers in every run, even if they are 0. A mirror is the Delta
table with a table's current rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

import dagster as dg

from lockstep.assets.catalogue import CatalogueEntry
from lockstep.assets.names import SourceNames
from lockstep.pipeline.model.batch import RequestCounts
from lockstep.pipeline.model.table_state import Extent, StoppedTable
from lockstep.pipeline.ports.source import ServerFacts
from lockstep.pipeline.run.reports import AcknowledgeReport, CaptureReport, MergeReport, TableMerge
from lockstep.pipeline.run.status.repeated_keys import KeyCount
from lockstep.pipeline.run.status.span_report import StructureChange
from lockstep.pipeline.schema.compare import written_type
from lockstep.pipeline.schema.history import SchemaVersion
from lockstep.pipeline.schema.types import sql_type
from lockstep.pipeline.status.facts import Headroom, Lag
from lockstep.pipeline.status.tables import TableStanding
from lockstep.pipeline.values.policies import LakePolicies
from lockstep.pipeline.values.position import Position
from lockstep.pipeline.values.segment import RowCounts
from lockstep.pipeline.values.shown import in_markdown
from lockstep.pipeline.values.table import TableName
from lockstep.resources.lake.store.paths import LakePath

Metadata = dict[str, Any]

CHECK = "follows_source"
KEYS = "keys_are_unique"

DATA_VERSION = "dagster/data_version"
"""The tag in which Dagster keeps an asset's data version."""

_LISTED = 50
"""Largest number of tables in a run's summary."""


# -- tables of values --------------------------------------------------------------------------


def records(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> dg.MetadataValue:
    """Return a table whose cells are texts; None becomes an empty cell."""
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


def quarantine_table(tables: Sequence[StoppedTable]) -> dg.MetadataValue:
    rows = [(table.table, table.reason, table.hint, table.position) for table in tables]
    return records(("table", "reason", "hint", "position"), rows)


# -- a run's steps -------------------------------------------------------------------------


def captured_metadata(report: CaptureReport, began: datetime) -> Metadata:
    """Return the metadata of a capture. `began`: a moment before the run asked the
    server for the end of its log."""
    metadata: Metadata = {
        "decision": f"{report.rule}: {report.reason}",
        "start": str(report.start),
        "end": str(report.end),
        "transactions": report.transactions,
        "rows": report.rows,
        **rows_metadata(sum(report.counts.values(), RowCounts())),
        "log bytes": report.log_bytes,
        "largest transaction bytes": report.largest_transaction,
        **_lag_at_start(report, began),
        "tables": len(report.counts),
        "seconds": seconds(report.start_seconds + report.capture_seconds),
        "continuity": report.continuity and report.continuity.value,
        "batch": report.batch,
        "GTIDs": str(report.end.gtid_set) or None,
        "repaired": "\n".join(report.repairs) or None,
        "reading rows": "\n".join(progress.sentence() for progress in report.unfinished_loads)
        or None,
    }
    if report.quarantined:
        metadata["quarantined"] = quarantine_table(report.quarantined)
    return _without_none(metadata)


def _without_none(metadata: Metadata) -> Metadata:
    return {name: value for name, value in metadata.items() if value is not None}


def _lag_at_start(report: CaptureReport, began: datetime) -> Metadata:
    """Return the age of the lake's newest change when the run began: 0 if there was
    nothing to read, no entry if it is unknown."""
    last = report.start.committed_at
    if report.batch is not None and last is None:
        return {}
    lag = 0.0 if report.batch is None or last is None else (began - last).total_seconds()
    return {"lag seconds at start": seconds(max(lag, 0.0))}


def merged_metadata(report: MergeReport) -> Metadata:
    counts = sum((merge.counts for merge in report.merges), RowCounts())
    metadata: Metadata = {
        "tables changed": len({merge.table for merge in report.merges}),
        "rows": counts.total,
        **rows_metadata(counts),
        "rows read from the source": sum(merge.rows_read for merge in report.merges),
        "publish seconds": seconds(report.publish_seconds),
        "merge seconds": seconds(report.merge_seconds),
        "waiting": ", ".join(map(str, report.waiting_tables)) or None,
    }
    if report.quarantined:
        metadata["quarantined"] = quarantine_table(report.quarantined)
    return _without_none(metadata)


def acknowledged_metadata(
    report: AcknowledgeReport, now: datetime, merged: MergeReport | None = None
) -> Metadata:
    """Return the metadata of an acknowledgement. `merged`: the merge of the same run,
    for the summary."""
    metadata = position_metadata(report.position, now)
    metadata["batches"] = ", ".join(map(str, report.acknowledged_batches)) or "none"
    metadata["seconds"] = seconds(report.seconds)
    if merged is not None:
        metadata["summary"] = dg.MetadataValue.md(summary(merged, report))
    if report.waiting_tables:
        metadata["held"] = held_sentence(report.waiting_tables)
    if report.quarantined:
        metadata["stopped"] = quarantine_table(report.quarantined)
    if report.partial_tables:
        metadata["partial"] = partial_table(report.partial_tables)
    return metadata


def distance_metadata(lag: Lag, room: Headroom | None) -> Metadata:
    """Return the lake's lag, and the time for which the server keeps the unread log."""
    metadata: Metadata = {
        "lag seconds": None if lag.seconds is None else seconds(lag.seconds),
        "lag bytes": lag.log_bytes,
        "lag transactions": lag.transactions,
    }
    if room is not None and room.remaining is not None:
        metadata["headroom hours"] = round(room.remaining.total_seconds() / 3600, 2)
    if room is not None and room.bytes_per_day is not None:
        metadata["log bytes a day"] = round(room.bytes_per_day)
    return _without_none(metadata)


def log_observation(
    key: dg.AssetKey, facts: ServerFacts, lag: Lag, room: Headroom | None
) -> dg.AssetObservation:
    """Return the state of the server's log at the end of a run, with the lake's lag."""
    metadata: Metadata = {
        "head": str(facts.head),
        "server": f"{facts.flavour} {facts.version}, {facts.server_uuid}",
        "log files": len(facts.binlogs),
        **distance_metadata(lag, room),
        "GTIDs executed": str(facts.gtid_executed) or None,
    }
    description = f"The log ends at {facts.head}."
    return dg.AssetObservation(key, description=description, metadata=_without_none(metadata))


def requests_metadata(requests: RequestCounts | None) -> Metadata:
    """Return the numbers of requests to an object store. Requests of delta-rs are not
    counted."""
    if requests is None:
        return {}
    return _without_none(
        {"requests by Lockstep": requests.lockstep, "requests by Spark": requests.spark}
    )


def position_metadata(position: Position | None, now: datetime) -> Metadata:
    if position is None:
        return {}
    metadata: Metadata = {"position": str(position)}
    if position.gtid_set:
        metadata["GTIDs"] = str(position.gtid_set)
    if position.committed_at is not None:
        metadata["committed at"] = dg.MetadataValue.timestamp(position.committed_at)
        lag = (now - position.committed_at).total_seconds()
        metadata["lag seconds"] = seconds(max(lag, 0.0))
    return metadata


def summary(merged: MergeReport, report: AcknowledgeReport) -> str:
    """Return the run's summary in Markdown: the changes of each table, and tables that
    stopped."""
    lines = []
    if merged.merges:
        lines += [
            "| table | inserted | updated | deleted | read from the source | Delta version |",
            "|---|--:|--:|--:|--:|--:|",
        ]
        lines += [
            f"| {in_markdown(str(merge.table))} | {merge.counts.inserted:,} "
            f"| {merge.counts.updated:,} | {merge.counts.deleted:,} | {merge.rows_read:,} "
            f"| {merge.delta_version} |"
            for merge in merged.merges[:_LISTED]
        ]
        if len(merged.merges) > _LISTED:
            lines.append(f"\nand {len(merged.merges) - _LISTED:,} more tables")
    else:
        lines.append("No table changed.")
    for quarantine in report.quarantined:
        table, reason = in_markdown(str(quarantine.table)), in_markdown(quarantine.reason)
        lines.append(f"\n**{table}** does not follow: {reason}  ")
        lines.append(f"what to do: {in_markdown(quarantine.hint)}")
    return "\n".join(lines)


def rows_metadata(counts: RowCounts) -> Metadata:
    return {
        "rows inserted": counts.inserted,
        "rows updated": counts.updated,
        "rows deleted": counts.deleted,
    }


def held_sentence(held: Mapping[int, Sequence[object]]) -> str:
    """Return a sentence about batches that are not acknowledged yet: each waits for
    tables."""
    return "; ".join(
        f"batch {batch} waits for {', '.join(map(str, tables)) or 'its merge'}"
        for batch, tables in held.items()
    )


def seconds(value: float) -> float:
    return round(float(value), 3)


# -- one table: its declaration, writes, checks and changed structures ------------------------


def declared_metadata(
    entry: CatalogueEntry, lake: LakePath, policies: LakePolicies | None
) -> Metadata:
    """Return the metadata of a mirror's asset. `policies`: the policies of the table,
    or None if the settings of its source cannot be read."""
    return {
        **({"policies": policies.toml or "the defaults"} if policies else {}),
        **_address(entry.table, lake / entry.mirror),
        "mirror": entry.mirror,
        "changelog": entry.changelog,
        "dropped": entry.dropped,
    }


def materialization(
    names: SourceNames,
    merge: TableMerge,
    lake: LakePath,
    now: datetime,
    position: Position | None,
    change_bytes: int,
    version: SchemaVersion | None,
    comments: Mapping[str, str],
) -> dg.AssetMaterialization:
    """Return the event of one write of a mirror. `position`: the position in the log up
    to which the mirror is now current; it becomes the mirror's data version.
    `change_bytes`: size of the merged changes. `version`: the structure that the mirror
    shows, if known. `comments`: MySQL's comments of the columns, by name."""
    size, first, last = merge.size, merge.first_batch, merge.last_batch
    lineage = {
        name: [dg.TableColumnDep(names.log_key, f"{merge.table}.{name}")]
        for name, _ in merge.columns
    }
    metadata: Metadata = {
        **rows_metadata(merge.counts),
        "rows read from the source": merge.rows_read,
        "bytes": change_bytes,
        "Delta version": merge.delta_version,
        "seconds": seconds(merge.seconds),
        "reason": merge.reason,
        "batches": str(first) if first == last else f"{first}-{last}",
        "mirror": merge.mirror,
        "changelog": merge.changelog,
        "files": size and size.files,
        "mirror bytes": size and size.size,
        **_shape_metadata(version),
        **position_metadata(position, now),
        # Dagster's pages show these keys in their own places.
        **_address(merge.table, lake / merge.mirror),
        "dagster/column_schema": _columns(merge, version, comments),
        "dagster/column_lineage": dg.TableColumnLineage(lineage),
        "dagster/row_count": size and size.rows,
    }
    tags = {DATA_VERSION: str(position)} if position else {}
    return dg.AssetMaterialization(
        names.table_key(merge.table), metadata=_without_none(metadata), tags=tags
    )


def _address(table: TableName, folder: LakePath) -> Metadata:
    return {
        "dagster/table_name": str(table),
        "dagster/storage_kind": "delta",
        "dagster/uri": folder.as_uri(),
    }


def _shape_metadata(version: SchemaVersion | None) -> Metadata:
    """Return the columns and rows of the table that the settings hide or change in the
    mirror."""
    shown_as = None if version is None else version.shown_as
    if version is None or shown_as is None:
        return {}
    treated = [f"{name} {words}" for name, words in version.treatments_in_words.items()]
    return {
        "columns not shown as they are": ", ".join(treated) or None,
        "rows taken": shown_as.row_condition and f"those where {shown_as.row_condition}",
        "privacy key": shown_as.key_fingerprint,
    }


def _columns(
    merge: TableMerge, version: SchemaVersion | None, comments: Mapping[str, str]
) -> dg.TableSchema:
    """Return the columns with their Spark SQL types. The description of a column
    consists of MySQL's type, the way in which settings change its values (also a tag),
    and MySQL's comment.
    """
    columns = []
    source = schema = None
    treatments: Mapping[str, str] = {}
    if version is not None:
        source, schema = version.schema, version.shown_schema
        treatments = version.treatments_in_words
    for name, kind in merge.columns:
        column = None if schema is None else schema.column(name)
        origin = None if source is None or column is None else source.column(name)
        mysql_type = None if origin is None else f"MySQL: {written_type(origin)}"
        words = treatments.get(name)
        sentences = (mysql_type, words and words.capitalize(), comments.get(name))
        description = in_markdown(". ".join(filter(None, sentences)))
        columns.append(
            dg.TableColumn(
                name,
                sql_type(kind),
                description=description or None,
                constraints=dg.TableColumnConstraints(nullable=column is None or column.nullable),
                tags={"lockstep": words} if words else {},
            )
        )
    return dg.TableSchema(columns)


def check_result(names: SourceNames, standing: TableStanding) -> dg.AssetCheckResult:
    serious = standing.health.is_serious
    words = {
        "state": standing.health.value,
        "reason": standing.sentence,
        "hint": standing.hint,
        "position": standing.position,
        "progress": standing.progress,
    }
    return dg.AssetCheckResult(
        asset_key=names.table_key(standing.table),
        check_name=CHECK,
        passed=standing.follows,
        severity=dg.AssetCheckSeverity.ERROR if serious else dg.AssetCheckSeverity.WARN,
        description=f"{standing.health}: {standing.sentence}",
        metadata={name: text for name, text in words.items() if text},
    )


def keys_result(names: SourceNames, count: KeyCount) -> dg.AssetCheckResult:
    """Return the check's result. It fails if a key occurs twice, and passes if keys
    were not counted."""
    figures: Metadata = {"key": ", ".join(count.key) or "none"}
    description = f"not counted: {count.why}"
    if count.repeated is not None:
        figures["rows"] = count.rows
        figures["rows with the key of another"] = count.repeated
        description = f"{count.rows:,} rows, {count.repeated:,} of them with the key of another"
    if count.repeated:
        description += f": `lockstep verify {count.table} --repair`"
    return dg.AssetCheckResult(
        asset_key=names.table_key(count.table),
        check_name=KEYS,
        passed=not count.repeated,
        severity=dg.AssetCheckSeverity.ERROR,
        description=description,
        metadata=figures,
    )


def evaluation_of(result: dg.AssetCheckResult) -> dg.AssetCheckEvaluation:
    """Return the result of a check as an event, to be logged by a step or sensor whose
    op does not declare the check."""
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


def structure_observation(names: SourceNames, change: StructureChange) -> dg.AssetObservation:
    """Return how a statement changed a table's structure, without the statement's
    literals."""
    event = change.event
    metadata = {
        "change": event.kind.value,
        "position": str(event.place),
        "schema version": str(event.version),
    }
    if event.reason and event.reason != event.kind.value:
        metadata["reason"] = event.reason
    if change.statement is not None:
        metadata["statement"] = change.statement
        metadata["effect"] = "\n".join(change.effects)
    description = metadata.get("effect") or event.reason or event.kind.value
    return dg.AssetObservation(
        names.table_key(event.table), description=description, metadata=metadata
    )
