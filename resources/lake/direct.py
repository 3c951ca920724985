"""Few rows committed without a query: a Parquet file of ours, listed by Delta's own transaction.

Belongs here: the file, and the commit that lists it. Does not: which rows those are (`small`),
which writes are made so (`pipeline.changes.strategy`), that a write happens once (`mirror`).

A query of Spark's costs half a second of processor time however few its rows, and several times
that where it is the first of its kind; the commit alone a tenth of it (`python -m benchmarks
small`). The commit is made by Delta in Java, pinned like any other: protocol, conflicts, moments,
checksums and checkpoints are its business here too. What Delta does to rows as a query writes
them it does not do to a file that is brought: a table that asks for such things is not for here.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable, Schema

from pipeline.ports.mirror_writes import Target
from resources.lake.parts import spark_schema
from resources.lake.paths import LakePath
from resources.lake.storage import delta_table, lake_errors, make_durable_folder, write_durably

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


def has_columns(table: DeltaTable, schema: pa.Schema) -> bool:
    """Whether those are the table's columns, in this order and under their own names."""
    have = [(field.name, field.type, field.metadata) for field in table.schema().fields]
    wanted = Schema.from_arrow(schema).fields
    return have == [(field.name, field.type, {}) for field in wanted]


def commit_rows(
    session: SparkSession,
    path: LakePath,
    target: Target,
    rows: pa.Table,
    *,
    anew: bool,
    made: Mapping[str, str] | None,
) -> None:
    """Make the write's one commit: `rows` are added, or all that there is from now on (`anew`).
    `made`: the properties that the mirror is created with; None where it is there."""
    stored = rows if made is not None else _as_stored(rows, delta_table(path))
    file = _written(path, stored) if rows.num_rows else None
    with _active(session) as jvm:
        none = _object(jvm, "scala.None")
        logs = _object(jvm, "org.apache.spark.sql.delta.DeltaLog")
        pair = logs.forTableWithSnapshot(session._jsparkSession, str(path))
        log, snapshot = pair._1(), pair._2()
        transaction = log.startTransaction(none, jvm.scala.Some(snapshot))
        if made is not None:
            log.createLogDirectoriesIfNotExists()
            transaction.updateMetadataForNewTable(_action(jvm, _metadata(rows.schema, made)))
        actions = jvm.java.util.ArrayList()
        if anew and made is None:
            files = _listed(snapshot)
            for number in range(files.size()):
                actions.add(files.apply(number).removeWithTimestamp(_now(), True))
        recorded = {"appId": target.app_id, "version": target.txn_version, "lastUpdated": _now()}
        actions.add(_action(jvm, {"txn": recorded}))
        if file is not None:
            actions.add(_action(jvm, {"add": _added(file, rows.num_rows)}))
        modes = jvm.org.apache.spark.sql.SaveMode
        mode = modes.Overwrite if anew else modes.Append
        operation = getattr(jvm, "org.apache.spark.sql.delta.DeltaOperations$Write")
        converters = jvm.scala.jdk.javaapi.CollectionConverters
        transaction.commit(
            converters.asScala(actions).toSeq(), operation(mode, *[none] * _MORE_OF_WRITE)
        )


_MORE_OF_WRITE: Final = 8
"""What else an operation called WRITE may tell of itself."""


@contextmanager
def _active(session: SparkSession) -> Iterator[Any]:
    """Java, in whose thread of ours this session's settings hold meanwhile: the pin among them."""
    jvm: Any = session._jvm
    sessions = jvm.org.apache.spark.sql.classic.SparkSession
    sessions.setActiveSession(session._jsparkSession)
    try:
        yield jvm
    finally:
        sessions.clearActiveSession()


def _object(jvm: Any, name: str) -> Any:
    """A Scala object."""
    return getattr(getattr(jvm, f"{name}$"), "MODULE$")


def _action(jvm: Any, told: Mapping[str, Any]) -> Any:
    """An action as the protocol spells it."""
    return _object(jvm, "org.apache.spark.sql.delta.actions.Action").fromJson(json.dumps(told))


def _listed(snapshot: Any) -> Any:
    """The files of a table: by the checksum file, where it has them, without a query."""
    checksum = snapshot.checksumOpt()
    if checksum.isDefined() and checksum.get().allFiles().isDefined():
        return checksum.get().allFiles().get()
    return snapshot.getAllFiles(False)


def _metadata(schema: pa.Schema, properties: Mapping[str, str]) -> Mapping[str, Any]:
    return {
        "metaData": {
            "id": str(uuid.uuid4()),
            "format": {"provider": "parquet", "options": {}},
            "schemaString": spark_schema(schema).json(),
            "partitionColumns": [],
            "configuration": dict(properties),
            "createdTime": _now(),
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


def _as_stored(rows: pa.Table, table: DeltaTable) -> pa.Table:
    """Under the names and numbers that the table's files know columns by."""
    told = {field.name: field.metadata for field in table.schema().fields}
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


def _now() -> int:
    return int(time.time() * 1000)
