"""Lakes to test on: one in memory, one on disk, on one Spark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

import pytest

from lockstep.pipeline.mirror.strategy import FEW, NO_FEW_ROWS, Size
from lockstep.pipeline.ports.changelog import Changelog
from lockstep.pipeline.ports.mirrors import Mirrors
from lockstep.pipeline.ports.segments import SegmentStore
from lockstep.resources.lake.changelog.changelog import DeltaChangelog
from lockstep.resources.lake.changelog.segments import ParquetSegments
from lockstep.resources.lake.mirror.mirror import SparkMirrors
from lockstep.resources.lake.spark.session import SparkProcess
from lockstep.resources.lake.spark.spark import Spark
from lockstep.resources.lake.store.paths import LakePath
from tests.fix_objects import ObjectStore
from tests.twins.changelog import MemoryChangelog
from tests.twins.lake import MemoryLake
from tests.twins.mirrors import MemoryMirrors
from tests.twins.segments import MemorySegments
from tests.uncompiled import UNCOMPILED

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.lake.both_ways import BothWays


@dataclass(frozen=True, slots=True)
class Lake:
    """One lake's three adapters; `folder` is None in memory. `before`: its mirrors, written without
    a query, for what a test begins with."""

    segments: SegmentStore
    changelog: Changelog
    mirrors: Mirrors
    folder: Path | None
    before: Mirrors


def memory_lake() -> Lake:
    content = MemoryLake()
    mirrors = MemoryMirrors(content)
    return Lake(MemorySegments(content), MemoryChangelog(content), mirrors, None, mirrors)


def disk_lake(folder: Path, spark: Spark, few: Size = FEW, *, in_memory: bool = True) -> Lake:
    return lake_at(folder / "lake", folder / "staging", spark, few, in_memory=in_memory)


def lake_at(
    lake: LakePath,
    staging: Path,
    spark: Spark,
    few: Size = FEW,
    *,
    in_memory: bool = True,
) -> Lake:
    """A lake in a folder or under a prefix."""
    mirrors = SparkMirrors(lake, staging=staging, spark=spark, few_limit=few, in_memory=in_memory)
    before = mirrors if in_memory else SparkMirrors(lake, staging=staging, spark=spark)
    folder = lake if isinstance(lake, Path) else None
    return Lake(ParquetSegments(lake), DeltaChangelog(lake), mirrors, folder, before)


class Compiling(SparkProcess):
    """A Spark whose sessions make Java of their plans, as they do for many rows."""

    def __init__(self, spark: SparkProcess) -> None:
        vars(self).update(vars(spark))
        self._idle: dict[bool, list[SparkSession]] = {False: [], True: []}

    def session(self, settings: Mapping[str, str] = MappingProxyType({})) -> SparkSession:
        made = super().session(settings)
        for name in UNCOMPILED.keys() - settings.keys():
            made.conf.set(name, _COMPILED.get(name, "2"))
        return made

    def idle(self, *, few: bool) -> list[SparkSession]:
        return self._idle[few]


_COMPILED = {"spark.sql.codegen.wholeStage": "true", "spark.sql.codegen.factoryMode": "FALLBACK"}


def lake_of(kind: str, folder: Path, spark: SparkProcess) -> Lake:
    """Empty: in "memory", or on "disk", also with each row written by "queries" of Spark's, or as
    "many" rows are, with queries that are "compiled" or not."""
    if kind == "memory":
        return memory_lake()
    if kind == "many":
        return disk_lake(folder, spark, NO_FEW_ROWS, in_memory=False)
    if kind == "compiled":
        return disk_lake(folder, Compiling(spark), NO_FEW_ROWS, in_memory=False)
    return disk_lake(folder, spark, in_memory=kind == "disk")


@pytest.fixture(params=["memory", "disk"])
def lake(request: pytest.FixtureRequest, tmp_path: Path, spark: SparkProcess) -> Lake:
    """A lake of each kind, empty."""
    return lake_of(request.param, tmp_path, spark)


CONNECT = pytest.param("connect", marks=pytest.mark.soak)
ALIKE = ["memory", "disk", pytest.param("queries", marks=pytest.mark.soak), CONNECT]
"""Kinds of `written_lake` for a fact whose queries of Spark's, which take seconds, are much like
those of another test, or are made of few rows on a disk too."""


@pytest.fixture(params=["memory", "disk", "compiled", CONNECT])
def any_lake(request: pytest.FixtureRequest, tmp_path: Path, spark: SparkProcess) -> Lake:
    """`lake`, and those that Spark writes by queries, which it compiles as it does those of many
    rows; be it a server."""
    if request.param == "connect":
        return disk_lake(tmp_path, request.getfixturevalue("connect"), in_memory=False)
    return lake_of(request.param, tmp_path, spark)


@pytest.fixture(params=["memory", "disk", "queries", CONNECT])
def written_lake(request: pytest.FixtureRequest, tmp_path: Path, spark: SparkProcess) -> Lake:
    """`lake`, and two that Spark writes by queries, where nothing hangs on how it does: one of
    its own, and a server's of rows that were put together here."""
    if request.param == "connect":
        return disk_lake(tmp_path, request.getfixturevalue("connect"))
    return lake_of(request.param, tmp_path, spark)


@pytest.fixture(params=["memory", "disk", "objects"])
def stored_lake(request: pytest.FixtureRequest, tmp_path: Path, spark: SparkProcess) -> Lake:
    """A lake of each kind of storage."""
    if request.param == "objects":
        store: ObjectStore = request.getfixturevalue("object_store")
        return lake_at(store.prefix(), tmp_path / "staging", spark)
    return lake_of(request.param, tmp_path, spark)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of `disk`'s lake."""
    return tmp_path / "lake"


@pytest.fixture
def disk(tmp_path: Path, spark: SparkProcess) -> Lake:
    """A lake on disk, empty."""
    return disk_lake(tmp_path, spark)


@pytest.fixture(scope="session")
def both_ways(tmp_path_factory: pytest.TempPathFactory, spark: SparkProcess) -> BothWays:
    """The mirror that was written both ways; not to be changed."""
    from tests.lake.both_ways import write_both_ways

    return write_both_ways(tmp_path_factory.mktemp("both-ways"), spark)
