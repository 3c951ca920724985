"""The lake: the implementations of its ports, over one folder or prefix of an object
store, and one Spark; and tables that are built beside their final places."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import timedelta
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
from lockstep.resources.lake.store.storage import ignores_case, lake_errors, sync_folder
from lockstep.resources.lake.trial import require_correct_writes


class Lake:
    """A lake in a folder or under a prefix, which need not exist yet. Each attribute
    implements one port. Nothing is started before it is needed.

    `staging`: a local folder for temporary files, such as changes that Spark reads and
    row events that do not fit into memory. `spark_conf`: the `[spark]` table of
    lockstep.toml. `keep`: how long each version of a mirror (the Delta table with a
    table's current rows) stays readable. `on_warning` is called with a sentence for a
    person, by any thread. Raise `ConfigurationError` if `[spark]` has a wrong `remote`
    or `token`.
    """

    def __init__(
        self,
        lake_path: LakePath,
        *,
        staging: str | Path,
        spark_conf: Mapping[str, str],
        on_warning: Callable[[str], None],
        keep: timedelta = DEFAULT_KEEP,
    ) -> None:
        path = lake_path.absolute()
        staging_folder = Path(staging).absolute()
        server = configured_server(spark_conf)
        spark: Spark
        if server is None:
            spark = SparkProcess(
                spark_conf, lake=path, staging=staging_folder, on_warning=on_warning
            )
        else:
            spark = RemoteSpark(server, spark_conf, lake=path, staging=staging_folder)
        self._path = path
        self._staging = staging_folder
        self._spark = spark
        self.segments = ParquetSegments(path, spark=spark)
        self.spool = FileSpool(path, staging_folder / "spool")
        self.changelog = DeltaChangelog(path)
        self.mirrors = SparkMirrors(path, staging=staging_folder, spark=spark, keep=keep)
        self.claims = FileClaims(path)
        self.copies = FolderCopies(path, staging=staging_folder, spark=spark)
        self.upkeep = SparkUpkeep(path, spark=spark, keep=keep)

    def ignores_case(self) -> bool:
        """Return whether the lake's storage takes names that differ only in case for
        the same name."""
        return ignores_case(self._path)

    def catalog(self, name: str) -> SparkCatalog:
        """Return one of Spark's catalogs."""
        return SparkCatalog(self._spark, name)

    def try_spark(self) -> str:
        """Try Spark with a small table (`trial`), and return Spark's name."""
        require_correct_writes(self._spark, self._path, self._staging)
        return self._spark.display_name()

    def start_request_count(self) -> Callable[[], RequestCounts | None]:
        """Begin to count this process's requests to the lake's store. The returned
        function returns their numbers since then, by our client and by Spark's; None
        for a lake in a folder.

        The requests of delta-rs are not counted. In the store's access log, the three
        clients have different user agents (`USER_AGENT`, `DELTA_USER_AGENT`, Hadoop's).
        If a request is repeated because the store was busy or did not answer, our
        client counts it once, but Spark's counts each attempt.
        """
        if not isinstance(self._path, ObjectPath):
            return lambda: None
        own_requests = self._path.bucket.requests
        own_before = own_requests.total
        spark_before = self._spark.request_count()

        def requests_since() -> RequestCounts:
            spark_now = self._spark.request_count()
            by_spark = None
            if spark_now is not None and spark_before is not None:
                by_spark = max(spark_now - spark_before, 0)  # 0 if Spark was stopped meanwhile
            return RequestCounts(own_requests.total - own_before, by_spark)

        return requests_since

    def close(self) -> None:
        """Stop Spark if it was started."""
        self._spark.stop()


_BUILD_FOLDER: Final = ".lockstep-rebuild"
"""Name of the folder, next to a table's final place, in which the table is written."""


class FolderCopies:
    """`pipeline.ports.Copies` in folders of this machine. A Delta table is written next
    to its final place, so that both are in one file system and a rename moves the
    complete table. `lake`: the lake with the files from which a table is built.
    `staging`: the folder for temporary files of writes."""

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
        builds = Staging(build_folder)
        try:
            with builds.new_folder() as folder:
                yield SparkMirrors(
                    Path(folder), input_lake=self._lake, staging=self._staging, spark=self._spark
                )
                with lake_errors(target_path):
                    _require_absent(target_path)
                    (Path(folder) / name).rename(target_path)
                    sync_folder(target_path.parent)
        finally:
            builds.end()
            with suppress(OSError):
                build_folder.rmdir()


def _require_absent(path: Path) -> None:
    """Raise `ConfigurationError` if the path exists, except as an empty folder, which a
    rename replaces."""
    is_empty_folder = path.is_dir() and not any(path.iterdir())
    if path.exists() and not is_empty_folder:
        raise ConfigurationError(
            f"{path} exists already", hint="name another folder with `--into`, or remove it"
        )
