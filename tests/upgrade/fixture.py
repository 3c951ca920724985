"""What is kept of a version: its ledger, its lake, its settings, and the rows of MySQL then.

Belongs here: the files of such a folder, how they are written, and how a project is made of them.
Does not: what happened before they were written (`__main__`), and what must hold afterwards
(`test_upgrade`).

A folder holds

- `lockstep.toml`, with `{port}` in place of the server's port;
- `ledger.sql`: which migrations the ledger had, each with its checksum, and the rows of each table;
- `lake.tar.gz`: the lake's folder;
- `mysql.sql.gz`: the tables and rows of the server, and the GTIDs that it had executed;
- `shown.json`: what that version's commands said.

The tables of a ledger are not kept: the migrations of a released version never change, so the
present version's files with the same numbers make them, and the checksums prove that they are the
same.
"""

from __future__ import annotations

import gzip
import json
import re
import shutil
import tarfile
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from lockstep.pipeline.values.gtid import GtidSet
from lockstep.resources.postgres.connection import LedgerAddress, connect
from lockstep.resources.postgres.embedded import EmbeddedServer
from lockstep.resources.postgres.ledger import migrate, migrations
from tests.e2e.project import Project
from tests.e2e.warm import WarmProcess
from tests.fix_ledger import Content, connected_beside, content_of, fill
from tests.fix_mysql import MySqlStand

FOLDER: Final = Path(__file__).parent
DATABASE: Final = "shop"

_ROWS: Final = "mysql.sql.gz"
_COPIED = re.compile(r"^copy lockstep\.(\w+) from stdin;\n(.*?)^\\\.\n", re.DOTALL | re.MULTILINE)
_NUMBERED = re.compile(r"^select setval\('lockstep\.(\w+)', (\d+)\);$", re.MULTILINE)
_MIGRATED = re.compile(r"^-- migration (\d+): (\w+)$", re.MULTILINE)
_EXECUTED = re.compile(r"^-- gtid_executed: (\S*)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Fixture:
    """The folder of one version."""

    folder: Path

    @classmethod
    def all(cls) -> Iterator[Fixture]:
        """Yield those of all versions, the oldest first."""
        for shown in sorted(FOLDER.glob("*/shown.json")):
            yield cls(shown.parent)

    @property
    def version(self) -> str:
        return self.folder.name

    @property
    def shown(self) -> dict[str, Any]:
        """What that version's commands said, as `tests.upgrade.__main__.shown` puts it."""
        found: dict[str, Any] = json.loads((self.folder / "shown.json").read_text())
        return found

    @property
    def executed(self) -> GtidSet:
        """The GTIDs that the server had executed."""
        return GtidSet.parse(_only(_EXECUTED, self._rows()))

    def record(self, project: Project, mysql: MySqlStand, shown: dict[str, Any]) -> None:
        """Replace the folder by what the project and the server have now."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        settings = (project.folder / "lockstep.toml").read_text()
        settings = settings.replace(f"port = {mysql.port}", "port = {port}")
        (self.folder / "lockstep.toml").write_text(settings)
        with (
            closing(EmbeddedServer(_ledger(project))) as server,
            closing(connected_beside(server.dsn)) as connection,
            connection.cursor() as cursor,
        ):
            (self.folder / "ledger.sql").write_text(_as_sql(content_of(cursor)))
        with tarfile.open(self.folder / "lake.tar.gz", "w:gz") as archive:
            archive.add(project.lake, "lake", filter=_of_nobody)
        rows = "\n".join(_dumped(mysql)) + "\n"
        (self.folder / _ROWS).write_bytes(gzip.compress(rows.encode(), mtime=0))
        (self.folder / "shown.json").write_text(json.dumps(shown, indent=1) + "\n")

    def restored(self, folder: Path, port: int, warm: WarmProcess) -> Project:
        """Return a project that is as that version left it, whose server has this port."""
        folder.mkdir()
        settings = (self.folder / "lockstep.toml").read_text()
        (folder / "lockstep.toml").write_text(settings.replace("{port}", str(port)))
        with tarfile.open(self.folder / "lake.tar.gz") as archive:
            archive.extraction_filter = getattr(tarfile, "data_filter", None)  # since 3.11.4
            archive.extractall(folder)
        project = Project(folder, warm)
        self._restore_ledger(_ledger(project))
        return project

    def _restore_ledger(self, folder: Path) -> None:
        text = (self.folder / "ledger.sql").read_text()
        had = {int(number): sha256 for number, sha256 in _MIGRATED.findall(text)}
        known = tuple(one for one in migrations() if one.number in had)
        assert {one.number: one.sha256 for one in known} == had, (
            f"Lockstep {self.version} had other migrations. Those of a released version never"
            " change; before it is released, record it again: python -m tests.upgrade"
        )
        with closing(EmbeddedServer(folder)) as server:
            address = LedgerAddress(server.dsn, f"the ledger of {self.version}")
            with closing(connect(address)) as connection:
                migrate(address, connection, known)
            with closing(connected_beside(server.dsn)) as connection, connection.cursor() as cursor:
                fill(cursor, _as_content(text))

    def restore_rows(self, mysql: MySqlStand) -> None:
        """Give an empty server the tables and rows, as a restored backup does: they are not in its
        log, and it counts the GTIDs of then as purged."""
        statements = re.sub(r"^--.*\n", "", self._rows(), flags=re.MULTILINE).split(";\n")
        mysql.execute("set sql_log_bin = 0", *filter(str.strip, statements))
        mysql.execute("reset binary logs and gtids", f"set global gtid_purged = '{self.executed}'")

    def _rows(self) -> str:
        return gzip.decompress((self.folder / _ROWS).read_bytes()).decode()


def _ledger(project: Project) -> Path:
    return project.folder / ".lockstep" / "ledger"


def _as_sql(content: Content) -> str:
    """The rows as psql takes them, `Content` as text."""
    lines = [f"-- migration {one.number}: {one.sha256}" for one in migrations()]
    for table, rows in content.rows.items():
        lines.append(f"copy lockstep.{table} from stdin;\n{rows}\\.")
    lines += [f"select setval('lockstep.{name}', {n});" for name, n in content.numbers.items()]
    return "\n".join(lines) + "\n"


def _as_content(text: str) -> Content:
    numbers = {name: int(last) for name, last in _NUMBERED.findall(text)}
    return Content(dict(_COPIED.findall(text)), numbers)


def _dumped(mysql: MySqlStand) -> Iterator[str]:
    """The statements that make the database's tables and rows."""
    [(executed,)] = mysql.rows("select @@global.gtid_executed")
    yield f"-- gtid_executed: {''.join(str(executed).split())}"
    yield f"create database {DATABASE} character set utf8mb4;\nuse {DATABASE};"
    with mysql.connect(DATABASE) as connection, connection.cursor() as cursor:
        cursor.execute("show tables")
        for (table,) in cursor.fetchall():
            cursor.execute(f"show create table `{table}`")
            [(_, definition)] = cursor.fetchall()
            yield f"{definition};"
            cursor.execute(f"select * from `{table}`")
            rows = [connection.literal(row) for row in cursor.fetchall()]
            if rows:
                yield f"insert into `{table}` values\n" + ",\n".join(rows) + ";"


def _of_nobody(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    """Return an archive's entry without the account that recorded it."""
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    return entry


def _only(pattern: re.Pattern[str], text: str) -> str:
    [found] = pattern.findall(text)
    return str(found)
