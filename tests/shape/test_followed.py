"""Whatever happens to tables that have settings: a mirror is what they show of its table, or the
table stopped and says why, and nothing that is hidden is anywhere."""

from __future__ import annotations

import re
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pytest

from lockstep.pipeline.model.table_state import OrderKind, Supplier
from lockstep.pipeline.shape.shape import ShapeRules
from lockstep.pipeline.snapshot.pace import Pace
from lockstep.pipeline.source_plan import SnapshotPlan
from lockstep.pipeline.values.errors import (
    BatchesWait,
    ConfigurationError,
    LedgerRefused,
    PastRefused,
    SourceMoving,
    SpanRefused,
    StoppedBy,
)
from lockstep.pipeline.values.policies import DroppedColumns, LakePolicies
from lockstep.pipeline.values.position import Coordinates
from lockstep.pipeline.values.table import TableName
from lockstep.resources.mysql.server import MySqlServer
from tests.fix_mysql import MySqlStand
from tests.mysql.logged import head
from tests.outside import repair, verify
from tests.positions.interrupted import Crash, mortal
from tests.positions.paused import Shop
from tests.positions.test_columns_read import columns_read
from tests.shape import reference
from tests.shape.follower import KEY, ShapedFollower
from tests.shape.random_traffic import ROLES, SECRET, Traffic, rules_of, settings_of

STEPS = (
    *("begin_load", "plan_chunk", "record_chunk", "begin_batch", "record_capture"),
    *("intend", "settle", "mark_merged", "acknowledge", "quarantine", "order_table"),
)
REFUSED = (BatchesWait, SpanRefused, PastRefused, ConfigurationError)
"""What keeps a span or a table from being made again; nothing is changed then."""

ACTIONS, MORE = 20, 40
"""In every run of the tests, and in the soak, which has MySQL 8.0 besides."""
RUNS = 4
"""As many more bring back what waits."""

# These seeds hash keys, leave rows out and hide more meanwhile; one names the columns it shows.
CASES = [
    ("mysql", 28, ACTIONS),
    pytest.param("mysql80", 2, ACTIONS, marks=pytest.mark.soak),
    ("mariadb", 5, ACTIONS),
    *(
        pytest.param(flavour, seed, MORE, marks=pytest.mark.soak)
        for flavour in ("mysql", "mysql80", "mariadb")
        for seed in range(1, 44)
    ),
]


@dataclass
class Followed:
    """A database with traffic, and who follows it."""

    traffic: Traffic
    follower: ShapedFollower
    chance: Random = field(default_factory=Random)
    notes: list[str] = field(default_factory=list)

    def act(self) -> None:
        acts = (
            *(self.traffic.traffic,) * 12,
            *(self.traffic.alter,) * 4,
            *(self.run,) * 4,
            *(self.killed,) * 3,
            *(self.pause, self.resume) * 2,
            *(self.prepare, self.traffic.end, self.traffic.end),
            *(self.reload, self.replayed, self.verified, self.repaired),
            self.tightened,
        )
        act = self.chance.choice(acts)
        self.traffic.log.append(f"-- {act.__name__}")
        act()

    def run(self) -> None:
        self.follower.run()

    def killed(self) -> None:
        step, after = self.chance.choice(STEPS), self.chance.random() < 0.5
        with mortal(self.follower, step, after=after), suppress(Crash):
            self.follower.run()

    def prepare(self) -> None:
        """Whoever begins to follow a source does not see what was prepared before."""
        if self.follower.acknowledged() is not None:
            self.traffic.prepare()

    def some(self) -> TableName | None:
        """One that did not stop by itself: to bring such a table back is a person's consent."""
        going = [t for t, s in self.follower.states().items() if not s.has_stopped]
        return self.chance.choice(sorted(going)) if going else None

    def ordered(self, kind: OrderKind, table: TableName | None) -> None:
        if table is not None:
            with suppress(LedgerRefused):
                self.follower.order(kind, table)

    def pause(self) -> None:
        self.ordered(OrderKind.PAUSE, self.some())

    def resume(self) -> None:
        for table, state in self.follower.states().items():
            if state.stopped_by is StoppedBy.PERSON:
                self.ordered(OrderKind.RESUME, table)

    def reload(self) -> None:
        """From wherever its rows may come, or from its changelog and nowhere else."""
        table = self.some()
        if table is not None:
            with suppress(LedgerRefused, PastRefused):
                self.follower.reload(table, self.chance.choice((None, Supplier.CHANGELOG)))

    def replayed(self) -> None:
        with suppress(*REFUSED):
            self.follower.replay(commit=self.chance.random() < 0.5)

    def verified(self) -> None:
        """It may find differences, of rows that changed without a word in the log."""
        self.run()
        with suppress(SourceMoving):
            verify(self.follower.ports())

    def repaired(self) -> None:
        """Rows that changed without a word in the log are read from the source by the next run."""
        self.run()
        tables = self.traffic.free()
        if tables:
            changes = self.traffic.writes(self.chance.choice(tables))
            self.traffic.send("set sql_log_bin = 0", *changes)
        with suppress(SourceMoving):
            self.mended()

    def mended(self) -> None:
        with self.follower.leased() as lease:
            repair(self.follower.ports(), lease, verify(self.follower.ports()))
        self.run()

    def require_equal(self) -> None:
        told = verify(self.follower.ports())
        assert [str(one.table) for one in told.tables if not one.equal] == []

    def tightened(self) -> None:
        letter = self.traffic.tighten()
        self.follower.shapes[self.pattern(letter)] = rules_of(self.traffic.settings[letter])

    def pattern(self, letter: str) -> str:
        return f"{self.traffic.database}.{letter}*"

    # -- what must be true -----------------------------------------------------------------------

    def require_shown(self) -> None:
        states = self.follower.states()
        for name in self.traffic.tables():
            table = TableName(self.traffic.database, name)
            state = states[table]
            if not state.is_complete:
                assert state.has_stopped, (name, state)
                assert re.search(TOLD, state.reason or ""), (name, state.reason, state.hint)
                self.notes.append(f"{name}: {state.reason}")
                continue
            settings = self.traffic.of(name)
            shown = reference.table(
                settings, KEY, self.traffic.columns(name), self.traffic.rows(name)
            )
            commits = self.follower.lake.tables.get(state.mirror)
            mirror = commits[-1].rows.to_pylist() if commits else []
            there, wanted = Counter(map(_text, mirror)), Counter(map(_text, shown))
            more, missing = sorted((there - wanted).elements()), sorted((wanted - there).elements())
            if more or missing:
                told = verify(self.follower.ports())
                lines = [
                    f"{state}\n{told.not_compared}\n{name}: the mirror has",
                    *more,
                    "and lacks",
                    *missing,
                ]
                raise AssertionError("\n".join(lines))

    def require_hidden(self) -> None:
        """Nothing of it is in the lake, the ledger or in what a person is told."""
        for path, commits in self.follower.lake.tables.items():
            for commit in commits:
                telling = [row for row in commit.rows.to_pylist() if SECRET in repr(row)]
                assert telling == [], path
                assert SECRET not in commit.user_metadata, path
        for path, rows in self.follower.lake.files.items():
            assert SECRET not in repr(rows.to_pylist()), path
        for table, text in self.follower.kept_ledger().rows.items():
            assert SECRET not in text, (table, [x for x in text.splitlines() if SECRET in x][:3])
            assert SECRET.encode().hex() not in text.lower(), table
        assert not [one for one in self.follower.notes if SECRET in one]


TOLD = r"column '|columns? |settings|binlog_row_image|condition|stored values of|is unknown"
"""What a reason names."""


def _text(row: dict[str, Any]) -> str:
    return str(sorted((name, str(value)) for name, value in row.items()))


def followed(stand: MySqlStand, seed: int) -> Followed:
    """Tables that are there before the first run, with rows that no log has."""
    chance = Random(seed)
    settings = {
        letter: settings_of(
            chance.sample([*ROLES], 9),
            hashed_key=chance.random() < 0.5,
            rows=chance.random() < 0.4,
            include=chance.random() < 0.2,
        )
        for letter in "ab"
    }
    name = stand.fresh_name()
    stand.execute(f"create database {name} character set utf8mb4")
    traffic = Traffic(stand, name, chance, settings)
    traffic.image = chance.choice(("FULL", "FULL", "NOBLOB", "MINIMAL"))
    traffic.make("a1", "a2", "b1", "u1")
    for _ in range(30):
        traffic.traffic()
    stand.execute("flush binary logs")
    shapes = {f"{name}.{letter}*": rules_of(one) for letter, one in settings.items()}
    policies = LakePolicies(dropped_columns=DroppedColumns.DROP)
    follower = ShapedFollower(
        stand, [f"{name}.*"], shapes, start="snapshot", lake_policies=policies
    )
    pace = Pace(seconds=1e-9, least_rows=8, first_rows=8, most_rows=8)
    follower.snapshot = SnapshotPlan(connections=2, pace=pace)
    return Followed(traffic, follower, chance)


@pytest.mark.parametrize(("flavour", "seed", "actions"), CASES)
def test_mirrors_are_what_settings_show(
    flavour: str, seed: int, actions: int, request: pytest.FixtureRequest
) -> None:
    place = followed(request.getfixturevalue(flavour), seed)
    try:
        for _ in range(actions):
            place.act()
        while place.traffic.prepared:
            place.traffic.end()
        place.resume()
        for _ in range(RUNS):
            place.run()
        place.mended()
        place.require_equal()
        place.require_shown()
        place.require_hidden()
    except BaseException as error:
        error.add_note("\n".join([str(place.traffic.settings), *place.traffic.log]))
        raise
    finally:
        # A later test's ledger would have the structures of its tables.
        place.traffic.forget()


def test_the_log_is_searched_once_for_all_tables_that_hide_something(
    mysql: MySqlStand, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many of them get a column whose values are read from the source: whether that part of
    the log altered one of them is asked for each."""
    tables, dump, begins = ("t", "t1", "t2"), MySqlServer.dump, list[Coordinates]()

    def noted(server: MySqlServer, start: Coordinates, *args: Any, **options: Any) -> Any:
        begins.append(start)
        return dump(server, start, *args, **options)

    rules = {f"{database}.*": ShapeRules(exclude_columns=("w",))}
    follower = ShapedFollower(mysql, [f"{database}.*"], rules, start=str(head(mysql)))
    shop = Shop(mysql, database, follower)
    shop.do(
        *(f"create table {table} (id int primary key, v int, w int, x int)" for table in tables),
        *(f"insert into {table} values (1, 1, 1, 1)" for table in tables),
    )
    shop.run()
    shop.do(*(f"alter table {table} add g int as (v * 2) stored" for table in tables))
    # A run that ends at a place of a person's choice leaves the reading to the next one.
    begin = follower.run(until="latest").end.at
    shop.do(*(f"insert into {table} (id, v) values (4, 4)" for table in tables))
    monkeypatch.setattr(MySqlServer, "dump", noted)
    shop.run()
    assert columns_read(shop) == [("g",)] * len(tables)
    for table in tables:
        mirror = follower.mirror(f"{database}.{table}")
        assert mirror == [
            {"id": key, "v": key, "x": x, "g": 2 * key} for key, x in ((1, 1), (4, None))
        ]
    assert begins.count(begin) == 2, "the search, and the capture"
