"""What only a MySQL 5.7 can have or do, and later versions cannot."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pymysql
import pytest

from lockstep.pipeline.run.proof.verify_schema import verify_schema
from lockstep.pipeline.values.table import TableName
from tests.fix_mysql import MySqlStand
from tests.mysql.logged import head, logged
from tests.mysql.reading import rows_read, server
from tests.positions.follower import Follower
from tests.positions.servers import running

FIRST: Final = bytes.fromhex("04030b0b00")
"""How the description of the first column begins in a `.frm` file, `id int not null`."""

ENTRY: Final = 17
"""Bytes of each column's description there (`unireg.cc` in MySQL's source)."""

OLD: Final = ((1, 12, 19, 0x8060), (2, 7, 19, 0x803B), (3, 11, 10, 0x8058))
"""Of each column that gets an old type: its number, the type's code, how many characters it is
printed with, and its flags."""


def made_by_5_5(stand: MySqlStand, database: str, table: str, engine: str) -> None:
    """A table as MySQL 5.5 left it: DATETIME, TIMESTAMP and TIME in 8, 4 and 3 bytes. They lie on
    the disk as numbers of these sizes do, so that the file that says which types they are is
    rewritten."""
    stand.execute(
        f"create table {table} (id int not null primary key, a bigint, b int unsigned, "
        f"c mediumint, d int) engine={engine}",
        "flush tables",
        database=database,
    )
    file = Path(running(stand).data, database, f"{table}.frm")
    content = bytearray(file.read_bytes())
    first = content.index(FIRST)
    for number, code, characters, flags in OLD:
        at = first + number * ENTRY
        content[at + 2] = content[at + 3] = characters
        content[at + 8 : at + 10] = flags.to_bytes(2, "little")
        content[at + 13] = code
    file.write_bytes(content)


def test_old_moments_are_followed(mysql57: MySqlStand) -> None:
    """Read by SELECT and from the log, in both engines, until an ALTER gives them the new form."""
    with mysql57.own_database() as database:
        tables = {"i": "innodb", "m": "myisam"}
        for table, engine in tables.items():
            made_by_5_5(mysql57, database, table, engine)
        mysql57.execute("set global show_old_temporals = on")
        ((_, shown),) = mysql57.rows(f"show create table {database}.i")
        mysql57.execute("set global show_old_temporals = off")
        assert shown.count("5.5 binary format") == len(OLD)
        follower = Follower(server(mysql57), [f"{database}.*"], start="snapshot")
        _write(mysql57, database, tables, 1)
        follower.run()
        _require_same(follower, mysql57, database, tables)
        _write(mysql57, database, tables, 10)
        mysql57.execute(*(f"delete from {t} where id = 11" for t in tables), database=database)
        follower.run()
        _require_same(follower, mysql57, database, tables)
        mysql57.execute(
            *(f"alter table {t} add e time(3), modify d bigint" for t in tables), database=database
        )
        _write(mysql57, database, tables, 20)
        follower.run()
        _require_same(follower, mysql57, database, tables)


def _write(stand: MySqlStand, database: str, tables: dict[str, str], first: int) -> None:
    rows = (
        "'2024-01-02 03:04:05', '2023-11-14 22:13:20', '12:34:56'",
        "'9999-12-31 23:59:59', '2038-01-19 03:14:07', '-838:59:59'",
        "'1000-01-01', '1970-01-01 00:00:01', '-00:00:01'",
        "null, null, null",
    )
    for table in tables:
        stand.execute(
            "set time_zone = '+00:00'",
            *(
                f"insert into {table} (id, a, b, c) values ({first + number}, {row})"
                for number, row in enumerate(rows)
            ),
            f"update {table} set a = a + interval 1 second, c = '838:59:59' where id = {first}",
            database=database,
        )


def _require_same(
    follower: Follower, stand: MySqlStand, database: str, tables: dict[str, str]
) -> None:
    source = server(stand)
    found = {s.name.name: s for s in source.structures() if s.name.database == database}
    for table in tables:
        with rows_read(source, found[table]) as batches:
            rows = [row for batch in batches for row in batch.to_pylist()]
        mirror = follower.mirror(f"{database}.{table}")
        assert [{name: row[name] for name in found[table].names} for row in mirror] == rows


def test_bytes_in_json_are_read_as_printed(mysql57: MySqlStand) -> None:
    """An expression's bytes have the type VAR_STRING, which only this version stores."""
    with mysql57.own_database() as database:
        mysql57.execute("create table t (id int primary key, j json)", database=database)
        structures = {
            s.name: s for s in server(mysql57).structures() if s.name.database == database
        }
        start = head(mysql57)
        mysql57.execute(
            "insert into t values (1, json_array(x'00ff', cast('text' as binary), binary ''))",
            database=database,
        )
        [row] = logged(mysql57, start, database, structures)[TableName(database, "t")].rows(
            "insert"
        )
        [(printed,)] = mysql57.rows("select cast(j as char) from t", database)
        assert row["j"] == printed


def test_a_drop_that_fails_in_the_middle_quarantines_what_it_names(mysql57: MySqlStand) -> None:
    """The server logs all of DROP TABLE z, p, although p is still there: a foreign key needs it."""
    with mysql57.own_database() as database:
        mysql57.execute(
            "create table p (id int primary key)",
            "create table c (id int primary key, foreign key (id) references p (id))",
            "create table z (id int primary key)",
            database=database,
        )
        follower = Follower(server(mysql57), [f"{database}.*"], start="snapshot")
        follower.run()
        with pytest.raises(pymysql.err.IntegrityError, match="foreign key constraint fails"):
            mysql57.execute("drop table z, p", database=database)
        mysql57.execute("insert into p values (1)", "insert into c values (1)", database=database)
        follower.run()
        states = follower.ledger.table_states("shop")
        reasons = {name.name: state.reason for name, state in states.items()}
        assert reasons.pop("c") is None
        assert set(reasons) == {"p", "z"}
        assert all("failed with error 1217" in str(reason) for reason in reasons.values())
        assert follower.mirror(f"{database}.c") == [{"id": 1}]


KEYED: Final = (
    "create table {} (id int primary key, v varchar(300), t text, b varbinary(1000), "
    "l varchar(800) character set latin1, key v (v), key t (t(300)), key b (b, v(255)), key l (l), "
    "key short (v(100))) default character set utf8mb4 row_format = {}"
)
FORMATS: Final = ("default", "dynamic", "compact", "redundant", "compressed")
ALTERED: Final = (
    "add column w int",
    "convert to character set latin1",
    "convert to character set utf8mb4",
    "modify v varchar(190), add key more (t(400), b)",
)
_PREFIXES: Final = (
    "select distinct sub_part from information_schema.statistics "
    "where sub_part > 100 and table_schema = '{}'"
)


@contextmanager
def shortened_indexes(stand: MySqlStand) -> Iterator[None]:
    """Indexes hold 767 bytes of a column at the most."""
    stand.execute("set global innodb_large_prefix = off")
    try:
        yield
    finally:
        stand.execute("set global innodb_large_prefix = on")


def test_indexes_that_a_variable_shortens_are_no_difference(mysql57: MySqlStand) -> None:
    """The log does not have it. Tables of before, copied and new ones, in each row format; what
    it does not explain is still named."""
    with mysql57.own_database() as database:
        follower = Follower(server(mysql57), [f"{database}.*"], start="snapshot")
        mysql57.execute("set sql_mode = ''", KEYED.format("older", "default"), database=database)
        follower.run()
        tables = ["older", "copied", *(f"made_{name}" for name in FORMATS)]
        made = [KEYED.format(f"made_{name}", name) for name in FORMATS]
        steps = [["create table copied like older", *made]]
        steps += [[f"alter table {table} {change}" for table in tables] for change in ALTERED]
        with shortened_indexes(mysql57):
            for statements in steps:
                mysql57.execute("set sql_mode = ''", *statements, database=database)
                follower.run()
                assert verify_schema(follower.ports()).server_disagreements == ()
        assert {prefix for (prefix,) in mysql57.rows(_PREFIXES.format(database))} == {191, 767}
        mysql57.execute(
            "set sql_log_bin = 0",
            "alter table older drop key short, add key short (v(90))",
            database=database,
        )
        (found,) = verify_schema(follower.ports()).server_disagreements
        assert "key short parts" in "".join(found.differences)
