"""Commits without a query, by Delta's own transaction, which is held by hand in Java.

A query of Spark's costs half a second of processor time however few its rows, and several times
that where it is the first of its kind; the commit alone a tenth of it (`python -m benchmarks
small`). Protocol, conflicts, moments, checksums and checkpoints are Delta's business here as in any
statement, and so is the pin of the session (`pin`). What Delta does to rows as a query writes them
it does not do to a file that is brought: a table that asks for such things is not for here.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable, Field, Schema

from resources.lake.clustering import NOT_CLUSTERED, may_be_clustered
from resources.lake.columns import PHYSICAL_NAME
from resources.lake.delta_log import files_listed, needs_no_list
from resources.lake.frame import spark_schema
from resources.lake.java_classes import java_class, java_of, java_session, scala_object
from resources.lake.paths import LakePath
from resources.lake.spark import stamped
from resources.lake.storage import (
    delta_table,
    lake_errors,
    make_durable_folder,
    write_durably,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


UNLISTED: Final = {"spark.databricks.delta.allFilesInCrc.enabled": "false"}
"""A session's setting under which no commit lists the table's files in its checksum file."""


@dataclass(frozen=True, slots=True)
class _Transaction:
    """`log`, `snapshot` and `begun` are Java's `DeltaLog`, `Snapshot` and
    `OptimisticTransaction`."""

    jvm: Any
    log: Any
    snapshot: Any
    begun: Any

    def action(self, told: Mapping[str, Any]) -> Any:
        """An action as the protocol spells it."""
        actions = scala_object(self.jvm, "org.apache.spark.sql.delta.actions.Action")
        return actions.fromJson(json.dumps(told))

    def operation(self, name: str, *arguments: Any) -> Any:
        """What the table's history calls the commit."""
        kind = java_class(self.jvm, f"org.apache.spark.sql.delta.DeltaOperations${name}")
        return kind(*arguments)

    @property
    def none(self) -> Any:
        return scala_object(self.jvm, "scala.None")

    def seq(self, values: Iterable[Any]) -> Any:
        listed = java_class(self.jvm, "java.util.ArrayList")()
        for value in values:
            listed.add(value)
        converters = java_class(self.jvm, "scala.jdk.javaapi.CollectionConverters")
        return converters.asScala(listed).toSeq()

    def commit(self, actions: Iterable[Any], operation: Any) -> None:
        self.begun.commit(self.seq(actions), operation)


@contextmanager
def _transaction(session: SparkSession, path: LakePath, *, told: bool) -> Iterator[_Transaction]:
    """One on the newest version of the table there, or of one that is yet to be made. `told`: the
    table's files are in its log near by, so that Delta need not list them in the commit's checksum
    file, which takes a query where the file before has no such list."""
    with _active(session) as jvm, stamped(session, UNLISTED if told else {}):
        logs = scala_object(jvm, "org.apache.spark.sql.delta.DeltaLog")
        pair = logs.forTableWithSnapshot(java_session(session), str(path))
        log, snapshot = pair.productElement(0), pair.productElement(1)
        none = scala_object(jvm, "scala.None")
        begun = log.startTransaction(none, java_class(jvm, "scala.Some")(snapshot))
        yield _Transaction(jvm, log, snapshot, begun)


def _now() -> int:
    """The moment as Delta writes it: milliseconds since 1970."""
    return int(time.time() * 1000)


@contextmanager
def _active(session: SparkSession) -> Iterator[Any]:
    """Java, in whose thread of ours this session's settings hold meanwhile: the pin among them."""
    jvm = java_of(session)
    sessions = java_class(jvm, "org.apache.spark.sql.SparkSession")
    sessions.setActiveSession(java_session(session))
    try:
        yield jvm
    finally:
        sessions.clearActiveSession()


_FEATURES: Final = frozenset(
    {
        "appendOnly",
        "clustering",
        "columnMapping",
        "deletionVectors",
        "domainMetadata",
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

_ID: Final = "delta.columnMapping.id"
_OF_COLUMNS: Final = frozenset({PHYSICAL_NAME, _ID, "delta.typeChanges"})
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
    with _transaction(session, path, told=spared) as held:
        begun, actions = held.begun, []
        if made is not None:
            held.log.createLogDirectoriesIfNotExists()
            begun.updateMetadataForNewTable(held.action(_metadata(rows.schema, made)))
        elif shaped and not _has_columns(begun, rows.schema):
            before = json.loads(held.snapshot.metadata().json())["metaData"]
            told = {**before, "schemaString": spark_schema(rows.schema).json()}
            begun.updateMetadataForTableOverwrite(held.action({"metaData": told}))
            if may_be_clustered(delta_table(path, version)):
                # By columns that the table may have no longer; a query's overwrite ends it, too.
                actions = [held.action({"domainMetadata": NOT_CLUSTERED})]
        file = _written(path, _as_stored(rows, _fields(begun))) if rows.num_rows else None
        if anew and made is None:
            actions += [one.removeWithTimestamp(_now(), True) for one in _listed(held, listed)]
        txn = {"appId": app_id, "version": txn_version, "lastUpdated": _now()}
        actions.append(held.action({"txn": txn}))
        if file is not None:
            actions.append(held.action({"add": _added(file, rows.num_rows)}))
        modes = java_class(held.jvm, "org.apache.spark.sql.SaveMode")
        mode = modes.Overwrite if anew else modes.Append
        held.commit(actions, held.operation("Write", mode, *[held.none] * _MORE_OF_WRITE))


_MORE_OF_WRITE: Final = 8
"""What else an operation called WRITE may tell of itself."""


def _listed(held: _Transaction, listed: list[Mapping[str, Any]] | None) -> Iterator[Any]:
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


def _fields(begun: Any) -> list[Field]:
    """The table's columns behind a transaction."""
    return Schema.from_json(begun.metadata().schemaString()).fields


def _has_columns(begun: Any, schema: pa.Schema) -> bool:
    """Whether those are the table's columns, in this order."""
    have = [(field.name, field.type) for field in _fields(begun)]
    return have == [(field.name, field.type) for field in Schema.from_arrow(schema).fields]


def _as_stored(rows: pa.Table, fields: Sequence[Field]) -> pa.Table:
    """Under the names and numbers that the table's files know columns by."""
    metadata = {field.name: field.metadata for field in fields}
    stored = []
    for field in rows.schema:
        told = metadata[field.name]
        if PHYSICAL_NAME in told:
            number = {"PARQUET:field_id": str(told[_ID])}
            field = field.with_name(told[PHYSICAL_NAME]).with_metadata(number)
        stored.append(field)
    return pa.Table.from_arrays(rows.columns, schema=pa.schema(stored))


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
