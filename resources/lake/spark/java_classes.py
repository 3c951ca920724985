"""Access to Spark's Java objects by py4j, if Spark is a Java process of this machine.

PySpark's two attributes for them are private, and only this module uses them.
docs/decisions/private-interfaces.md says why.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def jvm_of(session: SparkSession) -> Any:
    """Return py4j's view of Java, through which classes are reached."""
    return session._jvm


def java_session(session: SparkSession) -> Any:
    """Return the session's Java object."""
    return session._jsparkSession


def java_class(jvm: Any, name: str) -> Any:
    """Return a class by its full name. This is faster than `jvm.java.util.ArrayList`,
    for which Java would search hundreds of jars for a class `java`, then for a class
    `java.util`."""
    return getattr(jvm, name)


def scala_object(jvm: Any, name: str) -> Any:
    """Return a Scala object, which is the single instance of its class."""
    return getattr(java_class(jvm, f"{name}$"), "MODULE$")


def path_and_file_system(session: SparkSession, url: str) -> tuple[Any, Any]:
    """Return Hadoop's `Path` for a URL or a folder, and its `FileSystem`."""
    path = java_class(jvm_of(session), "org.apache.hadoop.fs.Path")(url)
    conf = java_session(session).sparkContext().hadoopConfiguration()
    return path, path.getFileSystem(conf)
