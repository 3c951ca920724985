"""Which batch a place in time means, and which batches a span touches: exactly those that have a
transaction between its ends."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep.pipeline.model.batch import Batch, BatchKind
from lockstep.pipeline.replay.spans import Span, batches_in_span, ends_early
from lockstep.pipeline.run.status.version_sets import batch_for_place
from lockstep.pipeline.values.errors import SpanRefused, VersionSetUnknown
from lockstep.pipeline.values.gtid import GtidSet
from lockstep.pipeline.values.places import Earliest, Latest, moment_text, parse_place
from lockstep.pipeline.values.position import Coordinates, LogFile, Position
from tests.pipeline.start_made import batch

BEGAN = datetime(2026, 11, 1, 6, tzinfo=UTC)
SERVERS = ("1aaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa", "2aaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa")


@dataclass(frozen=True)
class Made:
    """Transaction n ends at minute n, at offset 100 * n of its server's log; its GTID is the
    first server's n. `batch`: the place in the chain of the batch that has each."""

    chain: list[Batch]
    batch: list[int]
    failover: int
    """The first transaction of the second server."""

    def start_of(self, number: int) -> dict[str, str]:
        """How a person may name the place before transaction `number`."""
        server = number > self.failover
        file = 7 if server else 1
        return {
            "moment": moment_text(BEGAN + timedelta(minutes=number)),
            "place": f"binlog.{file:06d}:{100 * (number - 1)}",
            "gtid": f"gtid:{SERVERS[0]}:1-{number - 1}",
        }


@st.composite
def histories(draw: st.DrawFn) -> Made:
    sizes = draw(st.lists(st.integers(0, 4), min_size=1, max_size=8).filter(any))
    switched = draw(st.integers(0, len(sizes)))
    chain: list[Batch] = []
    which: list[int] = []
    done = 0
    failover = sum(sizes) + 1
    for at, size in enumerate(sizes):
        server = at >= switched
        if at == switched:
            failover = done
        start, end = _position(done, server), _position(done + size, server)
        chain.append(batch(at + 1, start, end, transactions=size))
        which += [at + 1] * size
        done += size
    return Made(chain, which, failover)


def _position(done: int, server: bool) -> Position:
    gtids = GtidSet.parse(f"{SERVERS[0]}:1-{done}") if done else GtidSet()
    at = Coordinates(LogFile("binlog", 7 if server else 1), 100 * done)
    moment = BEGAN + timedelta(minutes=done) if done else None
    return Position(at, gtids, SERVERS[server], moment)


@given(history=histories(), data=st.data())
def test_a_span_is_the_batches_with_a_transaction_in_it(history: Made, data: st.DataObject) -> None:
    """However its ends are named, over a failover too, where both logs go on with other files."""
    count = len(history.batch)
    first = data.draw(st.integers(1, count), "first")
    last = data.draw(st.integers(first, count), "last")
    since, until = history.start_of(first), history.start_of(last + 1)
    ways = [way for way in ("moment", "place", "gtid") if first > 1 or way != "gtid"]
    way, other = data.draw(st.sampled_from(ways)), data.draw(st.sampled_from(["moment", "gtid"]))
    other = way if way == "place" else other
    found, wanted = _found(history, since[way], until[other]), history.batch[first - 1 : last]
    if other == "moment":
        # The ledger does not tell when the first transaction of a batch was committed.
        wanted = wanted + [one for one in history.batch[last : last + 1] if one in found]
    assert found == sorted(set(wanted))
    runs = {"a": history.batch[first - 1], "b": history.batch[last - 1]}
    named = batches_in_span(Span(parse_place("run:a"), parse_place("run:b")), history.chain, runs)
    assert [one.id for one in named] == list(range(runs["a"], runs["b"] + 1))
    assert _found(history, "earliest", "latest") == sorted(set(history.batch))


@given(history=histories(), data=st.data())
def test_a_span_outside_of_what_was_captured_is_refused(history: Made, data: st.DataObject) -> None:
    """In the future, before the history, reversed; the offset of a moment is what counts."""
    count = len(history.batch)
    after = history.start_of(count + 1)
    for way in ("moment", "gtid"):
        with pytest.raises(SpanRefused, match="nothing was captured after"):
            _found(history, after[way], "2030-01-01T00:00:00Z" if way == "moment" else "latest")
    with pytest.raises(SpanRefused, match="before it begins"):
        _found(history, "2026-11-01T06:01:00Z", "2026-11-01T07:01:00+01:00")
    number = data.draw(st.integers(1, count))
    early, late = BEGAN - timedelta(hours=2), BEGAN + timedelta(hours=2)
    zone = (BEGAN + timedelta(minutes=number)).astimezone().isoformat()
    span = Span(parse_place(zone), parse_place(moment_text(late)))
    assert _found(history, zone, moment_text(late)) == sorted(set(history.batch[number - 1 :]))
    assert ends_early(span, history.chain)
    if history.chain[0].start.committed_at is not None:
        with pytest.raises(SpanRefused, match=r"no transaction up to .* is known: the history"):
            _found(history, moment_text(early), moment_text(early + timedelta(hours=1)))


def test_only_earliest_begins_before_the_history() -> None:
    """However the earlier place is named: its first changes are not taken for those before it."""
    start, end = _position(5, server=False), _position(9, server=False)
    only = batch(1, start, end, transactions=4)
    begin = BEGAN + timedelta(minutes=5)
    late = parse_place(moment_text(BEGAN + timedelta(minutes=8)))
    places = {
        moment_text(begin): moment_text(begin - timedelta(seconds=1)),
        "binlog.000001:500": "binlog.000001:400",
        f"gtid:{SERVERS[0]}:1-5": f"gtid:{SERVERS[0]}:1-4",
    }
    for place, earlier in places.items():
        assert batches_in_span(Span(parse_place(place), late), [only], {}, begin=begin) == (only,)
        for until in (late, parse_place("latest")):
            with pytest.raises(SpanRefused, match="the history begins at") as caught:
                batches_in_span(Span(parse_place(earlier), until), [only], {}, begin=begin)
            assert "--from earliest" in caught.value.hint
    assert batches_in_span(Span(parse_place("earliest"), late), [only], {}, begin=begin) == (only,)
    with pytest.raises(SpanRefused, match="no transaction up to"):
        until = parse_place(moment_text(begin - timedelta(minutes=1)))
        batches_in_span(Span(parse_place("earliest"), until), [only], {}, begin=begin)


def test_a_moment_in_a_file_is_searched_in_that_file_alone() -> None:
    """The clock was put back by hours with the new file. A file before it is before the moment, one
    after it is after the moment, whatever their clock said."""
    clock = [180, 190, 200, 60, 120]
    places = [(1, 4), (1, 100), (1, 200), (2, 4), (2, 100), (2, 200)]
    moments = [None, *(BEGAN + timedelta(minutes=minute) for minute in clock)]
    positions = [
        Position(Coordinates(LogFile("binlog", file), offset), GtidSet(), SERVERS[0], moment)
        for (file, offset), moment in zip(places, moments, strict=True)
    ]
    chain = [batch(n, *pair, transactions=1) for n, pair in enumerate(pairwise(positions), start=1)]

    def found(since: str, until: str) -> list[int]:
        span = Span(parse_place(since), parse_place(until))
        return [batch.id for batch in batches_in_span(span, chain, {})]

    def in_file(file: int, minute: int) -> str:
        return f"binlog.{file:06d}@{moment_text(BEGAN + timedelta(minutes=minute))}"

    assert found("earliest", in_file(2, 90)) == [1, 2, 3, 4, 5]
    assert found(in_file(1, 195), "latest") == [3, 4, 5]
    assert found(in_file(1, 185), in_file(1, 185)) == [2]
    assert found(in_file(2, 90), "latest") == [5]


def _found(history: Made, since: str, until: str) -> list[int]:
    """Those with transactions; one without any is as good in the span as outside of it."""
    span = Span(parse_place(since), parse_place(until))
    return [one.id for one in batches_in_span(span, history.chain, {}) if one.transactions]


ONE = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
TWO = "4e11fa47-71ca-11e1-9e33-c80aa9429562"


def position(number: int, offset: int, minute: int, server: str = ONE) -> Position:
    gtids = GtidSet.parse(f"{ONE}:1-{minute}") if minute else GtidSet()
    at = Coordinates(LogFile("binlog", number), offset)
    return Position(at, gtids, server, BEGAN + timedelta(minutes=minute))


def acknowledged(number: int, start: Position, end: Position, **more: Any) -> Batch:
    return batch(number, start, end, run_id=f"run-{number}", transactions=1, **more)


PLACES = [
    position(1, 4, 0),
    position(1, 100, 10),
    position(2, 200, 20),
    position(2, 900, 30),
    position(7, 100, 40, TWO),
]
ORDINARY = [
    acknowledged(number, *ends)
    for number, ends in enumerate(
        [
            (PLACES[0], PLACES[1]),
            (PLACES[1], PLACES[2]),
            (PLACES[2], PLACES[3]),
            (position(7, 4, 30, TWO), PLACES[4]),
        ],
        start=1,
    )
]
CAUGHT_UP = acknowledged(5, PLACES[0], PLACES[4], kind=BatchKind.CATCHING_UP, previous_batch=4)
RESET = [
    acknowledged(5, position(1, 4, 0), position(1, 60, 6)),
    acknowledged(6, position(1, 60, 6), position(2, 300, 16)),
]
"""The log of the first server, after RESET BINARY LOGS AND GTIDS."""


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        ("latest", 4),
        ("earliest", 1),
        ("2026-11-01T06:20:00Z", 2),
        ("2026-11-01T06:19:59Z", 1),
        ("2026-11-01T06:40:00Z", 4),
        ("binlog.000002:200", 2),
        ("binlog.000002:201", 2),
        ("binlog.000002:4", 1),
        ("binlog.000002:900", 3),
        ("binlog.000007:100", 4),
        ("binlog.000002@2026-11-01T06:25:00Z", 2),
        ("binlog.000002@2026-11-01T06:05:00Z", 1),
        (f"gtid:{ONE}:1-15", 2),
        (f"gtid:{ONE}:1-20", 2),
        ("run:run-3", 3),
    ],
)
def test_a_place_is_a_batch(place: str, expected: int) -> None:
    """The newest whose end shows nothing after it; for GTIDs, the first that has them all."""
    assert batch_for_place("shop", ORDINARY, parse_place(place)).id == expected


def test_a_batch_that_caught_tables_up_stands_for_the_place_it_ends_at() -> None:
    """It ends where the one before it ended, and has more tables."""
    for place in ("latest", "binlog.000007:100", "2026-11-01T06:40:00Z"):
        found = batch_for_place("shop", [*ORDINARY, CAUGHT_UP], parse_place(place))
        assert found.id == 5
    found = batch_for_place("shop", [*ORDINARY, CAUGHT_UP], parse_place("binlog.000002:200"))
    assert found.id == 2


def test_the_place_at_which_tables_were_first_read_has_versions() -> None:
    """Where the first batch begins and ends, as from a snapshot or in a ledger made from the
    lake. An earlier place is not known, and after a reset it may be another place."""
    first = acknowledged(1, PLACES[1], PLACES[1])
    chain = [first, *ORDINARY[1:]]
    for place in ("binlog.000001:100", "2026-11-01T06:10:00Z", f"gtid:{ONE}:1-10"):
        assert batch_for_place("shop", chain, parse_place(place)).id == 1
    with pytest.raises(VersionSetUnknown, match="the history begins at"):
        batch_for_place("shop", chain, parse_place(f"gtid:{ONE}:1-9"))
    with pytest.raises(VersionSetUnknown, match="occurs more than once"):
        batch_for_place("shop", [*chain, *RESET], parse_place(f"gtid:{ONE}:1-10"))


@pytest.mark.parametrize(
    "place",
    [
        "2026-11-01T06:00:00Z",
        "2026-11-01T06:40:01Z",
        "binlog.000007@2026-11-01T06:40:01Z",
        "binlog.000002:901",
        "binlog.000009:4",
        "binlog.000009@2026-11-01T06:25:00Z",
        "other.000001:100",
        f"gtid:{ONE}:1-99",
        "run:another",
        "run:run-",
    ],
)
def test_a_place_that_nothing_shows_is_refused(place: str) -> None:
    with pytest.raises(VersionSetUnknown, match=r"^shop: .*") as caught:
        batch_for_place("shop", ORDINARY, parse_place(place))
    assert "`lockstep " in caught.value.hint


@pytest.mark.parametrize(
    "place", ["binlog.000001:50", "binlog.000002:200", f"gtid:{ONE}:1-12", f"gtid:{ONE}:1-5"]
)
def test_a_place_that_occurs_again_after_a_reset_is_refused(place: str) -> None:
    """Its coordinates and GTIDs name a transaction from before and one from after it."""
    chain, parsed = [*ORDINARY, *RESET], parse_place(place)
    with pytest.raises(VersionSetUnknown, match="occurs more than once"):
        batch_for_place("shop", chain, parsed)
    with pytest.raises(SpanRefused, match="occurs more than once") as caught:
        batches_in_span(Span(Earliest(), parsed), chain, {})
    assert "by a run" in caught.value.hint
    if place != f"gtid:{ONE}:1-5":  # all batches have something after it
        with pytest.raises(SpanRefused, match="occurs more than once"):
            batches_in_span(Span(parsed, Latest()), chain, {})
    runs = {"run-3": 3, "run-5": 5}
    span = Span(parse_place("run:run-3"), parse_place("run:run-5"))
    assert [item.id for item in batches_in_span(span, chain, runs)] == [3, 4, 5]


def test_a_moment_after_the_last_commit_counts_once_a_run_found_nothing_later() -> None:
    """Until then, a transaction with an earlier commit time may still come."""
    asked = BEGAN + timedelta(minutes=50)
    for place in ("2026-11-01T06:50:00Z", "binlog.000007@2026-11-01T06:50:00Z"):
        assert batch_for_place("shop", ORDINARY, parse_place(place), asked).id == 4
    for place in ("2026-11-01T06:50:01Z", "binlog.000007@2026-11-01T06:50:01Z"):
        with pytest.raises(VersionSetUnknown, match="does not show"):
            batch_for_place("shop", ORDINARY, parse_place(place), asked)


def test_before_the_first_there_is_none() -> None:
    with pytest.raises(VersionSetUnknown, match="nothing was acknowledged yet"):
        batch_for_place("shop", [], None)
