"""`dropped_tables = "drop"`: a dropped table's mirror goes, its changelog stays, and a table
of that name begins anew; however the run ends in between."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from lockstep.pipeline.mirror.layout import mirror_path
from lockstep.pipeline.model.table_state import TableCondition
from lockstep.pipeline.ports.lease_check import RequireHeld, no_check
from lockstep.pipeline.run.acknowledge import acknowledge
from lockstep.pipeline.run.capture import capture
from lockstep.pipeline.run.merge import merge
from lockstep.pipeline.values.policies import DroppedTables, LakePolicies
from tests.fix_mysql import MySqlStand
from tests.mysql.logged import head
from tests.mysql.reading import server
from tests.positions import paused
from tests.positions.follower import SOURCE, Follower
from tests.positions.interrupted import Crash, mortal
from tests.twins.mirrors import MemoryMirrors

pytestmark = [pytest.mark.servers("newest", "8.0", "5.7"), pytest.mark.thin]


class Shop(paused.Shop):
    """Tables `gone` and `lost`, with two rows that the mirror has, and `other`."""

    def mirror(self, name: str = "gone") -> bool:
        """Whether it is there."""
        return mirror_path(SOURCE, self.table(name)) in self.follower.lake.tables

    def ids(self, name: str = "gone") -> list[int]:
        return [row["id"] for row in self.follower.mirror(f"{self.name}.{name}")]

    def changed(self, name: str = "gone") -> list[int]:
        """The ids of all rows in the changelog, in its order."""
        return [row["id"] for row in self.images(name)]


@pytest.fixture
def shop(mysql: MySqlStand, database: str) -> Shop:
    return opened(mysql, database, DroppedTables.DROP)


def opened(stand: MySqlStand, name: str, policy: DroppedTables) -> Shop:
    policies = LakePolicies(dropped_tables=policy)
    follower = Follower(server(stand), [f"{name}.*"], str(head(stand)), lake_policies=policies)
    shop = Shop(stand, name, follower)
    shop.do(
        *(f"create table {one} (id int primary key)" for one in ("gone", "lost", "other")),
        *(f"insert into {one} values (1), (2)" for one in ("gone", "lost")),
        "insert into other values (1)",
    )
    shop.run()
    return shop


AGAIN = (
    "create table gone (v varchar(10), id int primary key)",
    "insert into gone values ('x', 7)",
)


def test_the_mirror_goes_and_the_changelog_stays(shop: Shop) -> None:
    """What came before the DROP is in the changelog; the next table of that name has a mirror
    of its own and goes on in the changelog."""
    shop.do("insert into gone values (3)", "drop table gone")
    shop.run()
    assert not shop.mirror()
    assert shop.changed() == [1, 2, 3]
    assert shop.state("gone").condition is TableCondition.DROPPED
    shop.run()
    shop.do(*AGAIN)
    shop.run()
    assert (shop.ids(), shop.changed()) == ([7], [1, 2, 3, 7])
    state = shop.state("gone")
    assert (state.is_complete, state.generation) == (True, 2)
    versions = shop.follower.lake.tables[state.mirror]
    assert [commit.app_id.rpartition("/")[2] for commit in versions] == ["2"]
    shop.do("insert into gone values ('y', 8)")
    shop.run()
    cursor = shop.follower.acknowledged()
    assert cursor is not None
    entries = shop.follower.ledger.version_set(SOURCE, cursor.batch).entries
    (version,) = [one.delta_version for one in entries if one.table == shop.table("gone")]
    assert (version, shop.ids()) == (len(versions) - 1, [7, 8])


def test_a_database_goes_with_its_tables(shop: Shop) -> None:
    """DROP DATABASE names none of them."""
    shop.do(f"drop database {shop.name}")
    shop.run()
    mirrors = [path for path in shop.follower.lake.tables if f"{SOURCE}/{shop.name}/" in path]
    assert mirrors == []
    shop.stand.execute(f"create database {shop.name}")


def test_by_default_it_is_kept(mysql: MySqlStand, database: str) -> None:
    """And a policy that is changed later does not reach back."""
    shop = opened(mysql, database, DroppedTables.KEEP)
    shop.do("drop table gone")
    shop.run()
    shop.follower.lake_policies = LakePolicies(dropped_tables=DroppedTables.DROP)
    shop.do("insert into other values (2)")
    shop.run()
    assert shop.ids() == [1, 2]


def test_made_again_before_the_run_it_is_replaced(shop: Shop) -> None:
    """The mirror never went: one commit replaces what it held."""
    shop.do("drop table gone", *AGAIN)
    shop.run()
    assert (shop.ids(), shop.state("gone").generation) == ([7], 1)


def test_a_batch_that_waits_keeps_the_mirror(shop: Shop) -> None:
    """It goes when everything that was captured of it is merged and acknowledged; what the
    changelog has of it is there once."""
    shop.do("drop table gone")
    shop.follower.capture()
    shop.do(*AGAIN)
    shop.follower.capture()
    shop.do("drop table gone")
    shop.run()
    assert not shop.mirror()
    assert shop.changed() == [1, 2, 7]
    assert shop.state("gone").generation == 2


class CutOff(MemoryMirrors):
    """The process dies before it removes anything."""

    def remove(self, mirror: str, held: RequireHeld = no_check) -> None:
        raise Crash


def _dies_in_the_lake(shop: Shop) -> None:
    follower = shop.follower
    with follower.leased() as lease:
        ports = follower.ports()
        capture(ports, lease)
        merge(ports, lease)
        acknowledge(replace(ports, mirrors=CutOff(follower.lake)), lease)


def _dies(step: str, *, after: bool) -> Callable[[Shop], None]:
    def run(shop: Shop) -> None:
        with mortal(shop.follower, step, after=after):
            shop.run()

    return run


DEATHS = {
    "before it is noted": _dies("record_event", after=False),
    "once it is noted": _dies("record_event", after=True),
    "before it is acknowledged": _dies("acknowledge", after=False),
    "once it is acknowledged": _dies("acknowledge", after=True),
    "before the folder goes": _dies_in_the_lake,
}


@pytest.mark.parametrize("death", DEATHS)
def test_a_removal_that_was_cut_off_is_finished(shop: Shop, death: str) -> None:
    """Or the table is there again by then, and its mirror holds what it holds."""
    lost = [statement.replace("gone", "lost") for statement in AGAIN]
    shop.do("drop table gone", "drop table lost")
    with pytest.raises(Crash):
        DEATHS[death](shop)
    shop.do(*AGAIN)
    shop.run()
    assert shop.mirror("gone")
    assert not shop.mirror("lost")
    shop.do(*lost)
    shop.run()
    shop.do(*(f"insert into {one} values ('y', 8)" for one in ("gone", "lost")))
    shop.run()
    for name in ("gone", "lost"):
        assert (shop.ids(name), shop.changed(name)) == ([7, 8], [1, 2, 7, 8])


def test_a_table_without_a_mirror_may_be_dropped(shop: Shop) -> None:
    """It was quarantined at its first rows, and is gone when a person brings it back."""
    with shop.stand.connect(shop.name) as connection, connection.cursor() as cursor:
        cursor.execute("create table odd (d date primary key)")
        cursor.execute("set sql_mode = ''")
        cursor.execute("insert into odd values ('2024-00-00')")
    shop.run()
    assert list(shop.quarantined()) == ["odd"]
    shop.do("drop table odd")
    shop.resume("odd")
    shop.run()
    shop.run()
    assert shop.state("odd").condition is TableCondition.DROPPED
    assert shop.follower.ledger.pending_batches(SOURCE) == {}
