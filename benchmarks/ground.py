"""The ground of a benchmark: a MySQL, an account, a project folder, timed processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from time import perf_counter
from typing import Any

import pymysql
from pymysql.cursors import Cursor

from benchmarks.floor import PLAIN
from benchmarks.resident import highest_resident_size
from demo.mysql_search import find_mysql
from demo.mysqld import RunningMySql, mysql_server
from pipeline.position import Coordinates
from resources.lake import log_store
from resources.lake.jars import class_path, jars_folder
from resources.lake.java import archive_path, java_or_refuse
from resources.lake.settings import SparkSettings
from resources.mysql.connection import ConnectionSettings
from resources.mysql.server import MySqlServer

REPOSITORY = Path(__file__).resolve().parents[1]
DATABASE = "bench"


@dataclass(frozen=True, slots=True)
class Ground:
    """`folder` is a scratch folder that goes away with the benchmark."""

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
        """How readers of the log reach the server: on the loopback, in the clear."""
        server = self.server
        return ConnectionSettings(server.host, server.port, server.user, server.password, tls="off")

    def head(self) -> Coordinates:
        """The end of the log, now."""
        return MySqlServer(self.settings()).facts().head

    def log_bytes(self, start: Coordinates, end: Coordinates) -> int:
        """Bytes of binlog between two places, over all files in between."""
        files = MySqlServer(self.settings()).facts().binlogs
        numbers = range(start.file.number, end.file.number)
        whole = sum(log.size for log in files if log.file.number in numbers)
        return whole - start.offset + end.offset

    def project(self, name: str, tables: str) -> Path:
        """A folder with a lockstep.toml that follows `tables` from the log's present end."""
        folder = self.folder / name
        folder.mkdir()
        (folder / "lockstep.toml").write_text(
            '[lake]\npath = "lake"\n[ledger]\ndsn = "embedded"\n[[sources]]\nname = "bench"\n'
            f'host = "{self.server.host}"\nport = {self.server.port}\n'
            f'user = "{self.server.user}"\npassword = "env:BENCH_PASSWORD"\ntls = "off"\n'
            f'tables = ["{tables}"]\nstart = "{self.head()}"\n'
        )
        return folder

    def run(self, folder: Path) -> tuple[float, dict[str, Any]]:
        """A cold `lockstep run`: wall seconds and its report."""
        seconds, output = timed(
            [sys.executable, "-m", "lockstep.cli", "run", "--json"],
            folder,
            {"BENCH_PASSWORD": self.server.password},
        )
        return seconds, json.loads(output)

    def capture(self, folder: Path) -> dict[str, Any]:
        """A cold capture without Spark: `capturing.Captured`."""
        command = [sys.executable, "-m", "benchmarks.capturing"]
        return dict(json.loads(timed(command, folder, {"BENCH_PASSWORD": self.server.password})[1]))

    def floor(self, conf: dict[str, str], mode: str, segments: str, table: Path, key: str) -> float:
        """Wall seconds of the bare script on the same segments."""
        file = self.folder / "floor.json"
        file.write_text(json.dumps(conf))
        command = [sys.executable, "-m", "benchmarks.floor", str(file), mode, segments]
        return timed([*command, str(table), key], self.folder, {})[0]


def plain() -> dict[str, str]:
    """Settings of a script as anybody would write it."""
    jars = ",".join(map(str, class_path(jars_folder(sys.prefix))))
    return {**PLAIN, "spark.jars": jars}


def tuned(scratch: Path) -> dict[str, str]:
    """The product's own settings: what is left is what Lockstep itself costs. Its log store is
    part of that."""
    jars = (*class_path(jars_folder(sys.prefix)), log_store.log_store_jar())
    log4j = scratch / "log4j2.properties"
    log4j.write_bytes(files("resources.lake").joinpath("log4j2.properties").read_bytes())
    settings = SparkSettings(
        user={},
        class_path=jars,
        archive=archive_path(jars_folder(sys.prefix), jars, java_or_refuse(os.environ)),
        log4j=log4j,
        scratch=scratch,
        cores=os.cpu_count() or 1,
        memory=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
    ).all()
    return {name: value for name, value in settings.items() if name != log_store.SETTING}


def environment(more: dict[str, str]) -> dict[str, str]:
    """The variables of a process that works with this repository."""
    return {**os.environ, "PYTHONPATH": str(REPOSITORY), **more}


def timed(
    command: Sequence[str], folder: Path, more: dict[str, str], given: str = ""
) -> tuple[float, str]:
    """Wall seconds and standard output of a process that is given this as its standard
    input, and more variables; its error output if it fails."""
    clock = perf_counter()
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment(more),
        capture_output=True,
        text=True,
        check=False,
        input=given,
    )
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)} ended with {done.returncode}:\n{done.stderr}")
    return perf_counter() - clock, done.stdout


_LOOK_SECONDS = 0.1


def watched(
    command: Sequence[str], folder: Path, more: dict[str, str], code: int = 0
) -> tuple[float, str, int]:
    """Wall seconds and standard output of a process that ends with this code, and the bytes that
    it had resident at most, without the processes that it starts."""
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
def ground(folder: Path, options: Sequence[str] = ()) -> Iterator[Ground]:
    """A server of our own, started with these options of mysqld's, with an empty `bench`
    database."""
    found = find_mysql(os.environ)
    with mysql_server(found, folder / "mysql", os.environ, options=options) as server:
        made = Ground(server, folder)
        made.execute(
            f"drop database if exists {DATABASE}",
            f"create database {DATABASE} character set utf8mb4",
        )
        yield made
