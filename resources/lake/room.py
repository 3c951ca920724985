"""Opening the lake: all its adapters, over one folder or prefix and one Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Final

from lockstep.pipeline.model.batch import Requests
from lockstep.pipeline.values.errors import ConfigurationError
from lockstep.pipeline.values.policies import KEEP
from lockstep.resources.lake.changelog.changelog import DeltaChangelog
from lockstep.resources.lake.changelog.claims import FileClaims
from lockstep.resources.lake.changelog.segments import ParquetSegments
from lockstep.resources.lake.changelog.spool import FileSpool
from lockstep.resources.lake.mirror.mirror import SparkMirrors
from lockstep.resources.lake.mirror.upkeep import SparkUpkeep
from lockstep.resources.lake.spark.remote import RemoteSpark, server_of
from lockstep.resources.lake.spark.session import SparkProcess
from lockstep.resources.lake.spark.spark import Spark
from lockstep.resources.lake.spark_catalog import SparkCatalog
from lockstep.resources.lake.store.paths import LakePath, ObjectPath
from lockstep.resources.lake.store.staging import Staging
from lockstep.resources.lake.store.storage import lake_errors, sync_folder
from lockstep.resources.lake.trial import require_kept

_ASIDE: Final = ".lockstep-rebuild"
"""Folder next to the final place of tables, in which they are written."""


class FolderCopies:
    """`pipeline.ports.Copies` on folders of this machine: a Delta table is written next to its
    final place, so that a rename brings it there. `staging`: the folder in which writes are
    staged."""

    def __init__(self, lake: LakePath, *, staging: Path, spark: Spark) -> None:
        self._lake = lake
        self._staging = staging
        self._spark = spark

    @contextmanager
    def begun(self, name: str, into: str) -> Iterator[SparkMirrors]:
        place = Path(into)
        beside = place.parent / _ASIDE
        with lake_errors(place):
            _require_free(place)
            place.parent.mkdir(parents=True, exist_ok=True)
        staging = Staging(beside)
        try:
            with staging.folder() as folder:
                yield SparkMirrors(
                    Path(folder), files=self._lake, staging=self._staging, spark=self._spark
                )
                with lake_errors(place):
                    _require_free(place)
                    (Path(folder) / name).rename(place)
                    sync_folder(place.parent)
        finally:
            staging.end()
            with suppress(OSError):
                beside.rmdir()


def _require_free(place: Path) -> None:
    if place.exists() and not (place.is_dir() and not any(place.iterdir())):
        raise ConfigurationError(
            f"{place} exists already", hint="name another place with `--into`, or remove it"
        )


@dataclass(frozen=True, slots=True)
class LakeRoom:
    """An open lake.

    `requests_since_now` begins to count the requests to its store; `prove` tries its Spark with a
    small table and returns Spark's name (`trial`); `catalog` gives one of Spark's catalogs by name;
    `close` ends Spark if it was started.
    """

    segments: ParquetSegments
    spool: FileSpool
    changelog: DeltaChangelog
    mirrors: SparkMirrors
    claims: FileClaims
    copies: FolderCopies
    upkeep: SparkUpkeep
    requests_since_now: Callable[[], Callable[[], Requests | None]]
    catalog: Callable[[str, Callable[[str], str]], SparkCatalog]
    prove: Callable[[], str]
    close: Callable[[], None]


def open_lake(
    lake_path: LakePath,
    *,
    staging: str | Path,
    spark_conf: Mapping[str, str],
    on_warning: Callable[[str], None],
    keep: timedelta = KEEP,
) -> LakeRoom:
    """Open the lake in a folder or under a prefix, which need not exist yet; nothing is started.

    `staging` is a folder for what need not survive the machine: folded changes, and row events of
    transactions larger than memory. `spark_conf` is the `[spark]` table. `keep` is how long each
    version of a mirror stays readable. `on_warning` takes a sentence for a person; any thread can
    call it. `ConfigurationError` for a `[spark]` table with a wrong `remote`.
    """
    lake = lake_path.absolute()
    staged = Path(staging).absolute()
    server = server_of(spark_conf)
    spark: Spark
    if server is None:
        spark = SparkProcess(spark_conf, lake=lake, staging=staged, on_warning=on_warning)
    else:
        spark = RemoteSpark(server, spark_conf, lake=lake, staging=staged)

    def prove() -> str:
        require_kept(spark, lake, staged)
        return spark.named()

    return LakeRoom(
        segments=ParquetSegments(lake, spark=spark),
        spool=FileSpool(lake, staged / "spool"),
        changelog=DeltaChangelog(lake),
        mirrors=SparkMirrors(lake, staging=staged, spark=spark, keep=keep),
        claims=FileClaims(lake),
        copies=FolderCopies(lake, staging=staged, spark=spark),
        upkeep=SparkUpkeep(lake, spark=spark, keep=keep),
        requests_since_now=lambda: _requests_since_now(lake, spark),
        catalog=partial(SparkCatalog, spark),
        prove=prove,
        close=spark.stop,
    )


def _requests_since_now(lake: LakePath, spark: Spark) -> Callable[[], Requests | None]:
    """Return a function that returns the requests of this process to the lake's store since now, by
    our client and by Spark's; None for a lake in a folder.

    delta-rs, the third client, does not count its requests. Each client has a user agent of its own
    (`AGENT`, `DELTA_AGENT`, Hadoop's), by which the store's access log distinguishes them. Requests
    repeated because the store was busy or did not answer are counted by Spark's client only.
    """
    if not isinstance(lake, ObjectPath):
        return lambda: None
    count, own, java = lake.bucket.count, lake.bucket.count.made, spark.requests()

    def since() -> Requests:
        now = spark.requests()
        by_spark = None if now is None or java is None else max(now - java, 0)
        return Requests(count.made - own, by_spark)

    return since
