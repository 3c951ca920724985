"""One table on its own page: what changed, what it is, how it stands, what its structure did.

Belongs here: a mirror's materializations, observations and checks as values of Dagster's. Does
not: gathering them (`assets.table_news`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import dagster as dg

from assets.catalogue import CatalogueEntry
from assets.names import SourceNames
from assets.pages.steps import Metadata, position_metadata, rows_metadata, seconds
from pipeline.position import Position
from pipeline.runs.inspecting.repeated_keys import KeyCount
from pipeline.runs.reports import TableMerge
from pipeline.schema.column_words import written_type
from pipeline.schema.history import SchemaStatement
from pipeline.schema.model import ColumnSchema, TableSchema
from pipeline.schema.shown import first_words
from pipeline.schema.types import sql_type
from pipeline.shown import in_markdown
from pipeline.standing.tables import TableStanding
from pipeline.table import TableName
from pipeline.table_state import TableEvent
from resources.lake.paths import LakePath

Shown = dict[str, Any]

CHECK = "follows_source"
KEYS = "keys_are_unique"

DATA_VERSION = "dagster/data_version"
"""A tag of Dagster's."""

_WORDS = 40
"""Words and symbols of a statement."""


@dataclass(frozen=True, slots=True)
class MergedTable:
    """One write of a mirror with what belongs to it: `position`, which the mirror shows now;
    `change_bytes`, of the changes merged; `schema` where it is known; `comments` of columns."""

    done: TableMerge
    position: Position | None
    change_bytes: int
    schema: TableSchema | None
    comments: Mapping[str, str] = field(default_factory=dict)


def declared_metadata(entry: CatalogueEntry, lake: LakePath) -> Shown:
    """What is known of a mirror before anything is asked."""
    return {
        **_address(entry.table, lake / entry.mirror),
        "mirror": entry.mirror,
        "changelog": entry.changelog,
        "dropped": entry.dropped,
    }


def materialization(
    names: SourceNames, merged: MergedTable, lake: LakePath, now: datetime
) -> dg.AssetMaterialization:
    """The version of the data is the place of the last change that it shows."""
    done = merged.done
    metadata: Shown = {**_written(merged, now), **_standard(names, merged, lake)}
    version = {DATA_VERSION: str(merged.position)} if merged.position else {}
    return dg.AssetMaterialization(names.table(done.table), metadata=metadata, tags=version)


def _written(merged: MergedTable, now: datetime) -> Metadata:
    done = merged.done
    found: Metadata = {
        **rows_metadata(done.counts),
        "rows read from the source": dg.MetadataValue.int(done.read),
        "bytes": dg.MetadataValue.int(merged.change_bytes),
        "Delta version": dg.MetadataValue.int(done.delta_version),
        "seconds": seconds(done.seconds),
        "reason": dg.MetadataValue.text(done.reason),
        "batches": dg.MetadataValue.text(_span(done.first_batch, done.last_batch)),
        "mirror": dg.MetadataValue.text(done.mirror),
        "changelog": dg.MetadataValue.text(done.changelog),
    }
    if done.size is not None:
        found["files"] = dg.MetadataValue.int(done.size.files)
        found["mirror bytes"] = dg.MetadataValue.int(done.size.size)
    return found | position_metadata(merged.position, now)


def _standard(names: SourceNames, merged: MergedTable, lake: LakePath) -> Shown:
    """Under the keys that Dagster has a page for."""
    done = merged.done
    rows = done.size.rows if done.size is not None else None
    lineage = {
        name: [dg.TableColumnDep(names.log, f"{done.table}.{name}")] for name, _ in done.columns
    }
    return {
        **_address(done.table, lake / done.mirror),
        "dagster/column_schema": _columns(merged),
        "dagster/column_lineage": dg.TableColumnLineage(lineage),
        **({"dagster/row_count": rows} if rows is not None else {}),
    }


def _address(table: TableName, folder: LakePath) -> Shown:
    return {
        "dagster/table_name": str(table),
        "dagster/storage_kind": "delta",
        "dagster/uri": folder.as_uri(),
    }


def _columns(merged: MergedTable) -> dg.TableSchema:
    """Types as Spark's SQL calls them in the lake; MySQL's own, and the comment there, as the
    description."""
    schema = merged.schema
    shown = []
    for name, kind in merged.done.columns:
        column = None if schema is None else schema.column(name)
        nullable = column is None or column.nullable
        shown.append(
            dg.TableColumn(
                name,
                sql_type(kind),
                description=_described(column, merged.comments.get(name)),
                constraints=dg.TableColumnConstraints(nullable=nullable),
            )
        )
    return dg.TableSchema(shown)


def _described(column: ColumnSchema | None, comment: str | None) -> str | None:
    kind = None if column is None else f"MySQL: {written_type(column)}"
    return in_markdown(". ".join(filter(None, (kind, comment)))) or None


def check_result(names: SourceNames, standing: TableStanding) -> dg.AssetCheckResult:
    """How a table stands, for a click."""
    return dg.AssetCheckResult(
        asset_key=names.table(standing.table),
        check_name=CHECK,
        passed=standing.follows,
        severity=_severity(standing),
        description=_sentence(standing),
        metadata=_standing(standing),
    )


def keys_result(names: SourceNames, count: KeyCount) -> dg.AssetCheckResult:
    """A key that is there twice is an error; where nothing was counted, that is said."""
    told, figures = _counted(count)
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


def _counted(count: KeyCount) -> tuple[str, Metadata]:
    figures: Metadata = {"key": dg.MetadataValue.text(", ".join(count.key) or "none")}
    told = f"not counted: {count.why}"
    if count.repeated is not None:
        figures["rows"] = dg.MetadataValue.int(count.rows)
        figures["rows with the key of another"] = dg.MetadataValue.int(count.repeated)
        told = f"{count.rows:,} rows, {count.repeated:,} of them with the key of another"
    if count.repeated:
        told += f": `lockstep verify {count.table} --repair`"
    return told, figures


def _severity(standing: TableStanding) -> dg.AssetCheckSeverity:
    serious = standing.health.serious
    return dg.AssetCheckSeverity.ERROR if serious else dg.AssetCheckSeverity.WARN


def _sentence(standing: TableStanding) -> str:
    return f"{standing.health}: {standing.sentence}"


def _standing(standing: TableStanding) -> Metadata:
    words = {
        "state": standing.health.value,
        "reason": standing.sentence,
        "hint": standing.hint,
        "position": standing.position,
        "progress": standing.progress,
    }
    return {name: dg.MetadataValue.text(text) for name, text in words.items() if text}


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
    return dg.AssetObservation(
        names.table(event.table),
        description=told.get("effect") or event.reason or event.kind.value,
        metadata={name: dg.MetadataValue.text(text) for name, text in told.items()},
    )


def _span(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}-{last}"
