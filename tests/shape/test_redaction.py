"""Statements of tables that hide columns are kept without values."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.schema.context import StatementContext
from pipeline.shape.redaction import redacted

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
    assert redacted(text, CONTEXT) == kept


@given(st.text(st.characters(codec="utf-8", exclude_characters="\\'"), min_size=3))
def test_no_value_of_a_default_stays(value: str) -> None:
    text = f"alter table t add c varchar(9) default '{value}', add d int default 0"
    assert f"'{value}'" not in redacted(text, CONTEXT)
