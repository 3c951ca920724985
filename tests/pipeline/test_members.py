"""Which transactions of an index a GTID set holds, and the set that an index makes."""

from __future__ import annotations

import random
from uuid import UUID

import numpy as np
import pytest

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


def random_mysql(generator: random.Random) -> Integers:
    def one() -> tuple[int, int, int, int]:
        number = generator.randint(1, 30)
        match generator.randint(0, 4):
            case 0:
                return ANONYMOUS, 0, 0, 0
            case 1:
                return TAGGED, generator.randint(0, 1), 0, number
            case _:
                return mysql(generator.choice(UUIDS), number)

    return index(*(one() for _ in range(generator.randint(0, 60))))


def random_mariadb(generator: random.Random) -> Integers:
    return index(
        *(
            (MARIADB, generator.randint(0, 2), generator.randint(1, 11), generator.randint(1, 30))
            for _ in range(generator.randint(0, 60))
        )
    )


def random_set(generator: random.Random, flavour: str) -> GtidSet:
    parts = []
    for _ in range(generator.randint(0, 12)):
        first = generator.randint(1, 30)
        last = generator.randint(first, 32)
        if flavour == "mysql":
            parts.append(f"{generator.choice([*UUIDS, *SOURCES])}:{first}-{last}")
        else:
            parts.append(f"{generator.randint(0, 2)}-{generator.randint(1, 11)}-{last}")
    return GtidSet.parse(",".join(parts))


@pytest.mark.parametrize("flavour", ["mysql", "mariadb"])
def test_members_are_those_whose_own_set_is_contained(flavour: str) -> None:
    """For many at once the same as for each; an anonymous one never is."""
    generator = random.Random(5)
    make = random_mysql if flavour == "mysql" else random_mariadb
    for _ in range(200):
        transactions, gtids = make(generator), random_set(generator, flavour)
        assert membership(transactions, SOURCES, gtids).tolist() == [
            bool(text) and _holds(gtids, text)
            for text in (gtid_text(row, SOURCES) for row in transactions)
        ]


def _holds(gtids: GtidSet, text: str) -> bool:
    separator = ":" if ":" in text else "-"
    source, _, number = text.rpartition(separator)
    return any(a <= int(number) <= b for a, b in gtids.intervals.get(source, ()))


@pytest.mark.parametrize("flavour", ["mysql", "mariadb"])
def test_the_set_of_an_index_is_the_union_of_its_gtids(flavour: str) -> None:
    """However sources take turns, and told at once or in parts."""
    generator = random.Random(6)
    make = random_mysql if flavour == "mysql" else random_mariadb
    for _ in range(200):
        transactions = make(generator)
        texts = [text for row in transactions if (text := gtid_text(row, SOURCES))]
        expected = GtidSet.parse(",".join(texts))
        assert gtid_set(transactions, SOURCES) == expected
        read = GtidCollector()
        for part in np.array_split(transactions, 3):
            read.add(part, list(SOURCES) if generator.randint(0, 1) else SOURCES)
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
