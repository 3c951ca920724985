"""An S3 on loopback for the tests: moto (`tests.lake.object_server`) in a process of its own, from
the first test that needs it on.

Its port is known before, so that the one Spark of a worker can be told of it as it starts.
"""

from __future__ import annotations

import http.client
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from uuid import uuid4

import pytest

from demo.mysqld import ENDS_WITH_STARTER
from lockstep.resources.lake.store.paths import ObjectPath, object_path

BUCKET = "lake"
FAULTY = "faulty"
"""A bucket that is reached by way of `Faults`."""


@dataclass(frozen=True, slots=True)
class ObjectStore:
    """Where it listens once it runs, and where `Faults` does."""

    port: int
    faulty_port: int

    def options(self, port: int | None = None) -> dict[str, str]:
        """`[lake.options]`."""
        return {
            "endpoint": f"http://127.0.0.1:{port or self.port}",
            "region": "us-east-1",
            "access_key_id": "tests",
            "secret_access_key": "tests",
            "allow_http": "true",
        }

    def toml(self) -> str:
        """The same as it is written down, behind `Faults`, its secrets by reference."""
        told = self.options(self.faulty_port)
        secrets = dict.fromkeys(("access_key_id", "secret_access_key"), "env:LAKE_KEY")
        lines = [f'{name} = "{value}"' for name, value in {**told, **secrets}.items()]
        return f"options = {{ {', '.join(lines)} }}\n"

    def prefix(self, **more: str) -> ObjectPath:
        """A place where nothing is yet."""
        return object_path(f"s3://{BUCKET}/{uuid4().hex}", {**self.options(), **more})

    def faulty_prefix(self) -> ObjectPath:
        """A place behind `Faults`."""
        return object_path(f"s3://{FAULTY}/{uuid4().hex}", self.options(self.faulty_port))

    def begin_upload(self, path: ObjectPath) -> None:
        """In parts, as whoever is killed then leaves it."""
        self.ask("POST", f"/{BUCKET}/{path.key}?uploads")

    def uploads(self) -> list[str]:
        """The keys of those that nobody finished."""
        return re.findall("<Key>(.*?)</Key>", self.ask("GET", f"/{BUCKET}?uploads"))

    def ask(self, method: str, path: str) -> str:
        """A request without a signature, which this store does not miss."""
        with closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)) as asked:
            asked.request(method, path)
            answered = asked.getresponse()
            assert answered.status == 200
            return answered.read().decode()

    def spark_conf(self) -> dict[str, str]:
        """What Spark is told of the bucket behind `Faults`."""
        name = f"spark.hadoop.fs.s3a.bucket.{FAULTY}.endpoint"
        return {name: f"http://127.0.0.1:{self.faulty_port}"}


@pytest.fixture(scope="session")
def object_address() -> ObjectStore:
    """Where it will listen."""
    with socket.socket() as one, socket.socket() as other:
        for listener in (one, other):
            listener.bind(("127.0.0.1", 0))
        return ObjectStore(one.getsockname()[1], other.getsockname()[1])


@pytest.fixture(scope="session")
def object_store(object_address: ObjectStore) -> Iterator[ObjectStore]:
    """Running, with its bucket."""
    port, faulty_port = str(object_address.port), str(object_address.faulty_port)
    server = _started("tests.lake.object_server", port)
    faults = _started("tests.lake.faults", faulty_port, port)
    try:
        for bucket in (BUCKET, FAULTY):
            _make_bucket(bucket, object_address, server)
        yield object_address
    finally:
        for process in (server, faults):
            with process:
                os.killpg(process.pid, signal.SIGKILL)


def _started(module: str, *arguments: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [*ENDS_WITH_STARTER, sys.executable, "-m", module, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def _make_bucket(bucket: str, store: ObjectStore, server: subprocess.Popen[bytes]) -> None:
    for _ in range(600):
        assert server.poll() is None, "moto's server ended"
        try:
            store.ask("PUT", f"/{bucket}")
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise TimeoutError("moto's server did not listen")
