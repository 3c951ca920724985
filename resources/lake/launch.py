"""The Java process that Spark runs in: its command, its beginning, and the way to talk to it.

Belongs here: what `spark-submit` does in two shells and a Java of their own before Spark's begins,
which is 0.4 s of processor time; and beginning Java before Python has read pyspark. Does not: what
Spark is configured with (`settings`), how long it lives (`session`).
"""

from __future__ import annotations

import os
import shlex
import struct
import subprocess
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final

from pipeline.retries import SPARK
from resources.lake.java import Java

if TYPE_CHECKING:
    from py4j.java_gateway import JavaGateway

MAIN: Final = "org.apache.spark.deploy.SparkSubmit"

_OPENED: Final = (
    "java.base/java.lang",
    "java.base/java.lang.invoke",
    "java.base/java.lang.reflect",
    "java.base/java.io",
    "java.base/java.net",
    "java.base/java.nio",
    "java.base/java.util",
    "java.base/java.util.concurrent",
    "java.base/java.util.concurrent.atomic",
    "java.base/jdk.internal.ref",
    "java.base/sun.nio.ch",
    "java.base/sun.nio.cs",
    "java.base/sun.security.action",
    "java.base/sun.util.calendar",
    "java.security.jgss/sun.security.krb5",
)
JAVA_OPTIONS: Final = (
    "-XX:+IgnoreUnrecognizedVMOptions",
    *(f"--add-opens={package}=ALL-UNNAMED" for package in _OPENED),
    "-Dio.netty.tryReflectionSetAccessible=true",
    "-Dio.netty.allocator.type=pooled",
    "-Dio.netty.handler.ssl.defaultEndpointVerificationAlgorithm=NONE",
    "--sun-misc-unsafe-memory-access=allow",
    "--enable-native-access=ALL-UNNAMED",
    "-Dderby.connection.requireAuthentication=false",
)
"""What Spark needs of Java (org.apache.spark.launcher.JavaModuleOptions of Spark 4.2), but for the
module of vector instructions: only machine learning uses that, and Java starts slower with it."""

_TOLD: Final = "_PYSPARK_DRIVER_CONN_INFO_PATH"

_IMPORTED: Final = (
    "org.apache.spark.SparkConf",
    "org.apache.spark.api.java.*",
    "org.apache.spark.api.python.*",
    "org.apache.spark.resource.*",
    "org.apache.spark.sql.Encoders",
    "org.apache.spark.sql.OnSuccessCall",
    "org.apache.spark.sql.functions",
    "org.apache.spark.sql.classic.*",
    "org.apache.spark.sql.api.python.*",
    "org.apache.spark.sql.hive.*",
    "scala.Tuple2",
)
"""What pyspark names without its package (`launch_gateway` of pyspark 4.2), but for machine
learning."""

_PYSPARK_SETS: Final = {"SPARK_AUTH_SOCKET_TIMEOUT": "15", "SPARK_BUFFER_SIZE": "65536"}
"""Variables that a SparkContext sets, with the values that pyspark takes where they are missing."""


def spark_home() -> Path:
    """The folder of the installed pyspark, which is not imported."""
    found = find_spec("pyspark")
    assert found is not None
    assert found.origin is not None
    return Path(found.origin).parent


def java_command(
    java: Java,
    home: Path,
    settings: Mapping[str, str],
    runs: Sequence[str] = ("pyspark-shell",),
    *,
    behind: Sequence[Path] = (),
) -> list[str]:
    """The command of Spark's Java; `settings` are those that it must have from its beginning
    (`SparkSettings.launch`), `runs` what spark-submit is told to run, options first, `behind` the
    jars behind all others."""
    jars = home / "jars"
    first = jars.glob("slf4j-api-*.jar")
    class_path = [settings.get("spark.driver.extraClassPath", ""), str(home / "conf")]
    class_path += [*map(str, first), str(jars / "*"), *map(str, behind)]
    options = [settings.get(f"spark.driver.{name}JavaOptions", "") for name in ("default", "extra")]
    return [
        str(java.program),
        "-cp",
        ":".join(path for path in class_path if path),
        f"-Xmx{settings['spark.driver.memory']}",
        *(option for given in options for option in shlex.split(given)),
        *JAVA_OPTIONS,
        MAIN,
        *(part for key, value in settings.items() for part in ("--conf", f"{key}={value}")),
        *runs,
    ]


def start_java(
    command: Sequence[str], home: Path, settings: Mapping[str, str], path: Path, log: IO[bytes]
) -> subprocess.Popen[bytes]:
    """Begin the process. It says where it listens in the file `told`, writes to `log` whatever
    else it says, does not hear Ctrl-C, as it is a group of its own, and ends when this process
    does: its standard input is a pipe from us."""
    environment = {
        **os.environ,
        "SPARK_HOME": str(home),
        "SPARK_CONNECT_MODE": "0",
        # What its shells find out for those who begin executors (`local-cluster[…]`).
        "SPARK_SCALA_VERSION": "2.13",
    }
    library = settings.get("spark.driver.extraLibraryPath")
    if library:
        before = environment.get("LD_LIBRARY_PATH")
        environment["LD_LIBRARY_PATH"] = library if not before else f"{library}:{before}"
    return subprocess.Popen(
        command,
        env={**environment, _TOLD: str(path)},
        stdin=subprocess.PIPE,
        stdout=log,
        stderr=log,
        process_group=0,
    )


def connected(process: subprocess.Popen[bytes], path: Path) -> JavaGateway | None:
    """The way to talk to it, once it listens; None if it ended instead."""
    from py4j import java_gateway
    from py4j.clientserver import ClientServer, JavaParameters, PythonParameters

    # Of a Java that is gone it tells the root logger, with a traceback on the terminal, before it
    # raises what is told in our words. Its own logger can be heard by whoever wants to.
    java_gateway.logging = java_gateway.logger
    for _ in SPARK.tries():
        if path.is_file():
            break
        if process.poll() is not None:
            return None
    info = path.read_bytes()
    port, length = struct.unpack_from("!ii", info)
    secret = info[8 : 8 + length].decode()
    # Of its two ways to talk, the one in which a thread here has a thread there: which session is
    # active is a thread's own (`direct`).
    gateway = ClientServer(
        java_parameters=JavaParameters(port=port, auth_token=secret, auto_convert=True),
        python_parameters=PythonParameters(port=0, eager_load=False),
    )
    for names in _IMPORTED:
        java_gateway.java_import(gateway.jvm, names)
    gateway.proc = process
    return gateway


def settle_environment() -> None:
    """Define what pyspark sets in the environment while it starts. delta-rs reads all of the
    environment whenever it opens a table, and no lock guards it: a variable that another thread
    adds or deletes at that moment may move the list that is read, and the process dies. A new value
    of a variable that is there moves nothing. So this is called before there is such a thread, and
    pyspark is not told of a running Java by variables, as pyspark-shell would be."""
    for name, value in _PYSPARK_SETS.items():
        os.environ.setdefault(name, value)
