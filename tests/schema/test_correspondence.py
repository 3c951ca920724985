"""Which column of a structure that a person gave is which of before, and when nobody knows."""

from __future__ import annotations

import pytest

from lockstep.pipeline.schema.context import StatementContext
from lockstep.pipeline.schema.table_effects import (
    match_columns,
    may_rename_columns,
    reason_renames_refused,
    reason_unclear,
)
from tests.schema.schemas_made import table

BEFORE = table("create table t (id int primary key, s varchar(9), n int)")


def said(text: str) -> list[tuple[str, str]]:
    """`a=b c=d`, as a person says it."""
    return [(old, new) for old, _, new in (word.partition("=") for word in text.split())]


@pytest.mark.parametrize(
    ("columns", "renames", "origins"),
    [
        ("id int primary key, s varchar(9), n int", "", ("id", "s", "n")),
        ("id int primary key, n int, S varchar(9)", "", ("id", "n", "s")),
        ("id int primary key, s2 varchar(9), n int", "", ("id", None, "n")),
        ("id int primary key, s2 varchar(9), n int", "s=s2", ("id", "s", "n")),
        ("id int primary key, s2 varchar(9), n int", "S=S2", ("id", "s", "n")),
        ("id int primary key, n varchar(9), s int", "s=n n=s", ("id", "s", "n")),
        ("id int primary key, n varchar(9), m int", "s=n n=m", ("id", "s", "n")),
        ("id int primary key, s2 varchar(9)", "s=s2", ("id", "s")),
        ("id int primary key, s2 varchar(9), n int, x int", "s=s2", ("id", "s", "n", None)),
    ],
)
def test_a_column_is_what_a_person_says_or_what_its_name_says(
    columns: str, renames: str, origins: tuple[str | None, ...]
) -> None:
    given = table(f"create table t ({columns})")
    assert match_columns(BEFORE, given, said(renames)) == origins
    assert reason_renames_refused(BEFORE, given, said(renames)) is None


@pytest.mark.parametrize(
    ("columns", "renames", "why"),
    [
        ("id int, s2 varchar(9), n int", "x=s2", "had no column x where it stopped, only id, s, n"),
        (
            "id int, s2 varchar(9), n int",
            "s=s3",
            "given structure has no column s3, only id, s2, n",
        ),
        ("id int, s varchar(9), n int", "s=s", "keeps its name"),
        ("id int, s varchar(9), n int", "s=S", "keeps its name"),
        ("id int, a varchar(9), b varchar(9)", "s=a s=b", "s cannot have become two columns"),
        ("id int, a varchar(9)", "s=a n=a", "a cannot have been two columns"),
        ("id int, n varchar(9)", "s=n", "already a column n, and nothing says what became of it"),
        ("id int, a varchar(9), s int, n int", "s=a", "given structure has a column s as well"),
        ("id int, n varchar(9), s int", "s=n", "already a column n"),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(columns: str, renames: str, why: str) -> None:
    found = reason_renames_refused(BEFORE, table(f"create table t ({columns})"), said(renames))
    assert found is not None
    assert why in found


@pytest.mark.parametrize(
    ("columns", "renames", "renaming"),
    [
        ("id int primary key, s varchar(9), n int", "", False),
        ("id int primary key, s varchar(20), n bigint", "", False),
        ("id int primary key, s varchar(9), n int, x int default 5", "", False),
        ("id int primary key, s varchar(9)", "", False),
        ("id int primary key, s2 varchar(9), n int", "s=s2", True),
        ("key_ int primary key, s varchar(9), n int", "id=key_", True),
    ],
)
def test_rows_go_on_where_all_is_told(columns: str, renames: str, renaming: bool) -> None:
    given = table(f"create table t ({columns})")
    assert reason_unclear(BEFORE, given, said(renames), may_rename=renaming) is None


@pytest.mark.parametrize(
    ("columns", "renames", "renaming", "why"),
    [
        ("id int primary key, s varchar(9), n int", "", True, "renames, which"),
        ("id int primary key, s2 varchar(9), n int", "", False, "s was renamed to s2"),
        ("id int primary key, s2 varchar(9), m int", "s=s2", True, "n was renamed to m"),
        ("id int primary key, s2 varchar(5), n int", "s=s2", True, "values of s2 may have"),
        ("id int not null, s varchar(9), n int", "", False, "its primary key was (id)"),
        ("id int primary key, s varchar(9), n int, x datetime default now()", "", False, "moment"),
        ("id int primary key, s varchar(9), n int, x int as (n)", "", False, "x is generated"),
        ("id int primary key, s varchar(9), n int, x float default '1e3'", "", False, "only the"),
    ],
)
def test_rows_are_read_where_something_is_not_told(
    columns: str, renames: str, renaming: bool, why: str
) -> None:
    """Names, and whatever the rules of statements have a table read for."""
    given = table(f"create table t ({columns})")
    found = reason_unclear(BEFORE, given, said(renames), may_rename=renaming)
    assert found is not None
    assert why in found


@pytest.mark.parametrize(
    ("text", "may"),
    [
        ("alter table t convert to charset utf8mb4, change s s2 text", True),
        ("alter table t rename column s to s2", True),
        ("alter table t modify s text comment 'change'", False),
        ("alter table t comment 'unfinished", True),
    ],
)
def test_a_statement_that_nobody_followed_may_rename(text: str, may: bool) -> None:
    """By its words, not by what stands in quotes; one that cannot be read may do anything."""
    assert may_rename_columns(text, StatementContext()) is may
