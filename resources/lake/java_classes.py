"""Spark's Java, spoken to by py4j, where Spark is a Java process of this machine.

PySpark's two private names for it are used here alone; docs/decisions/private-interfaces.md says
why.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def java_of(session: SparkSession) -> Any:
    """What Java's classes are asked of."""
    return session._jvm


def java_session(session: SparkSession) -> Any:
    """The session as Java has it."""
    return session._jsparkSession


def java_class(jvm: Any, name: str) -> Any:
    """A class, asked for by its whole name: for `jvm.java.util`, Java looks through hundreds of
    jars for a class `java`, then for a class `java.util`."""
    return getattr(jvm, name)


def scala_object(jvm: Any, name: str) -> Any:
    """An object of Scala, which is the one instance of a class."""
    return getattr(java_class(jvm, f"{name}$"), "MODULE$")


def hadoop_path(session: SparkSession, url: str) -> tuple[Any, Any]:
    """Hadoop's path of a URL or a folder, and the file system that it is in."""
    path = java_class(java_of(session), "org.apache.hadoop.fs.Path")(url)
    conf = java_session(session).sparkContext().hadoopConfiguration()
    return path, path.getFileSystem(conf)
