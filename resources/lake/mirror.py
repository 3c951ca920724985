"""Mirrors: Delta tables equal to the source's, written by Spark, read back without it.

Belongs here: carrying out one `MirrorWrite` exactly once. Spark's life is `session`, the
statement `statement`, reading the log `delta_log`, naming Java's errors `java_errors`.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable

from pipeline.changes.layout import changelog_names
from pipeline.errors import CommitConflict, ForeignCommit
from pipeline.ports import MirrorCommit, MirrorWrite
from resources.lake.columns import refuse_other_columns
from resources.lake.delta_log import newest_version, recorded
from resources.lake.folding import fold
from resources.lake.java_errors import spark_errors
from resources.lake.scan import scanned
from resources.lake.segments import GROUP_ROWS
from resources.lake.session import SparkProcess
from resources.lake.statement import merge_statement, quoted, refuse_columns
from resources.lake.storage import lake_errors

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PROPERTIES: Mapping[str, str] = MappingProxyType(
    {
        "delta.enableDeletionVectors": "true",
        "delta.enableInCommitTimestamps": "true",
        "delta.deletedFileRetentionDuration": "interval 30 days",
        "delta.logRetentionDuration": "interval 30 days",
    }
)
"""Properties a mirror is created with."""

_APP_ID = "spark.databricks.delta.write.txnAppId"
_TXN_VERSION = "spark.databricks.delta.write.txnVersion"
_USER_METADATA = "spark.databricks.delta.commitInfo.userMetadata"


class SparkMirrors:
    """`pipeline.ports.Mirrors` on a folder of this machine.

    `staging` is a folder for folded changes; it need not survive the machine.
    """

    def __init__(self, lake: Path, *, staging: Path, spark: SparkProcess) -> None:
        self._lake = lake
        self._staging = staging
        self._spark = spark
        self._idle: list[SparkSession] = []
        self._lock = threading.Lock()

    def require_ready(self) -> None:
        self._spark.require_ready()

    def prepare(self) -> None:
        self._spark.prepare()

    def recorded(self, mirror: str, app_id: str, txn_version: int) -> MirrorCommit | None:
        found = recorded(self._lake / mirror, app_id, txn_version)
        if found is None:
            return None
        return MirrorCommit(found.delta_version, found.user_metadata or "")

    def write(self, write: MirrorWrite) -> MirrorCommit:
        done = self.recorded(write.mirror, write.app_id, write.txn_version)
        if done is not None:
            return _ours(write, done)
        refuse_columns(write.schema.names)
        exists = newest_version(self._lake / write.mirror) is not None
        if exists:
            with lake_errors(self._lake / write.mirror):
                table = DeltaTable(self._lake / write.mirror)
                refuse_other_columns(table, write.schema, all_of_them=True)
        with self._session() as session:
            try:
                with spark_errors(self._lake / write.mirror):
                    self._apply(session, write, exists)
            except CommitConflict:
                # The other writer may have been an earlier try of this very write.
                done = self.recorded(write.mirror, write.app_id, write.txn_version)
                if done is None:
                    raise
        done = self.recorded(write.mirror, write.app_id, write.txn_version)
        if done is None:
            raise ForeignCommit(
                f"The write to {write.mirror} ended without leaving its transaction "
                f"{write.txn_version} of {write.app_id} in the log",
                hint="see the table's history for a commit that is not Lockstep's",
            )
        return _ours(write, done)

    def stage(self, name: str, changes: pa.Table) -> str:
        with lake_errors(self._staging):
            self._staging.mkdir(parents=True, exist_ok=True)
            readable = "".join(c if c.isalnum() and c.isascii() else "-" for c in name)
            descriptor, path = tempfile.mkstemp(
                prefix=f"{readable[:60]}-", suffix=".parquet", dir=self._staging
            )
            with os.fdopen(descriptor, "wb") as sink:
                pq.write_table(
                    changes,
                    sink,
                    compression="snappy",
                    coerce_timestamps="us",
                    store_decimal_as_integer=True,
                    row_group_size=GROUP_ROWS,
                )
        return path

    def unstage(self, path: str) -> None:
        with lake_errors(self._staging):
            Path(path).unlink(missing_ok=True)

    def path(self, relative: str) -> str:
        return str(self._lake / relative)

    def version(self, mirror: str) -> int | None:
        return newest_version(self._lake / mirror)

    def rows(self, mirror: str, columns: Sequence[str], version: int) -> Iterator[pa.RecordBatch]:
        return scanned(self._lake / mirror, columns, version)

    @contextmanager
    def _session(self) -> Iterator[SparkSession]:
        """A session that no other thread uses meanwhile. Sessions are kept for later
        writes, since each pays once for its own catalog and optimizer; one that saw an
        error is not."""
        with self._lock:
            session = self._idle.pop() if self._idle else None
        if session is None:
            session = self._spark.session()
        yield session
        with self._lock:
            self._idle.append(session)

    def _apply(self, session: SparkSession, write: MirrorWrite, exists: bool) -> None:
        stamps = {
            _APP_ID: write.app_id,
            _TXN_VERSION: str(write.txn_version),
            _USER_METADATA: write.user_metadata,
        }
        try:
            for key, value in stamps.items():
                session.conf.set(key, value)
            self._commit(session, write, exists)
        finally:
            for key in stamps:
                session.conf.unset(key)

    def _commit(self, session: SparkSession, write: MirrorWrite, exists: bool) -> None:
        changes = _changes(session, write)
        if write.mode != "fold":
            self._commit_changes(session, changes, write, exists)
            return
        with lake_errors(self._staging):
            self._staging.mkdir(parents=True, exist_ok=True)
            folder = tempfile.mkdtemp(prefix="folded-", dir=self._staging)
        try:
            fold(session, changes, write, folder)
            folded = replace(write, mode="merge", files=(folder,))
            self._commit_changes(session, _changes(session, folded), folded, exists)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _commit_changes(
        self, session: SparkSession, changes: DataFrame, write: MirrorWrite, exists: bool
    ) -> None:
        if write.mode == "append" or not exists:
            self._append(changes, write)
            return
        changes.createOrReplaceTempView("changes")
        try:
            session.sql(
                merge_statement(
                    mirror=self.path(write.mirror),
                    source="changes",
                    columns=write.schema.names,
                    source_columns=changelog_names(write.schema.names),
                    key=write.key,
                    bounds=write.bounds,
                )
            )
        finally:
            session.catalog.dropTempView("changes")

    def _append(self, changes: DataFrame, write: MirrorWrite) -> None:
        """New rows as they are; into a mirror that is not there, which is created by
        the same commit, folded changes come down to their upserts."""
        from pyspark.sql import functions as f

        if write.mode == "merge":
            changes = changes.where(f.col("_change_type") != "delete")
        names = write.schema.names
        rows = changes.select(
            *(
                f.col(quoted(spelled)).alias(name)
                for name, spelled in zip(names, changelog_names(names), strict=True)
            )
        )
        rows.write.format("delta").mode("append").options(**PROPERTIES).save(
            self.path(write.mirror)
        )


def _changes(session: SparkSession, write: MirrorWrite) -> DataFrame:
    """The write's files as Spark reads them: by a schema made here, nothing inferred."""
    from pyspark.sql.pandas.types import from_arrow_type
    from pyspark.sql.types import LongType, StringType, StructField, StructType

    names = changelog_names(write.schema.names)
    fields = [
        StructField(name, from_arrow_type(field.type, prefer_timestamp_ntz=True))
        for name, field in zip(names, write.schema, strict=True)
    ]
    if write.mode in ("merge", "fold"):
        fields.insert(0, StructField("_change_type", StringType()))
    if write.mode == "fold":
        fields.insert(0, StructField("_sequence", LongType()))
    reader = session.read.schema(StructType(fields)).option("recursiveFileLookup", "true")
    return reader.parquet(*write.files)


def _ours(write: MirrorWrite, commit: MirrorCommit) -> MirrorCommit:
    if commit.user_metadata != write.user_metadata:
        raise ForeignCommit(
            f"Version {commit.delta_version} of {write.mirror} carries transaction "
            f"{write.txn_version} of {write.app_id}, but not this write's description",
            hint="compare the ledger with the table's history: one of them was restored or "
            "written by something else",
        )
    return commit
