"""The zone that a session's name stands for."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from lockstep.pipeline.schema.context import zone_of

MOMENT = datetime(2024, 7, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("name", "minutes"),
    [
        ("UTC", 0),
        ("+02:00", 120),
        ("-3:30", -210),
        ("+14:00", 840),
        ("America/St_Johns", -150),
    ],
)
def test_a_name_that_tells_its_zone(name: str, minutes: int) -> None:
    """An offset, or a name of the time zone database with what held at the moment."""
    zone = zone_of(name)
    assert zone is not None
    assert MOMENT.astimezone(zone).utcoffset() == timedelta(minutes=minutes)


@pytest.mark.parametrize("name", ["", "SYSTEM", "Nowhere/Town", "../etc/passwd", "MET+1"])
def test_a_name_that_does_not(name: str) -> None:
    """The server's own zone is nobody's to guess, and no file outside is opened."""
    assert zone_of(name) is None
