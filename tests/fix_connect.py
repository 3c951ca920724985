"""A server of Spark Connect for the tests: `lockstep spark serve` in a project of its own, one in a
worker, from the first test that needs it.

PySpark's functions belong to one kind of Spark at a time, by a variable of the process: a test that
asks for `connect_mode` or `connect` has no other.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from demo.mysqld import ENDS_WITH_STARTER
from lockstep.pipeline.values.retries import SPARK
from lockstep.resources.lake.spark.remote import RemoteSpark, SparkServer
from tests.e2e.project import environment
from tests.uncompiled import UNCOMPILED

_REMOTE = "SPARK_CONNECT_MODE_ENABLED"


@dataclass(frozen=True, slots=True)
class ConnectServer:
    """Where it is, and its process."""

    server: SparkServer
    process: subprocess.Popen[bytes]

    def toml(self) -> str:
        """The `[spark]` table of a project that uses it."""
        return f'[spark]\nremote = "{self.server}"\ntoken = "env:SPARK_TOKEN"\n'

    def remote(self, lake: Path, staging: Path) -> RemoteSpark:
        """It for a lake; whoever asks stops it."""
        return RemoteSpark(self.server, {}, lake=lake, staging=staging)


def serve(folder: Path) -> ConnectServer:
    """Begin one in an empty folder; it answers."""
    server = SparkServer("127.0.0.1", free_port(), token="of-tests")
    folder.mkdir(parents=True, exist_ok=True)
    more = "".join(f'"{name}" = "{value}"\n' for name, value in UNCOMPILED.items())
    (folder / "lockstep.toml").write_text(
        f'[spark]\nremote = "{server}"\ntoken = "env:SPARK_TOKEN"\n"spark.driver.memory" = "1g"\n'
        f'{more}[[sources]]\nname = "shop"\nhost = "127.0.0.1"\nport = 3306\nuser = "u"\n'
        'password = "env:LOCKSTEP_TEST_PASSWORD"\ntls = "off"\ntables = ["shop.*"]\n'
    )
    with (folder / "said").open("wb") as said:
        process = subprocess.Popen(
            [*ENDS_WITH_STARTER, sys.executable, "-m", "lockstep.cli", "spark", "serve"],
            cwd=folder,
            env=environment(SPARK_TOKEN="of-tests"),
            stdin=subprocess.PIPE,
            stdout=said,
            stderr=said,
        )
    for _ in SPARK.tries():
        with suppress(OSError), socket.create_connection(("127.0.0.1", server.port)):
            return ConnectServer(server, process)
        assert process.poll() is None, (folder / "said").read_text()
    raise AssertionError((folder / "said").read_text())


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@pytest.fixture(scope="session")
def connect_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConnectServer]:
    """The server of this process."""
    begun = serve(tmp_path_factory.mktemp("connect") / "project")
    yield begun
    with begun.process:
        begun.process.terminate()


@pytest.fixture
def connect_mode() -> Iterator[None]:
    """PySpark's functions are those of Connect, until the end of the test."""
    os.environ[_REMOTE] = "1"
    yield
    os.environ.pop(_REMOTE, None)


@pytest.fixture
def connect(
    connect_server: ConnectServer, connect_mode: None, tmp_path: Path
) -> Iterator[RemoteSpark]:
    """The server, for the lake and the staging folder of a test."""
    spark = connect_server.remote(tmp_path / "lake", tmp_path / "staging")
    yield spark
    spark.stop()
