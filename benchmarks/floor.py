"""The floor: a bare script that starts Spark, merges the same Parquet segments and stops. It
imports nothing of Lockstep.

    python -m benchmarks.floor CONF MODE SEGMENTS_GLOB TABLE KEY

CONF is a JSON file of Spark settings: `PLAIN` below with Delta's jars, or the product's. MODE
"append" writes the inserts of the segments into a new table at TABLE; "merge" merges the postimages
into the existing table.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from pyspark.sql import SparkSession

PLAIN = {
    "spark.master": "local[*]",
    "spark.ui.enabled": "false",
    "spark.driver.memory": "4g",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "2",
    "spark.databricks.delta.snapshotPartitions": "2",
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}
"""Plain Spark with Delta, and two settings beyond the defaults: few shuffle partitions and
few snapshot partitions, without which small tables measure only overhead."""


def session(conf: dict[str, str]) -> SparkSession:
    builder = SparkSession.builder
    for key, value in conf.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def main() -> None:
    """Merge or append once."""
    conf, mode, segments, table, key = sys.argv[1:]
    spark = session(json.loads(Path(conf).read_text()))
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
