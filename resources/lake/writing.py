"""What one `MirrorWrite` commits, in Spark.

Belongs here: append, MERGE and overwrite, each one Delta commit. Does not: that it happens
once (`mirror`), nor which transaction it records, which its session is set to.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, assert_never

import pyarrow as pa

from pipeline.changes.layout import changelog_names
from pipeline.keeping import Retention
from pipeline.policies import Readers
from pipeline.ports.mirror_writes import (
    Append,
    Count,
    Merge,
    MirrorTarget,
    MirrorWrite,
    Recount,
    Replace,
    Rewrite,
    StagedFiles,
)
from resources.lake.completing import completed
from resources.lake.counting import merge_source, net_changes, repeated
from resources.lake.looking_up import looked_up
from resources.lake.parts import changes_of, column_from, images_of, keep_marks, read_files
from resources.lake.paths import LakePath
from resources.lake.replacing import column, named_rows, present_rows, recounted, replaced
from resources.lake.staging import Staging
from resources.lake.statement import COMPLETE, count_statement, merge_statement, quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


VECTORS = "delta.enableDeletionVectors"


def properties(readers: Readers, keep: timedelta) -> Mapping[str, str]:
    """What a mirror is created with; `keep`: how long each of its versions stays readable."""
    return {
        VECTORS: "false" if readers == Readers.ANY else "true",
        "delta.enableInCommitTimestamps": "true",
        **Retention.promising(keep).properties(),
    }


def commit(
    session: SparkSession,
    write: MirrorWrite,
    path: LakePath,
    staging: Staging,
    made: Mapping[str, str] | None,
) -> None:
    """Make the write's one commit to the mirror at `path`. `made`: the properties that it is
    created with; None where it is there."""
    target = write.target
    match write:
        case Append(target, parts):
            images = images_of(session, parts, target.schema)
            _append(present_rows(images, target), path, made)
        case Merge():
            _merge(session, write, path, staging, made)
        case Count(target, parts):
            _count(session, target, parts, path, staging, made)
        case Replace():
            with replaced(session, write, path if made is None else None, staging) as rows:
                _overwrite(rows, path, made)
        case Recount(target, parts, snapshot):
            _overwrite(recounted(session, target.schema, parts, snapshot), path, made)
        case _:
            assert_never(write)


def _merge(
    session: SparkSession,
    write: Merge,
    path: LakePath,
    staging: Staging,
    made: Mapping[str, str] | None,
) -> None:
    there = None if made else _between(session.read.format("delta").load(str(path)), write)
    with looked_up(session, changes_of(session, write), write, there, staging) as changes:
        if write.completion is not None:
            changes = completed(session, changes, write, write.completion)
        if made is None:
            _merge_into(session, changes, write, path)
        else:
            changes = changes.where(f"_change_type <> '{COMPLETE}'")
            _append(present_rows(changes, write.target), path, made)


def _between(rows: DataFrame, write: Merge) -> DataFrame:
    for name, least, greatest in write.bounds:
        rows = rows.where(f"{quoted(name)} between {least} and {greatest}")
    return rows


def _merge_into(session: SparkSession, changes: DataFrame, write: Merge, path: LakePath) -> None:
    schema = write.target.schema
    statement = merge_statement(
        mirror=str(path),
        source="changes",
        columns=schema.names,
        source_columns=changelog_names(schema.names),
        key=write.key,
        bounds=write.bounds,
        keeps=keep_marks(schema, write.changes),
        soft=write.target.soft,
        completed=write.completed,
    )
    _run(session, changes, statement)


def _count(
    session: SparkSession,
    target: MirrorTarget,
    parts: Sequence[StagedFiles],
    path: LakePath,
    staging: Staging,
    made: Mapping[str, str] | None,
) -> None:
    names = target.schema.names
    columns = changelog_names(names)
    net = net_changes(images_of(session, parts, target.schema), columns)
    if made is not None:
        _append(named_rows(repeated(net, columns), names), path, made)
        return
    mirror = session.read.format("delta").load(str(path))
    there = mirror.select(
        *(column(name).alias(spelled) for name, spelled in zip(names, columns, strict=True))
    )
    with staging.folder() as counted, staging.folder() as folder:
        # Counted once: the plan behind it is asked for five times.
        net.write.mode("overwrite").parquet(counted)
        net = session.read.schema(net.schema).parquet(counted)
        source = merge_source(net, there, columns)
        source.write.mode("overwrite").parquet(folder)
        source = session.read.schema(source.schema).parquet(folder)
        statement = count_statement(
            mirror=str(path), source="changes", columns=names, source_columns=columns
        )
        _run(session, source, statement)


def _run(session: SparkSession, changes: DataFrame, statement: str) -> None:
    changes.createOrReplaceTempView("changes")
    try:
        session.sql(statement)
    finally:
        session.catalog.dropTempView("changes")


def _append(rows: DataFrame, path: LakePath, made: Mapping[str, str] | None) -> None:
    """Into a mirror that is not there too: it is created by the same commit."""
    rows.write.format("delta").mode("append").options(**(made or {})).save(str(path))


def _overwrite(rows: DataFrame, path: LakePath, made: Mapping[str, str] | None) -> None:
    writer = rows.write.format("delta").mode("overwrite").option("overwriteSchema", "true")
    writer.options(**(made or {})).save(str(path))


def write_rows(
    session: SparkSession,
    path: LakePath,
    rows: pa.Table,
    staging: Staging,
    *,
    anew: bool,
    shaped: bool,
    made: Mapping[str, str] | None,
) -> None:
    """The one commit of rows that were put together without Spark, where only a query can make it
    (`direct.commit_rows` elsewhere, which says what `anew`, `shaped` and `made` are)."""
    file = staging.stage("few", rows)
    try:
        frame = read_files(session, (file,), rows.schema)
        if shaped:
            _overwrite(frame, path, made)
        elif anew and made is None:
            frame.write.format("delta").mode("overwrite").save(str(path))
        else:
            _append(frame, path, made)
    finally:
        staging.unstage(file)


def rewrite(session: SparkSession, path: LakePath, step: Rewrite) -> None:
    """All rows of the mirror once more, under other columns."""
    rows = session.read.format("delta").load(str(path))
    changed = rows.select(
        *(
            column_from(one, field.type).alias(field.name)
            for one, field in zip(step.columns, step.schema, strict=True)
        )
    )
    changed.write.format("delta").mode("overwrite").option("overwriteSchema", "true").save(
        str(path)
    )


def copy_rows(
    session: SparkSession, path: LakePath, columns: Sequence[str], version: int, folder: str
) -> None:
    """A mirror's rows at a version, as Parquet files in `folder`."""
    rows = session.read.format("delta").option("versionAsOf", version).load(str(path))
    chosen = rows.select(*map(column, columns))
    chosen.write.mode("overwrite").option("compression", "snappy").parquet(folder)
