"""A lake and its ledger as a version of Lockstep leaves them behind, for the versions to come.

`python -m tests.e2e.kept_lake` follows three tables, is killed between the ledger's word and the
lake's for the first of them, and keeps all of it in `kept_lake_NNNN.tar.gz`, named by the newest
migration; do so before the first migration behind a release. Belongs here: the story and what is
kept of it. Does not: what must be true of it afterwards (`test_kept_lake`).
"""

from __future__ import annotations

import json
import os
import sys
import tarfile
import tempfile
from contextlib import closing
from pathlib import Path

from demo.mysql_search import find_mysql
from demo.mysqld import mysql_server
from resources.postgres.connection import LedgerAddress, connect
from resources.postgres.embedded import EmbeddedServer
from resources.postgres.migrate import migrations
from tests.e2e.points import Point
from tests.e2e.project import Project, head
from tests.fix_mysql import MySqlStand
from tests.ledger.kept import dump

FOLDER = Path(__file__).parent
TABLES = ("keyed", "bare", "altered")
_MERGED = (
    "create table keyed (id int primary key, v varchar(20), n decimal(10,2))",
    "create table bare (id int, v int)",
    "create table altered (id int primary key, v varchar(5))",
    "insert into keyed values (1, 'one', 1.5), (2, 'two', 2.5), (3, 'three', 3.5)",
    "insert into bare values (1, 1), (1, 1), (2, 2)",
    "insert into altered values (1, 'a'), (2, 'b')",
)
_CAPTURED = (
    "update keyed set v = 'zwei' where id = 2",
    "delete from keyed where id = 1",
    "insert into keyed values (4, null, -4)",
    "delete from bare where v = 1 limit 1",
    "insert into bare values (3, 3)",
    "alter table altered add column n int not null default 7, modify v varchar(50)",
    "insert into altered values (3, 'c', 9)",
    "update altered set n = 8 where id = 1",
)
_NOWHERE = "/srv/shop"


def kept() -> dict[int, Path]:
    """The archives, by the newest migration of their ledgers."""
    return {int(path.name[10:14]): path for path in sorted(FOLDER.glob("kept_lake_*.tar.gz"))}


def keep(folder: Path) -> None:
    """Tell the story below `folder`, and leave `lake`, `ledger.sql` and `rows.json` there."""
    with mysql_server(find_mysql(os.environ), folder / "mysql", os.environ) as server:
        mysql = MySqlStand(server)
        mysql.execute("create database kept")
        project = Project.made(
            folder / "project", port=mysql.port, tables=["kept.*"], start=head(mysql)
        )
        mysql.execute(*_MERGED, database="kept")
        project.run("run")
        mysql.execute(*_CAPTURED, database="kept")
        project.killed(Point.WRITE_INTENDED, "after")
        rows = {table: mysql.rows(f"select * from kept.{table} order by 1, 2") for table in TABLES}
    told = {table: [[str(one) for one in row] for row in found] for table, found in rows.items()}
    (folder / "rows.json").write_text(json.dumps(told))
    project.lake.rename(folder / "lake")
    for log in (folder / "lake").rglob("_delta_log/*.json"):
        log.write_text(log.read_text().replace(str(project.folder), _NOWHERE))
    ledger = EmbeddedServer(project.folder / ".lockstep" / "ledger")
    try:
        with closing(connect(LedgerAddress(ledger.dsn, "the ledger"))) as connection:
            (folder / "ledger.sql").write_text(dump(connection))
    finally:
        ledger.close()


def main() -> None:
    """Keep what this version leaves behind."""
    path = FOLDER / f"kept_lake_{migrations()[-1].number:04d}.tar.gz"
    with tempfile.TemporaryDirectory() as folder:
        keep(Path(folder))
        with tarfile.open(path, "w:gz") as archive:
            for name in ("lake", "ledger.sql", "rows.json"):
                archive.add(Path(folder) / name, name)
    sys.stderr.write(f"{path} written\n")


if __name__ == "__main__":
    main()
