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
from importlib.resources import files
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
from lockstep.pipeline.run.context import SilentProgress, Workplace
from lockstep.pipeline.values.position import Coordinates
from lockstep.resources.adapters import Adapters
from lockstep.resources.config import load_settings
from lockstep.resources.lake.spark import log_store
from lockstep.resources.lake.spark.jars import class_path, jars_folder
from lockstep.resources.lake.spark.java import archive_path, require_java
from lockstep.resources.lake.spark.settings import SparkSettings
from lockstep.resources.mysql.connection import ConnectionSettings
from lockstep.resources.mysql.server import MySqlServer
from tests.twins.lake import MemoryLake
from tests.twins.mirrors import MemoryMirrors

REPOSITORY = Path(__file__).resolve().parents[1]
DATABASE = "bench"
LOCKSTEP = (sys.executable, "-m", "lockstep.cli")


@dataclass(frozen=True, slots=True)
class Ground:
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

    def settings(self) -> ConnectionSettings:
        """Return how readers connect to the server: on the loopback interface, unencrypted."""
        server = self.server
        return ConnectionSettings(server.host, server.port, server.user, server.password, tls="off")

    def head(self) -> Coordinates:
        """Return the present end of the log."""
        return MySqlServer(self.settings()).facts().head

    def log_bytes(self, start: Coordinates, end: Coordinates) -> int:
        """Return the bytes of the log between two places, over all files."""
        files = MySqlServer(self.settings()).facts().binlogs
        numbers = range(start.file.number, end.file.number)
        whole = sum(log.size for log in files if log.file.number in numbers)
        return whole - start.offset + end.offset

    def project(self, name: str, tables: str) -> Path:
        """Create a folder with a lockstep.toml that follows `tables` from the present end of the
        log."""
        folder = self.folder / name
        folder.mkdir()
        (folder / "lockstep.toml").write_text(
            '[lake]\npath = "lake"\n[ledger]\ndsn = "embedded"\n[[sources]]\nname = "bench"\n'
            f'host = "{self.server.host}"\nport = {self.server.port}\n'
            f'user = "{self.server.user}"\npassword = "env:BENCH_PASSWORD"\ntls = "off"\n'
            f'tables = ["{tables}"]\nstart = "{self.head()}"\n'
        )
        return folder

    @property
    def secret(self) -> dict[str, str]:
        """Return the variable that a project's lockstep.toml refers to."""
        return {"BENCH_PASSWORD": self.server.password}

    @contextmanager
    def workplace(self, name: str, tables: str) -> Iterator[tuple[Workplace, Path]]:
        """Yield what a run works with, and its new project folder. Mirrors are in memory."""
        os.environ.update(self.secret)
        project = self.project(name, tables)
        with Adapters(load_settings(project / "lockstep.toml"), on_warning=print) as adapters:
            mirrors = MemoryMirrors(MemoryLake())
            yield replace(adapters.workplace("bench", SilentProgress()), mirrors=mirrors), project

    def run(self, folder: Path) -> tuple[float, dict[str, Any]]:
        """Run `lockstep run` in a new process; return wall seconds and its report."""
        seconds, output = timed([*LOCKSTEP, "run", "--json"], folder, self.secret)
        return seconds, json.loads(output)

    def capture(self, folder: Path) -> dict[str, Any]:
        """Capture in a new process without Spark; return `capturing.Captured`."""
        command = [sys.executable, "-m", "benchmarks.capturing"]
        return dict(json.loads(timed(command, folder, self.secret)[1]))

    def floor(self, conf: dict[str, str], mode: str, segments: str, table: Path, key: str) -> float:
        """Return wall seconds of the bare script on the same segments."""
        file = self.folder / "floor.json"
        file.write_text(json.dumps(conf))
        command = [sys.executable, "-m", "benchmarks.floor", str(file), mode, segments]
        return timed([*command, str(table), key], self.folder, {})[0]


def plain() -> dict[str, str]:
    """Return the Spark settings that anybody would write into a script."""
    jars = ",".join(map(str, class_path(jars_folder(sys.prefix))))
    return {**PLAIN, "spark.jars": jars}


def tuned(scratch: Path) -> dict[str, str]:
    """Return the product's own Spark settings with its log store, so that the remaining
    difference is Lockstep's own cost."""
    jars = (*class_path(jars_folder(sys.prefix)), log_store.log_store_jar())
    log4j = scratch / "log4j2.properties"
    log4j.write_bytes(
        files("lockstep.resources.lake.spark").joinpath("log4j2.properties").read_bytes()
    )
    settings = SparkSettings(
        user_settings={},
        class_path=jars,
        archive=archive_path(jars_folder(sys.prefix), jars, require_java(os.environ)),
        log4j=log4j,
        scratch=scratch,
        cores=os.cpu_count() or 1,
        memory_bytes=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
    ).configuration()
    return {
        name: value for name, value in settings.items() if name != log_store.FILE_LOG_STORE_SETTING
    }


def environment(more: dict[str, str]) -> dict[str, str]:
    """Return the environment variables of a process that works with this repository."""
    return {**os.environ, "PYTHONPATH": str(REPOSITORY), **more}


def size(variable: str, default: int) -> int:
    """Return the number that an environment variable asks for."""
    return int(os.environ.get(variable, str(default)))


def seconds_of(work: Callable[[], object]) -> float:
    """Return the wall seconds of a call."""
    clock = perf_counter()
    work()
    return perf_counter() - clock


def timed(
    command: Sequence[str], folder: Path, more: dict[str, str], stdin: str = ""
) -> tuple[float, str]:
    """Return wall seconds and standard output of a process. It receives the standard input and
    further variables. If it fails, print its error output."""
    clock = perf_counter()
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment(more),
        capture_output=True,
        text=True,
        check=False,
        input=stdin,
    )
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)} ended with {done.returncode}:\n{done.stderr}")
    return perf_counter() - clock, done.stdout


_LOOK_SECONDS = 0.1


def watched(
    command: Sequence[str], folder: Path, more: dict[str, str], code: int = 0
) -> tuple[float, str, int]:
    """Return wall seconds, standard output and highest resident size, without child processes,
    of a process that must end with this code."""
    clock, peak = perf_counter(), 0
    with (
        (folder / "out").open("w+") as out,
        (folder / "err").open("w+") as err,
        subprocess.Popen(
            command, cwd=folder, env=environment(more), stdout=out, stderr=err
        ) as process,
    ):
        while process.poll() is None:
            peak = max(peak, highest_resident_size(process.pid))
            try:
                process.wait(_LOOK_SECONDS)
            except subprocess.TimeoutExpired:
                continue
        seconds = perf_counter() - clock
        for file in (out, err):
            file.seek(0)
        if process.returncode != code:
            raise SystemExit(f"{' '.join(command)} ended with {process.returncode}:\n{err.read()}")
        return seconds, out.read(), peak


@contextmanager
def scratch() -> Iterator[Path]:
    """Yield a folder, which is deleted afterwards."""
    with tempfile.TemporaryDirectory(prefix="lockstep-bench-") as folder:
        yield Path(folder)


@contextmanager
def ground(options: Sequence[str] = ()) -> Iterator[Ground]:
    """Yield a new server with these mysqld options and an empty database `bench`."""
    mysql = find_mysql(os.environ)
    with (
        scratch() as folder,
        mysql_server(mysql, folder / "mysql", os.environ, options=options) as server,
    ):
        place = Ground(server, folder)
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
