"""Positions and GTID sets are values with the order and the algebra of MySQL's."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.position import Coordinates, GtidSet, LogFile

UUIDS = [f"{n:08x}-0000-0000-0000-000000000001" for n in range(3)]
SOURCES = st.sampled_from([*UUIDS, f"{UUIDS[0]}:tag"])
NUMBERS = st.sets(st.integers(1, 30), max_size=12)
MODELS = st.dictionaries(SOURCES, NUMBERS, max_size=4)


def built(model: dict[str, set[int]]) -> GtidSet:
    return GtidSet.parse(",".join(f"{s}:{n}" for s, ns in model.items() for n in ns))


def members(gtids: GtidSet) -> set[tuple[str, int]]:
    return {
        (source, number)
        for source, spans in gtids.intervals.items()
        for first, last in spans
        for number in range(first, last + 1)
    }


def pairs(model: dict[str, set[int]]) -> set[tuple[str, int]]:
    return {(source, number) for source, numbers in model.items() for number in numbers}


@given(MODELS, MODELS)
def test_union_and_difference_are_those_of_sets(
    a: dict[str, set[int]], b: dict[str, set[int]]
) -> None:
    """A GTID set behaves as the plain set of its members."""
    assert members(built(a).union(built(b))) == pairs(a) | pairs(b)
    assert members(built(a).difference(built(b))) == pairs(a) - pairs(b)
    assert built(a).contains(built(b)) == (pairs(b) <= pairs(a))


@given(MODELS)
def test_text_is_canonical(model: dict[str, set[int]]) -> None:
    """Equal sets have equal text, and reading it gives the set back."""
    one = built(model)
    assert GtidSet.parse(str(one)) == one
    assert str(GtidSet.parse(str(one))) == str(one)


def test_text_is_mysqls() -> None:
    """Intervals join, a tag follows its UUID's untagged numbers."""
    text = f"{UUIDS[1]}:3:1-2:5, {UUIDS[0]}:tag:7:8"
    assert str(GtidSet.parse(text)) == f"{UUIDS[0]}:tag:7-8,{UUIDS[1]}:1-3:5"


@pytest.mark.parametrize("text", ["abc:1", UUIDS[0], f"{UUIDS[0]}:0", f"{UUIDS[0]}:5-3", "1-2-3"])
def test_malformed_sets_are_refused(text: str) -> None:
    """What is no GTID set is an error that says what one looks like."""
    with pytest.raises(ValueError, match="is"):
        GtidSet.parse(text)


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


@pytest.mark.parametrize("text", ["binlog", "binlog.12", ".000001", "binlog.00000x"])
def test_names_that_are_no_log_file(text: str) -> None:
    """A log file's name ends in a number of at least six digits."""
    with pytest.raises(ValueError, match=r"binlog\.000012"):
        LogFile.parse(text)
