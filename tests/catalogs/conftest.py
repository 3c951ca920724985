"""Sparks whose tables by name are a metastore's."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import cast

import pytest

from lockstep.resources.lake.spark.session import SparkProcess
from tests.catalogs.spark_sql import known
from tests.e2e.project import environment
from tests.e2e.warm import TIMEOUT, WarmProcess
from tests.uncompiled import UNCOMPILED

Rows = list[list[str]]
Asked = Callable[..., list[Rows]]
"""The rows of each of some statements."""


@pytest.fixture(scope="module")
def hive_spark(metastore: str, spark: SparkProcess) -> Iterator[SparkProcess]:
    """A Spark of this process; it has one at a time."""
    spark.stop()
    told = {"spark.driver.memory": "1g", **UNCOMPILED, **known(metastore)}
    process = SparkProcess(told, on_warning=lambda sentence: None)
    yield process
    process.stop()


@pytest.fixture
def by_name(warm: WarmProcess, metastore: str, tmp_path: Path) -> Asked:
    """A Spark of a process that begins warm, each time anew."""

    def asked(*statements: str) -> list[Rows]:
        with warm.start(
            "tests.catalogs.spark_sql",
            [metastore, *statements],
            folder=tmp_path,
            environment=environment(),
            hold=False,
        ) as begun:
            out, err = begun.communicate(TIMEOUT)
        assert begun.returncode == 0, err
        return cast("list[Rows]", json.loads(out))

    return asked
