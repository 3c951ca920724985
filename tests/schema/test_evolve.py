"""What statements do to a schema, and what is said of it, where no server is needed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lockstep.pipeline.schema.code import after_code_statement
from lockstep.pipeline.schema.context import ServerDialect, StatementContext
from lockstep.pipeline.schema.effects import (
    Changed,
    Created,
    Dropped,
    NotFollowed,
    Renamed,
    Truncated,
    Unchanged,
    UnknownTable,
    UnloggedChange,
)
from lockstep.pipeline.schema.evolve import evolve
from lockstep.pipeline.schema.model import DatabaseCode, ServerSchema
from lockstep.pipeline.schema.rows import row_structure, schema_of
from lockstep.pipeline.schema.statements.changes import Irrelevant, NotUnderstood
from lockstep.pipeline.schema.statements.read import read_change
from tests.schema.schemas_made import EMPTY, MARIADB, MYSQL, after, named, table

_A = "create table a (id int primary key, b int, c varchar(5))"
_UNKNOWN = EMPTY.with_unknown_tables(named("a"))


@pytest.mark.parametrize(
    ("statements", "context", "schema", "effects", "unknown"),
    [
        # No server does that: one of the names means another table, perhaps a temporary one.
        (
            [_A, "create table b (x int)", "rename table a to b"],
            MYSQL,
            EMPTY,
            [NotFollowed, NotFollowed],
            "ab",
        ),
        # A table that is created where one is known to be is a gap in the history.
        ([_A, _A], MYSQL, EMPTY, [NotFollowed], "a"),
        # A table that may have been there was not, if it could be created.
        ([_A], MYSQL, _UNKNOWN, [Created], ""),
        # IF NOT EXISTS leaves open which of the two tables there is now.
        (["create table if not exists a (id int)"], MYSQL, _UNKNOWN, [UnknownTable], "a"),
        # OR REPLACE makes a table known again, whatever was there.
        (["create or replace table a (id int)"], MARIADB, _UNKNOWN, [Dropped, Created], ""),
        # No server of its kind is known to do that.
        (["create table a (b int, key ((b + 1)))"], MARIADB, EMPTY, [NotFollowed], "a"),
        # MariaDB changes members with characters that their set may lack.
        (["create table a (e enum('Ü') charset ascii)"], MARIADB, EMPTY, [NotFollowed], "a"),
        ([_A, "alter table a force"], MYSQL, EMPTY, [Unchanged], ""),
    ],
)
def test_effects(
    statements: list[str],
    context: StatementContext,
    schema: ServerSchema,
    effects: list[type],
    unknown: str,
) -> None:
    """Of the last statement; a table whose structure is unknown is in no schema."""
    done = after(statements, context, schema)
    assert effects == [type(effect) for effect in done.effects]
    assert {named(name) for name in unknown} == done.schema.unknown_tables
    assert done.schema.tables.keys() == ({named("a")} if not unknown else set())


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        # Of a table whose structure is unknown it is told what happens to it all the same.
        ("alter table a add x int", UnknownTable(named("a"), "ALTER TABLE")),
        ("truncate a", Truncated(named("a"))),
        ("drop table a", Dropped(named("a"))),
        ("rename table a to z", Renamed(named("a"), named("z"))),
        # A statement on a table that is not there, and went through, is a gap in the history.
        ("alter table z add x int", UnknownTable(named("z"), "ALTER TABLE")),
        ("truncate z", UnknownTable(named("z"), "TRUNCATE")),
        ("drop table z", UnknownTable(named("z"), "DROP TABLE")),
        ("drop table if exists z", Unchanged(named("z"), "it does not exist")),
        ("rename table z to other.y", UnknownTable(named("z"), "RENAME")),
        ("rename table z to y", Unchanged(named("z"), "it is a view, not a table")),
    ],
)
def test_tables_that_are_unknown_or_missing(statement: str, expected: object) -> None:
    assert after([statement], schema=_UNKNOWN).effects[0] == expected


@pytest.mark.parametrize(
    "alter",
    [
        *("drop x", "modify x int", "add b int", "add d int after x", "drop key x", "add key (x)"),
        *("drop id, drop b, drop c", "modify b int first, change b d int after c"),
    ],
)
def test_what_does_not_fit(alter: str) -> None:
    """A clause that does not fit the table makes its structure unknown, no guess."""
    done = after([_A, f"alter table a {alter}"])
    assert isinstance(done.effects[0], NotFollowed)
    assert {named("a")} == done.schema.unknown_tables
    assert done.schema.tables == {}


def test_a_trigger_that_cannot_be_read() -> None:
    """From there on nobody knows what triggers and views the databases have."""
    known = EMPTY.with_database(replace(EMPTY.databases["shop"], code=DatabaseCode()))
    done = after_code_statement(
        known, "create trigger t before insert a for each row set @x = 1", MYSQL
    )
    assert done == EMPTY


@pytest.mark.parametrize(
    ("statement", "triggers", "views"),
    [
        ("create trigger if not exists t after insert on b for each row set @x = 1", {"a"}, {"a"}),
        ("create view if not exists v as select * from b", {"a"}, {"a"}),
        ("create or replace view v as select * from b", {"a"}, {"b"}),
        ("set statement lock_wait_timeout = 5 for drop view v", {"a"}, set()),
        ("set statement lock_wait_timeout = 5 for drop trigger t", set(), {"a"}),
    ],
)
def test_triggers_and_views(statement: str, triggers: set[str], views: set[str]) -> None:
    """Servers log CREATE … IF NOT EXISTS of a trigger or view that exists."""
    schema = EMPTY.with_database(replace(EMPTY.databases["shop"], code=DatabaseCode()))
    for text in (
        "create trigger t after insert on a for each row delete from b",
        "create view v as select * from a",
        statement,
    ):
        schema = after_code_statement(schema, text, MARIADB)
    code = schema.databases["shop"].code
    assert code is not None
    assert {trigger.table.name for trigger in code.triggers or ()} == triggers
    assert {table.name for view in code.views for table in view.code.reads} == views


def test_rows_that_change_without_events() -> None:
    """Partition operations leave rows dirty, of both tables where there are two, even if the
    structure of one is unknown."""
    parted = "create table a (id int) partition by hash (id) partitions 2"
    effects = after([parted, "create table b (id int)", "alter table a truncate partition p0"])
    assert UnloggedChange(named("a"), "TRUNCATE PARTITION") in effects.effects
    exchange = "alter table a exchange partition p0 with table b"
    for schema in (EMPTY, _UNKNOWN):
        done = after(
            [*([parted] if schema is EMPTY else []), "create table b (id int)"], MYSQL, schema
        )
        both = after([exchange], schema=done.schema).effects
        assert {named("a"), named("b")} == {
            one.table for one in both if isinstance(one, UnloggedChange)
        }


def test_a_table_that_is_renamed_last() -> None:
    """What else the statement does to the old name no longer matters: it has no table now."""
    done = after([_A, "alter ignore table a add unique (b), rename to z"], MARIADB)
    assert [type(effect) for effect in done.effects] == [Changed, UnloggedChange, Renamed]


def test_an_engine_without_foreign_keys_drops_them() -> None:
    """A server drops the foreign keys of a table that gets such an engine."""
    parent = "create table p (id int primary key) engine = InnoDB"
    child = "create table c (p int, foreign key (p) references p (id)) engine = InnoDB"
    for statement, count in (
        ("alter table c comment 'x'", 1),
        ("alter table c engine = MyISAM", 0),
    ):
        changed = after([parent, child, statement], MARIADB).schema.table(named("c"))
        assert changed is not None
        assert len(changed.foreign_keys) == count


@pytest.mark.parametrize("statement", ["drop database shop", "create or replace database shop"])
def test_dropped_databases(statement: str) -> None:
    """A database takes its tables along, the unknown ones too. MariaDB logs nothing else if it
    replaces one."""
    schema = after([_A]).schema.with_unknown_tables(named("u"))
    done = after([statement], MARIADB, schema)
    assert {named("a"), named("u")} == {
        effect.table for effect in done.effects if isinstance(effect, Dropped)
    }
    assert (done.schema.tables, done.schema.unknown_tables) == ({}, frozenset())


def test_a_database_with_an_unknown_collation_keeps_its_tables() -> None:
    """Only a new table's character set is unknown then."""
    done = after([_A, "alter database shop collate klingon_ci"]).schema
    assert done.tables.keys() == {named("a")}
    assert done.databases == {}


def test_phases() -> None:
    """An ALTER in two phases happens at its commit."""
    schema = after([_A], MARIADB).schema
    read = read_change("alter table a drop b", MARIADB)
    assert not isinstance(read, Irrelevant | NotUnderstood)
    for phase, columns in (("start", 3), ("rollback", 3), ("commit", 2)):
        done = evolve(schema, read, replace(MARIADB, alter_phase=phase))
        assert columns == len(done.schema.tables[named("a")].columns)


def test_without_a_character_set() -> None:
    """A table told by a table map alone takes columns that name their set, and no others."""
    told = schema_of(row_structure(table(_A)))
    schema = EMPTY.with_table(told)
    good = after(["alter table a add d int, add e text charset latin1"], schema=schema)
    assert isinstance(good.effects[0], Changed)
    bad = after(["alter table a add d text"], schema=schema)
    assert isinstance(bad.effects[0], NotFollowed)


def test_lower_case_names() -> None:
    """Where the server keeps names in lower case, statements may write them in any."""
    context = replace(MYSQL, facts=ServerDialect(lower_case_table_names=1))
    schema = replace(EMPTY, lower_case_table_names=1)
    done = after([_A.replace(" a ", " SHOP.A "), "alter table Shop.a drop b"], context, schema)
    assert {named("a")} == done.schema.tables.keys()


def _defaults(context: StatementContext) -> tuple[object, ...]:
    made = table("create table t (a timestamp, b timestamp, c int)", context)
    return tuple(column.default and column.default.text for column in made.columns)


def test_old_timestamps() -> None:
    """By the old rules the first TIMESTAMP is kept up to date and the next has a zero."""
    old = replace(MYSQL, explicit_timestamps=False)
    assert _defaults(old) == ("CURRENT_TIMESTAMP", "0000-00-00 00:00:00", None)
    assert _defaults(MYSQL) == (None, None, None)
