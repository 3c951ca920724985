"""One table on a real server and its follower: what tests of ends and of logs write to.

Belongs here: writing, the log's end, what the mirror shows. Does not: failovers (`shop`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lockstep.pipeline.values.decisions import Decision
from tests.fix_mysql import MySqlStand
from tests.mysql.logged import head
from tests.mysql.reading import server
from tests.positions.follower import SOURCE, Follower

NOBODY = "99999999-9999-9999-9999-999999999999"


@dataclass
class Shop:
    """A table on a real server and its follower, whose first run read an empty table."""

    stand: MySqlStand
    name: str
    follower: Follower

    def put(self, *keys: int) -> None:
        """A transaction for each key."""
        self.stand.execute(*(f"insert into {self.name}.t values ({key}, 0)" for key in keys))

    def head(self) -> str:
        """The log's end now, as a place."""
        return str(head(self.stand))

    def executed(self) -> str:
        return str(self.stand.rows("select @@global.gtid_executed")[0][0]).replace("\n", "")

    def keys(self) -> list[int]:
        """What the mirror shows."""
        return [row["id"] for row in self.follower.mirror(f"{self.name}.t")]

    def told(self) -> Decision:
        """The newest decision."""
        return self.follower.ledger.decisions(SOURCE, limit=1)[0].decision


def open_shop(stand: MySqlStand, name: str, **options: Any) -> Shop:
    stand.execute(f"create table {name}.t (id int primary key, v int)")
    shop = Shop(stand, name, Follower(server(stand), [f"{name}.*"], **options))
    shop.follower.run()
    return shop
