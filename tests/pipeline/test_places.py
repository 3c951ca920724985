"""Places in a log, in their order, and one grammar for places in time: each form is read, written,
and named when it is missed."""

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

# What a file's name may hold on a POSIX system, less line breaks and what is invisible.
LETTERS = st.characters(codec="utf-8", exclude_categories=("Cc", "Cs"), exclude_characters="/\\")
BASES = st.text(LETTERS, min_size=1, max_size=12).filter(lambda base: not base[0].isspace())
FILES = st.builds(LogFile, BASES, st.integers(1, (1 << 31) - 1))
PLACES = st.builds(Coordinates, FILES, st.integers(0, (1 << 63) - 1))


@given(PLACES)
def test_coordinates_are_read_as_they_are_written(place: Coordinates) -> None:
    """Whatever a base name holds, dots, colons and digits too."""
    assert LogFile.parse(str(place.file)) == place.file
    assert Coordinates.parse(str(place)) == place


@given(BASES, st.lists(st.tuples(st.integers(1, 2_000_000), st.integers(0, 1 << 40)), max_size=8))
def test_places_are_ordered_by_number_and_offset(base: str, pairs: list[tuple[int, int]]) -> None:
    """The order of places of one log is that of (file number, offset)."""
    places = [Coordinates(LogFile(base, number), offset) for number, offset in pairs]
    assert [(p.file.number, p.offset) for p in sorted(places)] == sorted(pairs)


def test_files_are_ordered_by_number() -> None:
    """binlog.1000000 comes after binlog.999999, whatever their text says."""
    a = Coordinates(LogFile.parse("binlog.999999"), 5_000_000_000)
    b = Coordinates(LogFile.parse("binlog.1000000"), 4)
    assert a < b
    assert str(b) == "binlog.1000000:4"


def test_logs_of_different_names_are_not_compared() -> None:
    """An order between two logs would be a guess."""
    with pytest.raises(ValueError, match="different logs"):
        assert Coordinates(LogFile("a", 1), 4) < Coordinates(LogFile("b", 2), 4)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("mysql-bin.000001", LogFile("mysql-bin", 1)),
        ("a.b.000001", LogFile("a.b", 1)),
        ("a.000001.000002", LogFile("a.000001", 2)),
        ("binlog.1000000", LogFile("binlog", 1_000_000)),
        ("binlog.2147483647", LogFile("binlog", (1 << 31) - 1)),
    ],
)
def test_names_of_log_files(text: str, expected: LogFile) -> None:
    """The last dot parts the base name from the number."""
    assert LogFile.parse(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "binlog",
        "binlog.12",
        ".000001",
        "binlog.00000x",
        "binlog.000000",
        "binlog.0000012",
        "binlog.2147483648",
        "binlog.99999999999",
        "binlog.٠٠٠٠١٢",
        "binlog.index",
        "/var/lib/mysql/binlog.000012",
        "logs\\binlog.000012",
        " binlog.000012",
        "binlog.000012 ",
        "bin\nlog.000012",
        "bin\0log.000012",
    ],
)
def test_names_that_are_no_log_file(text: str) -> None:
    """A log file's name has no folder and ends in a number as the server writes it."""
    with pytest.raises(ValueError, match=r"such as binlog\.000012"):
        LogFile.parse(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("binlog.000012", "is not a place in a log such as binlog.000012:4567"),
        ("binlog.12:4", "such as binlog.000012"),
        ("binlog.000012:", "is not an offset"),
        ("binlog.000012:-1", "is not an offset"),
        ("binlog.000012:+1", "is not an offset"),
        ("binlog.000012: 4", "is not an offset"),
        ("binlog.000012:4_000", "is not an offset"),
        ("binlog.000012:٤", "is not an offset"),
        ("binlog.000012:0x10", "is not an offset"),
        ("binlog.000012:9223372036854775808", "0 to 9223372036854775807"),
        (f"binlog.000012:{'9' * 5000}", "0 to 9223372036854775807"),
    ],
)
def test_places_that_are_none(text: str, expected: str) -> None:
    """A mistaken offset is named, with what one looks like."""
    with pytest.raises(ValueError, match=re.escape(expected)):
        Coordinates.parse(text)


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
        ("2026-11-01.000012:4", AtCoordinates(Coordinates(LogFile("2026-11-01", 12), 4))),
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
