"""Where a moment lies among times in any order, beside the count of what is on its wrong side."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lockstep.pipeline.binlog.stream import ring as columns
from lockstep.pipeline.binlog.stream.commit_times import NewestCommit
from lockstep.pipeline.model.batch import BatchTimes
from lockstep.pipeline.replay.spans import ids_at_or_after, ids_before
from lockstep.pipeline.values.division import Divider, Division, find_moment, find_moment_end

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
TIMES = st.lists(st.integers(0, 30), max_size=40)


def at(second: float) -> datetime:
    return EPOCH + timedelta(seconds=second)


def by_counting(times: list[int], moment: int) -> Division:
    """For each place, what is on its wrong side; the first of the best."""
    sides = [
        (
            sum(time >= moment for time in times[:place]),
            sum(time < moment for time in times[place:]),
        )
        for place in range(len(times) + 1)
    ]
    wrong = [late + early for late, early in sides]
    place = wrong.index(min(wrong))
    last = len(wrong) - 1 - wrong[::-1].index(min(wrong))
    return Division(place, *sides[place], last, wrong[0] - wrong[-1])


@given(times=TIMES, moment=st.integers(0, 31))
def test_the_place_has_the_fewest_on_its_wrong_side(times: list[int], moment: int) -> None:
    assert find_moment([at(time) for time in times], at(moment)) == by_counting(times, moment)


@given(
    items=st.lists(st.tuples(st.integers(0, 30), st.integers(1, 5)), max_size=20),
    moment=st.integers(0, 31),
)
def test_an_item_counts_as_often_as_it_weighs(items: list[tuple[int, int]], moment: int) -> None:
    each = by_counting([time for time, weight in items for _ in range(weight)], moment)
    times, weights = [at(time) for time, _ in items], [weight for _, weight in items]
    division = find_moment(times, at(moment), weights)
    assert sum(weights[: division.place]) == each.place
    assert sum(weights[: division.last_place]) == each.last_place


@given(times=TIMES.map(sorted), moment=st.integers(0, 31))
def test_where_times_ascend_it_is_before_the_first_at_or_after(
    times: list[int], moment: int
) -> None:
    """And the end of a moment is before the first that comes later."""
    told = [at(time) for time in times]
    place = sum(time < moment for time in times)
    balance = place - (len(times) - place)
    assert find_moment(told, at(moment)) == Division(place, 0, 0, place, balance)
    assert find_moment_end(told, at(moment)).place == sum(time <= moment for time in times)


@given(times=TIMES, moments=st.tuples(st.integers(0, 31), st.integers(0, 31)).map(sorted))
def test_a_later_moment_lies_no_earlier(times: list[int], moments: list[int]) -> None:
    """Whatever the times: what is between two moments is between their places."""
    told = [at(time) for time in times]
    first, second = (find_moment(told, at(moment)).place for moment in moments)
    assert first <= second


@given(times=TIMES.map(sorted), lies=st.lists(st.integers(0, 40), max_size=9), m=st.integers(0, 30))
@example(times=[1, 2], lies=[1], m=5)
def test_an_impossible_time_is_that_of_the_one_before(
    times: list[int], lies: list[int], m: int
) -> None:
    """However many there are, what is at its place without them stays there."""
    lied = [*times]
    for lie in lies:
        lied.insert(min(lie, len(lied)), 10**6)
    place = Divider(m, 100).divide(np.array(lied, np.int64)).place
    honest = [time for time in lied[:place] if time < 100]
    assert honest == [time for time in times if time < m]


def chain(*ends: int) -> list[BatchTimes]:
    begins = [None, *map(at, ends)]
    return [
        BatchTimes(number, "s", True, False, 1, begins[number], at(end))
        for number, end in enumerate(ends)
    ]


@pytest.mark.parametrize(
    ("ends", "later", "earlier"),
    [
        ((10, 20, 30, 40, 50), {2, 3, 4}, {0, 1, 2}),
        ((10, 20, 30, 40, 5), {2, 3, 4}, {0, 1, 2}),
        ((10, 90, 20, 30, 40), {1, 2, 3, 4}, {0, 1, 2, 3}),
        ((10, 20, 30, 1, 40), {2, 3, 4}, {0, 1, 2, 3, 4}),
    ],
)
def test_batches_of_a_moment(ends: tuple[int, ...], later: set[int], earlier: set[int]) -> None:
    """One that ends with a wrong time hides none of the others; where it leaves open which are
    meant, all are."""
    times = chain(*ends)
    assert ids_at_or_after(times, at(25)) == later
    assert ids_before(times, at(25)) == earlier


def test_a_batch_that_catches_up_is_judged_by_itself() -> None:
    """It stands behind the batches whose times it has."""
    again = BatchTimes(9, "s", True, True, 1, at(5), at(15))
    times = [*chain(10, 20, 30, 40), again]
    assert ids_at_or_after(times, at(12)) == {1, 2, 3, 9}
    assert ids_before(times, at(12)) == {0, 1, 9}
    assert 9 not in ids_at_or_after(times, at(16))
    assert 9 not in ids_before(times, at(5))


def test_the_newest_commit_of_a_batch() -> None:
    """Of those that were possible when it was read; if none was, that is when it ends."""

    def newest(*seconds: int) -> datetime | None:
        commit = NewestCommit(at(1000))
        for second in seconds:
            row = np.zeros((1, columns.TRANSACTION_COLUMNS), np.int64)
            row[0, columns.LAST_TIMESTAMP] = second
            commit.add(row)
        return commit.time

    assert newest() is None
    assert newest(5, 9, 7) == at(9)
    assert newest(5, 4_000_000_000, 7) == at(7)
    assert newest(4_000_000_000) == at(1000)
    assert newest(1030) == at(1030), "clocks differ a little"
