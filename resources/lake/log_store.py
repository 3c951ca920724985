"""The log store: the one class of Java in the product, in a jar that is part of the package.

Belongs here: where the jar is, and that Delta uses what is in it. Does not: making it
(`build_log_store`), what it does (`PinnedLogStore.java`), nor at which version a commit is to be
made (`pin`).
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from pipeline.errors import LakeUnavailable, SetupIncomplete

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CLASS: Final = "lockstep.delta.PinnedLogStore"
SETTING: Final = "spark.delta.logStore.file.impl"
JAR: Final = Path(__file__).with_name("lockstep-log-store.jar")


def log_store_jar() -> Path:
    """The jar; `SetupIncomplete` where the package came without it."""
    if not JAR.is_file():
        raise SetupIncomplete(
            f"{JAR.name} is missing from the package", hint="install Lockstep again"
        )
    return JAR


def require_log_store(session: SparkSession) -> None:
    """`LakeUnavailable` unless it is our class that Delta writes local files' logs with: any
    other would commit wherever it can."""
    jvm = session.sparkContext._jvm
    assert jvm is not None
    stores = getattr(jvm, "org.apache.spark.sql.delta.storage.LogStore$")
    store = getattr(stores, "MODULE$").apply(session._jsparkSession)
    root = jvm.org.apache.hadoop.fs.Path("/")
    system = root.getFileSystem(session._jsparkSession.sessionState().newHadoopConf())
    chosen = store.getDelegate(system.makeQualified(root))
    found = chosen.logStoreImpl() if hasattr(chosen, "logStoreImpl") else chosen
    name = str(found.getClass().getName())
    if name != CLASS:
        raise LakeUnavailable(
            f"Spark would write the tables' logs with {name}, which does not stop a late run from "
            "committing",
            hint="take everything about log stores and file systems out of [spark] in "
            "lockstep.toml, then run again",
        )
