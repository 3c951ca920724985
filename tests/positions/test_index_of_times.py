"""A moment that the ledger's batches know is looked for in their part of the log alone."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from pipeline.places import AtMoment
from pipeline.position import Coordinates
from pipeline.runs.find_end import resolve_end
from resources.mysql.dump import MySqlDump
from resources.mysql.server import MySqlServer
from tests.fix_mysql import MySqlStand
from tests.mysql.reading import settings
from tests.positions.follower import SOURCE, Follower


class Watched(MySqlServer):
    """Remembers where dumps began."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.starts: list[Coordinates] = []

    def dump(self, start: Coordinates) -> MySqlDump:
        self.starts.append(start)
        return super().dump(start)


def test_the_ledgers_times_narrow_a_search(mysql: MySqlStand, database: str) -> None:
    """Of many files one is opened: the batch's own."""
    mysql.execute(f"create table {database}.t (id int primary key)")
    watched = Watched(settings(mysql))
    follower = Follower(watched, [f"{database}.*"])
    follower.run()
    for key in range(5):
        mysql.execute("flush binary logs", f"insert into {database}.t values ({key})")
        follower.run()
    middle = follower.ledger.batches(SOURCE)[2]
    assert middle.end is not None
    assert middle.end.committed_at is not None
    moment = middle.end.committed_at - timedelta(microseconds=1)
    watched.starts.clear()
    found = resolve_end(follower.work(), AtMoment(moment), watched.facts(), middle.start)
    assert middle.start.at <= found < middle.end.at
    assert {start.file for start in watched.starts} <= {middle.start.at.file, middle.end.at.file}
