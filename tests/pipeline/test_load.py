"""When what was read of a table counts, from where, and when it does not any more."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from lockstep.pipeline.model.load import (
    Chunk,
    ChunkRows,
    FollowedFrom,
    Load,
    LoadBasis,
    reason_void,
)
from lockstep.pipeline.model.table_state import TableCondition, TableState
from lockstep.pipeline.snapshot.chunks import Bound, Range
from lockstep.pipeline.values.errors import Need
from lockstep.pipeline.values.position import Coordinates
from lockstep.pipeline.values.segment import SegmentFile
from tests.ledger.made import ORDERS, place, schema, state

NOW = datetime(2026, 11, 1, tzinfo=UTC)
MIDDLE = Bound(("id",), ("5",))
ORDERED = Load(1, ORDERS, "ada", "older", NOW)
READING = replace(ORDERED, basis=LoadBasis(schema(ORDERS), "server", place(100), 20))
FOLLOWED = replace(READING, followed_from=FollowedFrom(3, 30, 1))
LOADING = replace(state(ORDERS), need=Need.ROWS)


def rows(low: int, high: int) -> ChunkRows:
    file = SegmentFile(f"{high}.parquet", 10, 100, "0" * 64)
    return ChunkRows(place(low), place(high), 10, 2.0, (file,))


def chunks(*read: ChunkRows | None, whole: bool = True) -> Load:
    """Of two ranges; the second is the last one if `whole`."""
    ranges = (Range(None, MIDDLE), Range(MIDDLE, None if whole else Bound(("id",), ("9",))))
    made = (
        Chunk(number, part, one)
        for number, (part, one) in enumerate(zip(ranges, read, strict=True))
    )
    return replace(READING, chunks=tuple(made))


def test_a_load_is_complete_with_its_last_chunk() -> None:
    assert not READING.is_complete
    assert not chunks(rows(110, 120), None).is_complete
    assert not chunks(rows(110, 120), rows(130, 140), whole=False).is_complete
    done = chunks(rows(110, 120), rows(130, 140))
    assert (done.is_complete, done.row_count, done.seconds) == (True, 20, 4.0)
    assert [file.path for file in done.files] == ["120.parquet", "140.parquet"]


def test_a_load_that_is_read_on_counts_from_a_place_before_every_chunk() -> None:
    """A later chunk may be opened before an earlier one's low is behind it; none before the
    reading began."""
    assert chunks(rows(110, 120), None).low == place(100)
    assert chunks(rows(130, 140), rows(110, 150)).low == place(110)
    assert chunks(rows(90, 120), rows(110, 150)).low == place(100)
    followed = replace(chunks(rows(130, 140), rows(150, 160)), followed_from=FOLLOWED.followed_from)
    assert followed.low == place(100), "its log is there from the first place on"
    assert chunks(rows(130, 160), rows(110, 150)).high == place(160)


@pytest.mark.parametrize(
    ("load", "condition", "server", "start", "gap", "why"),
    [
        (ORDERED, None, "server", 500, False, None),
        (READING, None, "server", 100, False, None),
        (READING, None, "server", 101, False, "was not captured"),
        (READING, None, "server", 100, True, "was not read"),
        (READING, None, "other", 100, False, "another server"),
        (FOLLOWED, TableCondition.FOLLOWING, "server", 900, False, None),
        (FOLLOWED, TableCondition.FOLLOWING, "server", 900, True, "was not read"),
        (FOLLOWED, TableCondition.FOLLOWING, "other", 900, False, "another server"),
        (FOLLOWED, TableCondition.STOPPED, "server", 900, False, "stopped"),
        (FOLLOWED, TableCondition.DROPPED, "server", 900, False, "stopped or dropped"),
        (FOLLOWED, None, "server", 900, False, "stopped"),
    ],
)
def test_what_voids_a_load(
    load: Load,
    condition: TableCondition | None,
    server: str,
    start: int,
    gap: bool,
    why: str | None,
) -> None:
    known: TableState | None = None
    if condition is not None:
        known = replace(LOADING, condition=condition)
    at: Coordinates = place(start)
    found = reason_void(load, known, server, (at, place(900)), gap=gap)
    assert found is None if why is None else found is not None and why in found


def test_a_log_that_ends_before_the_load_began_was_reset() -> None:
    found = reason_void(READING, None, "server", (place(20), place(99)), gap=False)
    assert found is not None and "was not captured" in found
