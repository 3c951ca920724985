"""Commits without a Spark query: this process writes a file, and calls Delta's own
transaction in Java to commit it.

A Spark query that writes a few rows costs half a second of processor time, and several
times as much if it is the first of its kind. The commit alone costs 50 milliseconds
(`python -m benchmarks small`). As for any statement, Delta takes care of protocol,
conflicts, commit times, checksums and checkpoints, and the commit is bound to the
version on which it was planned (`resources.lake.delta.pin`). But Delta cannot check or
change the rows of a finished file, so a table whose features require that is refused
(`accepts_files`).
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

from lockstep.resources.lake.changelog.frame import spark_schema
from lockstep.resources.lake.delta.checksums import add_actions_at, file_list_settings
from lockstep.resources.lake.delta.clustering import NOT_CLUSTERED, was_ever_clustered
from lockstep.resources.lake.delta.columns import PHYSICAL_NAME
from lockstep.resources.lake.spark.java_classes import (
    java_class,
    java_session,
    jvm_of,
    scala_object,
)
from lockstep.resources.lake.spark.spark import session_settings
from lockstep.resources.lake.store.paths import LakePath
from lockstep.resources.lake.store.storage import (
    delta_table,
    lake_errors,
    make_durable_folder,
    write_durably,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


_ACCEPTED_FEATURES: Final = frozenset(
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
"""Writer features that a table may have if finished files are added to it. None of them
checks or changes rows while they are written, as long as no column has a constraint
(`_HARMLESS_KEYS`)."""

_COLUMN_ID: Final = "delta.columnMapping.id"
_HARMLESS_KEYS: Final = frozenset({PHYSICAL_NAME, _COLUMN_ID, "delta.typeChanges"})
"""Keys in a column's metadata that are no constraint on its values."""
_VERSION_WITH_FEATURES: Final = 7
"""The writer version of the protocol that lists features by name."""


def accepts_files(table: DeltaTable) -> bool:
    """Return whether a finished file may be added to a table."""
    protocol = table.protocol()
    return (
        protocol.min_writer_version == _VERSION_WITH_FEATURES
        and _ACCEPTED_FEATURES.issuperset(protocol.writer_features or [])
        and not table.metadata().partition_columns
        and all(
            field.nullable and _HARMLESS_KEYS.issuperset(field.metadata)
            for field in table.schema().fields
        )
    )


def commit_rows(
    session: SparkSession,
    path: LakePath,
    rows: pa.Table,
    *,
    version: int,
    app_transaction: tuple[str, int],
    replace_rows: bool,
    replace_columns: bool,
    new_properties: Mapping[str, str] | None,
) -> None:
    """Make the only commit of a write, directly after `version` (-1 for a new table).

    The commit adds `rows`; with `replace_rows`, it also removes all other rows.
    `replace_columns`: the table gets the columns of `rows`. `app_transaction`: the id
    and the version of the application transaction. `new_properties`: the properties of
    a new mirror; None if the mirror exists.
    """
    app_id, txn_version = app_transaction
    add_actions = add_actions_at(path, version) if new_properties is None else []
    settings = file_list_settings(path, version, must_list=add_actions is None)
    with _transaction(session, path, settings) as transaction:
        actions = []
        if new_properties is not None:
            transaction.create_table(rows.schema, new_properties)
        else:
            if replace_columns and not _has_columns(transaction.fields(), rows.schema):
                transaction.set_columns(rows.schema)
                if was_ever_clustered(delta_table(path, version)):
                    # The columns by which the table is clustered can be dropped here. A
                    # query that overwrites the rows ends the clustering, too.
                    actions.append(transaction.action({"domainMetadata": NOT_CLUSTERED}))
            if replace_rows:
                files = transaction.files(add_actions)
                actions += [file.removeWithTimestamp(_now(), True) for file in files]
        txn = {"appId": app_id, "version": txn_version, "lastUpdated": _now()}
        actions.append(transaction.action({"txn": txn}))
        if rows.num_rows:
            add_action = _write_file(path, _with_physical_names(rows, transaction.fields()))
            actions.append(transaction.action({"add": add_action}))
        transaction.commit_write(actions, overwrite=replace_rows)


def _has_columns(fields: Sequence[Field], schema: pa.Schema) -> bool:
    """Return whether a table with these fields has exactly the columns of `schema`, in
    this order."""
    expected = [(field.name, field.type) for field in Schema.from_arrow(schema).fields]
    return [(field.name, field.type) for field in fields] == expected


def _with_physical_names(rows: pa.Table, fields: Sequence[Field]) -> pa.Table:
    """Return the rows with the names and ids that column mapping gives columns in
    files."""
    metadata = {field.name: field.metadata for field in fields}
    stored_fields = []
    for field in rows.schema:
        mapping = metadata[field.name]
        if PHYSICAL_NAME in mapping:
            field_id = {"PARQUET:field_id": str(mapping[_COLUMN_ID])}
            field = field.with_name(mapping[PHYSICAL_NAME]).with_metadata(field_id)
        stored_fields.append(field)
    return pa.Table.from_arrays(rows.columns, schema=pa.schema(stored_fields))


def _write_file(path: LakePath, rows: pa.Table) -> Mapping[str, Any]:
    """Write the rows to a new, durable file in the table's folder, and return the
    action that adds it to the table."""
    content = pa.BufferOutputStream()
    pq.write_table(
        rows,
        content,
        compression="snappy",
        coerce_timestamps="us",
        store_decimal_as_integer=True,
        store_schema=False,
    )
    file = path / f"part-00000-{uuid.uuid4()}-c000.snappy.parquet"
    with lake_errors(path):
        make_durable_folder(path)
        write_durably(file, content.getvalue().to_pybytes())
        status = file.stat()
    return {
        "path": file.name,
        "partitionValues": {},
        "size": status.st_size,
        "modificationTime": int(status.st_mtime * 1000),
        "dataChange": True,
        "stats": json.dumps({"numRecords": rows.num_rows}),
    }


def _now() -> int:
    """Return the current time as Delta writes it: milliseconds since 1970."""
    return int(time.time() * 1000)


# -- Delta's transaction in Java -------------------------------------------------------


@contextmanager
def _transaction(
    session: SparkSession, path: LakePath, settings: Mapping[str, str]
) -> Iterator[_Transaction]:
    """Open a transaction, with these session settings, on a table that may not exist
    yet. It reads the newest version; if that is not the planned one, the pin among the
    session's settings makes the commit fail."""
    jvm, spark = jvm_of(session), java_session(session)
    session_class = java_class(jvm, "org.apache.spark.sql.SparkSession")
    # Delta takes its settings, such as the pin, from the Java thread's active session.
    session_class.setActiveSession(spark)
    try:
        with session_settings(session, settings):
            logs = scala_object(jvm, "org.apache.spark.sql.delta.DeltaLog")
            pair = logs.forTableWithSnapshot(spark, str(path))
            log, snapshot = pair.productElement(0), pair.productElement(1)
            some_snapshot = java_class(jvm, "scala.Some")(snapshot)
            transaction = log.startTransaction(scala_object(jvm, "scala.None"), some_snapshot)
            yield _Transaction(jvm, log, snapshot, transaction)
    finally:
        session_class.clearActiveSession()


@dataclass(frozen=True, slots=True)
class _Transaction:
    """An open Delta transaction in Java. `jvm`: py4j's view of Java; `log`, `snapshot`
    and `java_transaction`: Java's `DeltaLog`, `Snapshot` and
    `OptimisticTransaction`."""

    jvm: Any
    log: Any
    snapshot: Any
    java_transaction: Any

    def action(self, content: Mapping[str, Any]) -> Any:
        """Return the Java object for an action of the Delta protocol; `content` is its
        JSON."""
        actions = scala_object(self.jvm, "org.apache.spark.sql.delta.actions.Action")
        return actions.fromJson(json.dumps(content))

    def files(self, add_actions: list[Mapping[str, Any]] | None) -> Iterator[Any]:
        """Yield the Java objects of the table's files. `add_actions`: their actions as
        JSON; None if they are unknown, so that Delta has to find them by a query."""
        if add_actions is not None:
            yield from (self.action({"add": file}) for file in add_actions)
            return
        files = self.snapshot.getAllFiles(False)
        yield from (files.apply(index) for index in range(files.size()))

    def fields(self) -> list[Field]:
        """Return the columns that the table has after this transaction."""
        return Schema.from_json(self.java_transaction.metadata().schemaString()).fields

    def create_table(self, schema: pa.Schema, properties: Mapping[str, str]) -> None:
        metadata = {
            "id": str(uuid.uuid4()),
            "format": {"provider": "parquet", "options": {}},
            "schemaString": spark_schema(schema).json(),
            "partitionColumns": [],
            "configuration": dict(properties),
            "createdTime": _now(),
        }
        self.log.createLogDirectoriesIfNotExists()
        self.java_transaction.updateMetadataForNewTable(self.action({"metaData": metadata}))

    def set_columns(self, schema: pa.Schema) -> None:
        metadata = json.loads(self.snapshot.metadata().json())["metaData"]
        metadata["schemaString"] = spark_schema(schema).json()
        self.java_transaction.updateMetadataForTableOverwrite(self.action({"metaData": metadata}))

    def commit_write(self, actions: Iterable[Any], *, overwrite: bool) -> None:
        """Commit the actions. The table's history shows the operation `Write`."""
        modes = java_class(self.jvm, "org.apache.spark.sql.SaveMode")
        mode = modes.Overwrite if overwrite else modes.Append
        unset_arguments = [scala_object(self.jvm, "scala.None")] * _FURTHER_ARGUMENTS
        write_class = java_class(self.jvm, "org.apache.spark.sql.delta.DeltaOperations$Write")
        array_list = java_class(self.jvm, "java.util.ArrayList")()
        for action in actions:
            array_list.add(action)
        converters = java_class(self.jvm, "scala.jdk.javaapi.CollectionConverters")
        scala_actions = converters.asScala(array_list).toSeq()
        self.java_transaction.commit(scala_actions, write_class(mode, *unset_arguments))


_FURTHER_ARGUMENTS: Final = 8
"""Number of optional arguments of Delta's operation `Write` after its mode."""
