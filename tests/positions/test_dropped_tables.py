"""`dropped_tables = "drop"`: a dropped table's mirror goes, its changelog stays, and a table
of that name begins anew; however the run ends in between."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from lockstep.pipeline.mirror.layout import mirror_path
from lockstep.pipeline.model.table_state import Supplier, TableCondition
from lockstep.pipeline.ports.lease_check import RequireHeld, no_check
from lockstep.pipeline.run.acknowledge import acknowledge
from lockstep.pipeline.run.capture import capture
from lockstep.pipeline.run.merge import merge
from lockstep.pipeline.source_plan import TableSettings
from lockstep.pipeline.values.errors import StoppedBy
from lockstep.pipeline.values.policies import DroppedTables, LakePolicies
from lockstep.pipeline.values.table import TablePatterns
from tests.fix_mysql import MySqlStand
from tests.mysql.logged import head
from tests.mysql.reading import server
from tests.positions.follower import SOURCE, Follower
from tests.positions.interrupted import Crash, mortal, noted
from tests.positions.paused import Shop
from tests.positions.stories import stories_in, tell
from tests.twins.mirrors import MemoryMirrors

ROWS = (
    *(f"create table {one} (id int primary key)" for one in ("gone", "lost", "other")),
    *(f"insert into {one} values (1), (2)" for one in ("gone", "lost")),
    "insert into other values (1)",
)
AGAIN = (
    "create table gone (v varchar(10), id int primary key)",
    "insert into gone values ('x', 7)",
)
POLICIES = LakePolicies(dropped_tables=DroppedTables.DROP)


def has_mirror(shop: Shop, name: str = "gone") -> bool:
    return mirror_path(SOURCE, shop.table(name)) in shop.follower.lake.tables


def ids(shop: Shop, name: str = "gone") -> list[int]:
    return [row["id"] for row in shop.follower.mirror(f"{shop.name}.{name}")]


def changed(shop: Shop, name: str = "gone") -> list[int]:
    """The ids of all rows in the changelog, in its order."""
    return [row["id"] for row in shop.images(name)]


def test_stories_of_dropped_tables(mysql: MySqlStand) -> None:
    tell(mysql, stories_in(globals()), (), ROWS, lake_policies=POLICIES)


def the_mirror_goes_and_the_changelog_stays(shop: Shop) -> Iterator[None]:
    """What came before the DROP is in the changelog; the next table of that name has a mirror
    of its own and goes on in the changelog."""
    shop.do("insert into gone values (3)", "drop table gone")
    yield
    assert not has_mirror(shop)
    assert changed(shop) == [1, 2, 3]
    assert shop.state("gone").condition is TableCondition.DROPPED
    yield
    shop.do(*AGAIN)
    yield
    assert (ids(shop), changed(shop)) == ([7], [1, 2, 3, 7])
    state = shop.state("gone")
    assert (state.is_complete, state.generation) == (True, 2)
    versions = shop.follower.lake.tables[state.mirror]
    assert [commit.app_id.rpartition("/")[2] for commit in versions] == ["2"]
    shop.do("insert into gone values ('y', 8)")
    yield
    cursor = shop.follower.acknowledged()
    assert cursor is not None
    entries = shop.follower.ledger.version_set(SOURCE, cursor.batch).entries
    (version,) = [one.delta_version for one in entries if one.table == shop.table("gone")]
    assert (version, ids(shop)) == (len(versions) - 1, [7, 8])


def a_database_goes_with_its_tables(shop: Shop) -> Iterator[None]:
    """DROP DATABASE names none of them."""
    shop.do(f"drop database {shop.name}")
    yield
    mirrors = [path for path in shop.follower.lake.tables if f"{SOURCE}/{shop.name}/" in path]
    assert mirrors == []


def by_default_it_is_kept(shop: Shop) -> Iterator[None]:
    """And a policy that is changed later does not reach back."""
    keep = {"dropped_tables": DroppedTables.KEEP}
    shop.follower.settings = [TableSettings(TablePatterns((f"{shop.name}.*",)), keep)]
    shop.do("drop table gone")
    yield
    shop.follower.settings = []
    shop.do("insert into other values (2)")
    yield
    assert ids(shop) == [1, 2]


def made_again_before_the_run_it_is_replaced(shop: Shop) -> Iterator[None]:
    """The mirror never went: one commit replaces what it held."""
    shop.do("drop table gone", *AGAIN)
    yield
    assert (ids(shop), shop.state("gone").generation) == ([7], 1)


def a_batch_that_waits_keeps_the_mirror(shop: Shop) -> Iterator[None]:
    """It goes when everything that was captured of it is merged and acknowledged; what the
    changelog has of it is there once."""
    shop.do("drop table gone")
    shop.follower.capture()
    shop.do(*AGAIN)
    shop.follower.capture()
    shop.do("drop table gone")
    yield
    assert not has_mirror(shop)
    assert changed(shop) == [1, 2, 7]
    assert shop.state("gone").generation == 2


def a_table_without_a_mirror_may_be_dropped(shop: Shop) -> Iterator[None]:
    """It was quarantined at its first rows, and is gone when a person brings it back."""
    shop.do("create table odd (d date primary key)")
    shop.do("set sql_mode = ''", "insert into odd values ('2024-00-00')")
    yield
    assert list(shop.quarantined()) == ["odd"]
    shop.do("drop table odd")
    shop.resume("odd")
    yield
    yield
    assert shop.state("odd").condition is TableCondition.DROPPED
    assert shop.follower.ledger.pending_batches(SOURCE) == {}


def a_reload_waits_for_a_table_that_is_made_again(shop: Shop) -> Iterator[None]:
    """Until then nothing is read of it; then all of its rows are, in one run, and it is followed
    again."""
    shop.do("drop table gone", "drop table lost")
    yield
    shop.follower.reload(shop.table("gone"), Supplier.SOURCE)
    yield
    assert shop.state("gone").condition is TableCondition.DROPPED
    shop.follower.reload(shop.table("gone"), Supplier.SOURCE)
    shop.follower.reload(shop.table("lost"))
    shop.do(*AGAIN, "create table lost (id int primary key)", "insert into lost values (5)")
    yield
    assert (ids(shop), ids(shop, "lost")) == ([7], [5])
    shop.do("insert into gone values ('y', 8)", "delete from lost")
    yield
    assert (ids(shop), ids(shop, "lost")) == ([7, 8], [])


def a_table_that_nobody_could_follow_may_be_dropped(shop: Shop) -> Iterator[None]:
    """Its structure was never known: no run is promised that reads it, until it is there again."""
    odd = "create table odd (id int primary key, v enum('é')) charset big5"
    shop.do("set sql_mode = ''", odd)
    yield
    assert list(shop.quarantined()) == ["odd"]
    shop.do("drop table odd")
    shop.resume("odd")
    yield
    yield
    state = shop.state("odd")
    assert state.stopped_by is StoppedBy.SYSTEM
    assert "exclude it" in str(state.hint)
    shop.do("create table odd (id int primary key)", "insert into odd values (5)")
    shop.resume("odd")
    yield
    assert ids(shop, "odd") == [5]


def a_table_that_lacks_values_may_be_dropped(shop: Shop) -> Iterator[None]:
    """Only the source had the values of its new column, and the log has its DROP."""
    shop.do("alter table gone add half int as (id div 2) stored")
    shop.do("insert into gone (id) values (3)", "drop table gone")
    yield
    yield
    assert shop.state("gone").condition is TableCondition.DROPPED
    assert not has_mirror(shop)


def test_a_mirror_that_ends_without_changes_is_found_again(
    mysql: MySqlStand, database: str
) -> None:
    """The process dies between its commit and the ledger."""
    follower = Follower(server(mysql), [f"{database}.*"], str(head(mysql)), lake_policies=POLICIES)
    shop = Shop(mysql, database, follower)
    shop.do("create table gone (id int primary key)", "insert into gone values (1)")
    shop.run()
    shop.do("alter table gone add half int as (id div 2) stored")
    shop.do("insert into gone (id) values (3)", "drop table gone")
    with mortal(follower, "settle", after=False), pytest.raises(Crash):
        shop.run()
    shop.run()
    assert shop.state("gone").condition is TableCondition.DROPPED
    assert not has_mirror(shop)


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


def test_a_removal_that_was_cut_off_is_finished(mysql: MySqlStand, database: str) -> None:
    """Or the table is there again by then, and its mirror holds what it holds."""
    follower = Follower(server(mysql), [f"{database}.*"], str(head(mysql)), lake_policies=POLICIES)
    shop = Shop(mysql, database, follower)
    for number, (moment, die) in enumerate(DEATHS.items()):
        gone, lost = f"gone{number}", f"lost{number}"
        with noted(moment):
            shop.do(*(f"create table {one} (id int primary key)" for one in (gone, lost)))
            shop.do(*(f"insert into {one} values (1), (2)" for one in (gone, lost)))
            shop.run()
            shop.do(f"drop table {gone}", f"drop table {lost}")
            with pytest.raises(Crash):
                die(shop)
            shop.do(*(statement.replace("gone", gone) for statement in AGAIN))
            shop.run()
            assert has_mirror(shop, gone)
            assert not has_mirror(shop, lost)
            shop.do(*(statement.replace("gone", lost) for statement in AGAIN))
            shop.run()
            shop.do(*(f"insert into {one} values ('y', 8)" for one in (gone, lost)))
            shop.run()
            for name in (gone, lost):
                assert (ids(shop, name), changed(shop, name)) == ([7, 8], [1, 2, 7, 8])
