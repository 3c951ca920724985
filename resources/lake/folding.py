"""Folding changes in Spark: for more of them than a process should hold in memory.

The same rules as `pipeline.changes.latest` and `mapping`, on disk: the last image per key,
in the order of `_sequence`, is all that a MERGE sees; what it does not know comes from the
newest image that does, unless the row began anew since. Rows are not followed from key to
key: what an image leaves out of a row whose key changed is told by nobody here, and its origin
is NULL.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pipeline.changes.coalescing import HINT, OTHER_KEY
from pipeline.changes.layout import changelog_names
from pipeline.errors import TableError
from pipeline.ports.mirror_writes import MirrorWrite
from pipeline.segment import ChangeType
from resources.lake.parts import changes_of, keep_marks, lack_marks, origins
from resources.lake.statement import quoted

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

PARTITIONS = 32
"""Pieces that the changes are folded in, so that a piece fits into the heap."""

_SHUFFLES = "spark.sql.shuffle.partitions"
_PRESENT = (ChangeType.INSERT.value, ChangeType.UPDATE_POSTIMAGE.value)


def write_folded(session: SparkSession, write: MirrorWrite, folder: str) -> None:
    """Write `folded` to a staging folder, because Delta reads a MERGE's source twice."""
    with _shuffled(session):
        frame = folded(session, write)
        frame.write.mode("overwrite").option("compression", "snappy").parquet(folder)


def folded(session: SparkSession, write: MirrorWrite) -> DataFrame:
    """The last image per key, `_change_type` "delete" where the row is gone after it, with
    the keep marks, the lack marks with the origins, and, for soft deletes, `_committed_at`;
    without `_sequence` unless something is completed."""
    from pyspark.sql import functions as f

    marks = ["_change_type", "_sequence", *(["_committed_at"] if write.deletes == "soft" else [])]
    changes = changes_of(session, write, marks)
    spelled = dict(zip(write.schema.names, changelog_names(write.schema.names), strict=True))
    key = [f.col(quoted(spelled[name])) for name in write.key]
    keeps = {spelled[name]: mark for name, mark in keep_marks(write).items()}
    if lack_marks(write):
        kept = _coalesced(changes, key, write, spelled)
    elif keeps:
        kept = _with_kept(changes, key, keeps)
    else:
        newest = changes.groupBy(*key).agg(f.max("_sequence").alias("_newest"))
        kept = changes.join(newest, changes["_sequence"] == newest["_newest"], "left_semi")
    kind = f.when(f.col("_change_type").isin(*_PRESENT), f.col("_change_type"))
    kept = kept.withColumn("_change_type", kind.otherwise("delete"))
    return kept if write.completion is not None else kept.drop("_sequence")


def _with_kept(changes: DataFrame, key: Sequence[Column], keeps: dict[str, str]) -> DataFrame:
    """The last image per key; `keeps`: columns that some images do not know, and the mark
    that says of each image whether it is one."""
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    order = Window.partitionBy(*key).orderBy("_sequence")
    follows = (f.lag("_change_type").over(order) == ChangeType.UPDATE_PREIMAGE.value) & (
        f.lag("_sequence").over(order) == f.col("_sequence") - 1
    )
    kind = f.col("_change_type")
    moved = (kind == ChangeType.UPDATE_POSTIMAGE.value) & ~f.coalesce(follows, f.lit(False))
    began = (kind == ChangeType.INSERT.value) | moved
    told = [
        f.max_by(f.struct(quoted(name)), f.when(~f.col(mark) | f.col("_began"), f.col("_sequence")))
        for name, mark in keeps.items()
    ]
    newest = (
        changes.withColumn("_began", began)
        .groupBy(*key)
        .agg(
            f.max("_sequence").alias("_newest"),
            *(value.alias(f"_told_{at}") for at, value in enumerate(told)),
        )
        .select("_newest", *(f"_told_{at}" for at in range(len(told))))
    )
    last = changes.join(newest, changes["_sequence"] == newest["_newest"])
    value_of = {name: f"_told_{at}" for at, name in enumerate(keeps)}
    mark_of = {mark: value_of[name] for name, mark in keeps.items()}
    return last.select(
        *(
            f.col(value_of[name]).getField(name).alias(name)
            if name in value_of
            else f.col(mark_of[name]).isNull().alias(name)
            if name in mark_of
            else f.col(quoted(name))
            for name in changes.columns
        )
    )


def _coalesced(
    changes: DataFrame, key: Sequence[Column], write: MirrorWrite, spelled: Mapping[str, str]
) -> DataFrame:
    """The last image per key, each column from the newest image of its row that has it; with
    keep marks, lack marks and origins."""
    from pyspark.sql import functions as f

    keeps, lacks = keep_marks(write), lack_marks(write)
    for name in write.key:
        if name in lacks and changes.where(f.col(lacks[name])).limit(1).count():
            raise TableError(OTHER_KEY, hint=HINT)
    told = {name: _newest_told(name, spelled[name], keeps, lacks) for name in {**lacks, **keeps}}
    newest = (
        _followed(changes, key)
        .groupBy(*key)
        .agg(
            f.max("_sequence").alias("_newest"),
            *(value.alias(f"_told_{at}") for at, value in enumerate(told.values())),
        )
        .select("_newest", *(f"_told_{at}" for at in range(len(told))))
    )
    last = changes.join(newest, changes["_sequence"] == newest["_newest"])
    place = {name: f.col(f"_told_{at}") for at, name in enumerate(told)}
    asks = f.lit(write.deletes == "soft") | f.col("_change_type").isin(*_PRESENT)
    lost = f.lit(False)
    for name in lacks:
        lost |= f.coalesce(~place[name].getField("knows"), f.lit(False))
    names = {spelled[name]: name for name in write.schema.names}
    columns = []
    for column in changes.columns:
        name = names.get(column, "")
        if name in place:
            columns.append(place[name].getField("value").alias(column))
        elif column not in (*keeps.values(), *lacks.values()):
            columns.append(f.col(quoted(column)))
    for name, mark in keeps.items():
        stays = f.lit(False) if name in lacks else place[name].isNull()
        columns.append(stays.alias(mark))
    for name, mark in lacks.items():
        unknown = place[name].isNull() | ~place[name].getField("knows")
        columns.append((asks & unknown).alias(mark))
    for name, origin in origins(write).items():
        columns.append(f.when(~lost, f.col(quoted(spelled[name]))).alias(origin))
    return last.select(*columns)


def _newest_told(
    name: str, spelled: str, keeps: Mapping[str, str], lacks: Mapping[str, str]
) -> Column:
    """A column's value by the newest image that has it, or that a row begins with whose
    images before it are not followed: `knows` tells which."""
    from pyspark.sql import functions as f

    left_out = f.col(lacks[name]) if name in lacks else f.lit(False)
    absent = f.col(keeps[name]) if name in keeps else f.lit(False)
    inserted, moved, lost = (f.col(_FOLLOWED).getField(one) for one in ("i", "m", "l"))
    knows = ~left_out & (~absent | inserted | moved)
    value = f.struct(f.col(quoted(spelled)).alias("value"), knows.alias("knows"))
    return f.max_by(value, f.when(knows | moved | lost, f.col("_sequence")))


_FOLLOWED = "_derived"
"""Named like a mark, so that no column is called so."""


def _followed(changes: DataFrame, key: Sequence[Column]) -> DataFrame:
    """With what each image is to the one of its key before it: `i`, inserted; `m`, an update
    brought the row its key; `l`, the row was gone already."""
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    order = Window.partitionBy(*key).orderBy("_sequence")
    kind, before = f.col("_change_type"), f.lag("_change_type").over(order)
    gone = (ChangeType.UPDATE_PREIMAGE.value, ChangeType.DELETE.value)
    follows = (before == ChangeType.UPDATE_PREIMAGE.value) & (
        f.lag("_sequence").over(order) == f.col("_sequence") - 1
    )
    moved = (kind == ChangeType.UPDATE_POSTIMAGE.value) & ~f.coalesce(follows, f.lit(False))
    told = f.struct(
        (kind == ChangeType.INSERT.value).alias("i"),
        moved.alias("m"),
        (kind.isin(*gone) & f.coalesce(before.isin(*gone), f.lit(False))).alias("l"),
    )
    return changes.withColumn(_FOLLOWED, told)


@contextmanager
def _shuffled(session: SparkSession) -> Iterator[None]:
    before = session.conf.get(_SHUFFLES)
    session.conf.set(_SHUFFLES, str(PARTITIONS))
    try:
        yield
    finally:
        session.conf.set(_SHUFFLES, str(before))
