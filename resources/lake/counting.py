"""Mirrors without a key: rows are told apart by all their values, and copies are counted.

Belongs here: what a MERGE must be given, and a table's rows with changes counted on top.
-0.0 and 0.0 are one value to a comparison, so a MERGE removes both; they are counted apart,
by their text, and put back bit for bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pipeline.segment import ChangeType
from resources.lake.statement import quoted

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_COUNT = "_sequence"
"""How often; named like a mark, so that no column is called so."""

_COMES = (ChangeType.INSERT.value, ChangeType.UPDATE_POSTIMAGE.value)


def net_changes(images: DataFrame, columns: Sequence[str]) -> DataFrame:
    """How often each row image comes more than it goes (`_sequence`, never 0)."""
    from pyspark.sql import functions as f

    sign = f.when(f.col("_change_type").isin(*_COMES), 1).otherwise(-1)
    signed = images.select(*map(_named, columns), sign.alias(_COUNT))
    return _counted(signed, columns).where(f.col(_COUNT) != 0)


def merge_source(net: DataFrame, mirror: DataFrame, columns: Sequence[str]) -> DataFrame:
    """What `statement.count_statement` merges: `_change_type` and the columns. `mirror` has
    its rows under the same names.

    A "delete" takes all copies of an image that goes more often than it comes; the copies
    that should remain come back as "insert".
    """
    from pyspark.sql import functions as f

    gone = net.where(f.col(_COUNT) < 0).select(*map(_named, columns)).distinct()
    there = _alike(mirror, gone, columns, "left_semi").withColumn(_COUNT, f.lit(1).cast("bigint"))
    touched = _alike(net, gone, columns, "left_semi")
    remain = _counted(there.select(*map(_named, touched.columns)).union(touched), columns)
    others = _alike(net, gone, columns, "left_anti")
    inserted = repeated(remain.union(others.select(*map(_named, remain.columns))), columns)
    return inserted.withColumn("_change_type", f.lit("insert")).union(
        gone.withColumn("_change_type", f.lit("delete"))
    )


def with_changes(rows: DataFrame | None, net: DataFrame, columns: Sequence[str]) -> DataFrame:
    """Rows (of the same names), each as often as the changes leave it."""
    from pyspark.sql import functions as f

    if rows is None:
        return repeated(net, columns)
    there = rows.select(*map(_named, columns), f.lit(1).cast("bigint").alias(_COUNT))
    return repeated(
        _counted(there.union(net.select(*map(_named, there.columns))), columns), columns
    )


def repeated(counted: DataFrame, columns: Sequence[str]) -> DataFrame:
    """Each row as often as it is counted; a count below 1 is none: the mirror never had the
    row that went."""
    from pyspark.sql import functions as f

    times = f.explode(f.sequence(f.lit(1), f.col(_COUNT).cast("int")))
    present = counted.where(f.col(_COUNT) > 0)
    return present.select(*map(_named, columns), times.alias(_COUNT)).drop(_COUNT)


def _counted(rows: DataFrame, columns: Sequence[str]) -> DataFrame:
    """Rows that are the same bit for bit as one, with the sum of their counts."""
    from pyspark.sql import functions as f

    floating = [name for name, kind in rows.dtypes if name in columns and _floating(kind)]
    by = [_named(name) for name in columns if name not in floating]
    texts = [_named(n).cast("string").alias(f"_text_{at}") for at, n in enumerate(floating)]
    firsts = [f.first(quoted(name)).alias(name) for name in floating]
    grouped = rows.groupBy(*by, *texts).agg(f.sum(_COUNT).alias(_COUNT), *firsts)
    return grouped.select(*map(_named, columns), _COUNT)


def _floating(kind: str) -> bool:
    return kind in ("float", "double") or kind.startswith("array")


def _alike(rows: DataFrame, images: DataFrame, columns: Sequence[str], how: str) -> DataFrame:
    """`rows` that are, or are not, among `images` to a comparison that knows NULL."""
    from pyspark.sql import functions as f

    condition = f.lit(True)
    for name in columns:
        condition &= f.col(f"r.{quoted(name)}").eqNullSafe(f.col(f"i.{quoted(name)}"))
    return rows.alias("r").join(images.alias("i"), condition, how)


def _named(name: str) -> Column:
    from pyspark.sql import functions as f

    return f.col(quoted(name))
