"""Spark's Java is begun by `spark-submit`, in the way that starts fastest."""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from lockstep.resources.adapters import Adapters
from lockstep.resources.lake.spark.jars import S3, class_path, jars_folder
from lockstep.resources.lake.spark.java import archive_path, require_java
from lockstep.resources.lake.spark.log_store import log_store_jar
from lockstep.resources.lake.spark.session import SparkProcess, settle_environment, spark_home
from tests.dagster.place import settings_for


@pytest.mark.skipif(sys.platform != "linux", reason="what a process maps is seen in /proc")
def test_java_uses_the_archive_of_classes_whatever_the_lake_is(spark: SparkProcess) -> None:
    """The class path begins as the archive's does: what a store needs is at its end."""
    folder = jars_folder(sys.prefix)
    jars = (*class_path(folder), log_store_jar())
    java: Any = spark.session().sparkContext._gateway
    maps = Path(f"/proc/{java.proc.pid}/maps").read_text()
    assert str(archive_path(folder, jars, require_java(os.environ))) in maps
    paths = getattr(java.jvm, "java.lang.System").getProperty("java.class.path").split(":")
    assert paths[: len(jars)] == [str(jar) for jar in jars]
    assert paths[-len(class_path(folder, S3)) :] == [str(jar) for jar in class_path(folder, S3)]


def test_no_thread_of_a_run_that_begins_changes_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What opens the lake in the background finds every variable defined."""
    names = ("SPARK_HOME", "SPARK_AUTH_SOCKET_TIMEOUT", "SPARK_BUFFER_SIZE")
    for name in names:
        monkeypatch.delenv(name, raising=False)
    settings = settings_for(tmp_path, "shop")
    with Adapters(settings, on_warning=print) as adapters:
        found = list[set[str]]()
        monkeypatch.setattr(adapters, "ledger", lambda: found.append(set(os.environ)))
        monkeypatch.setattr(threading.Thread, "start", lambda thread: thread.run())
        adapters.warm([])
    assert found[0].issuperset(names)


def test_the_spark_of_pyspark_is_started_and_jars_are_named_once() -> None:
    """Not another one that the machine has."""
    found = {"SPARK_HOME": "/opt/spark", "SPARK_DIST_CLASSPATH": "/own.jar"}
    for _ in range(2):
        settle_environment(found, [Path("/store.jar")])
    assert found["SPARK_HOME"] == str(spark_home())
    assert found["SPARK_DIST_CLASSPATH"] == "/own.jar:/store.jar"
