"""Runs, crashes, failovers, purges and restarts in any order, against what must be true."""

from __future__ import annotations

from contextlib import suppress
from typing import cast

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from lockstep.pipeline.model.batch import Batch, BatchState
from lockstep.pipeline.ports.source import SourceServer
from lockstep.pipeline.values.decisions import Continuity
from lockstep.pipeline.values.errors import LockstepError
from tests.positions.fake import FakeServer
from tests.positions.follower import SOURCE, Follower, by_time
from tests.positions.interrupted import STEPS, Crash, mortal

UUIDS = [f"{n}aaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa" for n in range(1, 4)]
Writes = list[tuple[int, int | None]]
HAZARDS = (
    ("promote",),
    ("promote", "purge"),
    ("promote", "anonymous"),
    ("promote", "choose"),
    ("purge", "reset"),
    ("promote", "purge", "anonymous", "reset", "choose"),
    (),
)
KEYS = st.integers(1, 5)
VALUES = st.one_of(st.none(), st.integers(1, 9))
WRITES = st.lists(st.tuples(KEYS, VALUES), max_size=6)
ROTATING = 3
"""After more writes than so many the log rotates."""


class SourceMachine(RuleBasedStateMachine):
    """One source, three servers of which one answers."""

    @initialize(by_moment=st.booleans(), hazards=st.sampled_from(HAZARDS))
    def begins(self, by_moment: bool, hazards: tuple[str, ...]) -> None:
        self.hazards = hazards
        self.servers = [FakeServer(uuid, n) for n, uuid in enumerate(UUIDS, start=1)]
        self.primary = self.servers[0]
        self.follower = Follower(cast("SourceServer", self.primary), ["shop.*"], start="earliest")
        if by_moment:
            self.follower.policies = by_time(2)
            for server in self.servers:
                server.gtid_mode = "OFF"
        self.lost = False
        """Changes were given up: the mirror may differ from the server."""

    # -- what happens to servers ---------------------------------------------------------

    def _write(self, writes: Writes) -> None:
        for key, value in writes:
            self.primary.write(key, value)
        if len(writes) > ROTATING:
            self.primary.rotate()

    @precondition(lambda self: "purge" in self.hazards)
    @rule()
    def purge(self) -> None:
        self.primary.purge()
        if self.follower.ledger.cursors(SOURCE).captured is None:
            self.lost = True  # "earliest" is what the server still has

    @rule(which=st.integers(0, 2))
    def replicate(self, which: int) -> None:
        if self.servers[which] is not self.primary:
            self.servers[which].follow(self.primary)

    @precondition(lambda self: "promote" in self.hazards)
    @rule(writes=WRITES, steps=st.integers(1, 2), late=WRITES)
    def promote(self, writes: Writes, steps: int, late: Writes) -> None:
        """Another server answers; it may lack what the old one wrote last, which no other
        server changes: where two do, the order in the lake is that of reading."""
        other = self.servers[(self.servers.index(self.primary) + steps) % 3]
        self._write(writes)
        other.follow(self.primary)
        own = 10 * (1 + self.servers.index(self.primary))
        if len(late) > ROTATING:
            self._write([(own + key, value) for key, value in late])
            # By time nobody can see what only one of two servers has.
            by_time = self.follower.policies.on_source_changed == "timestamp"
            self.lost = self.lost or by_time or self.primary.gtid_mode != "ON"
        other.clock = max(other.clock, self.primary.clock)
        self.primary = other
        self.follower.server = cast("SourceServer", other)

    @precondition(lambda self: "anonymous" in self.hazards)
    @rule(mode=st.sampled_from(["ON", "ON", "OFF"]))
    def switch(self, mode: str) -> None:
        self.primary.gtid_mode = mode

    @precondition(lambda self: "reset" in self.hazards)
    @rule(key=KEYS, regrows=st.booleans())
    def reset(self, key: int, regrows: bool) -> None:
        """The log begins anew, and may grow to where it was."""
        writes = len(self.primary.writes)
        self.primary.reset()
        if self.follower.ledger.cursors(SOURCE).captured is None:
            self.lost = True  # nobody read what the log had
        for _ in range(writes if regrows else 0):
            self.primary.write(key, 7)

    # -- what the follower does ----------------------------------------------------------

    @rule(writes=WRITES, until_captured=st.booleans())
    def run(self, writes: Writes, until_captured: bool) -> None:
        self._write(writes)
        try:
            if until_captured:
                self.follower.capture()
            else:
                self.follower.run()
        except LockstepError as error:
            assert error.hint
            return
        if not until_captured:
            assert self.lost or self._mirror() == self.primary.rows

    @rule(writes=WRITES, step=st.sampled_from(STEPS), after=st.booleans())
    def crash(self, writes: Writes, step: str, after: bool) -> None:
        self._write(writes)
        with mortal(self.follower, step, after=after), suppress(Crash, LockstepError):
            self.follower.run()

    @precondition(lambda self: "choose" in self.hazards)
    @rule(place=st.sampled_from(["earliest", "latest"]))
    def choose(self, place: str) -> None:
        """A person gives up what is between."""
        self.follower.choose(place)
        self.lost = True

    # -- what is always true -------------------------------------------------------------

    @invariant()
    def acknowledged_ranges_are_contiguous_or_explained(self) -> None:
        if not hasattr(self, "follower"):
            return
        batches = {one.id: one for one in self.follower.ledger.batches(SOURCE, limit=1000)[::-1]}
        done = [one for one in batches.values() if one.state is BatchState.ACKNOWLEDGED]
        for batch in done:
            if batch.previous_batch is None:
                assert batch is done[0]
            else:
                self._goes_on(batches[batch.previous_batch], batch)

    def _goes_on(self, before: Batch, batch: Batch) -> None:
        assert before.state is BatchState.ACKNOWLEDGED
        assert before.end is not None
        if batch.continued_batch is not None:
            assert (before.end.at, before.end.server_uuid) == (
                batch.start.at,
                batch.start.server_uuid,
            )
            return
        match batch.continuity:
            case Continuity.CONTIGUOUS:
                assert batch.start.gtid_set == before.end.gtid_set
            case Continuity.OVERLAP:
                assert batch.start.server_uuid != before.end.server_uuid
            case Continuity.GAP:
                gaps = self.follower.ledger.gaps(SOURCE)
                assert batch.id in [gap.batch for gap in gaps]
            case _:
                raise AssertionError("neither contiguous nor explained")

    @invariant()
    def nothing_is_acknowledged_before_it_is_merged(self) -> None:
        if not hasattr(self, "follower"):
            return
        ledger = self.follower.ledger
        waiting = {batch for some in ledger.pending_batches(SOURCE).values() for batch in some}
        for batch in ledger.batches(SOURCE, limit=1000):
            if batch.state is BatchState.ACKNOWLEDGED:
                assert batch.merged_at is not None
                assert batch.id not in waiting

    def _mirror(self) -> dict[int, int]:
        return {row["id"]: row["v"] for row in self.follower.mirror("shop.t")}


SETTINGS = settings(
    max_examples=2,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
SourceMachine.TestCase.settings = SETTINGS
test_a_source_through_everything = SourceMachine.TestCase


@pytest.mark.soak
def test_a_source_through_far_more() -> None:
    """The same, for minutes."""
    run_state_machine_as_test(SourceMachine, settings=settings(SETTINGS, max_examples=3000))
