"""Which version of a mirror can be an origin, when files of some are gone; and one that is idle for
so long that its log no longer has its last write."""

from __future__ import annotations

from itertools import product
from types import SimpleNamespace
from typing import Any, cast

import pytest

from lockstep.pipeline.values.intent import MirrorVersion
from lockstep.pipeline.values.table import TableName
from tests.fix_mysql import MySqlStand
from tests.mysql.reading import server
from tests.outside import RunPorts, earliest_readable_version, newest_readable_version
from tests.positions.follower import SOURCE, Follower
from tests.twins.lake import MemoryCommit

VERSIONS = [
    MirrorVersion(number, TableName("shop", "t"), "shop/shop/t", number, number)
    for number in reversed(range(4))
]


@pytest.mark.parametrize("gone", [*product((False, True), repeat=4)])
def test_if_one_way_finds_a_version_so_does_the_other(gone: tuple[bool, ...]) -> None:
    """A rebuild begins with the newest that can be read, a reload with an early one: the oldest,
    unless that is gone."""

    def reason_unreadable(mirror: str, version: int, **_: Any) -> str | None:
        return "a file of it is missing" if gone[version] else None

    ports = cast(
        "RunPorts", SimpleNamespace(mirrors=SimpleNamespace(reason_unreadable=reason_unreadable))
    )
    readable = [number for number in range(4) if not gone[number]]
    newest = newest_readable_version(ports, VERSIONS)
    earliest = earliest_readable_version(ports, VERSIONS)
    assert (newest and newest.delta_version) == (readable[-1] if readable else None)
    assert (earliest is None) == (newest is None)
    assert earliest is None or earliest.delta_version in readable
    if not gone[0]:
        assert earliest == VERSIONS[-1]


def test_a_mirror_whose_log_lost_its_last_write_is_written_on(
    mysql: MySqlStand, database: str
) -> None:
    """Nothing changed for longer than its log is kept, while another program's VACUUM committed to
    it every night. New columns come all the same."""
    follower = Follower(server(mysql), [f"{database}.*"], start="snapshot")
    create = "create table {} (id int primary key, v int)"
    mysql.execute(create.format("a"), create.format("b"), database=database)
    mysql.execute("insert into a values (1, 1)", "insert into b values (1, 1)", database=database)
    follower.run()
    mirror = follower.states()[TableName(database, "a")].mirror
    commits = follower.lake.tables[mirror]
    for operation in ("VACUUM START", "VACUUM END"):
        commits.append(MemoryCommit("", 0, "", commits[-1].rows, operation=operation))
    mysql.execute("update b set v = 2", database=database)
    follower.run()
    assert follower.ledger.examined_versions(SOURCE)[mirror] == len(commits) - 1
    follower.lake.begins[mirror] = len(commits) - 1
    mysql.execute("alter table a add w int default 7", "update a set v = 2", database=database)
    follower.run()
    assert follower.mirror(f"{database}.a") == [{"id": 1, "v": 2, "w": 7}]
