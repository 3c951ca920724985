"""What one `MirrorWrite` commits, in Spark.

Belongs here: append, MERGE and overwrite, each one Delta commit. Does not: that it happens
once (`mirror`), nor which transaction it records, which its session is set to.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, assert_never

import pyarrow as pa

from pipeline.changes.evolution import MAPPING
from pipeline.changes.layout import changelog_names
from pipeline.keeping import Retention
from pipeline.policies import Readers
from pipeline.ports.mirror_writes import (
    Append,
    Count,
    Fill,
    Merge,
    MirrorTarget,
    MirrorWrite,
    Recount,
    Replace,
    Rewrite,
    StagedFiles,
)
from pipeline.schema.column_names import is_refused, merges
from resources.lake.columns import VECTORS, Spelling
from resources.lake.completing import completed
from resources.lake.counting import merge_source, net_changes, repeated, with_changes
from resources.lake.looking_up import looked_up
from resources.lake.parts import (
    changes_of,
    column_from,
    images_of,
    keep_marks,
    mirror_frame,
    read_files,
)
from resources.lake.paths import LakePath
from resources.lake.replacing import column, merged, named_rows, present_rows, recounted, replaced
from resources.lake.staging import Staging
from resources.lake.statement import COMPLETE, count_statement, literal, merge_statement, quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def properties(target: MirrorTarget, keep: timedelta) -> Mapping[str, str]:
    """What a mirror is created with; `keep`: how long each of its versions stays readable."""
    for_any = target.readers == Readers.ANY
    mapped = not for_any and any(map(is_refused, target.schema.names))
    return {
        VECTORS: "false" if for_any else "true",
        "delta.enableInCommitTimestamps": "true",
        **Retention.promising(keep).properties(),
        **dict([MAPPING] if mapped else []),
    }


def commit(
    session: SparkSession,
    write: MirrorWrite,
    path: LakePath,
    staging: Staging,
    made: Mapping[str, str] | None,
    spell: Spelling,
) -> None:
    """Make the write's one commit to the mirror at `path`, which spells its columns by `spell`.
    `made`: the properties that it is created with; None where it is there."""
    place = _Place(path, made, spell)
    match write:
        case Append(target, parts):
            images = images_of(session, parts, target.schema)
            place.append(present_rows(images, target))
        case Merge():
            _merge(session, write, place, staging)
        case Count(target, parts):
            _count(session, target, parts, place, staging)
        case Replace():
            with replaced(session, write, path if made is None else None, staging) as rows:
                place.overwrite(rows)
        case Recount(target, parts, snapshot):
            place.overwrite(recounted(session, target.schema, parts, snapshot))
        case _:
            assert_never(write)


@dataclass(frozen=True, slots=True)
class _Place:
    """Where rows go, with the names that the source has for their columns."""

    path: LakePath
    made: Mapping[str, str] | None
    spell: Spelling

    def append(self, rows: DataFrame) -> None:
        """Into a mirror that is not there too: it is created by the same commit."""
        writer = self._spelled(rows).write.format("delta").mode("append")
        writer.options(**(self.made or {})).save(str(self.path))

    def overwrite(self, rows: DataFrame) -> None:
        writer = self._spelled(rows).write.format("delta").mode("overwrite")
        writer = writer.option("overwriteSchema", "true")
        writer.options(**(self.made or {})).save(str(self.path))

    def refill(self, rows: DataFrame) -> None:
        """All rows that there are from now on, in the columns that the mirror has."""
        self._spelled(rows).write.format("delta").mode("overwrite").save(str(self.path))

    def _spelled(self, rows: DataFrame) -> DataFrame:
        return rows.toDF(*map(self.spell, rows.columns))


def _merge(session: SparkSession, write: Merge, place: _Place, staging: Staging) -> None:
    there = None
    if not place.made:
        there = _between(mirror_frame(session, place.path), write)
    with looked_up(session, changes_of(session, write), write, there, staging) as changes:
        if write.completion is not None:
            changes = completed(session, changes, write, write.completion)
        if place.made is None and merges(write.target.schema.names):
            _merge_into(session, changes, write, place)
        elif place.made is None:
            place.refill(merged(mirror_frame(session, place.path), changes, write))
        else:
            changes = changes.where(f"_change_type <> '{COMPLETE}'")
            place.append(present_rows(changes, write.target))


def _between(rows: DataFrame, write: Merge) -> DataFrame:
    for name, least, greatest in write.bounds:
        rows = rows.where(f"{quoted(name)} between {least} and {greatest}")
    return rows


def _merge_into(session: SparkSession, changes: DataFrame, write: Merge, place: _Place) -> None:
    schema, spell = write.target.schema, place.spell
    statement = merge_statement(
        mirror=str(place.path),
        source="changes",
        columns=list(map(spell, schema.names)),
        source_columns=changelog_names(schema.names),
        key=list(map(spell, write.key)),
        bounds=[(spell(name), least, greatest) for name, least, greatest in write.bounds],
        keeps={spell(name): mark for name, mark in keep_marks(schema, write.changes).items()},
        soft=write.target.soft,
        completed=list(map(spell, write.completed)),
    )
    _run(session, changes, statement)


def _count(
    session: SparkSession,
    target: MirrorTarget,
    parts: Sequence[StagedFiles],
    place: _Place,
    staging: Staging,
) -> None:
    names = target.schema.names
    columns = changelog_names(names)
    net = net_changes(images_of(session, parts, target.schema), columns)
    if place.made is not None:
        place.append(named_rows(repeated(net, columns), names))
        return
    mirror = mirror_frame(session, place.path)
    there = mirror.select(
        *(column(name).alias(spelled) for name, spelled in zip(names, columns, strict=True))
    )
    if not merges(names):
        place.refill(named_rows(with_changes(there, net, columns), names))
        return
    with staging.folder() as counted, staging.folder() as folder:
        # Counted once: the plan behind it is asked for five times.
        net.write.mode("overwrite").parquet(counted)
        net = session.read.schema(net.schema).parquet(counted)
        source = merge_source(net, there, columns)
        source.write.mode("overwrite").parquet(folder)
        source = session.read.schema(source.schema).parquet(folder)
        statement = count_statement(
            mirror=str(place.path),
            source="changes",
            columns=list(map(place.spell, names)),
            source_columns=columns,
        )
        _run(session, source, statement)


def _run(session: SparkSession, changes: DataFrame, statement: str) -> None:
    changes.createOrReplaceTempView("changes")
    try:
        session.sql(statement)
    finally:
        session.catalog.dropTempView("changes")


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
    place = _Place(path, made, str)
    try:
        frame = read_files(session, (file,), rows.schema)
        if shaped:
            place.overwrite(frame)
        elif anew and made is None:
            place.refill(frame)
        else:
            place.append(frame)
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
    _Place(path, None, str).overwrite(changed)


def fill(session: SparkSession, path: LakePath, step: Fill) -> None:
    """All rows of the mirror once more, with values in some columns. Delta's UPDATE, which writes
    as many, takes a column `__condition__` for its own and leaves NULL in it."""
    from pyspark.sql import functions as f

    values = dict(step.values)
    rows = session.read.format("delta").load(str(path))
    chosen = [
        (f.expr(literal(values[name])) if name in values else column(name)).alias(name)
        for name in rows.columns
    ]
    _Place(path, None, str).refill(rows.select(*chosen))


def copy_rows(
    session: SparkSession, path: LakePath, columns: Sequence[str], version: int, folder: str
) -> None:
    """A mirror's rows at a version, as Parquet files in `folder`; their columns are called c0, c1
    and so on."""
    rows = mirror_frame(session, path, version)
    chosen = rows.select(*(column(name).alias(f"c{at}") for at, name in enumerate(columns)))
    chosen.write.mode("overwrite").option("compression", "snappy").parquet(folder)
