"""The steps of the demo: a shop with a past, three runs and a comparison while people shop."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter, sleep
from typing import TYPE_CHECKING, Final

from demo import shop
from demo.dagster_dev import dagster_dev, run_job
from demo.mysql_search import find_mysql
from demo.mysqld import RunningMySql, mysql_server
from lockstep.pipeline.run.progress import SilentProgress
from lockstep.pipeline.run.reports import VerifyReport
from lockstep.pipeline.run.status.span_report import SpanReport, report_of_run
from lockstep.resources.mysql.connection import ConnectionSettings, open_connection

if TYPE_CHECKING:
    from lockstep.resources.config import Settings

RUNS_UNDER_TRAFFIC = 3
WORKERS = 4
PAUSE_SECONDS = 0.02
"""Pause of a customer between two transactions: about 100 transactions a second in all."""

SEED = 20_260_101
SECONDS_OF_TRAFFIC = 2.0
SECONDS_OF_PAST_TRAFFIC = 1.0
SOURCE = "shop"

_CREATE_ACCOUNT = (
    "create user if not exists lockstep identified by '{password}'",
    "grant replication slave, replication client on *.* to lockstep",
    "grant select on shop.* to lockstep",
)


@dataclass(frozen=True, slots=True)
class DemoRun:
    """A run: the ledger's report of it, and the seconds that it took, with its start by Dagster."""

    report: SpanReport
    seconds: float

    @property
    def transactions(self) -> int:
        return sum(batch.transactions for batch in self.report.batches)


@dataclass(frozen=True, slots=True)
class DemoResult:
    """The results that the summary prints."""

    runs: tuple[DemoRun, ...]
    comparison: VerifyReport
    traffic: shop.TransactionCounts
    config: Path


def prepare_folder(folder: Path) -> None:
    """Empty the folder, so that each demo starts from nothing."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)


@contextmanager
def running_shop(folder: Path, say: Callable[[str], None]) -> Iterator[RunningMySql]:
    """Yield a MySQL with the shop in it, and with an account that may read its log."""
    say("starting a MySQL (fetched once, if this machine has none)")
    with mysql_server(find_mysql(os.environ), folder / "mysql", os.environ) as server:
        password = secrets.token_urlsafe(18)
        (folder / "password").touch(mode=0o600)
        (folder / "password").write_text(password)
        root = open_connection(_root(server))
        with root.cursor() as cursor:
            cursor.execute("drop database if exists shop")
            cursor.execute("reset binary logs and gtids")
            for statement in _CREATE_ACCOUNT:
                cursor.execute(statement.format(password=password))
            cursor.execute(f"alter user lockstep identified by '{password}'")
        shop.create(root)
        say("the shop has been open for a while, and its server has purged the log of that time")
        with shop.Traffic(
            _connector(server), WORKERS, SEED, pause=0, first_customer=WORKERS
        ) as traffic:
            sleep(SECONDS_OF_PAST_TRAFFIC)
            traffic.raise_error()
        with root.cursor() as cursor:
            cursor.execute("flush binary logs")
            cursor.execute("show binary logs")
            newest = cursor.fetchall()[-1][0]
            cursor.execute(f"purge binary logs to '{newest}'")
        root.close()
        yield server


def _connector(server: RunningMySql) -> Callable[[], shop.Connection]:
    def connect() -> shop.Connection:
        connection: shop.Connection = open_connection(_root(server), database=shop.DATABASE)
        return connection

    return connect


def _root(server: RunningMySql) -> ConnectionSettings:
    return ConnectionSettings(server.host, server.port, server.user, server.password, tls="off")


SHOWN_CUSTOMERS = "e-mails are hashed, and whoever lives in no city is left out"
_CUSTOMERS_SETTINGS = """
[[sources.table]]
match = "shop.customers"
hash_columns = ["email"]
rows = "city is not null"

[privacy]
key = "file:privacy-key"
"""


def write_configuration(folder: Path, example: Path, server: RunningMySql) -> Path:
    """Write the repository's example with this server's address, and with rules for the shop's
    customers."""
    text = example.read_text(encoding="utf-8")
    text = text.replace('host = "127.0.0.1"', f'host = "{server.host}"')
    text = text.replace("port = 3306", f"port = {server.port}")
    text = text.replace('"env:SHOP_PASSWORD"', '"file:password"')
    (folder / "privacy-key").touch(mode=0o600)
    (folder / "privacy-key").write_text(secrets.token_urlsafe(32))
    path = folder / "lockstep.toml"
    path.write_text(text + _CUSTOMERS_SETTINGS, encoding="utf-8")
    return path


def run_demo(
    settings: Settings,
    server: RunningMySql,
    say: Callable[[str], None],
    show_run: Callable[[DemoRun], None],
) -> DemoResult:
    """Have Dagster carry out three runs while the shop writes and its tables are altered, then
    compare MySQL with the lake while the shop goes on writing."""
    from lockstep.assets.home import dagster_home
    from lockstep.assets.names import job_name
    from lockstep.pipeline.run.proof.verify_rows import verify
    from lockstep.resources.adapters import Adapters

    connect = _connector(server)
    runs: list[DemoRun] = []
    say(f"of the shop's customers the lake shows a part: {SHOWN_CUSTOMERS}")
    say("starting Dagster, whose page will show the runs")
    home = dagster_home(settings.state_folder)
    with (
        dagster_dev(settings.path, home) as dagster,
        Adapters(settings, on_warning=say) as adapters,
    ):

        def run_once() -> None:
            begin = perf_counter()
            run_id = run_job(dagster, job_name(SOURCE), settings.path)
            seconds = perf_counter() - begin
            report = report_of_run(adapters.ledger(), SOURCE, run_id, datetime.now(UTC))
            runs.append(DemoRun(report, seconds))
            show_run(runs[-1])

        say(f"opening the shop: {WORKERS} people buy, pay, change their minds")
        with shop.Traffic(connect, WORKERS, SEED, pause=PAUSE_SECONDS) as traffic:
            for portion in range(RUNS_UNDER_TRAFFIC):
                sleep(SECONDS_OF_TRAFFIC / 2)
                for statement in alter_tables(connect, portion):
                    say(f"meanwhile: {statement}")
                sleep(SECONDS_OF_TRAFFIC / 2)
                traffic.raise_error()
                run_once()
            say("MySQL and the lake are compared while the shop is open")
            comparison = verify(adapters.ports(SOURCE, SilentProgress()))
        return DemoResult(tuple(runs), comparison, traffic.counts, settings.path)


# -- schema changes between two runs, while people shop --------------------------------------------
#
# They do not touch what purchases use, so that no purchase fails.

_ALTERATIONS: Final[Sequence[tuple[str, ...]]] = (
    (
        "alter table customers add column tier varchar(10) not null default 'new'",
        "update customers set tier = 'old' where id % 3 = 0",
        "create table prices (sku varchar(20) primary key, price decimal(8, 2) not null)",
        "insert into prices select sku, 9.99 from stock",
    ),
    (
        "alter table customers rename column tier to standing",
        "alter table stock modify on_hand bigint not null",
        "update customers set standing = 'best' where id % 7 = 0",
    ),
    (
        "create table prices_new (sku varchar(20) primary key, price decimal(10, 3) not null, "
        "since datetime not null default current_timestamp)",
        "insert into prices_new (sku, price) select sku, price * 1.1 from prices",
        "rename table prices to prices_old, prices_new to prices",
        "drop table prices_old",
        "update prices set price = price + 1 where sku like '%1'",
    ),
)
"""Three portions: add a column; rename and widen columns; replace a table by a new one."""


def alter_tables(connect: Callable[[], shop.Connection], portion: int) -> list[str]:
    """Execute a portion; return its statements that change a structure. One that MySQL rolls back
    for a deadlock with a purchase is executed again."""
    with closing(connect()) as connection:
        for statement in _ALTERATIONS[portion]:
            while not _has_executed(connection, statement):
                pass
    ddl = ("alter", "create", "rename", "drop")
    return [statement for statement in _ALTERATIONS[portion] if statement.startswith(ddl)]


def _has_executed(connection: shop.Connection, statement: str) -> bool:
    """Execute and commit the statement; return False if a deadlock had it rolled back."""
    try:
        connection.cursor().execute(statement)
        connection.commit()
    except Exception as error:
        connection.rollback()
        if shop.is_deadlock(error):
            return False
        raise
    return True
