"""The Java process of Spark, which pyspark starts by Spark's own `spark-submit`.

pyspark keeps one Java per Python process and has no public way to replace it. So Java lives as long
as the Python process, and a Spark that is stopped leaves it to the next one. It does not outlive
the process, however that ends, since its standard input is a pipe from the process.

Its folder is removed with the process; the folder of a killed process is removed when the next one
starts (`staging.held_folder`).
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

from lockstep.pipeline.values.errors import LakeUnavailable
from lockstep.resources.lake.spark.settings import SparkSettings, where_to_look
from lockstep.resources.lake.store.staging import HeldFolder, held_folder

if TYPE_CHECKING:
    from py4j.java_gateway import JavaGateway


_PYSPARK_SETS: Final = {"SPARK_AUTH_SOCKET_TIMEOUT": "15", "SPARK_BUFFER_SIZE": "65536"}
"""Variables that a SparkContext sets, with pyspark's defaults."""

_LAST_JARS: Final = "SPARK_DIST_CLASSPATH"
"""The variable with jars that `spark-submit` puts last on Java's class path."""


class JavaOfProcess:
    """At most one Java, started by the first Spark of this process."""

    def __init__(self) -> None:
        self._gateway: JavaGateway | None = None
        self._scratch: HeldFolder | None = None

    def start(
        self, settings_in: Callable[[Path], SparkSettings]
    ) -> tuple[JavaGateway, SparkSettings]:
        """Start Java unless it runs; return it with the settings of a Spark in it.

        `settings_in` makes the settings for Java's folder; a running Java keeps those that it was
        started with. `LakeUnavailable` with the last line that Java printed if it does not start,
        or has ended.
        """
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
                    # A process group of its own, so that Ctrl-C in a terminal reaches only Python.
                    popen = {"stdout": log, "stderr": log, "process_group": 0}
                    start: Callable[..., JavaGateway] = launch_gateway
                    self._gateway = start(conf, popen)
                except (PySparkException, Py4JError, OSError) as error:
                    raise not_started(settings) from error
        elif self._gateway.proc.poll() is not None:
            raise not_started(settings)
        return self._gateway, settings

    def end(self, patience: float = 0) -> None:
        """End Java and remove its folder. `patience`: seconds for which it may end by itself."""
        from py4j.protocol import Py4JError

        if self._gateway is not None:
            process = self._gateway.proc
            # The Java process may have ended already.
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
    """Return the folder of the installed pyspark, without importing it."""
    spec = find_spec("pyspark")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent


def settle_environment(
    environment: MutableMapping[str, str], last_jars: Sequence[Path] = ()
) -> None:
    """Define the environment variables that a start of Spark reads and sets.

    This is called before there is another thread. delta-rs reads the whole environment whenever it
    opens a table, without a lock: if another thread adds or deletes a variable at that moment, the
    list can move in memory and the process crashes. Changing an existing variable is harmless.

    `last_jars` come after all others, since the class-data archive is valid for class paths that
    begin as its own.
    """
    for name, value in _PYSPARK_SETS.items():
        environment.setdefault(name, value)
    # Another Spark that the machine has is not the one that pyspark was installed with.
    environment["SPARK_HOME"] = str(spark_home())
    if last_jars:
        before = [path for path in environment.get(_LAST_JARS, "").split(":") if path]
        environment[_LAST_JARS] = ":".join(dict.fromkeys([*before, *map(str, last_jars)]))


def log_of(settings: SparkSettings) -> Path:
    """Return the file of everything that Java prints."""
    return settings.scratch / "spark.log"


def not_started(settings: SparkSettings) -> LakeUnavailable:
    """Return the error of a Spark that did not start."""
    return LakeUnavailable(
        f"Spark did not start: {_last_words(log_of(settings))}",
        hint=where_to_look(settings.user),
    )


def _last_words(log: Path) -> str:
    text = log.read_text(errors="replace") if log.is_file() else ""
    lines = [line.strip() for line in text.splitlines()]
    messages = [line for line in lines if line and not line.startswith(("at ", "WARNING"))]
    return messages[-1][:300] if messages else "its Java process ended without a message"


def make_scratch() -> HeldFolder:
    """Create a folder for a Spark of this process among the machine's temporary files."""
    return held_folder(Path(tempfile.gettempdir()), "lockstep-spark-")
