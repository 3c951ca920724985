"""Hashes of rows: the server's are ours, of values from the log. Every type: `test_values`."""

from __future__ import annotations

from random import Random

import pyarrow as pa
import pytest

from lockstep.pipeline.proof.hashes import RowHasher
from lockstep.pipeline.values.table import TableName
from tests.fix_mysql import MySqlStand
from tests.mysql.hashed import asked_of, unequal_hashes
from tests.mysql.logged import head, logged
from tests.mysql.random_tables import random_tables
from tests.mysql.reading import rows_read, server

SEEDS = [1, *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(2, 30))]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.since(9, 0)
def test_random_values_of_every_type(mysql: MySqlStand, database: str, seed: int) -> None:
    """Tables and rows that chance makes."""
    chance, start = Random(seed), head(mysql)
    tables = list(random_tables(chance, 8))
    for table in tables:
        rows = ", ".join(table.row(chance) for _ in range(60))
        names = ", ".join(table.written)
        mysql.execute(
            "set sql_mode = ''",
            table.create(),
            f"insert ignore into {table.name} ({names}) values {rows}",
            database=database,
        )
    source = server(mysql)
    log = logged(mysql, start, database)
    wrong = {}
    for table in tables:
        name = TableName(database, table.name)
        structure = source.structure(name)
        with rows_read(source, structure) as batches:
            asked = asked_of(source, structure)
            if told := unequal_hashes(asked, structure, "mysql", log[name], batches):
                wrong[table.create()] = told
    assert wrong == {}


def test_rows_by_their_hashes(mysql: MySqlStand, database: str) -> None:
    """A few rows as SELECT has them."""
    mysql.execute(
        "create table t (id int primary key, v varchar(10) character set cp932)",
        "insert into t values (1, 'a'), (2, 'b'), (3, null)",
        database=database,
    )
    source = server(mysql)
    hasher = RowHasher(source.structure(TableName(database, "t")), "mysql")
    wanted = pa.RecordBatch.from_pydict({"id": pa.array([3, 1, 9], pa.int32())})
    found = source.rows_by_hash(hasher.structure, set(hasher.key_hashes(wanted).tolist()))
    assert found.rows.sort_by("id").to_pylist() == [{"id": 1, "v": "a"}, {"id": 3, "v": None}]
