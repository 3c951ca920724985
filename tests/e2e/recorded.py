"""One history of a source, and what each command answers with `--json` on its way.

Belongs here: the statements, the commands, their order. Does not: what of an answer is kept
(`masked`), and that it is as it was (`test_answers`).
"""

from __future__ import annotations

import json
import shutil
import socket
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import lockstep
from tests.e2e.masked import Marks
from tests.e2e.project import Project, empty_ledger
from tests.e2e.warm import REPOSITORY, WarmProcess
from tests.fix_mysql import MySqlStand

DATABASE: Final = "recorded"
ACCOUNT: Final = "recorder"
"""It sees no database but this one: what other tests made is not in an answer."""
ORDERS, ITEMS, VISITS, NOTES = (f"{DATABASE}.{t}" for t in ("orders", "items", "visits", "notes"))
BECAUSE: Final = ("--reason", "the history of the answers", "--author", "somebody")
SHOP: Final = (
    f"create user {ACCOUNT} identified by ''",
    f"grant replication slave, replication client on *.* to {ACCOUNT}",
    f"grant select on {DATABASE}.* to {ACCOUNT}",
    f"create database {DATABASE} character set utf8mb4",
    f"use {DATABASE}",
    "create table orders (id int primary key comment 'the key', name varchar(20), "
    "price decimal(9,2)) comment 'What is ordered'",
    "create table items (order_id int, n smallint unsigned, what varchar(20), "
    "primary key (order_id, n))",
    "create table visits (at datetime(3), who varchar(20))",
    "create table notes (id int primary key, told json)",
    "create table left_out (id int primary key)",
    "insert into orders values " + ", ".join(f"({n}, 'name {n}', {n}.25)" for n in range(1, 41)),
    "insert into items values (1, 1, 'a'), (1, 2, 'b'), (2, 1, 'c')",
    "insert into visits values ('2024-01-01', 'a'), ('2024-01-01', 'a'), (null, null)",
    "insert into notes values (1, json_object('a', 1, 'b', repeat('x', 50)))",
)


@dataclass
class Recording:
    """`answers` by name, in the order of the history; `marks` name the places in it."""

    mysql: MySqlStand
    folder: Path
    warm: WarmProcess
    answers: dict[str, Any] = field(default_factory=dict)
    marks: Marks = field(default_factory=Marks)

    def __post_init__(self) -> None:
        [(server, version)] = self.mysql.rows("select @@server_uuid, version()")
        for hidden, name in (
            (str(self.folder), "<folder>"),
            (str(REPOSITORY), "<checkout>"),
            (sys.prefix, "<environment>"),
            (str(self.mysql.port), "<port>"),
            (socket.gethostname(), "<host>"),
            (server, "<server>"),
            (version, "<version>"),
            (version.partition("-")[0], "<version>"),
        ):
            self.marks.hide(hidden, name)

    def happen(self, mark: str, *statements: str) -> str:
        """Statements, and a name for the end of the log behind them: that place."""
        self.mysql.execute(*statements)
        file, offset = self.mysql.head()
        [(gtids,)] = self.mysql.rows("select @@global.gtid_executed")
        self.marks.note(f"{file}:{offset}", str(gtids), mark)
        return f"{file}:{offset}"

    def secretly(self, *statements: str) -> None:
        """Statements that are not in the log."""
        self.mysql.execute("set sql_log_bin = 0", *statements)

    def ask(self, name: str, project: Project, *arguments: str, expect: int = 0) -> Any:
        """One command, whose answer is kept under the name."""
        done = project.run(*arguments, "--json", expect=None)
        assert done.returncode == expect, f"{name}: {done.returncode}\n{done.stderr}"
        assert name not in self.answers, name
        self.answers[name] = json.loads(done.stdout)
        return self.answers[name]


def record(recording: Recording) -> None:
    """The whole history."""
    start = recording.happen("the beginning")
    first = recording.happen("the shop is open", *SHOP)
    project = Project.made(
        recording.folder / "project",
        port=recording.mysql.port,
        tables=[f"{DATABASE}.*"],
        start=start,
        user=ACCOUNT,
        extra=f'exclude = ["{DATABASE}.left_out"]\n',
        warm=recording.warm,
    )
    first_part = before, runs, stops, differences, repeats
    for chapter in (*first_part, looks, upkeep, losses, proofs, shapes):
        chapter(recording, project, first)


def before(recording: Recording, project: Project, first: str) -> None:
    """Nothing ran yet."""
    ask = recording.ask
    elsewhere = Project(recording.folder / "elsewhere", recording.warm)
    shutil.copytree(empty_ledger(), elsewhere.folder / ".lockstep" / "ledger")
    given = ("--host", "127.0.0.1", "--port", str(recording.mysql.port), "--user", ACCOUNT)
    asked = (*given, "--password", "env:LOCKSTEP_TEST_PASSWORD", "--tls", "off")
    ask("init", elsewhere, "init", *asked, "--tables", f"{DATABASE}.*")
    ask("init-refused", elsewhere, "init", *asked, "--tables", f"{DATABASE}.*", expect=2)
    ask("usage-unknown-command", project, "statsu", expect=2)
    ask("usage-unknown-option", project, "run", "--nonsense", expect=2)
    ask("completion", project, "completion", "bash")
    ask("setup", project, "setup")
    ask("spark-serve-refused", project, "spark", "serve", "--dry-run", expect=2)
    ask("catalog-none", project, "catalog", expect=2)
    for command in ("check", "tables", "plan", "metrics"):
        ask(f"before-{command}", project, command)
    ask("before-status", project, "status", expect=3)
    ask("before-versions", project, "versions", expect=5)


def runs(recording: Recording, project: Project, first: str) -> None:
    """A first run, one to a place, one to the end, one that finds nothing; a consumer."""
    ask, happen = recording.ask, recording.happen
    ask("run-first", project, "run")
    config = project.config
    lockstep.make_consumer("shop", "billing", start="earliest", config=config)
    there = happen(
        "orders changed",
        f"use {DATABASE}",
        "update orders set name = 'another' where id in (2, 3)",
        "update orders set id = 100 where id = 4",
        "delete from items where order_id = 2",
        "insert into visits values ('2024-01-02', 'b')",
    )
    happen(
        "a column came",
        f"use {DATABASE}",
        "alter table items add column more int default 7, algorithm=instant",
        "insert into items values (3, 1, 'd', 8)",
        "delete from visits where who = 'a' limit 1",
        "create table late (id int primary key)",
        "insert into late values (1)",
    )
    ask("changes-plan", project, "plan")
    ask("plan-until", project, "plan", "--until", there)
    ask("run-until", project, "run", "--until", there)
    ask("run", project, "run")
    ask("run-idle", project, "run")


def stops(recording: Recording, project: Project, first: str) -> None:
    """A table that is quarantined and resumed, and one that a person stops."""
    ask, happen = recording.ask, recording.happen
    happen(
        "notes were written in part",
        f"use {DATABASE}",
        "insert into orders values (200, 'two hundred', 2)",
        "set session binlog_row_value_options = PARTIAL_JSON",
        "update notes set told = json_set(told, '$.a', 2)",
    )
    ask("quarantined-run", project, "run", expect=6)
    for command, code in (("status", 6), ("tables", 0), ("plan", 6), ("check", 0)):
        ask(f"quarantined-{command}", project, command, expect=code)
    recording.secretly(f"update {ORDERS} set price = 0 where id = 1")
    ask("quarantined-verify-differs", project, "verify", expect=4)
    recording.secretly(f"update {ORDERS} set price = 1.25 where id = 1")
    ask("quarantined-verify", project, "verify", expect=6)
    ask("resume-dry-run", project, "resume", NOTES, *BECAUSE, "--dry-run")
    ask("resume-not-stopped", project, "resume", ORDERS, *BECAUSE, expect=5)
    ask("resume-quarantined", project, "resume", NOTES, *BECAUSE)
    ask("pause", project, "pause", ITEMS, *BECAUSE)
    ask("pause-unknown", project, "pause", f"{DATABASE}.nothing", *BECAUSE, expect=2)
    happen("items changed, paused", f"use {DATABASE}", "update items set more = more + 1")
    ask("paused-run", project, "run", expect=6)
    ask("paused-status", project, "status", expect=6)
    ask("resume", project, "resume", ITEMS, *BECAUSE)
    ask("resume-run", project, "run")


def differences(recording: Recording, project: Project, first: str) -> None:
    """Rows that changed behind the log's back."""
    ask = recording.ask
    ask("verify", project, "verify")
    recording.secretly(
        f"use {DATABASE}",
        "update orders set name = 'a secret', price = price + 1 where id = 7",
        "delete from orders where id = 8",
        "insert into orders values (300, 'new', 1)",
        "delete from visits where who = 'a' limit 1",
    )
    ask("verify-differs", project, "verify", expect=4)
    ask("verify-values", project, "verify", ORDERS, "--show-values", expect=4)
    ask("differs-status", project, "status", expect=6)
    ask("verify-sample", project, "verify", ORDERS, "--sample", "1000", expect=4)
    ask("verify-sample-refused", project, "verify", "--sample", "0", expect=2)
    ask("verify-repair-dry-run", project, "verify", "--repair", "--dry-run", expect=4)
    ask("verify-repair", project, "verify", "--repair", expect=4)
    ask("repaired-run", project, "run")
    recording.secretly(f"update {ORDERS} set price = 0 where id = 10")
    where = ("--where", "id between 9 and 11")
    ask("reload-where-dry-run", project, "reload", ORDERS, *where, *BECAUSE, "--dry-run")
    ask("reload-where", project, "reload", ORDERS, *where, *BECAUSE)
    source = ("--from", "source", *BECAUSE)
    ask("reload-source-dry-run", project, "reload", VISITS, *source, "--dry-run")
    ask("reload-source", project, "reload", VISITS, *source)
    ask("reload", project, "reload", ORDERS, *BECAUSE)
    ask("reload-plan", project, "plan")
    ask("reload-run", project, "run")


def repeats(recording: Recording, project: Project, first: str) -> None:
    """The past, read again and made again."""
    ask = recording.ask
    span = ("--from", first, "--to", "latest")
    ask("replay-dry-run", project, "replay", *span, "--dry-run")
    ask("replay-compare", project, "replay", *span, "--compare")
    ask("replay", project, "replay", *span)
    ask("replay-refused", project, "replay", "--from", "nonsense", "--to", "latest", expect=2)
    version = ("--from", "changelog", *BECAUSE, "--dry-run")
    ask("reload-changelog-dry-run", project, "reload", ITEMS, *version)
    into = str(recording.folder / "past")
    at = ("--as-of", first, "--into", into)
    ask("rebuild-as-of-dry-run", project, "rebuild", ITEMS, *at, "--dry-run")
    ask("rebuild-as-of", project, "rebuild", ITEMS, *at)


def looks(recording: Recording, project: Project, first: str) -> None:
    """What writes nothing but a page."""
    ask = recording.ask
    for command in ("check", "tables", "versions"):
        ask(command, project, command)
    ask("status", project, "status", expect=6)
    ask("versions-at", project, "versions", "--at", first)
    ask("versions-list", project, "versions", "--list")
    ask("versions-refused", project, "versions", "--list", "--at", first, expect=2)
    ask("read", project, "read", ORDERS)
    ask("read-at", project, "read", ORDERS, "--at", first)
    ask("read-changes", project, "read", ORDERS, "--changes")
    ask("read-dbt", project, "read", "--dbt")
    ask("read-unknown", project, "read", f"{DATABASE}.nothing", expect=2)
    ask("schema", project, "schema", ITEMS)
    ask("schema-at", project, "schema", ITEMS, "--at", first)
    ask("schema-verify", project, "schema", "verify")
    ask("report", project, "report")
    run = recording.answers["versions"]["sources"]["shop"]["run"]
    ask("report-run", project, "report", run[:13])
    ask("report-span", project, "report", "--from", first, "--to", "latest")
    ask("metrics-files", project, "metrics", "--files")


def upkeep(recording: Recording, project: Project, first: str) -> None:
    """Files made fewer."""
    ask = recording.ask
    ask("upkeep-dry-run", project, "upkeep", "--dry-run")
    ask("upkeep", project, "upkeep", "--tables", ORDERS)
    ask("upkeep-purge", project, "upkeep", "--purge")


def losses(recording: Recording, project: Project, first: str) -> None:
    """A run taken back, a ledger lost, a lake that another ledger wrote."""
    ask = recording.ask
    ask("start-at", project, "start-at", "latest", *BECAUSE)
    ask("start-at-status", project, "status", expect=3)
    ask("start-at-run", project, "run")
    ask("recover-agrees", project, "recover")
    last = project.json("versions")["sources"]["shop"]["run"]
    ask("undo-dry-run", project.alone, "undo", last)
    ask("undo", project.alone, "undo", last, "--yes", "--author", "somebody")
    ask("undone-run", project, "run")
    project.at_rest()
    shutil.rmtree(project.folder / ".lockstep")
    shutil.copytree(empty_ledger(), project.folder / ".lockstep" / "ledger")
    ask("lost-run", project, "run", expect=5)
    ask("recover-start-over", project, "recover", "--start-over")
    ask("recover-dry-run", project, "recover")
    ask("recover", project, "recover", "--yes", "--author", "somebody")
    ask("recovered-run", project, "run")
    ask("recovered-verify", project, "verify")


def proofs(recording: Recording, project: Project, first: str) -> None:
    """A run that compares some rows itself: it does its work, and says what differs."""
    ask, config = recording.ask, project.config
    plain = config.read_text()
    config.write_text(f"{plain}prove_rows = 2000\n")
    recording.secretly(f"update {ORDERS} set price = 0 where id = 12")
    recording.happen("rows are proven", f"insert into {ORDERS} values (400, 'proven', 1)")
    ask("proved-run", project, "run", expect=4)
    ask("proved-status", project, "status", expect=6)
    recording.secretly(f"update {ORDERS} set price = 12.25 where id = 12")
    config.write_text(plain)


HIDING: Final = f"""
[[sources.table]]
match = "{ORDERS}"
hash_columns = ["name"]
mask_columns = {{ price = "null" }}
rows = "id > 5"

[privacy]
key = "file:key"
"""


def shapes(recording: Recording, project: Project, first: str) -> None:
    """A table that is shown in part from some day on."""
    ask, config = recording.ask, project.config
    plain = config.read_text()
    (project.folder / "key").write_text("a key that nobody guesses")
    config.write_text(plain + HIDING.replace('["name"]', '["nam", "price"]'))
    ask("shaped-check-refused", project, "check", expect=2)
    ask("shaped-run-refused", project, "run", expect=2)
    config.write_text(plain + HIDING)
    ask("shaped-check", project, "check")
    recording.secretly(f"analyze table {ORDERS}")  # its estimate is then its rows
    ask("shaped-plan", project, "plan")
    ask("shaped-run", project, "run")
    ask("shaped-schema", project, "schema", ORDERS)
    ask("shaped-verify", project, "verify", ORDERS)
    (project.folder / "key").write_text("another key that nobody guesses")
    ask("shaped-check-another-key", project, "check", expect=2)
    ask("shaped-plan-another-key", project, "plan", expect=2)
