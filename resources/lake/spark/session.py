"""Spark in a Java process of this machine: how it is started in the background, and
stopped.

`settings` has its configuration. pyspark starts Java by Spark's own `spark-submit`,
keeps one Java per Python process, and has no public way to replace it. So Java runs as
long as the Python process; if Spark is stopped, the next Spark uses the same Java. If
the Python process is killed, Java ends, too, because it reads from a pipe of that
process.

Java's folder is removed when the process ends. If the process is killed, the next
process removes the folder when it starts (`staging.make_locked_folder`). The background
thread imports pyspark; nothing imports it earlier.
"""

from __future__ import annotations

import atexit
import os
import re
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from subprocess import TimeoutExpired
from types import MappingProxyType
from typing import TYPE_CHECKING, Final
from uuid import UUID

from lockstep.pipeline.values.errors import (
    ConfigurationError,
    LakeUnavailable,
    LockstepError,
)
from lockstep.resources.lake.spark.jars import class_path, jars_folder, locked_jars, store_locks
from lockstep.resources.lake.spark.java import archive_path, require_java
from lockstep.resources.lake.spark.java_classes import (
    java_class,
    jvm_of,
    path_and_file_system,
    scala_object,
)
from lockstep.resources.lake.spark.java_errors import silence_pyspark
from lockstep.resources.lake.spark.log_store import log_store_jar, require_log_store
from lockstep.resources.lake.spark.settings import (
    SparkSettings,
    driver_memory,
    has_local_tasks,
    store_settings,
)
from lockstep.resources.lake.spark.spark import BackgroundStart
from lockstep.resources.lake.spark.visible import require_visible
from lockstep.resources.lake.store.paths import LakePath, ObjectPath
from lockstep.resources.lake.store.staging import LockedFolder, make_locked_folder

if TYPE_CHECKING:
    from py4j.java_gateway import JavaGateway
    from pyspark.sql import SparkSession


_PYSPARK_VARIABLES: Final = {"SPARK_AUTH_SOCKET_TIMEOUT": "15", "SPARK_BUFFER_SIZE": "65536"}
"""Variables that a SparkContext sets, with pyspark's defaults."""

_LAST_JARS_VARIABLE: Final = "SPARK_DIST_CLASSPATH"
"""The variable with jars that `spark-submit` puts last on Java's class path."""


class JavaProcess:
    """The Java process of this Python process, of which there is at most one. The first
    Spark starts it."""

    def __init__(self) -> None:
        self._gateway: JavaGateway | None = None
        self._is_starting = False
        self._scratch: LockedFolder | None = None

    def folder(self) -> Path:
        """Return the folder for Java's own files, which exists until `end`."""
        if self._scratch is None:
            self._scratch = make_scratch()
            atexit.register(self.end)
        return self._scratch.folder

    def start(self, settings: SparkSettings) -> JavaGateway:
        """Start Java unless it runs, and return py4j's gateway to it. A Java that runs
        already keeps the command line with which it was started. Raise
        `LakeUnavailable`, with the last line that Java printed, if Java does not start
        or has ended."""
        from py4j.protocol import Py4JError
        from pyspark import SparkConf
        from pyspark.errors import PySparkException
        from pyspark.java_gateway import launch_gateway

        if self._gateway is None:
            conf = SparkConf(loadDefaults=False).setAll(
                list(settings.command_line_settings().items())
            )
            with _log_path(settings).open("wb") as log:
                try:
                    # A process group of its own, so that Ctrl-C in a terminal reaches
                    # only Python.
                    popen_arguments = {"stdout": log, "stderr": log, "process_group": 0}
                    launch: Callable[..., JavaGateway] = launch_gateway
                    self._is_starting = True
                    self._gateway = launch(conf, popen_arguments)
                except (PySparkException, Py4JError, OSError) as error:
                    raise _start_error(settings, error) from error
                finally:
                    self._is_starting = False
        elif self._gateway.proc.poll() is not None:
            raise _start_error(settings)
        return self._gateway

    def end(self, timeout_seconds: float = 0) -> None:
        """End Java and remove its folder. `timeout_seconds`: seconds to wait for Java
        to end by itself, before it is killed."""
        from py4j.protocol import Py4JError

        if self._is_starting:
            # Java ends with this process, whose pipe it reads, but may create its folder
            # again until then: the next process removes the folder.
            return
        if self._gateway is not None:
            process = self._gateway.proc
            # The Java process may have ended already.
            with suppress(Py4JError, OSError):
                self._gateway.shutdown()
            with suppress(OSError):
                process.stdin.close()
            with suppress(TimeoutExpired):
                process.wait(timeout_seconds)
            process.kill()
            process.wait()
        if self._scratch is not None:
            self._scratch.end()
            self._scratch = None
            atexit.unregister(self.end)


JAVA: Final = JavaProcess()
"""The Java of this process."""


def spark_home() -> Path:
    """Return the folder of the installed pyspark, without importing it."""
    spec = find_spec("pyspark")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent


def define_environment(
    environment: MutableMapping[str, str], last_jars: Sequence[Path] = ()
) -> None:
    """Define the environment variables that a start of Spark reads and sets.

    This must be called before there is another thread. Whenever delta-rs opens a table,
    it reads the whole environment without a lock. If another thread adds or deletes a
    variable at that moment, the list of variables can move in memory, and the process
    crashes. A change of an existing variable is harmless.

    `last_jars` come last on the class path, because the class-data archive is valid
    only for class paths that begin with its own.
    """
    for name, value in _PYSPARK_VARIABLES.items():
        environment.setdefault(name, value)
    # In Java's messages, `java_errors` looks for words of the system, which are in
    # English only if LC_MESSAGES says so. LC_ALL would overrule it, so LC_ALL is
    # removed. Its encoding, in which Java names files, stays as LC_CTYPE.
    if locale := environment.pop("LC_ALL", ""):
        environment["LC_CTYPE"] = locale
    environment["LC_MESSAGES"] = "C"
    # Always the Spark inside pyspark, even if SPARK_HOME names another one of this
    # machine.
    environment["SPARK_HOME"] = str(spark_home())
    if last_jars:
        present_jars = filter(None, environment.get(_LAST_JARS_VARIABLE, "").split(":"))
        environment[_LAST_JARS_VARIABLE] = ":".join(
            dict.fromkeys([*present_jars, *map(str, last_jars)])
        )


def _log_path(settings: SparkSettings) -> Path:
    """Return the path of the file with everything that Java prints."""
    return settings.scratch / "spark.log"


_BAD_HEAP_MESSAGES: Final = ("INVALID_DRIVER_MEMORY", "Invalid maximum heap size")
"""Words that Spark or Java prints if it does not accept the size in
`spark.driver.memory`."""


def _start_error(settings: SparkSettings, error: Exception | None = None) -> LockstepError:
    """Return our error for a Spark that did not start. `error`: Python's error, if there
    was one."""
    log = _log_path(settings)
    output = log.read_text(errors="replace") if log.is_file() else ""
    reason = _last_message(output)
    if reason is None:
        # If the operating system did not start the program, no Java process ended.
        is_refused = isinstance(error, OSError) and not isinstance(error, ConnectionError)
        reason = str(error) if is_refused else "its Java process ended without a message"
    message = f"Spark did not start: {reason}"
    if any(words in text for words in _BAD_HEAP_MESSAGES for text in (str(error), output)):
        hint = "correct `spark.driver.memory` in the [spark] table of lockstep.toml: 512m or more"
        return ConfigurationError(message, hint=hint)
    return LakeUnavailable(message, hint=start_hint(settings.user_settings))


def start_hint(user_settings: Mapping[str, str]) -> str:
    """Return the hint for a Spark that does not start. For a cluster, it names the logs
    of the executors."""
    if has_local_tasks(user_settings):
        return "check the [spark] table of lockstep.toml and the free memory, then run again"
    return (
        f"check what the cluster at {user_settings['spark.master']} logs about its executors, and "
        "the [spark] table of lockstep.toml (docs/deploy.md#where-spark-runs); then run again"
    )


def _last_message(output: str) -> str | None:
    """Return the last line that tells something, shortened; None if there is none."""
    lines = [line.strip() for line in output.splitlines()]
    messages = [line for line in lines if line and not line.startswith(("at ", "WARNING"))]
    return messages[-1][:300] if messages else None


def make_scratch() -> LockedFolder:
    """Create a folder for this process's Spark in the machine's folder of temporary
    files."""
    return make_locked_folder(Path(tempfile.gettempdir()), "lockstep-spark-")


@dataclass(frozen=True, slots=True)
class RunningSpark:
    """A running Spark: its first session, and the sessions that no thread uses. True
    maps to those that have the settings for few rows, False to the others
    (`spark.exclusive_session`)."""

    session: SparkSession
    idle_sessions: Mapping[bool, list[SparkSession]] = field(
        default_factory=lambda: {False: [], True: []}
    )


class SparkProcess:
    """`Spark` in a Java process of this machine. A Python process may run only one at a
    time.

    `user_settings`: the `[spark]` table. `lake`: where the tables are. `staging`: the
    folder with the temporary files that Python writes for Spark to read. Tasks on other
    machines must see both. `use_archive`: use the class-data archive, with which Java
    starts faster. `on_warning` is called with a sentence for a person, by the starting
    thread.
    """

    can_call_java = True
    client_id: UUID | None = None

    def __init__(
        self,
        user_settings: Mapping[str, str],
        *,
        lake: LakePath | None = None,
        staging: Path | None = None,
        use_archive: bool = True,
        on_warning: Callable[[str], None],
    ) -> None:
        self._user_settings = dict(user_settings)
        self._lake = lake
        self._staging = staging
        self._use_archive = use_archive
        self._on_warning = on_warning
        self._log_bytes = 0
        self._start = BackgroundStart(self._launch, _stop_spark)
        define_environment_for(lake)

    def display_name(self) -> str:
        return f"Spark {self._start.wait().session.version} of this machine"

    def require_ready(self) -> None:
        require_java(os.environ)
        _jars_for(self._lake)  # raises `SetupIncomplete` if one is missing

    def prepare(self, log_bytes: int = 0) -> None:
        self._log_bytes = max(self._log_bytes, log_bytes)
        self._start.begin()

    def end_statements(self, client_id: UUID) -> None:
        """Do nothing: the statements of a dead process ended with its Java."""

    def session(self, settings: Mapping[str, str] = MappingProxyType({})) -> SparkSession:
        """Wait for the start and return a new session. Raise `JavaMissing`,
        `SetupIncomplete`, or `LakeUnavailable` with the last line that the Java process
        printed."""
        session = self._start.wait().session.newSession()
        for name, value in settings.items():
            if name not in self._user_settings:
                session.conf.set(name, value)
        return session

    def idle_sessions(self, *, few_rows: bool) -> list[SparkSession]:
        return self._start.wait().idle_sessions[few_rows]

    def request_count(self) -> int | None:
        if not has_local_tasks(self._user_settings) or not isinstance(self._lake, ObjectPath):
            return None
        running = self._start.result_if_started()
        return 0 if running is None else _java_request_count(running.session, self._lake)

    def stop(self) -> None:
        """End Spark if it was started, without waiting for a start that is still going
        on."""
        self._start.end()

    def _launch(self) -> RunningSpark:
        self.require_ready()
        settings = settings_in(JAVA.folder(), self._user_settings, self._lake, self._log_bytes)
        if not self._use_archive:
            settings = replace(settings, archive=None)
        elif settings.archive is None:
            self._on_warning(
                "Spark starts slower than it could: `lockstep setup` was not run for this Java"
            )
        running = RunningSpark(_open_session(JAVA.start(settings), settings, self._lake))
        try:
            self._require_visible(running.session)
        except BaseException:
            _stop_spark(running)
            raise
        return running

    def _require_visible(self, session: SparkSession) -> None:
        if (
            self._lake is not None
            and self._staging is not None
            and not has_local_tasks(self._user_settings)
        ):
            spark_name = f'The Spark of "spark.master" = {self._user_settings["spark.master"]}'
            require_visible(session, self._lake, self._staging, spark_name)


def _jars_for(lake: LakePath | None) -> tuple[tuple[Path, ...], tuple[Path, ...]]:
    """Return the jars that every start needs, and the further jars that this lake
    needs."""
    folder = jars_folder(sys.prefix)
    last_jars = tuple(path for lock in store_locks(lake) for path in class_path(folder, lock))
    return (*class_path(folder), log_store_jar()), last_jars


def define_environment_for(lake: LakePath | None) -> None:
    """Define the environment variables of a start of Spark for this lake, before any
    thread reads the environment (`define_environment`)."""
    store_jars = [jar for lock in store_locks(lake) for jar in locked_jars(lock)]
    folder = jars_folder(sys.prefix)
    define_environment(os.environ, [folder / jar.file_name for jar in store_jars])


def settings_in(
    scratch: Path, user_settings: Mapping[str, str], lake: LakePath | None, log_bytes: int = 0
) -> SparkSettings:
    """Return the settings of a Spark whose own files are in `scratch`."""
    jars, last_jars = _jars_for(lake)
    archive = archive_path(jars_folder(sys.prefix), jars, require_java(os.environ))
    log4j = scratch / "log4j2.properties"
    log4j.write_bytes(
        files("lockstep.resources.lake.spark").joinpath("log4j2.properties").read_bytes()
    )
    return SparkSettings(
        user_settings=user_settings,
        class_path=jars,
        archive=archive if archive.is_file() else None,
        log4j=log4j,
        scratch=scratch,
        cores=os.cpu_count() or 1,
        heap_bytes=driver_memory(
            os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"), memory_limits()
        ),
        hadoop_settings=store_settings(lake),
        last_jars=last_jars,
        log_bytes=log_bytes,
    )


def memory_limits(root: Path = Path("/")) -> Iterator[int]:
    """Yield the limits in bytes that control groups set to this process's memory, such
    as systemd's MemoryMax or that of a container (cgroups(7), version 2)."""
    with suppress(OSError):
        groups = (root / "proc/self/cgroup").read_text()
        for group in re.findall("^0::/(.*)", groups, re.MULTILINE):
            folder = root / "sys/fs/cgroup" / group
            for file in (parent / "memory.max" for parent in (folder, *folder.parents)):
                with suppress(OSError, ValueError):  # it is missing, or says "max"
                    yield int(file.read_text())


def _open_session(
    gateway: JavaGateway, settings: SparkSettings, lake: LakePath | None
) -> SparkSession:
    from py4j.protocol import Py4JError
    from pyspark import SparkConf, SparkContext
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    silence_pyspark()
    conf = SparkConf(loadDefaults=False).setAll(list(settings.configuration().items()))
    try:
        session = SparkSession(SparkContext(gateway=gateway, conf=conf))
        _load_delta_settings(session)
        require_log_store(session, lake)
    except (PySparkException, Py4JError, OSError) as error:
        raise _start_error(settings, error) from error
    return session


def _load_delta_settings(session: SparkSession) -> None:
    """Load the class with Delta's settings before any thread sets one.

    The class registers each setting in two tables, one after the other. Spark refuses
    to set a setting (`CANNOT_MODIFY_CONFIG`) that is in the first table only. If a
    write's thread loaded the class, this could happen to another thread.
    """
    scala_object(jvm_of(session), "org.apache.spark.sql.delta.sources.DeltaSQLConf")


def _stop_spark(running: RunningSpark) -> None:
    from py4j.protocol import Py4JError

    # The Java process may have ended already. PySpark warns of that, and its warning
    # would be the last lines of a command, after our error and its hint.
    with suppress(Py4JError, OSError), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        running.session.stop()


_REQUEST_COUNTER: Final = "store_io_request"
"""The name of S3A's counter of requests to the store, repeated requests included."""


def _java_request_count(session: SparkSession, lake: ObjectPath) -> int | None:
    """Return the number of requests that Java has sent to the lake's store since it
    started. Return None if Java's client does not count them, or if Java has ended;
    then the next use of Spark raises an error."""
    from py4j.protocol import Py4JError

    try:
        _, client = path_and_file_system(session, f"{lake}/")
        statistics = java_class(
            jvm_of(session), "org.apache.hadoop.fs.statistics.IOStatisticsSupport"
        )
        values = statistics.retrieveIOStatistics(client)
        requests = None if values is None else values.counters().get(_REQUEST_COUNTER)
    except (Py4JError, OSError):
        return None
    return None if requests is None else int(requests)
