"""Every type that a table may be cut by, with its extremes, on each server: the chunks together are
the table, nothing is in two of them, and rows are found by their keys as the lake has these."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from lockstep.pipeline.schema.rows import merge_key
from lockstep.pipeline.snapshot.chunks import FORMS, chunk_key, column_without_literal
from lockstep.pipeline.snapshot.condition import read_condition
from lockstep.pipeline.values.errors import TableError
from lockstep.pipeline.values.table import TableName
from tests.chance import by_chance
from tests.fix_mysql import MySqlStand
from tests.mysql.chunk_key_cases import (
    ALL,
    BYTES,
    CASES,
    FOLDED,
    MOMENTS,
    NAMED,
    NOT_CUT,
    NUMBERS,
    OWN,
    SPACED,
    TEXTS,
    UUIDS,
    WIDE,
    Case,
    case,
    tried,
)
from tests.mysql.chunked import Sliced, knife, together


@pytest.fixture(params=ALL)
def flavour(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def stand(flavour: str, request: pytest.FixtureRequest) -> MySqlStand:
    found: MySqlStand = request.getfixturevalue(flavour)
    return found


@pytest.fixture
def anywhere(stand: MySqlStand) -> Iterator[Sliced]:
    """As `place`, on all three servers."""
    with stand.own_database() as name:
        yield Sliced(stand, TableName(name, "t"))


def made(
    place: Sliced, one: Case, *, engine: str = "innodb", order: str = "", groups: int = 3
) -> Sliced:
    """The case's column first, and a number that makes groups of three, or of so many."""
    with place.stand.connect(place.table.database) as session, session.cursor() as cursor:
        cursor.execute("set sql_mode = '', time_zone = '+00:00'")
        cursor.execute("drop table if exists t")
        cursor.execute(
            f"create table t (k {one.definition} not null, n tinyint not null,"
            f" primary key (k {order}, n)) engine = {engine}"
        )
        rows = ", ".join(f"({value}, {number})" for value in one.values for number in range(groups))
        # What a set lacks becomes ?, and what a collation takes for the same is there.
        cursor.execute(f"insert ignore into t values {rows}")
    return place


def on_servers(**groups: tuple[Case, ...]) -> list[Any]:
    """Parameters `flavour` and `group`: each group on each server that is asked for some of it. In
    every run the newer MariaDB, and the other two in turn; the rest is the soak's."""
    return [
        pytest.param(
            server,
            group,
            id=f"{server}-{name}",
            marks=() if server in (ALL[number % 2], ALL[2]) else pytest.mark.soak,
        )
        for number, (name, group) in enumerate(groups.items())
        for server in ALL
        if tried(group, server)
    ]


@pytest.mark.parametrize(
    ("flavour", "group"),
    on_servers(numbers=NUMBERS, moments=(*MOMENTS, *BYTES, *NAMED, *UUIDS), text=TEXTS),
    indirect=["flavour"],
)
def test_chunks_together_are_the_table(
    anywhere: Sliced, flavour: str, group: tuple[Case, ...]
) -> None:
    """With chunks of two rows (of text seven), that end within a group of three and behind it;
    every number, moment and run of bytes is there. Of the collations, CHAR's and others as chance
    has it: the soak has all of the server's."""
    size = 7 if group is TEXTS else 2
    cases = tried(group, flavour)
    if group is TEXTS:
        cases = drawn(cases)
    with knife(anywhere.stand) as cutting:
        for one in cases:
            found = cutting.cut(made(anywhere, one).table, size)
            assert chunk_key(found.schema) == ("k", "n"), one
            assert together(found.chunks) == found.whole, one
            assert set(found.whole.values()) == {1}
            assert one in TEXTS or len(found.whole) == 3 * len(one.values), one
            assert max(len(chunk) for chunk in found.chunks) <= size, one


def drawn(cases: list[Case]) -> list[Case]:
    """Of text four CHARs and eight VARCHARs, as chance has it."""
    chance, found = by_chance(), list[Case]()
    for kind, most in (("char", 4), ("varchar", 8)):
        these = [one for one in cases if one.type == kind]
        found += chance.sample(these, min(len(these), most))
    return found


OF_EACH_TYPE = tuple({one.type: one for one in reversed(CASES) if one.servers != OWN}.values())


@pytest.mark.parametrize(
    ("flavour", "engine", "count"),
    [
        *(("mysql", "myisam", 10), ("mariadb11", "aria", 10)),
        *(
            pytest.param(*case, len(OF_EACH_TYPE), marks=pytest.mark.soak)
            for case in (("mysql", "myisam"), ("mariadb", "myisam"), ("mariadb11", "aria"))
        ),
    ],
    indirect=["flavour"],
)
def test_chunks_of_other_engines(anywhere: Sliced, engine: str, count: int) -> None:
    """Whose primary key is a tree beside the rows: a key of ten types, as chance has it."""
    with knife(anywhere.stand) as cutting:
        for one in by_chance().sample(OF_EACH_TYPE, count):
            found = cutting.cut(made(anywhere, one, engine=engine).table, 2)
            assert chunk_key(found.schema) == ("k", "n"), one
            assert together(found.chunks) == found.whole, one


def test_a_key_that_descends_is_read_backwards(anywhere: Sliced, flavour: str) -> None:
    """As far as all of it does."""
    order = "desc" if flavour != "mariadb" or _number(anywhere) >= (10, 8) else ""
    with knife(anywhere.stand) as cutting:
        for one in (NUMBERS[5], MOMENTS[0], TEXTS[0]):
            found = cutting.cut(made(anywhere, one, order=order).table, 2)
            assert chunk_key(found.schema) == (("k",) if order else ("k", "n"))
            assert together(found.chunks) == found.whole, one


def _number(place: Sliced) -> tuple[int, ...]:
    ((version,),) = place.stand.rows("select @@version")
    return tuple(int(part) for part in str(version).split("-")[0].split(".")[:2])


def test_a_leading_run_takes_whole_groups(place: Sliced) -> None:
    """Rows that differ only in columns behind it stay together."""
    place.do(
        "create table t (a int, e enum('z','a') not null, b int, primary key (a, e, b))",
        "insert into t select x, 1 + y % 2, y from (select 1 x union select 2 union select 3) xs,"
        " (select 1 y union select 2 union select 3 union select 4) ys",
    )
    assert chunk_key(place.schema()) == ("a",)
    chunks = place.chunks(3)
    assert [len(chunk) for chunk in chunks if chunk] == [4, 4, 4]
    assert together(chunks) == place.whole()


CUT_BY = {
    "unique key z (b), unique key y (a, c)": ("a", "c"),
    "unique key z (b), unique key y (a, n)": ("b",),
    "unique key z (b), unique key y (c(3))": ("b",),
    "primary key (e), unique key y (a)": (),
    "unique key y (e), unique key z (a)": (),
    "unique key y (a, n), key z (b)": (),
}


def test_without_a_primary_key_the_key_of_the_mirror_cuts(place: Sliced) -> None:
    """By another one a row could be in two chunks under the key that it is told by."""
    with knife(place.stand) as cutting:
        for keys, cut in CUT_BY.items():
            place.do(
                "drop table if exists t",
                "create table t (a int not null, b int not null, c varchar(9) not null, n int,"
                f" e enum('z', 'a') not null, {keys})",
                "insert into t values (3, 1, 'x', 1, 'z'), (1, 2, 'y', 2, 'a')",
            )
            found = cutting.cut(place.table, 1)
            assert chunk_key(found.schema) == cut, keys
            assert len(found.chunks) == (2 if cut else 1), keys
            assert together(found.chunks) == found.whole, keys


def test_an_index_that_no_statement_may_name_does_not_cut(mysql: MySqlStand, database: str) -> None:
    place = Sliced(mysql, TableName(database, "t"))
    place.do(
        "create table t (a int not null, b int not null, unique key z (b), unique key y (a)"
        " invisible)"
    )
    assert chunk_key(place.schema()) == ()
    assert place.chunks(1) == [place.whole()]


@pytest.mark.parametrize("one", NOT_CUT, ids=lambda one: one.type)
def test_what_is_ordered_otherwise_than_it_compares_does_not_cut(
    anywhere: Sliced, flavour: str, one: Case
) -> None:
    """Read in one piece."""
    if flavour in one.servers:
        table = made(anywhere, one)
        assert chunk_key(table.schema()) == ()
        assert anywhere.source.next_bound(table.schema(), None, 1) is None
        assert table.chunks(1) == [table.whole()]


def test_a_char_of_mysql_s_collations_does_not_cut_on_mariadb(
    mariadb11: MySqlStand, mariadb11_database: str
) -> None:
    """It is padded there as a CHAR of MariaDB's own that heed spaces; a VARCHAR is not."""
    place = Sliced(mariadb11, TableName(mariadb11_database, "t"))
    with knife(mariadb11) as cutting:
        for kind, several in (("char", False), ("varchar", True)):
            table = made(place, case(f"{kind}(10) collate utf8mb4_0900_ai_ci", *SPACED)).table
            found = cutting.cut(table, 2)
            assert (len(found.chunks) > 1) == several
            assert together(found.chunks) == found.whole


def test_a_prefix_ends_the_run(place: Sliced) -> None:
    """It orders only what it holds."""
    place.do("create table t (a int, b varchar(90), c int, primary key (a, b(3), c))")
    assert chunk_key(place.schema()) == ("a",)


PARTIAL = {
    "'0000-00-00'": "date",
    "'2024-00-15'": "date",
    "'2024-02-00 01:00:00'": "datetime(3)",
    "'0000-00-00 00:00:00'": "timestamp",
}


def test_a_zero_date_is_a_bound_and_no_row(place: Sliced) -> None:
    """The chunk behind it has the rows behind it; the one that it is in cannot be read."""
    for value, definition in PARTIAL.items():
        table = made(place, case(definition, value, "'2024-05-05'"))
        schema = table.schema()
        first, second = table.ranges(3, schema)
        with pytest.raises(TableError, match="key column 'k' holds a zero or partial date"):
            table.read(schema, first)
        assert sum(table.read(schema, second).values()) == 3, value


def test_a_year_of_two_digits_is_said(mariadb: MySqlStand, mariadb_database: str) -> None:
    """It is ordered as 1970 to 2069 and compared as 0 to 99."""
    place = Sliced(mariadb, TableName(mariadb_database, "t"))
    place.do("create table t (k year(2) primary key)", "insert into t values (1999), (2001)")
    with pytest.raises(TableError, match="no statement can compare"):
        place.source.next_bound(place.schema(), None, 1)


@pytest.mark.soak
def test_every_collation(anywhere: Sliced, flavour: str) -> None:
    """All that the server has."""
    column = "full_collation_name" if flavour == "mariadb11" else "collation_name"
    named = anywhere.stand.rows(
        f"select {column}, character_set_name from"
        " information_schema.collation_character_set_applicability"
    )
    names = [name for name, charset in named if charset not in (None, "binary", "filename")]
    assert len(names) > 200
    with knife(anywhere.stand) as cutting:
        for name in names:
            for kind in ("char", "varchar"):
                one = case(f"{kind}(10) collate {name}", *SPACED, *FOLDED, *WIDE)
                found = cutting.cut(made(anywhere, one).table, 7)
                assert (chunk_key(found.schema) == ()) == (kind == "char" and "_nopad_" in name)
                assert together(found.chunks) == found.whole, (kind, name)


__all__ = ["anywhere", "flavour", "stand"]
"""Fixtures."""

EVERYTHING = read_condition("true")


@pytest.mark.parametrize(
    ("flavour", "group"),
    on_servers(numbers=NUMBERS, moments=(*MOMENTS, *BYTES), text=TEXTS),
    indirect=["flavour"],
)
def test_every_row_is_found_by_its_key(
    anywhere: Sliced, flavour: str, group: tuple[Case, ...]
) -> None:
    """All at once, and alone: each, but of text some, under some collations."""
    cases = tried(group, flavour)
    for one in drawn(cases) if group is TEXTS else cases:
        schema = made(anywhere, one, groups=1).schema()
        key = list(merge_key(schema))
        assert column_without_literal(schema, key) is None
        with anywhere.source.rows_where(schema, EVERYTHING) as found:
            rows = pa.Table.from_batches(found.rows.batches, found.rows.schema).select(key)
            whole = rows.combine_chunks().to_batches()[0]
            there = pa.Table.from_batches(found.by_keys(whole)).to_pylist()
            assert sorted(map(str, there)) == sorted(map(str, whole.to_pylist())), one
            for at in range(0, whole.num_rows, 4 if one in TEXTS else 1):
                asked = whole.slice(at, 1)
                alone = pa.Table.from_batches(found.by_keys(asked)).to_pylist()
                assert asked.to_pylist()[0] in alone, one


def test_every_type_of_a_key_is_asked_by() -> None:
    """But for those that no literal is known of."""
    asked = {one.type for one in (*NUMBERS, *MOMENTS, *BYTES, *TEXTS)}
    assert asked | {one.type for one in NAMED} == set(FORMS)


@pytest.mark.parametrize("flavour", ALL[1:], indirect=True)
def test_types_that_no_literal_is_known_of_are_not_asked_by(anywhere: Sliced, flavour: str) -> None:
    for one in (*NAMED, *UUIDS):
        if flavour in one.servers:
            schema = made(anywhere, one).schema()
            assert column_without_literal(schema, merge_key(schema)) == (
                "k" if one in NAMED else None
            )
