"""`dagster dev` as a process of the demo: Dagster's page, and its daemon that starts the demo's
runs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from time import sleep
from typing import TYPE_CHECKING, Final
from urllib.request import urlopen

from demo.tcp import free_port
from lockstep.pipeline.values.errors import ConfigurationError

if TYPE_CHECKING:
    from dagster_graphql import DagsterGraphQLClient

WORKSPACE: Final = Path(__file__).with_name("workspace.yaml")
LOCATION: Final = "lockstep"
_REPOSITORY: Final = "__repository__"
"""Dagster's name for the repository of a location that is one `Definitions`."""

_MAX_SECONDS: Final = 120
"""Longest time until the page answers."""

_POLL_SECONDS: Final = 0.2


@contextmanager
def dagster_dev(config: Path, home: Path) -> Iterator[DagsterGraphQLClient]:
    """Run `dagster dev` for this configuration while the context lasts. Its output goes to a
    file in its home."""
    port, log = free_port(), home / "dev.log"
    command = [sys.executable, "-m", "dagster", "dev", "--host", "127.0.0.1"]
    command += ["--port", str(port), "--workspace", str(WORKSPACE)]
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            cwd=WORKSPACE.parents[1],
            env={**os.environ, "LOCKSTEP_CONFIG": str(config), "DAGSTER_HOME": str(home)},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            process_group=0,  # Ctrl-C ends the demo, which then ends Dagster
        )
    try:
        yield _client_of(process, port, log)
    finally:
        process.send_signal(signal.SIGINT)
        process.wait()


def _client_of(process: subprocess.Popen[bytes], port: int, log: Path) -> DagsterGraphQLClient:
    from dagster_graphql import DagsterGraphQLClient

    address = f"http://127.0.0.1:{port}/server_info"
    for _ in range(int(_MAX_SECONDS / _POLL_SECONDS)):
        if process.poll() is not None:
            break
        with suppress(OSError), urlopen(address, timeout=5):
            return DagsterGraphQLClient("127.0.0.1", port_number=port)
        sleep(_POLL_SECONDS)
    raise ConfigurationError("`dagster dev` does not answer", hint=f"see {log}")


def run_job(client: DagsterGraphQLClient, job: str, config: Path) -> str:
    """Start a run of a job of this configuration, wait for its end and return its id. Raise
    `ConfigurationError` if the run fails."""
    run = client.submit_job_execution(
        job, repository_location_name=LOCATION, repository_name=_REPOSITORY
    )
    while True:
        status = client.get_run_status(run).value
        if status == "SUCCESS":
            return run
        if status in ("FAILURE", "CANCELED"):
            raise ConfigurationError(
                f"Dagster's run {run} did not succeed",
                hint=f"`lockstep --config {config} status` says why",
            )
        sleep(_POLL_SECONDS)
