"""`verify --sample`: some rows of each table, on real servers that are written to."""

from __future__ import annotations

from random import Random
from typing import Any

from lockstep.pipeline.model.table_state import OrderKind
from lockstep.pipeline.proof.proven import ProofKind
from lockstep.pipeline.values.table import TableName
from tests.fix_mysql import MySqlStand
from tests.mysql.reading import server
from tests.outside import VerifyReport, verify, verify_sample
from tests.positions.follower import Follower
from tests.proof.test_while_writing import made
from tests.proof.writing import COLUMNS, SPOILED, spoil, writers

KEYS = {
    "a number": ("id bigint unsigned primary key, v int", "{n} * 20000000000000000, {n}"),
    "numbers": ("a int, b int, v int, primary key (a, b)", "{n} div 15, {n}, {n}"),
    "a text": ("k varchar(30) primary key, v int", "concat('Kéy ''', {n}), {n}"),
    "bytes": ("k binary(8) primary key, v int", "unhex(lpad(hex({n} * 77777), 16, '0')), {n}"),
    "a name with percent signs": ("`k%s` varchar(9) primary key, v int", "concat('k', {n}), {n}"),
    "a moment": ("k datetime(3) primary key, v int", "'2024-01-01' + interval {n} hour, {n}"),
    "bits": ("k bit(20) primary key, v int", "{n} * 4001, {n}"),
    "an ENUM and a number": (
        "k enum('z', 'y', 'x', 'a'), n int, v int, primary key (k, n)",
        "elt(1 + {n} % 4, 'z', 'y', 'x', 'a'), {n}, {n}",
    ),
    "a SET and a number": (
        "k set('z', 'y', 'x', 'a'), n int, v int, primary key (k, n)",
        "{n} % 16, {n}, {n}",
    ),
    "a text and a number": (
        "k varchar(9), n int, v int, primary key (k, n)",
        "concat('k', {n} div 25), {n}, {n}",
    ),
}
ROWS = 200


def followed(stand: MySqlStand, database: str, **tables: tuple[str, str]) -> Follower:
    """Tables of `ROWS` rows, by name: their columns and a row's values."""
    follower = Follower(server(stand), [f"{database}.*"])
    stand.execute(
        *(f"create table {name} ({columns})" for name, (columns, _) in tables.items()),
        database=database,
    )
    follower.run()
    for name, (_, values) in tables.items():
        rows = ", ".join(f"({values.replace('{n}', str(n))})" for n in range(ROWS))
        stand.execute(f"insert into {name} values {rows}", database=database)
    follower.run()
    return follower


def sampled(follower: Follower, rows: int, seed: int = 1) -> VerifyReport:
    return verify_sample(follower.ports(), None, rows, Random(seed))


def test_samples_tell_equal_from_wrong(mysql: MySqlStand, database: str) -> None:
    """Whatever the key is, and whatever changed since the last run: an equal table is equal, and a
    sample that covers a table finds each row that is missing, otherwise or, where both sides order
    the key alike, too many."""
    tables = {f"t{number}": kind for number, kind in enumerate(KEYS.values())}
    follower = followed(mysql, database, **tables)
    for name in tables:
        mysql.execute(
            f"update {name} set v = v + 1 where v % 3 = 0",
            f"delete from {name} where v % 7 = 0",
            database=database,
        )
    for seed in range(2):
        found = sampled(follower, 30, seed).tables
        assert len(found) == len(KEYS)
        for one in found:
            assert (one.equal, one.proof) == (True, ProofKind.SAMPLE), one.table
            assert one.compared is not None
            assert 10 <= one.compared < ROWS
    follower.run()
    for name in tables:
        spoil(follower, TableName(database, name), _spoiled)
    for one in sampled(follower, 100 * ROWS).tables:
        too_many = one.table.name == "t0"
        wrong = (one.only_in_source, one.different, one.only_in_lake)
        assert wrong == (1, 1, int(too_many)), one.table
        assert {row.columns for row in one.rows} == {(), ("v",)}


def _spoiled(rows: list[dict[str, Any]]) -> None:
    """One is missing, one has another value, and where the key is a number one is too many."""
    rows[100].update(v=-5)
    if "id" in rows[0]:
        rows.append({**rows[0], "id": 40000000000000007})
    rows.pop(61)


def test_samples_while_others_write(mysql: MySqlStand, database: str) -> None:
    """No row is taken for wrong; and a wrong one is found."""
    hot = made(mysql, database, COLUMNS)
    with writers(mysql, database, ["hot"]):
        for seed in range(2):
            assert sampled(hot.follower, 100, seed).equal
        spoil(hot.follower, hot.table, SPOILED["a trailing space"])
        assert sampled(hot.follower, 10**5).differs


def test_a_table_without_a_key_has_no_sample(mysql: MySqlStand, database: str) -> None:
    """It is said, with the command that compares all of it."""
    follower = followed(mysql, database, t=("v int, w int", "{n}, {n}"))
    found = sampled(follower, 10)
    assert [one.hint for one in found.not_proven] == [f"`lockstep verify {database}.t`"]
    assert not found.tables


def test_a_stopped_table_has_no_sample_once_the_source_goes_on(
    mysql: MySqlStand, database: str
) -> None:
    """What it lacks since it stopped is not taken for wrong, as in `verify` of all rows."""
    follower = followed(mysql, database, t=("id int primary key, v int", "{n}, {n}"))
    table = TableName(database, "t")
    follower.order(OrderKind.PAUSE, table)
    mysql.execute("update t set v = -1", database=database)
    follower.run()
    mysql.execute("update t set v = -2", database=database)
    whole = verify(follower.ports(), [table])
    found = verify_sample(follower.ports(), [table], 10, Random(1))
    assert (found.tables, found.not_proven) == ((), whole.not_proven)
    assert [one.reason for one in found.not_proven] == [
        "it is stopped, and the source has moved on"
    ]
