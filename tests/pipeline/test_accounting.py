"""Accounts of row images: the batch of a ledger that was made from the lake read none itself."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from lockstep.pipeline.model.batch import Batch, BatchState
from lockstep.pipeline.status.accounting import accounts
from lockstep.pipeline.values.gtid import GtidSet
from lockstep.pipeline.values.position import Position
from tests.pipeline.start_made import at

PLACE = Position(at(4), GtidSet(), "uuid")
MADE = Batch(
    id=15,
    source="shop",
    state=BatchState.ACKNOWLEDGED,
    start=PLACE,
    continued_batch=None,
    start_decision=1,
    sequence_before=0,
    token=1,
    run_id=None,
    created_at=datetime(2026, 11, 29, tzinfo=UTC),
    end=PLACE,
    changes=64_754,
)


def test_a_batch_that_stands_for_the_lake_read_nothing() -> None:
    """It counts the images of all batches before it. One that read a part of the log and wrote
    none of its images has lost them."""
    end = replace(PLACE, at=at(4, 900))
    lost = replace(MADE, id=16, end=end, continued_batch=15, sequence_before=64_754, changes=3)
    first, second = accounts([MADE, lost], [], [], [], [])
    assert (first.read_images, first.has_all_images, first.is_merged) == (0, True, True)
    assert (second.read_images, second.has_all_images) == (3, False)
