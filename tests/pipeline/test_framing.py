"""Framing lets nothing through that is not whole, known and where it should be."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.binlog.framing import EventType, Framing
from pipeline.errors import DamagedEvent, UnsupportedEvent
from pipeline.position import Coordinates, LogFile
from tests.pipeline.made import Log, gtid, packet, rotate

FILE = LogFile("binlog", 1)
START = Coordinates(FILE, 4)


def framed(packets: list[bytes]) -> list[tuple[str, int, int]]:
    framing = Framing(START)
    return [(e.type.name, e.offset, e.end) for e in map(framing.frame, packets)]


def test_events_follow_one_another() -> None:
    """An event begins where the one before it ended."""
    log = Log()
    log.transaction(1)
    places = framed(log.packets)
    assert [offset for _, offset, _ in places] == [4, *(end for _, _, end in places[:-1])]
    assert places[-1] == ("XID", log.offset - len(log.packets[-1]), log.offset)


@given(st.data())
def test_a_flipped_bit_never_passes(data: st.DataObject) -> None:
    """Whatever bit of an event is flipped, the run stops with a typed error."""
    log = Log()
    log.transaction(1)
    number = data.draw(st.integers(0, len(log.packets) - 1))
    hurt = bytearray(log.packets[number])
    bit = data.draw(st.integers(0, len(hurt) * 8 - 1))
    if number == 0 and bit // 8 == 17:
        return  # the format description's flags: "in use" is not under its checksum
    hurt[bit // 8] ^= 1 << bit % 8
    framing = Framing(START)
    for whole in log.packets[:number]:
        framing.frame(whole)
    with pytest.raises((DamagedEvent, UnsupportedEvent)):
        framing.frame(bytes(hurt))


@given(st.integers(0, 60))
def test_a_truncated_event_never_passes(cut: int) -> None:
    """An event that lost its tail is not an event."""
    framing = Framing(START)
    with pytest.raises((DamagedEvent, UnsupportedEvent)):
        framing.frame(Log().packets[0][:cut])


@pytest.mark.parametrize("code", [5, 13, 14, 23, 24, 25, 26, 36, 37, 38, 39, 40, 41, 42, 99, 165])
def test_types_not_on_the_list_stop_the_run(code: int) -> None:
    """INCIDENT, TRANSACTION_PAYLOAD and whatever comes one day: unknown means stop."""
    log = Log()
    framing = Framing(START)
    for whole in log.packets:
        framing.frame(whole)
    with pytest.raises(UnsupportedEvent, match=f"type {code}"):
        framing.frame(packet(code, b"", log.offset))


def test_offsets_are_counted_past_four_gib() -> None:
    """The header's offset wraps at 32 bits; ours does not."""
    start = Coordinates(FILE, (1 << 32) - 10)
    framing = Framing(start)
    framing.frame(packet(15, Log().packets[0][19:-4], 0, flags=0x20, end=0))
    event = framing.frame(packet(EventType.GTID, gtid(1), start.offset))
    assert event.end == start.offset + event.size > 1 << 32


def test_a_gap_in_the_offsets_is_damage() -> None:
    """An event that says it stands elsewhere means that one is missing."""
    log = Log()
    framing = Framing(START)
    for whole in log.packets:
        framing.frame(whole)
    with pytest.raises(DamagedEvent, match="counted"):
        framing.frame(packet(EventType.GTID, gtid(1), log.offset + 8))


def test_a_rotation_moves_to_the_next_file() -> None:
    """ROTATE names the next file; events are counted from its fourth byte again."""
    log = Log()
    log.add(EventType.ROTATE, rotate("binlog.000002"))
    framing = Framing(START)
    last = [framing.frame(whole) for whole in log.packets][-1]
    assert (last.file, last.end) == (FILE, log.offset)
    first = framing.frame(Log().packets[0])
    assert (first.file, first.offset) == (LogFile("binlog", 2), 4)


@pytest.mark.parametrize("name", ["other.000002", "binlog", "../binlog.x"])
def test_a_rotation_to_another_log_stops(name: str) -> None:
    """A changed base name is another log, not the next file."""
    log = Log()
    framing = Framing(START)
    for whole in log.packets:
        framing.frame(whole)
    with pytest.raises(DamagedEvent, match="rotates"):
        framing.frame(packet(EventType.ROTATE, rotate(name), log.offset))


def test_a_refused_event_changes_nothing() -> None:
    """After a refusal the right event still fits."""
    log = Log()
    good = packet(EventType.GTID, gtid(1), log.offset)
    framing = Framing(START)
    for whole in log.packets:
        framing.frame(whole)
    with pytest.raises(DamagedEvent):
        framing.frame(good[:-1] + b"!")
    assert framing.frame(good).type is EventType.GTID
