"""Uploads in parts that nobody finished: whoever is killed inside of one leaves its parts, which
are in no listing and on every bill.

Belongs here: giving them up, which the store's Python client has no request for and Hadoop's has.
Does not: when that is due (`segments`).
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from resources.lake.java_classes import java_class
from resources.lake.paths import ObjectPath
from resources.lake.spark import Spark


def give_up_uploads(spark: Spark, below: ObjectPath) -> None:
    """Those of all objects below a prefix, to which nobody may be writing. A store that does not
    let itself be asked for them keeps them: they cost no more than money; so does one that only a
    Spark elsewhere could ask."""
    if not spark.java:
        return
    from py4j.protocol import Py4JJavaError

    session = spark.session()
    jvm: Any = session.sparkContext._jvm
    path = java_class(jvm, "org.apache.hadoop.fs.Path")(f"{below}/")
    with suppress(Py4JJavaError):
        store = path.getFileSystem(session._jsparkSession.sessionState().newHadoopConf())
        uploader = store.createMultipartUploader(path).build()
        uploader.abortUploadsUnderPath(path).get()
