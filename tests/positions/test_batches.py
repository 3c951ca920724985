"""Batches on their way: captures that wait, intents of the dead, merges that wake up late."""

from __future__ import annotations

from dataclasses import replace
from threading import Event
from typing import Any

import pytest

from lockstep.pipeline.model.batch import BatchState
from lockstep.pipeline.ports.lease_check import RequireHeld, no_check
from lockstep.pipeline.ports.mirror_writes import MirrorWrite
from lockstep.pipeline.ports.mirrors import MirrorCommit
from lockstep.pipeline.run.acknowledge import acknowledge
from lockstep.pipeline.run.capture import capture
from lockstep.pipeline.run.context import RunPorts
from lockstep.pipeline.run.merge import merge
from lockstep.pipeline.values.decisions import Lease
from lockstep.pipeline.values.errors import JavaMissing, LeaseLost
from lockstep.pipeline.values.table import TableName
from tests.fix_mysql import MySqlStand
from tests.positions.follower import SOURCE
from tests.positions.interrupted import Crash, mortal
from tests.positions.two_tables import TABLES, Asleep, Shop, books, open_shop, overtaken
from tests.twins.lake import MemoryLake
from tests.twins.mirrors import MemoryMirrors


@pytest.fixture
def shop(mysql: MySqlStand, database: str) -> Shop:
    return open_shop(mysql, database)


# -- captures that wait ----------------------------------------------------------------------


class NoJava(MemoryMirrors):
    def require_ready(self) -> None:
        raise JavaMissing("There is no Java.", hint="install it")

    def write(self, write: MirrorWrite, held: RequireHeld = no_check) -> MirrorCommit:
        raise JavaMissing("There is no Java.", hint="install it")


def run_with(shop: Shop, mirrors: MemoryMirrors) -> None:
    """A whole run on these mirrors."""
    shop.follower.steps(replace(shop.follower.ports(), mirrors=mirrors))


def test_batches_that_wait_for_java_are_merged_at_once(shop: Shop) -> None:
    """Capture and the changelogs go on; then one commit for each mirror holds them all."""
    before, position = shop.states(), shop.follower.acknowledged()
    for _ in range(3):
        shop.write()
        with pytest.raises(JavaMissing):
            run_with(shop, NoJava(shop.follower.lake))
    assert shop.states() == [*before, *[BatchState.CAPTURED] * 3]
    assert shop.follower.acknowledged() == position
    assert shop.follower.ledger.open_intents(SOURCE) == []
    assert all(shop.commits(table) == [(1, 1)] for table in TABLES)
    assert all(len(set(shop.changelog(table))) > 6 for table in TABLES)
    shop.follower.run()
    assert all(shop.commits(table) == [(1, 1), (2, 4)] for table in TABLES)
    assert set(shop.states()) == {BatchState.ACKNOWLEDGED}
    shop.require_same()


def test_a_merged_batch_is_acknowledged_behind_the_one_before_it(shop: Shop) -> None:
    """Where one table is merged alone, a later batch without rows of the other is merged first."""
    follower, left = shop.follower, TableName(shop.name, "a")
    for write in (shop.write, shop.write_to_b):
        write()
        with follower.leased() as lease:
            capture(follower.ports(), lease)
            merge(follower.ports(), lease, frozenset({TableName(shop.name, "b")}))
            told = acknowledge(follower.ports(), lease)
        assert (told.acknowledged_batches, told.waiting_batches) == ((), {2: (left,)})
    assert shop.states()[1:] == [BatchState.CAPTURED, BatchState.MERGED]
    follower.run()
    assert set(shop.states()) == {BatchState.ACKNOWLEDGED}
    shop.require_same()


@pytest.mark.thin
@pytest.mark.parametrize("step", ["intend", "settle"])
@pytest.mark.parametrize("after", [False, True])
def test_an_intent_of_a_dead_run_is_settled_as_it_was(shop: Shop, step: str, after: bool) -> None:
    """Whatever the run died at, and however much was captured since: the same batches, the
    same version, one commit."""
    shop.write()
    with mortal(shop.follower, step, after=after), pytest.raises(Crash):
        shop.follower.run()
    left = shop.follower.ledger.open_intents(SOURCE)
    for _ in range(2):
        shop.write()
        shop.follower.capture()
    shop.follower.run()
    for intent in left:
        table = intent.table.name
        assert (intent.first_batch, intent.last_batch) == (2, 2)
        assert shop.commits(table) == [(1, 1), (2, 2), (3, 4)]
        assert shop.versions(table)[1] == intent.txn_version
    for table in TABLES:
        assert len(set(shop.versions(table))) == len(shop.versions(table))
    shop.require_same()
    assert shop.follower.ledger.open_intents(SOURCE) == []


# -- holders that wake up late ---------------------------------------------------------------


class Sleeper(MemoryMirrors):
    """Falls asleep before or after a commit, when it has been asked whether it may."""

    def __init__(self, lake: MemoryLake, asleep: Asleep, *, after: bool) -> None:
        super().__init__(lake)
        self._asleep = asleep
        self._after = after
        self.commits: list[MirrorCommit] = []

    def write(self, write: MirrorWrite, held: RequireHeld = no_check) -> MirrorCommit:
        held()
        if not self._after:
            self._asleep()
        self.commits.append(super().write(write))
        if self._after:
            self._asleep()
        return self.commits[-1]


@pytest.mark.thin
@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("more", [False, True])
def test_a_merge_that_wakes_up_late_changes_nothing(shop: Shop, after: bool, more: bool) -> None:
    """Overtaken before or after its own commit: one commit for that intent, whoever made it,
    read back by the other; the sleeper is told, and records nothing."""
    shop.write()
    shop.follower.capture()
    asleep = Asleep()
    mirrors = Sleeper(shop.follower.lake, asleep, after=after)
    ports = replace(shop.follower.ports(), mirrors=mirrors)
    recorded: list[Any] = []

    def meanwhile() -> None:
        if more:
            shop.write()
        shop.follower.run()
        recorded.extend(books(shop))

    error = overtaken(shop, asleep, merge, ports)(meanwhile)
    assert type(error) is LeaseLost
    assert books(shop) == recorded
    for table in TABLES:
        wanted = [(1, 1), (2, 2), (3, 3)] if more else [(1, 1), (2, 2)]
        assert shop.commits(table) == wanted
    shop.require_same()
    shop.write()
    shop.follower.run()
    shop.require_same()


def test_a_commit_made_while_another_holder_merges_is_read_back(shop: Shop) -> None:
    """The sleeper's commit comes when the next holder has begun the same write: Delta takes
    one of them, and the next holder records that one."""
    shop.write()
    shop.follower.capture()
    asleep = Asleep()
    sleeper = Sleeper(shop.follower.lake, asleep, after=False)
    done = Event()

    class Slow(MemoryMirrors):
        def write(self, write: MirrorWrite, held: RequireHeld = no_check) -> MirrorCommit:
            asleep.woken.set()
            assert done.wait(60)
            return super().write(write, held)

    def late(ports: RunPorts, lease: Lease) -> None:
        try:
            merge(ports, lease)
        finally:
            done.set()

    ports = replace(shop.follower.ports(), mirrors=sleeper)
    error = overtaken(shop, asleep, late, ports)(lambda: run_with(shop, Slow(shop.follower.lake)))
    assert type(error) is LeaseLost
    assert {commit.delta_version for commit in sleeper.commits} == {1}
    assert all(shop.commits(table) == [(1, 1), (2, 2)] for table in TABLES)
    shop.require_same()
