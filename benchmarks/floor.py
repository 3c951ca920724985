"""The floor: a bare script that starts Spark, merges the same Parquet segments, stops.

    python -m benchmarks.floor JARS MODE SEGMENTS_GLOB TABLE KEY

MODE "append" writes the inserts of the segments into a new table at TABLE; "merge"
merges the postimages into the table that is there. Nothing of Lockstep is imported.
"""

from __future__ import annotations

import sys
from pathlib import Path

from pyspark.sql import SparkSession

_CATALOG = "org.apache.spark.sql.delta.catalog.DeltaCatalog"


def session(jars: Path) -> SparkSession:
    """Plain Spark with Delta, two settings beyond the defaults: few shuffle partitions
    and few snapshot partitions, without which small tables measure only overhead."""
    names = ",".join(str(path) for path in sorted(jars.glob("*.jar")))
    return (
        SparkSession.builder.master("local[*]")
        .config("spark.jars", names)
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "4g")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.databricks.delta.snapshotPartitions", "2")
        .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
        .config("spark.sql.catalog.spark_catalog", _CATALOG)
        .getOrCreate()
    )


def main() -> None:
    """Merge or append, once."""
    jars, mode, segments, table, key = sys.argv[1:]
    spark = session(Path(jars))
    changes = spark.read.parquet(segments)
    marks = [name for name in changes.columns if name.startswith("_")]
    if mode == "append":
        rows = changes.where("_change_type = 'insert'").drop(*marks)
        rows.write.format("delta").mode("append").save(table)
    else:
        rows = changes.where("_change_type in ('insert', 'update_postimage')").drop(*marks)
        rows.createOrReplaceTempView("changes")
        spark.sql(
            f"merge into delta.`{table}` t using changes s on t.`{key}` = s.`{key}` "
            "when matched then update set * when not matched then insert *"
        )
    spark.stop()


if __name__ == "__main__":
    main()
