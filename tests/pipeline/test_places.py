"""One grammar for places in time: each form is read, written, and named when it is missed."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep.pipeline.values.gtid import GtidSet
from lockstep.pipeline.values.places import (
    AfterGtids,
    AtCoordinates,
    AtMoment,
    Earliest,
    InFile,
    Latest,
    OfRun,
    Place,
    Snapshot,
    parse_place,
    parse_start,
)
from lockstep.pipeline.values.position import Coordinates, LogFile
from tests.pipeline.test_gtid import MARIADB, MYSQL, built
from tests.pipeline.test_position import FILES, PLACES

UUID = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
ZONES = st.integers(-23 * 60 - 59, 23 * 60 + 59).map(lambda m: timezone(timedelta(minutes=m)))
MOMENTS = st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30), timezones=ZONES)
ANY = st.one_of(
    st.sampled_from([Earliest(), Latest(), Snapshot()]),
    st.builds(AtCoordinates, PLACES),
    st.builds(AtMoment, MOMENTS),
    st.builds(InFile, FILES, MOMENTS),
    (MYSQL | MARIADB).map(built).filter(bool).map(AfterGtids),
    st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,127}", fullmatch=True).map(OfRun),
)
FILE = LogFile("binlog", 12)
SIX = datetime(2026, 11, 1, 6, tzinfo=UTC)


@given(ANY)
def test_text_gives_the_place_back(place: Place | Snapshot) -> None:
    """Every value is written as a text that is read as that value, and as no other form."""
    assert parse_start(str(place)) == place
    assert str(parse_start(str(place))) == str(place)


@given(MOMENTS)
def test_a_moment_may_stand_in_any_zone(moment: datetime) -> None:
    """What is written with an offset is the same moment in UTC."""
    place = parse_place(moment.isoformat())
    assert place == AtMoment(moment)
    assert str(place).endswith("Z")


@given(st.text(max_size=40) | st.from_regex(r"[a-z]*[.:@,T0-9+-]{0,20}Z?", fullmatch=True))
def test_every_other_text_is_a_value_error(text: str) -> None:
    """Whatever a person types is a place or one sentence, never another error."""
    try:
        place = parse_place(text)
    except ValueError as error:
        assert "\n" not in str(error)
    else:
        assert parse_place(str(place)) == place


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("earliest", Earliest()),
        (" latest\n", Latest()),
        ("snapshot", Snapshot()),
        ("binlog.000012:4567", AtCoordinates(Coordinates(FILE, 4567))),
        ("2026-11-01T06:00:00Z", AtMoment(SIX)),
        ("2026-11-01T08:00:00+02:00", AtMoment(SIX)),
        ("2026-11-01T06:00:00.5Z", AtMoment(SIX + timedelta(milliseconds=500))),
        ("2026-11-01T06:00:00.000001Z", AtMoment(SIX + timedelta(microseconds=1))),
        ("binlog.000012@2026-11-01T06:00:00Z", InFile(FILE, SIX)),
        ("binlog.000012@2026-11-01T00:30:00-05:30", InFile(FILE, SIX)),
        ("gtid:0-1-5,0-2-7", AfterGtids(GtidSet.parse("0-1-5,0-2-7"))),
        (f"gtid:{UUID.upper()}:1-5:Tag:3", AfterGtids(GtidSet.parse(f"{UUID}:1-5:tag:3"))),
        (f"gtid: {UUID}:1-5,\n  {UUID}:9", AfterGtids(GtidSet.parse(f"{UUID}:1-5:9"))),
        ("run:0f3c1d2e", OfRun("0f3c1d2e")),
        (
            "2026-11-01.000012:4",
            AtCoordinates(Coordinates(LogFile("2026-11-01", 12), 4)),
        ),
        ("gtid:a@b.000012:4", AtCoordinates(Coordinates(LogFile("gtid:a@b", 12), 4))),
    ],
)
def test_the_forms(text: str, expected: Place | Snapshot) -> None:
    """Each form of the grammar; base names of logs may look like other forms."""
    assert parse_start(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-11-01T06:00:00", "in which time zone; expected 2026-11-01T06:00:00Z"),
        ("binlog.000012@2026-11-01T06:00:00", "in which time zone; expected 2026-11-01T06:00:00Z"),
        ("2026-11-01", "is not a moment; expected 2026-11-01T06:00:00Z"),
        ("2026-11-01 06:00:00Z", "is not a moment; expected 2026-11-01T06:00:00Z"),
        ("2026-11-01T06:00Z", "is not a moment; expected 2026-11-01T06:00:00Z"),
        ("2026-11-01T06:00:00.1234567Z", "is not a moment; expected 2026-11-01T06:00:00Z"),
        ("2026-11-01T06:00:00+2", "as in 2026-11-01T08:00:00+02:00"),
        ("2026-11-01T06:00:00+24:00", "as in 2026-11-01T08:00:00+02:00"),
        ("2026-02-30T06:00:00Z", "is not in the calendar"),
        ("2026-11-01T06:00:60Z", "is not in the calendar"),
        ("0001-01-01T00:00:00+05:00", "is not in the calendar"),
        ("binlog.000012@yesterday", "'yesterday' is not a moment"),
        ("binlog@2026-11-01T06:00:00Z", "such as binlog.000012"),
        ("binlog.000012:abc", "'abc' in 'binlog.000012:abc' is not an offset"),
        ("binlog.000012:9223372036854775808", "0 to 9223372036854775807"),
        ("binlog.000012", "expected binlog.000012:4567 or binlog.000012@2026-11-01T06:00:00Z"),
        ("/var/lib/mysql/binlog.000012:4", "as SHOW BINARY LOGS lists it"),
        ("gtid:", "is empty; expected gtid:<uuid>:1-5"),
        ("gtid:abc", "<uuid>:1-5"),
        (f"gtid:{UUID}", "<uuid>:1-5"),
        (f"gtid:{UUID}:x-3", "an interval such as 1-5"),
        (f"gtid:{UUID}:1,0-1-5", "never both"),
        (f"{UUID}:1-5", "after gtid:"),
        ("0-1-5", "after gtid:"),
        ("run:", "as in run:0f3c1d2e"),
        ("run:a b", "as in run:0f3c1d2e"),
        ("now", "gtid:<set>, run:<id>, earliest, latest or snapshot"),
        ("Latest", "gtid:<set>, run:<id>, earliest, latest or snapshot"),
        ("", "gtid:<set>, run:<id>, earliest, latest or snapshot"),
        ("binlog.000012:4567:8", "gtid:<set>, run:<id>, earliest, latest or snapshot"),
    ],
)
def test_a_mistake_names_the_form_it_missed(text: str, expected: str) -> None:
    """A person learns what to write, not that something was wrong."""
    with pytest.raises(ValueError, match=re.escape(expected)):
        parse_start(text)


def test_a_snapshot_is_a_start_only() -> None:
    """Elsewhere it is refused, and no message offers it."""
    assert parse_place("latest") == Latest()
    with pytest.raises(ValueError, match="a way to start") as caught:
        parse_place("snapshot")
    assert "or snapshot" not in str(caught.value)
    with pytest.raises(ValueError, match=r"earliest or latest$"):
        parse_place("now")


@pytest.mark.parametrize("value", [AtMoment, lambda moment: InFile(FILE, moment)])
def test_a_moment_without_a_zone_is_no_value(value: type[AtMoment]) -> None:
    """Nothing guesses the zone of the machine it runs on."""
    with pytest.raises(ValueError, match="time zone"):
        value(SIX.replace(tzinfo=None))
