"""Statements of tables that hide columns are kept without values."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep.pipeline.schema.context import StatementContext
from lockstep.pipeline.schema.statements.changes import (
    AlterTable,
    CreateTable,
    DefineColumn,
    WrittenColumn,
)
from lockstep.pipeline.schema.statements.read import read_change
from lockstep.pipeline.shape.redaction import redact_statement
from tests.schema.cases import OWN, read_cases
from tests.schema.schemas_made import MARIADB, MYSQL

CONTEXT = StatementContext()


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        (
            "create table t (id int(11), n varchar(40) default 'x' comment \"c\", "
            "p decimal(10, 2))",
            "create table t (id int(11), n varchar(40) default '***' comment '***', "
            "p decimal(10, 2))",
        ),
        ("alter table t add e enum('a', 'b')", "alter table t add e enum('***', '***')"),
        ("alter table t add d int default -5", "alter table t add d int default -'***'"),
        (
            "alter table t add d int default (1 + 2)",
            "alter table t add d int default ('***' + '***')",
        ),
        (
            "alter table t add partition (partition p values less than (2020))",
            "alter table t add partition (partition p values less than ('***'))",
        ),
        (
            "alter table t add partition (partition p values in (1,2))",
            "alter table t add partition (partition p values in ('***','***'))",
        ),
        ("alter table t add check (n > 5)", "alter table t add check (n > '***')"),
        ("alter table t add g int as (7) stored", "alter table t add g int as ('***') stored"),
        ("alter table t add key k (n(8), x'41')", "alter table t add key k (n(8), '***')"),
        (
            "create unique index k using btree on shop.t (n(8), m)",
            "create unique index k using btree on shop.t (n(8), m)",
        ),
        ("alter table t add unique (n(8))", "alter table t add unique (n(8))"),
        (
            "alter table t change `a` b double precision(9,2), add column if not exists "
            "(c datetime(6) default current_timestamp(6) on update now(6), d national char(4))",
            "alter table t change `a` b double precision(9,2), add column if not exists "
            "(c datetime(6) default current_timestamp(6) on update now(6), d national char(4))",
        ),
        (
            "alter table t add g int as (cast(n as decimal(9,2)) + year(1985)) stored",
            "alter table t add g int as (cast(n as decimal(9,2)) + year('***')) stored",
        ),
        ("create table u select 'x' y, b'1', 0xff", "create table u select '***' y, '***', '***'"),
        ("create table t (a int) -- x", "create table t (a int) "),
        ("create /* x */ table t # x\n(a int)", "create table t (a int)"),
        (
            "create table t (a int) /*!50100 engine=x */",
            "create table t (a int) /*!50100 engine=x */",
        ),
        ("alter table t comment 'unclosed", "'***'"),
    ],
)
def test_values_go_and_types_stay(text: str, kept: str) -> None:
    assert redact_statement(text, CONTEXT) == kept


@pytest.mark.parametrize("flavour", ["mysql", "mariadb"])
def test_every_type_keeps_its_length(flavour: str) -> None:
    """Whatever a statement of our cases defines: numbers that belong to a type are no values."""
    context = MYSQL if flavour == "mysql" else MARIADB
    compared = set()
    for case in read_cases(OWN, flavour):
        for statement in case.statements:
            sizes = _sizes(read_change(statement, context))
            if shown := _sizes(read_change(redact_statement(statement, context), context)):
                assert shown == sizes, statement
                compared |= {kind for kind, *numbers in sizes if any(numbers)}
    lengths = {"bit", "char", "varchar", "binary", "varbinary", "time", "datetime", "timestamp"}
    assert compared >= lengths | {"decimal", "float", "double"}
    assert ("vector" in compared) is (flavour == "mysql")


def _sizes(read: object) -> list[tuple[str, int | None, int | None, int | None]]:
    """The types of columns that a statement defines, with their numbers."""
    types = []
    for change in read if isinstance(read, tuple) else ():
        match change:
            case CreateTable(elements=parts) | AlterTable(clauses=parts):
                types += [part.type for part in parts if isinstance(part, WrittenColumn)]
                types += [part.column.type for part in parts if isinstance(part, DefineColumn)]
    return [(kind.name, kind.length, kind.precision, kind.scale) for kind in types]


@given(st.text(st.characters(codec="utf-8", exclude_characters="\\'"), min_size=3))
def test_no_value_of_a_default_stays(value: str) -> None:
    text = f"alter table t add c varchar(9) default '{value}', add d int default 0"
    assert f"'{value}'" not in redact_statement(text, CONTEXT)


_SECRET = "123456789"


@given(
    st.sampled_from(
        [
            *("default (abs({}))", "default (json_array({},1))", "default (coalesce({},1))"),
            *("default char({})", "default (not char({}))", "default (1 + year({}))"),
            *("check (x > 1 and ({}))", "check (f(n, char({})))", "as (time({}) + x)"),
            *("as (case char({}) when x then 1 end)", "as (interval year({}) day + x)"),
        ]
    ),
    st.sampled_from(
        ["alter table t add c int(9) {}", "create table t (n int, c int {}, key (n(9)))"]
    ),
)
def test_no_argument_of_a_function_stays(expression: str, statement: str) -> None:
    text = statement.format(expression.format(_SECRET))
    assert _SECRET not in redact_statement(text, CONTEXT)


@pytest.mark.parametrize(
    "text",
    [
        "create table u select ({}) as ssn, char({}) c",
        "create table u select sql_no_cache char({},{}) as ssn from t join v on f(abs({}))",
        "create table u (key ((abs({})))) select distinct char({}) from t where a = 1 and ({})",
        "alter table t add key k ((abs({})))",
    ],
)
def test_no_number_of_a_select_stays(text: str) -> None:
    assert _SECRET not in redact_statement(text.replace("{}", _SECRET), CONTEXT)
