"""Structures read in bulk, held against what the server says in other ways."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import pytest

from lockstep.pipeline.schema.model import (
    ExpressionDefault,
    TableSchema,
    ValueDefault,
)
from lockstep.pipeline.schema.rows import row_structure
from lockstep.pipeline.values.table import TableName
from lockstep.resources.mysql.server import MySqlServer
from lockstep.resources.mysql.visible_tables import TABLES_PER_QUERY, Scope, scopes_of
from tests.fix_mysql import MySqlStand
from tests.mysql.filled import one_of_each
from tests.mysql.reading import server
from tests.schema.information_schema import comparable, read_server

BOTH = (
    "create table parent (a int, b varchar(9), primary key (a, b))",
    "create table child (id int primary key, a int, b varchar(9), foreign key both_ (a, b) "
    "references parent (a, b) on delete cascade on update set null, "
    "constraint `odd `` name` foreign key (id, b) references parent (a, b))",
    "create table keyless (a int, b int, unique key (a), key (b desc))",
    "create table prefixes (t text, b blob, v varchar(99), key (t(3), b(4)), key (v(5)), "
    "fulltext key (t), unique key (v))",
    "create table places (g geometry not null, p point not null, spatial key (g))",
    "create table made (a int, b int as (a + 1), c int as (a * 2) stored, d varchar(9) as "
    "(concat(a, '\\'x')), key (c))",
    "create table parts (a int primary key) partition by hash (a) partitions 3",
    "create table `a``b.c %s {where} é` (`x``y` int primary key, `select` enum('a''b','c\\\\d',"
    "' unsigned'), `π` set('x','y') character set latin1) default character set cp1251",
    "create table myisam (a int) engine = myisam",
    "create table defaults (a int default 0, b varchar(9) default 'it''s', c char(3) default '', "
    "d decimal(9,3) default 1.5, e float default 1.5, f double(9,2) default -2, g bit(9) default "
    "b'101', h enum('x','y') default 'y', i set('x','y') default 'x,y', j date default "
    "'2024-01-02', k datetime(3) default '2024-01-02 03:04:05.678', l time default '01:02:03', "
    "m year default 1999, n varbinary(9) default 'ab', o binary(3) default 'ab', p bigint "
    "unsigned default 18446744073709551615, q int null, r int not null, s varchar(9) default "
    "'null', t int zerofill default 7, u varchar(30) default 'current_timestamp', v varchar(9) "
    "character set utf16 default 'aé')",
    "create table moments (a timestamp default current_timestamp on update current_timestamp, "
    "b datetime(6) default now(6) on update now(6), c timestamp null, d int default (1 + 2), "
    "e varchar(40) default (concat('a', 'b')))",
    "create table counted (id bigint unsigned not null auto_increment, key (id)) "
    "auto_increment = 7 character set latin1 collate latin1_bin",
)
MYSQL = (
    "create table hidden (a int primary key, b int invisible, c int, key k (c) invisible)",
    "create table functional (a int, j json, key f ((a + 1), a), unique key ((cast(j->>'$.x' as "
    "char(9)))), key m ((cast(j->'$.y' as unsigned array))))",
    "create table spatial_ (p point not null srid 4326, g geometry srid 0, spatial key (p))",
    "create table vectors (v vector(5), w vector)",
    "set session sql_generate_invisible_primary_key = on",
    "create table own_key (a int)",
    "set session sql_generate_invisible_primary_key = off",
    "create table compressed (a int primary key) row_format = compressed "
    "tablespace = innodb_file_per_table",
    "create table more_defaults (a json default (json_array()), b blob default ('x'), "
    "c char(36) default (uuid()))",
)
MARIADB = (
    "create table hidden (a int primary key, b int invisible default 5, c int, key k (c) ignored)",
    "create table more_types (a inet6, b inet4, c uuid, d json, e varchar(99) compressed, "
    "f blob compressed, g uuid default uuid())",
    "create table versioned (a int primary key) with system versioning",
    "create table periods (a int, s timestamp(6) generated always as row start, e timestamp(6) "
    "generated always as row end, period for system_time (s, e)) with system versioning",
    "create table long_unique (a text, unique key (a))",
    "create sequence numbers",
    "create table compressed (a int primary key) row_format = compressed",
)


@dataclass(frozen=True, slots=True)
class Shop:
    """A database with a table of every kind."""

    stand: MySqlStand
    mariadb: bool
    database: str

    @property
    def source(self) -> MySqlServer:
        return server(self.stand)

    def name(self, table: str) -> TableName:
        return TableName(self.database, table)

    def table(self, name: str) -> TableSchema:
        (found,) = self.source.baseline([self.name(name)]).tables
        return found

    def told(self) -> dict[TableName, TableSchema]:
        """What the tests' own reader says."""
        with self.stand.connect() as connection, connection.cursor() as cursor:
            found = read_server(cursor, mariadb=self.mariadb, like=self.database)
        return {name: comparable(table) for name, table in found.tables.items()}


@pytest.fixture(
    scope="module", params=[pytest.param("mysql", marks=pytest.mark.since(9, 0)), "mariadb"]
)
def shop(request: pytest.FixtureRequest) -> Iterator[Shop]:
    stand: MySqlStand = request.getfixturevalue(request.param)
    mariadb = request.param == "mariadb"
    with stand.own_database() as name:
        with stand.connect(name) as connection, connection.cursor() as cursor:
            cursor.execute("set sql_mode = '', time_zone = '+00:00'")
            for number, case in enumerate(one_of_each()):
                if request.param in case.servers:
                    cursor.execute(case.create(f"t{number}"))
            for statement in (*BOTH, *(MARIADB if mariadb else MYSQL)):
                cursor.execute(statement)
        yield Shop(stand, mariadb, name)


def test_every_table_is_what_another_reader_says(shop: Shop) -> None:
    """The tests' reader asks with other statements; the account sees all with SELECT alone, also
    what foreign keys do, which MariaDB hides from its information_schema."""
    told = shop.told()
    found = {t.name: comparable(t) for t in shop.source.baseline().tables}
    found = {name: table for name, table in found.items() if name.database == shop.database}
    assert len(found) > 80
    assert sorted(map(str, found)) == sorted(map(str, told))
    for name, table in told.items():
        known = _without_misreading(table)
        assert _in_order(found[name]) == _in_order(known), name


def _in_order(table: TableSchema) -> TableSchema:
    keys = tuple(sorted(table.keys, key=lambda key: key.name))
    return replace(
        table, keys=keys, foreign_keys=tuple(sorted(table.foreign_keys, key=lambda key: key.name))
    )


def _without_misreading(table: TableSchema) -> TableSchema:
    """The tests' reader takes an ENUM's member ' unsigned' for a word."""
    columns = (
        replace(column, unsigned=False) if column.type == "enum" else column
        for column in table.columns
    )
    return replace(table, columns=tuple(columns))


def test_some_tables_are_as_in_the_whole(shop: Shop) -> None:
    """Asked by name, one by one, by database, and all."""
    whole = {table.name: table for table in shop.source.baseline().tables}
    names = [name for name in whole if name.database == shop.database]
    for some in (names[:1], names[3:9], names[:100]):
        found = shop.source.baseline([*some, shop.name("nowhere")]).tables
        assert {table.name: table for table in found} == {name: whole[name] for name in some}
    assert shop.source.baseline([]).tables == ()


def test_structures_are_those_of_ordinary_tables(shop: Shop) -> None:
    """What a TABLE_MAP with full metadata would say; versioned tables are not among them."""
    tables = [table for table in shop.source.baseline().tables if not table.system_versioned]
    found = {table.name: row_structure(table) for table in tables}
    assert found == {structure.name: structure for structure in shop.source.structures()}
    assert shop.source.structure(shop.name("child")) == found[shop.name("child")]


def test_expressions_are_the_server_s(shop: Shop) -> None:
    """Quotes are quotes, and CURRENT_TIMESTAMP has one form."""
    made = shop.table("made")
    text = "'\\'x'" if shop.mariadb else "_utf8mb4'\\'x'"
    assert [column.generated for column in made.columns] == [
        None,
        "`a` + 1" if shop.mariadb else "(`a` + 1)",
        "`a` * 2" if shop.mariadb else "(`a` * 2)",
        f"concat(`a`,{text})",
    ]
    assert [column.stored for column in made.columns] == [False, False, True, False]
    moments = shop.table("moments")
    defaults = [column.default for column in moments.columns]
    assert defaults[:3] == [
        ExpressionDefault("CURRENT_TIMESTAMP"),
        ExpressionDefault("CURRENT_TIMESTAMP(6)"),
        None,
    ]
    assert [column.on_update for column in moments.columns] == [True, True, False, False, False]


def test_what_the_other_reader_does_not_tell(shop: Shop) -> None:
    """Row format, partitions, and literals of types that the server prints as bytes; MariaDB prints
    expressions."""
    assert shop.table("compressed").row_format == "compressed"
    assert shop.table("parts").partitioned
    defaults = {column.name: column.default for column in shop.table("defaults").columns}
    assert defaults["g"] == ValueDefault("b'101'")
    assert defaults["n"] == ValueDefault("0x6162")


def test_databases_have_what_tables_inherit(shop: Shop) -> None:
    """System databases are left out, but for the one that may have a managed service's tables."""
    found = {database.name: database for database in shop.source.baseline().databases}
    assert found[shop.database].charset == "utf8mb4"
    assert not {"sys", "information_schema", "performance_schema"} & set(found)


def test_questions_are_few_however_many_tables() -> None:
    """Some tables are asked for by their names, so many of a database at once."""
    few = tuple(str(number) for number in range(3))
    many = tuple(f"{number:03}" for number in range(TABLES_PER_QUERY + 1))
    names = [*(TableName("b", name) for name in many), *(TableName("a", name) for name in few)]
    assert scopes_of(None) == (Scope(),)
    assert scopes_of(names) == (
        Scope("a", few),
        Scope("b", many[:TABLES_PER_QUERY]),
        Scope("b", many[TABLES_PER_QUERY:]),
    )
    odd = [TableName("a", name) for name in ("x", "X", "café", "y")]
    assert scopes_of(odd) == (
        Scope("a", ("y",)),
        *(Scope("a", (name,)) for name in ("X", "café", "x")),
    )


def test_names_that_differ_in_case_alone_are_two(shop: Shop) -> None:
    """Also where the server compares literals without regard to case."""
    names = [shop.name(name) for name in ("Cased", "cased")]
    shop.stand.execute(
        *(f"create table `{name.name}` ({name.name}_{n} int)" for n, name in enumerate(names)),
        database=shop.database,
    )
    tables = shop.source.baseline([*names, shop.name("child")]).tables
    found = {table.name: table for table in tables}
    assert {*found} == {*names, shop.name("child")}
    assert [found[name].columns[0].name for name in names] == ["Cased_0", "cased_1"]
    shop.stand.execute(*(f"drop table `{name.name}`" for name in names), database=shop.database)
