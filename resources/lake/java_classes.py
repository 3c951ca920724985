"""Classes of Java, by their names.

Belongs here: how they are asked for. Does not: what is done with them, nor the process that has
them (`launch`).
"""

from __future__ import annotations

from typing import Any


def java_class(jvm: Any, name: str) -> Any:
    """A class, asked for by its whole name: for `jvm.java.util`, Java looks through hundreds of
    jars for a class `java`, then for a class `java.util`."""
    return getattr(jvm, name)


def scala_object(jvm: Any, name: str) -> Any:
    """An object of Scala, which is the one instance of a class."""
    return getattr(java_class(jvm, f"{name}$"), "MODULE$")
