"""Which transactions of an index a GTID set holds, and the set that an index makes."""

from __future__ import annotations

from uuid import UUID

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep.pipeline.binlog.stream import ring as columns
from lockstep.pipeline.binlog.stream.ring import ANONYMOUS, MARIADB, MYSQL, TAGGED, Integers
from lockstep.pipeline.binlog.transactions.identity import (
    GtidCollector,
    gtid_set,
    gtid_text,
    membership,
)
from lockstep.pipeline.values.errors import DamagedEvent
from lockstep.pipeline.values.gtid import GtidSet

UUIDS = ("00000001-0000-0000-0000-000000000001", "ffffffff-ffff-ffff-8000-00000000000f")
SOURCES = (f"{UUIDS[0]}:one", f"{UUIDS[1]}:two")


def mysql(uuid: str, number: int) -> tuple[int, int, int, int]:
    halves = UUID(uuid).bytes[:8], UUID(uuid).bytes[8:]
    high, low = (int.from_bytes(half, "big", signed=True) for half in halves)
    return MYSQL, high, low, number


def index(*identities: tuple[int, int, int, int]) -> Integers:
    made = np.zeros((len(identities), columns.TRANSACTION_COLUMNS), np.int64)
    for row, identity in zip(made, identities, strict=True):
        row[columns.GTID_KIND : columns.GTID_NUMBER + 1] = identity
    return made


NUMBERS = st.integers(1, 30)
LOGS = {
    "mysql": st.just((ANONYMOUS, 0, 0, 0))
    | st.tuples(st.just(TAGGED), st.integers(0, 1), st.just(0), NUMBERS)
    | st.builds(mysql, st.sampled_from(UUIDS), NUMBERS),
    "mariadb": st.tuples(st.just(MARIADB), st.integers(0, 2), st.integers(1, 11), NUMBERS),
}
SETS = {
    "mysql": st.builds(
        lambda source, first, more: f"{source}:{first}-{first + more}",
        *(st.sampled_from([*UUIDS, *SOURCES]), NUMBERS, st.integers(0, 9)),
    ),
    "mariadb": st.builds("{}-{}-{}".format, st.integers(0, 2), st.integers(1, 11), NUMBERS),
}


@pytest.mark.parametrize("flavour", LOGS)
@given(data=st.data())
def test_members_are_those_whose_own_set_is_contained(flavour: str, data: st.DataObject) -> None:
    """For many at once the same as for each; an anonymous one never is."""
    transactions = index(*data.draw(st.lists(LOGS[flavour], max_size=60)))
    gtids = GtidSet.parse(",".join(data.draw(st.lists(SETS[flavour], max_size=12))))
    assert membership(transactions, SOURCES, gtids).tolist() == [
        bool(text) and _holds(gtids, text)
        for text in (gtid_text(row, SOURCES) for row in transactions)
    ]


def _holds(gtids: GtidSet, text: str) -> bool:
    separator = ":" if ":" in text else "-"
    source, _, number = text.rpartition(separator)
    return any(a <= int(number) <= b for a, b in gtids.intervals.get(source, ()))


@pytest.mark.parametrize("flavour", LOGS)
@given(data=st.data())
def test_the_set_of_an_index_is_the_union_of_its_gtids(flavour: str, data: st.DataObject) -> None:
    """However sources take turns, and told at once or in parts."""
    transactions = index(*data.draw(st.lists(LOGS[flavour], max_size=60)))
    texts = [text for row in transactions if (text := gtid_text(row, SOURCES))]
    expected = GtidSet.parse(",".join(texts))
    assert gtid_set(transactions, SOURCES) == expected
    read = GtidCollector()
    for part in np.array_split(transactions, 3):
        read.add(part, list(SOURCES) if data.draw(st.booleans()) else SOURCES)
    assert read.merged_set() == expected


def test_a_number_that_no_server_gives_is_damage() -> None:
    """It would make a set that nobody can print."""
    with pytest.raises(DamagedEvent, match="the number -1"):
        gtid_set(index(mysql(UUIDS[0], -1)), ())


@pytest.mark.parametrize("together", [True, False])
def test_gtids_of_two_kinds_are_no_log(together: bool) -> None:
    """MySQL's and MariaDB's, read at once or one after the other."""
    read = GtidCollector()
    read.add(index(mysql(UUIDS[0], 1)), [])
    if not together:
        read.merged_set()
    read.add(index((MARIADB, 0, 1, 1)), [])
    with pytest.raises(DamagedEvent, match="of MySQL and of MariaDB"):
        read.merged_set()
