"""A Spark whose tables by name are a metastore's."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from resources.lake.session import SparkProcess
from tests.uncompiled import UNCOMPILED


@pytest.fixture(scope="module")
def hive_spark(metastore: str, spark: SparkProcess) -> Iterator[SparkProcess]:
    """A Spark whose tables by name are the metastore's, as anybody's would be; a process has one
    at a time."""
    spark.stop()
    told = {
        "spark.driver.memory": "1g",
        **UNCOMPILED,
        "spark.sql.catalogImplementation": "hive",
        "spark.hadoop.hive.metastore.uris": metastore,
    }
    process = SparkProcess(told, on_warning=lambda sentence: None)
    yield process
    process.stop()
