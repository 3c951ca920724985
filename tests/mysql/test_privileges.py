"""Tables that an account may not read as a whole: which, told how, and the GRANT that helps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import pytest

from lockstep.pipeline.check import SourceEvidence, preflight
from lockstep.pipeline.source_plan import SourcePlan
from lockstep.pipeline.values.errors import TableError
from lockstep.pipeline.values.table import TableName, TablePatterns
from lockstep.resources.mysql.server import MySqlServer
from tests.fix_mysql import MySqlStand
from tests.mysql.reading import server

MYSQL, MARIADB = "mysql", "mariadb"
OLD = ("mysql80", "mysql57")
TABLES: Final = (
    "create table beside (id int primary key, n int)",
    "create table t (id int, k int, `a``)b` varchar(9), n int, primary key (id, k), "
    "constraint to_beside foreign key (n) references beside (id) on delete cascade)",
)
INVISIBLE: Final = "create table i (id int primary key, n int, hidden int default 1 invisible)"
SINGLE = "the account has privileges on columns of the table only"


@dataclass(frozen=True, slots=True)
class Case:
    """What an account is granted, and what it lacks on a table; None if nothing."""

    grants: tuple[str, ...]
    lacks: str | None
    table: str = "t"
    only: str = ""
    """A variable of the servers that have such a thing; all of them."""


CASES: Final = {
    "everything": Case(("grant select on *.* to {u}",), None),
    "the database": Case(("grant select on {d}.* to {u}",), None),
    "a pattern": Case(("grant select on `{d_}`.* to {u}",), None),
    "the table": Case(("grant select on {d}.t to {u}",), None),
    "the table, and a column for writing": Case(
        ("grant select, insert (n) on {d}.t to {u}",), None
    ),
    "other columns": Case(("grant select (id, k) on {d}.t to {u}",), SINGLE),
    "without the key": Case(("grant select (n) on {d}.t to {u}",), SINGLE),
    "without the last column": Case(("grant select (id, k, `a``)b`) on {d}.t to {u}",), SINGLE),
    "each column": Case(("grant select (id, k, `a``)b`, n) on {d}.t to {u}",), SINGLE),
    "a column to write": Case(
        ("grant select (id), insert (n) on {d}.t to {u}",),
        "the account may not read n of the table",
    ),
    "the table to write": Case(
        ("grant insert, select (id, k) on {d}.t to {u}",),
        "the account may not read a`)b, n of the table",
    ),
    "an invisible column": Case(("grant select (id, n) on {d}.i to {u}",), SINGLE, "i"),
    "a role": Case(
        ("create role r_{u}", "grant select on {d}.t to r_{u}", "grant r_{u} to {u}", "{role}"),
        None,
    ),
    "a role's columns": Case(
        (
            "create role r_{u}",
            "grant select (id) on {d}.t to r_{u}",
            "grant r_{u} to {u}",
            "{role}",
        ),
        SINGLE,
    ),
    "a wider grant that another hides": Case(
        (
            "grant execute on {d}.* to {u}",
            "grant select on `{d_}`.* to {u}",
            "grant select (id) on {d}.t to {u}",
        ),
        SINGLE,
    ),
    "less than everything": Case(
        (
            "set global partial_revokes = on",
            "grant select on *.* to {u}",
            "revoke select on {d}.* from {u}",
            "grant select (id) on {d}.t to {u}",
        ),
        SINGLE,
        only="partial_revokes",
    ),
    "everybody": Case(("grant select on {d}.t to public",), None, only="aria_block_size"),
    "everybody's columns": Case(
        ("grant select (id) on {d}.t to public",), SINGLE, only="aria_block_size"
    ),
    "nothing": Case((), "the account may not read the table: error 1142"),
}


@dataclass(frozen=True, slots=True)
class Place:
    """A server that has a database, and the account that is granted things on it."""

    stand: MySqlStand
    product: str
    database: str

    @property
    def account(self) -> str:
        return f"'{self.database}'@'%'"

    @property
    def source(self) -> MySqlServer:
        return server(self.stand, user=self.database, password="x")

    def grant(self, case: Case) -> None:
        to = "for" if self.product == MARIADB else "to"
        names = {
            "d": self.database,
            "d_": self.database.replace("t", "_", 1),
            "u": self.database,
            "role": f"set default role r_{self.database} {to} {self.database}",
        }
        self.stand.execute(*(grant.format(**names) for grant in case.grants))


@pytest.fixture(
    params=[
        "mysql",
        "mariadb",
        pytest.param("mysql80", marks=pytest.mark.soak),
        pytest.param("mysql57", marks=pytest.mark.soak),
        pytest.param("mariadb11", marks=pytest.mark.soak),
    ]
)
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    stand: MySqlStand = request.getfixturevalue(request.param)
    product = MARIADB if request.param.startswith(MARIADB) else MYSQL
    with stand.own_database() as name:
        tables = TABLES if request.param in OLD else (*TABLES, INVISIBLE)
        stand.execute(*tables, database=name)
        stand.execute(
            f"create user {name} identified by 'x'",
            f"grant replication client on *.* to {name}",
            f"grant select on {name}.beside to {name}",
        )
        yield Place(stand, product, name)
        roles = [row[0] for row in stand.rows("select user from mysql.user where user like 'r%'")]
        stand.execute(*(f"drop role {role}" for role in roles if role == f"r_{name}"))
        if product == MARIADB:
            stand.execute(
                "delete from mysql.tables_priv where user = 'PUBLIC'",
                "delete from mysql.columns_priv where user = 'PUBLIC'",
                "flush privileges",
            )
        stand.execute(f"drop user {name}")
        if stand.rows("show global variables like 'partial_revokes'"):
            stand.execute("set global partial_revokes = off")


@pytest.mark.parametrize("name", CASES)
def test_a_table_is_read_whole_or_refused_with_its_grant(place: Place, name: str) -> None:
    """By every way that structures are asked for; typing what the refusal says mends it."""
    case = CASES[name]
    if case.only and not place.stand.rows(f"show global variables like '{case.only}'"):
        pytest.skip(f"only servers with {case.only} have this")
    if "role" in name and not place.stand.rows("show tables in mysql like 'role%'"):
        pytest.skip("this server has no roles")
    if case.table == "i" and not place.stand.rows(f"show tables in {place.database} like 'i'"):
        pytest.skip("this server has no invisible columns")
    place.grant(case)
    table, beside = (TableName(place.database, one) for one in (case.table, "beside"))
    source = place.source
    hint = f"GRANT SELECT ON `{place.database}`.`{case.table}` TO {place.account}"
    assert source.missing_grants([beside, table]) == ({table: hint} if name == "nothing" else {})
    baseline = source.baseline()
    seen = {one.name for one in baseline.tables}
    assert seen >= {beside}
    assert (table in seen) is (case.lacks is None)
    assert {one.name for one in source.structures()} == seen
    if case.lacks is None:
        assert len(source.structure(table).columns) == 4
        return
    if name == "nothing":
        assert [one.name for one in baseline.databases] == [place.database]
    for question in (lambda: source.structure(table), lambda: source.baseline([table])):
        with pytest.raises(TableError) as told:
            question()
        assert told.value.reason.startswith(case.lacks)
        assert told.value.hint == hint
    found = {
        (finding.subject, finding.hint)
        for finding in preflight(
            source,
            SourceEvidence(
                source.survey(), SourcePlan("shop", TablePatterns((f"{place.database}.*",)), None)
            ),
            {},
        )
    }
    if name != "nothing":
        assert (str(table), f"{hint};") in found
    place.stand.execute(hint)
    assert table in {one.name for one in source.baseline().tables}
    assert source.structure(table).name == table
