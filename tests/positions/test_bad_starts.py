"""Starts that are well written and not there: each refused by name, with what there is."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from pipeline.errors import (
    LockstepError,
    MomentOutOfRange,
    NotAnEventBoundary,
    SourceDiverged,
    StartUnreachable,
)
from tests.fix_mysql import MySqlStand
from tests.mysql.reading import server
from tests.positions.follower import SOURCE, Follower
from tests.positions.servers import head

DATABASE = "bad_starts"
NOBODY = "99999999-9999-9999-9999-999999999999"


@pytest.fixture(autouse=True)
def table(mysql: MySqlStand) -> None:
    """Something that could be followed."""
    mysql.execute(
        f"create database if not exists {DATABASE}",
        f"create table if not exists {DATABASE}.t (id int primary key)",
    )


def refused(stand: MySqlStand, start: str, kind: type[LockstepError]) -> str:
    """The refusal's sentence; it is recorded with its hint, and no batch is begun."""
    follower = Follower(server(stand), [f"{DATABASE}.*"], start=start)
    with pytest.raises(kind) as caught:
        follower.run()
    assert caught.value.recovery.exit_code == 5
    [told] = follower.ledger.decisions(SOURCE)
    assert (told.decision.kind, told.decision.reason) == ("refusal", caught.value.message)
    assert told.decision.facts["hint"] == caught.value.hint
    assert caught.value.hint
    assert follower.ledger.batches(SOURCE) == []
    return caught.value.message


def test_a_place_of_another_servers_log(mysql: MySqlStand) -> None:
    """Another base name is another log, whatever its number; and the files listed are named."""
    file = head(mysql)[0]
    told = refused(mysql, "mysql-bin.000001:4", StartUnreachable)
    assert "mysql-bin.000001" in told
    assert file in told


def test_a_place_beyond_the_log(mysql: MySqlStand) -> None:
    """A file that is not written yet, and an offset that is not."""
    file, offset = head(mysql)
    assert f"ends at {offset}" in refused(mysql, f"{file}:{offset + 1}", StartUnreachable)
    refused(mysql, f"{file.rpartition('.')[0]}.999999:4", StartUnreachable)
    refused(mysql, f"{file.rpartition('.')[0]}.999999@2026-01-01T00:00:00Z", StartUnreachable)


def test_a_place_where_no_event_begins(mysql: MySqlStand) -> None:
    """The nearest one before it is named; the last byte of a log is not its end."""
    file, offset = head(mysql)
    told = refused(mysql, f"{file}:{offset - 1}", NotAnEventBoundary)
    assert "the nearest place before it is" in told
    refused(mysql, f"{file}:0", StartUnreachable)
    refused(mysql, f"{file}:5", NotAnEventBoundary)


def test_gtids_that_the_server_does_not_know(mysql: MySqlStand) -> None:
    """A UUID of nobody, and numbers of its own that it has not reached: both by name."""
    uuid = mysql.rows("select @@server_uuid")[0][0]
    executed = str(mysql.rows("select @@global.gtid_executed")[0][0]).replace("\n", "")
    mine = refused(mysql, f"gtid:{executed},{NOBODY}:1-5", SourceDiverged)
    assert f"{NOBODY}:1-5" in mine
    ahead = refused(mysql, f"gtid:{executed},{uuid}:1-99999999", SourceDiverged)
    assert "99999999" in ahead


def test_a_moment_that_the_log_does_not_hold(mysql: MySqlStand) -> None:
    """One that is yet to come, and one before the oldest log: the span that there is."""
    tomorrow = (datetime.now(UTC) + timedelta(days=1)).isoformat(timespec="seconds")
    for moment in (tomorrow, "2001-01-01T00:00:00+02:00"):
        assert "it reaches from" in refused(mysql, moment, MomentOutOfRange)
