"""Spark's process: started in the background, waited for, and stopped.

Belongs here: the life of the one Java process. What runs in it is `mirror`; what it is
configured with is `settings`. pyspark is imported by the background thread, never
before. The Java process ends with this one, however this one ends: its standard input
is a pipe from us, and it stops when the pipe closes.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING
from uuid import UUID

from pipeline.errors import LakeUnavailable
from resources.lake.archive import archive_path
from resources.lake.jars import S3, class_path, jars_folder
from resources.lake.java import Java, java_or_refuse
from resources.lake.java_errors import leave_telling_to_us
from resources.lake.launch import (
    connected,
    java_command,
    settle_environment,
    spark_home,
    start_java,
)
from resources.lake.log_store import log_store_jar, require_log_store
from resources.lake.paths import LakePath, ObjectPath
from resources.lake.requests import requests_of_java
from resources.lake.s3a import store_settings
from resources.lake.scratch import Scratch, make_scratch
from resources.lake.settings import SparkSettings, is_local, where_to_look
from resources.lake.starting import Starting
from resources.lake.visible import require_visible

if TYPE_CHECKING:
    from py4j.java_gateway import JavaGateway
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True)
class Started:
    """A running Spark: its first session, its Java process, and what dies with it, such as
    the sessions that nobody uses at the moment (`sessions`)."""

    session: SparkSession
    gateway: JavaGateway
    scratch: Scratch
    idle: Mapping[bool, list[SparkSession]] = field(default_factory=lambda: {False: [], True: []})

    @property
    def process(self) -> subprocess.Popen[bytes]:
        process: subprocess.Popen[bytes] = self.gateway.proc
        return process


class SparkProcess:
    """`Spark` on this machine, for as long as this object is open; at most one a Python process.

    `user` is the `[spark]` table; `lake` where mirrors are, and `staging` what waits for them:
    tasks of other machines must see both; `archive` whether to start from the class-data archive;
    `on_warning` takes a sentence a person should see, from the starting thread; `patience` is how
    many seconds Java may take to end once Spark has stopped: what it does then is of use only to
    who makes the archive.
    """

    java = True
    client: UUID | None = None

    def __init__(
        self,
        user: Mapping[str, str],
        *,
        lake: LakePath | None = None,
        staging: Path | None = None,
        archive: bool = True,
        on_warning: Callable[[str], None],
        patience: float = 0,
    ) -> None:
        self._user = dict(user)
        self._lake = lake
        self._staging = staging
        self._archive = archive
        self._on_warning = on_warning
        self._patience = patience
        self._start = Starting(self._launch)
        self._process: subprocess.Popen[bytes] | None = None
        settle_environment()

    def named(self) -> str:
        return f"Spark {self._start.wait().session.version} of this machine"

    def require_ready(self) -> None:
        java_or_refuse(os.environ)
        self._jars(jars_folder(sys.prefix))

    def prepare(self) -> None:
        self._start.begin()

    def end_statements(self, client: UUID) -> None:
        """They ended with who asked for them."""

    def session(self, settings: Mapping[str, str] = MappingProxyType({})) -> SparkSession:
        """Waits for the start. `JavaMissing`, `SetupIncomplete`, or `LakeUnavailable` with
        the last words of the Java process.
        """
        session = self._start.wait().session.newSession()
        for name, value in settings.items():
            if name not in self._user:
                session.conf.set(name, value)
        return session

    def idle(self, *, few: bool) -> list[SparkSession]:
        return self._start.wait().idle[few]

    def requests(self) -> int | None:
        if not is_local(self._user) or not isinstance(self._lake, ObjectPath):
            return None
        started = self._start.started()
        return 0 if started is None else requests_of_java(started.session, self._lake)

    def stop(self) -> None:
        """End Spark and its process, and remove its folder; nothing if never started. A start that
        nobody waited for is not waited for here either."""
        self._start.end(lambda started: _end(started, self._patience), self._give_up)

    def _give_up(self) -> None:
        """Java is killed, which is what a start ends in then."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()

    def _launch(self) -> Started:
        java = java_or_refuse(os.environ)
        folder = jars_folder(sys.prefix)
        jars, more = self._jars(folder)
        archive = archive_path(folder, jars, java) if self._archive else None
        if archive is not None and not archive.is_file():
            self._on_warning(
                "Spark starts slower than it could: `lockstep setup` was not run for this Java"
            )
            archive = None
        scratch = make_scratch()
        try:
            conf = settings_in(scratch.folder, self._user, jars, archive, self._lake, more)
            self._process = _begin(conf, java)
            started = _connect(conf, self._process, self._lake, scratch)
        except BaseException:
            self._give_up()
            _forget_gateway()
            scratch.end()
            raise
        try:
            self._require_visible(started.session)
        except BaseException:
            _end(started, 0)
            raise
        return started

    def _require_visible(self, session: SparkSession) -> None:
        if self._lake is not None and self._staging is not None and not is_local(self._user):
            named = f'The Spark of "spark.master" = {self._user["spark.master"]}'
            require_visible(session, self._lake, self._staging, named)

    def _jars(self, folder: Path) -> tuple[tuple[Path, ...], tuple[Path, ...]]:
        """Those of each start, and what this lake needs besides."""
        more = class_path(folder, S3) if isinstance(self._lake, ObjectPath) else ()
        return (*class_path(folder), log_store_jar()), more


def settings_in(
    scratch: Path,
    user: Mapping[str, str],
    jars: Sequence[Path],
    archive: Path | None,
    lake: LakePath | None,
    behind: Sequence[Path],
) -> SparkSettings:
    """What a Spark is started with whose own files are in `scratch`."""
    log4j = scratch / "log4j2.properties"
    log4j.write_bytes(files("resources.lake").joinpath("log4j2.properties").read_bytes())
    return SparkSettings(
        user=user,
        class_path=jars,
        archive=archive,
        log4j=log4j,
        scratch=scratch,
        cores=os.cpu_count() or 1,
        memory=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        store=store_settings(lake) if isinstance(lake, ObjectPath) else {},
        behind=behind,
    )


def _begin(settings: SparkSettings, java: Java) -> subprocess.Popen[bytes]:
    """Java, which starts while pyspark is imported."""
    home, launch = spark_home(), settings.launch()
    command = java_command(java, home, launch, behind=settings.behind)
    with _log(settings).open("wb") as sink:
        return start_java(command, home, launch, _told(settings), sink)


def _log(settings: SparkSettings) -> Path:
    return settings.scratch / "spark.log"


def _told(settings: SparkSettings) -> Path:
    return settings.scratch / "listens"


def _connect(
    settings: SparkSettings,
    process: subprocess.Popen[bytes],
    lake: LakePath | None,
    scratch: Scratch,
) -> Started:
    from py4j.protocol import Py4JError
    from pyspark import SparkConf, SparkContext
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    conf = SparkConf(loadDefaults=False).setAll(list(settings.all().items()))
    try:
        gateway = connected(process, _told(settings))
        if gateway is None:
            raise _not_started(settings)
        session = SparkSession(SparkContext(gateway=gateway, conf=conf))
        leave_telling_to_us()
        require_log_store(session, lake)
        return Started(session, gateway, scratch)
    except (PySparkException, Py4JError, OSError) as error:
        raise _not_started(settings) from error


def _not_started(settings: SparkSettings) -> LakeUnavailable:
    return LakeUnavailable(
        f"Spark did not start: {_last_words(_log(settings))}",
        hint=where_to_look(settings.user),
    )


def _last_words(log: Path) -> str:
    said = log.read_text(errors="replace") if log.is_file() else ""
    lines = [line.strip() for line in said.splitlines()]
    telling = [line for line in lines if line and not line.startswith(("at ", "WARNING"))]
    return telling[-1][:300] if telling else "its Java process ended without a word"


def _end(started: Started, patience: float) -> None:
    from py4j.protocol import Py4JError

    process = started.process
    # A Java process that is gone already cannot be told to stop.
    with suppress(Py4JError, OSError):
        started.session.stop()
    with suppress(Py4JError, OSError):
        started.gateway.shutdown()
    if process.stdin is not None:
        with suppress(OSError):
            process.stdin.close()
    with suppress(subprocess.TimeoutExpired):
        process.wait(patience)
    process.kill()
    process.wait()
    _forget_gateway()
    started.scratch.end()


def _forget_gateway() -> None:
    """Let a later start in this Python process have a Java process of its own; a context whose Java
    was killed does not forget itself."""
    from pyspark import SparkContext

    SparkContext._gateway = None
    SparkContext._jvm = None
    SparkContext._active_spark_context = None
