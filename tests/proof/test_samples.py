"""`verify --sample`: some rows of each table, on real servers that are written to."""

from __future__ import annotations

from random import Random

import pytest

from pipeline.proof.proven import Proof
from pipeline.runs.context import VerifyReport
from pipeline.runs.inspecting.verify_sample import verify_sample
from pipeline.table import TableName
from tests.fix_mysql import MySqlStand
from tests.mysql.reading import server
from tests.positions.follower import Follower
from tests.proof.test_while_writing import made
from tests.proof.writing import COLUMNS, SPOILED, spoil, writers

KEYS = {
    "a number": ("id bigint unsigned primary key, v int", "{n} * 20000000000000000, {n}"),
    "numbers": ("a int, b int, v int, primary key (a, b)", "{n} div 30, {n}, {n}"),
    "a text": ("k varchar(30) primary key, v int", "concat('Kéy ''', {n}), {n}"),
    "bytes": ("k binary(8) primary key, v int", "unhex(lpad(hex({n} * 77777), 16, '0')), {n}"),
    "a name with percent signs": ("`k%s` varchar(9) primary key, v int", "concat('k', {n}), {n}"),
    "a moment": ("k datetime(3) primary key, v int", "'2024-01-01' + interval {n} hour, {n}"),
    "a text and a number": (
        "k varchar(9), n int, v int, primary key (k, n)",
        "concat('k', {n} div 50), {n}, {n}",
    ),
}
ROWS = 400


def followed(stand: MySqlStand, database: str, columns: str, values: str) -> Follower:
    rows = ", ".join(f"({values.replace('{n}', str(n))})" for n in range(ROWS))
    stand.execute(f"create table t ({columns})", database=database)
    follower = Follower(server(stand), [f"{database}.*"])
    follower.run()
    stand.execute(f"insert into t values {rows}", database=database)
    follower.run()
    return follower


def sampled(follower: Follower, rows: int, seed: int = 1) -> VerifyReport:
    return verify_sample(follower.work(), None, rows, Random(seed))


@pytest.mark.parametrize(("columns", "values"), KEYS.values(), ids=KEYS)
def test_a_sample_of_an_equal_table_is_equal(
    mysql: MySqlStand, database: str, columns: str, values: str
) -> None:
    """Whatever its key is, and whatever changed since the last run."""
    follower = followed(mysql, database, columns, values)
    mysql.execute(
        "update t set v = v + 1 where v % 3 = 0", "delete from t where v % 7 = 0", database=database
    )
    for seed in range(3):
        (found,) = sampled(follower, 60, seed).tables
        assert (found.equal, found.proof) == (True, Proof.SAMPLE)
        assert found.compared is not None
        assert 20 <= found.compared < ROWS


@pytest.mark.parametrize(("columns", "values"), KEYS.values(), ids=KEYS)
@pytest.mark.parametrize("kind", ["missing", "changed"])
def test_a_large_sample_finds_a_wrong_row(
    mysql: MySqlStand, database: str, columns: str, values: str, kind: str
) -> None:
    """One that covers the table finds each row that is missing or otherwise."""
    follower = followed(mysql, database, columns, values)
    table = TableName(database, "t")
    if kind == "missing":
        spoil(follower, table, lambda rows: rows.pop(123))
    else:
        spoil(follower, table, lambda rows: rows[123].update(v=-5))
    (found,) = sampled(follower, 100 * ROWS).tables
    assert found.only_in_source == (kind == "missing")
    assert found.different == (kind == "changed")
    assert [row.columns for row in found.rows] == [("v",) if kind == "changed" else ()]


def test_a_sample_finds_a_row_that_is_too_many(mysql: MySqlStand, database: str) -> None:
    """Of a table whose key both sides order alike."""
    follower = followed(mysql, database, *KEYS["a number"])
    table = TableName(database, "t")
    spoil(follower, table, lambda rows: rows.append({**rows[0], "id": 40000000000000007}))
    (found,) = sampled(follower, 100 * ROWS).tables
    assert (found.only_in_lake, found.only_in_source, found.different) == (1, 0, 0)


def test_samples_while_others_write(mysql: MySqlStand, database: str) -> None:
    """No row is taken for wrong; and a wrong one is found."""
    hot = made(mysql, database, COLUMNS)
    with writers(mysql, database, ["hot"]):
        for seed in range(4):
            assert sampled(hot.follower, 100, seed).equal
        spoil(hot.follower, hot.table, SPOILED["a trailing space"])
        assert sampled(hot.follower, 10**5).differs


def test_a_table_without_a_key_has_no_sample(mysql: MySqlStand, database: str) -> None:
    """It is said, with the command that compares all of it."""
    follower = followed(mysql, database, "v int, w int", "{n}, {n}")
    found = sampled(follower, 10)
    assert [one.hint for one in found.not_proven] == [f"`lockstep verify {database}.t`"]
    assert not found.tables
