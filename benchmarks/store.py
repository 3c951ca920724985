"""An object store on loopback, and how often it was asked.

Belongs here: moto's server in a process of its own. Does not: faults, which tests put before one.
"""

from __future__ import annotations

import http.client
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pipeline.retries import SPARK
from resources.lake.paths import ObjectPath, object_path

BUCKET: Final = "bench"


@dataclass(frozen=True, slots=True)
class Store:
    """Where it listens; `log` has a line for each request."""

    port: int
    log: Path

    @property
    def options(self) -> dict[str, str]:
        """`[lake.options]`, the secrets as they are."""
        return {
            "endpoint": f"http://127.0.0.1:{self.port}",
            "region": "us-east-1",
            "access_key_id": "bench",
            "secret_access_key": "bench",
            "allow_http": "true",
        }

    def put_lake_of(self, project: Path) -> None:
        """The project's lake, which was a folder, is a prefix of this store."""
        (project / "store.key").write_text("bench")
        secrets = dict.fromkeys(("access_key_id", "secret_access_key"), "file:store.key")
        options = [f'{name} = "{value}"' for name, value in {**self.options, **secrets}.items()]
        lake = f'path = "s3://{BUCKET}/{project.name}"\noptions = {{ {", ".join(options)} }}\n'
        file = project / "lockstep.toml"
        file.write_text(file.read_text().replace('path = "lake"\n', lake))

    def lake(self, prefix: str) -> ObjectPath:
        return object_path(f"s3://{BUCKET}/{prefix}", self.options)

    def requests(self) -> int:
        """So far."""
        return self.log.read_text().count(' HTTP/1.1"')


@contextmanager
def object_store(folder: Path) -> Iterator[Store]:
    """Running, with its bucket; everything in it is in memory."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    store = Store(port, folder / "store.log")
    with store.log.open("w") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)],
            stdout=log,
            stderr=log,
        )
    try:
        for _ in SPARK.tries():
            with suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                break
        with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as asked:
            asked.request("PUT", f"/{BUCKET}")
            asked.getresponse().read()
        yield store
    finally:
        process.kill()
        process.wait()
