"""Places in a log have the order of the log; a lineage is the servers in their order."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep.pipeline.values.position import Coordinates, LogFile

# What a file's name may hold on a POSIX system, less line breaks and what is invisible.
LETTERS = st.characters(codec="utf-8", exclude_categories=("Cc", "Cs"), exclude_characters="/\\")
BASES = st.text(LETTERS, min_size=1, max_size=12).filter(lambda base: not base[0].isspace())
FILES = st.builds(LogFile, BASES, st.integers(1, (1 << 31) - 1))
PLACES = st.builds(Coordinates, FILES, st.integers(0, (1 << 63) - 1))


@given(PLACES)
def test_text_gives_the_place_back(place: Coordinates) -> None:
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
