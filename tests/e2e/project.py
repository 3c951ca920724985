"""A project folder of its own, and the command line run on it as a person would."""

from __future__ import annotations

import atexit
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder

import lockstep
from lockstep.reading import VersionSet
from lockstep.resources.postgres.embedded import EmbeddedServer
from lockstep.resources.postgres.ledger import open_ledger
from tests.e2e.killer import KILLED, died_at
from tests.e2e.warm import REPOSITORY, TIMEOUT, StartedProcess, WarmProcess
from tests.fix_mysql import MySqlStand
from tests.ledger.servers import run


def environment(**extra: str) -> dict[str, str]:
    """This process's environment, the repository on the path, a password to refer to."""
    kept = {key: value for key, value in os.environ.items() if key != "DAGSTER_HOME"}
    ours = {"PYTHONPATH": str(REPOSITORY), "LOCKSTEP_TEST_PASSWORD": ""}
    return {**kept, **ours, **extra}


def head(mysql: MySqlStand) -> str:
    """The log's present end, as a `start`: what other tests wrote before is not read."""
    file, offset = mysql.head()
    return f"{file}:{offset}"


def place_of(position: Mapping[str, Any]) -> str:
    """FILE:OFFSET of a position in an answer."""
    return f"{position['file']}:{position['offset']}"


def without_java() -> dict[str, str]:
    """The variables of a process that finds no Java."""
    folders = os.environ["PATH"].split(os.pathsep)
    kept = (folder for folder in folders if not Path(folder, "java").exists())
    return {"PATH": os.pathsep.join(kept), "JAVA_HOME": ""}


@cache
def empty_ledger() -> Path:
    """The folder of an embedded ledger with all its tables and no rows. To make one takes longer
    than most runs; a copy is another ledger, for nothing in it is its name. Half of its files are
    the templates of databases that nobody makes."""
    folder = Path(tempfile.mkdtemp(prefix="empty-ledger-"))
    atexit.register(shutil.rmtree, folder)
    with closing(EmbeddedServer(folder / "ledger")) as server:
        with open_ledger(server.dsn, folder):
            pass
        run(server.dsn, "update pg_database set datistemplate = false")
        for name in ("template0", "template1"):
            run(server.dsn, f"drop database {name}")
    return folder / "ledger"


@dataclass
class Project:
    """`folder` holds lockstep.toml, the lake and .lockstep; commands run in processes of
    their own, which begin cold or `warm`, and then find its ledger running if it is `held`."""

    folder: Path
    warm: WarmProcess | None = None
    held: bool = True

    @classmethod
    def made(
        cls,
        folder: Path,
        *,
        port: int,
        tables: list[str],
        start: str | None = "earliest",
        extra: str = "",
        user: str = "root",
        top: str = "",
        warm: WarmProcess | None = None,
        first: bool = False,
    ) -> Project:
        """With a ledger that nothing was recorded in, or, the `first` of all, with none."""
        folder.mkdir(parents=True, exist_ok=True)
        if not first:
            shutil.copytree(empty_ledger(), folder / ".lockstep" / "ledger")
        chosen = f'start = "{start}"\n' if start else ""
        (folder / "lockstep.toml").write_text(
            f'[lake]\npath = "lake"\n[ledger]\ndsn = "embedded"\n{top}\n'
            f'[[sources]]\nname = "shop"\nhost = "127.0.0.1"\nport = {port}\nuser = "{user}"\n'
            f'password = "env:LOCKSTEP_TEST_PASSWORD"\ntls = "off"\n'
            f"tables = {json.dumps(tables)}\n{chosen}{extra}"
        )
        return cls(folder, warm)

    def copied(self, folder: Path) -> Project:
        """The same project as it stands now, in another folder."""
        self.at_rest()
        shutil.copytree(self.folder, folder, symlinks=True)
        return Project(folder, self.warm)

    def at_rest(self) -> None:
        """Nothing works on its files until the next command: they may be changed."""
        if self.warm is not None:
            self.warm.ledgers.let_go(self.folder)

    @property
    def alone(self) -> Project:
        """The same project, each command the only user of its ledger."""
        self.at_rest()
        return replace(self, held=False)

    @property
    def cold(self) -> Project:
        """The same project, each command in a process of its own."""
        return Project(self.folder)

    def run(
        self, *arguments: str, expect: int | None = 0, **extra: str
    ) -> subprocess.CompletedProcess[str]:
        if self.warm is not None:
            surroundings = environment(**extra)
            done = self.warm.run(
                arguments, folder=self.folder, environment=surroundings, hold=self.held
            )
            return _expected(done, expect)
        command = [sys.executable, "-m", "lockstep.cli", *arguments]
        return self._process(command, expect, extra)

    def json(self, *arguments: str, expect: int | None = 0) -> Any:
        return json.loads(self.run(*arguments, "--json", expect=expect).stdout)

    def ledger_rows(self) -> list[str]:
        """Every row of every table of the embedded ledger, as text behind its table's name."""
        with closing(EmbeddedServer(self.folder / ".lockstep" / "ledger")) as server:
            tables = run(
                server.dsn,
                "select tablename from pg_tables where schemaname = 'lockstep' order by 1",
            )
            return [
                f"{table}: {row}"
                for (table,) in tables
                for (row,) in run(server.dsn, f"select t::text from lockstep.{table} t order by 1")
            ]

    def status(self) -> Any:
        """How the source stands, well or not."""
        return self.json("status", expect=None)["sources"]["shop"]

    def killed(self, target: str, when: str, nth: int = 1, *command: str) -> None:
        """`lockstep run`, or another command, killed at a call of a `tests.e2e.points`; it must
        neither have ended before nor have been killed elsewhere."""
        place = self.folder / KILLED
        place.unlink(missing_ok=True)
        self._run_to_death(target, when, nth, command)
        assert place.read_text() == died_at(target, when, nth)
        place.unlink()

    def _run_to_death(self, target: str, when: str, nth: int, command: Sequence[str]) -> None:
        arguments = [target, when, str(nth), "--", *(command or ("run",))]
        if self.warm is None:
            killing = [sys.executable, "-m", "tests.e2e.killer", *arguments]
            self._process(killing, -signal.SIGKILL, {})
            return
        with self.start("tests.e2e.killer", *arguments) as begun:
            said = begun.communicate(TIMEOUT)
        assert begun.returncode == -signal.SIGKILL, f"{begun.returncode}\n{said}"

    def start(self, module: str, *arguments: str, lend: bool = True) -> StartedProcess:
        """`python -m MODULE …` of a warm project, begun; with a Java of its own, unless it is lent
        one."""
        assert self.warm is not None
        return self.warm.start(
            module, arguments, folder=self.folder, environment=environment(), lend=lend
        )

    def _process(
        self, command: list[str], expect: int | None, extra: dict[str, str]
    ) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            command,
            cwd=self.folder,
            env=environment(**extra),
            capture_output=True,
            text=True,
            timeout=TIMEOUT,
            check=False,
            stdin=subprocess.DEVNULL,
        )
        return _expected(done, expect)

    @property
    def config(self) -> Path:
        return self.folder / "lockstep.toml"

    @property
    def lake(self) -> Path:
        return self.folder / "lake"

    def read_at(self, place: str | None = None) -> VersionSet:
        """The mirrors as of a place, or the newest."""
        return lockstep.read_at("shop", place, config=self.config)

    def sets(self) -> list[dict[str, Any]]:
        """All version sets, the newest first."""
        found: list[dict[str, Any]] = self.json("versions", "--list")["sources"]["shop"]["sets"]
        return found

    def commits(self, table: str) -> list[dict[str, Any]]:
        """The commits of a mirror in order: each a dict of its actions by kind."""
        log = self.lake / "shop" / table.replace(".", "/") / "_delta_log"
        found = []
        for path in sorted(log.glob("*.json")):
            if len(path.stem) == 20 and path.stem.isdigit():
                actions = [json.loads(line) for line in path.read_text().splitlines()]
                found.append({kind: value for action in actions for kind, value in action.items()})
        return found

    def proven(self) -> set[str]:
        """The tables that `verify` compared with the source's; all are equal."""
        compared = self.json("verify")["sources"]["shop"]["tables"]
        assert [name for name, told in compared.items() if not told["equal"]] == []
        return set(compared)

    def unequal(self, mysql: MySqlStand, *tables: str) -> dict[str, Any]:
        """What another reader of Delta finds in the mirrors of these tables, where the server has
        other rows; both by their first column. What `verify` says of them is its own tests'
        business."""
        found = {}
        for table in tables:
            mirror = DeltaTable(self.lake / "shop" / table.replace(".", "/"))
            query = QueryBuilder().register("mirror", mirror)
            rows = pa.table(query.execute("select * from mirror order by 1").read_all())
            there = [tuple(row.values()) for row in rows.to_pylist()]
            names = ", ".join(rows.column_names)
            if there != mysql.rows(f"select {names} from {table} order by 1"):
                found[table] = there
        return found

    def require_once(self, *tables: str) -> None:
        """No write is in a table twice."""
        for table in tables:
            transactions = self.transactions(table)
            assert len(transactions) == len(set(transactions)), table

    def transactions(self, table: str) -> list[tuple[str, int]]:
        """(application id, version) of every commit that has one."""
        return [
            (commit["txn"]["appId"], commit["txn"]["version"])
            for commit in self.commits(table)
            if "txn" in commit
        ]


def followed(
    mysql: MySqlStand,
    database: str,
    folder: Path,
    warm: WarmProcess | None,
    *statements: str,
    **options: Any,
) -> Project:
    """Return a project that follows a database from here on, in which the statements are executed
    then. The database is created if it is missing. `options`: those of `Project.made`."""
    mysql.execute(f"create database if not exists {database} character set utf8mb4")
    start = head(mysql)
    mysql.execute(*statements, database=database)
    chosen = {"tables": [f"{database}.*"], "start": start, **options}
    return Project.made(folder, port=mysql.port, warm=warm, **chosen)


def _expected(
    done: subprocess.CompletedProcess[str], code: int | None
) -> subprocess.CompletedProcess[str]:
    if code is not None:
        assert done.returncode == code, f"{done.returncode}\n{done.stdout}\n{done.stderr}"
    return done
