"""A Java that outlives the processes that use it, and so does the Spark in it.

Belongs here: what of `resources.lake.spark.session` is done otherwise for that. The first borrower
starts it as the product does, and whoever has `kept` it holds the end of its standard input, so
that it ends with that. It is begun by a process of its own, which the borrower's death does not
reach. Who ends leaves its Spark to the next that would start one with the same settings; one that
was killed while Java worked for it has it stopped: `reclaim` waits until nothing works for a dead
process any more. Does not: a Java with settings of its own (`[spark]`), which is started as ever.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import socket
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from py4j.clientserver import ClientServer, JavaParameters, PythonParameters
from py4j.java_gateway import java_import
from pyspark import SparkConf
from pyspark.java_gateway import launch_gateway

from lockstep.resources.lake.spark import session
from lockstep.resources.lake.spark.jars import S3_LOCK, class_path, jars_folder
from lockstep.resources.lake.spark.session import define_environment
from lockstep.resources.lake.spark.settings import SparkSettings
from tests.uncompiled import UNCOMPILED

_TOLD, _BORROWED, _COMMAND, _KEEPER = "listens", "borrowed", "command", "keeper"
_CONFIGURED = "spark.tests.configured"
_BEGINNING = "beginning"
_LISTEN, _TIME_WAIT = "0A", "06"
_IMPORTED = (
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
"""What pyspark names without its package (`launch_gateway` of pyspark 4.2)."""
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
    start, end = session.JAVA.start, session._stop_spark

    def start_lent(settings: SparkSettings) -> Any:
        lasting = _lasting(settings, folder)
        if not _is_begun(lasting, settings.log4j, folder):
            return start(settings)
        (folder / _BORROWED).touch()
        gateway = connected(folder / _TOLD)
        gateway.jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()
        # A Java that was just started has asked no store for anything.
        gateway.jvm.org.apache.hadoop.fs.FileSystem.closeAll()
        _share_spark(lasting)
        return gateway

    def end_lent(started: session.RunningSpark) -> None:
        lent = (folder / _BORROWED).exists()
        if lent and not started.session.sparkContext.statusTracker().getActiveJobsIds():
            vars(started.session)["stop"] = lambda: None
        end(started)
        if lent:
            (folder / _BORROWED).unlink()

    vars(session)["_stop_spark"] = end_lent
    vars(session.JAVA)["start"] = start_lent


def connected(told: Path) -> Any:
    """The way to talk to a Java that listens where the file says, as `launch_gateway` makes it."""
    port, secret = json.loads(told.read_text())
    gateway: Any = ClientServer(
        java_parameters=JavaParameters(port=port, auth_token=secret, auto_convert=True),
        python_parameters=PythonParameters(port=0, eager_load=False),
    )
    for names in _IMPORTED:
        java_import(gateway.jvm, names)
    return gateway


def _share_spark(settings: SparkSettings) -> None:
    """Whoever asks for a Spark in this process gets the one that was left, if it has these
    settings, and leaves one whose own files are in its folder."""
    from pyspark import SparkContext

    given = settings.configuration()
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
    gateway = connected(folder / _TOLD)
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
    """Those of a Java that does not go with one process's folder."""
    return replace(settings, scratch=folder, log4j=folder / "log4j2.properties")


def _is_begun(settings: SparkSettings, before: Path, folder: Path) -> bool:
    """Whether the Java of `folder` is one with these settings: the first that is asked for is, and
    is there wholly or not at all, whenever the process that asks for it dies."""
    asked = repr(sorted(settings.command_line_settings().items()))
    with (folder / _BEGINNING).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / _COMMAND).exists():
            # It holds the lock too, until it is done.
            starter = os.fork()
            if not starter:
                try:
                    _start(settings, before, folder)
                    (folder / _COMMAND).write_text(asked)
                    os._exit(0)
                finally:
                    os._exit(1)
            assert os.waitpid(starter, 0)[1] == 0, "Java did not begin"
        return (folder / _COMMAND).read_text() == asked


def _start(settings: SparkSettings, before: Path, folder: Path) -> None:
    """With the jars for lakes of both kinds."""
    shutil.copyfile(before, settings.log4j)
    define_environment(os.environ, class_path(jars_folder(sys.prefix), S3_LOCK))
    conf = SparkConf(loadDefaults=False).setAll(list(settings.command_line_settings().items()))
    with (folder / "spark.log").open("wb") as log:
        start: Callable[..., Any] = launch_gateway
        gateway = start(conf, {"stdout": log, "stderr": log, "process_group": 0})
    parameters = gateway.java_parameters
    (folder / _TOLD).write_text(json.dumps([parameters.port, parameters.auth_token]))
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        sender.connect(str(folder / _KEEPER))
        # It lies in the socket, unread, for as long as the socket is there.
        socket.send_fds(sender, [b"."], [gateway.proc.stdin.fileno()])
