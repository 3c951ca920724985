"""Catalogs to register in: a Hive metastore of pyspark's own jars, in a process of its own from the
first test that needs it on, and a Unity Catalog where one is given.
"""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from xml.sax.saxutils import escape

import pytest

from demo.mysqld import ENDS_WITH_STARTER
from lockstep.resources.lake.spark.java import require_java
from tests.fix_connect import free_port

UNITY = "LOCKSTEP_TEST_UNITY"
"""The address of a Unity Catalog that tests may write to."""

_MAIN = "org.apache.hadoop.hive.metastore.HiveMetaStore"
_PATIENCE = 120.0


@pytest.fixture(scope="session")
def metastore(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Its address; an embedded Derby keeps what is in it."""
    folder = tmp_path_factory.mktemp("metastore")
    port = free_port()
    settings = {
        "javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={folder}/meta;create=true",
        "datanucleus.schema.autoCreateAll": "true",
        "hive.metastore.schema.verification": "false",
        "hive.metastore.warehouse.dir": str(folder / "warehouse"),
        "hive.async.log.enabled": "false",
    }
    lines = (
        f"<property><name>{name}</name><value>{escape(value)}</value></property>"
        for name, value in settings.items()
    )
    (folder / "hive-site.xml").write_text(f"<configuration>{''.join(lines)}</configuration>")
    found = find_spec("pyspark")
    assert found is not None and found.origin is not None, "pyspark is a dependency"
    jars = Path(found.origin).parent / "jars"
    java = str(require_java(os.environ).program)
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [
                *ENDS_WITH_STARTER,
                *(java, "-Xmx512m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"),
                *("-cp", f"{folder}:{jars}/*", _MAIN, "-p", str(port)),
            ],
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
        )
    try:
        _until_it_listens(process, port)
        yield f"thrift://127.0.0.1:{port}"
    finally:
        with process:
            process.kill()


def _until_it_listens(process: subprocess.Popen[bytes], port: int) -> None:
    until = time.monotonic() + _PATIENCE
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            assert process.poll() is None, "the metastore ended"
            assert time.monotonic() < until, "the metastore does not listen"
            time.sleep(0.2)
        else:
            return


@pytest.fixture(scope="session")
def unity() -> str:
    """The address of a real server."""
    address = os.environ.get(UNITY)
    if address is None:
        pytest.skip(f"no Unity Catalog: {UNITY} is not set")
    return address
