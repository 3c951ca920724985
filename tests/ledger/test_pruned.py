"""Old changes and batches that are kept no longer: what the ledger notes, refuses while somebody
needs them, and forgets; whatever is asked of the rest is answered as before.

Belongs here: the ledger alone. Does not: up to which batch changes go,
and runs, replays and rebuilds on what is left (`tests/positions/test_forgotten.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from random import Random
from typing import Any

import pytest

from lockstep.assets.checks import newest_accounts
from lockstep.pipeline.model.batch import (
    Batch,
    BatchState,
    CaptureRecord,
    EndedTransaction,
    PreparedTransaction,
)
from lockstep.pipeline.model.table_state import StoppedTable
from lockstep.pipeline.ports.ledger import Consumers, Ledger, batch_content
from lockstep.pipeline.run.unpruned_batches import newest_of_run
from lockstep.pipeline.schema.history import BatchHistory
from lockstep.pipeline.upkeep.changes import DeletionStep, PrunableRows, PruneResult
from lockstep.pipeline.values.consumers import DeliveryBounds
from lockstep.pipeline.values.decisions import Continuity, Lease
from lockstep.pipeline.values.errors import ConsumerRefused, LedgerRefused
from lockstep.pipeline.values.position import SetAnchor
from lockstep.pipeline.values.segment import SegmentFile, SystemTable, SystemTableSegment
from lockstep.pipeline.values.table import TableName, TablePatterns
from tests.ledger.consuming import ALL, NAME, given
from tests.ledger.made import (
    DECISION,
    GAP,
    MOMENT,
    ORDERS,
    STOCK,
    begun,
    elsewhere,
    following,
    merged,
    position,
    prepared,
    record,
    version,
)
from tests.ledger.servers import Stand, run

NOTES = TableName("shop", "notes")
TABLES = (ORDERS, STOCK)
RUNS = 15
BY_GTID = 6
"""The only one of these that could be resumed by GTIDs."""
_END = 1 << 60
_IDLE = """
select count(*) from lockstep.leases l
where l.source = '{0}' and l.token < (select token from lockstep.batches where id = {1})
  and not exists (select from lockstep.lease_uses u
                  where (u.source, u.token) = (l.source, l.token))
"""


@dataclass
class Past:
    """Runs of a source, each under a lease of its own. `plain`: batches of which nothing but
    changes was recorded, and XA transactions that ended, and which nobody began behind; `open`:
    XA transactions that did not end; `stops`: the run in which a table is quarantined."""

    ledger: Ledger
    stand: Stand
    source: str
    random: Random
    stops: int
    versions: int = 1
    runs: int = 0
    plain: set[int] = field(default_factory=set)
    open: list[PreparedTransaction] = field(default_factory=list)

    @property
    def stopped(self) -> bool:
        """XA transactions that ended since are kept for the table that is quarantined."""
        return 0 < self.stops <= self.runs

    def run(self) -> None:
        acts = (
            *(self.batch,) * 10,
            self.idle,
            self.abandoned,
            self.structure,
            self.away,
            self.read,
        )
        self.runs += 1
        with self.ledger.lock(self.source, "a test", f"run-{self.runs}") as lease:
            self.random.choice(acts if self.runs > BY_GTID else (self.batch,))(lease)
            if self.runs == self.stops:
                stopped = StoppedTable(NOTES, "a defect", "report it", "where it stopped")
                self.ledger.quarantine(lease, stopped)

    def batch(self, lease: Lease) -> None:
        first = self.runs == 1
        batch = (begun if first else following)(self.ledger, lease)
        some = (*TABLES, NOTES) if first else tuple(t for t in TABLES if self.random.random() < 0.5)
        captured = record(batch, *some, first=first)
        if self.open and self.random.random() < 0.5:
            captured = replace(
                captured, ended_transactions=(EndedTransaction(self.open[0], committed=True),)
            )
            begun_in = self.open.pop(0).batch
            self.plain |= set() if self.stopped else {begun_in}
        if not first and self.random.random() < 0.2:
            self.open.append(prepared(batch, f"{batch.id}".encode()))
            captured = replace(captured, prepared_transactions=(self.open[-1],))
        elif not (first or (captured.ended_transactions and self.stopped)):
            self.plain.add(batch.id)
        self.capture(lease, batch, captured)

    def capture(self, lease: Lease, batch: Batch, captured: CaptureRecord) -> None:
        file = SegmentFile(f"batch-{batch.id:012d}-v1-00000.parquet", 1, 1, "0" * 64)
        gtid = f"{captured.end.server_uuid}:{batch.id}"
        moment = MOMENT + timedelta(seconds=self.runs)
        captured = replace(
            captured,
            end=replace(captured.end, committed_at=moment),
            system_segments=(SystemTableSegment(SystemTable.TRANSACTIONS, (file,)),),
            set_anchors=(SetAnchor(gtid, 1),) if self.random.random() < 0.3 else (),
            by_gtid=self.runs == BY_GTID,
            scope=TablePatterns(("shop.*",), ()),
        )
        self.ledger.record_capture(lease, batch.id, captured)
        for segment in captured.segments:
            merged(self.ledger, lease, segment.table, batch.id, batch.id, batch.id)
        self.ledger.mark_merged(lease)
        self.ledger.acknowledge(lease, batch.id)

    def idle(self, lease: Lease) -> None:
        self.ledger.decide(lease, replace(DECISION, kind="idle"))

    def abandoned(self, lease: Lease) -> None:
        for _ in range(self.random.randrange(1, 3)):
            batch = following(self.ledger, lease)
            if self.random.random() < 0.5:
                self.ledger.record_capture(lease, batch.id, record(batch, ORDERS))
            self.ledger.abandon(lease, batch.id, "damaged")

    def structure(self, lease: Lease) -> None:
        batch = following(self.ledger, lease)
        self.versions += 1
        learnt = version(ORDERS, self.versions, batch.start.at.offset, f"c{self.versions}")
        captured = replace(record(batch, STOCK), history=BatchHistory(versions=(learnt,)))
        self.capture(lease, batch, captured)

    def away(self, lease: Lease) -> None:
        """From another place on."""
        cursor = self.ledger.cursors(self.source).captured
        assert cursor is not None
        [newest] = self.ledger.live_batches(self.source, cursor.batch, cursor.batch)
        self.plain.discard(newest.id)
        start = position(cursor.position.at.offset + 50)
        batch = elsewhere(self.ledger, lease, newest, GAP, start)
        self.capture(lease, batch, record(batch, ORDERS))

    def read(self, lease: Lease) -> None:
        """A consumer reads on, and a new one begins."""
        consumers = self.stand.consumers
        made = consumers.make_consumer(self.source, f"c{self.runs}", "latest")
        self.plain.discard(made.cursor or 0)
        for one in consumers.consumers(self.source):
            while delivery := consumers.deliver(
                self.source, one.name, DeliveryBounds(max_batches=3)
            ):
                consumers.ack_delivery(self.source, one.name, delivery.id)

    # -- what goes ---------------------------------------------------------------------------

    def forget(self) -> int | None:
        """Changes up to a batch that nobody needs; which one."""
        holders = self.ledger.deletable_changes(self.source, self.ledger.clock()).holders
        last = min(one.last_unneeded_batch for one in holders)
        above = self.ledger.deletion_notes(self.source).last_batch
        known = [one.id for one in self.ledger.live_batches(self.source, above + 1, last)]
        if not known:
            return None
        through = self.random.choice(known)
        with self.ledger.lock(self.source, "upkeep", None) as lease:
            self.ledger.begin_deletion(lease, through)
            self.ledger.note_deletion_step(lease, DeletionStep.UNLISTED, through)
            with pytest.raises(LedgerRefused, match="pruned_deleted"):
                self.ledger.prune(lease, PrunableRows.BATCHES, 0, through, 1)
            self.ledger.note_deletion_step(lease, DeletionStep.DELETED, through)
        return through

    def prune(self, through: int, calls: int) -> int:
        """So many calls of all that are to be made; rows of batches that went."""
        steps = iter(self.steps(through))
        return sum(rows for rows, _ in zip(steps, range(calls), strict=False))

    def steps(self, through: int) -> Iterator[int]:
        ledger, most = self.ledger, self.random.randrange(1, 30)
        for rows in PrunableRows:
            done = PruneResult(0, 0, is_complete=False)
            while not done.is_complete:
                step = partial(ledger.prune, rows=rows, through=through, most=most)
                done = self.locked(partial(step, above=done.last_id))
                yield done.deleted_rows if rows is PrunableRows.BATCHES else 0
        self.locked(partial(ledger.note_deletion_step, step=DeletionStep.PRUNED, through=through))

    def locked(self, step: Callable[[Lease], Any]) -> Any:
        with self.ledger.lock(self.source, "upkeep", None) as lease:
            return step(lease)

    # -- what is asked -----------------------------------------------------------------------

    def asked(self, through: int) -> dict[str, object]:
        """Of the source, and of what lies behind the batch `through`; of some batches what more
        than their own rows answers."""
        ledger, source = self.ledger, self.source
        cursor = ledger.cursors(source).captured
        assert cursor is not None
        live = ledger.live_batches(source, through, _END)
        some = [*live[:3], *Random(through).sample(live[3:], min(4, len(live[3:])))]
        stopped = ledger.table_states(source)[NOTES].stopped
        since = through if stopped is None else min(through, stopped.batch)
        return {
            "live": live,
            "all": [one for one in ledger.batches(source, limit=_END) if one.id >= through],
            "cursors": (cursor, ledger.cursors(source).acknowledged),
            "first": next(iter(ledger.live_batches(source, limit=1)), None),
            "overlaps": ledger.live_batches(source, continuity=Continuity.OVERLAP),
            "gaps": ledger.gaps(source),
            "lineage": ledger.server_periods(source),
            "states": ledger.table_states(source),
            "scopes": ledger.capture_scopes(source),
            "anchors": ledger.set_anchors(source, cursor.batch),
            "versions": [ledger.schema_versions(source, table) for table in TABLES],
            "held": [
                ledger.schema_at(source, table, batch=one.id, place=one.start.at)
                for one in some
                for table in TABLES
            ],
            "sets": [ledger.version_set(source, one.id).entries for one in some],
            "mirrors": [
                [v for v in ledger.mirror_versions(source, table, _END) if v.last_batch > through]
                for table in TABLES
            ],
            "segments": [batch_content(ledger, source, one.id).segments for one in live[1:]],
            "parts": [batch_content(ledger, source, one.id).system_segments for one in live[1:]],
            "runs": [newest_of_run(live, f"run-{self.runs - back}") for back in range(3)],
            "read": [
                ledger.captured_batch(source, one.start.server_uuid, one.start.at)
                for one in some[2:]
            ],
            "times": [one for one in ledger.batch_times(source) if one.id > through],
            "learnt": ledger.special_batches(source, through + 1, _END).with_structures,
            "written": ledger.newest_writes(source, [f"{source}/{table}@1" for table in TABLES]),
            "prepared": ledger.open_prepared(source),
            "ended": [
                batch_content(ledger, source, number).ended_transactions
                for number in range(since + 1, cursor.batch + 1)
            ],
            "pending": (ledger.pending_batches(source), ledger.open_intents(source)),
            "consumers": self.stand.consumers.consumers(source),
            "holders": ledger.deletable_changes(source, MOMENT).holders,
        }


@pytest.mark.parametrize(
    ("seed", "stops"),
    [(0, RUNS + 5), *(pytest.param(*more, marks=pytest.mark.soak) for more in ((1, 0), (2, 5)))],
)
def test_what_is_kept_is_told_as_before(stand: Stand, source: str, seed: int, stops: int) -> None:
    """Wherever old batches end, and wherever their pruning is cut off and begun again: those that
    stay are as they were, the others are no more than what newer rows of each table go on behind,
    and runs and consumers go on."""
    past = Past(stand.ledger, stand, source, Random(seed), stops)
    pruned = went = 0
    while pruned < 2 or not went:
        for _ in range(RUNS):
            past.run()
        through = past.forget()
        if through is None:
            continue
        pruned += 1
        before = past.asked(through)
        kept = {one.id: one for one in past.ledger.batches(source, limit=_END)}
        went += past.prune(through, past.random.randrange(40))
        went += past.prune(through, _END)
        assert past.asked(through) == before
        left = past.ledger.batches(source, limit=_END)
        assert left == [kept[one.id] for one in left]
        old = {one.id for one in left if one.id < through}
        assert len(old & past.plain) <= 3 * len(TABLES)
        assert {
            n for n, one in kept.items() if one.start_decision and _live(one) and n < through
        } <= old
        assert past.prune(through, _END) == 0
        assert run(stand.dsn, _IDLE.format(source, through)) == [(0,)]
    assert len(past.ledger.deletion_notes(source).unfinished) == 0
    accounts = newest_accounts(past.ledger, source, frozenset())
    assert accounts
    assert all(account.read_images == account.written_images for account in accounts)


def _live(one: Batch) -> bool:
    return one.state is not BatchState.ABANDONED


# -- changes that are kept no longer -----------------------------------------------------


def made(ledger: Ledger, lease: Lease, *, first: bool = False, **more: Any) -> int:
    """A batch with a file of `_transactions`, acknowledged."""
    batch = (begun if first else following)(ledger, lease)
    captured = replace(with_transactions(batch, first=first), **more)
    ledger.record_capture(lease, batch.id, captured)
    merged(ledger, lease, ORDERS, batch.id, batch.id, batch.id)
    ledger.mark_merged(lease)
    ledger.acknowledge(lease, batch.id)
    return batch.id


def with_transactions(batch: Batch, *, first: bool = False) -> CaptureRecord:
    file = SegmentFile(f"batch-{batch.id:012d}-v1-00000.parquet", 1, 1, "0" * 64)
    part = SystemTableSegment(SystemTable.TRANSACTIONS, (file,))
    return replace(record(batch, ORDERS, first=first), system_segments=(part,))


def test_an_abandoned_batch_is_none_of_the_eight(ledger: Ledger, source: str, lease: Lease) -> None:
    """A new ledger does not continue there, so eight others stay."""
    batches = [made(ledger, lease, first=number == 0) for number in range(10)]
    for _ in range(2):
        batch = following(ledger, lease)
        ledger.record_capture(lease, batch.id, with_transactions(batch))
        ledger.abandon(lease, batch.id, "a test")
    holders = ledger.deletable_changes(source, ledger.clock()).holders
    assert [(one.kind, one.last_unneeded_batch) for one in holders] == [
        ("recovery", batches[2] - 1)
    ]


def test_an_anchor_of_an_abandoned_batch_takes_no_place(
    ledger: Ledger, source: str, lease: Lease
) -> None:
    """The one before it is still the newest of its origin once the ledger is pruned."""
    anchors = (SetAnchor("b:7", 7), SetAnchor("b:8", 8))
    made(ledger, lease, first=True, set_anchors=anchors[:1])
    batch = following(ledger, lease)
    ledger.record_capture(lease, batch.id, replace(record(batch), set_anchors=anchors[1:]))
    ledger.abandon(lease, batch.id, "a test")
    through, *_ = [made(ledger, lease) for _ in range(9)]
    ledger.begin_deletion(lease, through)
    for step in (DeletionStep.UNLISTED, DeletionStep.DELETED):
        ledger.note_deletion_step(lease, step, through)
    ledger.prune(lease, PrunableRows.CONTENTS, 0, through, 1000)
    assert ledger.set_anchors(source, through) == [anchors[0]]


def test_changes_go_once_nobody_needs_them(
    ledger: Ledger, consumers: Consumers, source: str, lease: Lease
) -> None:
    """Eight batches stay for a new ledger, and all that a consumer has not acknowledged or a batch
    that is not acknowledged may fold; consumers begin where changes are kept; a note is followed by
    the next once its files are listed no more."""
    batches = [made(ledger, lease, first=number == 0) for number in range(12)]
    consumers.make_consumer(source, NAME, batches[1])
    later = ledger.clock() + timedelta(seconds=1)
    forgettable = ledger.deletable_changes(source, later)
    assert forgettable.last_old_batch == batches[-1]
    assert ledger.deletable_changes(source, later - timedelta(days=1)).last_old_batch == 0
    holders = {one.kind: one.last_unneeded_batch for one in forgettable.holders}
    assert holders == {"consumer": batches[1], "recovery": batches[4] - 1}
    with pytest.raises(LedgerRefused, match="forgotten_unneeded"):
        ledger.begin_deletion(lease, batches[2])
    assert ledger.deletion_notes(source).last_batch == 0

    ledger.begin_deletion(lease, batches[1])
    gone = ledger.deletion_notes(source).newest
    assert gone is not None
    assert (gone.after_batch, gone.last_batch, gone.unlisted_at, gone.is_deleted) == (
        0,
        batches[1],
        None,
        False,
    )
    files = ledger.change_files(source, gone.after_batch, gone.last_batch)
    assert {one.table for one in files} == {ORDERS, SystemTable.TRANSACTIONS}
    assert ledger.change_files(source, batches[-1], batches[-1]) == []
    delivery = given(consumers, source, ALL)
    assert delivery.first_batch == batches[2]
    consumers.ack_delivery(source, NAME, delivery.id)
    for again in (batches[2], batches[1]):
        with pytest.raises(LedgerRefused, match="forgotten_goes_on"):
            ledger.begin_deletion(lease, again)
    for _ in range(2):
        ledger.note_deletion_step(lease, DeletionStep.UNLISTED, batches[1])
    ledger.begin_deletion(lease, batches[3])
    with pytest.raises(LedgerRefused, match="forgotten_unneeded"):
        ledger.note_deletion_step(lease, DeletionStep.UNLISTED, batches[3])
        ledger.begin_deletion(lease, batches[4])
    assert [
        (one.after_batch, one.last_batch) for one in ledger.deletion_notes(source).unfinished
    ] == [
        (0, batches[1]),
        (batches[1], batches[3]),
    ]
    for _ in range(2):
        ledger.note_deletion_step(lease, DeletionStep.DELETED, batches[1])
    with pytest.raises(LedgerRefused, match="pruned_deleted"):
        ledger.prune(lease, PrunableRows.CONTENTS, batches[1], batches[3], 1000)
    pruned = ledger.prune(lease, PrunableRows.CONTENTS, 0, batches[1], batches[1])
    assert pruned.deleted_rows > 0
    assert (pruned.last_id, pruned.is_complete) == (batches[1], True)
    assert ledger.prune(lease, PrunableRows.CONTENTS, 0, batches[1], 1) == PruneResult(
        0, 1, is_complete=False
    )
    ledger.note_deletion_step(lease, DeletionStep.PRUNED, batches[1])
    assert batch_content(ledger, source, batches[0]).segments == ()
    assert [one.files for one in batch_content(ledger, source, batches[1]).segments] == [()]
    assert (ledger.version_set(source, batches[0]).entries, ledger.pruned_through(source)) == (
        [],
        batches[1],
    )
    assert len(ledger.version_set(source, batches[1]).entries) == 1
    assert batch_content(ledger, source, batches[0]).system_segments == ()
    assert [one.last_batch for one in ledger.deletion_notes(source).unfinished] == [batches[3]]

    assert consumers.make_consumer(source, "early", "earliest").cursor == batches[3]
    assert consumers.make_consumer(source, "right", batches[3]).cursor == batches[3]
    with pytest.raises(ConsumerRefused) as refused:
        consumers.make_consumer(source, "late", batches[2])
    assert refused.value.rule == "consumers_start_kept"
    following(ledger, lease)
    holding = ledger.deletable_changes(source, ledger.clock()).holders
    assert ("batch", 0) in {(one.kind, one.last_unneeded_batch) for one in holding}
