"""Writes to a mirror that are refused: the table is quarantined, the write given up, and the
table comes back whatever the others do."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass, field, replace

import pytest

from lockstep.pipeline.model.batch import BatchState
from lockstep.pipeline.model.table_state import OrderKind, TableCondition, TableState
from lockstep.pipeline.ports.lease_check import RequireHeld, no_check
from lockstep.pipeline.ports.mirror_writes import MirrorWrite
from lockstep.pipeline.ports.mirrors import MirrorCommit
from lockstep.pipeline.run.acknowledge import acknowledge
from lockstep.pipeline.run.capture import capture
from lockstep.pipeline.run.merge import merge
from lockstep.pipeline.values.errors import LakeUnavailable, TableError
from lockstep.pipeline.values.table import TableName
from tests.fix_mysql import MySqlStand
from tests.positions.follower import SOURCE
from tests.positions.interrupted import Crash, Moments, at_moments, mortal, noted
from tests.positions.two_tables import Shop, open_shop
from tests.twins.lake import MemoryLake
from tests.twins.mirrors import MemoryMirrors


class Picky(MemoryMirrors):
    """Refuses what is written to `refused`, and cannot reach `unreachable`."""

    def __init__(
        self, lake: MemoryLake, refused: Collection[str], unreachable: Collection[str]
    ) -> None:
        super().__init__(lake)
        self._refused = refused
        self._unreachable = unreachable

    def write(self, write: MirrorWrite, held: RequireHeld = no_check) -> MirrorCommit:
        name = write.target.mirror.rpartition("/")[2]
        if name in self._unreachable:
            raise LakeUnavailable("The lake's storage is full.", hint="free some space")
        if name in self._refused:
            raise TableError("a value is refused", hint="mend it")
        return super().write(write, held)


@dataclass
class Stage:
    """A shop whose tables `refused` cannot be written, nor those of a storage that is full."""

    shop: Shop
    refused: set[str] = field(default_factory=set)
    unreachable: set[str] = field(default_factory=set)

    def run(self) -> None:
        follower = self.shop.follower
        mirrors = Picky(follower.lake, self.refused, self.unreachable)
        with follower.leased() as lease:
            ports = replace(follower.ports(), mirrors=mirrors)
            capture(ports, lease)
            try:
                merge(ports, lease)
            except LakeUnavailable:
                assert self.unreachable
            else:
                acknowledge(ports, lease)

    def state(self, name: str) -> TableState:
        return self.shop.follower.ledger.table_states(SOURCE)[self.table(name)]

    def table(self, name: str) -> TableName:
        return TableName(self.shop.name, name)

    def order(self, kind: OrderKind, name: str) -> None:
        self.shop.follower.order(kind, self.table(name))

    def resume(self, name: str) -> None:
        self.order(OrderKind.RESUME, name)

    def require_settled(self) -> None:
        """Both tables go on, nothing waits, and the mirrors are the tables."""
        self.shop.write()
        self.run()
        ledger = self.shop.follower.ledger
        assert all(self.state(name).is_complete for name in "ab")
        assert (ledger.pending_batches(SOURCE), ledger.open_intents(SOURCE)) == ({}, [])
        assert self.shop.states()[-1] is BatchState.ACKNOWLEDGED
        self.require_same()

    def require_same(self) -> None:
        for name in "ab":
            rows = self.shop.stand.rows(f"select * from {self.shop.name}.{name} order by id")
            mirror = self.shop.follower.mirror(f"{self.shop.name}.{name}")
            assert [tuple(row.values()) for row in mirror] == rows


@pytest.fixture
def stage(mysql: MySqlStand, database: str) -> Stage:
    return Stage(open_shop(mysql, database))


def test_a_table_comes_back_while_another_one_waits(stage: Stage) -> None:
    """Its batch is captured still, for the other's sake: the write that was refused is not
    tried again, another one takes the batch and all that came since."""
    stage.shop.write()
    stage.refused, stage.unreachable = {"a"}, {"b"}
    stage.run()
    assert stage.state("a").condition is TableCondition.STOPPED
    assert (stage.state("a").hint or "").startswith("mend it; then `lockstep resume ")
    open_intents = stage.shop.follower.ledger.open_intents(SOURCE)
    assert [(intent.table.name, intent.first_batch) for intent in open_intents] == [("b", 2)]
    stage.refused = set()
    stage.resume("a")
    stage.shop.write()
    stage.run()
    assert stage.state("a").is_complete
    assert stage.shop.commits("a")[-1][0] == 2
    stage.unreachable = set()
    stage.require_settled()


def test_a_table_comes_back_when_its_batch_is_acknowledged_without_it(stage: Stage) -> None:
    """Its images are in the changelog; the mirror shows them all the same. A write may be refused
    again and again: each resume is a new try."""
    stage.shop.write()
    stage.refused = {"a"}
    stage.run()
    assert stage.shop.states()[-1] is BatchState.ACKNOWLEDGED
    stage.shop.write()
    stage.run()
    for _ in range(2):
        stage.resume("a")
        stage.run()
        assert stage.state("a").has_stopped
    stage.refused = set()
    stage.resume("a")
    stage.run()
    stage.require_settled()


def test_a_write_refused_halfway_leaves_a_mirror_that_is_replaced(stage: Stage) -> None:
    """Its columns were changed before: what builds on them could not know."""
    stage.shop.stand.execute("alter table a add column w int default 7", database=stage.shop.name)
    stage.shop.stand.execute("insert into a values (50, 1, 2)", database=stage.shop.name)
    stage.refused = {"a"}
    stage.run()
    stage.refused = set()
    stage.resume("a")
    stage.shop.stand.execute("alter table a drop column v", database=stage.shop.name)
    for _ in range(3):
        stage.run()
    assert stage.state("a").is_complete
    mirror = stage.shop.follower.mirror(f"{stage.shop.name}.a")
    rows = stage.shop.stand.rows(f"select id, w from {stage.shop.name}.a order by id")
    assert [(row["id"], row["w"]) for row in mirror] == rows


STEPS = ("intend", "quarantine", "settle", "record_capture")


@at_moments
def test_whatever_dies_meanwhile(stage: Stage, moments: Moments) -> None:
    """Killed before or after a step, both when it is refused and when it comes back."""
    for step, after in moments(STEPS):
        with noted(f"killed at {step}, after it: {after}"):
            stage.shop.write()
            stage.refused = {"a"}
            with mortal(stage.shop.follower, step, after=after), pytest.raises(Crash):
                stage.run()
            stage.run()
            stage.refused = set()
            stage.resume("a")
            stage.shop.write()
            with mortal(stage.shop.follower, step, after=after), suppress(Crash):
                stage.run()
            stage.run()
            stage.require_settled()


@pytest.mark.thin
@pytest.mark.parametrize("read_anew", [False, True])
@pytest.mark.parametrize("death", [("intend", True), ("settle", False)], ids=str)
def test_a_run_that_died_and_a_table_that_is_paused(
    stage: Stage, death: tuple[str, bool], read_anew: bool
) -> None:
    """The batch is acknowledged without it, and rows that were read from the source are gone:
    a commit that nobody recorded is found when the table comes back; one that was never
    made is made from the changelog's images, or by reading the table again."""
    if read_anew:
        stage.shop.write()
        stage.refused = {"a"}
        stage.run()
        stage.refused = set()
        stage.resume("a")
    stage.shop.write()
    step, after = death
    with mortal(stage.shop.follower, step, after=after), pytest.raises(Crash):
        stage.run()
    made = stage.shop.commits("a")
    stage.order(OrderKind.PAUSE, "a")
    stage.shop.write()
    stage.run()
    assert stage.shop.states()[-1] is BatchState.ACKNOWLEDGED
    assert stage.shop.commits("a") == made
    stage.order(OrderKind.RESUME, "a")
    for _ in range(2):
        stage.run()
    ranges = stage.shop.commits("a")
    assert len(set(ranges)) == len(ranges)
    assert ranges[: len(made)] == made
    stage.require_settled()
    ledger = stage.shop.follower.ledger
    settled = {
        write.intent.txn_version
        for batch in ledger.batches(SOURCE, limit=100)
        for write in ledger.writes_within(SOURCE, batch.id, batch.id)
        if write.intent.table == stage.table("a")
    }
    assert set(stage.shop.versions("a")) == settled
