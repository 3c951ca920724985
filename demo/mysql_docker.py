"""A MySQL in a Docker container, for hosts that have a Docker engine but no `mysqld`.

The first start creates the container; the end removes it with its data. Stopping and killing it
keep both.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Self

from demo.mysql_search import DockerImage
from demo.tcp import free_port, greets
from lockstep.pipeline.values.errors import SetupIncomplete

START_SECONDS = 120.0


class DockerMySql:
    """A container. Its id is kept in `folder`, so that the next start can remove a leftover."""

    host = "127.0.0.1"
    user = "root"
    password = ""

    def __init__(
        self, image: DockerImage, folder: Path, *, settings: Sequence[str], port: int
    ) -> None:
        self.port = port or free_port()
        self._image = image.image
        self._note = folder / "container"
        # Inside the container the server must listen on its network's address.
        self._settings = tuple(s for s in settings if not s.startswith("--bind-address"))
        self._container: str | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._container is not None:
            self._remove(self._container)
            self._container = None

    def start(self) -> None:
        """Create the container, or start it again, and wait until the server greets clients."""
        if self._container is None:
            self._container = self._make()
        _docker("start", self._container)
        deadline = time.monotonic() + START_SECONDS
        while not greets(self.host, self.port):
            if time.monotonic() > deadline:
                raise SetupIncomplete(
                    f"MySQL in Docker did not answer within {START_SECONDS:.0f} s",
                    hint=f"docker logs {self._container[:12]}",
                )
            time.sleep(0.1)

    def stop(self) -> None:
        if self._container is not None:
            _docker("stop", self._container)

    def kill(self) -> None:
        if self._container is not None:
            _docker("kill", self._container)

    def _make(self) -> str:
        self._note.parent.mkdir(parents=True, exist_ok=True)
        if self._note.exists():
            self._remove(self._note.read_text())
        container = _docker(
            "create",
            "--env=MYSQL_ALLOW_EMPTY_PASSWORD=yes",
            "--env=MYSQL_ROOT_HOST=%",
            f"--publish=127.0.0.1:{self.port}:3306",
            self._image,
            *self._settings,
        )
        self._note.write_text(container)
        return container

    def _remove(self, container: str) -> None:
        # `--force` also ends a running container, and does not fail if there is none.
        _docker("rm", "--force", "--volumes", container)
        self._note.unlink(missing_ok=True)


def _docker(*words: str) -> str:
    done = subprocess.run(["docker", *words], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        last = " ".join(done.stderr.strip().splitlines()[-1:])
        raise SetupIncomplete(
            f"`docker {words[0]}` failed: {last}",
            hint="start the Docker engine, or put mysqld 8.0 or newer on PATH",
        )
    return done.stdout.strip()
