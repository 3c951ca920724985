"""The metadata of a run's steps and of tables on Dagster's pages, made from reports. A
mirror is the Delta table with a table's current rows.

Metadata has positions, counts and names, but no values of rows. Dagster shows texts of
metadata as they are, but descriptions as Markdown. It plots numbers, so each step has
the same numbers in every run, even if they are 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

import dagster as dg

from lockstep.assets.names import SourceNames
from lockstep.assets.table_list import TableEntry
from lockstep.pipeline.model.batch import RequestCounts
from lockstep.pipeline.model.table_state import Extent, StoppedTable
from lockstep.pipeline.ports.source import ServerFacts
from lockstep.pipeline.run.reports import AcknowledgeReport, CaptureReport, MergeReport, TableMerge
from lockstep.pipeline.run.status.repeated_keys import KeyCount
from lockstep.pipeline.run.status.span_report import StructureChange
from lockstep.pipeline.schema.history import SchemaVersion
from lockstep.pipeline.schema.sql_text import type_in_sql
from lockstep.pipeline.schema.types import sql_type
from lockstep.pipeline.status.facts import Headroom, Lag
from lockstep.pipeline.status.tables import TableStanding
from lockstep.pipeline.values.policies import LakePolicies
from lockstep.pipeline.values.position import Position
from lockstep.pipeline.values.segment import RowCounts
from lockstep.pipeline.values.shown import in_markdown, name_list, pluralize
from lockstep.pipeline.values.table import TableName
from lockstep.resources.lake.store.paths import LakePath

Metadata = dict[str, Any]

FOLLOWS_CHECK = "follows_source"
KEYS_CHECK = "keys_are_unique"

DATA_VERSION = "dagster/data_version"
"""The tag in which Dagster keeps an asset's data version."""

_MAX_SUMMARY_TABLES = 50
"""Largest number of tables of one kind in a run's summary."""

_MAX_ROWS = 500
"""Largest number of rows of a table: Dagster keeps the tables of every run."""


# -- tables of values ------------------------------------------------------------------


def metadata_table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> dg.MetadataValue:
    """Return a table whose cells are texts; None becomes an empty cell. If there are
    more than `_MAX_ROWS` rows, the last row has only the number of the others."""
    all_rows = list(rows)
    shown_rows = all_rows[:_MAX_ROWS]
    if len(all_rows) > _MAX_ROWS:
        shown_rows.append((f"and {len(all_rows) - _MAX_ROWS:,} more", *[None] * (len(heads) - 1)))
    return dg.MetadataValue.table(
        [dg.TableRecord(dict(zip(heads, map(_cell, row), strict=True))) for row in shown_rows],
        schema=dg.TableSchema([dg.TableColumn(head, "string") for head in heads]),
    )


def _cell(value: object) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    return "" if value is None else str(value)


def partial_tables_metadata(tables: Sequence[Extent]) -> dg.MetadataValue:
    heads = ("table", "begins", "hint")
    return metadata_table(heads, [(table.table, table.begins, table.hint) for table in tables])


def stopped_tables_metadata(tables: Sequence[StoppedTable]) -> dg.MetadataValue:
    rows = [(table.table, table.reason, table.hint, table.position) for table in tables]
    return metadata_table(("table", "reason", "hint", "position"), rows)


# -- a run's steps ---------------------------------------------------------------------


def capture_metadata(report: CaptureReport, began_at: datetime) -> Metadata:
    """Return the metadata of a capture. `began_at`: a moment before the run asked the
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
        **_lag_at_start(report, began_at),
        "tables": len(report.counts),
        "seconds": rounded_seconds(report.start_seconds + report.capture_seconds),
        "continuity": report.continuity and report.continuity.value,
        "batch": report.batch_id,
        "GTIDs": str(report.end.gtid_set) or None,
        "repaired": _first_lines(report.repairs),
        "reading rows": _first_lines([load.sentence() for load in report.unfinished_loads]),
    }
    if report.quarantined:
        metadata["quarantined"] = stopped_tables_metadata(report.quarantined)
    return _without_none(metadata)


def _first_lines(sentences: Sequence[str]) -> str | None:
    lines = list(sentences[:_MAX_SUMMARY_TABLES])
    if len(sentences) > _MAX_SUMMARY_TABLES:
        lines.append(f"and {len(sentences) - _MAX_SUMMARY_TABLES:,} more")
    return "\n".join(lines) or None


def _without_none(metadata: Metadata) -> Metadata:
    return {name: value for name, value in metadata.items() if value is not None}


def _lag_at_start(report: CaptureReport, began_at: datetime) -> Metadata:
    """Return how old the lake's newest change was when the run began; 0 if there was
    nothing to read. There is no entry if that is unknown."""
    last_commit = report.start.committed_at
    if report.batch_id is None:
        lag = 0.0
    elif last_commit is not None:
        lag = (began_at - last_commit).total_seconds()
    else:
        return {}
    return {"lag seconds at start": rounded_seconds(max(lag, 0.0))}


def merge_metadata(report: MergeReport) -> Metadata:
    counts = sum((merge.counts for merge in report.merges), RowCounts())
    metadata: Metadata = {
        "tables changed": len({merge.table for merge in report.merges}),
        "rows": counts.total,
        **rows_metadata(counts),
        "rows read from the source": sum(merge.rows_read for merge in report.merges),
        "publish seconds": rounded_seconds(report.publish_seconds),
        "merge seconds": rounded_seconds(report.merge_seconds),
        "waiting": name_list(report.waiting_tables) or None,
    }
    if report.quarantined:
        metadata["quarantined"] = stopped_tables_metadata(report.quarantined)
    return _without_none(metadata)


def acknowledge_metadata(
    report: AcknowledgeReport, now: datetime, merge_report: MergeReport | None = None
) -> Metadata:
    """Return the metadata of an acknowledgement. `merge_report`: the report of the same
    run's merge, for the summary."""
    metadata = position_metadata(report.position, now)
    metadata["batches"] = ", ".join(map(str, report.acknowledged_batches)) or "none"
    metadata["seconds"] = rounded_seconds(report.seconds)
    if merge_report is not None:
        metadata["summary"] = dg.MetadataValue.md(run_summary(merge_report, report))
    if report.waiting_batches:
        metadata["held"] = waiting_sentence(report.waiting_batches)
    if report.quarantined:
        metadata["stopped"] = stopped_tables_metadata(report.quarantined)
    if report.partial_tables:
        metadata["partial"] = partial_tables_metadata(report.partial_tables)
    return metadata


def distance_metadata(lag: Lag, headroom: Headroom | None) -> Metadata:
    """Return the lake's lag, and the time for which the server keeps the unread log."""
    metadata: Metadata = {
        "lag seconds": None if lag.seconds is None else rounded_seconds(lag.seconds),
        "lag bytes": lag.log_bytes,
        "lag transactions": lag.transactions,
    }
    if headroom is not None and headroom.remaining is not None:
        metadata["headroom hours"] = round(headroom.remaining.total_seconds() / 3600, 2)
    if headroom is not None and headroom.bytes_per_day is not None:
        metadata["log MB a day"] = round(headroom.bytes_per_day / 1e6, 1)
    return _without_none(metadata)


def log_observation(
    key: dg.AssetKey, facts: ServerFacts, lag: Lag, headroom: Headroom | None
) -> dg.AssetObservation:
    """Return the state of the server's log at the end of a run, with the lake's lag."""
    metadata: Metadata = {
        "head": str(facts.head),
        "server": f"{facts.flavour} {facts.version}, {facts.server_uuid}",
        "log files": len(facts.binlogs),
        **distance_metadata(lag, headroom),
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
        metadata["lag seconds"] = rounded_seconds(max(lag, 0.0))
    return metadata


def run_summary(merge_report: MergeReport, acknowledge_report: AcknowledgeReport) -> str:
    """Return the run's summary in Markdown: the changes of each table, and tables that
    stopped."""
    lines = []
    if merge_report.merges:
        lines += [
            "| table | inserted | updated | deleted | read from the source | Delta version |",
            "|---|--:|--:|--:|--:|--:|",
        ]
        lines += [
            f"| {in_markdown(str(merge.table))} | {merge.counts.inserted:,} "
            f"| {merge.counts.updated:,} | {merge.counts.deleted:,} | {merge.rows_read:,} "
            f"| {merge.delta_version} |"
            for merge in merge_report.merges[:_MAX_SUMMARY_TABLES]
        ]
        if len(merge_report.merges) > _MAX_SUMMARY_TABLES:
            lines.append(f"\nand {len(merge_report.merges) - _MAX_SUMMARY_TABLES:,} more tables")
    else:
        lines.append("No table changed.")
    for stopped in acknowledge_report.quarantined[:_MAX_SUMMARY_TABLES]:
        table, reason = in_markdown(str(stopped.table)), in_markdown(stopped.reason)
        lines.append(f"\n**{table}** does not follow: {reason}  ")
        lines.append(f"what to do: {in_markdown(stopped.hint)}")
    if (further_count := len(acknowledge_report.quarantined) - _MAX_SUMMARY_TABLES) > 0:
        lines.append(f"\nand {further_count:,} more tables that do not follow")
    return "\n".join(lines)


def rows_metadata(counts: RowCounts) -> Metadata:
    return {
        "rows inserted": counts.inserted,
        "rows updated": counts.updated,
        "rows deleted": counts.deleted,
    }


def waiting_sentence(waiting_batches: Mapping[int, Sequence[object]]) -> str:
    """Return a sentence about batches that are not acknowledged yet. `waiting_batches`:
    these batches, each with the tables for which it waits."""
    return "; ".join(
        f"batch {batch} waits for {', '.join(map(str, tables)) or 'its merge'}"
        for batch, tables in waiting_batches.items()
    )


def rounded_seconds(value: float) -> float:
    return round(float(value), 3)


# -- one table: its declaration, writes, checks and changed structures -----------------


def declaration_metadata(
    entry: TableEntry, lake: LakePath, policies: LakePolicies | None
) -> Metadata:
    """Return the metadata of a mirror's asset. `policies`: the policies of the table,
    or None if the settings of its source cannot be read."""
    return {
        **({"policies": policies.toml or "the defaults"} if policies else {}),
        **_table_address(entry.table, lake / entry.mirror),
        "mirror": entry.mirror,
        "changelog": entry.changelog,
        "dropped": entry.dropped,
    }


def materialization_of(
    names: SourceNames,
    merge: TableMerge,
    lake: LakePath,
    now: datetime,
    *,
    position: Position | None,
    change_bytes: int,
    version: SchemaVersion | None,
    comments: Mapping[str, str],
) -> dg.AssetMaterialization:
    """Return the event of one write of a mirror. `position`: the position in the log up
    to which the mirror is now current; it becomes the mirror's data version.
    `change_bytes`: size of the merged changes. `version`: the structure that the mirror
    shows, if known. `comments`: MySQL's comments of the columns, by name."""
    size = merge.size
    first, last = merge.first_batch, merge.last_batch
    lineage = {
        name: [dg.TableColumnDep(names.log_key, f"{merge.table}.{name}")]
        for name, _ in merge.columns
    }
    metadata: Metadata = {
        **rows_metadata(merge.counts),
        "rows read from the source": merge.rows_read,
        "change bytes": change_bytes,
        "Delta version": merge.delta_version,
        "seconds": rounded_seconds(merge.seconds),
        "reason": f"{merge.reason[:1].upper()}{merge.reason[1:]}." if merge.reason else None,
        "batches": str(first) if first == last else f"{first}-{last}",
        "mirror": merge.mirror,
        "changelog": merge.changelog,
        "files": size and size.file_count,
        "mirror bytes": size and size.byte_count,
        **_shape_metadata(version),
        **position_metadata(position, now),
        # Dagster's pages show these keys in their own places.
        **_table_address(merge.table, lake / merge.mirror),
        "dagster/column_schema": _table_schema(merge, version, comments),
        "dagster/column_lineage": dg.TableColumnLineage(lineage),
        "dagster/row_count": size and size.row_count,
    }
    tags = {DATA_VERSION: str(position)} if position else {}
    return dg.AssetMaterialization(
        names.table_key(merge.table), metadata=_without_none(metadata), tags=tags
    )


def _table_address(table: TableName, folder: LakePath) -> Metadata:
    return {
        "dagster/table_name": str(table),
        "dagster/storage_kind": "delta",
        "dagster/uri": folder.as_uri(),
    }


def _shape_metadata(version: SchemaVersion | None) -> Metadata:
    """Return the columns and rows of the table that the settings hide or change in the
    mirror."""
    if version is None or version.shown_as is None:
        return {}
    shown_as = version.shown_as
    treatments = [f"{name} {words}" for name, words in version.treatments_in_words.items()]
    return {
        "columns not shown as they are": ", ".join(treatments) or None,
        "rows taken": shown_as.row_condition and f"those where {shown_as.row_condition}",
        "privacy key": shown_as.key_fingerprint,
    }


def _table_schema(
    merge: TableMerge, version: SchemaVersion | None, comments: Mapping[str, str]
) -> dg.TableSchema:
    """Return the columns with their Spark SQL types. The description of a column
    consists of MySQL's type, the way in which settings change its values (also a tag),
    and MySQL's comment.
    """
    columns = []
    source_schema = None if version is None else version.schema
    shown_schema = None if version is None else version.shown_schema
    treatments: Mapping[str, str] = {} if version is None else version.treatments_in_words
    for name, data_type in merge.columns:
        shown_column = None if shown_schema is None else shown_schema.column(name)
        source_column = None
        if source_schema is not None and shown_column is not None:
            source_column = source_schema.column(name)
        mysql_type = None if source_column is None else f"MySQL: {type_in_sql(source_column)}"
        treatment = treatments.get(name)
        sentences = (mysql_type, treatment and treatment.capitalize(), comments.get(name))
        description = in_markdown(". ".join(filter(None, sentences)))
        columns.append(
            dg.TableColumn(
                name,
                sql_type(data_type),
                description=description or None,
                constraints=dg.TableColumnConstraints(
                    nullable=shown_column is None or shown_column.nullable
                ),
                tags={"lockstep": treatment} if treatment else {},
            )
        )
    return dg.TableSchema(columns)


def follows_check_result(names: SourceNames, standing: TableStanding) -> dg.AssetCheckResult:
    is_serious = standing.health.is_serious
    fields = {
        "state": standing.health.value,
        "reason": standing.sentence,
        "hint": standing.hint,
        "position": standing.position,
        "progress": standing.progress,
    }
    return dg.AssetCheckResult(
        asset_key=names.table_key(standing.table),
        check_name=FOLLOWS_CHECK,
        passed=standing.follows,
        severity=dg.AssetCheckSeverity.ERROR if is_serious else dg.AssetCheckSeverity.WARN,
        description=in_markdown(f"{standing.health}: {standing.sentence}"),
        metadata={name: text for name, text in fields.items() if text},
    )


def keys_check_result(names: SourceNames, count: KeyCount) -> dg.AssetCheckResult:
    """Return the check's result. It fails if a key occurs twice, and passes if keys
    were not counted."""
    figures: Metadata = {"key": ", ".join(count.key) or "none"}
    if count.repeated_count is None:
        description = f"not counted: {count.reason}"
    else:
        figures["rows"] = count.row_count
        figures["rows with the key of another"] = count.repeated_count
        description = (
            f"{pluralize(count.row_count, 'row')}, {count.repeated_count:,} of them with the key "
            "of another"
        )
    if count.repeated_count:
        description += f": `lockstep verify {count.table.word} --repair`"
    return dg.AssetCheckResult(
        asset_key=names.table_key(count.table),
        check_name=KEYS_CHECK,
        passed=not count.repeated_count,
        severity=dg.AssetCheckSeverity.ERROR,
        description=in_markdown(description),
        metadata=figures,
    )


def evaluation_of(result: dg.AssetCheckResult) -> dg.AssetCheckEvaluation:
    """Return the result of a check as an event, which a sensor, or a step whose op does
    not declare the check, can log."""
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
    """Return an observation of a changed structure. The statement that changed it is
    shown without its literals."""
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
    description = "; ".join(change.effects) or event.reason or event.kind.value
    return dg.AssetObservation(
        names.table_key(event.table), description=in_markdown(description), metadata=metadata
    )
