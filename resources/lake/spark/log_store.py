"""Our Delta log stores: Java classes through which Delta writes its commit files. They
refuse a commit that was planned on another version (`delta.pin`). Their jar is in this
package; `tests/lake/build_log_store.py` builds it.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from lockstep.pipeline.values.errors import LakeUnavailable, SetupIncomplete
from lockstep.resources.lake.spark.java_classes import (
    java_session,
    jvm_of,
    path_and_file_system,
    scala_object,
)
from lockstep.resources.lake.store.paths import HADOOP_SCHEMES, LakePath, ObjectPath

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FILE_LOG_STORE: Final = "lockstep.delta.PinnedLogStore"
_OBJECT_LOG_STORE: Final = "lockstep.delta.ObjectLogStore"
FILE_LOG_STORE_SETTING: Final = "spark.delta.logStore.file.impl"
LOG_STORE_SETTINGS: Final = {
    FILE_LOG_STORE_SETTING: FILE_LOG_STORE,
    **{f"spark.delta.logStore.{scheme}.impl": _OBJECT_LOG_STORE for scheme in HADOOP_SCHEMES},
}
LOG_STORE_JAR: Final = Path(__file__).with_name("lockstep-log-store.jar")


def log_store_jar() -> Path:
    """Return the jar's path. Raise `SetupIncomplete` if the package lacks the jar."""
    if not LOG_STORE_JAR.is_file():
        raise SetupIncomplete(
            f"{LOG_STORE_JAR.name} is missing from the package", hint="install Lockstep again"
        )
    return LOG_STORE_JAR


def require_log_store(session: SparkSession, lake: LakePath | None = None) -> None:
    """Raise `LakeUnavailable` unless Delta writes logs with our classes, on this
    machine and in the lake. Any other class would commit a late write as the next free
    version."""
    _require_class(session, "/", FILE_LOG_STORE)
    if isinstance(lake, ObjectPath):
        _require_class(session, f"{lake.bucket.url}/", _OBJECT_LOG_STORE)


def _require_class(session: SparkSession, root: str, class_name: str) -> None:
    """Raise `LakeUnavailable` unless `class_name` is the class of Delta's log store
    below `root`."""
    log_stores = scala_object(jvm_of(session), "org.apache.spark.sql.delta.storage.LogStore")
    log_store = log_stores.apply(java_session(session))
    path, file_system = path_and_file_system(session, root)
    implementation = log_store.getDelegate(file_system.makeQualified(path)).logStoreImpl()
    name = str(implementation.getClass().getName())
    if name != class_name:
        raise LakeUnavailable(
            f"Spark would write the tables' logs with {name}, which does not stop a late run from "
            "committing",
            hint="remove all settings of log stores and file systems from [spark] in "
            "lockstep.toml, then run again",
        )
