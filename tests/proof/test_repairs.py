"""`verify --repair`: in whichever way a mirror is wrong, it is right behind the next run; and rows
that their keys name are read by themselves."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import pytest

from lockstep.pipeline.values.table import TableName
from tests.chance import by_chance
from tests.fix_mysql import MySqlStand
from tests.outside import give_reload, plan_repairs
from tests.proof.test_while_writing import ALIKE, Hot, made, spoiled
from tests.proof.writing import COLUMNS, KEYLESS, SPOILED

pytestmark = pytest.mark.servers("newest", "8.0", "5.7")


def repaired(hot: Hot, wrong: Collection[TableName]) -> set[TableName]:
    """What the command does, and the run behind it; tables whose rows were read by themselves."""
    follower, found = hot.follower, hot.verify()
    assert {table.table for table in found.tables if not table.equal} == set(wrong)
    follower.run()
    repairs = plan_repairs(follower.ports(), found, "ann")
    assert {repair.table for repair in repairs} == set(wrong)
    for repair in repairs:
        ports = follower.ports()
        if repair.condition_rows is not None:
            follower.steps(
                replace(ports, source=replace(ports.source, reread_rows=repair.condition_rows))
            )
            continue
        with follower.leased() as lease:
            give_reload(ports, lease, repair)
    alone = {repair.table for repair in repairs if repair.condition_rows is not None}
    hot.do(*(f"update {table} set d = '2025-01-01' where id % 50 = 3" for table in wrong))
    follower.run()
    return alone


@pytest.mark.thin
@pytest.mark.parametrize(
    ("columns", "count"), [(COLUMNS, len(SPOILED)), (KEYLESS, 3)], ids=["a key", "no key"]
)
def test_however_a_mirror_is_wrong(
    mysql: MySqlStand, database: str, columns: str, count: int
) -> None:
    """The log changes the table before, between and behind. Of a row that stands twice a merge
    would leave two. Without a key a table is read as a whole, however it is wrong: three ways by
    chance."""
    ways = by_chance().sample(sorted(SPOILED), count)
    print(ways)
    hot = made(mysql, database, columns, ALIKE[:count])
    wrong = spoiled(hot, ways)
    for table in wrong:
        hot.do(
            f"update {table} set c = c + 1 where id % 40 = 7",
            f"delete from {table} where id % 90 = 1",
        )
    by_key = {table for table, how in wrong.items() if how != "a row is doubled"}
    assert repaired(hot, wrong) == (by_key if columns == COLUMNS else set())
    found = hot.verify()
    assert found.equal, found
