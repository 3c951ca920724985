"""Settings of a Spark whose plans are not made Java of.

Rows of tests are few: to make Java of a plan costs seconds of processor time, and gives the same
ones. Every Spark that tests share has these, and so has the one that commands borrow; a command
that begins cold has what the product starts, and what is about compiled plans asks for them
(`tests.lake.conftest`).
"""

from __future__ import annotations

from typing import Final

UNCOMPILED: Final = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.shuffle.partitions": "1",
    "spark.databricks.delta.snapshotPartitions": "1",
}
