"""A Spark whose tables by name are a metastore's, as anybody's would be, and statements for it.

    python -m tests.catalogs.spark_sql METASTORE STATEMENT …

Belongs here: a program for `tests.e2e.warm`, which lends it a Java. It prints the rows of each
statement, as Spark writes them. Does not: what is to be seen there (`test_contract`).
"""

from __future__ import annotations

import json
import sys

from lockstep.resources.lake.spark.session import SparkProcess


def known(metastore: str) -> dict[str, str]:
    """What a Spark is told of it."""
    return {
        "spark.sql.catalogImplementation": "hive",
        "spark.hadoop.hive.metastore.uris": metastore,
    }


def main() -> int:
    metastore, *statements = sys.argv[1:]
    spark = SparkProcess(known(metastore), on_warning=lambda sentence: None)
    session = spark.session()
    rows = [
        [[str(value) for value in row] for row in session.sql(one).collect()] for one in statements
    ]
    spark.stop()
    print(json.dumps(rows))
    return 0
