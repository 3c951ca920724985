"""The common parts of benchmarks: a MySQL, project folders, timed processes and calls, and the
tables that they print."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import Any

import pymysql
from pymysql.cursors import Cursor
from rich.console import Console

from benchmarks.floor import PLAIN
from benchmarks.resident import highest_resident_size
from demo.mysql_search import find_mysql
from demo.mysqld import RunningMySql, mysql_server
from lockstep.pipeline.run.context import RunPorts
from lockstep.pipeline.run.progress import SilentProgress
from lockstep.pipeline.values.position import Coordinates
from lockstep.resources.adapters import Adapters
from lockstep.resources.config import load_settings
from lockstep.resources.lake.spark.jars import class_path, jars_folder
from lockstep.resources.lake.spark.log_store import FILE_LOG_STORE_SETTING
from lockstep.resources.lake.spark.session import settings_in
from lockstep.resources.mysql.connection import ConnectionSettings
from lockstep.resources.mysql.server import MySqlServer
from tests.twins.lake import MemoryLake
from tests.twins.mirrors import MemoryMirrors

REPOSITORY = Path(__file__).resolve().parents[1]
DATABASE = "bench"
LOCKSTEP = (sys.executable, "-m", "lockstep.cli")


@dataclass(frozen=True, slots=True)
class BenchServer:
    """A server and a scratch folder, which is deleted after the benchmark."""

    server: RunningMySql
    folder: Path

    def connect(self) -> pymysql.Connection[Cursor]:
        return pymysql.connect(
            host=self.server.host,
            port=self.server.port,
            user=self.server.user,
            password=self.server.password,
            autocommit=True,
        )

    def execute(self, *statements: str) -> None:
        with self.connect() as connection, connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)

    def connection_settings(self) -> ConnectionSettings:
        """Return how readers connect to the server: on the loopback interface, unencrypted."""
        server = self.server
        return ConnectionSettings(server.host, server.port, server.user, server.password, tls="off")

    def log_end(self) -> Coordinates:
        """Return the present end of the log."""
        return MySqlServer(self.connection_settings()).facts().head

    def log_bytes(self, start: Coordinates, end: Coordinates) -> int:
        """Return the bytes of the log between two places, over all files."""
        files = MySqlServer(self.connection_settings()).facts().binlogs
        numbers = range(start.file.number, end.file.number)
        full_files = sum(log.size for log in files if log.file.number in numbers)
        return full_files - start.offset + end.offset

    def make_project(self, name: str, tables: str) -> Path:
        """Create a folder with a lockstep.toml that follows `tables` from the present end of the
        log."""
        folder = self.folder / name
        folder.mkdir()
        (folder / "lockstep.toml").write_text(
            '[lake]\npath = "lake"\n[ledger]\ndsn = "embedded"\n[[sources]]\nname = "bench"\n'
            f'host = "{self.server.host}"\nport = {self.server.port}\n'
            f'user = "{self.server.user}"\npassword = "env:BENCH_PASSWORD"\ntls = "off"\n'
            f'tables = ["{tables}"]\nstart = "{self.log_end()}"\n'
        )
        return folder

    @property
    def secret_variables(self) -> dict[str, str]:
        """Return the variable that a project's lockstep.toml refers to."""
        return {"BENCH_PASSWORD": self.server.password}

    @contextmanager
    def ports(self, name: str, tables: str) -> Iterator[tuple[RunPorts, Path]]:
        """Yield what a run works with, and its new project folder. Mirrors are in memory."""
        os.environ.update(self.secret_variables)
        project = self.make_project(name, tables)
        with Adapters(load_settings(project / "lockstep.toml"), on_warning=print) as adapters:
            mirrors = MemoryMirrors(MemoryLake())
            yield replace(adapters.ports("bench", SilentProgress()), mirrors=mirrors), project

    def measure_run(self, folder: Path) -> tuple[float, dict[str, Any]]:
        """Run `lockstep run` in a new process; return wall seconds and its report."""
        seconds, output = run_timed([*LOCKSTEP, "run", "--json"], folder, self.secret_variables)
        return seconds, json.loads(output)

    def measure_capture(self, folder: Path) -> dict[str, Any]:
        """Capture in a new process without Spark; return `capturing.CaptureCost`."""
        command = [sys.executable, "-m", "benchmarks.capturing"]
        return dict(json.loads(run_timed(command, folder, self.secret_variables)[1]))

    def floor_seconds(
        self, conf: dict[str, str], mode: str, segments: str, table: Path, key: str
    ) -> float:
        """Return wall seconds of the bare script on the same segments."""
        file = self.folder / "floor.json"
        file.write_text(json.dumps(conf))
        command = [sys.executable, "-m", "benchmarks.floor", str(file), mode, segments]
        return run_timed([*command, str(table), key], self.folder, {})[0]


def plain_spark_settings() -> dict[str, str]:
    """Return the Spark settings that anybody would write into a script."""
    jars = ",".join(map(str, class_path(jars_folder(sys.prefix))))
    return {**PLAIN, "spark.jars": jars}


def product_spark_settings(scratch: Path) -> dict[str, str]:
    """Return the product's own Spark settings without its log store, so that the
    remaining difference is Lockstep's own cost."""
    settings = settings_in(scratch, {}, None).configuration()
    del settings[FILE_LOG_STORE_SETTING]
    return settings


def process_environment(variables: dict[str, str]) -> dict[str, str]:
    """Return the environment variables of a process that works with this repository."""
    return {**os.environ, "PYTHONPATH": str(REPOSITORY), **variables}


def env_number(variable: str, default: int) -> int:
    """Return the number that an environment variable asks for."""
    return int(os.environ.get(variable, str(default)))


def seconds_of(work: Callable[[], object]) -> float:
    """Return the wall seconds of a call."""
    timer_start = perf_counter()
    work()
    return perf_counter() - timer_start


def run_timed(
    command: Sequence[str], folder: Path, variables: dict[str, str], stdin: str = ""
) -> tuple[float, str]:
    """Return wall seconds and standard output of a process. It receives the standard input and
    further variables. If it fails, print its error output."""
    timer_start = perf_counter()
    process = subprocess.run(
        command,
        cwd=folder,
        env=process_environment(variables),
        capture_output=True,
        text=True,
        check=False,
        input=stdin,
    )
    if process.returncode != 0:
        raise SystemExit(f"{' '.join(command)} ended with {process.returncode}:\n{process.stderr}")
    return perf_counter() - timer_start, process.stdout


_POLL_SECONDS = 0.1


def run_with_peak_memory(
    command: Sequence[str], folder: Path, variables: dict[str, str], code: int = 0
) -> tuple[float, str, int]:
    """Return wall seconds, standard output and highest resident size, without child processes,
    of a process that must end with this code."""
    timer_start, peak = perf_counter(), 0
    with (
        (folder / "out").open("w+") as out,
        (folder / "err").open("w+") as err,
        subprocess.Popen(
            command, cwd=folder, env=process_environment(variables), stdout=out, stderr=err
        ) as process,
    ):
        while process.poll() is None:
            peak = max(peak, highest_resident_size(process.pid))
            try:
                process.wait(_POLL_SECONDS)
            except subprocess.TimeoutExpired:
                continue
        seconds = perf_counter() - timer_start
        for file in (out, err):
            file.seek(0)
        if process.returncode != code:
            raise SystemExit(f"{' '.join(command)} ended with {process.returncode}:\n{err.read()}")
        return seconds, out.read(), peak


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """Yield a folder, which is deleted afterwards."""
    with tempfile.TemporaryDirectory(prefix="lockstep-bench-") as folder:
        yield Path(folder)


@contextmanager
def bench_server(options: Sequence[str] = ()) -> Iterator[BenchServer]:
    """Yield a new server with these mysqld options and an empty database `bench`."""
    mysql = find_mysql(os.environ)
    with (
        scratch_folder() as folder,
        mysql_server(mysql, folder / "mysql", os.environ, options=options) as server,
    ):
        place = BenchServer(server, folder)
        place.execute(
            f"drop database if exists {DATABASE}",
            f"create database {DATABASE} character set utf8mb4",
        )
        yield place


# -- printing ------------------------------------------------------------------------------------


class Lines:
    """A Markdown table that is printed line by line, because a benchmark of many minutes may end
    early. Its title, heads and alignment are printed at once; its first `texts` columns are texts,
    the other columns are numbers."""

    def __init__(
        self, console: Console, title: str, columns: Sequence[str], *, texts: int = 1
    ) -> None:
        self._console = console
        self._print(f"\n{title}\n")
        self.add(*columns)
        self.add(*["---"] * texts, *["---:"] * (len(columns) - texts))

    def add(self, *cells: str) -> None:
        self._print(f"| {' | '.join(cells)} |")

    def _print(self, line: str) -> None:
        self._console.print(line, markup=False, soft_wrap=True)
        self._console.file.flush()
