"""Few rows committed without a query: a Parquet file of ours, listed by Delta's own transaction.

Belongs here: the file, and the commit that lists it. Does not: which rows those are (`small`),
which writes are made so (`pipeline.changes.strategy`), that a write happens once (`mirror`).

A query of Spark's costs half a second of processor time however few its rows, and several times
that where it is the first of its kind; the commit alone a tenth of it (`python -m benchmarks
small`). The commit is a transaction of Delta's (`transaction`). What Delta does to rows as a query
writes them it does not do to a file that is brought: a table that asks for such things is not for
here.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable, Field, Schema

from resources.lake.checksums import files_listed, needs_no_list
from resources.lake.java_classes import java_class
from resources.lake.parts import spark_schema
from resources.lake.paths import LakePath
from resources.lake.storage import lake_errors, make_durable_folder, write_durably
from resources.lake.transaction import DeltaTransaction, now, transaction

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_FEATURES: Final = frozenset(
    {
        "appendOnly",
        "columnMapping",
        "deletionVectors",
        "inCommitTimestamp",
        "invariants",
        "timestampNtz",
        "typeWidening",
        "typeWidening-preview",
        "v2Checkpoint",
        "vacuumProtocolCheck",
    }
)
"""What a table may ask of its writers for files to be brought to it: nothing of these is about
rows as they are written, as long as no column has a rule (`_OF_COLUMNS`)."""

_NAME: Final = "delta.columnMapping.physicalName"
_ID: Final = "delta.columnMapping.id"
_OF_COLUMNS: Final = frozenset({_NAME, _ID, "delta.typeChanges"})
_WITH_FEATURES: Final = 7
"""The protocol's version for writers from which on features are named."""


def takes_files(table: DeltaTable) -> bool:
    """Whether a file may be brought to a table as it is."""
    protocol = table.protocol()
    return (
        protocol.min_writer_version == _WITH_FEATURES
        and _FEATURES.issuperset(protocol.writer_features or [])
        and not table.metadata().partition_columns
        and all(
            field.nullable and _OF_COLUMNS.issuperset(field.metadata)
            for field in table.schema().fields
        )
    )


def commit_rows(
    session: SparkSession,
    path: LakePath,
    rows: pa.Table,
    *,
    version: int,
    recorded: tuple[str, int],
    anew: bool,
    shaped: bool = False,
    made: Mapping[str, str] | None = None,
) -> None:
    """Make a write's one commit behind `version`, -1 for a new table: `rows` are added, or all that
    there is from now on (`anew`), with their columns, where they are `shaped`, as the table's.
    `recorded`: the application transaction and its version. `made`: the properties that the
    mirror is created with; None where it is there."""
    app_id, txn_version = recorded
    listed = None if made is not None else files_listed(path, version)
    spared = made is not None or needs_no_list(path, version, listed)
    with transaction(session, path, told=spared) as held:
        begun = held.begun
        if made is not None:
            held.log.createLogDirectoriesIfNotExists()
            begun.updateMetadataForNewTable(held.action(_metadata(rows.schema, made)))
        elif shaped and not _has_columns(begun, rows.schema):
            told = {**held.metadata, "schemaString": spark_schema(rows.schema).json()}
            begun.updateMetadataForTableOverwrite(held.action({"metaData": told}))
        file = _written(path, _as_stored(rows, _fields(begun))) if rows.num_rows else None
        actions = []
        if anew and made is None:
            actions = [one.removeWithTimestamp(now(), True) for one in _listed(held, listed)]
        txn = {"appId": app_id, "version": txn_version, "lastUpdated": now()}
        actions.append(held.action({"txn": txn}))
        if file is not None:
            actions.append(held.action({"add": _added(file, rows.num_rows)}))
        modes = java_class(held.jvm, "org.apache.spark.sql.SaveMode")
        mode = modes.Overwrite if anew else modes.Append
        held.commit(actions, held.operation("Write", mode, *[held.none] * _MORE_OF_WRITE))


_MORE_OF_WRITE: Final = 8
"""What else an operation called WRITE may tell of itself."""


def _listed(held: DeltaTransaction, listed: list[Mapping[str, Any]] | None) -> Iterator[Any]:
    """The files of a table: where its log told them, without a query."""
    if listed is not None:
        yield from (held.action({"add": one}) for one in listed)
        return
    files = held.snapshot.getAllFiles(False)
    yield from (files.apply(number) for number in range(files.size()))


def _metadata(schema: pa.Schema, properties: Mapping[str, str]) -> Mapping[str, Any]:
    return {
        "metaData": {
            "id": str(uuid.uuid4()),
            "format": {"provider": "parquet", "options": {}},
            "schemaString": spark_schema(schema).json(),
            "partitionColumns": [],
            "configuration": dict(properties),
            "createdTime": now(),
        }
    }


def _added(file: LakePath, rows: int) -> Mapping[str, Any]:
    told = file.stat()
    return {
        "path": file.name,
        "partitionValues": {},
        "size": told.st_size,
        "modificationTime": int(told.st_mtime * 1000),
        "dataChange": True,
        "stats": json.dumps({"numRecords": rows}),
    }


def _fields(begun: Any) -> list[Field]:
    """The table's columns behind a transaction."""
    return Schema.from_json(begun.metadata().schemaString()).fields


def _has_columns(begun: Any, schema: pa.Schema) -> bool:
    """Whether those are the table's columns, in this order."""
    have = [(field.name, field.type) for field in _fields(begun)]
    return have == [(field.name, field.type) for field in Schema.from_arrow(schema).fields]


def _as_stored(rows: pa.Table, fields: Sequence[Field]) -> pa.Table:
    """Under the names and numbers that the table's files know columns by."""
    told = {field.name: field.metadata for field in fields}
    stored = [_stored(field, told[field.name]) for field in rows.schema]
    return pa.Table.from_arrays(rows.columns, schema=pa.schema(stored))


def _stored(field: pa.Field, told: Mapping[str, Any]) -> pa.Field:
    if _NAME not in told:
        return field
    return field.with_name(told[_NAME]).with_metadata({"PARQUET:field_id": str(told[_ID])})


def _written(path: LakePath, rows: pa.Table) -> LakePath:
    """A durable file of the rows; nothing stays of one that could not be written."""
    with lake_errors(path):
        make_durable_folder(path)
        file = path / f"part-00000-{uuid.uuid4()}-c000.snappy.parquet"
        content = pa.BufferOutputStream()
        pq.write_table(
            rows,
            content,
            compression="snappy",
            coerce_timestamps="us",
            store_decimal_as_integer=True,
            store_schema=False,
        )
        write_durably(file, content.getvalue().to_pybytes())
    return file
