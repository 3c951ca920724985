"""Mirrors that are lost, and made whole by a command: from the changelog where it has all, else
from the source. A real server, whose rows are what the mirror must show."""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import partial

import pytest

from lockstep.pipeline.model.table_state import OrderKind, Supplier, TableEventKind
from lockstep.pipeline.run.orders import OrderRequest, plan_reload
from lockstep.pipeline.values.errors import PastRefused
from lockstep.pipeline.values.policies import LakePolicies, Readers
from tests.fix_mysql import MySqlStand
from tests.outside import capture, coming_back, merge, tables_to_quarantine
from tests.positions.follower import SOURCE
from tests.positions.interrupted import Crash, mortal
from tests.positions.paused import Shop, open_shop
from tests.positions.stories import stories_in, tell


@pytest.fixture
def shop(mysql: MySqlStand, database: str) -> Shop:
    return open_shop(mysql, database, ["z"], *_begun())


def write(shop: Shop, number: int) -> None:
    """Changes of both tables, older rows among them."""
    shop.do(*changes(number))


def changes(number: int) -> Iterator[str]:
    for table in "ab":
        yield f"insert into {table} (id, v) values ({number}, {number}), ({number + 100}, 0)"
        yield f"update {table} set v = v + 1 where id < {number}"
        yield f"delete from {table} where id = {number + 100}"


def lose(shop: Shop, table: str) -> None:
    """Its mirror's folder is gone."""
    del shop.follower.lake.tables[shop.state(table).mirror]


def reload(shop: Shop, table: str) -> None:
    shop.order(OrderKind.RELOAD, table)


def test_readers_of_another_kind_get_another_mirror(shop: Shop) -> None:
    """When the table is next written as a whole, not before; either way, and back. Other tables
    keep theirs, and what was there stays for those who read it."""
    before = shop.state("a").mirror
    for number, readers in enumerate((Readers.ANY, Readers.SPARK), start=2):
        shop.follower.lake_policies = LakePolicies(readers=readers)
        old = shop.state("a").mirror
        write(shop, number)
        shop.run()
        assert shop.state("a").mirror == old
        reload(shop, "a")
        shop.run()
        shop.require_whole("a")
        shop.require_whole("b")
        assert shop.state("a").mirror == f"{before}@1-{number}"
        assert old in shop.follower.lake.tables
    reload(shop, "a")
    shop.run()
    assert shop.state("a").mirror == f"{before}@1-3"


def test_stories_of_tables_that_are_reloaded(mysql: MySqlStand) -> None:
    """From their changelogs, or from the source."""
    lost = [partial(_lost_mirror, state) for state in ("active", "paused", "quarantined")]
    tell(mysql, [*lost, *stories_in(globals())], ("z",), _begun())


def _begun() -> list[str]:
    """Two tables that were empty at first, with the first of their changes."""
    tables = [f"create table {table} (id int primary key, v int)" for table in "ab"]
    return [*tables, *changes(1)]


def _lost_mirror(state: str, shop: Shop) -> Iterator[None]:
    """The table alone is quarantined, with the command that helps; its next mirror lies beside
    the lost one, for what was acknowledged of that is not in it. The forecast names its folder."""
    before = shop.state("a").mirror
    lose(shop, "a")
    if state == "paused":
        shop.pause("a")
    if state == "quarantined":
        write(shop, 2)
        yield
        shop.require_whole("b")
        assert shop.state("a").has_stopped
        assert f"lockstep reload {shop.name}.a --reason" in (shop.state("a").hint or "")
    write(shop, 3)
    request = OrderRequest(shop.table("a"), "ada", "because")
    forecast = plan_reload(shop.follower.ports(), request, None).sentence
    assert f"in a new folder, {before}@1-2 (its mirror {before} is missing" in forecast
    reload(shop, "a")
    rebuilt, read = coming_back(shop.follower.ports())
    assert shop.table("a") in rebuilt
    assert shop.table("a") not in read
    yield
    shop.require_whole("a")
    shop.require_whole("b")
    assert shop.events("a").count(TableEventKind.REBUILT) == 1
    assert shop.state("a").mirror == f"{before}@1-2"
    assert before not in shop.follower.lake.tables
    [note] = [note for note in shop.follower.notes if f" is {before}@1-2 from now on" in note]
    assert "stays as it is" not in note
    assert "new folder" not in plan_reload(shop.follower.ports(), request, None).sentence
    write(shop, 4)
    yield
    shop.require_whole("a")
    assert shop.state("a").is_complete


def a_damaged_changelog_is_told_of(shop: Shop) -> Iterator[None]:
    """The mirror comes from the source then; one that nobody reloads is not touched."""
    write(shop, 2)
    yield
    folder = f"memory:/{SOURCE}/_changes/{shop.name}/a/"
    lost = min(path for path in shop.follower.lake.files if path.startswith(folder))
    del shop.follower.lake.files[lost]
    write(shop, 3)
    yield
    shop.require_whole("a")
    reload(shop, "a")
    why = coming_back(shop.follower.ports())[1][shop.table("a")]
    assert f"its changelog is damaged: {lost} is missing" in why
    yield
    shop.require_whole("a", rereads=1)
    assert shop.state("a").mirror == f"{SOURCE}/{shop.name}/a"


def test_a_mirror_that_is_going_to_be_written_again_is_not_warned_of(shop: Shop) -> None:
    """Once the reload that a warning asks for is ordered, the next run quarantines nothing."""
    write(shop, 2)
    shop.run()
    del shop.follower.lake.tables[shop.state("a").mirror][-1]
    (told,) = tables_to_quarantine(shop.follower.ports())
    assert told.table == shop.table("a")
    reload(shop, "a")
    assert tables_to_quarantine(shop.follower.ports()) == []
    shop.run()
    shop.require_whole("a")


@pytest.mark.parametrize("how", ["cut", pytest.param("gone", marks=pytest.mark.soak)])
def test_a_changelog_that_is_lost_holds_up_nobody_else(shop: Shop, how: str) -> None:
    """The table alone is quarantined, its mirror stays as it was, and `resume` goes on with
    the changelog as it is. The source's own tables are made again with a note."""
    write(shop, 2)
    shop.run()
    tables = shop.follower.lake.tables
    for folder in (f"{SOURCE}/_changes/{shop.name}/a", f"{SOURCE}/_transactions"):
        if how == "gone":
            del tables[folder]
        else:
            del tables[folder][-1]
    before = shop.follower.mirror(f"{shop.name}.a")
    (told,) = tables_to_quarantine(shop.follower.ports())
    assert told.table == shop.table("a")
    write(shop, 3)
    shop.run()
    state = shop.state("a")
    assert state.has_stopped
    assert "its later changes are lost" in (state.reason or "")
    assert f"lockstep resume {shop.name}.a --reason" in (state.hint or "")
    assert shop.follower.mirror(f"{shop.name}.a") == before
    shop.require_whole("b")
    write(shop, 4)
    shop.run()
    shop.require_whole("b")
    shop.resume("a")
    shop.run()
    shop.require_whole("a")
    assert shop.state("a").is_complete


def test_captured_files_are_lost_of_a_batch_that_others_show(shop: Shop) -> None:
    """The table alone is quarantined, what is left of its changes is published, and `reload`
    makes it whole from the source, for the changelog has not all."""
    write(shop, 2)
    shop.do("alter table a add column c int default 5", "insert into a (id, v) values (50, 1)")
    with shop.follower.leased() as lease:
        capture(shop.follower.ports(), lease)
    folder = f"memory:/{SOURCE}/_changes/{shop.name}/"
    files = sorted(path for path in shop.follower.lake.files if path.startswith(f"{folder}a/"))
    with shop.follower.leased() as lease:
        merge(shop.follower.ports(), lease, frozenset({shop.table("b")}))
    del shop.follower.lake.files[files[-1]]
    write(shop, 3)
    shop.run()
    shop.require_whole("b")
    state = shop.state("a")
    assert state.has_stopped
    assert f"{files[-1]} is missing" in (state.reason or "")
    assert f"lockstep reload {shop.name}.a --reason" in (state.hint or "")
    reload(shop, "a")
    shop.run()
    shop.require_whole("a", rereads=1)


def test_captured_files_are_lost_of_a_batch_that_a_changelog_shows(shop: Shop) -> None:
    """It died while it published, before any mirror was written: the batch is not read again, or
    the changelog would have its changes twice."""
    write(shop, 2)
    with mortal(shop.follower, "note_examined_versions", after=False), pytest.raises(Crash):
        shop.run()
    folder = f"{SOURCE}/_changes/{shop.name}/a"
    files = sorted(one for one in shop.follower.lake.files if f"/{folder}/" in one)
    images = len(shop.images("a"))
    del shop.follower.lake.files[files[-1]]
    shop.run()
    assert len(shop.images("a")) == images
    assert f"{files[-1]} is missing" in (shop.state("a").reason or "")
    shop.require_whole("b")
    reload(shop, "a")
    shop.run()
    shop.require_whole("a", rereads=1)


def test_a_changelog_that_begins_later_is_not_enough(mysql: MySqlStand, database: str) -> None:
    """Rows that were there before it are only in the source; emptied, the changelog has all."""
    mysql.execute(*_begun(), database=database)
    shop = open_shop(mysql, database, [])
    write(shop, 2)
    shop.run()
    reload(shop, "a")
    shop.run()
    shop.require_whole("a", rereads=1)
    shop.do("truncate table a")
    write(shop, 3)
    shop.run()
    reload(shop, "a")
    shop.run()
    shop.require_whole("a", rereads=1)
    assert shop.events("a").count(TableEventKind.REBUILT) == 1


STATEMENTS = (
    "alter table a add column c{n} int not null default {n}",
    "alter table a add column c{n} varchar(20) default 'x{n}' first",
    "alter table a drop column v, add column v bigint default {n}",
    "alter table a rename column v to w{n}, add column v int default 3",
    "alter table a modify v bigint",
    "truncate table a",
    "alter table a add column g{n} int generated always as (id * 2) stored",
)


@pytest.mark.parametrize(
    ("seed", "steps"),
    [(1, 8), *(pytest.param(seed, 40, marks=pytest.mark.soak) for seed in range(100, 140))],
)
def test_reloads_at_random(shop: Shop, seed: int, steps: int) -> None:
    """Changes, statements, runs, losses and orders by chance: each reload ends with the
    source's rows."""
    chance = random.Random(seed)
    for number in range(2, 2 + steps):
        shop.do(f"replace into a (id, v) values ({chance.randrange(20)}, {number})")
        for _ in range(chance.randrange(4)):
            shop.do(
                chance.choice(
                    (
                        f"replace into a (id, v) values ({chance.randrange(20)}, {number})",
                        f"update a set v = {number} where id % 3 = {number % 3}",
                        f"delete from a where id % 5 = {number % 5}",
                        f"update ignore a set id = id + 20 where id = {chance.randrange(20)}",
                    )
                )
            )
        if chance.random() < 0.4:
            shop.do(chance.choice(STATEMENTS).format(n=number))
        if chance.random() < 0.2:
            shop.pause("a")
        if chance.random() < 0.3 and shop.state("a").mirror in shop.follower.lake.tables:
            lose(shop, "a")
        if chance.random() < 0.5:
            shop.run()
        if chance.random() < 0.5:
            try:
                shop.follower.reload(shop.table("a"), chance.choice((None, Supplier.CHANGELOG)))
            except PastRefused:
                reload(shop, "a")
            shop.run()
            if shop.state("a").has_stopped:
                shop.resume("a")
                shop.run()
            rows = sorted(map(str, shop.rows("a")))
            assert sorted(map(str, shop.follower.mirror(f"{shop.name}.a"))) == rows, (seed, number)
    shop.run()
    reload(shop, "a")
    shop.run()
