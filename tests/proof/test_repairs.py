"""`verify --repair`: in whichever way a mirror is wrong, it is right behind the next run; and rows
that their keys name are read by themselves."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pipeline.runs.acknowledge import acknowledge
from pipeline.runs.capture import capture
from pipeline.runs.comparing.verify_outcome import parts_of, repair
from pipeline.runs.merge import merge
from pipeline.table import TableName
from tests.fix_mysql import MySqlStand
from tests.positions.follower import SOURCE
from tests.proof.test_while_writing import Hot, made
from tests.proof.writing import COLUMNS, KEYLESS, SPOILED, spoil


def repaired(hot: Hot) -> list[TableName]:
    """What the command does, and the run behind it; tables whose rows were read by themselves."""
    follower, found = hot.follower, hot.verify()
    assert [table.table for table in found.tables if not table.equal] == [hot.table]
    follower.run()
    parts = parts_of(follower.work(), found, "ann")
    with follower.ledger.lock(SOURCE, "test", None) as lease:
        for part in parts:
            work = follower.work()
            work = replace(work, source=replace(work.source, part=part))
            capture(work, lease)
            merge(work, lease)
            acknowledge(work, lease)
        if not parts:
            assert repair(follower.work(), lease, found) == (hot.table,)
    hot.do("update hot set d = '2025-01-01' where id % 50 = 3")
    follower.run()
    return [part.table for part in parts]


@pytest.mark.parametrize("columns", [COLUMNS, KEYLESS], ids=["a key", "no key"])
def test_however_a_mirror_is_wrong(mysql: MySqlStand, database: str, columns: str) -> None:
    """The log changes the table before, between and behind. Of a row that stands twice a merge
    would leave two."""
    hot = made(mysql, database, columns)
    for how, change in SPOILED.items():
        spoil(hot.follower, hot.table, change)
        hot.do("update hot set c = c + 1 where id % 40 = 7", "delete from hot where id % 90 = 1")
        alone = columns == COLUMNS and how != "a row is doubled"
        assert repaired(hot) == [hot.table] * alone, how
        found = hot.verify()
        assert found.equal, (how, found)
