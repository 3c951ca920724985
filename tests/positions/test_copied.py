"""Servers made from copies of a data folder, and other servers behind a known address.

One server is started, stopped and copied by all of these, so that few are started. Whoever starts
it anew begins another file of its log: those that compare it with its copy come first.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest

from demo.mysql_search import Program
from demo.tcp import free_port
from pipeline.errors import HistoryRewritten
from pipeline.start.question import StartRule
from resources.mysql.server import MySqlServer
from resources.mysql.standby import ServerOrStandby
from tests.fix_mysql import MySqlStand
from tests.mysql.reading import server, settings
from tests.positions.follower import SET_PAUSES, SOURCE
from tests.positions.servers import (
    copied_mysql,
    copy_data,
    executed,
    head,
    private_mysql,
    running,
    uuid_of,
)
from tests.positions.shop import (
    follow,
    open_shop,
    put,
    refused,
    require_each_once,
    require_rule,
    require_same,
    turn_to,
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("copied")


@pytest.fixture(scope="module")
def stand(program: Program, folder: Path) -> Iterator[MySqlStand]:
    """A server with a shop of one row, which has been ended once: `backup` is its data."""
    with private_mysql(program, folder / "one", 21) as stand:
        open_shop(stand)
        put(stand, 1)
        running(stand).kill()
        copy_data(running(stand).data, folder / "backup")
        running(stand).start()
        yield stand


@pytest.fixture
def backup(stand: MySqlStand, folder: Path) -> Path:
    return folder / "backup"


def _restore(stand: MySqlStand, backup: Path) -> None:
    running(stand).kill()
    copy_data(backup, running(stand).data)
    running(stand).start()


def test_a_backup_put_back_is_noticed(stand: MySqlStand, backup: Path) -> None:
    """An older data folder, the same UUID. Once as many other transactions came, the file and the
    GTIDs are there, and the event before the cursor is another one; what somebody else read beyond
    them is not on the server any more: it is looked for 30 times, then the history is rewritten."""
    follower, further = follow(stand), follow(stand)
    put(stand, 2, 3)
    follower.run()
    before = uuid_of(stand), head(stand), executed(stand)
    put(stand, 6, 7)
    further.run()
    _restore(stand, backup)
    put(stand, 4, 5)
    assert (uuid_of(stand), head(stand), executed(stand)) == before
    refused(follower, HistoryRewritten, StartRule.HISTORY_REWRITTEN, ["is a different one"])
    refused(further, HistoryRewritten, StartRule.HISTORY_REWRITTEN)
    assert further.pauses == SET_PAUSES


def test_a_clone_with_the_same_uuid_is_noticed(
    stand: MySqlStand, program: Program, folder: Path, backup: Path
) -> None:
    """Copied with its auto.cnf and written to since: it claims to be the server that was
    read, with the same file, offset and GTIDs."""
    with copied_mysql(program, backup, folder / "clone", same_uuid=True) as clone:
        put(stand, 10, 11)
        follower = follow(stand)
        follower.run()
        for key in count(1000):
            if head(clone) >= head(stand):
                break
            put(clone, key)
        assert (uuid_of(clone), head(clone)) == (uuid_of(stand), head(stand))
        turn_to(follower, clone)
        refused(follower, HistoryRewritten, StartRule.HISTORY_REWRITTEN, ["is a different one"])
        turn_to(follower, stand)
        put(stand, 14)
        follower.run()
        require_same(follower, stand)


def test_a_server_that_was_killed_goes_on(stand: MySqlStand) -> None:
    """SIGKILL and a start: another file, the same history."""
    put(stand, 8)
    follower = follow(stand)
    follower.run()
    running(stand).kill()
    running(stand).start()
    put(stand, 9)
    follower.run()
    require_rule(follower, StartRule.RESUME_SAME_SERVER)
    require_same(follower, stand)


def test_another_server_behind_the_same_address(
    stand: MySqlStand, program: Program, folder: Path
) -> None:
    """A VIP that moved: host and port are as ever, the UUID is not. With a standby in the
    configuration the same is found at its address while the primary is down, and the
    primary is read again when it is back."""
    put(stand, 15)
    down = MySqlServer(replace(settings(stand), port=free_port()))
    follower = follow(stand)
    follower.run()
    running(stand).kill()
    with copied_mysql(
        program, running(stand).data, folder / "vip", same_uuid=False, port=stand.port
    ) as other:
        assert other.port == stand.port
        assert uuid_of(other) != follower.ledger.lineage(SOURCE).reigns[0].server_uuid
        put(other, 16)
        follower.run()
        require_rule(follower, StartRule.RESUME_OTHER_SERVER)
        require_same(follower, other)
        require_each_once(follower)
        follower.server = ServerOrStandby(down, server(other))
        put(other, 17)
        follower.run()
        require_rule(follower, StartRule.RESUME_SAME_SERVER)
        require_same(follower, other)
    running(stand).start()
