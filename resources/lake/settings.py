"""What Spark is started with: our defaults, the user's `[spark]` table, and the merge of
both. Pure; the process that uses it is `session`.

The comments' figures were measured on two cores.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from resources.lake import log_store

_GIB = 1024**3

SECOND_COMPILER_PAYS = 256 * 1024**2
"""Bytes of log from which on Java's second compiler makes a run faster (benchmarks/README.md)."""

EXTENSION = "io.delta.sql.DeltaSparkSessionExtension"

JOINED = {
    "spark.driver.extraClassPath": ":",
    "spark.driver.extraJavaOptions": " ",
    "spark.jars": ",",
    "spark.sql.extensions": ",",
}
"""Keys where the user's value is added to ours: without ours there is no Delta."""

_ONE_PROCESS = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    # It listens for tasks that it would have elsewhere, and what comes there is deserialized: any
    # account of the machine could run code as this one. The secret is made by Spark itself, and
    # known in its process alone.
    "spark.authenticate": "true",
    # Hadoop's own class starts a command for each file that it makes (`LocalFiles.java`).
    "spark.hadoop.fs.file.impl": "lockstep.delta.LocalFiles",
    "spark.hadoop.fs.AbstractFileSystem.file.impl": "lockstep.delta.LocalFiles$Context",
}

_LAUNCH = ("spark.master", "spark.driver.", "spark.jars")
"""Keys the launcher must see before there is a Java process. All others are handed over
inside it: a command line is visible to every user of the machine."""


@dataclass(frozen=True, slots=True)
class SparkSettings:
    """Everything a Spark process needs to know.

    `user` is the `[spark]` table. `class_path` are Delta's jars and ours, `archive` the class-data
    archive if there is one, `behind` jars behind all others: the archive holds for a class path
    that begins as its own did. `scratch` is a folder that this process alone uses and that
    goes away with it; `store` what Hadoop is told of the lake's object store. `log_bytes`: from how
    much of the log it will write, as far as that is known.
    """

    user: Mapping[str, str]
    class_path: Sequence[Path]
    archive: Path | None
    log4j: Path
    scratch: Path
    cores: int
    memory: int
    store: Mapping[str, str] = field(default_factory=dict, repr=False)
    behind: Sequence[Path] = ()
    log_bytes: int = 0

    def all(self) -> dict[str, str]:
        """Spark's configuration, complete."""
        merged = self._defaults() | dict(self.user)
        for key, separator in JOINED.items():
            if key in self.user and self._defaults().get(key):
                merged[key] = f"{self._defaults()[key]}{separator}{self.user[key]}"
        return merged

    def launch(self) -> dict[str, str]:
        """The part of `all` that goes on the command line."""
        return {key: value for key, value in self.all().items() if key.startswith(_LAUNCH)}

    def _defaults(self) -> dict[str, str]:
        jars = (*self.class_path, *self.behind)
        return {
            # Executors fetch the jars of the driver, which listens where they reach it.
            **(_ONE_PROCESS if is_local(self.user) else {"spark.jars": _uris(jars)}),
            "spark.app.name": "lockstep",
            "spark.master": "local[*]",
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            "spark.driver.memory": f"{driver_memory(self.memory) // 1024**2}m",
            "spark.driver.extraClassPath": ":".join(str(path) for path in self.class_path),
            "spark.driver.extraJavaOptions": self._java_options(),
            "spark.local.dir": str(self.scratch / "local"),
            "spark.sql.warehouse.dir": str(self.scratch / "warehouse"),
            "spark.sql.artifact.isolation.enabled": "false",
            "spark.sql.catalogImplementation": "in-memory",
            "spark.sql.extensions": EXTENSION,
            "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
            **log_store.SETTINGS,
            **self.store,
            "spark.sql.session.timeZone": "UTC",
            "spark.sql.shuffle.partitions": str(self.cores),
            "spark.sql.sources.parallelPartitionDiscovery.parallelism": str(self.cores),
            "spark.databricks.delta.snapshotPartitions": str(self.cores),
            # Plans of ours are small and their sizes known: planning again between stages
            # costs more than it gains (0.2 s of processor time for each small table).
            "spark.sql.adaptive.enabled": "false",
            # Each query's plan in words, for a page that is not served.
            "spark.sql.ui.explainMode": "simple",
            # Staged Parquet is never changed while it is read, so reading it twice is safe
            # and cheaper than copying it first.
            "spark.databricks.delta.merge.materializeSource": "none",
        }

    def _java_options(self) -> str:
        # Most runs end before Java's second compiler has paid for itself. Without it, start
        # and the first two writes take 8.4 s of processor time instead of 17. A user who adds
        # -XX:TieredStopAtLevel has the last word. A server of few changes a minute has spent
        # more on the second compiler after sixty runs than it has saved.
        options = [
            f"-XX:TieredStopAtLevel={4 if self.log_bytes >= SECOND_COMPILER_PAYS else 1}",
            # With one compiler Java keeps room for 48 MB of its code. Writes to many tables make
            # more, which it throws away and makes again: a quarter of all that they take.
            "-XX:ReservedCodeCacheSize=240m",
            "-XX:+UseParallelGC",
            # Else the collector gives room to new objects as long as the heap has some: 2.7 GB
            # resident over a hundred small tables instead of 1.1, in the same time.
            "-XX:MaxNewSize=400m",
            # In another zone Delta puts each log together again to check its checksum file.
            "-Duser.timezone=UTC",
            f'"-Dlog4j2.configurationFile={self.log4j.as_uri()}"',
            f'"-Djava.io.tmpdir={self.scratch}"',
        ]
        if self.archive is not None:
            # An archive that does not fit this Java is passed over; -Xlog:disable keeps
            # Java from saying so.
            options += [f'"-XX:SharedArchiveFile={self.archive}"', "-Xlog:disable"]
        return " ".join(options)


def _uris(paths: Sequence[Path]) -> str:
    return ",".join(path.as_uri() for path in paths)


def driver_memory(machine: int) -> int:
    """Bytes of heap: a quarter of the machine's memory, from 1 GiB to 8 GiB."""
    return max(_GIB, min(8 * _GIB, machine // 4))


def is_local(user: Mapping[str, str]) -> bool:
    """Whether all of Spark's tasks are in its own Java process; `user` is the `[spark]` table."""
    master = user.get("spark.master", "local")
    return master == "local" or master.startswith("local[")


def where_to_look(user: Mapping[str, str]) -> str:
    """The cure where Spark does not start: a cluster's executors say why in its own logs."""
    if is_local(user):
        return "see the [spark] table of lockstep.toml and the memory that is free, then run again"
    return (
        f"see what the cluster at {user['spark.master']} says of its executors, and the [spark] "
        "table of lockstep.toml (docs/deploy.md#where-spark-runs); then run again"
    )
