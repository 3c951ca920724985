"""Spark's Java is begun as `spark-submit` would begin it."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path

from resources.lake.java import java_or_refuse
from resources.lake.launch import MAIN, java_command, spark_home

SETTINGS = {
    "spark.driver.memory": "1234m",
    "spark.driver.extraClassPath": "/a.jar:/b.jar",
    "spark.driver.extraJavaOptions": '-XX:TieredStopAtLevel=1 "-Dwith=a space"',
    "spark.master": "local[*]",
}


_LAUNCHER = "org.apache.spark.launcher.Main"


def test_the_command_is_that_of_spark_submit() -> None:
    """Program, class path and options in their order, as the launcher behind its shells gives them;
    without the module for machine learning."""
    home, java = spark_home(), java_or_refuse(os.environ)
    conf = [part for key, value in SETTINGS.items() for part in ("--conf", f"{key}={value}")]
    answer = subprocess.run(
        [java.program, "-cp", home / "jars" / "*", _LAUNCHER, MAIN, *conf, "--version"],
        env={**os.environ, "SPARK_HOME": str(home), "SPARK_SCALA_VERSION": "2.13"},
        capture_output=True,
        text=True,
        check=True,
    )
    theirs = answer.stdout.strip("\0\n").split("\0")
    program, *expected = theirs[: theirs.index(MAIN)]
    ours = java_command(java, home, SETTINGS)
    assert Path(program).resolve() == Path(ours[0]).resolve()
    options = ours[1 : ours.index(MAIN)]
    assert options == [one for one in expected if one != "--add-modules=jdk.incubator.vector"]
    assert shlex.split(SETTINGS["spark.driver.extraJavaOptions"]) == options[3:5]


def test_the_jars_of_a_store_are_behind_all_others() -> None:
    """Java uses its archive of classes only where the class path begins as the archive's did."""
    java, home, more = java_or_refuse(os.environ), spark_home(), Path("/store.jar")
    plain, stored = (java_command(java, home, SETTINGS, behind=b)[2] for b in ((), (more,)))
    assert stored == f"{plain}:{more}"
