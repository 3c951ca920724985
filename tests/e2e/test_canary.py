"""Secrets in whatever settings hide, in every way that they could get out: none ever does.

One database with a secret wherever a server keeps one, followed, killed, altered, compared and
told of by whole commands, to Dagster, lineage and consumers. Then every file that anything wrote is
searched. A word of what is shown is found in all the places where it must stand. Does not: what a
catalog is told, which `test_catalog` looks at.
"""

from __future__ import annotations

import base64
import gzip
import re
import signal
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lockstep import exits
from tests.e2e.points import Point
from tests.e2e.project import Project
from tests.e2e.searched import Kept, Place, Secrets, search, spelled
from tests.e2e.warm import TIMEOUT, WarmProcess
from tests.fix_mysql import MySqlStand

pytestmark = pytest.mark.acceptance

W = "Qzxw7k"
"""In each secret text; what stands behind it says where the secret was."""
DAY = "1853-07-19"
N = 0x5A78775137020000
"""Secret numbers begin here."""
SECRETS = Secrets((W, DAY), N)
SHOWN = "Vqjx3m"
"""In texts of what is shown: a search that misses it would miss a secret."""
KEY = "the key of the canary, long enough for anybody"

ROWS = 11_000
"""Two chunks of a table, of whose bounds the ledger has one."""

SETTINGS = """
[[sources.table]]
match = "{d}.people*"
exclude_columns = ["ssn", "kind", "doc", "tax", "late*", "g_*", "raw"]
hash_columns = ["email", "code"]
mask_columns = {{ phone = "last:4", born = "year", pay = "null", zip = "first:2" }}
types = {{ active = "boolean" }}
rows = "country = 'DE'"

[[sources.table]]
match = ["{d}.codes", "{d}.numbers", "{d}.few_numbers", "{d}.parts"]
hash_columns = ["code", "n"]
mask_columns = {{ v = "null" }}

[[sources.table]]
match = "{d}.left_out"
rows = "shown"

[[sources.table]]
match = ["{d}.wide", "{d}.few"]
exclude_columns = "v"

[[sources.table]]
match = "{d}.uuids*"
types = {{ u = "uuid" }}

[[sources.table]]
match = "{d}.broken"
exclude_columns = ["info", "j"]

[[sources.table]]
match = "{d}.simple"
hash_columns = "v"
"""

PEOPLE = f"""
create table people (
  id bigint primary key,
  code varchar(40) not null comment '{W} comment of a hashed column',
  name varchar(40) default '{SHOWN} default' comment '{SHOWN} comment',
  ssn varchar(40) default '{W} default' comment '{W} comment',
  kind enum('{W} member', '{W} other') default '{W} other',
  email varchar(60), phone varchar(40), born date, pay decimal(20,0), zip varchar(20),
  tax bigint, doc json, raw varbinary(40), country char(2), active tinyint,
  g_one varchar(90) as (concat(ssn, '{W} expression')) stored,
  g_two varchar(90) as (json_unquote(json_extract(doc, '$.{W}'))) virtual,
  key by_expression ((concat(ssn, '{W} functional'))),
  constraint hidden check (ssn <> '{W} check')
) comment '{W} comment of the table'
"""


def person(number: int, country: str = "DE") -> str:
    """A row; of one that is left out, what would be shown is secret too."""
    name = f"{SHOWN} {number}" if country == "DE" else f"{W} name"
    return (
        f"({number if country == 'DE' else N + number}, '{W} code Ünï {number}', '{name}', "
        f"'{W} ssn', '{W} member', '{W}@Mail.example', '{W} phone 7788', '{DAY}', {N + 1}, "
        f"'DE {W}', {N + 2}, '{{\"{W}\": \"{W} json\"}}', x'fe00{W.encode().hex()}ff', "
        f"'{country}', 1)"
    )


INTO = (
    "insert into people (id, code, name, ssn, kind, email, phone, born, pay, zip, tax, doc, raw,"
    " country, active) values "
)

MADE = (
    PEOPLE,
    f"{INTO}{', '.join(person(n) for n in range(1, 30))}",
    f"{INTO}{', '.join(person(n, 'XX') for n in range(100, 130))}",
    "create table codes (code varchar(40) primary key, v varchar(40), shown varchar(40))",
    *(
        f"create table {t} (n bigint primary key, v varchar(40))"
        for t in ("numbers", "few_numbers")
    ),
    f"insert into few_numbers values ({N} + 5, '{W} v'), ({N} + 7, '{W} v'), ({N} + 9, '{W} v')",
    f"create table parts (code varchar(40) primary key, v int) partition by range columns (code)"
    f" (partition a values less than ('{W} m'), partition b values less than ('{W} z'))",
    f"insert into parts values ('{W} a', {7}), ('{W} n', 8)",
    "create table left_out (k varchar(40) primary key, shown tinyint, v varchar(40))",
    "create table wide (id int primary key, v mediumtext)",
    "create table few (id int primary key, v varchar(60))",
    f"insert into few values (1, '{W} one'), (2, '{W} two')",
    "create table uuids (id int primary key, u char(36))",
    f"insert into uuids values (1, '{W} is no uuid')",
    "create table uuids_later (id int primary key, u char(36))",
    "create table broken (id int primary key, info varchar(60))",
    f"insert into broken values (1, '{W} is no JSON')",
    "alter table broken add column j json as (info) virtual",
    "create table simple (id int primary key, v varchar(60), w int)",
    f"insert into simple values (1, '{W} one', 1), (2, '{W} two', 2)",
    "create table plain (k varchar(40) primary key, v int)",
    f"insert into plain values ('{SHOWN} 000007', 1)",
    f"create trigger filled before insert on people for each row set new.ssn ="
    f" coalesce(new.ssn, '{W} trigger')",
    f"create view shown as select id, name from people where ssn <> '{W} view'",
)
COUNTED = (
    "with recursive c (n) as (select 0 union all select n + 1 from c where n < {last}) select "
)
FILLED = (
    "set session cte_max_recursion_depth = 1000000",
    f"insert into codes {COUNTED.format(last=ROWS)} concat('{W} ', lpad(n, 6, '0')), '{W} v',"
    f" '{SHOWN}' from c",
    f"insert into numbers {COUNTED.format(last=ROWS)} {N} + n, '{W} v' from c",
    f"insert into left_out {COUNTED.format(last=ROWS)} concat('{W} ', lpad(n, 6, '0')), 0,"
    f" '{W} v' from c",
    "insert into left_out values ('a', 1, 'shown')",
)
CHANGED = (
    f"update people set ssn = '{W} another' where id = 3",
    f"update people set email = '{W}.new@mail.example', phone = '{W} 12345678' where id = 4",
    f"update people set country = 'XX', name = '{W} leaves' where id = 5",
    f"update people set country = 'DE', name = 'enters', id = 5000 where id = {N + 100}",
    f"update people set name = '{W} stays out' where country = 'XX'",
    f"update people set name = '{SHOWN} changed' where id = 6",
    f"delete from people where ssn = '{W} another'",
    f"delete from codes where code <= '{W} 000100'",
    f"update few_numbers set n = {N} + 60000 where n = {N} + 5",
    f"update plain set v = v + 1 where k = '{SHOWN} 000007' and '{W} of another table' <> ''",
    f"insert into uuids_later values (1, '{W} is none')",
    f"update simple set v = '{W} three' where id = 1",
)
ALTERED = (
    f"alter table people add column late varchar(60) default '{W} late' comment '{W} late comment'",
    f"alter table people modify ssn varchar(80) default '{W} modified' comment '{W} modified'",
    f"alter table people comment '{W} new comment'",
    f"alter table plain add column {SHOWN} int comment '{SHOWN} of a new column'",
    f"alter table people add column later enum('{W} x', '{W} y') default '{W} y'",
    f"alter table people alter column late set default '{W} set'",
    f"alter table people add constraint later_check check (late <> '{W} late check')",
    f"alter table parts add partition (partition c values less than ('{W} zz'))",
    f"alter table simple modify v varchar(80) default '{W} simple default'",
    "create table people_like like people",
    "create table likes like people",
    f"insert into likes (id, code, name, ssn) values (1, 'x', 'y', '{W} of a copy')",
    "rename table simple to simpler",
)
LARGE = (
    "set session cte_max_recursion_depth = 1000000",
    f"insert into wide {COUNTED.format(last=2_000)} n, repeat('{W} ', 5000) from c",
)
PREPARED = (
    "xa start 'canary'",
    INTO + person(40),
    f"insert into wide values (1000000, '{W} prepared')",
    "xa end 'canary'",
    "xa prepare 'canary'",
)


TEMPORARY, SOME_STOPPED = exits.TRY_AGAIN, exits.QUARANTINED

STOPPED = {"broken", "likes", "simpler", "uuids", "uuids_later"}
"""Tables with a value that cannot be shown, and names that would show more."""

MUST_BE = {
    "rows of mirrors": r"lake/shop/{d}/people/[^/]+\.parquet$",
    "statistics of mirrors": r"lake/shop/{d}/codes/_delta_log/\d+\.json$",
    "changes": r"lake/shop/_changes/{d}/people/.*\.parquet$",
    "structures": r"lake/shop/_structures/",
    "the ledger's rows": r"ledger$",
    "the ledger's files": r"\.lockstep/ledger/",
    "Dagster's files": r"\.lockstep/dagster/",
    "reports": r"\.lockstep/pages/.*\.html$",
    "events of lineage": r"events\.jsonl$",
    "what is said": r"said/\d+ (schema|verify|replay|plan|read|report)",
    "what Dagster shows": r"said/\d+ dagster$",
    "what consumers are given": r"said/\d+ consumers$",
}
"""Where what is shown must be found."""


@dataclass
class Canary:
    """A project, what its commands say, and its files as they were at several moments."""

    project: Project
    kept: Kept
    said: int = 0

    def tell(self, *command: str) -> int:
        """A command, which may refuse and not fail."""
        done = self.project.run(*command, expect=None)
        self._say(" ".join(command), done.stdout, done.stderr)
        assert done.returncode != exits.DEFECT and "--help" not in done.stderr, (command, done)
        return done.returncode

    def run(self, *options: str) -> None:
        """A run that ends as it should, once the ledger has noticed that a killed one is gone."""
        for _ in range(20):
            ended = self.tell("run", *options)
            if ended != TEMPORARY:
                break
        assert ended == SOME_STOPPED

    def show(self, module: str, *arguments: str) -> None:
        with self.project.start(module, *arguments) as shown:
            out, err = shown.communicate(TIMEOUT)
            self._say(" ".join(arguments) or module, out, err)
            assert shown.returncode == 0, err

    def _say(self, what: str, *said: str) -> None:
        self.said += 1
        name = f"{self.said:02} {what}".replace("/", " ")
        self.kept.add("said", name, "\n".join(said).encode())

    def stopped(self) -> set[str]:
        return {one["table"].split(".")[1] for one in self.project.status()["stopped"]}

    def keep(self, moment: str) -> None:
        self.kept.keep(moment, self.project.folder)
        self.kept.add(moment, "ledger", "\n".join(self.project.ledger_rows()).encode())


def opened_files(process: int) -> Iterator[bytes]:
    """Files of a process that is stopped, which have no name."""
    for path in Path(f"/proc/{process}/fd").iterdir():
        name = str(path.readlink())
        if "(deleted)" in name and "memfd" not in name:
            yield path.read_bytes()


@pytest.fixture
def canary(
    mysql: MySqlStand,
    database: str,
    tmp_path: Path,
    warm: WarmProcess,
    monkeypatch: pytest.MonkeyPatch,
) -> Canary:
    folder = tmp_path / "project"
    (folder / "tmp").mkdir(parents=True)
    for name in ("TMPDIR", "SPARK_LOCAL_DIRS"):
        monkeypatch.setenv(name, str(folder / "tmp"))
    monkeypatch.setenv("CANARY_KEY", KEY)
    send(mysql, database, *MADE, *FILLED)
    mysql.execute("flush binary logs")
    project = Project.made(
        folder,
        port=mysql.port,
        tables=[f"{database}.*"],
        start="snapshot",
        top='[privacy]\nkey = "env:CANARY_KEY"\n[lineage]\n'
        'transport = { type = "file", log_file_path = "events.jsonl", append = true }\n',
        extra="[sources.snapshot]\nchunk_seconds = 0.000001\nconnections = 1\n"
        + SETTINGS.format(d=database),
        warm=warm,
    )
    return Canary(project, Kept(tmp_path / "kept", folder))


def send(mysql: MySqlStand, database: str, *statements: str) -> None:
    """In a session whose statements are in the log."""
    mysql.execute("set session binlog_rows_query_log_events = on", *statements, database=database)


@pytest.mark.parametrize(
    "content",
    [
        f"…{W}…".encode(),
        f"…{W}…".encode("utf-16-le"),
        f"…{W}…".lower().encode(),
        f"\\x{W.encode().hex()}".encode(),
        *(base64.b64encode(f"{'-' * n}{W}{'-' * n}".encode()) for n in range(4)),
        str(N + 7).encode(),
        (N + 7).to_bytes(8, "little"),
        gzip.compress(DAY.encode(), mtime=0),
        pa.array([f"{W} of many"] * 10),
        pa.array([N + 1, None]),
        pa.array([Decimal(N + 1), None]),
        pa.array([date.fromisoformat(DAY)]),
        pa.array([{"a": [W.encode()]}]),
        pa.array([[("a", W)]], pa.map_(pa.string(), pa.string())),
    ],
    ids=str,
)
def test_a_secret_is_found(content: bytes | pa.Array, tmp_path: Path) -> None:
    """In each of the ways that it could be spelled, or hidden by a file's format."""
    if isinstance(content, bytes):
        (tmp_path / "file").write_bytes(content)
    else:
        pq.write_table(pa.table({"c": content}), tmp_path / "file", compression="zstd")
    assert search(tmp_path, SECRETS.spelled()) != [[]]


def test_no_secret_is_anywhere(canary: Canary, mysql: MySqlStand, database: str) -> None:
    project = canary.project
    canary.tell("check")
    canary.tell("plan", "--json")
    project.killed(Point.CHUNK_PLANNED, "after", 2)
    canary.keep("1 killed while it loads")
    canary.run("--log-file", "log.jsonl")
    canary.keep("2 loaded")

    send(mysql, database, *CHANGED)
    project.killed(Point.CHANGES_STAGED, "after")
    canary.keep("3 killed while it merges")
    send(mysql, database, *ALTERED, *PREPARED)
    canary.show("tests.e2e.dagster_run")
    canary.keep("4 changed, with a prepared transaction")
    assert canary.stopped() == STOPPED
    assert [*(project.lake / "shop" / "_prepared").iterdir()] != []

    send(mysql, database, "xa commit 'canary'", *LARGE)
    with project.start("tests.e2e.killer", Point.ROWS_TAKEN, "asleep", "2", "--", "run") as process:
        process.wait_until_stopped()
        spilled = b"".join(opened_files(process.pid))
        process.send_signal(signal.SIGKILL)
        process.wait(TIMEOUT)
    assert len(spilled) > 1 << 20, "nothing was spilled"
    canary.kept.add("5 killed while it spills", "spilled", spilled)
    canary.keep("5 killed while it spills")
    canary.run("--json", "--log-format", "json", "--log-file", "log.jsonl")

    tell_all(canary, mysql, database)
    canary.keep("6 all")
    project.at_rest()
    canary.kept.keep("7 at rest", project.folder)

    secret, shown = search(canary.kept.folder, SECRETS.spelled(), spelled(SHOWN))
    assert project.warm is not None and project.warm.folder is not None
    [left] = search(project.warm.folder, SECRETS.spelled())
    assert secret + left == [], "\n".join(map(str, secret + left))
    assert missing(shown, database) == []


def missing(found: Sequence[Place], database: str) -> list[str]:
    """Kinds of places where nothing was found."""
    files = [one.file for one in found]
    return [
        place
        for place, pattern in MUST_BE.items()
        if not any(re.search(pattern.format(d=database), file) for file in files)
    ]


def tell_all(canary: Canary, mysql: MySqlStand, database: str) -> None:
    """Every command that shows anything, in words and as JSON."""
    secretly = f"update people set email = '{W} differs', name = '{W}', country = 'XX' where id = 9"
    mysql.execute(
        "set sql_log_bin = 0",
        secretly,
        f"update people set email = '{W} differs' where id = 10",
        "update people set name = 'differs' where id = 11",
        f"update codes set v = '{W} differs'",
        f"delete from few_numbers where n = {N} + 7",
        f"insert into few_numbers values ({N} + 50000, '{W}')",
        database=database,
    )
    people, past = f"{database}.people", ("--from", "earliest", "--to", "latest")
    for command in (
        ("verify", "--show-values"),
        ("verify", "--show-values", "--json"),
        ("verify", "--sample", "10", "--show-values"),
        ("replay", *past, "--compare", "--show-values"),
        ("schema", people),
        ("schema", people, "--json"),
        ("schema", f"{database}.likes", "--json"),
        ("schema", "verify", "--json"),
        ("check", "--json"),
        ("status",),
        ("plan",),
        ("tables",),
        ("tables", "--json"),
        ("versions", "--json"),
        ("metrics", "--json"),
        ("upkeep", "--dry-run", "--json"),
        ("rebuild", people, "--as-of", "latest", "--dry-run", "--json"),
        ("reload", people, "--from", "changelog", "--reason", "a trial", "--dry-run", "--json"),
        ("read", "--dbt"),
        ("read", people, "--json"),
        ("read", people, "--changes", "--json"),
        ("reload", people, "--where", "id < 5", "--reason", "differs"),
        ("reload", f"{database}.few", "--where", "id < 2", "--reason", "differs", "--json"),
        ("report", "--from", "earliest", "--json"),
        ("resume", f"{database}.uuids", "--reason", "another try", "--json"),
        ("reload", people, "--reason", "differs", "--json"),
        ("verify", "--repair", "--json"),
        ("run",),
        ("replay", *past, "--json"),
        ("status", "--json"),
    ):
        canary.tell(*command)
    canary.show("tests.e2e.shown", "dagster")
    canary.show("tests.e2e.shown", "consumers")
