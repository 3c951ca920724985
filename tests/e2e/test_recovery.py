"""A ledger that is thrown away, also while a run is killed: the one that is made from the lake goes
on, though that was killed as well, and ends equal to MySQL with every transaction in the lake once.
"""

from __future__ import annotations

import shutil
from random import Random

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from lockstep.pipeline.values.gtid import GtidSet
from tests.chance import seed_of
from tests.e2e.conftest import Follow
from tests.e2e.points import Point
from tests.e2e.project import Project, empty_ledger
from tests.fix_mysql import MySqlStand

KILLS = [
    (Point.CAPTURE_RECORDED, "after", 1),
    (Point.CHANGES_PUBLISHED, "after", 2),
    (Point.MIRROR_STEP, "after", 2),
    (Point.MIRROR_EVOLVED, "after", 1),
    (Point.MIRROR_WRITTEN, "after", 1),
    (Point.MIRROR_WRITTEN, "after", 2),
    (Point.BATCH_ACKNOWLEDGED, "before", 1),
]


def forget(project: Project) -> None:
    """The ledger is gone, and an empty one is in its place."""
    project.at_rest()
    shutil.rmtree(project.folder / ".lockstep")
    shutil.copytree(empty_ledger(), project.folder / ".lockstep" / "ledger")


def rows(project: Project, folder: str) -> list[dict[str, object]]:
    table = DeltaTable(project.lake / "shop" / folder)
    return list(pa.table(table.to_pyarrow_table()).to_pylist())


def executed(mysql: MySqlStand) -> GtidSet:
    return GtidSet.parse(str(mysql.rows("select @@global.gtid_executed")[0][0]))


class Writer:
    """Statements by chance: rows of a table with a key and of one without, structures of both, a
    table that comes and goes."""

    def __init__(self, mysql: MySqlStand, name: str, seed: int) -> None:
        self.random = Random(seed)
        self.mysql, self.name = mysql, name
        self.number = 0
        mysql.execute(
            f"use {name}",
            "create table keyed (id int primary key, a int, b varchar(20))",
            "create table bare (n int, s varchar(20))",
            "insert into keyed values (1, 1, 'x'), (2, 2, 'y'), (3, 3, 'z')",
            "insert into bare values (1, 'x'), (1, 'x'), (2, 'y')",
        )

    def write(self) -> None:
        self.mysql.execute(f"use {self.name}", *self._rows(), *self._structures(), *self._rows())

    def _rows(self) -> list[str]:
        self.number += 1
        n = self.number + 10
        return [
            f"insert into keyed (id) values ({n})",
            f"update keyed set a = coalesce(a, 0) + 1 where id <= {self.random.randrange(n)}",
            f"insert into bare (n, s) values ({n % 5}, 'w'), ({n % 5}, 'w')",
            f"delete from bare where n = {self.random.randrange(5)} limit 1",
        ]

    def _structures(self) -> list[str]:
        number = self.number
        every = [
            f"alter table keyed add column c{number} int not null default {number}",
            "alter table keyed modify column a bigint",
            f"alter table bare add column d{number} varchar(9) default 'd'",
            f"create table late{number} (id int primary key)",
        ]
        # Two steps at least, so that a run can be killed between them.
        renamed = f"alter table keyed rename column b to b{number}, add column b int"
        return [*self.random.sample(every, 1), renamed]


DRAWN = 1
"""So many kills, by chance, in `make test`; all of them, one behind the other, in `make soak`."""


@pytest.mark.parametrize("kills", [DRAWN, pytest.param(len(KILLS), marks=pytest.mark.soak)])
def test_a_ledger_thrown_away(mysql: MySqlStand, database: str, follow: Follow, kills: int) -> None:
    seed = seed_of("SOAK_SEED")
    project, before = follow(), executed(mysql)
    writer = Writer(mysql, database, seed)
    project.run("run")
    for number, kill in enumerate(writer.random.sample(KILLS, kills)):
        print(number, kill)
        writer.write()
        if number % 2:
            project.run("run")
            writer.write()
        project.killed(*kill)
        forget(project)
        writer.write()
        project.killed(Point.CAPTURE_RECORDED, "after", 1, "recover", "--yes")
        interrupted = "an interrupted recovery of the ledger from the lake"
        assert f"{interrupted} would be finished" in project.run("recover").stdout
        assert not project.json("recover", "--yes")["read_again"]
        project.run("run")
        assert project.proven()
    assert project.status()["open_batches"] == []
    found = [str(row["_gtid"]) for row in rows(project, "_transactions")]
    assert len(found) == len(set(found))
    read = executed(mysql).difference(before)
    assert GtidSet.parse(",".join(found)).contains(read)
