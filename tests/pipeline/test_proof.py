"""Hashes of rows, sums of them, and what follows where they do not fit."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from decimal import Decimal
from random import Random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as some

from lockstep.pipeline.proof.canonical import (
    canonical_form,
    decimal_texts,
    double_text,
    double_texts,
    geometry_storage_bytes,
    text_expression,
)
from lockstep.pipeline.proof.hashes import MODULUS, RowHasher, RowSum
from lockstep.pipeline.proof.rows import (
    RowHashes,
    RowsBeforeLog,
    RowTally,
    WrongRows,
    pair_hashes,
    share_indexes,
)
from lockstep.pipeline.proof.running_sum import RunningSum, sums_by_transaction
from lockstep.pipeline.proof.sampling import STRETCH_ROWS, stretch_starts
from lockstep.pipeline.schema.types import arrow_type
from lockstep.pipeline.values.errors import TableError
from lockstep.pipeline.values.position import Coordinates, LogFile
from lockstep.pipeline.values.table import Column, TableName, TableStructure

STRUCTURE = TableStructure(
    TableName("shop", "t"),
    (
        Column("id", "int"),
        Column("a", "varchar", length=40, charset="utf8mb4"),
        Column("b", "varbinary", length=40, charset="binary"),
        Column("c", "text", charset="utf8mb4"),
        Column("d", "double"),
    ),
    ("id",),
)
HASHER = RowHasher(STRUCTURE, "mysql")
ROWS = some.tuples(
    some.none() | some.integers(-5, 5),
    some.none() | some.text(",:0123NULL'", max_size=4),
    some.none() | some.binary(max_size=3),
    some.none() | some.text("a, ", max_size=2),
    some.none() | some.sampled_from([0.0, -0.0, 0.1, 1e300, 5e-324]),
)


def batch(*rows: tuple[object, ...]) -> pa.RecordBatch:
    columns = [
        pa.array([row[at] for row in rows], field.type) for at, field in enumerate(HASHER.schema)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=HASHER.schema)


@given(ROWS, ROWS)
def test_rows_have_one_hash_if_they_are_equal(
    one: tuple[object, ...], other: tuple[object, ...]
) -> None:
    """NULL is not the empty text, no value runs into the next one, -0.0 is not 0.0."""
    same = repr(one) == repr(other)
    first, second = HASHER.row_hashes(batch(one, other)).tolist()
    assert (first == second) == same


def test_a_sum_notices_what_others_do_not() -> None:
    """Two rows that exchange a value; one that stands twice, and another that is gone."""
    rows = [(n, f"name {n}", None, None, n / 3) for n in range(50)]
    swapped = [(n, f"name {[*range(50)][n ^ 1]}", None, None, n / 3) for n in range(50)]
    doubled = [*rows[:-1], rows[0]]
    sums = {HASHER.row_sum(batch(*each)) for each in (rows, swapped, doubled)}
    assert len(sums) == 3
    assert HASHER.row_sum(batch(*rows)) == HASHER.row_sum(batch(*reversed(rows)))


@given(some.integers(0, MODULUS - 1), some.integers(0, MODULUS - 1), some.integers(0, 99))
def test_what_is_added_can_be_taken_away(one: int, other: int, rows: int) -> None:
    start, change = RowSum(rows, one), RowSum(1, other)
    assert start + change - change == start


@given(some.floats(allow_nan=False, allow_infinity=False))
def test_a_double_is_its_shortest_text(value: float) -> None:
    """Which reads back as the same double; whole columns are printed as single values are."""
    assert repr(float(double_text(value))) == repr(value)
    (printed,) = double_texts(pa.array([value])).to_pylist()
    assert printed.decode() == double_text(value)


@given(some.decimals(-(10**9), 10**9, places=8, allow_nan=False))
def test_a_decimal_has_all_digits_of_its_scale(value: Decimal) -> None:
    (printed,) = decimal_texts(pa.array([value], pa.decimal128(20, 8))).to_pylist()
    zero = f"{value:.8f}".removeprefix("-") if not value else f"{value:.8f}"
    assert printed.decode() == zero


def test_a_geometry_is_what_the_server_stores() -> None:
    point = bytes.fromhex("0101000000") + bytes(16)
    with_reference = bytes.fromhex("0101000020e6100000") + bytes(16)
    assert geometry_storage_bytes(point) == bytes(4) + point
    assert geometry_storage_bytes(with_reference) == bytes.fromhex("e6100000") + point
    assert geometry_storage_bytes(b"") == b""


def test_a_type_that_is_not_listed_is_not_guessed() -> None:
    with pytest.raises(TableError, match="does not compare"):
        canonical_form(Column("x", "cube"), "mysql")


def test_names_may_hold_anything() -> None:
    """A column's name is not taken for a mark of the expression."""
    assert "`{n}{c}`" in text_expression(Column("{n}{c}", "int"), "`{n}{c}`", "mysql")
    assert arrow_type(Column("x", "int")) == pa.int32()


# -- carried through the log --------------------------------------------------------------


def at(offset: int) -> Coordinates:
    return Coordinates(LogFile("binlog", 1), offset)


@dataclass
class Log:
    """Transactions that end at these offsets."""

    ends: list[int]

    @property
    def count(self) -> int:
        return len(self.ends)

    def end(self, number: int) -> Coordinates:
        return at(self.ends[number])

    def through(self, place: Coordinates) -> int:
        return bisect_right(self.ends, place.offset)

    def gtids(self, number: int) -> str:
        return f"a:1-{self.ends[number] // 10}"


@given(some.randoms(use_true_random=False), some.booleans())
def test_a_read_stands_behind_one_transaction(chance: Random, spoiled: bool) -> None:
    """Whichever it is, wherever the marks around it lie, however the log is cut into pieces; and
    behind none if the mirror was wrong."""
    count = chance.randint(1, 12)
    changes = [RowSum(chance.randint(-1, 1), chance.randrange(MODULUS)) for _ in range(count)]
    touched = [chance.random() < 0.6 for _ in range(count)]
    start = RowSum(5, chance.randrange(MODULUS))
    states = [start]
    for change, touches in zip(changes, touched, strict=True):
        states.append(states[-1] + change if touches else states[-1])
    ends = [10 * (number + 1) for number in range(count)]
    read = chance.randint(0, count)
    low, high = chance.randint(0, read), chance.randint(read, count)
    wrong = RowSum(0, 1)
    # Changes may make good what is wrong, by chance.
    assume(not spoiled or all(state + wrong != states[read] for state in states))
    mirror = start + wrong if spoiled else start
    carried = RunningSum(mirror, states[read], at(10 * low), at(10 * high), "low")
    cut = chance.randint(0, count)
    for first, end in ((0, cut), (cut, count)):
        which = [number - first for number in range(first, end) if touched[number]]
        of = [changes[number] for number in range(first, end) if touched[number]]
        carried.put(
            Log(ends[first:end]),
            np.array(which, np.int64),
            np.array([one.row_count for one in of], np.int64),
            np.array([one.hash_sum for one in of], np.uint64),
        )
    carried.compare()
    if spoiled:
        assert carried.match is None
        return
    assert carried.match is not None
    assert at(10 * low) <= carried.match.at <= at(10 * read)
    assert states[carried.match.at.offset // 10] == states[read]
    assert bool(carried.changes) == any(touched[low:high])


def test_images_are_added_up_by_transaction() -> None:
    """An update takes one away and adds another, modulo 2**64."""
    which, rows, totals = sums_by_transaction(
        np.array([4, 2, 4, 4]), np.array([-1, 1, 1, 1]), np.array([5, 7, 3, 1], np.uint64)
    )
    assert which.tolist() == [2, 4]
    assert rows.tolist() == [1, 1]
    assert totals.tolist() == [7, MODULUS - 1]


# -- which rows are wrong -----------------------------------------------------------------


def hashes(rows: dict[int, int]) -> RowHashes:
    return pair_hashes(np.array(list(rows), np.uint64), np.array(list(rows.values()), np.uint64))


@given(some.randoms(use_true_random=False))
def test_rows_are_told_whatever_is_written_meanwhile(chance: Random) -> None:
    """From what the source has at any later moment, and the images of the log up to a later one,
    what is wrong in a mirror of before is known to the row."""
    before = {key: chance.randrange(3) for key in range(8) if chance.random() < 0.7}
    now, images, states = dict(before), [], [dict(before)]
    for _ in range(chance.randint(0, 10)):
        key = chance.randrange(8)
        if key in now:
            images.append((key, now.pop(key), False))
        if chance.random() < 0.7:
            now[key] = chance.randrange(3)
            images.append((key, now[key], True))
        states.append(dict(now))
    lake = {key: row for key, row in before.items() if chance.random() < 0.8}
    lake |= {key: chance.randrange(3) for key in range(8) if chance.random() < 0.2}
    touch = RowsBeforeLog()
    columns = list(zip(*images, strict=True)) or [(), (), ()]
    touch.put(
        np.array(columns[0], np.uint64),
        np.array(columns[1], np.uint64),
        np.array(columns[2], np.bool_),
        np.ones(len(images), np.bool_),
    )
    wrong = touch.wrong_rows(hashes(chance.choice(states)), hashes(lake))
    assert wrong.only_source == before.keys() - lake.keys()
    assert wrong.only_lake == lake.keys() - before.keys()
    assert wrong.different == {k for k in before.keys() & lake.keys() if before[k] != lake[k]}


@given(
    some.dictionaries(some.integers(0, 40), some.integers(0, 2)),
    some.dictionaries(some.integers(0, 40), some.integers(0, 2)),
    some.dictionaries(some.integers(0, 40), some.none() | some.integers(0, 2)),
    some.integers(1, 9),
)
def test_shares_make_the_whole(
    source: dict[int, int], lake: dict[int, int], was: dict[int, int | None], of: int
) -> None:
    """Rows that are compared share by share are told as if they were compared at once, and so are
    the least of them."""
    touch = RowsBeforeLog(dict(was), set(list(was)[::3]))
    both = [hashes(source), hashes(lake)]
    whole, found = touch.wrong_rows(*both), WrongRows()
    for number, share in enumerate(touch.shares(of)):
        found |= share.wrong_rows(
            *(side[share_indexes(side["key"], of) == number] for side in both)
        )
    assert found == whole
    assert found.first(3).all_keys == frozenset(sorted(whole.all_keys)[:3])


def test_a_row_that_stands_twice_is_too_many() -> None:
    source = hashes({1: 5, 2: 6})
    wrong = RowsBeforeLog().wrong_rows(source, np.concatenate([source, source[:1]]))
    assert set(wrong.only_lake) == {1}
    assert not wrong.only_source | wrong.different


@given(
    some.dictionaries(some.integers(0, 20), some.integers(0, 2)),
    some.dictionaries(some.integers(0, 20), some.integers(0, 2)),
    some.dictionaries(some.integers(0, 20), some.none() | some.integers(0, 2)),
    some.sets(some.integers(0, 20)),
)
def test_a_mirror_may_keep_rows(
    source: dict[int, int], lake: dict[int, int], was: dict[int, int | None], twice: set[int]
) -> None:
    """One row of a key that the source does not have is no difference; anything else is."""
    touch, rows = RowsBeforeLog(dict(was)), hashes(lake)
    more = rows[[int(key) in twice for key in rows["key"]]]
    both = np.concatenate([rows, more])
    strict, found = (
        touch.wrong_rows(hashes(source), both, keeps_deleted=keeps) for keeps in (False, True)
    )
    there = {key for key, row in {**source, **was}.items() if row is not None}
    kept = lake.keys() - there - twice
    assert (found.only_source, found.different) == (strict.only_source, strict.different)
    assert (found.only_lake, found.kept_count) == (strict.only_lake - kept, len(kept))


def test_a_row_of_which_the_log_has_a_part_is_not_judged() -> None:
    """Only that it is there is known; the others are judged."""
    touch = RowsBeforeLog()
    one = np.array([1], np.uint64)
    touch.put(one, one, np.array([False]), np.array([False]))
    wrong = touch.wrong_rows(hashes({1: 9, 2: 2}), hashes({1: 4, 2: 3}))
    assert set(wrong.different) == {2}
    assert wrong.incomplete_count == 1


@given(some.randoms(use_true_random=False), some.booleans())
def test_rows_without_a_key_are_counted(chance: Random, spoiled: bool) -> None:
    """What was added and taken away between the marks may be in the read, or not."""
    lake = [chance.randrange(6) for _ in range(10)]
    now = list(lake)
    tally, states = RowTally(), []
    low = chance.randint(0, 8)
    for number in range(12):
        row = chance.randrange(6)
        sign = -1 if row in now and chance.random() < 0.5 else 1
        if sign < 0:
            now.remove(row)
        else:
            now.append(row)
        tally.put(np.array([row], np.uint64), [sign], after_low=number >= low)
        if number >= low - 1:
            states.append(list(now))
    if spoiled:
        lake.append(77)
    of = [np.array(rows, np.uint64) for rows in (chance.choice(states), lake)]
    wrong = tally.wrong_rows(*(pair_hashes(one, one) for one in of))
    assert wrong.only_source == frozenset()
    assert wrong.only_lake == ({77} if spoiled else frozenset())


@given(some.integers(-9, 9), some.integers(1, 500), some.integers(1, 100), some.randoms())
@example(0, 22, 21, Random(0))
def test_a_sample_has_the_rows_that_were_asked_for(
    least: int, numbers: int, rows: int, chance: Random
) -> None:
    """Of a table whose keys have no gap: stretches neither overlap nor end after its last row."""
    keys = range(least, least + numbers)
    starts = stretch_starts(keys[0], keys[-1], rows, chance)
    found = [key for start in starts for key in keys if start <= key < start + STRETCH_ROWS]
    assert len(found) == len(set(found))
    assert min(rows, numbers) <= len(found) < rows + STRETCH_ROWS
