"""The opening of the lake: all implementations of its ports, over one folder or prefix
of an object store, and one Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Final

from lockstep.pipeline.model.batch import RequestCounts
from lockstep.pipeline.values.errors import ConfigurationError
from lockstep.pipeline.values.retention import DEFAULT_KEEP
from lockstep.resources.lake.changelog.changelog import DeltaChangelog
from lockstep.resources.lake.changelog.claims import FileClaims
from lockstep.resources.lake.changelog.segments import ParquetSegments
from lockstep.resources.lake.changelog.spool import FileSpool
from lockstep.resources.lake.mirror.mirror import SparkMirrors
from lockstep.resources.lake.mirror.upkeep import SparkUpkeep
from lockstep.resources.lake.spark.remote import RemoteSpark, configured_server
from lockstep.resources.lake.spark.session import SparkProcess
from lockstep.resources.lake.spark.spark import Spark
from lockstep.resources.lake.spark_catalog import SparkCatalog
from lockstep.resources.lake.store.paths import LakePath, ObjectPath
from lockstep.resources.lake.store.staging import Staging
from lockstep.resources.lake.store.storage import lake_errors, sync_folder
from lockstep.resources.lake.trial import require_correct_writes

_BUILD_FOLDER: Final = ".lockstep-rebuild"
"""Name of the folder, next to a table's final place, in which the table is written."""


class FolderCopies:
    """`pipeline.ports.Copies` in folders of this machine. A Delta table is written next
    to its final place, which must be in the same file system, because a rename moves it
    there when it is complete. `lake`: the lake with the files from which a table is
    built. `staging`: the folder for temporary files of writes."""

    def __init__(self, lake: LakePath, *, staging: Path, spark: Spark) -> None:
        self._lake = lake
        self._staging = staging
        self._spark = spark

    @contextmanager
    def build(self, name: str, target: str) -> Iterator[SparkMirrors]:
        target_path = Path(target)
        build_folder = target_path.parent / _BUILD_FOLDER
        with lake_errors(target_path):
            _require_absent(target_path)
            target_path.parent.mkdir(parents=True, exist_ok=True)
        staging = Staging(build_folder)
        try:
            with staging.new_folder() as folder:
                yield SparkMirrors(
                    Path(folder), input_lake=self._lake, staging=self._staging, spark=self._spark
                )
                with lake_errors(target_path):
                    _require_absent(target_path)
                    (Path(folder) / name).rename(target_path)
                    sync_folder(target_path.parent)
        finally:
            staging.end()
            with suppress(OSError):
                build_folder.rmdir()


def _require_absent(path: Path) -> None:
    if path.exists() and not (path.is_dir() and not any(path.iterdir())):
        raise ConfigurationError(
            f"{path} exists already", hint="name another place with `--into`, or remove it"
        )


@dataclass(frozen=True, slots=True)
class OpenLake:
    """An open lake.

    `start_request_count` returns a function that returns the number of requests to the
    object store since that call. `catalog` returns one of Spark's catalogs, by its name
    and a function from a lake path to its URL. `try_spark` tries Spark with a small
    table and returns Spark's name (`trial`). `close` ends Spark if it was started.
    """

    segments: ParquetSegments
    spool: FileSpool
    changelog: DeltaChangelog
    mirrors: SparkMirrors
    claims: FileClaims
    copies: FolderCopies
    upkeep: SparkUpkeep
    start_request_count: Callable[[], Callable[[], RequestCounts | None]]
    catalog: Callable[[str, Callable[[str], str]], SparkCatalog]
    try_spark: Callable[[], str]
    close: Callable[[], None]


def open_lake(
    lake_path: LakePath,
    *,
    staging: str | Path,
    spark_conf: Mapping[str, str],
    on_warning: Callable[[str], None],
    keep: timedelta = DEFAULT_KEEP,
) -> OpenLake:
    """Open the lake in a folder or under a prefix, which need not exist yet; nothing is
    started.

    `staging`: a local folder for temporary files, such as changes that Spark reads and
    row events that do not fit into memory. `spark_conf`: the `[spark]` table of
    lockstep.toml. `keep`: how long each version of a mirror (the Delta table with a
    table's present rows) stays readable. `on_warning` is called with a sentence for a
    person, by any thread. Raise `ConfigurationError` if `[spark]` has a wrong `remote`
    or `token`.
    """
    lake = lake_path.absolute()
    staging_folder = Path(staging).absolute()
    server = configured_server(spark_conf)
    spark: Spark
    if server is None:
        spark = SparkProcess(spark_conf, lake=lake, staging=staging_folder, on_warning=on_warning)
    else:
        spark = RemoteSpark(server, spark_conf, lake=lake, staging=staging_folder)

    def try_spark() -> str:
        require_correct_writes(spark, lake, staging_folder)
        return spark.display_name()

    return OpenLake(
        segments=ParquetSegments(lake, spark=spark),
        spool=FileSpool(lake, staging_folder / "spool"),
        changelog=DeltaChangelog(lake),
        mirrors=SparkMirrors(lake, staging=staging_folder, spark=spark, keep=keep),
        claims=FileClaims(lake),
        copies=FolderCopies(lake, staging=staging_folder, spark=spark),
        upkeep=SparkUpkeep(lake, spark=spark, keep=keep),
        start_request_count=lambda: _start_request_count(lake, spark),
        catalog=partial(SparkCatalog, spark),
        try_spark=try_spark,
        close=spark.stop,
    )


def _start_request_count(lake: LakePath, spark: Spark) -> Callable[[], RequestCounts | None]:
    """Return a function that returns the number of requests that this process has sent
    to the lake's store since now, by our client and by Spark's; None for a lake in a
    folder.

    delta-rs, the third client, does not count its requests. In the store's access log,
    the clients have different user agents (`USER_AGENT`, `DELTA_USER_AGENT`, Hadoop's).
    If a request is repeated because the store was busy or did not answer, our client
    counts it once, but Spark's counts each attempt.
    """
    if not isinstance(lake, ObjectPath):
        return lambda: None
    count = lake.bucket.count
    before, spark_before = count.total, spark.request_count()

    def requests_since() -> RequestCounts:
        spark_now = spark.request_count()
        by_spark = None
        if spark_now is not None and spark_before is not None:
            by_spark = max(spark_now - spark_before, 0)
        return RequestCounts(count.total - before, by_spark)

    return requests_since
