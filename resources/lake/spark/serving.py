"""The Spark Connect server that `lockstep spark serve` starts on this machine.

The process replaces itself with Java (exec), so that a signal to it stops the server,
and there is no child process to supervise. The server has the same environment as runs.
Its settings, among them the token, are in a file that only this account can read.
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

from lockstep.pipeline.values.errors import ConfigurationError, SetupIncomplete
from lockstep.resources.lake.spark.java import require_java
from lockstep.resources.lake.spark.remote import SparkServer, configured_server
from lockstep.resources.lake.spark.session import (
    define_environment,
    settings_in,
    spark_home,
)
from lockstep.resources.lake.store.paths import LakePath
from lockstep.resources.private import make_private

_ADDRESS: Final = "127.0.0.1"
"""The only address at which the server listens."""

_MAIN_CLASS: Final = "org.apache.spark.sql.connect.service.SparkConnectServer"
_SPARK_INTERNAL: Final = "spark-internal"
"""The argument of spark-submit instead of a jar if the class is one of Spark's own."""


def server_to_start(user_settings: Mapping[str, str]) -> SparkServer:
    """Return the server that `[spark]` names. Raise `ConfigurationError` unless it
    listens only on this machine and requires a token: whoever gets a session has the
    rights of this account."""
    server = configured_server(user_settings)
    if server is None:
        raise ConfigurationError(
            "[spark] names no server to start",
            hint='add remote = "sc://127.0.0.1:15002" and token = "file:spark.token" to [spark]',
        )
    if not server.is_loopback:
        raise ConfigurationError(
            f"{server} is on another machine",
            hint="set remote under [spark] to sc://127.0.0.1:15002, or start Spark there: "
            "docs/deploy.md#where-spark-runs",
        )
    if server.host.lower() not in (_ADDRESS, "localhost"):
        raise ConfigurationError(
            f"{server} is an address of this machine at which no server is started",
            hint=f"set remote under [spark] to sc://{_ADDRESS}:{server.port}",
        )
    if not server.token:
        raise ConfigurationError(
            f"{server} would serve every account of this machine with the rights of this one",
            hint="run `openssl rand -hex 32 > spark.token && chmod 600 spark.token`, then add "
            'token = "file:spark.token" to [spark] in lockstep.toml',
        )
    return server


def require_free_port(server: SparkServer) -> None:
    """Raise `ConfigurationError` if a process already listens on the server's port."""
    with suppress(OSError), socket.create_connection((_ADDRESS, server.port), 5):
        raise ConfigurationError(
            f"A process listens at port {server.port} already",
            hint="do nothing if it is this server; otherwise choose another port in remote under "
            "[spark]",
        )


def become_server(user_settings: Mapping[str, str], lake: LakePath, scratch: Path) -> NoReturn:
    """Replace this process with the server. `scratch` is a folder that only the server
    uses; its content is deleted first. Raise `JavaMissing`, `SetupIncomplete` or
    `ConfigurationError` if the server cannot start."""
    server = server_to_start(user_settings)
    assert server.token is not None, "server_to_start requires a token"
    require_java(os.environ)
    _take_lock(scratch.with_name(f"{scratch.name}.lock"), server)
    require_free_port(server)
    shutil.rmtree(scratch, ignore_errors=True)
    make_private(scratch)
    spark_settings = {
        key: value for key, value in user_settings.items() if key.startswith("spark.")
    }
    settings = settings_in(scratch, spark_settings, lake)
    file = scratch / "spark.conf"
    file.touch(0o600)
    server_settings = {
        "spark.connect.grpc.binding.address": _ADDRESS,
        "spark.connect.grpc.binding.port": str(server.port),
        "spark.connect.authenticate.token": server.token,
    }
    file.write_text(_properties({**settings.configuration(), **server_settings}), encoding="utf-8")
    environment = dict(os.environ)
    define_environment(environment, settings.last_jars)
    submit = spark_home() / "bin" / "spark-submit"
    command = [str(submit), "--properties-file", str(file), "--class", _MAIN_CLASS, _SPARK_INTERNAL]
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        os.execve(submit, command, environment)  # noqa: S606 - it becomes the server
    except OSError as error:
        hint = "install bash, which it needs"
        raise SetupIncomplete(f"{submit} does not start", hint=hint) from error


def _take_lock(lock: Path, server: SparkServer) -> None:
    """Take the lock, or raise `ConfigurationError` if another server holds it. Java
    inherits the open file, so the lock is held until Java ends."""
    make_private(lock.parent)
    descriptor = os.open(lock, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise ConfigurationError(
            f"A server for {server} is already running or starting", hint="use that one"
        ) from error
    os.set_inheritable(descriptor, True)


def _properties(settings: Mapping[str, str]) -> str:
    """Return settings in the format of Java's properties files."""
    escaped = str.maketrans({"\\": "\\\\", "\n": "\\n", "\r": "\\r"})
    return "".join(f"{key}={value.translate(escaped)}\n" for key, value in settings.items())
