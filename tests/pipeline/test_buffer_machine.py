"""The transaction buffer against a model, whatever comes, however it comes."""

from __future__ import annotations

from typing import Any, TypeAlias

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

from lockstep.pipeline.binlog.transactions.buffer import TransactionBuffer
from lockstep.pipeline.binlog.transactions.loop import Limits
from lockstep.pipeline.model.batch import PreparedTransaction, Xid
from lockstep.pipeline.values.position import Coordinates
from tests.fuzz.written import UNWANTED, ServedDump, WrittenLog
from tests.pipeline.buffered import START, outs
from tests.pipeline.made import received
from tests.twins.spool import MemorySpool

Step: TypeAlias = "tuple[int, str, bool] | str | int"
"""Rows of a table, deflated or not; a savepoint's name or another word; or which savepoint
is rolled back to."""

KINDS = st.sampled_from(["plain", "plain", "tagged", "mariadb"])
XIDS = st.sampled_from([b"x", b"y", b"z"])
# A row event of 198 rows fills a ring of 1 KiB, one of 813 a ring of 4 KiB.
EDGES = st.sampled_from([97, 98, 99, 150, 197, 198, 199, 406, 812, 813, 814, 900])
COUNTS = st.one_of(st.integers(0, 5), st.integers(0, 30), EDGES)
FLAG = st.booleans()
PIECES = st.lists(
    st.sampled_from([1, 30, 60, 100, 200, 300, 1000, 3000, 1 << 20]), min_size=1, max_size=20
)
LIMITS = st.sampled_from(
    [Limits(), Limits(), Limits(transactions=1), Limits(transactions=3), Limits(log_bytes=1)]
)
WRITES = st.tuples(COUNTS, st.sampled_from(["t", "t", "u", UNWANTED]), FLAG)
WORDS = st.sampled_from(["a", "a", "b c", "b c", "d", "create", "note", "heartbeat"])
WORK = st.lists(st.one_of(WRITES, WRITES, WORDS, st.integers(0, 2)), max_size=10)
ENDS = st.sampled_from(["xid", "xid", "COMMIT", "ROLLBACK"])
OTHERS = st.sampled_from(["statement", "rollback", "rotate", "heartbeat"])
XA_ENDS = st.sampled_from(["prepare", "prepare", "prepare", "one phase", "ROLLBACK", "XA ROLLBACK"])


TEXTS = ("insert", "", "ä", "update t set i = i + 1 /* " + "x" * 6000 + " */")


class BufferMachine(RuleBasedStateMachine):
    """Writes a log, sends it in pieces, takes runs, acknowledges them, starts again."""

    @initialize(
        ring=st.sampled_from([1 << 10, 1 << 12, 1 << 14]),
        run=st.sampled_from([1, 200, 1 << 12]),
        events=st.sampled_from([1, 3, 64, 64]),
        transactions=st.sampled_from([2, 3, 16]),
    )
    def begins(self, ring: int, run: int, events: int, transactions: int) -> None:
        self.log = WrittenLog()
        self.log.head()
        self.spool = MemorySpool()
        self.sizes: dict[str, Any] = {
            "ring_bytes": ring,
            "group_bytes": run,
            "events": events,
            "transactions": transactions,
            "text_bytes": 0,  # room for the texts of one transaction, which is the least
        }
        self.recorded: dict[Xid, PreparedTransaction] = {}
        self.came = 0
        self.batch = 0
        self._connect(START, START, Limits())

    def _connect(self, start: Coordinates, begins: Coordinates, limits: Limits) -> None:
        self.buffer = TransactionBuffer(
            start,
            begins=begins,
            is_captured=lambda table: table.name != UNWANTED,
            spool=self.spool,
            prepared=self.recorded,
            limits=limits,
            **self.sizes,
        )
        self.dump = ServedDump(self.log, begins)
        self.first, self.limits = self.came, limits

    # -- the log --------------------------------------------------------------------

    @rule(kind=KINDS, packed=FLAG, compressed=FLAG, work=WORK, end=ENDS)
    def transaction(
        self, kind: str, packed: bool, compressed: bool, work: list[Step], end: str
    ) -> None:
        self.log.begin(kind, packed=packed, compressed=compressed)
        self._work(work)
        self.log.commit(end)

    @rule(kind=KINDS, xid=XIDS, packed=FLAG, work=WORK, end=XA_ENDS)
    def xa_transaction(
        self, kind: str, xid: bytes, packed: bool, work: list[Step], end: str
    ) -> None:
        if xid not in self.log.prepared:
            self.log.begin_xa(kind, xid, packed=packed)
            self._work(work)
            self.log.end_xa(end)

    def _work(self, work: list[Step]) -> None:
        """Whatever of it can be done inside the transaction that is open."""
        log = self.log
        for step in work:
            match step:
                case int(which):
                    if log.savepoints:
                        log.rollback_to(which % len(log.savepoints))
                case (int(count), str(table), bool(deflated)):
                    log.write(count, table, deflated=deflated)
                case "create":
                    if log.xid is None:
                        log.create()
                case "note" | "heartbeat":
                    if step == "note":
                        log.note(TEXTS[len(log.events) % len(TEXTS)])
                    elif log.inside is None:
                        log.beat()
                case str(name):
                    log.savepoint(name)

    @precondition(lambda self: self.log.prepared)
    @rule(kind=KINDS, which=st.integers(0, 2), commits=FLAG)
    def settle_xa(self, kind: str, which: int, commits: bool) -> None:
        waiting = sorted(self.log.prepared)
        self.log.settle_xa(kind, waiting[which % len(waiting)], commits=commits)

    @rule(what=OTHERS, kind=KINDS, xid=XIDS, packed=FLAG)
    def other(self, what: str, kind: str, xid: bytes, packed: bool) -> None:
        match what:
            case "statement":
                self.log.statement(kind, "DROP TABLE `gone`", packed=packed)
            case "rollback":
                self.log.settle_xa(kind, xid, commits=False)
            case "rotate":
                self.log.rotate()
            case _:
                self.log.beat()

    # -- the reader -------------------------------------------------------------------

    @rule(pieces=PIECES)
    def read(self, pieces: list[int]) -> None:
        """A run that is out allows nothing but its acknowledgement: they take turns."""
        for count in pieces:
            over = self.buffer.has_stopped or self.buffer.has_ended
            if over or not (piece := self.dump.piece(count)):
                return
            self.buffer.put(received(piece))
            self._take_runs()

    def _take_runs(self) -> None:
        while (run := self.buffer.get()) is not None:
            for out in outs(run):
                expected = self.log.expected[self.came]
                self.came += 1
                assert (out.gtid, tuple(out.values)) == (expected.gtid, expected.values)
                assert (out.texts, out.cut) == (expected.texts, False)
                assert (out.statements, out.end) == (expected.statements, expected.end.offset)
            self.the_sequences_are_in_order()
            self.buffer.ack()

    @rule(early=FLAG, stops=FLAG, limits=LIMITS, pieces=PIECES)
    def start_again(self, early: bool, stops: bool, limits: Limits, pieces: list[int]) -> None:
        """The capture ends, perhaps because time is up and after the end of a transaction; the
        next one begins where it ended, with what it recorded; or its dump begins with the
        file."""
        if stops:
            self.buffer.stop()
            self._take_runs()
            self.read(pieces)
        self.buffer.end()
        self._take_runs()
        self._require_limits()
        self.batch += 1
        sealed = self.buffer.prepared.seal(self.batch, self.buffer.maps)
        for ended in self.buffer.prepared.ended:
            del self.recorded[ended.prepared.xid]
        self.recorded |= {prepared.xid: prepared for prepared in sealed}
        waiting = self.log.expected[self.came - 1].waiting if self.came else frozenset()
        assert {xid.gtrid for xid in self.recorded} == waiting
        last = self.log.expected[self.came - 1].end if self.came else START
        assert self.buffer.at >= last
        at = self.buffer.at
        self._connect(at, Coordinates(at.file, 4) if early else at, limits)

    def _require_limits(self) -> None:
        """Nothing came that a limit keeps back."""
        came, most = self.came - self.first, self.limits.transactions
        assert most is None or came <= most
        assert self.limits.log_bytes is None or came <= 1

    @invariant()
    def the_sequences_are_in_order(self) -> None:
        registers = self.buffer._loop.registers
        assert registers.put >= registers.get >= registers.ack >= 0
        assert registers.put - registers.ack <= self.sizes["ring_bytes"]

    def teardown(self) -> None:
        """Whatever was still on its way comes out, once."""
        if not hasattr(self, "log"):
            return
        for _ in range(2):
            self.start_again(early=False, stops=False, limits=Limits(), pieces=[])
            self.read([1 << 30])
        assert self.came == len(self.log.expected)


def _settings(examples: int) -> settings:
    return settings(
        max_examples=examples,
        stateful_step_count=30,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )


def test_the_buffer_is_its_model() -> None:
    """Whatever is logged, sent and taken: the model's transactions, in order, each once."""
    run_state_machine_as_test(BufferMachine, settings=_settings(150))


@pytest.mark.soak
def test_the_buffer_is_its_model_for_long() -> None:
    """The same, some hundred thousand steps."""
    run_state_machine_as_test(BufferMachine, settings=_settings(4000))
