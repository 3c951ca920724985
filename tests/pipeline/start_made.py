"""Servers, cursors and choices that a start is decided from, short to write. No assertions."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from lockstep.pipeline.model.batch import Batch, BatchState, Cursor
from lockstep.pipeline.ports.source import BinlogSize, ServerFacts
from lockstep.pipeline.start.question import AnchorReading, ChosenPlace, Question, Refusal, Start
from lockstep.pipeline.values.decisions import Override
from lockstep.pipeline.values.gtid import GtidSet
from lockstep.pipeline.values.position import Anchor, Coordinates, LogFile, Position

A = "00000000-0000-4000-8000-00000000000a"
B = "00000000-0000-4000-8000-00000000000b"
C = "00000000-0000-4000-8000-00000000000c"
MARIA, MARIA_STANDBY = "server-id:1", "server-id:2"

SAME, DIFFERENT, NOT_READ = AnchorReading.SAME, AnchorReading.DIFFERENT, AnchorReading.NOT_READ
ANCHOR = Anchor(100, 31, 0xABCDEF, f"{A}:100", 1_700_000_000)
READ_AT = datetime(2026, 11, 1, 6, 0, tzinfo=UTC)
COMMITTED = READ_AT - timedelta(minutes=5)
BATCH = 7

question_of = partial(Question, source="shop")


def at(number: int, offset: int = 500, base: str = "binlog") -> Coordinates:
    return Coordinates(LogFile(base, number), offset)


def gtids(text: str) -> GtidSet:
    return GtidSet.parse(text)


def facts(
    uuid: str = A,
    *,
    executed: str = "",
    purged: str = "",
    mode: str = "ON",
    files: tuple[int, ...] = (2, 3, 4),
    size: int = 1000,
    base: str = "binlog",
) -> ServerFacts:
    """A server with log files of 1000 bytes each; the last one ends at the head."""
    logs = tuple(BinlogSize(LogFile(base, number), size) for number in files)
    head = at(files[-1], size, base) if files else at(1, 4, base)
    return ServerFacts(
        server_uuid=uuid,
        server_id=1,
        version="9.7.4",
        flavour="mariadb" if uuid.startswith("server-id") else "mysql",
        gtid_mode=mode,
        gtid_executed=executed,
        gtid_purged=purged,
        binlogs=logs,
        head=head,
        settings={},
        read_at=READ_AT,
    )


def cursor(
    place: Coordinates | None = None,
    read: str = "",
    *,
    uuid: str = A,
    by_gtid: bool | None = None,
    committed_at: datetime | None = COMMITTED,
) -> Cursor:
    """The end of batch 7, in the middle of file 3; resumable by its set if it has one."""
    position = Position(place or at(3), gtids(read), uuid, committed_at)
    return Cursor(BATCH, position, ANCHOR, bool(read) if by_gtid is None else by_gtid)


def batch(number: int, start: Position, end: Position | None = None, **more: Any) -> Batch:
    """A batch of the shop, which is acknowledged unless `more` says otherwise."""
    told: dict[str, Any] = {
        "source": "shop",
        "state": BatchState.ACKNOWLEDGED,
        "continued_batch": None,
        "start_decision": 1,
        "sequence_before": 0,
        "token": 1,
        "run_id": None,
        "created_at": READ_AT,
    }
    return Batch(**{**told, "id": number, "start": start, "end": end, **more})


def chosen(place: str = "binlog.000004:4", number: int = 3) -> Override:
    return Override(number, place, "the disk was lost", "ada", READ_AT)


def reached(where: Coordinates | GtidSet, executed: str = "") -> ChosenPlace:
    return ChosenPlace(where, where if isinstance(where, GtidSet) else gtids(executed))


def started(answer: Start | Refusal) -> Start:
    """The answer, which has to be a start."""
    if isinstance(answer, Refusal):
        raise TypeError(f"{answer.rule} refused: {answer.reason}")
    return answer


def refused(answer: Start | Refusal) -> Refusal:
    """The answer, which has to be a refusal."""
    if isinstance(answer, Start):
        raise TypeError(f"{answer.rule} starts at {answer.where}")
    return answer
