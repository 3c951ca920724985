"""A Java that outlives the processes that use it, and so does the Spark in it.

Belongs here: what of `resources.lake.session` is done otherwise for that. The first borrower
starts it as the product does, and whoever has `kept` it holds the end of its standard input, so
that it ends with that. It is begun by a process of its own, which the borrower's death does not
reach. Who ends leaves its Spark to the next that would start one with the same settings; one that
was killed while Java worked for it has it stopped: `reclaim` waits until nothing works for a dead
process any more. Does not: a Java with settings of its own (`[spark]`), which is started as ever.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from resources.lake import session
from resources.lake.jars import S3, class_path, jars_folder
from resources.lake.java import Java
from resources.lake.launch import connected, java_command, spark_home, start_java
from resources.lake.settings import SparkSettings
from tests.uncompiled import UNCOMPILED

_TOLD, _BORROWED, _COMMAND, _KEEPER = "listens", "borrowed", "command", "keeper"
_CONFIGURED = "spark.tests.configured"
_BEGINNING = "beginning"
_LISTEN, _TIME_WAIT = "0A", "06"
PATIENCE = 60
"""Seconds; what is waited for takes one."""
PAUSE = 0.2
"""Seconds in which Java notices that nobody is there any more, unless it works for him."""


@contextmanager
def kept(folder: Path) -> Iterator[None]:
    """Whatever Java is started below `folder` ends behind this."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as keeper:
        keeper.bind(str(folder / _KEEPER))
        yield


NO_CHECKPOINTS = {"spark.databricks.delta.properties.defaults.checkpointInterval": "1000"}
"""A Java's first one, behind a table's tenth commit, costs as much as ten runs. Those that begin
cold have them."""


def compile_nothing() -> None:
    """Have this process's Spark make no Java of its plans, and no checkpoint of a new table."""
    settings_in = session.settings_in

    def uncompiled(scratch: Path, user: Mapping[str, str], *more: Any) -> SparkSettings:
        return settings_in(scratch, {**UNCOMPILED, **NO_CHECKPOINTS, **user}, *more)

    vars(session)["settings_in"] = uncompiled


def lend(folder: Path) -> None:
    """Have this process use the Java of `folder`."""
    begin, end = session._begin, session._end
    wanted = list[SparkSettings]()

    def begin_lent(settings: SparkSettings, java: Java) -> subprocess.Popen[bytes]:
        lasting = _lasting(settings, folder)
        command = java_command(java, spark_home(), lasting.launch(), behind=lasting.behind)
        if not _is_begun(command, lasting, settings.log4j, folder):
            return begin(settings, java)
        wanted[:] = [lasting]
        (folder / _BORROWED).touch()
        (settings.scratch / _TOLD).symlink_to(folder / _TOLD)
        return subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)

    def connect_lent(process: subprocess.Popen[bytes], told: Path) -> Any:
        gateway: Any = connected(process, told)
        if gateway is not None and told.is_symlink():
            gateway.jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()
            # A Java that was just started has asked no store for anything.
            gateway.jvm.org.apache.hadoop.fs.FileSystem.closeAll()
            # The Java is not this process's to shut down.
            vars(gateway)["shutdown"] = lambda *_: None
            _share_spark(wanted[0])
        return gateway

    def end_lent(started: session.Started, patience: float) -> None:
        lent = (started.scratch.folder / _TOLD).is_symlink()
        if lent and not started.session.sparkContext.statusTracker().getActiveJobsIds():
            vars(started.session)["stop"] = lambda: None
        end(started, patience)
        if lent:
            (folder / _BORROWED).unlink()

    vars(session).update(_begin=begin_lent, connected=connect_lent, _end=end_lent)


def _share_spark(settings: SparkSettings) -> None:
    """Whoever asks for a Spark in this process gets the one that was left, if it has these
    settings, and leaves one whose own files are in its folder."""
    from pyspark import SparkContext

    given = settings.all()
    own = {name: given[name] for name in ("spark.local.dir", "spark.sql.warehouse.dir")}
    configured = hashlib.sha256(repr(sorted({**given, **own}.items())).encode()).hexdigest()

    def shared(context: Any, conf: Any) -> Any:
        left = _spark_of(context._jvm)
        if left is not None:
            if left.conf().get(_CONFIGURED) == configured:
                return context._jvm.JavaSparkContext(left)
            left.stop()
        for name, value in {**own, _CONFIGURED: configured}.items():
            conf.set(name, value)
        return context._jvm.JavaSparkContext(conf)

    SparkContext._initialize_context = shared  # type: ignore[assignment, method-assign]


def _spark_of(jvm: Any) -> Any:
    """The Spark of a Java, if there is one."""
    contexts = getattr(getattr(jvm.org.apache.spark, "SparkContext$"), "MODULE$")
    found = contexts.getActive()
    return found.get() if found.isDefined() else None


def is_borrowed(folder: Path) -> bool:
    """Whether somebody that used it did not give it back."""
    return (folder / _BORROWED).exists()


def reclaim(folder: Path) -> None:
    """Wait until nothing works for a borrower that is dead. Where something does, its Spark is
    stopped; one that was in the middle of its beginning is there only then, so it is done twice."""
    with _asked(folder) as gateway:
        idle = _is_idle(gateway, others=1, patience=PAUSE)
    for _ in range(0 if idle else 2):
        _stop_spark(folder)
    (folder / _BORROWED).unlink()


def _stop_spark(folder: Path) -> None:
    """Nothing works for anybody behind this."""
    with _asked(folder) as gateway:
        left = _spark_of(gateway.jvm)
        if left is not None:
            left.stop()
    assert _is_idle(gateway, patience=PATIENCE), "Java still works for a process that is dead"


@contextmanager
def _asked(folder: Path) -> Iterator[Any]:
    """The Java of a folder, by a connection that nobody borrowed."""
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as process:
        gateway: Any = connected(process, folder / _TOLD)
        assert gateway is not None
        try:
            yield gateway
        finally:
            gateway.close()


def _is_idle(gateway: Any, *, others: int = 0, patience: float) -> bool:
    """Whether it is so within so many seconds: connections of `others` are all that is left."""
    until = time.monotonic() + patience
    while _sockets(gateway.gateway_parameters.port) > others:
        if time.monotonic() > until:
            return False
        time.sleep(0.01)
    return True


def _sockets(port: int) -> int:
    """How many connections Java holds there. It closes one when the work that was asked for on it
    is done and its other end is gone."""
    found = 0
    for table in ("/proc/self/net/tcp", "/proc/self/net/tcp6"):
        for line in Path(table).read_text().splitlines()[1:]:
            _, local, _, state, *_ = line.split()
            here = int(local.rpartition(":")[2], 16) == port
            found += here and state not in (_LISTEN, _TIME_WAIT)
    return found


def _lasting(settings: SparkSettings, folder: Path) -> SparkSettings:
    """Those of a Java that does not go with one process's folder, for lakes of both kinds."""
    jars = class_path(jars_folder(sys.prefix), S3)
    log4j = folder / "log4j2.properties"
    return replace(settings, behind=jars, scratch=folder, log4j=log4j)


def _is_begun(command: list[str], settings: SparkSettings, before: Path, folder: Path) -> bool:
    """Whether the Java of `folder` is one with this command: the first that is asked for is, and is
    there wholly or not at all, whenever the process that asks for it dies."""
    with (folder / _BEGINNING).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / _COMMAND).exists():
            # It holds the lock too, until it is done.
            starter = os.fork()
            if not starter:
                try:
                    _start(command, settings, before, folder)
                    (folder / _COMMAND).write_text(repr(command))
                    os._exit(0)
                finally:
                    os._exit(1)
            assert os.waitpid(starter, 0)[1] == 0, "Java did not begin"
        return (folder / _COMMAND).read_text() == repr(command)


def _start(command: list[str], settings: SparkSettings, before: Path, folder: Path) -> None:
    shutil.copyfile(before, settings.log4j)
    with (folder / "spark.log").open("wb") as log:
        process = start_java(command, spark_home(), settings.launch(), folder / _TOLD, log)
    assert process.stdin is not None
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        sender.connect(str(folder / _KEEPER))
        # It lies in the socket, unread, for as long as the socket is there.
        socket.send_fds(sender, [b"."], [process.stdin.fileno()])
    process.returncode = 0  # not this process's to wait for
