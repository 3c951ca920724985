"""Servers made from copies of a data folder, and other servers behind a known address.

One server is started, stopped and copied by all of these, so that few are started. Whoever ends
it for good comes last.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path

import pytest

from demo.mysql_search import Program
from demo.tcp import free_port
from lockstep.pipeline.start.question import StartRule
from lockstep.pipeline.values.errors import HistoryRewritten
from lockstep.pipeline.values.position import Coordinates
from lockstep.resources.mysql.server import MySqlServer
from tests.fix_mysql import MySqlStand
from tests.mysql.logged import head
from tests.mysql.reading import settings
from tests.positions.follower import SOURCE, Follower
from tests.positions.servers import (
    copied_mysql,
    copy_data,
    executed,
    private_mysql,
    running,
    uuid_of,
)
from tests.positions.shop import (
    follow,
    put,
    read_shop,
    refused,
    require_each_once,
    require_rule,
    require_same,
    turn_to,
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("copied")


@dataclass(frozen=True)
class Killed:
    """A server with a shop of one row, which has been killed and started; `follower` read the row
    before, and `backup` is the data as it was then."""

    stand: MySqlStand
    follower: Follower
    backup: Path


@pytest.fixture(scope="module")
def killed(program: Program, folder: Path) -> Iterator[Killed]:
    with private_mysql(program, folder / "one", 21) as stand:
        follower = read_shop(stand, 1)
        running(stand).kill()
        copy_data(running(stand).data, folder / "backup")
        running(stand).start()
        yield Killed(stand, follower, folder / "backup")


@pytest.fixture
def stand(killed: Killed) -> MySqlStand:
    return killed.stand


@pytest.fixture
def backup(killed: Killed) -> Path:
    return killed.backup


def _restore(stand: MySqlStand, backup: Path) -> None:
    running(stand).kill()
    copy_data(backup, running(stand).data)
    running(stand).start()


def test_a_server_that_was_killed_goes_on(killed: Killed) -> None:
    """SIGKILL and a start: another file, the same history."""
    put(killed.stand, 9)
    killed.follower.run()
    require_rule(killed.follower, StartRule.RESUME_SAME_SERVER)
    require_same(killed.follower, killed.stand)


def test_a_backup_put_back_is_noticed(stand: MySqlStand, backup: Path) -> None:
    """An older data folder, the same UUID. Once as many other transactions came, the file and the
    GTIDs are there, and the event before the cursor is another one; what somebody else read beyond
    them is not on the server any more: nobody waits for it, the history is rewritten."""
    follower, further = follow(stand), follow(stand)
    put(stand, 2, 3)
    follower.run()
    before = uuid_of(stand), head(stand), executed(stand)
    put(stand, 6, 7)
    further.run()
    _restore(stand, backup)
    _write_to(stand, before[1])
    assert (uuid_of(stand), head(stand), executed(stand)) == before
    refused(follower, HistoryRewritten, StartRule.HISTORY_REWRITTEN, ["is a different one"])
    refused(further, HistoryRewritten, StartRule.HISTORY_REWRITTEN)
    assert further.pauses == []


def _write_to(stand: MySqlStand, end: Coordinates) -> None:
    """New rows, up to that place of its log."""
    for key in count(1000):
        if head(stand) >= end:
            return
        put(stand, key)


def test_a_clone_with_the_same_uuid_is_noticed(
    stand: MySqlStand, program: Program, folder: Path, backup: Path
) -> None:
    """Copied with its auto.cnf and written to since: it claims to be the server that was
    read, with the same file, offset and GTIDs."""
    with copied_mysql(program, backup, folder / "clone", same_uuid=True) as clone:
        put(stand, 10, 11)
        follower = follow(stand)
        follower.run()
        _write_to(clone, head(stand))
        assert (uuid_of(clone), head(clone)) == (uuid_of(stand), head(stand))
        turn_to(follower, clone)
        refused(follower, HistoryRewritten, StartRule.HISTORY_REWRITTEN, ["is a different one"])
        turn_to(follower, stand)
        put(stand, 14)
        follower.run()
        require_same(follower, stand)


def test_another_server_behind_the_same_address(
    stand: MySqlStand, program: Program, folder: Path
) -> None:
    """A VIP that moved: host and port are as ever, the UUID is not. With a standby in the
    configuration the same is found at its address while the primary is down, and the
    primary is read again when it is back."""
    put(stand, 15)
    down = replace(settings(stand), port=free_port())
    follower = follow(stand)
    follower.run()
    running(stand).kill()
    with copied_mysql(
        program, running(stand).data, folder / "vip", same_uuid=False, port=stand.port
    ) as other:
        assert other.port == stand.port
        assert uuid_of(other) != follower.ledger.server_periods(SOURCE)[0].server_uuid
        put(other, 16)
        follower.server = MySqlServer(settings(other))  # each run has one of its own
        follower.run()
        require_rule(follower, StartRule.RESUME_OTHER_SERVER)
        require_same(follower, other)
        require_each_once(follower)
        follower.server = MySqlServer(down, standby=settings(other))
        put(other, 17)
        follower.run()
        require_rule(follower, StartRule.RESUME_SAME_SERVER)
        require_same(follower, other)
