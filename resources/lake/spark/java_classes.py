"""Access to Spark's Java by py4j, if Spark is a Java process of this machine.

Only this module uses PySpark's two private names for it; docs/decisions/private-interfaces.md says
why.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def java_of(session: SparkSession) -> Any:
    """Return the view through which Java's classes are reached."""
    return session._jvm


def java_session(session: SparkSession) -> Any:
    """Return the session's Java object."""
    return session._jsparkSession


def java_class(jvm: Any, name: str) -> Any:
    """Return a class by its whole name. For `jvm.java.util`, Java would search hundreds of jars for
    a class `java`, then for a class `java.util`."""
    return getattr(jvm, name)


def scala_object(jvm: Any, name: str) -> Any:
    """Return a Scala object, which is the single instance of its class."""
    return getattr(java_class(jvm, f"{name}$"), "MODULE$")


def hadoop_path(session: SparkSession, url: str) -> tuple[Any, Any]:
    """Return Hadoop's path of a URL or a folder, and its file system."""
    path = java_class(java_of(session), "org.apache.hadoop.fs.Path")(url)
    conf = java_session(session).sparkContext().hadoopConfiguration()
    return path, path.getFileSystem(conf)
