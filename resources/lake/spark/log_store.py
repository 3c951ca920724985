"""Our Delta log stores: Java classes through which Delta writes its commit files. They
refuse a commit that was planned on another version (`delta.pin`). Their jar is in this
package; `tests/lake/build_log_store.py` builds it.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from lockstep.pipeline.values.errors import LakeUnavailable, SetupIncomplete
from lockstep.resources.lake.spark.java_classes import (
    hadoop_path,
    java_of,
    java_session,
    scala_object,
)
from lockstep.resources.lake.store.paths import LakePath, ObjectPath

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CLASS: Final = "lockstep.delta.PinnedLogStore"
OBJECTS: Final = "lockstep.delta.ObjectLogStore"
SETTING: Final = "spark.delta.logStore.file.impl"
SETTINGS: Final = {
    SETTING: CLASS,
    **{f"spark.delta.logStore.{scheme}.impl": OBJECTS for scheme in ("s3", "s3a", "gs", "abfss")},
}
JAR: Final = Path(__file__).with_name("lockstep-log-store.jar")


def log_store_jar() -> Path:
    """Return the jar's path. Raise `SetupIncomplete` if the package lacks the jar."""
    if not JAR.is_file():
        raise SetupIncomplete(
            f"{JAR.name} is missing from the package", hint="install Lockstep again"
        )
    return JAR


def require_log_store(session: SparkSession, lake: LakePath | None = None) -> None:
    """Raise `LakeUnavailable` unless Delta writes logs with our classes, on this
    machine and in the lake. Any other class would commit a late write as the next free
    version."""
    _require(session, "/", CLASS)
    if isinstance(lake, ObjectPath):
        _require(session, f"{lake.bucket.url}/", OBJECTS)


def _require(session: SparkSession, root: str, wanted: str) -> None:
    """Raise `LakeUnavailable` unless `wanted` is the class of Delta's log store below
    `root`."""
    stores = scala_object(java_of(session), "org.apache.spark.sql.delta.storage.LogStore")
    store = stores.apply(java_session(session))
    path, system = hadoop_path(session, root)
    chosen = store.getDelegate(system.makeQualified(path))
    implementation = chosen.logStoreImpl() if hasattr(chosen, "logStoreImpl") else chosen
    name = str(implementation.getClass().getName())
    if name != wanted:
        raise LakeUnavailable(
            f"Spark would write the tables' logs with {name}, which does not stop a late run from "
            "committing",
            hint="remove all settings of log stores and file systems from [spark] in "
            "lockstep.toml, then run again",
        )
