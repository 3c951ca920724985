"""Lakes to test on: one in memory, one on disk, on one Spark."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from pipeline.changes.strategy import FEW, NOTHING, Size
from pipeline.ports.changelog import Changelog
from pipeline.ports.mirrors import Mirrors
from pipeline.ports.segments import SegmentStore
from resources.lake.changelog import DeltaChangelog
from resources.lake.mirror import SparkMirrors
from resources.lake.segments import ParquetSegments
from resources.lake.session import SparkProcess
from resources.memory.lake import MemoryChangelog, MemoryLake, MemoryMirrors, MemorySegments


@dataclass(frozen=True, slots=True)
class Lake:
    """One lake's three adapters; `folder` is None in memory."""

    segments: SegmentStore
    changelog: Changelog
    mirrors: Mirrors
    folder: Path | None


def memory_lake() -> Lake:
    content = MemoryLake()
    return Lake(MemorySegments(content), MemoryChangelog(content), MemoryMirrors(content), None)


def disk_lake(folder: Path, spark: SparkProcess, few: Size = FEW) -> Lake:
    lake = folder / "lake"
    mirrors = SparkMirrors(lake, staging=folder / "staging", spark=spark, few=few)
    return Lake(ParquetSegments(lake), DeltaChangelog(lake), mirrors, lake)


@pytest.fixture(params=["memory", "disk"])
def lake(request: pytest.FixtureRequest, tmp_path: Path, spark: SparkProcess) -> Lake:
    """A lake of each kind, empty."""
    return memory_lake() if request.param == "memory" else disk_lake(tmp_path, spark)


@pytest.fixture(params=["memory", "disk", "compiled"])
def any_lake(request: pytest.FixtureRequest, tmp_path: Path, spark: SparkProcess) -> Lake:
    """`lake`, and one whose Spark compiles its plans, as it does for many rows."""
    if request.param == "memory":
        return memory_lake()
    return disk_lake(tmp_path, spark, NOTHING if request.param == "compiled" else FEW)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of `disk`'s lake."""
    return tmp_path / "lake"


@pytest.fixture
def disk(tmp_path: Path, spark: SparkProcess) -> Lake:
    """A lake on disk, empty."""
    return disk_lake(tmp_path, spark)
