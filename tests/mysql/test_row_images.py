"""Row images that leave something out: columns, or most of a document."""

from __future__ import annotations

import pytest

from lockstep.pipeline.values.errors import TableError
from lockstep.pipeline.values.position import Coordinates
from lockstep.pipeline.values.table import TableName
from tests.fix_mysql import MySqlStand
from tests.mysql.logged import head
from tests.mysql.reading import changes, runs, server
from tests.mysql.sessions import changes_after
from tests.pipeline.buffered import Decoders


@pytest.mark.parametrize("image", ["minimal", "noblob"])
def test_columns_an_image_leaves_out_are_null(mysql: MySqlStand, database: str, image: str) -> None:
    """What is there is decoded, an after image with what its before image has; that something
    is missing is said."""
    start, table = head(mysql), TableName(database, "t")
    mysql.execute(
        "create table t (id int primary key, a int, b varchar(9), c blob, d int default 4)",
        f"set binlog_row_image = {image}",
        "insert into t (id, a, c) values (1, 2, x'ff')",
        "update t set b = 'x'",
        "delete from t",
        database=database,
    )
    found = [(kind, *row.values()) for _, kind, row in changes(server(mysql), start, table)]
    expected = {
        "minimal": [
            ("insert", 1, 2, None, b"\xff", None),
            ("update_preimage", 1, None, None, None, None),
            ("update_postimage", 1, None, "x", None, None),
            ("delete", 1, None, None, None, None),
        ],
        "noblob": [
            ("insert", 1, 2, None, b"\xff", 4),
            ("update_preimage", 1, 2, None, None, 4),
            ("update_postimage", 1, 2, "x", None, 4),
            ("delete", 1, 2, "x", None, 4),
        ],
    }
    assert found == expected[image]
    assert not complete(mysql, start)


def test_full_images_are_complete(mysql: MySqlStand, database: str) -> None:
    """Every column is there, those that are NULL too."""
    start = head(mysql)
    mysql.execute(
        "create table t (id int primary key, v int)",
        "insert into t values (1, null)",
        "update t set v = 2",
        database=database,
    )
    assert complete(mysql, start)


def complete(mysql: MySqlStand, start: Coordinates) -> bool:
    """Whether the decoders of all tables since `start` say so."""
    decoders = Decoders()
    for buffer, run in runs(server(mysql), start):
        for block in run.blocks:
            list(decoders.read(buffer, block))
    return all(decoder.is_complete for _, decoder in decoders.by_number.values())


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
