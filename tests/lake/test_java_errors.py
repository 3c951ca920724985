"""Exceptions of a real Spark, as `spark_errors` reads them; the rules themselves: `test_pure`."""

from __future__ import annotations

from pathlib import Path

import pytest
from py4j.protocol import Py4JJavaError

from lockstep.pipeline.values.errors import LakeUnavailable, MirrorRefused
from lockstep.resources.lake.spark.java_errors import spark_errors
from lockstep.resources.lake.spark.session import SparkProcess


@pytest.mark.parametrize(
    "message, kind, sentence",
    [
        ("1234 is no row", MirrorRefused, "Spark refused its mirror: SparkException"),
        (
            "the SparkContext was shut down",
            LakeUnavailable,
            "Spark could not write {lake}: the SparkContext was shut down",
        ),
    ],
)
def test_an_exception_without_a_condition_is_named_by_its_class_or_message(
    spark: SparkProcess, tmp_path: Path, message: str, kind: type[Exception], sentence: str
) -> None:
    """Java returns null for the condition, Python's `None`, which is no word of a sentence."""
    jvm = spark.session().sparkContext._jvm
    assert jvm is not None
    exception = jvm.org.apache.spark.SparkException(message)
    with pytest.raises(kind) as raised, spark_errors(tmp_path):
        raise Py4JJavaError("", exception)
    assert str(raised.value) == sentence.format(lake=tmp_path)
