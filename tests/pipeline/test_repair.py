"""What a dead run left is settled before a start is decided: the table's first two rules."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

import pyarrow as pa
import pytest

from lockstep.pipeline.mirror.layout import application_id, changelog_path
from lockstep.pipeline.mirror.system_tables import system_table_app_id, system_table_path
from lockstep.pipeline.model.batch import Batch, BatchState, CaptureRecord
from lockstep.pipeline.model.table_state import OrderKind
from lockstep.pipeline.ports.ledger import batch_content
from lockstep.pipeline.run.context import RunPorts
from lockstep.pipeline.run.progress import SilentProgress
from lockstep.pipeline.run.repair import repair
from lockstep.pipeline.source_plan import SourcePlan
from lockstep.pipeline.values.decisions import Lease
from lockstep.pipeline.values.errors import SegmentsLost, StoppedBy
from lockstep.pipeline.values.segment import SegmentFile, SystemTable, SystemTableSegment
from lockstep.pipeline.values.table import TablePatterns
from lockstep.resources.mysql.connection import ConnectionSettings
from lockstep.resources.mysql.server import MySqlServer
from tests.fix_ledger import LedgerOfTest
from tests.ledger.made import (
    ORDERS,
    STOCK,
    begun,
    following,
    intended,
    merged,
    newest,
    prepared,
    record,
)
from tests.twins.changelog import MemoryChangelog
from tests.twins.claims import MemoryClaims
from tests.twins.lake import MemoryLake
from tests.twins.mirrors import MemoryMirrors
from tests.twins.segments import MemorySegments
from tests.twins.spool import MemorySpool

SCHEMA = pa.schema([pa.field("id", pa.int64())])


@dataclass
class Stand:
    """A source whose server is never asked; its lake is in memory."""

    lease: Lease
    ledger: LedgerOfTest
    lake: MemoryLake = field(default_factory=MemoryLake)
    spool: MemorySpool = field(default_factory=MemorySpool)

    @property
    def ports(self) -> RunPorts:
        return RunPorts(
            source=SourcePlan("shop", TablePatterns(("shop.*",)), None),
            server=MySqlServer(ConnectionSettings("127.0.0.1", 1, "nobody", "")),
            ledger=self.ledger,
            segments=MemorySegments(self.lake),
            spool=self.spool,
            changelog=MemoryChangelog(self.lake),
            mirrors=MemoryMirrors(self.lake),
            claims=MemoryClaims(self.lake),
            progress=SilentProgress(),
            clock=lambda: datetime.now(UTC),
        )

    def captured(self) -> Batch:
        """One more batch with segments of two tables, and a prepared transaction's file."""
        first = self.ledger.cursors("shop").captured is None
        batch = (begun if first else following)(self.ledger, self.lease)
        self.ledger.record_capture(self.lease, batch.id, self._record(batch, first=first))
        return newest(self.ledger, self.lease)

    def _record(self, batch: Batch, *, first: bool) -> CaptureRecord:
        made = record(batch, ORDERS, STOCK, first=first)
        segments = tuple(
            replace(segment, files=self.written(batch, changelog_path("shop", segment.table)))
            for segment in made.segments
        )
        states = tuple(
            replace(state, changelog=changelog_path("shop", state.table)) for state in made.tables
        )
        waiting = self.spool.create_prepared_file("shop", batch.id, 0)
        waiting.write(b"rows")
        xa = prepared(batch, f"xa {batch.id}".encode(), self.spool.seal(waiting))
        return replace(made, segments=segments, tables=states, prepared_transactions=(xa,))

    def written(self, batch: Batch, folder: str) -> tuple[SegmentFile, ...]:
        writer = MemorySegments(self.lake).open(
            folder, batch=batch.id, schema_version=1, schema=SCHEMA
        )
        writer.write(pa.table({"id": [batch.id]}, schema=SCHEMA))
        return writer.close()

    def states(self) -> list[BatchState]:
        """Oldest first."""
        return [batch.state for batch in self.ledger.batches("shop")][::-1]

    def files(self, batch: Batch) -> int:
        """How many files of a batch are left."""
        named = [*self.lake.files, *(name for _, name in self.spool.files)]
        return sum(f"batch-{batch.id:012d}" in name for name in named)

    def damage(self, batch: Batch) -> None:
        """One of its segments' files goes."""
        del self.lake.files[next(name for name in self.lake.files if f"{batch.id:012d}" in name)]


@pytest.fixture
def stand() -> Iterator[Stand]:
    ledger = LedgerOfTest()
    with ledger.lock("shop", "a test", None) as lease:
        yield Stand(lease, ledger)


CAPTURED, ABANDONED = BatchState.CAPTURED, BatchState.ABANDONED


def test_intact_captures_are_kept(stand: Stand) -> None:
    """They go on to be merged, and the source behind them."""
    stand.captured()
    second = stand.captured()
    assert repair(stand.ports, stand.lease) == ()
    assert (stand.states(), stand.files(second)) == ([CAPTURED, CAPTURED], 3)


def test_an_unfinished_capture_is_abandoned_with_its_files(stand: Stand) -> None:
    """Nothing says how far it came."""
    first = stand.captured()
    capturing = following(stand.ledger, stand.lease)
    (note,) = repair(stand.ports, stand.lease)
    assert note.startswith(f"batch {capturing.id} was abandoned: its capture did not finish")
    assert (stand.states(), stand.files(first)) == ([CAPTURED, ABANDONED], 3)


def test_segments_abandoned_from_the_damaged_one_on(stand: Stand) -> None:
    """Later captures go with it, newest first; the cursor is the one before them."""
    first, second, third = (stand.captured() for _ in range(3))
    stand.damage(second)
    notes = repair(stand.ports, stand.lease)
    assert [note.split(" was")[0] for note in notes] == [f"batch {third.id}", f"batch {second.id}"]
    assert stand.states() == [CAPTURED, ABANDONED, ABANDONED]
    assert [stand.files(batch) for batch in (first, second, third)] == [3, 0, 0]
    cursor = stand.ledger.cursors("shop").captured
    assert cursor is not None
    assert (cursor.batch, cursor.position) == (first.id, first.end)


def test_segments_abandoned_by_a_lost_prepared_transaction(stand: Stand) -> None:
    """Its rows wait in a file that the capture made durable too."""
    batch = stand.captured()
    stand.spool.files.clear()
    (note,) = repair(stand.ports, stand.lease)
    assert "is missing" in note
    assert (stand.states(), stand.files(batch)) == ([ABANDONED], 0)


@pytest.mark.parametrize("how", ["published", "merged", "begun", "given up"])
@pytest.mark.parametrize("of", [0, 1])
def test_a_table_loses_segments_of_a_batch_that_others_show(
    stand: Stand, how: str, of: int
) -> None:
    """Of the damaged batch or a later one: it is not read again, and its other tables go on."""
    batches = [stand.captured() for _ in range(2)]
    used = batches[of]
    if how == "merged":
        merged(stand.ledger, stand.lease, STOCK, used.id, used.id, 1)
    elif how != "published":
        intended(stand.ledger, stand.lease, STOCK, used.id, used.id)
        if how == "given up":
            stand.ledger.give_up(stand.lease, STOCK)
    else:
        state = stand.ledger.table_states("shop")[STOCK]
        stand.ports.changelog.publish(
            state.changelog,
            app_id=application_id("shop", state, "changelog"),
            batch=used.id,
            schema=SCHEMA,
            files=batch_content(stand.ledger, used.source, used.id).segments[1].files,
            user_metadata="",
        )
    stand.damage(batches[0])
    (note,) = repair(stand.ports, stand.lease)
    assert note.startswith(
        f"shop.orders was quarantined: captured changes of batch {batches[0].id}"
    )
    assert stand.states() == [CAPTURED, CAPTURED]
    assert [stand.files(batch) for batch in batches] == [2, 3]
    states = stand.ledger.table_states("shop")
    assert "lockstep reload shop.orders --reason" in (states[ORDERS].hint or "")
    assert states[STOCK].is_complete
    assert repair(stand.ports, stand.lease) == (), "it is said once"


def test_a_paused_table_that_loses_segments_stays_paused(stand: Stand) -> None:
    """Nothing is said that is not so: the write that needs them quarantines it."""
    batch = stand.captured()
    merged(stand.ledger, stand.lease, STOCK, batch.id, batch.id, 1)
    stand.ledger.order_table(stand.lease, ORDERS, OrderKind.PAUSE, author="ada", reason="")
    assert stand.ledger.table_states("shop")[ORDERS].stopped_by is StoppedBy.PERSON
    stand.damage(batch)
    assert repair(stand.ports, stand.lease) == ()


def test_a_prepared_transaction_is_lost_where_a_table_shows_its_batch(stand: Stand) -> None:
    """It may be of any table, and its rows are nowhere else."""
    batch = stand.captured()
    merged(stand.ledger, stand.lease, STOCK, batch.id, batch.id, 1)
    stand.spool.files.clear()
    with pytest.raises(SegmentsLost, match=r"shop\.stock already shows part") as lost:
        repair(stand.ports, stand.lease)
    assert "lockstep recover --source shop" in lost.value.hint
    assert stand.states() == [CAPTURED]


def with_transactions(stand: Stand) -> Batch:
    """A batch that changed no table, and has a file of the source's `_transactions`."""
    batch = begun(stand.ledger, stand.lease)
    folder = system_table_path("shop", SystemTable.TRANSACTIONS)
    part = SystemTableSegment(SystemTable.TRANSACTIONS, stand.written(batch, folder))
    made = replace(record(batch), system_segments=(part,))
    stand.ledger.record_capture(stand.lease, batch.id, made)
    return newest(stand.ledger, stand.lease)


def test_segments_abandoned_by_a_lost_file_of_the_sources_own(stand: Stand) -> None:
    """What it read is read again."""
    batch = with_transactions(stand)
    stand.damage(batch)
    (note,) = repair(stand.ports, stand.lease)
    assert "_transactions" in note
    assert (stand.states(), stand.files(batch)) == ([ABANDONED], 0)


def test_a_lost_file_of_transactions_that_are_shown_is_left_to_publish(stand: Stand) -> None:
    """They would be there twice, once for each batch that read them."""
    batch = with_transactions(stand)
    stand.ports.changelog.publish(
        system_table_path("shop", SystemTable.TRANSACTIONS),
        app_id=system_table_app_id("shop", SystemTable.TRANSACTIONS),
        batch=batch.id,
        schema=SCHEMA,
        files=batch_content(stand.ledger, batch.source, batch.id).system_segments[0].files,
        user_metadata="",
    )
    stand.damage(batch)
    assert repair(stand.ports, stand.lease) == ()
    assert stand.states() == [CAPTURED]


def test_a_choice_gives_up_what_was_never_acknowledged(stand: Stand) -> None:
    """From another start nothing of it fits; what a table shows stays."""
    stand.captured()
    stand.captured()
    choose(stand)
    notes = repair(stand.ports, stand.lease)
    assert stand.states() == [ABANDONED, ABANDONED]
    assert all("ada chose another start (earliest)" in note for note in notes)


def test_a_choice_gives_nothing_up_that_a_table_shows(stand: Stand) -> None:
    """It goes on behind it instead."""
    batch = stand.captured()
    merged(stand.ledger, stand.lease, STOCK, batch.id, batch.id, 1)
    choose(stand)
    assert (repair(stand.ports, stand.lease), stand.states()) == ((), [CAPTURED])


def test_a_choice_gives_nothing_up_behind_acknowledged_ground(stand: Stand) -> None:
    """The chain goes on."""
    first = stand.captured()
    for table in (ORDERS, STOCK):
        merged(stand.ledger, stand.lease, table, first.id, first.id, 1)
    stand.ledger.mark_merged(stand.lease)
    stand.ledger.acknowledge(stand.lease, first.id)
    stand.captured()
    choose(stand)
    assert repair(stand.ports, stand.lease) == ()
    assert stand.states() == [BatchState.ACKNOWLEDGED, CAPTURED]


def choose(stand: Stand) -> None:
    stand.ledger.choose_start(stand.lease, place="earliest", reason="x", author="ada")
