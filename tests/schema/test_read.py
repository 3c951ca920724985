"""Statements by their first words, and what is said of those that cannot be read."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep.pipeline.schema.statements.changes import DropTables, Irrelevant, NotUnderstood
from lockstep.pipeline.schema.statements.read import read_change
from lockstep.pipeline.values.table import TableName
from tests.schema.schemas_made import MARIADB, MYSQL, named


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("grant all on a.* to b", "GRANT"),
        ("create temporary table a (id int)", "CREATE TEMPORARY TABLE"),
        ("drop temporary table if exists a", "DROP TEMPORARY TABLE"),
        ("create definer=`root`@`%` view v as select 1", "CREATE VIEW"),
        (
            "create or replace algorithm=merge sql security invoker view v as select 1",
            "CREATE VIEW",
        ),
        (
            "create definer=current_user trigger t before insert on a for each row x",
            "CREATE TRIGGER",
        ),
        ("alter user u identified by 'x'", "ALTER USER"),
        ("drop spatial reference system 4120", "DROP SPATIAL REFERENCE SYSTEM"),
        ("", "nothing"),
        ("/* only a comment */", "nothing"),
    ],
)
def test_passed(text: str, kind: str) -> None:
    """Statements on the list of those without consequences are named by their words."""
    assert Irrelevant(kind) == read_change(text, MYSQL)


def test_names() -> None:
    """A table without a database is in the session's."""
    found = read_change("drop table a, `x y`.b, .c", MYSQL)
    names = (named("a"), TableName("x y", "b"), named("c"))
    assert (DropTables(names),) == found


@pytest.mark.parametrize(
    ("text", "may_touch"),
    [
        ("alter table a frobnicate", (named("a"),)),
        ("alter table a add b no_such_type", (named("a"),)),
        ("alter table a frobnicate, rename to x.b", (named("a"), TableName("x", "b"))),
        ("create table a (b no_such_type)", (named("a"),)),
        ("insert into a values (1)", None),
        ("frobnicate", None),
        ("drop table a frobnicate", None),
        ("create frobnicator table a", None),
        ("alter table 'a' add b int", None),
        ("alter table a add b int comment 'x", None),
    ],
)
def test_what_is_not_understood(text: str, may_touch: tuple[TableName, ...] | None) -> None:
    """The tables it may touch are named where it touches no others; None is any table."""
    found = read_change(text, MYSQL)
    assert isinstance(found, NotUnderstood)
    assert may_touch == found.may_touch


@pytest.mark.parametrize(
    ("text", "may_touch"),
    [
        ("create table a (b varchar2(9))", (named("a"),)),
        ("alter table a add b int", (named("a"),)),
        ("drop table a", ()),
        ("create or replace procedure a as begin null; end", ()),
        ("grant select on a to b", ()),
    ],
)
def test_other_grammars(text: str, may_touch: tuple[TableName, ...]) -> None:
    """Under sql_mode=ORACLE MariaDB's types have other names: no column is read, and all that
    defines none is."""
    found = read_change(text, replace(MARIADB, sql_mode=1 << 9 | 1 << 2))
    assert (found.may_touch if isinstance(found, NotUnderstood) else ()) == may_touch


_WORDS = (
    "create alter drop rename table a b int add column ( ) , ' ` \" /* */ /*! -- to like select "
    "default not null key primary partition by first after . ; 1 x'0' charset ="
)


@given(st.lists(st.sampled_from(_WORDS.split(" ")), max_size=25).map(" ".join))
def test_no_text_is_an_exception(text: str) -> None:
    """Whatever words stand in whatever order, there is an answer."""
    for context in (MYSQL, MARIADB):
        assert isinstance(read_change(text, context), tuple | Irrelevant | NotUnderstood)
