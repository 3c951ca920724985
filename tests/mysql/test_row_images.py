"""Row images that leave out most of a document (PARTIAL_JSON)."""

from __future__ import annotations

import pytest

from lockstep.pipeline.values.errors import TableError
from lockstep.pipeline.values.table import TableName
from tests.fix_mysql import MySqlStand
from tests.mysql.logged import head
from tests.mysql.reading import changes, server
from tests.mysql.sessions import changes_after


def test_whole_documents_of_partial_json_are_read(mysql: MySqlStand, database: str) -> None:
    """PARTIAL_UPDATE_ROWS carries a document whole where it was replaced, or has none."""
    found = changes_after(
        mysql,
        database,
        "create table t (id int primary key, d json, n int)",
        "insert into t values (1, '[1]', 1)",
        "set binlog_row_value_options = PARTIAL_JSON",
        "update t set d = '[2]'",
        "update t set d = null, n = null",
        "update t set d = '[3]'",
        "set binlog_row_image = minimal",
        "update t set n = 5",
    )
    after_images = [row for _, kind, row in found if kind == "update_postimage"]
    assert after_images == [
        (1, "[2]", 1),
        (1, None, None),
        (1, "[3]", None),
        (1, None, 5),
    ]


JSON_PAIR = "create table t (id int primary key, d json, e json, n int)"
PARTIAL = "set binlog_row_value_options = PARTIAL_JSON"


@pytest.mark.parametrize("image", ["full", "noblob"])
def test_documents_that_stay_are_those_of_the_before_image(
    mysql: MySqlStand, database: str, image: str
) -> None:
    """An empty diff is logged for each, also where another document is replaced, where
    nothing came of a function, and beside NULL."""
    start, table = head(mysql), TableName(database, "t")
    states = []
    for number, statement in enumerate(UNCHANGED):
        session = (f"set binlog_row_image = {image}", PARTIAL)
        first = () if number else (JSON_PAIR, *JSON_ROWS)
        mysql.execute(*first, *session, statement, database=database)
        states.append(mysql.rows(f"select id, d, e, n from `{database}`.t order by id"))
    expected = [row for state in states for row in state]
    found = [
        tuple(row.values())
        for _, kind, row in changes(server(mysql), start, table)
        if kind == "update_postimage"
    ]
    assert found == expected


JSON_ROWS = (
    "insert into t values (1, json_object('a', 1, 'b', repeat('x', 50)), '[1]', 1)",
    "insert into t values (2, null, '\"two\"', 2), (3, '3', null, 3)",
)
UNCHANGED = (
    "update t set n = n + 1",
    "update t set e = '[4]', n = n + 1",
    "update t set d = d, n = n + 1",
    "update t set d = if(id = 1, json_set(d, '$.a', 1), d), n = n + 1",
    "update t set d = if(id = 2, '{}', null), n = n + 1",
)
"""Each changes all three rows."""


CHANGED = {
    "a member": ("full", "update t set d = json_set(d, '$.a', 2) where id = 1"),
    "beside one that stays": ("noblob", "update t set d = json_set(d, '$.a', 2), n = n + 1"),
    "nothing before it": ("minimal", "update t set e = e, n = n + 1"),
}


@pytest.mark.parametrize("which", CHANGED)
def test_a_diff_of_a_document_quarantines_the_table(
    mysql: MySqlStand, database: str, which: str
) -> None:
    """Its value would have to be computed from the one before, or looked up where the before
    image leaves it out."""
    start, table = head(mysql), TableName(database, "t")
    image, statement = CHANGED[which]
    session = (f"set binlog_row_image = {image}", PARTIAL)
    mysql.execute(JSON_PAIR, *JSON_ROWS, *session, statement, database=database)
    with pytest.raises(TableError, match="PARTIAL_JSON"):
        list(changes(server(mysql), start, table))
