"""What one `MirrorWrite` commits, in Spark.

Belongs here: append, MERGE and overwrite, each one Delta commit. Does not: that it happens
once (`mirror`), nor which transaction it records, which its session is set to.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from pipeline.changes.layout import changelog_names
from pipeline.changes.mapping import kept_columns
from pipeline.errors import TableError
from pipeline.ports.mirror_writes import MirrorWrite, Rewrite, completed_columns
from resources.lake.completing import completed
from resources.lake.counting import merge_source, net_changes, repeated
from resources.lake.folding import write_folded
from resources.lake.looking_up import looked_up
from resources.lake.parts import (
    changes_of,
    column_from,
    keep_marks,
    lack_marks,
    merged_changes,
    refuse_partial,
    whole_parts,
)
from resources.lake.replacing import column, named_rows, present_rows, replaced
from resources.lake.staging import staged_folder
from resources.lake.statement import COMPLETE, count_statement, merge_statement, quoted

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

FOR_ANY_READER = MappingProxyType({**PROPERTIES, "delta.enableDeletionVectors": "false"})
"""The same for `readers = "any"`."""


def commit(
    session: SparkSession, write: MirrorWrite, path: str, staging: Path, *, exists: bool
) -> None:
    """Make the write's one commit to the mirror at `path`."""
    if write.deletes == "soft" and not write.key:
        raise TableError(
            "deleted rows cannot be marked in a table without a key",
            hint='give the table a PRIMARY KEY, or set deletes = "remove"',
        )
    if write.mode == "replace":
        with replaced(session, write, path if exists else None, staging) as rows:
            _overwrite(rows, write, path, exists)
    elif write.mode == "append":
        _append(present_rows(changes_of(session, write, ["_change_type"]), write), write, path)
    elif not write.key:
        refuse_partial(write)
        _count(session, write, path, staging, exists)
    elif write.mode == "merge":
        _merge(session, write, path, staging, exists)
    else:
        _fold(session, write, path, staging, exists)


def _fold(
    session: SparkSession, write: MirrorWrite, path: str, staging: Path, exists: bool
) -> None:
    with staged_folder(staging) as folder:
        write_folded(session, write, folder)
        kept = kept_columns((part.columns for part in whole_parts(write)), write.schema)
        lacking = tuple(lack_marks(write))
        _merge(
            session,
            replace(write, mode="merge", files=(folder,), parts=(), kept=kept, lacking=lacking),
            path,
            staging,
            exists,
        )


def _merge(
    session: SparkSession, write: MirrorWrite, path: str, staging: Path, exists: bool
) -> None:
    there = _between(session.read.format("delta").load(path), write) if exists else None
    with looked_up(session, merged_changes(session, write), write, there, staging) as changes:
        if write.completion is not None:
            changes = completed(session, changes, write, write.completion)
        if exists:
            _merge_into(session, changes, write, path)
        else:
            changes = changes.where(f"_change_type <> '{COMPLETE}'")
            _append(present_rows(changes, write), write, path)


def _between(rows: DataFrame, write: MirrorWrite) -> DataFrame:
    for name, least, greatest in write.bounds:
        rows = rows.where(f"{quoted(name)} between {least} and {greatest}")
    return rows


def _merge_into(session: SparkSession, changes: DataFrame, write: MirrorWrite, path: str) -> None:
    statement = merge_statement(
        mirror=path,
        source="changes",
        columns=write.schema.names,
        source_columns=changelog_names(write.schema.names),
        key=write.key,
        bounds=write.bounds,
        keeps=keep_marks(write),
        soft=write.deletes == "soft",
        completed=completed_columns(write),
    )
    _run(session, changes, statement)


def _count(
    session: SparkSession, write: MirrorWrite, path: str, staging: Path, exists: bool
) -> None:
    columns = changelog_names(write.schema.names)
    net = net_changes(session, write)
    if not exists:
        _append(named_rows(repeated(net, columns), write), write, path)
        return
    mirror = session.read.format("delta").load(path)
    there = mirror.select(
        *(
            column(name).alias(spelled)
            for name, spelled in zip(write.schema.names, columns, strict=True)
        )
    )
    with staged_folder(staging) as counted, staged_folder(staging) as folder:
        # Counted once: the plan behind it is asked for five times.
        net.write.mode("overwrite").parquet(counted)
        net = session.read.schema(net.schema).parquet(counted)
        source = merge_source(net, there, columns)
        source.write.mode("overwrite").parquet(folder)
        source = session.read.schema(source.schema).parquet(folder)
        statement = count_statement(
            mirror=path, source="changes", columns=write.schema.names, source_columns=columns
        )
        _run(session, source, statement)


def _run(session: SparkSession, changes: DataFrame, statement: str) -> None:
    changes.createOrReplaceTempView("changes")
    try:
        session.sql(statement)
    finally:
        session.catalog.dropTempView("changes")


def _append(rows: DataFrame, write: MirrorWrite, path: str) -> None:
    """Into a mirror that is not there too: it is created by the same commit."""
    rows.write.format("delta").mode("append").options(**_properties(write)).save(path)


def _overwrite(rows: DataFrame, write: MirrorWrite, path: str, exists: bool) -> None:
    writer = rows.write.format("delta").mode("overwrite").option("overwriteSchema", "true")
    if not exists:
        writer = writer.options(**_properties(write))
    writer.save(path)


def write_anew(session: SparkSession, write: MirrorWrite, path: str) -> None:
    """The insert images of the write's files are all that the mirror holds from now on."""
    rows = present_rows(changes_of(session, write, ["_change_type"]), write)
    rows.write.format("delta").mode("overwrite").save(path)


def rewrite(session: SparkSession, path: str, step: Rewrite) -> None:
    """All rows of the mirror once more, under other columns."""
    rows = session.read.format("delta").load(path)
    changed = rows.select(
        *(
            column_from(one, field.type).alias(field.name)
            for one, field in zip(step.columns, step.schema, strict=True)
        )
    )
    changed.write.format("delta").mode("overwrite").option("overwriteSchema", "true").save(path)


def copy_rows(
    session: SparkSession, path: Path, columns: Sequence[str], version: int, folder: str
) -> None:
    """A mirror's rows at a version, as Parquet files in `folder`."""
    rows = session.read.format("delta").option("versionAsOf", version).load(str(path))
    chosen = rows.select(*map(column, columns))
    chosen.write.mode("overwrite").option("compression", "snappy").parquet(folder)


def _properties(write: MirrorWrite) -> Mapping[str, str]:
    return FOR_ANY_READER if write.readers == "any" else PROPERTIES
