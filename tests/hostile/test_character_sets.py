"""Keys and texts in character sets drawn by chance, of bytes drawn by chance, and members that are
called alike: no two rows of a server become one, and no table is quarantined without need.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from random import Random

import pymysql
import pytest

from lockstep.pipeline.binlog.values.charset_tables import SINGLE_BYTE
from lockstep.pipeline.binlog.values.charsets import (
    CHARACTER_SETS,
    is_ambiguous,
    noncanonical_codes,
    text_decoder,
)
from lockstep.pipeline.values.errors import TableError
from lockstep.pipeline.values.table import TableName
from tests.fix_mysql import MySqlStand
from tests.mysql.reading import server
from tests.positions.follower import Follower

Rows = list[tuple[str, ...]]

ILL_FORMED = (1300, 1366, 3854)
"""ER_INVALID_CHARACTER_STRING, ER_TRUNCATED_WRONG_VALUE_FOR_FIELD, ER_CANNOT_CONVERT_STRING."""

TABLES = 12

TWINS = sorted(one for one in CHARACTER_SETS if is_ambiguous(one))


@dataclass(frozen=True, slots=True)
class Drawn:
    """A table's column of a key and its values as stored; one of text beside it."""

    name: str
    key: str
    texts: str
    rows: tuple[tuple[bytes, bytes], ...]


def codes(chance: Random, charset: str) -> list[bytes]:
    """A few codes, those that do not come back among them."""
    size = 1 if charset in SINGLE_BYTE else chance.choice([1, 2])
    found = [bytes(chance.choices(range(0x20, 0x100), k=size)) for _ in range(6)]
    if is_ambiguous(charset) and chance.random() < 0.7:
        several = sorted(noncanonical_codes(charset))
        one = chance.choice(several)
        same = text_decoder(charset)(one)
        found += [one, *(code for code in several if text_decoder(charset)(code) == same)]
    return [*found, b"a", b"b"]


def drawn(chance: Random, number: int, charsets: list[str]) -> Drawn:
    key = chance.choice([*TWINS, *charsets])
    texts = chance.choice([*TWINS, *charsets])
    wide = {"ucs2": 2, "utf16": 2, "utf16le": 2, "utf32": 4}
    values: list[tuple[bytes, bytes]] = []
    for _ in range(chance.randint(1, 12)):
        pair = []
        for charset in (key, texts):
            if charset in wide:
                text = "".join(chance.choices("abcd\u00e9\u4e00", k=chance.randint(1, 3)))
                pair.append(text.encode({2: "utf-16-be", 4: "utf-32-be"}[wide[charset]]))
                if charset == "utf16le":
                    pair[-1] = text.encode("utf-16-le")
            else:
                pair.append(
                    b"".join(chance.choices(codes(chance, charset), k=chance.randint(1, 3)))
                )
        values.append((pair[0], pair[1]))
    return Drawn(f"t{number}", key, texts, tuple(values))


def statements(table: Drawn) -> Iterator[str]:
    yield (
        f"create table {table.name} (k varchar(20) character set {table.key} collate"
        f" {table.key}_bin primary key, v varchar(20) character set {table.texts})"
    )
    for key, text in table.rows:
        yield (
            f"insert ignore into {table.name} values"
            f" (_{table.key} x'{key.hex()}', _{table.texts} x'{text.hex()}')"
        )


def written(stand: MySqlStand, database: str, several: Iterator[str]) -> None:
    """What the server takes: bytes that it refuses are not written."""
    with stand.connect(database) as connection, connection.cursor() as cursor:
        cursor.execute("set sql_mode = ''")
        for statement in several:
            try:
                cursor.execute(statement)
            except pymysql.MySQLError as error:
                if error.args[0] not in ILL_FORMED:
                    raise


def expected(stand: MySqlStand, database: str, table: Drawn) -> Rows | None:
    """The rows as text, or None where the table may not be in the lake: by the server's own
    conversion of keys, and by the tables for bytes that mean nothing."""
    back = f"cast(convert(convert(k using utf8mb4) using {table.key}) as binary)"
    rows = stand.rows(
        f"select cast(k as binary), cast(v as binary), {back} = cast(k as binary),"
        f" convert(k using utf8mb4) from {table.name}",
        database,
    )
    found = []
    for key, text, comes_back, printed in rows:
        try:
            read = text_decoder(table.key)(key), text_decoder(table.texts)(text)
        except UnicodeDecodeError:
            return None
        assert read[0] == printed
        if not comes_back:
            return None
        found.append(read)
    return sorted(found)


def from_source(stand: MySqlStand, database: str, name: str) -> Rows | None:
    """The rows as they are read from the source; None where that quarantines the table."""
    source = server(stand)
    (schema,) = source.baseline([TableName(database, name)]).tables
    try:
        with source.snapshot(schema) as found:
            batches = [batch.to_pylist() for batch in found.batches]
    except TableError:
        return None
    return sorted(tuple(row.values()) for batch in batches for row in batch)


def begun(stand: MySqlStand, database: str) -> Follower:
    """A source whose tables are still to come, but for one."""
    stand.execute("create table first (id int primary key)", database=database)
    follower = Follower(server(stand), [f"{database}.*"])
    follower.run()
    return follower


def stopped_tables(follower: Follower) -> set[TableName]:
    states = follower.states()
    return {table for table, one in states.items() if one.stopped is not None}


@pytest.mark.parametrize("flavour", ["mysql", "mariadb"])
@pytest.mark.parametrize(
    "seed", [1, *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(2, 30))]
)
def test_keys_and_texts_by_chance(request: pytest.FixtureRequest, flavour: str, seed: int) -> None:
    """Through the log and from the source alike: every row by itself, or the table quarantined;
    quarantined only where the server's own conversion does not bring a key back, or bytes mean
    nothing."""
    stand: MySqlStand = request.getfixturevalue(flavour)
    chance, database = Random(seed), stand.fresh_name()
    stand.execute(f"create database {database}")
    charsets = sorted(CHARACTER_SETS - ({"gb18030"} if flavour == "mariadb" else set()))
    tables = [drawn(chance, number, charsets) for number in range(TABLES)]
    follower = begun(stand, database)
    for table in tables:
        written(stand, database, statements(table))
    follower.run()
    quarantined = stopped_tables(follower)
    told = {}
    for table in tables:
        name, wanted = TableName(database, table.name), expected(stand, database, table)
        mirrored = [tuple(row.values()) for row in follower.mirror(str(name))]
        logged = None if name in quarantined else sorted(mirrored)
        told[table.name] = wanted is None
        assert (table, logged) == (table, wanted)
        assert (table, from_source(stand, database, table.name)) == (table, wanted)
    assert set(told.values()) == {False, True}
    stand.execute(f"drop database {database}")


@pytest.mark.parametrize("kind", ["enum", "set"])
def test_members_by_chance(mysql: MySqlStand, database: str, kind: str) -> None:
    """Members that are called alike, or '': the table is quarantined where rows would be one,
    and never where every member has a name of its own."""
    follower = begun(mysql, database)
    chance, alike = Random(kind), {}
    for number in range(TABLES):
        members = chance.choices(["", "a", "b", "c"], k=chance.randint(1, 4))
        listed = ", ".join(f"'{member}'" for member in members)
        alike[f"t{number}"] = len(set(members)) < len(members) or "" in members
        most = len(members) if kind == "enum" else (1 << len(members)) - 1
        values = chance.sample(range(most + 1), k=chance.randint(1, most + 1))
        create = f"create table t{number} (k {kind}({listed}) primary key)"
        inserts = (f"insert ignore into t{number} values ({value})" for value in values)
        written(mysql, database, chain([create], inserts))
    follower.run()
    quarantined = {table.name for table in stopped_tables(follower)}
    for name, several in alike.items():
        texts = [row[0] for row in mysql.rows(f"select cast(k as char) from {name}", database)]
        one = len(set(texts)) < len(texts)
        source = from_source(mysql, database, name)
        assert (name, name in quarantined, source is None) in (
            [(name, one, one)] if one or not several else [(name, False, False), (name, True, True)]
        )
        if name not in quarantined:
            mirrored = sorted(row["k"] for row in follower.mirror(f"{database}.{name}"))
            assert mirrored == sorted(texts) == [row[0] for row in source or []]
    assert {"t" in name for name in quarantined} == {True}
