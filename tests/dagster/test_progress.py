"""How far the reading of tables has come, in a Dagster run's log and beside its step."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from lockstep.assets.dagster_metadata import capture_metadata
from lockstep.assets.sessions import LoggedProgress
from lockstep.pipeline.run.progress import load_progress
from lockstep.pipeline.run.reports import CaptureReport
from lockstep.pipeline.snapshot.progress import LoadProgress
from lockstep.pipeline.values.gtid import GtidSet
from lockstep.pipeline.values.position import Coordinates, LogFile, Position
from lockstep.pipeline.values.table import TableName

READ = LoadProgress(TableName("shop", "orders"), 1_200_000, 5_000_000, 12.0)
SENTENCE = "shop.orders: 1,200,000 of about 5,000,000 rows, 24 %, about 38 s left"
WHOLE = LoadProgress(TableName("shop", "items"), 7, 9, 0.1, is_finished=True)


@dataclass
class Log:
    said: list[object] = field(default_factory=list)

    def info(self, msg: object) -> None:
        self.said.append(msg)

    def warning(self, msg: object) -> None:
        self.said.append(msg)


def test_tables_that_are_being_read_are_told() -> None:
    """Now and then in the log, and once a run ends without them."""
    log, now = Log(), [100.0]
    progress = LoggedProgress(log, lambda: now[0])
    for second in (0.0, 1.0, 11.0):
        now[0] = 100.0 + second
        progress.tell(load_progress((READ, WHOLE)))
    assert log.said == [f"load so far: {SENTENCE}"] * 2
    place = Position(Coordinates(LogFile("binlog", 3), 4), GtidSet(), "a server")
    report = CaptureReport(
        *(1, "rule", "why", place, place, 0, 0, 0, {}, (), {}, (), 0.0, 0.0),
        unfinished_loads=(READ,),
    )
    assert capture_metadata(report, datetime.now(UTC))["reading rows"] == SENTENCE
    many = replace(report, unfinished_loads=(READ,) * 5000)
    lines = capture_metadata(many, datetime.now(UTC))["reading rows"].splitlines()
    assert lines == [SENTENCE] * 50 + ["and 4,950 more"]
