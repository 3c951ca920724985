"""`_updated`: which columns an update changed, by the log of a real server."""

from __future__ import annotations

from operator import itemgetter
from typing import Any

import pytest

from lockstep.pipeline.values.policies import LakePolicies
from tests.fix_mysql import MySqlStand
from tests.mysql.reading import server
from tests.positions.follower import Follower

ASKED = LakePolicies(updated_columns=True)
TABLE = (
    "create table t (id int primary key, a int, b varchar(9), c text, "
    "g int as (a + 1) stored) character set utf8mb4"
)


def changelog(follower: Follower, database: str, table: str = "t") -> list[dict[str, Any]]:
    """The rows that the published changelog shows."""
    rows = follower.lake.tables[f"shop/_changes/{database}/{table}"][-1].rows.to_pylist()
    return sorted(rows, key=itemgetter("_sequence"))


def updated(follower: Follower, database: str) -> list[tuple[str, list[str] | None]]:
    return [(one["_change_type"], one["_updated"]) for one in changelog(follower, database)]


EXPECTED = {
    "full": [["a", "g"], ["b"], ["b"], ["b"], ["c"], ["id"], ["c"]],
    # What the statement sets is in the image after it, whatever it was before.
    "minimal": [["a", "g"], ["b"], ["b"], ["b", "c"], ["b", "c"], ["id"], ["c"]],
    "noblob": [["a", "g"], ["b"], ["b"], ["b", "c"], ["c"], ["id"], ["c"]],
}
"""Of each row that is updated; the fourth and the fifth are one statement's."""


@pytest.mark.parametrize("image", EXPECTED)
def test_an_update_names_what_it_changed(mysql: MySqlStand, database: str, image: str) -> None:
    """In the row behind the update alone; a NULL that comes or goes is a change, and so is a
    column that only the image after it has."""
    mysql.execute(TABLE, database=database)
    follower = Follower(server(mysql), [f"{database}.*"], lake_policies=ASKED)
    follower.run()
    mysql.execute(
        f"set binlog_row_image = {image}",
        "insert into t (id, a, b, c) values (1, 1, 'x', 'long'), (2, 1, null, 'long')",
        "update t set a = 2 where id = 1",
        "update t set b = null where id = 1",
        "update t set b = 'y' where id = 2",
        "update t set b = 'y', c = if(id = 2, 'other', c) where id in (1, 2)",
        database=database,
    )
    mysql.execute(
        f"set binlog_row_image = {image}",
        "update t set id = 3 where id = 2",
        "update t set c = null where id = 3",
        "delete from t where id = 3",
        database=database,
    )
    follower.run()
    found = updated(follower, database)
    assert all(told is None for kind, told in found if kind != "update_postimage")
    assert [told for kind, told in found if kind == "update_postimage"] == EXPECTED[image]
    assert follower.mirror(f"{database}.t") == [
        {"id": 1, "a": 2, "b": "y", "c": "long", "g": 3},
    ]


def test_it_comes_and_goes_with_the_key(mysql: MySqlStand, database: str) -> None:
    """Rows of before are NULL there, and so are those of after; a changelog keeps the column. A
    column of the table that is called so keeps its name."""
    mysql.execute(
        "create table t (id int primary key, a int)",
        "create table u (id int primary key, _updated int)",
        database=database,
    )
    follower = Follower(server(mysql), [f"{database}.*"])
    for number, policies in enumerate((LakePolicies(), ASKED, LakePolicies()), start=1):
        follower.lake_policies = policies
        follower.run()
        mysql.execute(
            f"insert into t values ({number}, 0)",
            f"insert into u values ({number}, 0)",
            f"update t set a = 1 where id = {number}",
            f"update u set _updated = 1 where id = {number}",
            database=database,
        )
        follower.run()
        before = "_updated" in changelog(follower, database)[-1]
        assert before is (number > 1)
    told = [one["_updated"] for one in changelog(follower, database)]
    assert told == [*[None] * 3, *[None, None, ["a"]], *[None] * 3]
    rows = changelog(follower, database, "u")
    assert [one["__updated"] for one in rows] == [*[None] * 5, ["_updated"], *[None] * 3]
    assert [one["_updated"] for one in rows] == [0, 0, 1] * 3
    assert [row["a"] for row in follower.mirror(f"{database}.t")] == [1, 1, 1]


def test_a_document_that_is_changed_in_place_counts(mysql: MySqlStand, database: str) -> None:
    """With PARTIAL_JSON one that stays is logged as such, and one that is replaced is whole."""
    mysql.execute("create table t (id int primary key, d json, n int)", database=database)
    follower = Follower(server(mysql), [f"{database}.*"], lake_policies=ASKED)
    follower.run()
    mysql.execute(
        "insert into t values (1, '[1]', 1)",
        "set binlog_row_value_options = PARTIAL_JSON",
        "update t set n = 2",
        "update t set d = '[2]'",
        database=database,
    )
    follower.run()
    told = [one for kind, one in updated(follower, database) if kind == "update_postimage"]
    assert told == [["n"], ["d"]]
