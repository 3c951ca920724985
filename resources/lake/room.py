"""The way into the lake: opens its three adapters over one folder and one Spark."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from resources.lake.changelog import DeltaChangelog
from resources.lake.mirror import SparkMirrors
from resources.lake.segments import ParquetSegments
from resources.lake.session import SparkProcess
from resources.lake.settings import refuse_cluster


@dataclass(frozen=True, slots=True)
class LakeRoom:
    """An open lake; `close` ends Spark if it was started."""

    segments: ParquetSegments
    changelog: DeltaChangelog
    mirrors: SparkMirrors
    close: Callable[[], None]


def open_lake(
    lake_path: Path,
    *,
    staging: str | Path,
    spark_conf: Mapping[str, str],
    on_warning: Callable[[str], None],
) -> LakeRoom:
    """Open the lake in a folder, which need not exist yet; starts nothing.

    `staging` is a folder for folded changes, `spark_conf` the `[spark]` table.
    `on_warning` takes a sentence a person should see; it may be called from a thread.
    `ConfigurationError` for a Spark master that could not see the folder.
    """
    lake = lake_path.absolute()
    refuse_cluster(spark_conf, lake)
    spark = SparkProcess(spark_conf, on_warning=on_warning)
    return LakeRoom(
        segments=ParquetSegments(lake),
        changelog=DeltaChangelog(lake),
        mirrors=SparkMirrors(lake, staging=Path(staging).absolute(), spark=spark),
        close=spark.stop,
    )
