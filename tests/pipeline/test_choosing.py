"""An operator's choice: recorded if a run can carry it out, and what it will lead to."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from lockstep.pipeline.ports.source import ServerFacts
from lockstep.pipeline.run.status.plan import Choice, choose_start
from lockstep.pipeline.values.errors import (
    LockstepError,
    NotYet,
    SourceUnavailable,
    StartUnreachable,
)
from lockstep.pipeline.values.places import parse_start
from lockstep.resources.mysql.server import MySqlServer
from tests.fix_mysql import MySqlStand
from tests.mysql.reading import server, settings
from tests.positions.follower import SOURCE, Follower


class Silent(MySqlServer):
    """A server that does not answer."""

    def facts(self) -> ServerFacts:
        raise SourceUnavailable("MySQL cannot be reached", hint="start it")


@dataclass
class Shop:
    mysql: MySqlStand
    database: str
    follower: Follower

    def write(self, number: int) -> None:
        self.mysql.execute(f"insert into {self.database}.users values ({number})")

    def choose(self, place: str, reason: str = "because", author: str = "ann") -> Choice:
        ledger = self.follower.ledger
        with ledger.lock(SOURCE, "test", None) as lease:
            return choose_start(self.follower.ports(), lease, parse_start(place), reason, author)

    def refused(self, place: str) -> LockstepError:
        """What a choice is refused with; nothing is recorded then."""
        before = self.follower.ledger.open_override(SOURCE)
        with pytest.raises(LockstepError) as caught:
            self.choose(place)
        assert self.follower.ledger.open_override(SOURCE) == before
        return caught.value


@pytest.fixture
def shop(mysql: MySqlStand, database: str) -> Shop:
    """One table; its first row is in the lake, its second only in the log."""
    mysql.execute(f"create table {database}.users (id int primary key)")
    made = Shop(mysql, database, Follower(server(mysql), [f"{database}.*"]))
    made.follower.run()
    made.write(1)
    made.follower.run()
    made.write(2)
    return made


def test_a_place_that_is_not_there_is_refused_at_once(shop: Shop) -> None:
    """A typing error makes no run fail. A snapshot is no place in the log: `lockstep reload`
    reads tables again; exit code 2."""
    for place in ("binlog.999999:4", "run:nobody"):
        assert isinstance(shop.refused(place), StartUnreachable)
    for run in ("0f3c-1", "0f3c-2"):
        shop.follower.run_id = run
        shop.write(ord(run[-1]))
        shop.follower.run()
    assert "the ids of 2 runs begin with '0f3c'" in shop.refused("run:0f3c").message
    shop.choose("run:0f3c-2")
    error = shop.refused("snapshot")
    assert isinstance(error, NotYet)
    assert "only a source's first run starts that way" in error.message
    assert "`lockstep reload TABLE --from source --reason …`" in error.hint


def test_latest_is_the_end_of_when_it_was_chosen(shop: Shop) -> None:
    """What is written before the next run is not given up with the rest."""
    shop.choose("latest")
    shop.write(3)
    assert shop.follower.run().rows == 1


def test_a_silent_server_keeps_nobody_from_choosing(shop: Shop) -> None:
    """It is recorded, and said that nobody looked."""
    shop.follower.server = Silent(settings(shop.mysql))
    choice = shop.choose("earliest")
    assert isinstance(choice.server_error, SourceUnavailable)
    assert choice.position is None
    assert shop.follower.ledger.open_override(SOURCE) == choice.override
