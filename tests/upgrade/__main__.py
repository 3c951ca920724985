"""Records the ledger and the lake of this version: `python -m tests.upgrade`, in about a minute.

A small shop is followed for some runs. In the end its tables are in each of the states that a later
version has to go on from: most follow; one was altered, one renamed, one has no key, one is shown
in part; one is quarantined, one is paused, and one is just being read from MySQL by a run that was
killed. A consumer has taken a part of the changes.
"""

from __future__ import annotations

import os
import sys
import tempfile
from contextlib import closing
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import lockstep
from demo.mysql_search import Program, find_mysql
from tests.e2e.points import Point
from tests.e2e.project import Project
from tests.e2e.warm import WarmProcess
from tests.fix_mysql import MySqlStand
from tests.positions.servers import private_mysql
from tests.upgrade.fixture import DATABASE, FOLDER, Fixture

EXTRA: Final = """
[sources.snapshot]
chunk_seconds = 0.000001

[[sources.table]]
match = "shop.customers"
mask_columns = { phone = "last:3" }
stamps = ["_committed_at", "_sequence"]
"""

MADE: Final = (
    f"create database {DATABASE} character set utf8mb4",
    f"use {DATABASE}",
    "create table customers (id int primary key, name varchar(40), email varchar(80),"
    " phone varchar(20))",
    "create table orders (id int primary key, customer int not null, amount decimal(12, 2),"
    " state enum('open', 'paid', 'sent') not null, placed_at datetime(3), note json)",
    "create table order_lines (order_id int, line tinyint, sku varchar(12), count int unsigned,"
    " primary key (order_id, line))",
    "create table stock (sku varchar(12) primary key, place varchar(40), count int)",
    "create table visits (page varchar(40), at timestamp(6) default current_timestamp(6))",
    "create table carts (id int primary key, sku varchar(12))",
    "create table prices (sku varchar(12) primary key, cents bigint)",
    "create table readings (id int primary key, value smallint)",
    "insert into customers with recursive n as"
    " (select 1 as id union all select id + 1 from n where id < 40)"
    " select id, concat('Ada ', id), concat('ada', id, '@example.org'), 5550000 + id from n",
    "insert into orders with recursive n as"
    " (select 1 as id union all select id + 1 from n where id < 300)"
    " select id, 1 + id % 40, id * 1.25, 1 + id % 3, '2026-01-01' + interval id minute,"
    " json_object('n', id, 'half', id / 2e0) from n",
    "insert into order_lines select id, 1, concat('sku', id % 50), id % 9 from orders",
    "insert into stock select distinct sku, concat('shelf ', sku), 100 from order_lines",
    "insert into prices select sku, 250 from stock",
    "insert into visits (page) values ('/'), ('/'), ('/cart')",
    "insert into carts values (1, 'sku1'), (2, 'sku2')",
    "set cte_max_recursion_depth = 12000",
    "insert into readings with recursive n as"
    " (select 1 as id union all select id + 1 from n where id < 12000)"
    " select id, id % 7 from n",
)
FOLLOWED: Final = (
    f"use {DATABASE}",
    "begin",
    "update orders set state = 'sent' where id % 10 = 0",
    "delete from order_lines where order_id % 100 = 7",
    "insert into visits (page) values ('/'), ('/pay')",
    "commit",
    "alter table customers add column vip bool not null default 0",
    "update customers set vip = 1, name = upper(name) where id <= 5",
    "alter table customers rename column email to mail",
    "alter table orders modify customer bigint not null",
    "insert into orders values (301, 1, 9.99, 'open', '2026-02-01 10:00:00.125', '[]')",
    "delete from visits where page = '/' limit 1",
    "rename table carts to baskets",
    "insert into baskets values (3, 'sku3')",
)
STOPPED: Final = (
    f"use {DATABASE}",
    "update stock set count = count - 1",
    "alter table stock modify place varchar(12)",
    "update stock set count = count - 1",
    "update prices set cents = 275 where sku like 'sku1%'",
)


def tell(project: Project, mysql: MySqlStand) -> dict[str, Any]:
    """Have all of it happen, and return what the commands say at the end."""
    mysql.execute(*MADE, "flush binary logs")
    project.run("run")
    lockstep.make_consumer(
        "shop", "billing", start="earliest", config=project.folder / "lockstep.toml"
    )
    mysql.execute(*FOLLOWED)
    project.run("run")
    project.run("pause", "shop.prices", "--reason", "the auditors asked for it")
    mysql.execute(*STOPPED)
    project.run("run", expect=6)
    with lockstep.consume("shop", "billing", config=project.folder / "lockstep.toml") as consumer:
        delivery = consumer.get(max_batches=2)
        assert delivery is not None
        delivery.ack()
    reason = "restored by hand"
    project.run("reload", "shop.readings", "--from", "source", "--reason", reason)
    project.killed(Point.CHUNK_RECORDED, "after", 1)
    return shown(project)


def shown(project: Project) -> dict[str, Any]:
    """Return what the commands say of the project, as far as every later version must say it."""
    sets = project.json("versions", "--list")["sources"]["shop"]["sets"]
    newest = project.json("versions")["sources"]["shop"]
    columns = project.json("schema", "shop.customers")["columns"]
    status = project.status()
    return {
        "places": {str(one["batch"]): one["position"] for one in sets},
        "versions": {name: table["delta_version"] for name, table in newest["tables"].items()},
        "columns": {column["name"]: column["type"] for column in columns},
        "stopped": {table["table"]: table["reason"] for table in status["stopped"]},
        "reading": {name: load["rows"] for name, load in status["reading"].items()},
        "consumers": {one["name"]: one["changes_behind"] for one in status["consumers"]},
    }


def record(folder: Path) -> None:
    """Record into that folder, with a MySQL of this machine."""
    os.environ["LOCKSTEP_TEST_PASSWORD"] = ""
    program = find_mysql(os.environ)
    if not isinstance(program, Program):
        sys.exit("The recording needs a mysqld of this machine: unset LOCKSTEP_TEST_MYSQL.")
    with (
        tempfile.TemporaryDirectory() as scratch,
        private_mysql(program, Path(scratch) / "mysql", 21) as mysql,
        closing(Warm()) as warm,
    ):
        project = Project.made(
            Path(scratch) / "project",
            port=mysql.port,
            tables=[f"{DATABASE}.*"],
            start="snapshot",
            extra=EXTRA,
            warm=warm,
        )
        said = tell(project, mysql)
        project.at_rest()
        Fixture(folder).record(project, mysql, said)
    print(
        f"recorded {folder.name}: {sum(file.stat().st_size for file in folder.iterdir()):,} bytes"
    )


class Warm(WarmProcess):
    """Which `closing` stops."""

    def close(self) -> None:
        self.stop()


if __name__ == "__main__":
    record(FOLDER / version("lockstep"))
