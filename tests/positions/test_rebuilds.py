"""Random histories with DDL, made again as of any transaction: what MySQL showed then.

MySQL itself is asked for its rows after every few statements. The lake is written by whole runs,
runs that die, replays and reloads from the changelog; it is asked for each of those places in one
of the ways there are to name it.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import product
from random import Random
from types import SimpleNamespace
from typing import Any, cast

import pytest

from lockstep.pipeline.model.table_state import OrderKind, Supplier
from lockstep.pipeline.run.rebuild import (
    cut_at,
)
from lockstep.pipeline.values.errors import ConfigurationError, PastRefused, SpanRefused, StoppedBy
from lockstep.pipeline.values.intent import MirrorVersion
from lockstep.pipeline.values.places import Place, moment_text, parse_place
from lockstep.pipeline.values.policies import Deletes, DroppedColumns, LakePolicies
from lockstep.pipeline.values.table import TableName
from tests.fix_mysql import MySqlStand
from tests.mysql.logged import head
from tests.mysql.reading import server
from tests.outside import RunPorts, earliest_readable_version, newest_readable_version
from tests.positions.follower import SOURCE, Follower
from tests.positions.interrupted import Crash, mortal
from tests.positions.paused import Shop
from tests.positions.test_ends import let_a_second_pass
from tests.proof.writing import spoil
from tests.twins.lake import MemoryCommit

TABLES = ("a", "b", "k")
"""The last has no key, unless rows are to be marked."""
STEPS = (
    "record_capture",
    "intend",
    "settle",
    "mark_merged",
    "acknowledge",
    "note_examined_versions",
)
ACTIONS, MORE = 15, 50
"""In every run, and in the soak."""
STOPPED = re.compile("it was stopped|it was brought back with a later batch|lacks batches")
KEYED = {False: "", True: " primary key"}
"""Rows that are gone can be kept only where a key tells them apart."""

Rows = list[dict[str, Any]] | None


@dataclass(frozen=True)
class Seen:
    """What MySQL showed at a place: rows by table, None of one that was not there."""

    at: str
    gtids: str
    moment: datetime
    rows: dict[str, Rows]


@dataclass
class Past:
    """`kept`: what the mirrors of tables showed behind a run, by the place where it ended."""

    stand: MySqlStand
    name: str
    random: Random
    follower: Follower
    number: int = 0
    seen: list[Seen] = field(default_factory=list)
    kept: dict[str, dict[str, Rows]] = field(default_factory=dict)

    def act(self) -> None:
        acts = (
            *(self.write,) * 12,
            *(self.alter,) * 2,
            *(self.run,) * 3,
            *(self.killed, self.replay, self.damaged, self.pause, self.resume),
        )
        self.random.choice(acts)()

    def write(self) -> None:
        self.number += 1
        key, other = self.random.randrange(12), self.random.randrange(12)
        there = [one for one in TABLES if self.there(one)]
        if not there:
            return
        table = self.random.choice(there)
        self.do(
            f"insert ignore into {table} (id, v) values ({key}, {self.number})",
            f"update {table} set v = {self.number} where id >= {other}",
            f"update ignore {table} set id = {other} where id = {key}",
            f"delete from {table} where id = {self.random.randrange(12)}",
        )
        self.see()

    def alter(self) -> None:
        self.number += 1
        table = self.random.choice(TABLES)
        key = KEYED[self.follower.lake_policies.keeps_rows] if table == "k" else " primary key"
        columns = [one for one in self.columns(table) if one.startswith("c")]
        if not self.there(table):
            self.do(f"create table {table} (id int{key}, v int)")
        else:
            new = f"c{self.number}"
            some = [f"alter table {table} add column {new} int default {self.number}"]
            some += ["flush binary logs", f"truncate table {table}", f"drop table {table}"]
            if columns:
                one = self.random.choice(columns)
                some += [f"alter table {table} drop column {one}"] * 2
                some += [f"alter table {table} {self.renaming(table, one, new)}"] * 2
                some += [f"alter table {table} modify {one} bigint"]
            self.do(self.random.choice(some))
        self.see()

    def renaming(self, table: str, column: str, new: str) -> str:
        """The column gets another name and nothing else; MySQL 5.7 has to be told its type."""
        if self.stand.version >= (8,):
            return f"rename column {column} to {new}"
        [(kind,)] = self.stand.rows(
            "select column_type from information_schema.columns where table_schema = "
            f"'{self.name}' and table_name = '{table}' and column_name = '{column}'"
        )
        return f"change {column} {new} {kind}"

    def run(self) -> None:
        self.follower.run()
        cursor = self.follower.ledger.cursors(SOURCE).acknowledged
        if cursor is not None:
            there = [table for table in TABLES if self.there(table)]
            states = self.follower.ledger.table_states(SOURCE)
            follows = [one for one in there if states[TableName(self.name, one)].is_complete]
            rows = {one: self.follower.mirror(f"{self.name}.{one}") for one in follows}
            self.kept[str(cursor.position.at)] = {one: _ordered(rows[one]) for one in follows}

    def killed(self) -> None:
        step, after = self.random.choice(STEPS), self.random.random() < 0.5
        with mortal(self.follower, step, after=after), suppress(Crash):
            self.follower.run()

    def replay(self) -> None:
        self.run()
        with suppress(SpanRefused):
            self.follower.replay()

    def damaged(self) -> None:
        """Rows of the live mirror are wrong, and it is written again from its changelog, maybe at
        the second try. Rows that are kept are in no changelog."""
        self.run()
        table = TableName(self.name, self.random.choice(TABLES[:2]))
        state = self.follower.ledger.table_states(SOURCE).get(table)
        kept = self.follower.lake_policies.keeps_rows
        if kept or state is None or not state.is_complete:
            return
        commits = self.follower.lake.tables[state.mirror]
        at, right = len(commits) - 1, commits[-1]
        spoil(self.follower, table, lambda rows: [row.update(v=-1) for row in rows])
        self.follower.reload(table, Supplier.CHANGELOG)
        if self.random.random() < 0.5:
            self.killed()
        self.follower.run()
        commits[at] = right
        assert _ordered(self.follower.mirror(str(table))) == _ordered(right.rows.to_pylist())

    def pause(self) -> None:
        """The table stops somewhere; the log behind that is read later."""
        known = self.follower.ledger.table_states(SOURCE)
        name = TableName(self.name, self.random.choice(TABLES))
        if name in known and known[name].is_complete:
            self.follower.order(OrderKind.PAUSE, name)

    def resume(self) -> None:
        for name, state in self.follower.ledger.table_states(SOURCE).items():
            if state.stopped_by is StoppedBy.PERSON:
                self.follower.order(OrderKind.RESUME, name)
        self.follower.run()

    # -- what MySQL has ------------------------------------------------------------------

    def do(self, *statements: str) -> None:
        self.stand.execute(*statements, database=self.name)

    def columns(self, table: str) -> list[str]:
        found = self.stand.rows(
            "select column_name from information_schema.columns where table_schema = "
            f"'{self.name}' and table_name = '{table}'"
        )
        return [name for (name,) in found]

    def there(self, table: str) -> bool:
        return bool(self.columns(table))

    def shown(self, table: str) -> Rows:
        columns = self.columns(table)
        if not columns:
            return None
        names = ", ".join(columns)
        found = self.stand.rows(f"select {names} from {self.name}.{table}")
        return _ordered([dict(zip(columns, row, strict=True)) for row in found])

    def see(self) -> None:
        place = str(head(self.stand))
        [(gtids, moment)] = self.stand.rows("select @@global.gtid_executed, utc_timestamp(6)")
        rows = {table: self.shown(table) for table in TABLES}
        told = gtids.replace("\n", "")
        self.seen.append(Seen(place, told, moment.replace(tzinfo=UTC), rows))

    # -- what the lake says of it ----------------------------------------------------------

    def require(self, seen: Seen) -> None:
        ways = [seen.at, f"gtid:{seen.gtids}"]
        if self.stand.version >= (8,):  # the log of 5.7 has seconds, in which much happens here
            ways.append(moment_text(seen.moment))
        for table in TABLES:
            name, place = TableName(self.name, table), self.random.choice(ways)
            if seen.rows[table] is None:
                with pytest.raises(ConfigurationError):
                    self.follower.rebuilt(name, place)
                continue
            try:
                found = self.follower.rebuilt(name, place)
            except PastRefused as error:
                assert STOPPED.search(error.message), error
                continue
            assert _ordered(found) == seen.rows[table], place
            assert not [file for file in self.follower.lake.files if "/_staging/" in file]


def _ordered(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: sorted((name, str(value)) for name, value in row.items()))


SEEDS = [0, *(pytest.param(n, marks=pytest.mark.soak) for n in range(1, 80))]


def made(mysql: MySqlStand, database: str, seed: int, policies: LakePolicies) -> Past:
    """With a history, the end of which nobody saw."""
    start = str(head(mysql))
    mysql.execute(
        *(f"create table {t} (id int primary key, v int)" for t in TABLES[:2]),
        f"create table {TABLES[2]} (id int{KEYED[policies.keeps_rows]}, v int)",
        database=database,
    )
    follower = Follower(server(mysql), [f"{database}.*"], start=start, lake_policies=policies)
    past = Past(mysql, database, Random(seed), follower)
    past.see()
    for _ in range(MORE if seed else ACTIONS):
        past.act()
    mysql.execute(f"create table {database}.later (id int primary key)")
    past.run()
    past.run()
    return past


@pytest.mark.parametrize("seed", SEEDS)
def test_any_place_of_the_past(mysql: MySqlStand, database: str, seed: int) -> None:
    """Inside batches and at their ends, over DDL, truncated, dropped and new tables, runs that
    died, replays, live mirrors that were made again."""
    past = made(mysql, database, seed, LakePolicies(dropped_columns=DroppedColumns.DROP))
    ledger, lake = past.follower.ledger, past.follower.lake
    cursor, tables = ledger.cursors(SOURCE).acknowledged, dict(lake.tables)
    for seen in past.seen:
        past.require(seen)
    assert ledger.cursors(SOURCE).acknowledged == cursor
    assert all(lake.tables[name] == commits for name, commits in tables.items())
    future = moment_text(datetime.now(UTC) + timedelta(days=1))
    for place, why in (
        (future, "does not show"),
        (f"{past.seen[0].at.split(':')[0]}:4", "the history begins at"),
    ):
        with pytest.raises(ConfigurationError, match=why):
            past.follower.rebuilt(TableName(database, "a"), place)


def test_a_moment_between_two_batches_is_the_end_of_the_first(
    mysql: MySqlStand, database: str
) -> None:
    """Also where the table stood still in the second, and came back with it. A place where it stood
    still is refused with the last one before that works, not with the first of all. Before the
    first batch there is no past."""
    follower = Follower(server(mysql), [f"{database}.*"], start=str(head(mysql)))
    shop = Shop(mysql, database, follower)
    table, places = shop.table("a"), []
    shop.do("create table a (id int primary key)", "create table b (id int primary key)")
    for key in (1, 2):
        shop.do(f"insert into a values ({key})")
        places.append(shop.run().end.at)
    let_a_second_pass(mysql)
    between = place_of(mysql)
    let_a_second_pass(mysql)
    shop.pause("a")
    shop.do("insert into a values (3)", "insert into b values (3)")
    stopped = shop.run().end.at
    shop.do("insert into b values (4)")
    shop.run()
    shop.resume("a")
    shop.run()
    assert len(follower.rebuilt(table, between)) == 2
    assert cut_at(follower.ports(), between).at == places[1]
    with pytest.raises(PastRefused, match="it was stopped") as refused:
        follower.rebuilt(table, str(stopped))
    assert str(places[1]) in refused.value.hint
    snapshot = Follower(shop.follower.server, shop.follower.tables, "snapshot")
    snapshot.run()
    shop.do("insert into a values (5)")
    snapshot.run()
    with pytest.raises(PastRefused, match="the history begins at"):
        snapshot.rebuilt(table, "2020-01-01T00:00:00Z")


def test_what_was_read_again_at_a_place_is_there(mysql: MySqlStand, database: str) -> None:
    """The log has not moved on since: the place has the rows of the newest run that ended there,
    as its version set has."""
    follower = Follower(server(mysql), [f"{database}.*"], start=str(head(mysql)))
    shop = Shop(mysql, database, follower)
    shop.do("create table a (id int primary key)", "insert into a values (1)")
    place = parse_place(str(shop.run().end.at))
    shop.do("set sql_log_bin = 0", "insert into a values (2)")
    follower.reload(shop.table("a"), Supplier.SOURCE)
    shop.run()
    assert len(follower.rebuilt(shop.table("a"), place)) == 2


def test_what_was_not_captured_before_a_reading_is_not_made(
    mysql: MySqlStand, database: str
) -> None:
    """The table was stopped until the run read it, and no batch has its changes of before; other
    tables changed only later."""
    follower = Follower(server(mysql), [f"{database}.*"], start=str(head(mysql)))
    shop = Shop(mysql, database, follower)
    shop.do("create table a (id int primary key)", "create table b (id int primary key)")
    before = str(shop.run().end.at)
    follower.reload(shop.table("a"), Supplier.SOURCE)
    shop.do("insert into a values (1)")
    place = parse_place(str(head(mysql)))
    shop.do("insert into b values (1)")
    shop.run()
    with pytest.raises(PastRefused, match="all its rows were read from the source") as refused:
        follower.rebuilt(shop.table("a"), place)
    assert before in str(refused.value.hint)


def test_rows_are_marked_from_a_place_on(mysql: MySqlStand, database: str) -> None:
    """The version that a copy begins with is from before `deletes = "soft"`, and has no marks."""
    follower = Follower(server(mysql), [f"{database}.*"], start=str(head(mysql)))
    shop = Shop(mysql, database, follower)
    shop.do("create table a (id int primary key)", "insert into a values (1), (2)")
    shop.run()
    follower.lake_policies = LakePolicies(deletes=Deletes.SOFT)
    shop.do("delete from a where id = 1")
    place = parse_place(str(head(mysql)))
    shop.do("delete from a where id = 2")
    shop.run()
    rows = follower.rebuilt(shop.table("a"), place)
    assert sorted((row["id"], row["_deleted_at"] is None) for row in rows) == [
        (1, False),
        (2, True),
    ]


def place_of(stand: MySqlStand) -> Place:
    """The server's present moment."""
    [(now,)] = stand.rows("select utc_timestamp(6)")
    return parse_place(moment_text(now.replace(tzinfo=UTC)))


@pytest.mark.parametrize("deletes", [Deletes.SOFT, Deletes.IGNORE])
@pytest.mark.parametrize("seed", SEEDS)
def test_what_runs_had_left(mysql: MySqlStand, database: str, seed: int, deletes: Deletes) -> None:
    """Where a run ended the table is made as its mirror was, with rows and columns that are kept;
    some versions of it were vacuumed, and then it is refused, or the same."""
    policies = LakePolicies(deletes=deletes)
    past = made(mysql, database, seed, policies)
    random, lake = past.random, past.follower.lake
    refused = 0
    for place, tables in past.kept.items():
        for table, rows in tables.items():
            name = TableName(database, table)
            mirror = past.follower.ledger.table_states(SOURCE)[name].mirror
            lake.vacuumed[mirror] = random.choice((0, random.randrange(len(lake.tables[mirror]))))
            try:
                found = past.follower.rebuilt(name, place)
            except PastRefused as error:
                assert lake.vacuumed[mirror], error
                refused += 1
            else:
                assert _ordered(found) == rows, place
    assert refused < sum(map(len, past.kept.values()))


def test_rows_that_a_mirror_kept_and_no_changelog_begins_with(
    mysql: MySqlStand, database: str
) -> None:
    """A table that is older than the log that was read: its one event that emptied it is not the
    beginning of what its mirror shows."""
    mysql.execute("create table a (id int primary key, v int)", database=database)
    start = str(head(mysql))
    follower = Follower(
        server(mysql),
        [f"{database}.*"],
        start=start,
        lake_policies=LakePolicies(deletes=Deletes.SOFT),
    )
    table = TableName(database, "a")
    for statements in (
        ["insert into a values (1, 1)"],
        ["truncate table a", "insert into a values (2, 2)"],
        ["insert into a values (3, 3)"],
    ):
        mysql.execute(*statements, database=database)
        follower.run()
    batches = follower.live_batches()
    mirror = follower.states()[table].mirror
    follower.lake.vacuumed[mirror] = len(follower.lake.tables[mirror]) - 1
    with pytest.raises(PastRefused, match="rows that were deleted before are kept in its mirror"):
        follower.rebuilt(table, str(batches[-2].captured_end.at))


# -- which version of a mirror can be an origin ------------------------------------------------


VERSIONS = [
    MirrorVersion(number, TableName("shop", "t"), "shop/shop/t", number, number)
    for number in reversed(range(4))
]


@pytest.mark.parametrize("gone", [*product((False, True), repeat=4)])
def test_if_one_way_finds_a_version_so_does_the_other(gone: tuple[bool, ...]) -> None:
    """A rebuild begins with the newest that can be read, a reload with an early one: the oldest,
    unless that is gone."""

    def reason_unreadable(mirror: str, version: int, **_: Any) -> str | None:
        return "a file of it is missing" if gone[version] else None

    ports = cast(
        "RunPorts", SimpleNamespace(mirrors=SimpleNamespace(reason_unreadable=reason_unreadable))
    )
    readable = [number for number in range(4) if not gone[number]]
    newest = newest_readable_version(ports, VERSIONS)
    earliest = earliest_readable_version(ports, VERSIONS)
    assert (newest and newest.delta_version) == (readable[-1] if readable else None)
    assert (earliest is None) == (newest is None)
    assert earliest is None or earliest.delta_version in readable
    if not gone[0]:
        assert earliest == VERSIONS[-1]


def test_a_mirror_whose_log_lost_its_last_write_is_written_on(
    mysql: MySqlStand, database: str
) -> None:
    """Nothing changed for longer than its log is kept, while another program's VACUUM committed to
    it every night. New columns come all the same."""
    follower = Follower(server(mysql), [f"{database}.*"], start="snapshot")
    create = "create table {} (id int primary key, v int)"
    mysql.execute(create.format("a"), create.format("b"), database=database)
    mysql.execute("insert into a values (1, 1)", "insert into b values (1, 1)", database=database)
    follower.run()
    mirror = follower.states()[TableName(database, "a")].mirror
    commits = follower.lake.tables[mirror]
    for operation in ("VACUUM START", "VACUUM END"):
        commits.append(MemoryCommit("", 0, "", commits[-1].rows, operation=operation))
    mysql.execute("update b set v = 2", database=database)
    follower.run()
    assert follower.ledger.examined_versions(SOURCE)[mirror] == len(commits) - 1
    follower.lake.begins[mirror] = len(commits) - 1
    mysql.execute("alter table a add w int default 7", "update a set v = 2", database=database)
    follower.run()
    assert follower.mirror(f"{database}.a") == [{"id": 1, "v": 2, "w": 7}]
