"""A walk over a log by its headers ends where the log is no log any more."""

from __future__ import annotations

from uuid import UUID

import pytest

from lockstep.pipeline.binlog.search.log_scan import step_over, walk
from lockstep.pipeline.binlog.stream.framing import EventType
from lockstep.pipeline.values.errors import DamagedEvent
from lockstep.pipeline.values.position import Coordinates
from tests.pipeline.buffered import START, a_buffer, feed
from tests.pipeline.dialects_made import tagged_gtid
from tests.pipeline.logs_made import MadeDump
from tests.pipeline.made import Log, gtid, rotate


@pytest.mark.parametrize("name", ["other.000002", "binlog", "bi\xfflog.000002"])
def test_a_rotation_elsewhere_is_refused(name: str) -> None:
    """Another base name is another history, a name without a number none at all."""
    log = Log()
    log.transaction(1)
    log.add(EventType.ROTATE, rotate(name))
    with pytest.raises(DamagedEvent, match="the log continues in"):
        list(walk(MadeDump(START, log.wire(), 512), START))


@pytest.mark.parametrize(
    ("kind", "body", "error"),
    [
        (EventType.GTID_TAGGED, tagged_gtid(UUID(int=1), "tag", 1, 1 << 63), "impossible"),
        (EventType.GTID, gtid(1)[:-1], "ends after 24 bytes"),
    ],
)
def test_an_identity_that_nothing_has_room_for_is_refused(
    kind: EventType, body: bytes, error: str
) -> None:
    """Whoever steps over transactions believes a GTID event no more than the buffer does."""
    log = Log()
    log.add(kind, body)
    end = Coordinates(START.file, 1 << 20)
    with pytest.raises(DamagedEvent, match=error):
        step_over(MadeDump(START, log.wire(), 512), START, end, 1)
    with pytest.raises(DamagedEvent, match=error):
        list(feed(a_buffer(), [log.wire()]))
