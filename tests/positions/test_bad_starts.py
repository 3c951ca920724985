"""Starts that are well written and not there: each refused by name, with what there is."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from lockstep.pipeline.values.errors import (
    LockstepError,
    MomentOutOfRange,
    NotAnEventBoundary,
    SourceDiverged,
    StartUnreachable,
)
from tests.fix_mysql import MySqlStand
from tests.mysql.reading import server
from tests.positions.follower import SOURCE, Follower

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


def test_starts_that_are_not_there(mysql: MySqlStand) -> None:
    """Another base name is another log, whatever its number; a file that is not written yet, and an
    offset that is not; a place where no event begins, of which the nearest one before is named (the
    last byte of a log is not its end); a UUID of nobody, and numbers that the server has not
    reached; moments outside of the span that there is."""
    file, offset = mysql.head()
    base, uuid = file.rpartition(".")[0], mysql.rows("select @@server_uuid")[0][0]
    executed = str(mysql.rows("select @@global.gtid_executed")[0][0]).replace("\n", "")
    tomorrow = (datetime.now(UTC) + timedelta(days=1)).isoformat(timespec="seconds")
    cases: list[tuple[str, type[LockstepError], list[str]]] = [
        ("mysql-bin.000001:4", StartUnreachable, ["mysql-bin.000001", file]),
        (f"{file}:{offset + 1}", StartUnreachable, [f"ends at {offset}"]),
        (f"{base}.999999:4", StartUnreachable, []),
        (f"{base}.999999@2026-01-01T00:00:00Z", StartUnreachable, []),
        (f"{file}:{offset - 1}", NotAnEventBoundary, ["the nearest place before it is"]),
        (f"{file}:0", StartUnreachable, []),
        (f"{file}:5", NotAnEventBoundary, []),
        (f"gtid:{executed},{NOBODY}:1-5", SourceDiverged, [f"{NOBODY}:1-5"]),
        (f"gtid:{executed},{uuid}:1-99999999", SourceDiverged, ["99999999"]),
        (tomorrow, MomentOutOfRange, ["it reaches from"]),
        ("2001-01-01T00:00:00+02:00", MomentOutOfRange, ["it reaches from"]),
    ]
    for start, kind, said in cases:
        message = refused(mysql, start, kind)
        assert all(words in message for words in said), start
