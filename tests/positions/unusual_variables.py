"""A server whose global variables are unusual, and the whole way of a table there.

Belongs here: which values a variable is tried with, setting many at once, and a first run, a later
one and comparisons as one value that can be held against another. Does not: what is proven.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

import pymysql
from pymysql.cursors import Cursor

from lockstep.pipeline.check import SourceEvidence, preflight
from lockstep.pipeline.run.proof.verify_rows import verify
from lockstep.pipeline.run.proof.verify_schema import verify_schema
from lockstep.pipeline.snapshot.pace import Pace
from lockstep.pipeline.source_plan import SnapshotPlan, SourcePlan
from lockstep.pipeline.values.errors import LockstepError
from lockstep.pipeline.values.table import TablePatterns
from tests.fix_mysql import MySqlStand
from tests.mysql.reading import server
from tests.positions.follower import SOURCE, Follower

VALUES: Final = {
    "init_connect": ("set autocommit = 0, sql_select_limit = 1, sql_mode = 'ansi'",),
    "sql_mode": ("ANSI,NO_BACKSLASH_ESCAPES,HIGH_NOT_PRECEDENCE,PAD_CHAR_TO_FULL_LENGTH", "ORACLE"),
    "time_zone": ("+05:30",),
    "character_set_client": ("latin1",),
    "character_set_connection": ("latin2",),
    "character_set_results": ("latin1", "NULL"),
    "character_set_server": ("ucs2",),
    "character_set_filesystem": ("latin1",),
    "collation_connection": ("utf8mb4_bin",),
    "collation_server": ("utf16_bin",),
    "default_collation_for_utf8mb4": ("utf8mb4_general_ci",),
    "character_set_collations": ("utf8mb4=utf8mb4_bin",),
    "lc_time_names": ("pl_PL",),
    "lc_messages": ("de_DE",),
    "system_versioning_asof": ("2001-01-01 00:00:00",),
    "block_encryption_mode": ("aes-256-cbc",),
    "transaction_isolation": ("READ-UNCOMMITTED", "SERIALIZABLE"),
    "tx_isolation": ("READ-UNCOMMITTED", "SERIALIZABLE"),
    "default_regex_flags": ("DOTALL,EXTENDED",),
    "max_statement_time": ("0.000001",),
    "max_allowed_packet": ("1024",),
    "max_session_mem_used": ("500000",),  # MariaDB itself breaks down with less
}
"""Values of variables that are no number, no switch and no list of switches."""

LEFT_OUT: Final = re.compile(
    # Who is let in, and what for.
    r"offline_mode|require_secure_transport|partial_revokes|mandatory_roles|activate_all_roles.*"
    r"|max_connections|max_user_connections|max_password_errors|connect_timeout|back_log|admin_.*"
    r"|.*password.*|authentication_.*|caching_sha2.*|sha256_.*|ssl_.*|tls_.*|keyring.*|secure_.*"
    r"|create_admin.*|extra_.*|proxy_.*|mysqlx_.*|log_bin_trust.*|super_read_only"
    # Which server it is, and whose replica.
    r"|server_id|server_uuid|gtid_mode|gtid_(?:slave|purged|domain|binlog|pos|seq).*|enforce_gtid.*"
    r"|rpl_.*|(?:slave|replica|relay|source|master)_.*|replicate_.*|wsrep_.*|group_replication.*"
    # Where and how much it writes, what it keeps in memory, how it is looked into.
    r"|.*_dir|.*_file|.*debug.*|.*_instances|.*plugin.*|telemetry.*|offline.*|flush|thread_.*"
    r"|innodb_(?:redo|undo|buffer|log|monitor|io|fast|max_|fil_|page|purge|idle|adaptive|change"
    r"|cmp|doublewrite|encrypt|deadlock_detect|force|fill|flush|read_io|write_io|validate|extend"
    r"|data_file|dedicated|numa|open|online|old_blocks|optimize|random|replication|rollback_seg"
    r"|sync|thread|tmp|trx|use|segment|saved|status|spin|concurrency|commit|background|autoextend"
    r"|auto_lru|compression|corrupt|merge|scrub|immediate|default_row|disable|checksum|alter|lru"
    r"|evict|limit|defragment).*|aria_(?!sort).*|key_.*|table_.*_cache|host_cache.*|schema_def.*"
    r"|tablespace_def.*|stored_program.*|delayed_.*|max_delayed.*|event_scheduler|sync_.*"
    # What whoever makes a table makes of it.
    r"|mysql56_temporal_format"
)
"""Variables that have nothing to say about sessions of ours."""

_FLAG: Final = re.compile(r"(\w+)=(on|off)")
_NUMBER: Final = re.compile(r"-?\d+(\.\d+)?")
_OTHER: Final = {"ON": "OFF", "OFF": "ON"}


@dataclass(frozen=True, slots=True)
class Unusual:
    """A global variable, and a value that it does not have."""

    name: str
    value: str
    before: str

    def __str__(self) -> str:
        return f"{self.name} = {self.value}"


def unusual_values(stand: MySqlStand, names: Collection[str] | None = None) -> list[Unusual]:
    """Of every global variable that can be set while the server runs, or of those of `names`; each
    was set once."""
    found = []
    with stand.connect() as session, session.cursor() as cursor:
        cursor.execute("set session sql_mode = ''")
        cursor.execute("show global variables")
        for name, before in cursor.fetchall():
            if LEFT_OUT.fullmatch(name) or (names is not None and name not in names):
                continue
            for value in _candidates(name, before):
                unusual = Unusual(name, value, before)
                if _put(cursor, name, value):
                    cursor.execute("show global variables like %s", (name.replace("_", r"\_"),))
                    [(_, after)] = cursor.fetchall()
                    _put(cursor, name, before)
                    if after != before:
                        found.append(unusual)
    return found


def _candidates(name: str, before: str) -> Iterator[str]:
    if name in VALUES:
        yield from VALUES[name]
    elif before in _OTHER:
        yield _OTHER[before]
        yield "2"
    elif _FLAG.search(before):
        yield _FLAG.sub(lambda flag: f"{flag[1]}={'off' if flag[2] == 'on' else 'on'}", before)
    elif _NUMBER.fullmatch(before):
        yield "0"
        if not re.search("size|mem|buffer|weight|pre?alloc|stack", name):
            yield str(1 << 62)
    else:
        yield from "0123"


def _put(cursor: Cursor, name: str, value: str) -> bool:
    plain = _NUMBER.fullmatch(value) or value in ("ON", "OFF", "NULL")
    try:
        if value == "DEFAULT":
            cursor.execute(f"set global {name} = default")
        elif plain:
            cursor.execute(f"set global {name} = {value}")
        else:
            cursor.execute(f"set global {name} = %s", (value,))
    except pymysql.MySQLError:
        return False
    return True


@contextmanager
def holding(stand: MySqlStand, unusual: Sequence[Unusual]) -> Iterator[None]:
    """All of them, for sessions that begin inside."""
    with stand.connect() as session, session.cursor() as cursor:
        cursor.execute("set session sql_mode = ''")
        try:
            for one in unusual:
                _put(cursor, one.name, one.value)
            yield
        finally:
            for one in reversed(unusual):
                _put(cursor, one.name, one.before)


WIDE: Final = ", ".join(f"c{number} int" for number in range(150))
BEFORE: Final = (
    f"create table wide (id int primary key, {WIDE})",
    "create table texts (id varchar(20) character set latin2, n int unsigned, c char(10), "
    "u varchar(30) character set utf8mb4, l varchar(30) character set latin1, "
    "e enum('a','ł','\"') , s set('x','ö'), j json, b blob, t text, primary key (id, n)) "
    "default character set utf8mb4",
    "create table numbers (id bigint unsigned primary key, d decimal(20,5) default 1.5, f float, "
    "g double, b bit(9), ts timestamp(3) null, dt datetime(6), da date, ti time(2), y year, "
    "v int as (id + 1) virtual, w varchar(40) as (concat(da, '|', y)) stored)",
    "create table parents (id int primary key, k varchar(300), key (k))",
    "create table children (id int primary key, p int, constraint fk foreign key (p) references "
    "parents (id) on delete cascade on update set null)",
    "create table keyless (id int, t varchar(10))",
    "create table heap (id int primary key, t varchar(10)) engine = myisam",
    "insert into wide (id, c0, c149) select n, n, -n from tens where n < 120",
    "insert into texts select concat('k', n mod 7, 'ł'), n, concat('c', n), 'żółć 😀', 'Ä\\'\"', "
    "1 + n mod 3, n mod 4, concat('{\"a\": ', n, '}'), repeat('b', 300), repeat('ł', 5000) "
    "from tens where n < 130",
    "insert into numbers (id, d, f, g, b, ts, dt, da, ti, y) select n, n / 7, n / 3, n / 9, n, "
    "from_unixtime(1e9 + n), '2020-03-04 05:06:07.891', '2020-02-03', '-12:13:14.15', 2001 "
    "from tens where n between 1 and 130",
    "insert into parents select n, concat('k', n) from tens where n < 60",
    "insert into children select n, n from tens where n < 60",
    "insert into keyless select n mod 5, 'x' from tens where n < 60",
    "insert into heap select n, 'y' from tens where n < 60",
)
AFTER: Final = (
    "update wide set c1 = 1, c148 = 2 where id < 10",
    "delete from texts where n = 3",
    "insert into texts (id, n, c, u) values ('new', 1, 'q\\\\', 'é')",
    "update numbers set ts = '2021-02-03 04:05:06', d = d + 1 where id < 5",
    "alter table numbers add column late datetime default '2022-01-02 03:04:05'",
    "alter table parents add column more varchar(10) character set latin1 default 'ä'",
    "insert into numbers (id, da) values (1000, '0000-00-00')",
    "insert into keyless values (9, 'z')",
    "insert into heap values (99, 'z')",
)
_TENS: Final = (
    "create table tens (n int primary key)",
    "insert into tens select a.n + 10 * b.n + 100 * c.n from "
    + ", ".join(
        "(" + " union all ".join(f"select {n} n" for n in range(top)) + f") {name}"
        for name, top in (("a", 10), ("b", 10), ("c", 2))
    ),
)
SMALL: Final = Pace(seconds=1e-9, least_rows=50, first_rows=50, most_rows=50)


@dataclass(frozen=True, slots=True)
class Way:
    """What is left of a source that was read, written to, followed and compared."""

    mirrors: Mapping[str, list[str]]
    structures: Mapping[str, str]
    told: tuple[str, ...]

    def others(self, plain: Way) -> list[str]:
        """What is not as in the plain one."""
        pairs = ((self.mirrors, plain.mirrors), (self.structures, plain.structures))
        changed = [
            f"other {what} {name}: {mine.get(name)}, not {theirs.get(name)}"
            for what, (mine, theirs) in zip(("rows", "structures"), pairs, strict=True)
            for name in sorted({*mine, *theirs})
            if mine.get(name) != theirs.get(name)
        ]
        return [*changed, *(self.told if self.told != plain.told else ())]


def whole_way(stand: MySqlStand, unusual: Sequence[Unusual] = ()) -> Way:
    """A check, a first run that reads tables chunk by chunk, changes, a run, and both comparisons.
    Whoever writes has the variables as they were before."""
    with stand.own_database() as name, stand.connect(name) as session, session.cursor() as writer:
        for statement in (*_WRITER, *_TENS, *BEFORE, "drop table tens", "flush binary logs"):
            writer.execute(statement)
        with holding(stand, unusual):
            source = server(stand)
            follower = Follower(source, [f"{name}.*"], start="snapshot")
            follower.snapshot = SnapshotPlan(max_seconds=1e9, connections=1, pace=SMALL)
            looked = SourceEvidence(
                source.survey(), SourcePlan("shop", TablePatterns((f"{name}.*",)), None)
            )
            preflight(source, looked, {})
            follower.run()
            for statement in AFTER:
                writer.execute(statement)
            follower.run()
            rows, schemas = verify(follower.ports()), verify_schema(follower.ports())
        unequal = [one for one in rows.tables if not one.equal]
        told = (
            *unequal,
            *rows.not_compared,
            *rows.not_proven,
            *schemas.history_disagreements,
            *schemas.server_disagreements,
        )
        tables = sorted(follower.ledger.table_states(SOURCE))
        return Way(
            {table.name: sorted(map(str, follower.mirror(str(table)))) for table in tables},
            {
                version.table.name: repr(version.schema).replace(name, "")
                for version in follower.ledger.schemas_at(SOURCE)
            },
            tuple(map(str, told)),
        )


def differences(stand: MySqlStand, plain: Way, unusual: Sequence[Unusual]) -> list[str]:
    """What is not as without them, once for each variable that a refusal does not name."""
    try:
        way = whole_way(stand, unusual)
    except LockstepError as error:
        found = f"{error.message} {error.hint}"
        rest = [one for one in unusual if one.name not in found]
        if len(rest) < len(unusual):
            return differences(stand, plain, rest)
    else:
        if not (others := way.others(plain)):
            return []
        found = "; ".join(others)
    if len(unusual) == 1:
        return [f"{unusual[0]}: {found}"]
    middle = len(unusual) // 2
    halves = unusual[:middle], unusual[middle:]
    alone = [told for half in halves for told in differences(stand, plain, half)]
    return alone or [f"{', '.join(map(str, unusual))}: {found}"]


_WRITER: Final = ("set time_zone = '+00:00'", "set sql_mode = ''")
