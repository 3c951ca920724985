"""Which changes of a column leave stored values as they are."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lockstep.pipeline.schema.context import PAD_CHAR_TO_FULL_LENGTH, STRICT
from lockstep.pipeline.schema.model import ColumnSchema
from lockstep.pipeline.schema.table_effects import reason_column_values_change
from tests.schema.schemas_made import table

KEPT = """
int                         -> bigint
int unsigned                -> bigint
varchar(10)                 -> varchar(20)
varchar(10)                 -> text
varchar(63)                 -> tinytext
text charset utf8mb3        -> text
tinytext charset latin1     -> text
longtext charset latin1     -> longtext
char(10)                    -> varchar(10)
varchar(9) charset latin1   -> varchar(9)
varchar(9) charset ascii    -> varchar(9) charset latin1
decimal(10,2)               -> decimal(12,3)
decimal(40,2)               -> decimal(45,2)
float                       -> double
datetime                    -> datetime(6)
date                        -> datetime
enum('a','b')               -> enum('a','b','c')
set('a')                    -> set('a','b')
binary(4)                   -> varbinary(4)
binary(200)                 -> tinyblob
varbinary(4)                -> blob
int                         -> decimal(10,0)
int                         -> decimal(45,0)
bigint                      -> decimal(21,2)
bigint unsigned             -> decimal(20,0)
bit(1)                      -> bit(8)
int not null                -> int
int as (1 + 1) stored       -> int
int                         -> int not null
"""
CHANGED = """
bigint                      -> int
int                         -> int unsigned
int unsigned                -> int
varchar(20)                 -> varchar(10)
varchar(10)                 -> char(10)
varchar(255)                -> tinytext
char(200) charset latin1    -> tinytext
text charset latin1         -> text
varchar(9)                  -> varchar(9) charset latin1
varchar(9) charset gbk      -> varchar(9) charset latin1
decimal(10,2)               -> decimal(10,3)
decimal(40,2)               -> decimal(45,3)
double                      -> float
datetime(6)                 -> datetime
enum('a','b')               -> enum('b','a')
enum('a','b')               -> enum('a')
int                         -> decimal(10,1)
int                         -> decimal(45,3)
int                         -> decimal(12,0) unsigned
mediumint unsigned          -> decimal(7,0)
bigint unsigned             -> decimal(19,0)
time                        -> time(3)
binary(4)                   -> varbinary(3)
binary(4)                   -> binary(8)
varbinary(4)                -> varchar(4)
timestamp                   -> datetime
int                         -> varchar(20)
int as (1) stored           -> int as (2) stored
int                         -> int as (1) stored
int                         -> int auto_increment primary key
"""


def pair(line: str) -> tuple[ColumnSchema, ColumnSchema]:
    """The column before and after, each by its definition."""
    before, after = (table(f"create table t (c {part})").columns[0] for part in line.split("->"))
    return before, after


@pytest.mark.parametrize("line", KEPT.strip().splitlines())
def test_values_stay(line: str) -> None:
    """Nothing but the definition changes."""
    assert reason_column_values_change(*pair(line), STRICT) is None


@pytest.mark.parametrize("line", CHANGED.strip().splitlines())
def test_values_may_change(line: str) -> None:
    """In doubt they have, and a sentence says why. Even a strict session truncates spaces at the
    end of a text."""
    assert reason_column_values_change(*pair(line), STRICT)


def test_not_null_depends_on_the_session() -> None:
    """A session that is not strict makes a value of NULL, even of a generated one."""
    assert reason_column_values_change(*pair("int -> int not null"), 0)
    assert reason_column_values_change(*pair("int as (1) stored -> int not null"), 0)


def test_a_text_in_a_set_that_is_not_read_stays() -> None:
    """A statement about other columns of its table stops no run."""
    (text,) = table("create table t (c text)").columns
    text = replace(text, charset="unread", collation="unread_bin")
    assert reason_column_values_change(text, text, STRICT) is None


def test_the_padding_of_a_char_depends_on_the_session() -> None:
    """ALTER TABLE reads a CHAR as a SELECT of the session does."""
    char = pair("char(10) -> varchar(10)")
    assert reason_column_values_change(*char, STRICT | PAD_CHAR_TO_FULL_LENGTH)


def test_the_reason_of_an_enum_is_what_changed() -> None:
    """Its members, or only the character set in which it is shown."""
    members = pair("enum('a','b') -> enum('b','a')")
    charset = pair("enum('a','b') charset utf8mb4 -> enum('a','b') charset latin1")
    reasons = [reason_column_values_change(*columns, STRICT) for columns in (members, charset)]
    assert reasons == [
        "its members are others, or in another order",
        "its character set utf8mb4 became latin1",
    ]
