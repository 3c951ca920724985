"""Rows of a table read again by a condition: what was wrong in the mirror is right, whatever is
written meanwhile, and nothing is taken to be gone that is there."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from random import Random

import pytest

from lockstep.pipeline.model.table_state import TableEventKind
from lockstep.pipeline.run.proof.verify_rows import verify
from lockstep.pipeline.run.reports import RereadCounts
from lockstep.pipeline.snapshot.condition import read_condition
from lockstep.pipeline.source_plan import RereadRows
from lockstep.pipeline.values.errors import ConditionRefused, RowsNotRead
from tests.fix_mysql import MySqlStand
from tests.mysql.reading import server
from tests.positions.follower import Follower
from tests.positions.four_writers import MIXED, four_write, of_one_row
from tests.positions.paused import Shop
from tests.proof.writing import spoil

pytestmark = pytest.mark.servers("newest", "8.0", "5.7")

ROWS = 200


@pytest.fixture
def shop(mysql: MySqlStand, database: str) -> Shop:
    values = ", ".join(f"({number}, {number}, 'k{number}')" for number in range(ROWS))
    mysql.execute(
        "create table a (id int primary key, v int, name varchar(20))",
        f"insert into a values {values}",
        database=database,
    )
    shop = Shop(mysql, database, Follower(server(mysql), [f"{database}.*"], start="snapshot"))
    shop.run()
    return shop


def refresh(shop: Shop, condition: str, table: str = "a") -> RereadCounts:
    """What `lockstep reload --where` does, behind an ordinary run."""
    ports = shop.follower.ports()
    order = RereadRows(shop.table(table), read_condition(condition), "ann", "because")
    report = shop.follower.steps(replace(ports, source=replace(ports.source, reread_rows=order)))
    assert report.reread_counts is not None
    return report.reread_counts


def require_equal(shop: Shop, table: str = "a") -> None:
    mirror = shop.follower.mirror(f"{shop.name}.{table}")
    assert sorted(map(str, mirror)) == sorted(map(str, shop.rows(table)))


def test_what_the_log_never_told_is_healed(shop: Shop) -> None:
    """Rows that were changed, added and deleted without a word; of the others none is read. Also
    where the log changed a row just before, in transactions of the same run. A row that the log
    deleted there, or gave another key, is not counted as gone."""
    shop.do(
        "update a set v = 1000 where id in (7, 9)",
        "insert into a values (700, 1, 'new')",
        "delete from a where id in (2, 4, 6)",
        "insert into a values (6, 6, 'back')",
        "update a set id = 1000 where id = 8",
    )
    shop.unlogged(
        "update a set v = -v where id in (5, 7, 700)",
        "delete from a where id in (3, 9)",
        "insert into a values (-4, 4, 'x')",
    )
    found = refresh(shop, "id <= 10 or id = 700")
    assert found == RereadCounts(shop.table("a"), read=8, gone=2, left=0)
    require_equal(shop)
    assert verify(shop.follower.ports()).equal
    derived = [one for one in shop.images("a") if one["_derived"]]
    assert [(one["_change_type"], one["id"]) for one in derived[:2]] == [
        ("delete", 3),
        ("delete", 9),
    ]
    assert {one["_change_type"] for one in derived[2:]} == {"update_postimage"}
    assert shop.events("a")[-1] is TableEventKind.REFRESHED
    shop.follower.replay()
    require_equal(shop)
    shop.do("update a set v = 0 where id < 20")
    shop.run()
    require_equal(shop)


@pytest.mark.thin
def test_rows_that_are_read_again_keep_the_values_of_dropped_columns(shop: Shop) -> None:
    """Only the mirror still has them, also where the same run deletes a row and inserts it anew."""
    shop.do("alter table a drop column name")
    shop.run()
    shop.do("delete from a where id = 8", "insert into a values (8, 80)")
    shop.unlogged("update a set v = -v where id = 5", "insert into a values (-1, 1)")
    refresh(shop, "id between -2 and 8")
    rows = {row["id"]: (row["v"], row["name"]) for row in shop.follower.mirror(f"{shop.name}.a")}
    assert [rows[key] for key in (-1, 4, 5, 8)] == [(1, None), (4, "k4"), (-5, "k5"), (80, None)]


@pytest.mark.thin
def test_a_table_that_stops_meanwhile_is_read_and_not_told_as_stopped(shop: Shop) -> None:
    """The log up to the rows stops it, and the batch with the rows starts it again."""
    shop.do("create table b (id int primary key, v int)", "insert into b values (1, 2), (2, 3)")
    shop.run()
    shop.do("alter table b drop primary key, add primary key (v)")
    ports = shop.follower.ports()
    order = RereadRows(shop.table("a"), read_condition("id = 1"), "ann", "because")
    report = shop.follower.steps(replace(ports, source=replace(ports.source, reread_rows=order)))
    assert report.quarantined == ()
    require_equal(shop, "b")


BOUNDED = {
    "id between 50 and 59": ((55, 100), 1),
    "v > 20 and id in (60, 69)": ((65, 101), 1),
    "abs(id) = 5": ((77, 102), 4),
}
"""By condition, rows that are gone without a word, and for how many it may hold: where nothing
tells, for all that the mirror still shows."""


@pytest.mark.thin
def test_only_rows_that_the_condition_may_hold_for_are_looked_up(shop: Shop) -> None:
    """Of thousands for which it holds no more at the source, in several statements, only that goes
    which is gone."""
    values = ", ".join(f"({number}, 0, null)" for number in range(1_000, 3_500))
    shop.do(f"insert into a values {values}")
    shop.run()
    shop.unlogged("update a set v = 1 where v = 0", "delete from a where id = 2500")
    assert refresh(shop, "v = 0") == RereadCounts(shop.table("a"), read=0, gone=1, left=0)
    shown = {row["id"] for row in shop.follower.mirror(f"{shop.name}.a")}
    assert shown == {id_ for (id_,) in shop.stand.rows("select id from a", shop.name)}
    for condition, (ids, gone) in BOUNDED.items():
        shop.unlogged(f"delete from a where id in {ids}")
        assert refresh(shop, condition).gone == gone, condition


@pytest.mark.thin
@pytest.mark.parametrize("seed", MIXED)
def test_while_four_write(shop: Shop, seed: int) -> None:
    """With rows wrong in the mirror from the beginning; behind the last run all is equal."""
    random = Random(seed)
    shop.unlogged(
        f"delete from a where id % 7 = {seed}", "update a set name = 'y' where id % 5 = 0"
    )
    keys = range(ROWS * 2)
    with four_write(shop, random, lambda own: of_one_row(own, keys, more=", 'i'")):
        for _ in range(5):
            shop.run()
            low = random.randrange(ROWS)
            with suppress(RowsNotRead):
                refresh(shop, f"id >= {low} and id < {low + 60}")
        shop.run()
        while not refreshed(shop):
            shop.run()
    shop.run()
    require_equal(shop)


def refreshed(shop: Shop) -> bool:
    with suppress(RowsNotRead):
        return refresh(shop, "true").left == 0
    return False


REFUSED = {
    ("a", "nothing = 1"): "error 1054",
    ("a", "id = = 1"): "error 1064",
    ("keyless", "id = 1"): "no key tells its rows apart\n",
    ("twice", "id = 1"): "several keys tell its rows apart",
    ("nowhere", "id = 1"): "not in the lake yet",
}


@pytest.mark.thin
def test_what_is_refused(shop: Shop) -> None:
    """A condition that the server does not take, in its words, and tables that allow none, each
    with its cure; nothing is begun. Of a key that the mirror has twice, both rows would stay."""
    shop.do(
        "create table keyless (id int)",
        "create table twice (id int not null, v int not null, unique (id), unique (v))",
    )
    shop.run()
    batches = shop.batches()
    for (table, condition), why in REFUSED.items():
        with pytest.raises(ConditionRefused, match=why):
            refresh(shop, condition, table)
        if "error" in why:
            with pytest.raises(ConditionRefused, match=why):
                shop.follower.server.estimated_rows_where(
                    shop.table(table), read_condition(condition)
                )
    assert shop.batches() == batches
    spoil(shop.follower, shop.table("a"), lambda rows: rows.append(dict(rows[5])))
    with pytest.raises(ConditionRefused, match="1 rows have the key of another row") as raised:
        refresh(shop, "id < 10")
    assert (
        raised.value.hint
        == f"`lockstep reload {shop.table('a')} --from source --reason …` reads all of it"
    )
    assert refresh(shop, "id > 10").read == ROWS - 11
    shop.pause("a")
    with pytest.raises(ConditionRefused, match="stopped by a person"):
        refresh(shop, "id = 1")


@pytest.mark.thin
def test_a_table_that_was_altered_is_read_behind_the_next_run(shop: Shop) -> None:
    shop.do("alter table a add column w int")
    with pytest.raises(RowsNotRead, match="altered since the last run"):
        refresh(shop, "id = 1")
    shop.run()
    shop.unlogged("update a set w = 1 where id = 1")
    assert refresh(shop, "id = 1").read == 1
    require_equal(shop)
