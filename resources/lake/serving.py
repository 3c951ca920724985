"""Spark Connect's server on this machine, out of the same environment as runs (`lockstep spark
serve`).

The process becomes Java's: who started it stops it, by whatever signal, and there is no second one
to look after. Its settings are in a file that this account alone may read.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import socket
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final, NoReturn

from pipeline.errors import ConfigurationError, SetupIncomplete
from resources.lake.java import java_or_refuse
from resources.lake.launch import settle_environment, spark_home
from resources.lake.paths import LakePath
from resources.lake.server import SparkServer, server_of
from resources.lake.session import jars_for, settings_in
from resources.private import make_private

MAIN: Final = "org.apache.spark.sql.connect.service.SparkConnectServer"
_SPARK_ITSELF: Final = "spark-internal"


def server_to_start(user: Mapping[str, str]) -> SparkServer:
    """What `[spark]` says of it; `ConfigurationError` unless it is for this machine alone, and asks
    who comes for a token: whoever gets a session may do there what this account may."""
    server = server_of(user)
    if server is None:
        raise ConfigurationError(
            "[spark] names no server to start",
            hint='add remote = "sc://127.0.0.1:15002" and token = "file:spark.token" to [spark]',
        )
    if not server.here:
        raise ConfigurationError(
            f"{server} is another machine",
            hint="set remote under [spark] to sc://127.0.0.1:15002, or start Spark there: "
            "docs/deploy.md#where-spark-runs",
        )
    if server.token is None:
        raise ConfigurationError(
            f"{server} would serve every account of this machine with the rights of this one",
            hint="`openssl rand -hex 32 > spark.token && chmod 600 spark.token`, then add "
            'token = "file:spark.token" to [spark] in lockstep.toml',
        )
    return server


def require_free(server: SparkServer) -> None:
    """`ConfigurationError` where somebody listens there already."""
    with suppress(OSError), socket.create_connection(("127.0.0.1", server.port), 5):
        raise ConfigurationError(
            f"Something listens at port {server.port} already",
            hint="if it is this very server, there is nothing to do; else choose another port in "
            "remote under [spark]",
        )


def become_server(user: Mapping[str, str], lake: LakePath, scratch: Path) -> NoReturn:
    """Replace this process by the server; `scratch` is a folder that nobody else uses, emptied.

    `JavaMissing`, `SetupIncomplete`, or `ConfigurationError` where there can be none.
    """
    server = server_to_start(user)
    java_or_refuse(os.environ)
    _, more = jars_for(lake)
    _hold(scratch.with_name(f"{scratch.name}.lock"), server)
    require_free(server)
    shutil.rmtree(scratch, ignore_errors=True)
    make_private(scratch)
    own = {key: value for key, value in user.items() if key.startswith("spark.")}
    settings = settings_in(scratch, own, lake)
    file = scratch / "spark.conf"
    file.touch(0o600)
    served = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(server.port),
        "spark.connect.authenticate.token": server.token or "",
    }
    file.write_text(_properties({**settings.all(), **served}), encoding="utf-8")
    environment = dict(os.environ)
    settle_environment(environment, more)
    submit = spark_home() / "bin" / "spark-submit"
    command = [str(submit), "--properties-file", str(file), "--class", MAIN, _SPARK_ITSELF]
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        os.execve(submit, command, environment)  # noqa: S606 - it becomes the server
    except OSError as error:
        raise SetupIncomplete(f"{submit} does not start", hint="it needs bash") from error


def _hold(lock: Path, server: SparkServer) -> None:
    """Until Java ends, which inherits the open file."""
    make_private(lock.parent)
    descriptor = os.open(lock, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise ConfigurationError(
            f"A server for {server} is running already, or starting", hint="there is nothing to do"
        ) from error
    os.set_inheritable(descriptor, True)


def _properties(settings: Mapping[str, str]) -> str:
    """As Java reads them."""
    escaped = str.maketrans({"\\": "\\\\", "\n": "\\n", "\r": "\\r"})
    return "".join(f"{key}={value.translate(escaped)}\n" for key, value in settings.items())
