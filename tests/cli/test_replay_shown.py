"""Rows that a comparison found different: the text shows some, `--json` more, both how many."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import UUID

import pyarrow as pa

from lockstep.commands.replay import replay_lines, replay_values
from lockstep.pipeline.model.batch import Batch, BatchState
from lockstep.pipeline.model.json_values import to_json
from lockstep.pipeline.replay.rows import ReplayDifference
from lockstep.pipeline.replay.spans import Span
from lockstep.pipeline.run.replay.heal import MirrorCorrection
from lockstep.pipeline.run.replay.replay import BatchReplayed, ReplayReport
from lockstep.pipeline.run.replay.segment_comparison import (
    Details,
    SegmentResult,
    SegmentStanding,
    differences,
)
from lockstep.pipeline.values.gtid import GtidSet
from lockstep.pipeline.values.places import Earliest, Latest
from lockstep.pipeline.values.position import Coordinates, Position
from lockstep.pipeline.values.table import TableName

WRONG = 1234
ORDERS = TableName("shop", "orders")


def place(offset: int) -> Position:
    at = Coordinates.parse(f"binlog.000002:{offset}")
    return Position(at, GtidSet(), str(UUID(int=1)))


def report() -> ReplayReport:
    """A file and a mirror in which `WRONG` rows differ, with as many of them as are kept."""
    found = differences(
        [pa.table({"id": range(WRONG)})],
        [pa.table({"id": range(1, WRONG + 1)})],
        most=Details().most,
    )
    rows = tuple(ReplayDifference("different", f"id={one['id']}") for one, _ in found.some)
    state, moment = BatchState.ACKNOWLEDGED, datetime(2026, 11, 1, 6, tzinfo=UTC)
    batch = Batch(2, "shop", state, place(4), 1, None, 0, 1, None, moment, end=place(400))
    segment = SegmentResult(2, ORDERS, 1, SegmentStanding.DIFFERENT, wrong=found.rows, rows=rows)
    return ReplayReport(
        Span(Earliest(), Latest()),
        (BatchReplayed(batch, None, (segment,)),),
        (ORDERS,),
        (MirrorCorrection(ORDERS, keys=WRONG, wrong=found.rows, rows=rows),),
    )


def test_the_text_shows_twenty_rows_of_each() -> None:
    """And says how many more there are."""
    lines = list(replay_lines(report(), planned=False))
    assert sum("  different: id=" in line for line in lines) == 2 * 20
    assert sum(line == "  1,214 more" for line in lines) == 2


def test_json_has_five_hundred_of_each() -> None:
    """And the number of all that differ."""
    told = to_json(replay_values(report()))["tables"]["shop.orders"]
    [segment] = told["changelog"]
    assert (segment["wrong"], len(segment["rows"])) == (WRONG, 500)
    assert (told["mirror"]["wrong"], len(told["mirror"]["rows"])) == (WRONG, 500)
