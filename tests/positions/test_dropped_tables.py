"""`dropped_tables = "drop"`: a dropped table's mirror goes, its changelog stays, and a table
of that name begins anew; however the run ends in between."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest

from pipeline.changes.layout import changelog_path, mirror_path
from pipeline.policies import DroppedTables, LakePolicies
from pipeline.ports.held import Held, unasked
from pipeline.runs.acknowledge import acknowledge
from pipeline.runs.capture import capture
from pipeline.runs.merge import merge
from pipeline.table import TableName
from pipeline.table_state import OrderKind, TableCondition, TableState
from tests.fix_mysql import MySqlStand
from tests.mysql.logged import head
from tests.mysql.reading import server
from tests.positions.follower import SOURCE, Follower
from tests.positions.interrupted import Crash, mortal
from tests.twins.mirrors import MemoryMirrors

pytestmark = pytest.mark.servers("newest", "8.0", "5.7")


@dataclass
class Shop:
    """Tables `gone` and `lost`, with two rows that the mirror has, and `other`."""

    stand: MySqlStand
    name: str
    follower: Follower

    @property
    def gone(self) -> TableName:
        return TableName(self.name, "gone")

    def put(self, *statements: str) -> None:
        self.stand.execute(*statements, database=self.name)

    def state(self) -> TableState:
        return self.follower.ledger.table_states(SOURCE)[self.gone]

    def mirror(self, name: str = "gone") -> bool:
        """Whether it is there."""
        return mirror_path(SOURCE, TableName(self.name, name)) in self.follower.lake.tables

    def ids(self, name: str = "gone") -> list[int]:
        return [row["id"] for row in self.follower.mirror(f"{self.name}.{name}")]

    def changed(self, name: str = "gone") -> list[int]:
        """The ids of all rows in the changelog, in its order."""
        commits = self.follower.lake.tables[changelog_path(SOURCE, TableName(self.name, name))]
        return [row["id"] for row in commits[-1].rows.to_pylist()]


@pytest.fixture
def shop(mysql: MySqlStand, database: str) -> Shop:
    return opened(mysql, database, "drop")


def opened(stand: MySqlStand, name: str, policy: str) -> Shop:
    tables = [f"{name}.*"]
    policies = LakePolicies(dropped_tables=DroppedTables(policy))
    follower = Follower(server(stand), tables, str(head(stand)), lake_policies=policies)
    shop = Shop(stand, name, follower)
    shop.put(
        *(f"create table {one} (id int primary key)" for one in ("gone", "lost", "other")),
        *(f"insert into {one} values (1), (2)" for one in ("gone", "lost")),
        "insert into other values (1)",
    )
    shop.follower.run()
    return shop


AGAIN = (
    "create table gone (v varchar(10), id int primary key)",
    "insert into gone values ('x', 7)",
)


def test_the_mirror_goes_and_the_changelog_stays(shop: Shop) -> None:
    """What came before the DROP is in the changelog; the next table of that name has a mirror
    of its own and goes on in the changelog."""
    shop.put("insert into gone values (3)", "drop table gone")
    shop.follower.run()
    assert not shop.mirror()
    assert shop.changed() == [1, 2, 3]
    assert shop.state().condition is TableCondition.DROPPED
    shop.follower.run()
    shop.put(*AGAIN)
    shop.follower.run()
    assert (shop.ids(), shop.changed()) == ([7], [1, 2, 3, 7])
    state = shop.state()
    assert (state.condition, state.generation) == (TableCondition.ACTIVE, 2)
    versions = shop.follower.lake.tables[state.mirror]
    assert [commit.app_id.rpartition("/")[2] for commit in versions] == ["2"]
    shop.put("insert into gone values ('y', 8)")
    shop.follower.run()
    (entry,) = [
        one
        for one in shop.follower.ledger.version_set(SOURCE, _newest(shop)).shown
        if one.table == shop.gone
    ]
    assert (entry.delta_version, shop.ids()) == (len(versions) - 1, [7, 8])


def _newest(shop: Shop) -> int:
    cursor = shop.follower.ledger.cursors(SOURCE).acknowledged
    assert cursor is not None
    return cursor.batch


def test_a_database_goes_with_its_tables(shop: Shop) -> None:
    """DROP DATABASE names none of them."""
    shop.put(f"drop database {shop.name}")
    shop.follower.run()
    mirrors = [path for path in shop.follower.lake.tables if f"{SOURCE}/{shop.name}/" in path]
    assert mirrors == []
    shop.stand.execute(f"create database {shop.name}")


def test_by_default_it_is_kept(mysql: MySqlStand, database: str) -> None:
    """And a policy that is changed later does not reach back."""
    shop = opened(mysql, database, "keep")
    shop.put("drop table gone")
    shop.follower.run()
    shop.follower.lake_policies = LakePolicies(dropped_tables=DroppedTables.DROP)
    shop.put("insert into other values (2)")
    shop.follower.run()
    assert shop.ids() == [1, 2]


def test_made_again_before_the_run_it_is_replaced(shop: Shop) -> None:
    """The mirror never went: one commit replaces what it held."""
    shop.put("drop table gone", *AGAIN)
    shop.follower.run()
    assert (shop.ids(), shop.state().generation) == ([7], 1)


def test_a_batch_that_waits_keeps_the_mirror(shop: Shop) -> None:
    """It goes when everything that was captured of it is merged and acknowledged; what the
    changelog has of it is there once."""
    shop.put("drop table gone")
    shop.follower.capture()
    shop.put(*AGAIN)
    shop.follower.capture()
    shop.put("drop table gone")
    shop.follower.run()
    assert not shop.mirror()
    assert shop.changed() == [1, 2, 7]
    assert shop.state().generation == 2


class CutOff(MemoryMirrors):
    """The process dies before it removes anything."""

    def remove(self, mirror: str, held: Held = unasked) -> None:
        raise Crash


def _dies_in_the_lake(shop: Shop) -> None:
    follower = shop.follower
    with follower.ledger.lock(SOURCE, "test", None) as lease:
        work = follower.work()
        capture(work, lease)
        merge(work, lease)
        acknowledge(replace(work, mirrors=CutOff(follower.lake)), lease)


def _dies(step: str, *, after: bool) -> Callable[[Shop], None]:
    def run(shop: Shop) -> None:
        with mortal(shop.follower, step, after=after):
            shop.follower.run()

    return run


DEATHS = {
    "before it is noted": _dies("record_event", after=False),
    "once it is noted": _dies("record_event", after=True),
    "before it is acknowledged": _dies("acknowledge", after=False),
    "once it is acknowledged": _dies("acknowledge", after=True),
    "before the folder goes": _dies_in_the_lake,
}


@pytest.mark.thin
@pytest.mark.parametrize("death", DEATHS)
def test_a_removal_that_was_cut_off_is_finished(shop: Shop, death: str) -> None:
    """Or the table is there again by then, and its mirror holds what it holds."""
    lost = [statement.replace("gone", "lost") for statement in AGAIN]
    shop.put("drop table gone", "drop table lost")
    with pytest.raises(Crash):
        DEATHS[death](shop)
    shop.put(*AGAIN)
    shop.follower.run()
    assert shop.mirror("gone")
    assert not shop.mirror("lost")
    shop.put(*lost)
    shop.follower.run()
    shop.put(*(f"insert into {one} values ('y', 8)" for one in ("gone", "lost")))
    shop.follower.run()
    for name in ("gone", "lost"):
        assert (shop.ids(name), shop.changed(name)) == ([7, 8], [1, 2, 7, 8])


def test_a_table_without_a_mirror_may_be_dropped(shop: Shop) -> None:
    """It was quarantined at its first rows, and is gone when a person brings it back."""
    with shop.stand.connect(shop.name) as connection, connection.cursor() as cursor:
        cursor.execute("create table odd (d date primary key)")
        cursor.execute("set sql_mode = ''")
        cursor.execute("insert into odd values ('2024-00-00')")
    odd = TableName(shop.name, "odd")
    assert [one.table for one in shop.follower.run().quarantined] == [odd]
    shop.put("drop table odd")
    with shop.follower.ledger.lock(SOURCE, "test", None) as lease:
        shop.follower.ledger.order_table(
            lease, odd, OrderKind.RELEASE, author="ada", reason="it is gone"
        )
    shop.follower.run()
    shop.follower.run()
    state = shop.follower.ledger.table_states(SOURCE)[odd]
    assert state.condition is TableCondition.DROPPED
    assert shop.follower.ledger.pending(SOURCE) == {}
