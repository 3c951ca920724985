"""A walk over a log by its headers ends where the log is no log any more."""

from __future__ import annotations

import pytest

from pipeline.binlog.search.walk import walk
from pipeline.binlog.stream.framing import EventType
from pipeline.errors import DamagedEvent
from tests.pipeline.buffered import START
from tests.pipeline.logs_made import MadeDump
from tests.pipeline.made import Log, rotate


@pytest.mark.parametrize("name", ["other.000002", "binlog", "bi\xfflog.000002"])
def test_a_rotation_elsewhere_is_refused(name: str) -> None:
    """Another base name is another history, a name without a number none at all."""
    log = Log()
    log.transaction(1)
    log.add(EventType.ROTATE, rotate(name))
    with pytest.raises(DamagedEvent, match="the log rotates to"):
        list(walk(MadeDump(START, log.wire(), 512), START))
