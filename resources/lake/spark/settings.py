"""Spark's configuration, which consists of our defaults, settings for the lake's object
store, and the user's `[spark]` table. Pure.

The figures in comments were measured on two cores.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from lockstep.resources.lake.spark.log_store import LOG_STORE_SETTINGS
from lockstep.resources.lake.store.paths import S3_SCHEMES, LakePath, ObjectPath

_GIB = 1024**3

SECOND_COMPILER_BYTES = 256 * 1024**2
"""Smallest size in bytes of the binary log of a run at which Java's second compiler
(C2) makes the run faster (benchmarks/README.md)."""

DELTA_EXTENSION = "io.delta.sql.DeltaSparkSessionExtension"

JOINED_KEYS = {
    "spark.driver.extraClassPath": ":",
    "spark.driver.extraJavaOptions": " ",
    "spark.jars": ",",
    "spark.sql.extensions": ",",
}
"""Keys whose value is ours followed by the user's, and the separator between them. A
user's value does not replace ours, because Delta needs it."""

_LOCAL_SETTINGS = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    # Spark listens for executors and deserializes what it receives, so any account of
    # the machine could run code as this one. With this, Spark requires a secret that
    # only its process has.
    "spark.authenticate": "true",
    # Hadoop's own class starts a command for each file that it creates
    # (`LocalFiles.java`).
    "spark.hadoop.fs.file.impl": "lockstep.delta.LocalFiles",
    "spark.hadoop.fs.AbstractFileSystem.file.impl": "lockstep.delta.LocalFiles$Context",
}

_COMMAND_LINE_KEYS = ("spark.master", "spark.driver.", "spark.jars")
"""Beginnings of the keys that Java needs on its command line. Every account of the
machine can see a command line, so all other settings are passed to the running
process."""


@dataclass(frozen=True, slots=True)
class SparkSettings:
    """Everything that determines the configuration of a Spark process.

    `user_settings`: the `[spark]` table. `class_path`: Delta's jars and ours.
    `last_jars`: jars at the end of the class path. `archive`: a class-data archive,
    which is valid only for class paths that begin with the one it was made for.
    `log4j`: the file with the settings of logging. `scratch`: a folder that is removed
    when this process ends. `cores`: number of the machine's cores. `heap_bytes`: the
    heap size unless the user sets it. `hadoop_settings`: Hadoop's settings for the
    lake's object store. `log_bytes`: how much of the binary log this process will write
    to the lake, as far as it is known.
    """

    user_settings: Mapping[str, str]
    class_path: Sequence[Path]
    archive: Path | None
    log4j: Path
    scratch: Path
    cores: int
    heap_bytes: int
    hadoop_settings: Mapping[str, str] = field(default_factory=dict, repr=False)
    last_jars: Sequence[Path] = ()
    log_bytes: int = 0

    def configuration(self) -> dict[str, str]:
        """Return Spark's complete configuration."""
        defaults = self._defaults()
        joined_settings = {
            key: f"{defaults[key]}{separator}{self.user_settings[key]}"
            for key, separator in JOINED_KEYS.items()
            if key in self.user_settings and defaults.get(key)
        }
        return {**defaults, **self.user_settings, **joined_settings}

    def command_line_settings(self) -> dict[str, str]:
        """Return the settings of `configuration` that are on Java's command line."""
        return {
            key: value
            for key, value in self.configuration().items()
            if key.startswith(_COMMAND_LINE_KEYS)
        }

    def _defaults(self) -> dict[str, str]:
        jars = ",".join(path.as_uri() for path in (*self.class_path, *self.last_jars))
        # Executors on other machines fetch the jars from the driver.
        task_settings = (
            _LOCAL_SETTINGS if has_local_tasks(self.user_settings) else {"spark.jars": jars}
        )
        return {
            **task_settings,
            "spark.app.name": "lockstep",
            "spark.master": "local[*]",
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            "spark.driver.memory": f"{self.heap_bytes // 1024**2}m",
            "spark.driver.extraClassPath": ":".join(str(path) for path in self.class_path),
            "spark.driver.extraJavaOptions": self._java_options(),
            "spark.local.dir": str(self.scratch / "local"),
            "spark.sql.warehouse.dir": str(self.scratch / "warehouse"),
            "spark.sql.artifact.isolation.enabled": "false",
            "spark.sql.catalogImplementation": "in-memory",
            "spark.sql.extensions": DELTA_EXTENSION,
            "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
            **LOG_STORE_SETTINGS,
            **self.hadoop_settings,
            "spark.sql.session.timeZone": "UTC",
            "spark.sql.shuffle.partitions": str(self.cores),
            "spark.sql.sources.parallelPartitionDiscovery.parallelism": str(self.cores),
            "spark.databricks.delta.snapshotPartitions": str(self.cores),
            # Our plans are small and their sizes known, so planning again between
            # stages costs more than it gains (0.2 s of processor time for each small
            # table).
            "spark.sql.adaptive.enabled": "false",
            # The plan of each query is formatted for the web UI, which is off.
            "spark.sql.ui.explainMode": "simple",
            # Staged Parquet does not change while it is read, so reading it twice is
            # safe, and cheaper than copying it first.
            "spark.databricks.delta.merge.materializeSource": "none",
        }

    def _java_options(self) -> str:
        # Most runs end before Java's second compiler (C2) has saved as much time as it
        # took. Without it, the start and the first two writes take 8.4 s of processor
        # time instead of 17. Even a Spark server that gets a few changes a minute has
        # not regained that time after sixty runs. A user's -XX:TieredStopAtLevel comes
        # later and wins.
        options = [
            f"-XX:TieredStopAtLevel={4 if self.log_bytes >= SECOND_COMPILER_BYTES else 1}",
            # With one compiler, Java's code cache has 48 MB. Writes to many tables need
            # more: Java would discard code and compile it again, which took a quarter
            # of the processor time.
            "-XX:ReservedCodeCacheSize=240m",
            "-XX:+UseParallelGC",
            # Without a limit the young generation grows as long as the heap has room:
            # after writes to a hundred small tables, 2.7 GB are resident without the
            # limit, and 1.1 GB with it. The time is the same.
            "-XX:MaxNewSize=400m",
            # In another zone Delta reads each log again to validate its checksum file.
            "-Duser.timezone=UTC",
            f'"-Dlog4j2.configurationFile={self.log4j.as_uri()}"',
            f'"-Djava.io.tmpdir={self.scratch}"',
        ]
        if self.archive is not None:
            # Java ignores an archive that is not valid for it, silently with
            # -Xlog:disable.
            options += [f'"-XX:SharedArchiveFile={self.archive}"', "-Xlog:disable"]
        return " ".join(options)


def driver_memory(machine_bytes: int, limits: Iterable[int] = ()) -> int:
    """Return the heap size in bytes: a quarter of the machine's memory, but from 1 GiB
    to 8 GiB. It is at most half of each limit of this process's memory, because Java
    and Python need as much beside the heap. It is at least half a GiB, because Spark
    does not start with less."""
    heap_bytes = max(_GIB, min(8 * _GIB, machine_bytes // 4))
    return max(_GIB // 2, min([heap_bytes, *(limit // 2 for limit in limits)]))


def has_local_tasks(user_settings: Mapping[str, str]) -> bool:
    """Return whether Spark runs all tasks in its own Java process; `user_settings` is
    the `[spark]` table."""
    master = user_settings.get("spark.master", "local")
    return master == "local" or master.startswith("local[")


# -- object stores ---------------------------------------------------------------------

HADOOP_VERSION: Final = "3.5.0"
"""The version of Hadoop in pyspark, and of S3A in jars-s3.lock."""

S3A_NAMES: Final = {
    "endpoint": "endpoint",
    "region": "endpoint.region",
    "access_key_id": "access.key",
    "secret_access_key": "secret.key",
    "session_token": "session.token",
}
"""Options under [lake.options] → Hadoop's names for them, below `fs.s3a.`."""
_MOST_RETRIES_IF_BUSY: Final = 8
"""How often S3A asks a busy store again. Each pause is twice as long as the one before;
by S3A's default of 20, the last one alone takes 14 hours."""
_S3A_PACKAGE: Final = "org.apache.hadoop.fs.s3a"


def store_settings(lake: LakePath | None) -> dict[str, str]:
    """Return Hadoop's settings for the lake's object store, made from the lake's
    options; empty for a lake in a folder or in a store without S3's protocol.

    The connectors of other stores (`paths.LAKE_SCHEMES`) are not set up: their jars and
    their settings must be added to `[spark]`.
    """
    if not isinstance(lake, ObjectPath) or not lake.has_s3_protocol:
        return {}
    options = lake.bucket.options
    is_virtual_hosted = options.get("virtual_hosted_style_request") == "true"
    is_unencrypted = options.get("endpoint", "").startswith("http:")
    provider = _credentials_provider(options)
    settings = {S3A_NAMES[name]: value for name, value in options.items() if name in S3A_NAMES}
    settings["retry.throttle.limit"] = str(_MOST_RETRIES_IF_BUSY)
    settings["path.style.access"] = "false" if is_virtual_hosted else "true"
    settings["connection.ssl.enabled"] = "false" if is_unencrypted else "true"
    if provider is not None:
        settings["aws.credentials.provider"] = f"{_S3A_PACKAGE}.{provider}"
    return {
        **{
            f"spark.hadoop.fs.{scheme}.impl": f"{_S3A_PACKAGE}.S3AFileSystem"
            for scheme in S3_SCHEMES
        },
        **{f"spark.hadoop.fs.s3a.{name}": value for name, value in settings.items()},
    }


def _credentials_provider(options: Mapping[str, str]) -> str | None:
    """Return S3A's class that provides credentials; None if S3A should look for
    credentials in the environment."""
    if options.get("skip_signature") == "true":
        return "AnonymousAWSCredentialsProvider"
    if "session_token" in options:
        return "TemporaryAWSCredentialsProvider"
    if "access_key_id" in options:
        return "SimpleAWSCredentialsProvider"
    return None
