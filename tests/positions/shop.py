"""A shop of one table, followed: what its mirror must show, and what a refusal must leave.

Belongs here: checks that every failover makes. Does not: servers (`servers`), the run
(`follower`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from lockstep.pipeline.start.question import StartRule
from lockstep.pipeline.values.decisions import RecordedDecision
from lockstep.pipeline.values.errors import LockstepError
from tests.fix_mysql import MySqlStand
from tests.mysql.reading import server
from tests.positions.follower import SOURCE, Follower

TABLE = "shop.t"


def open_shop(stand: MySqlStand) -> None:
    stand.execute("create database shop", "create table shop.t (id int primary key, v int)")


def put(stand: MySqlStand, *keys: int, v: int = 0) -> None:
    """A transaction for each key: a new row, or a new value."""
    stand.execute(
        *(f"insert into shop.t values ({key}, {v}) on duplicate key update v = {v}" for key in keys)
    )


def take(stand: MySqlStand, *keys: int) -> None:
    stand.execute(*(f"delete from shop.t where id = {key}" for key in keys))


def follow(stand: MySqlStand, start: str | None = "earliest", **options: Any) -> Follower:
    return Follower(server(stand), ["shop.*"], start=start, **options)


def read_shop(stand: MySqlStand, *keys: int) -> Follower:
    """A new shop with these rows, which a first run has read."""
    open_shop(stand)
    put(stand, *keys)
    follower = follow(stand)
    follower.run()
    return follower


def turn_to(follower: Follower, stand: MySqlStand) -> None:
    """From now on that server answers."""
    follower.server = server(stand)


def changes(follower: Follower) -> list[dict[str, Any]]:
    """The changelog, in its order."""
    commits = follower.lake.tables.get(f"{SOURCE}/_changes/shop/t")
    return [] if commits is None else commits[-1].rows.to_pylist()


def require_same(follower: Follower, stand: MySqlStand) -> None:
    """The mirror is the table."""
    names = ("id", "v")
    rows = stand.rows("select id, v from shop.t order by id")
    assert follower.mirror(TABLE) == [dict(zip(names, row, strict=True)) for row in rows]


def require_each_once(follower: Follower) -> None:
    """No change stands twice in the changelog; all of them have GTIDs."""
    marks = [(row["_gtid"], row["_row"], row["_change_type"]) for row in changes(follower)]
    assert None not in [gtid for gtid, *_ in marks]
    assert sorted(marks) == sorted(set(marks))


def newest(follower: Follower) -> RecordedDecision:
    return follower.ledger.decisions(SOURCE, limit=1)[0]


def refused(
    follower: Follower, error: type[LockstepError], rule: StartRule, names: Iterable[str] = ()
) -> LockstepError:
    """A run is refused by that rule: recorded with its reason, and nothing moved. `names`:
    what the message must hold."""
    before = follower.ledger.batches(SOURCE, limit=1000), follower.lake.tables.copy()
    with pytest.raises(error) as caught:
        follower.run()
    decision = newest(follower).decision
    assert (decision.kind, decision.rule) == ("refusal", rule)
    assert decision.facts["error"] == error.__name__
    assert decision.reason == caught.value.message
    assert caught.value.hint
    for name in names:
        assert name in caught.value.message
    assert (follower.ledger.batches(SOURCE, limit=1000), follower.lake.tables) == before
    return caught.value


def require_rule(follower: Follower, rule: StartRule) -> None:
    """The last run began by it."""
    assert (newest(follower).decision.kind, follower.last_rule()) == ("start", rule)
