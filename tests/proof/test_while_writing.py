"""`verify` on real servers that never stand still: what is right is proven at a named place, and
what is wrong is found, whoever writes meanwhile."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from threading import Thread

import pytest

from lockstep.pipeline.proof.proven import ProofKind
from lockstep.pipeline.values.table import TableName
from tests.chance import by_chance
from tests.fix_mysql import MySqlStand
from tests.mysql.chunked import until
from tests.mysql.reading import server
from tests.outside import SilentProgress, StepProgress, VerifyReport, verify
from tests.positions.follower import Follower
from tests.proof.writing import COLUMNS, KEYLESS, KEYS, SPOILED, spoil, statement, writers

TIMES = 3

ALIKE = tuple(f"hot{number}" for number in range(len(SPOILED)))


@dataclass
class Hot:
    """A server's database with one table that is written to, and its follower."""

    stand: MySqlStand
    database: str
    follower: Follower

    @property
    def table(self) -> TableName:
        return TableName(self.database, "hot")

    def do(self, *statements: str) -> None:
        self.stand.execute(*statements, database=self.database)

    def verify(self) -> VerifyReport:
        return verify(self.follower.ports())


def made(
    stand: MySqlStand, database: str, columns: str = COLUMNS, alike: Sequence[str] = ()
) -> Hot:
    """`alike`: tables that are there besides, with the rows of `hot`."""
    chance = Random(1)
    rows = ", ".join(f"({n}, 'a{n}', {n}/3e0, {n}/7, '2024-01-01 00:00:00')" for n in range(KEYS))
    stand.execute(
        f"create table hot ({columns})",
        *(f"create table {name} like hot" for name in ("quiet", *alike)),
        database=database,
    )
    follower = Follower(server(stand), [f"{database}.*"])
    follower.run()
    stand.execute(
        f"insert into hot values {rows}",
        "insert into quiet select * from hot",
        *(statement(chance, "hot") for _ in range(50)),
        "insert ignore into hot values (-1, '', 0, 0, now()), (-2, null, 0, 0, now())",
        *(f"insert into {name} select * from hot" for name in alike),
        database=database,
    )
    follower.run()
    return Hot(stand, database, follower)


def spoiled(hot: Hot, ways: Sequence[str]) -> dict[TableName, str]:
    """One table for each of these ways of being wrong, and which way it is."""
    wrong = {TableName(hot.database, name): how for name, how in zip(ALIKE, ways, strict=False)}
    for table, how in wrong.items():
        spoil(hot.follower, table, SPOILED[how])
    return wrong


@pytest.fixture(params=["mysql", "mariadb"])
def stand(request: pytest.FixtureRequest) -> MySqlStand:
    found: MySqlStand = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def own(stand: MySqlStand) -> Iterator[str]:
    with stand.own_database() as name:
        yield name


@pytest.mark.thin
@pytest.mark.parametrize("columns", [COLUMNS, KEYLESS], ids=["a key", "no key"])
def test_a_hot_table_is_proven_while_it_is_written(
    stand: MySqlStand, own: str, columns: str
) -> None:
    """Every time, at a place of the log that is not behind the last one, and nobody waits."""
    hot = made(stand, own, columns)
    places = []
    with writers(stand, own, ["hot"]) as committed:
        for _ in range(TIMES):
            before = sum(committed)
            found = hot.verify()
            assert found.equal, found
            assert {table.proof for table in found.tables} <= {ProofKind.EXACT, ProofKind.PREFIX}
            places.append(next(table.place for table in found.tables if table.table == hot.table))
            while sum(committed) == before:
                pass  # they go on
    assert all(place is not None and place.gtids for place in places)
    assert sorted(places, key=lambda one: one.at) == places  # type: ignore[union-attr]
    assert sum(committed) > TIMES


@pytest.mark.parametrize("count", [3, pytest.param(len(SPOILED), marks=pytest.mark.soak)])
def test_a_wrong_row_is_found_while_it_is_written(stand: MySqlStand, own: str, count: int) -> None:
    """In whichever way it is wrong, some of them by chance, and whatever is written over it
    meanwhile: the mirror was wrong at its place. Tables that are right are proven beside it."""
    ways = by_chance().sample(sorted(SPOILED), count)
    print(ways)
    hot = made(stand, own, alike=ALIKE[:count])
    with writers(stand, own, ["hot", *ALIKE[:count]]):
        wrong = spoiled(hot, ways)
        told = {table.table: table for table in hot.verify().tables}
    assert {table.name for table in told if told[table].equal} == {"hot", "quiet"}
    for table, how in wrong.items():
        found = told[table]
        assert found.difference_count in (1, 2), how
        assert len(found.examples) in (1, 2), how


def test_rows_are_told_without_an_order_of_commits(mysql: MySqlStand, database: str) -> None:
    """Where transactions become visible in another order than the log's, rows are compared one
    by one: none is taken for wrong."""
    hot = made(mysql, database)
    mysql.execute("set global binlog_order_commits = off")
    try:
        with writers(mysql, database, ["hot"]):
            for _ in range(TIMES):
                assert hot.verify().equal
    finally:
        mysql.execute("set global binlog_order_commits = on")


class Figures(SilentProgress):
    """Keeps the figures of each step's last message."""

    def __init__(self) -> None:
        self.by_step: dict[str, Mapping[str, object]] = {}

    def tell(self, progress: StepProgress) -> None:
        [self.by_step[progress.step]] = progress.figures


def test_an_update_is_one_row_of_the_progress(
    mysql: MySqlStand, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its two images are not two rows, for `verify` as for a run."""
    monkeypatch.setattr("lockstep.pipeline.run.dump.log_reader._PROGRESS_SECONDS", 0)
    hot = made(mysql, database)
    hot.do("update hot set a = concat(a, 'x') where id between 10 and 200")
    figures = Figures()
    verify(replace(hot.follower.ports(), progress=figures))
    assert figures.by_step["capture"]["rows"] == hot.follower.run().counts[hot.table].updated


@pytest.mark.thin
def test_a_table_that_was_altered_is_not_proven(stand: MySqlStand, own: str) -> None:
    """The log is not followed across structures: the others are proven, and a run mends it."""
    hot = made(stand, own)
    hot.do("alter table hot add column e int default 3", "update hot set e = 4 where id < 9")
    found = hot.verify()
    assert [one.table for one in found.not_proven] == [hot.table]
    assert "altered" in found.not_proven[0].reason
    assert "`lockstep run`" in found.not_proven[0].hint
    assert [table.table.name for table in found.tables if table.equal] == ["quiet"]
    assert not found.differs
    hot.follower.run()
    assert hot.verify().equal


def test_a_read_that_somebody_ends_proves_nothing(mysql: MySqlStand, database: str) -> None:
    """And says nothing against the table; the others are proven."""
    hot = made(mysql, database)
    waits = f"db is null and info like '%`{database}`.`hot`%' and state like 'Waiting for table%'"
    reads = f"select id from information_schema.processlist where {waits}"

    def end() -> None:
        until(lambda: bool(mysql.rows(reads)))
        mysql.execute(*(f"kill query {number}" for (number,) in mysql.rows(reads)))

    with mysql.connect(database) as session, session.cursor() as cursor:
        cursor.execute("lock tables hot write")
        killer = Thread(target=end)
        killer.start()
        found = hot.verify()
        killer.join()
    (unproven,) = found.not_proven
    assert unproven.table == hot.table
    assert "interrupted" in unproven.reason
    assert unproven.hint == f"`lockstep verify {hot.table}` again, in a while"
    assert [table.table.name for table in found.tables if table.equal] == ["quiet"]
    assert not found.differs


def test_rows_of_which_the_log_has_a_part(mysql: MySqlStand, database: str) -> None:
    """With binlog_row_image = MINIMAL rows that changed since the last run cannot be told, and
    a wrong one among the others is."""
    hot = made(mysql, database)
    hot.do("set binlog_row_image = minimal", "update hot set a = 'x' where id < 5")
    found = hot.verify()
    assert [one.table for one in found.not_proven] == [hot.table]
    assert "binlog_row_image = FULL" in found.not_proven[0].hint
    spoil(hot.follower, hot.table, lambda rows: rows[200].update(d=None))
    [wrong] = [table for table in hot.verify().tables if not table.equal]
    assert wrong.different == 1
    assert [row.columns for row in wrong.rows] == [("d",)]
