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


def test_the_command_is_that_of_spark_submit() -> None:
    """Program, class path and options in their order, without the module for machine learning."""
    home = spark_home()
    conf = [part for key, value in SETTINGS.items() for part in ("--conf", f"{key}={value}")]
    answer = subprocess.run(
        [home / "bin" / "spark-submit", *conf, "--version"],
        env={**os.environ, "SPARK_PRINT_LAUNCH_COMMAND": "1", "SPARK_HOME": str(home)},
        capture_output=True,
        text=True,
        check=True,
    )
    (line,) = [line for line in answer.stderr.splitlines() if line.startswith("Spark Command: ")]
    theirs = line.removeprefix("Spark Command: ").split(f" {MAIN} ")[0]
    ours = java_command(java_or_refuse(os.environ), home, SETTINGS)
    program, *options = ours[: ours.index(MAIN)]
    expected = theirs.replace(" --add-modules=jdk.incubator.vector", "").split(" ", 1)
    assert Path(program).resolve() == Path(expected[0]).resolve()
    assert " ".join(options) == expected[1]
    assert shlex.split(SETTINGS["spark.driver.extraJavaOptions"]) == options[3:5]


def test_the_jars_of_a_store_are_behind_all_others() -> None:
    """Java uses its archive of classes only where the class path begins as the archive's did."""
    java, home, more = java_or_refuse(os.environ), spark_home(), Path("/store.jar")
    plain, stored = (java_command(java, home, SETTINGS, behind=b)[2] for b in ((), (more,)))
    assert stored == f"{plain}:{more}"
