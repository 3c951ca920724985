"""`stamps`: each row of a mirror has those of its last change, whichever way it came there.

What a row's last change is, the changelog tells: its newest image, or the row that stands for the
reading or emptying of the whole table behind that.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from lockstep.pipeline.model.table_state import OrderKind, TableEventKind
from lockstep.pipeline.run.proof.verify_rows import verify
from lockstep.pipeline.run.status.plan import make_plan
from lockstep.pipeline.values.policies import Deletes, DroppedColumns, LakePolicies, OnRewrite
from lockstep.pipeline.values.stamps import STAMPS
from tests.fix_mysql import MySqlStand
from tests.positions.follower import Follower
from tests.positions.paused import Shop, open_shop
from tests.positions.stories import stories_in, tell
from tests.positions.test_parts import refresh
from tests.proof.writing import spoil

ALL = LakePolicies(stamps=(*STAMPS.names,), on_rewrite=OnRewrite.RESNAPSHOT)
GOES = ("delete", "update_preimage")

Row = dict[str, Any]


def stamps(row: Row) -> Row:
    return {name: row[name] for name in STAMPS.names}


def last_changes(shop: Shop, table: str) -> tuple[dict[int, Row], Row | None]:
    """The stamps of each row's last change by its key, and those of rows that have none."""
    found: dict[int, Row] = {}
    there: set[int] = set()
    read: Row | None = None
    for image in sorted(shop.images(table), key=lambda image: image["_sequence"]):
        kind, key = image["_change_type"], image["id"]
        if kind in ("resnapshot", "truncate"):
            read = stamps(image)
            found |= dict.fromkeys(there, read)
            there = set()
        else:
            found[key] = stamps(image)
            there = there - {key} if kind in GOES else there | {key}
    return found, read


def require_stamps(shop: Shop, table: str = "a") -> list[Row]:
    """Return the mirror's rows, which have the stamps of their last changes."""
    found, read = last_changes(shop, table)
    rows = shop.follower.mirror(f"{shop.name}.{table}")
    assert {row["id"]: stamps(row) for row in rows} == {
        row["id"]: found.get(row["id"], read) for row in rows
    }
    there = [row for row in rows if row.get("_deleted_at") is None]
    own = [{name: row[name] for name in ("id", "v")} for row in there]
    source = sorted(shop.rows(table), key=lambda row: row["id"])
    if shop.follower.lake_policies.deletes is Deletes.IGNORE:
        own = [row for row in own if row["id"] in {one["id"] for one in source}]
    assert own == source
    gone = [row for row in rows if row.get("_deleted_at") is not None]
    assert all(row["_deleted_at"] == row["_committed_at"] for row in gone)
    return rows


def traffic(shop: Shop, random: Random, table: str, *, minimal: bool) -> None:
    for number in range(8):
        key, other = random.randrange(9), random.randrange(9)
        statements = (
            f"replace into {table} values ({key}, {number}), ({other}, {-number})",
            f"update {table} set v = v + 100 where id <= {key}",
            f"update ignore {table} set id = {other} where id = {key}",
            f"delete from {table} where id = {key}",
        )
        image = "minimal" if minimal and random.random() < 0.5 else "full"
        shop.do(f"set binlog_row_image = {image}", *random.choices(statements, k=2))


def any_traffic(shop: Shop) -> Iterator[None]:
    """Runs of one batch and of several, rows of a moved key, and images that leave columns out."""
    random = Random(3)
    for _ in range(3):
        traffic(shop, random, "a", minimal=True)
        if random.random() < 0.5:
            shop.follower.capture()
            traffic(shop, random, "a", minimal=True)
        yield
        assert all(row["_sequence"] for row in require_stamps(shop))


def emptied_and_read_again(shop: Shop) -> Iterator[None]:
    random = Random(5)
    traffic(shop, random, "a", minimal=False)
    shop.do("truncate a", "insert into a values (1, 1), (50, 2)")
    yield
    require_stamps(shop)
    shop.unlogged("delete from a where id = 50")
    shop.do("alter table a modify v varchar(20)", "update a set v = 'x' where id = 1")
    yield
    yield
    assert TableEventKind.REREAD in shop.events("a")
    require_stamps(shop)


def brought_again(shop: Shop) -> Iterator[None]:
    """From its changelog, by a replay, and by a rebuild: the same rows with the same stamps."""
    traffic(shop, Random(7), "a", minimal=False)
    yield
    rows = require_stamps(shop)
    shop.order(OrderKind.RELOAD, "a")
    yield
    yield
    assert require_stamps(shop) == rows
    follower, table = shop.follower, shop.table("a")
    commits = follower.lake.tables[shop.state("a").mirror]
    at, right = len(commits) - 1, commits[-1]
    spoil(follower, table, lambda rows: [row.update(v=-7) for row in rows])
    follower.replay()
    commits[at] = right
    assert len(commits) > at + 1
    assert require_stamps(shop) == rows
    again = follower.rebuilt(table, "latest")
    assert sorted(again, key=lambda row: int(row["id"])) == rows


def under_another_name(shop: Shop) -> Iterator[None]:
    """Rows that were copied are new under that name: whoever asks it for what is above the highest
    number misses none, whatever the rows' last changes were under the former name."""
    yield
    shop.do("update a set v = 5 where id = 1", "insert into a values (6, 6), (7, 7)")
    shop.do("delete from a where id = 6", "rename table a to c", "insert into c values (8, 8)")
    yield
    yield
    require_stamps(shop, "c")


def rows_read_by_a_condition(shop: Shop) -> Iterator[None]:
    """They have the moment of the reading, and no GTID."""
    shop.do("insert into b values (2, 2), (3, 3)")
    yield
    shop.unlogged("update b set v = 20 where id = 2", "delete from b where id = 3")
    refresh(shop, "id >= 2", "b")
    rows = {row["id"]: row for row in require_stamps(shop, "b")}
    assert rows[2]["_gtid"] is None and rows[2]["_sequence"] > rows[1]["_sequence"]
    assert rows[2]["_committed_at"] > rows[1]["_committed_at"]
    yield


def own_columns_of_these_names(shop: Shop) -> Iterator[None]:
    """They quarantine their table, and so does it that there is no key."""
    shop.do("alter table a add column _Sequence int", "create table n (id int, v int)")
    shop.do("insert into a values (8, 8, 8)", "insert into n values (8, 8)")
    yield
    why = "column '_Sequence' has the name of the column of the last change"
    assert shop.state("a").reason == why
    keyless = shop.state("n")
    assert "without a key" in (keyless.reason or "")
    assert f"then `lockstep resume {keyless.table} " in (keyless.hint or "")


@pytest.mark.parametrize("deletes", Deletes)
def test_each_row_has_the_stamps_of_its_last_change(mysql: MySqlStand, deletes: Deletes) -> None:
    stories = stories_in(globals())
    if deletes is Deletes.IGNORE:
        # Which of its rows a re-read found, and which stayed as they were, no image tells.
        stories.remove(emptied_and_read_again)
    follower = tell(mysql, stories, lake_policies=replace(ALL, deletes=deletes))
    report = verify(follower.ports())
    assert all(table.equal for table in report.tables)


def test_rows_of_a_first_load(mysql: MySqlStand, database: str) -> None:
    """They have the number of the load's row in the changelog and the moment of the reading;
    consumers that ask for what is above the highest number they saw miss nothing."""
    shop = open_shop(mysql, database, ("c",))
    mysql.execute("insert into c values (2, 2)", database=database)
    one = shop.follower
    fresh = Follower(one.server, one.tables, "snapshot", lake_policies=ALL)
    read = Shop(mysql, database, fresh)
    read.run()
    (first,) = {row["_sequence"] for row in require_stamps(read, "c")}
    mysql.execute("update c set v = 5 where id = 1", database=database)
    read.run()
    rows = {row["id"]: row for row in require_stamps(read, "c")}
    assert rows[1]["_sequence"] > rows[2]["_sequence"] == first
    assert rows[2]["_committed_at"] is not None and rows[2]["_gtid"] is None
    read.unlogged("insert into c values (3, 3)")
    read.pause("c")
    read.order(OrderKind.RELOAD, "c")
    for _ in range(3):
        read.run()
    again = require_stamps(read, "c")
    assert min(row["_sequence"] for row in again) > rows[1]["_sequence"]


def planned(shop: Shop) -> str:
    """What `plan` says of how the changes of `a` are merged."""
    reading = make_plan(shop.follower.ports()).reading
    assert reading is not None
    return reading.merge_sentences[shop.table("a")]


def test_stamps_that_come_and_go(mysql: MySqlStand, database: str) -> None:
    """A mirror that is there has NULL in rows of before; one that nobody asks for any more has NULL
    in rows that change from then on, or goes."""
    shop = open_shop(mysql, database, ("a",), "insert into a values (2, 2)")
    shop.follower.lake_policies = ALL
    shop.do("update a set v = 9 where id = 1")
    assert "_gtid are added, NULL in each row until it changes" in planned(shop)
    shop.run()
    [changed, other] = shop.follower.mirror(f"{database}.a")
    assert stamps(changed) == last_changes(shop, "a")[0][1]
    assert stamps(other) == dict.fromkeys(STAMPS.names)
    shop.order(OrderKind.RELOAD, "a")
    shop.run()
    shop.run()
    [changed, other] = require_stamps(shop)
    shop.follower.lake_policies = replace(ALL, stamps=("_sequence",))
    shop.do("update a set v = 10 where id = 1", "insert into a values (3, 3)")
    assert "_committed_at, _gtid are NULL in rows that change" in planned(shop)
    shop.run()
    rows = shop.follower.mirror(f"{database}.a")
    assert [row["_gtid"] for row in rows] == [None, other["_gtid"], None]
    assert [row["_sequence"] for row in rows] == [
        last_changes(shop, "a")[0][key]["_sequence"] for key in (1, 2, 3)
    ]
    shop.follower.lake_policies = LakePolicies(dropped_columns=DroppedColumns.DROP)
    shop.do("update a set v = 11 where id = 1")
    shop.run()
    assert shop.follower.mirror(f"{database}.a") == shop.rows("a")
