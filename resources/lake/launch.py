"""The Java process that Spark runs in, which pyspark starts with Spark's own `spark-submit`.


pyspark keeps one Java for each Python process and has no public way to replace it, so this one
lives as long as the Python process: a Spark that is stopped leaves it to the next one. It does not
outlive the process, however that ends: its standard input is a pipe from us.

Its folder goes with the process (`staging`), and with one that was killed as soon as the next one
starts: Java ends with its process.
"""

from __future__ import annotations

import atexit
import tempfile
from collections.abc import Callable, MutableMapping, Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from subprocess import TimeoutExpired
from typing import TYPE_CHECKING, Final

from pipeline.errors import LakeUnavailable
from resources.lake.settings import SparkSettings, where_to_look
from resources.lake.staging import HeldFolder, held_folder

if TYPE_CHECKING:
    from py4j.java_gateway import JavaGateway


_PYSPARK_SETS: Final = {"SPARK_AUTH_SOCKET_TIMEOUT": "15", "SPARK_BUFFER_SIZE": "65536"}
"""Variables that a SparkContext sets, with the values that pyspark takes where they are missing."""

_LAST_JARS: Final = "SPARK_DIST_CLASSPATH"
"""The variable whose jars `spark-submit` puts after all others on Java's class path."""


class JavaOfProcess:
    """At most one Java, started by the first Spark of this process."""

    def __init__(self) -> None:
        self._gateway: JavaGateway | None = None
        self._scratch: HeldFolder | None = None

    def start(
        self, settings_in: Callable[[Path], SparkSettings]
    ) -> tuple[JavaGateway, SparkSettings]:
        """Java, started unless it runs already, and the settings of a Spark in it, which are made
        for Java's own folder. Java keeps those that it was started with. `LakeUnavailable` with
        Java's last words where it does not start, or has ended."""
        from py4j.protocol import Py4JError
        from pyspark import SparkConf
        from pyspark.errors import PySparkException
        from pyspark.java_gateway import launch_gateway

        if self._scratch is None:
            self._scratch = make_scratch()
            atexit.register(self.end)
        settings = settings_in(self._scratch.folder)
        if self._gateway is None:
            conf = SparkConf(loadDefaults=False).setAll(list(settings.launch().items()))
            with log_of(settings).open("wb") as log:
                try:
                    # A process group of its own: Ctrl-C in a terminal is for Python alone.
                    popen = {"stdout": log, "stderr": log, "process_group": 0}
                    start: Callable[..., JavaGateway] = launch_gateway
                    self._gateway = start(conf, popen)
                except (PySparkException, Py4JError, OSError) as error:
                    raise not_started(settings) from error
        elif self._gateway.proc.poll() is not None:
            raise not_started(settings)
        return self._gateway, settings

    def end(self, patience: float = 0) -> None:
        """End Java, and remove its folder. `patience`: seconds in which it may end by itself."""
        from py4j.protocol import Py4JError

        if self._gateway is not None:
            process = self._gateway.proc
            # A Java process that is gone already cannot be told to stop.
            with suppress(Py4JError, OSError):
                self._gateway.shutdown()
            with suppress(OSError):
                process.stdin.close()
            with suppress(TimeoutExpired):
                process.wait(patience)
            process.kill()
            process.wait()
        if self._scratch is not None:
            self._scratch.end()
            self._scratch = None
            atexit.unregister(self.end)


JAVA: Final = JavaOfProcess()
"""The Java of this process."""


def spark_home() -> Path:
    """The folder of the installed pyspark, which is not imported."""
    found = find_spec("pyspark")
    assert found is not None
    assert found.origin is not None
    return Path(found.origin).parent


def settle_environment(
    environment: MutableMapping[str, str], last_jars: Sequence[Path] = ()
) -> None:
    """Define the variables that a start of Spark reads and sets. delta-rs reads all of the
    environment whenever it opens a table, and no lock guards it: a variable that another thread
    adds or deletes at that moment may move the list that is read, and the process dies. A new value
    of a variable that is there moves nothing. So this is called before there is such a thread.

    `last_jars` come after all others: the class-data archive holds for a class path that begins as
    its own did."""
    for name, value in _PYSPARK_SETS.items():
        environment.setdefault(name, value)
    # Another Spark that the machine has is not the one that pyspark was installed with.
    environment["SPARK_HOME"] = str(spark_home())
    if last_jars:
        before = [path for path in environment.get(_LAST_JARS, "").split(":") if path]
        environment[_LAST_JARS] = ":".join(dict.fromkeys([*before, *map(str, last_jars)]))


def log_of(settings: SparkSettings) -> Path:
    """The file of whatever Java prints."""
    return settings.scratch / "spark.log"


def not_started(settings: SparkSettings) -> LakeUnavailable:
    """The error of a Spark that did not start."""
    return LakeUnavailable(
        f"Spark did not start: {_last_words(log_of(settings))}",
        hint=where_to_look(settings.user),
    )


def _last_words(log: Path) -> str:
    said = log.read_text(errors="replace") if log.is_file() else ""
    lines = [line.strip() for line in said.splitlines()]
    telling = [line for line in lines if line and not line.startswith(("at ", "WARNING"))]
    return telling[-1][:300] if telling else "its Java process ended without a word"


def make_scratch() -> HeldFolder:
    """A folder for a Spark of this process, among the machine's temporary files."""
    return held_folder(Path(tempfile.gettempdir()), "lockstep-spark-")
