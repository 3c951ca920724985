"""Hashes of rows: the server's are ours, of values from the log, for every type."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import numpy as np
import pyarrow as pa
import pytest

from pipeline.proof.hashes import Part, RowHasher, RowSum
from pipeline.table import TableName, TableStructure
from resources.mysql.server import MySqlServer
from tests.fix_mysql import MySqlStand
from tests.mysql.filled import Filled, filled
from tests.mysql.logged import Logged, head, logged
from tests.mysql.random_tables import random_tables
from tests.mysql.reading import server

SERVERS = {"mysql": "mysql", "mariadb": "mariadb", "mariadb11": "mariadb"}
SEEDS = [1, *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(2, 30))]
SIGNS = {"insert": 1, "update_preimage": -1, "update_postimage": 1, "delete": -1}


@pytest.fixture(scope="module", params=SERVERS)
def written(request: pytest.FixtureRequest) -> Iterator[Filled]:
    """A table for every case of tests/cases/values."""
    with filled(request.getfixturevalue(request.param), SERVERS[request.param]) as tables:
        yield tables


def rolled(hasher: RowHasher, log: Logged) -> RowSum:
    """What all images of a log leave of a table that was empty."""
    found = RowSum()
    for kind, sign in SIGNS.items():
        for batch in pa.Table.from_pylist(log.rows(kind), hasher.schema).to_batches():
            one = hasher.summed(batch)
            found = found + one if sign > 0 else found - one
    return found


def pairs(hasher: RowHasher, source: MySqlServer) -> tuple[list[int], list[int]]:
    """Both hashes of each row, sorted: the server's, and ours of what SELECT says."""
    structure = hasher.structure
    with source.row_hashes(structure, Part()) as found:
        theirs = [
            key << 64 | row
            for keys, rows in found.batches
            for key, row in zip(keys.tolist(), rows.tolist(), strict=True)
        ]
    with source.rows(structure) as batches:
        ours = [
            key << 64 | row
            for batch in batches
            for key, row in zip(
                hasher.keys(batch).tolist(), hasher.rows(batch).tolist(), strict=True
            )
        ]
    return sorted(theirs), sorted(ours)


def unequal(source: MySqlServer, structure: TableStructure, flavour: str, log: Logged) -> str:
    hasher = RowHasher(structure, flavour)
    asked = source.row_sum(structure).sum
    ours = rolled(hasher, log)
    if asked != ours:
        return f"{asked} by the server, {ours} from the log"
    theirs, own = pairs(hasher, source)
    return "" if theirs == own else f"{len(set(theirs) - set(own))} rows"


def test_a_server_and_its_log_have_one_sum(written: Filled) -> None:
    """Each value of the cases, inserted, updated and deleted: all images together leave what
    the server has, row by row too."""
    source = server(written.stand)
    structures = {structure.name: structure for structure in source.structures()}
    log = logged(written.stand, written.start, written.database, written.flavour)
    wrong = {
        case.name: told
        for table, case in written.cases.items()
        if log[table].error is None
        and (told := unequal(source, structures[table], written.flavour, log[table]))
    }
    assert wrong == {}
    assert sum(one.error is None for one in log.values()) > 100


@pytest.mark.parametrize("seed", SEEDS)
def test_random_values_of_every_type(mysql: MySqlStand, database: str, seed: int) -> None:
    """Tables and rows that chance makes."""
    chance, start = Random(seed), head(mysql)
    tables = list(random_tables(chance, 12))
    for table in tables:
        mysql.execute(table.create(), database=database)
        rows = ", ".join(table.row(chance) for _ in range(60))
        names = ", ".join(table.written)
        mysql.execute(
            "set sql_mode = ''",
            f"insert ignore into {table.name} ({names}) values {rows}",
            database=database,
        )
    source = server(mysql)
    log = logged(mysql, start, database, "mysql")
    wrong = {}
    for table in tables:
        name = TableName(database, table.name)
        if told := unequal(source, source.structure(name), "mysql", log[name]):
            wrong[table.create()] = told
    assert wrong == {}


def test_parts_make_the_whole(mysql: MySqlStand, database: str) -> None:
    """Both sides put a key into the same part."""
    mysql.execute(
        "create table t (id varchar(20) primary key, v int)",
        f"insert into t values {', '.join(f'({n}, {n})' for n in range(500))}",
        database=database,
    )
    source = server(mysql)
    hasher = RowHasher(source.structure(TableName(database, "t")), "mysql")
    with source.rows(hasher.structure) as batches:
        keys = np.concatenate([hasher.keys(batch) for batch in batches])
    for number in range(3):
        part = Part(number, 3)
        with source.row_hashes(hasher.structure, part) as found:
            theirs = np.concatenate([one for one, _ in found.batches])
        assert sorted(theirs) == sorted(keys[part.holds(keys)])
        assert 0 < len(theirs) < 500


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
    found = source.rows_by_hash(hasher.structure, set(hasher.keys(wanted).tolist()))
    assert found.rows.sort_by("id").to_pylist() == [{"id": 1, "v": "a"}, {"id": 3, "v": None}]
