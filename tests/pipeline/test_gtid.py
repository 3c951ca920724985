"""GTID sets are values with the algebra of sets and the text of MySQL and MariaDB."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep.pipeline.values.gtid import GtidSet

UUIDS = [f"{n:08x}-00cd-0000-0000-000000000001" for n in range(3)]
SERVERS = ["0-1", "0-2", "0-10", "2-1", "10-1"]
Model = dict[str, set[int]]


def models(sources: list[str]) -> st.SearchStrategy[Model]:
    numbers = st.sets(st.integers(1, 30), max_size=12)
    return st.dictionaries(st.sampled_from(sources), numbers, max_size=4)


MYSQL = models([*UUIDS, f"{UUIDS[0]}:tag", f"{UUIDS[0]}:_b9"])
MARIADB = models(SERVERS)
PAIRS = st.tuples(MYSQL, MYSQL) | st.tuples(MARIADB, MARIADB)


def single(source: str, number: int) -> str:
    """The text of a set with this one member."""
    return f"{source}-{number}..{number}" if source in SERVERS else f"{source}:{number}"


def built(model: Model) -> GtidSet:
    return GtidSet.parse(",".join(single(s, n) for s, ns in model.items() for n in ns))


def members(gtids: GtidSet) -> set[tuple[str, int]]:
    return {
        (source, number)
        for source, spans in gtids.intervals.items()
        for first, last in spans
        for number in range(first, last + 1)
    }


def pairs(model: Model) -> set[tuple[str, int]]:
    return {(source, number) for source, numbers in model.items() for number in numbers}


@given(PAIRS)
def test_a_gtid_set_behaves_as_the_plain_set_of_its_members(both: tuple[Model, Model]) -> None:
    """Union, difference and containment are those of sets of (source, number), and equal sets are
    equal values, however they came to be."""
    (a, b), (one, other) = map(built, both), map(pairs, both)
    for found, expected in ((a.union(b), one | other), (a.difference(b), one - other)):
        assert members(found) == expected
        same = GtidSet.parse(",".join(single(*member) for member in expected))
        assert (found, hash(found)) == (same, hash(same))
    assert a.contains(b) == (other <= one)
    assert bool(a) == bool(one)


@given(MYSQL | MARIADB)
def test_text_is_canonical(model: Model) -> None:
    """Equal sets have equal text, reading it gives the set back, and intervals are
    disjoint, ascending and apart."""
    one = built(model)
    again = GtidSet.parse(str(one))
    assert (again, str(again)) == (one, str(one))
    for spans in one.intervals.values():
        bounds = [number for span in spans for number in span]
        assert bounds == sorted(bounds)
        assert all(b[0] - a[1] > 1 for a, b in pairwise(spans))


@given(st.lists(st.tuples(st.sampled_from(SERVERS), st.integers(1, 99)), max_size=8))
def test_a_union_of_mariadb_states_is_the_maximum_of_each_server(
    gtids: list[tuple[str, int]],
) -> None:
    """`0-1-5` is everything of server 1 in domain 0 up to 5."""
    highest: dict[str, int] = {}
    united = GtidSet()
    for source, number in gtids:
        highest[source] = max(number, highest.get(source, 0))
        united = united.union(GtidSet.parse(f"{source}-{number}"))
    expected = [f"{source}-{highest[source]}" for source in SERVERS if source in highest]
    assert str(united) == ",".join(expected)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"{UUIDS[1]}:3:1-2:5, {UUIDS[0]}:tag:7:8", f"{UUIDS[0]}:tag:7-8,{UUIDS[1]}:1-3:5"),
        (f"{UUIDS[0].upper()}:TAG:7", f"{UUIDS[0]}:tag:7"),
        (f"{UUIDS[0]}:1-3,\n{UUIDS[1]}:1", f"{UUIDS[0]}:1-3,{UUIDS[1]}:1"),
        (f" {UUIDS[0]} : 1 - 3 , , {UUIDS[0]}:7\t", f"{UUIDS[0]}:1-3:7"),
        (f"{UUIDS[0]}:1:tag:2:1-3:b:4:tag:9", f"{UUIDS[0]}:1:b:4:tag:1-3:9"),
        (f"{UUIDS[0]}:5-9:1-6:9223372036854775807", f"{UUIDS[0]}:1-9:9223372036854775807"),
        ("10-1-3,2-1-3,0-10-7,0-2-5,0-1-9", "0-1-9,0-2-5,0-10-7,2-1-3,10-1-3"),
        ("4294967295-4294967295-9223372036854775807",) * 2,
        ("00-01-03, 0-1-2", "0-1-3"),
        ("0-1-6..7,0-1-9..9", "0-1-6..7,0-1-9..9"),
        ("0-1-1..7", "0-1-7"),
        ("0-1-0", ""),
        ("", ""),
    ],
)
def test_text_is_the_servers(text: str, expected: str) -> None:
    """Upper case, white space, repetition and any order are read; one text is written."""
    assert str(GtidSet.parse(text)) == expected


def test_a_difference_of_mariadb_names_the_numbers_between() -> None:
    """What begins after 1 cannot be written as MariaDB would; first and last are named."""
    difference = GtidSet.parse("0-1-7,0-2-3").difference(GtidSet.parse("0-1-5"))
    assert str(difference) == "0-1-6..7,0-2-3"


@pytest.mark.parametrize(
    ("text", "flavour"),
    [("", None), (f"{UUIDS[0]}:1", "mysql"), (f"{UUIDS[0]}:t:1", "mysql"), ("0-1-1", "mariadb")],
)
def test_a_set_knows_whose_it_is(text: str, flavour: str | None) -> None:
    """One look at a set tells MySQL's from MariaDB's; the empty one is nobody's."""
    assert GtidSet.parse(text).flavour == flavour


def test_sources_are_named_in_order() -> None:
    """Who made the transactions, tags apart."""
    gtids = GtidSet.parse(f"{UUIDS[1]}:1:tag:4,{UUIDS[0]}:2")
    assert gtids.sources == (UUIDS[0], UUIDS[1], f"{UUIDS[1]}:tag")


def test_mysql_and_mariadb_do_not_mix() -> None:
    """No server has both, so a set of both is a mistake; they never contain each other."""
    mysql, mariadb = GtidSet.parse(f"{UUIDS[0]}:1"), GtidSet.parse("0-1-1")
    with pytest.raises(ValueError, match="never both"):
        GtidSet.parse(f"{mysql},{mariadb}")
    with pytest.raises(ValueError, match="never both"):
        mariadb.union(mysql)
    assert not mysql.contains(mariadb)
    assert mysql.difference(mariadb) == mysql


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("abc:1", "<uuid>:1-5"),
        ("abc", "<domain>-<server>-<number> such as 0-1-5"),
        ("1-2", "<domain>-<server>-<number> such as 0-1-5"),
        ("1-2-3:4", "<uuid>:1-5"),
        (UUIDS[0], "<uuid>:1-5"),
        (f"{UUIDS[0]}:", "an interval such as 1-5"),
        (f"{UUIDS[0]}:0", "an interval such as 1-5"),
        (f"{UUIDS[0]}:5-3", "an interval such as 1-5"),
        (f"{UUIDS[0]}:1-", "an interval such as 1-5"),
        (f"{UUIDS[0]}:1 2", "an interval such as 1-5"),
        (f"{UUIDS[0]}:1-2-3", "an interval such as 1-5"),
        (f"{UUIDS[0]}:٣", "an interval such as 1-5"),
        (f"{UUIDS[0]}:9223372036854775808", "at most 9223372036854775807"),
        (f"{UUIDS[0]}:tag", "<uuid>:<tag>:1-5"),
        (f"{UUIDS[0]}:1:tag", "<uuid>:<tag>:1-5"),
        (f"{UUIDS[0]}:9tag:1", "nor a tag"),
        (f"{UUIDS[0]}:{'a' * 33}:1", "nor a tag"),
        ("0-4294967296-1", "up to 4294967295"),
        ("0-1-9223372036854775808", "at most 9223372036854775807"),
        ("0-1-7..6", "numbers ascend"),
        ("0-1-0..6", "numbers ascend"),
    ],
)
def test_malformed_sets_are_refused(text: str, expected: str) -> None:
    """What is no GTID set is an error that says what one looks like."""
    with pytest.raises(ValueError, match=re.escape(expected)):
        GtidSet.parse(text)


def test_a_sentence_about_a_long_text_is_short() -> None:
    """A megabyte that is no set does not come back in the message."""
    with pytest.raises(ValueError, match="…") as caught:
        GtidSet.parse("x" * 1_000_000)
    assert len(str(caught.value)) < 300


@given(MYSQL | MARIADB, st.integers(0, 120))
def test_a_shortened_set_says_what_it_leaves_out(model: Model, limit: int) -> None:
    """The text in full, or its first intervals within the limit and the number of the rest."""
    one = built(model)
    count = sum(map(len, one.intervals.values()))
    text = one.shortened_text(limit)
    shown, _, rest = text.partition(" and ")
    kept = GtidSet.parse(shown)
    left_out = int(rest.partition(" ")[0]) if rest else 0
    assert sum(map(len, kept.intervals.values())) + left_out == count
    assert one.contains(kept)
    assert str(one).startswith(shown)
    assert len(shown) <= limit or count - left_out == 1


def test_a_set_of_many_holes_makes_a_short_message() -> None:
    """2,000 intervals are shown as the first few and a number."""
    numbers = ":".join(map(str, range(1, 4_001, 2)))
    text = GtidSet.parse(f"{UUIDS[0]}:{numbers}").shortened_text(60)
    assert text == f"{UUIDS[0]}:1:3:5:7:9:11:13:15:17 and 1,991 more intervals"
