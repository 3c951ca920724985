"""An object store on the loopback interface that counts its requests: moto's server as a
process."""

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

from lockstep.pipeline.values.retries import SPARK
from lockstep.resources.lake.store.paths import ObjectPath, object_path

BUCKET: Final = "bench"


@dataclass(frozen=True, slots=True)
class Store:
    """A running store; its `log` has a line for each request."""

    port: int
    log: Path

    @property
    def options(self) -> dict[str, str]:
        """Return `[lake.options]` with literal secrets."""
        return {
            "endpoint": f"http://127.0.0.1:{self.port}",
            "region": "us-east-1",
            "access_key_id": "bench",
            "secret_access_key": "bench",
            "allow_http": "true",
        }

    def move_lake_of(self, project: Path) -> None:
        """Move the lake of a project from a folder to a prefix of this store."""
        (project / "store.key").write_text("bench")
        secrets = dict.fromkeys(("access_key_id", "secret_access_key"), "file:store.key")
        options = [f'{name} = "{value}"' for name, value in {**self.options, **secrets}.items()]
        lake = f'path = "s3://{BUCKET}/{project.name}"\noptions = {{ {", ".join(options)} }}\n'
        file = project / "lockstep.toml"
        file.write_text(file.read_text().replace('path = "lake"\n', lake))

    def lake(self, prefix: str) -> ObjectPath:
        return object_path(f"s3://{BUCKET}/{prefix}", self.options)

    def requests(self) -> int:
        """Return the number of requests so far."""
        return self.log.read_text().count(' HTTP/1.1"')


@contextmanager
def object_store(folder: Path) -> Iterator[Store]:
    """Yield a running store with its bucket, which is in memory."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
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
        with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as connection:
            connection.request("PUT", f"/{BUCKET}")
            connection.getresponse().read()
        yield store
    finally:
        process.kill()
        process.wait()
