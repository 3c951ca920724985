"""Where a run ends that was told to: a place, a set, a moment, a run."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from pipeline.errors import (
    EndNotReached,
    LockstepError,
    MomentOutOfRange,
    NotAnEventBoundary,
    StartUnreachable,
)
from pipeline.policies import LakePolicies, OnRewrite
from pipeline.runs.capture import capture
from pipeline.runs.context import Unwatched
from pipeline.runs.inspecting.plan import make_plan
from pipeline.table import TableName
from pipeline.table_state import TableCondition
from tests.fix_mysql import MySqlStand
from tests.mysql.reading import server
from tests.positions.follower import SOURCE, Follower
from tests.positions.one_table import NOBODY, Shop, open_shop
from tests.positions.servers import head


@pytest.fixture
def shop(mysql: MySqlStand, database: str) -> Shop:
    return open_shop(mysql, database)


def refused(shop: Shop, until: str, kind: type[LockstepError]) -> LockstepError:
    """No run ends there: the error has a hint, exit code 5, and nothing moved."""
    before = shop.follower.ledger.batches(SOURCE)
    with pytest.raises(kind) as caught:
        shop.follower.run(until)
    assert caught.value.hint
    assert caught.value.recovery.exit_code == 5
    assert shop.follower.ledger.batches(SOURCE) == before
    return caught.value


class Told(Unwatched):
    """What a run told while it went on."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, sentence: str) -> None:
        self.notes.append(sentence)


def test_until_a_position(shop: Shop) -> None:
    """What ends at or before it is read, the rest is the next run's."""
    shop.put(1, 2)
    place = shop.head()
    shop.put(3)
    report = shop.follower.run(place)
    assert (str(report.end.at), report.transactions, shop.keys()) == (place, 2, [1, 2])
    shop.follower.run()
    assert shop.keys() == [1, 2, 3]


def test_until_a_position_inside_a_transaction(shop: Shop) -> None:
    """The run ends before that transaction: a transaction is read whole or not at all."""
    shop.put(1)
    before = shop.head()
    shop.put(2)
    file, offset = head(shop.stand)
    events = shop.stand.rows(f"show binlog events in '{file}' from {before.rpartition(':')[2]}")
    inside = [row[1] for row in events if row[1] < offset][1:]
    assert len(inside) >= 3
    for place in inside:
        told = Told()
        with shop.follower.ledger.lock(SOURCE, "test", None) as lease:
            capture(replace(shop.follower.work(f"{file}:{place}"), progress=told), lease)
        assert told.notes == [f"{file}:{place} lies inside a transaction; the run ends at {before}"]
    shop.follower.run(f"{file}:{inside[0]}")
    assert shop.keys() == [1]
    shop.follower.run()
    assert shop.keys() == [1, 2]


def test_until_an_offset_between_two_events_is_refused(shop: Shop) -> None:
    """A place where no event begins is a mistake, however near one does."""
    shop.put(1)
    file, offset = shop.head().rsplit(":", 1)
    error = refused(shop, f"{file}:{int(offset) - 1}", NotAnEventBoundary)
    assert "no event begins at" in error.message


def test_until_a_position_before_the_start_is_an_idle_run(shop: Shop) -> None:
    """Nothing is read, the position stays, and the record says why."""
    place = shop.head()
    shop.put(1)
    shop.follower.run()
    shop.put(2)
    report = shop.follower.run(place)
    assert (report.batch, report.start, report.transactions) == (None, report.end, 0)
    assert report.end_is_behind
    assert (shop.told().kind, shop.told().rule) == ("idle", "nothing-to-do")
    assert str(shop.told().head) == shop.head()
    assert place in report.reason
    assert "lies before" in report.reason
    assert shop.told().reason == report.reason
    shop.follower.run()
    assert shop.keys() == [1, 2]


def test_until_the_very_start_of_a_first_run(mysql: MySqlStand, database: str) -> None:
    """A source that starts where it ends, or behind, reads nothing yet; its start stays."""
    mysql.execute("flush binary logs")
    file, offset = head(mysql)
    mysql.execute(
        f"create table {database}.t (id int primary key, v int)",
        f"insert into {database}.t values (1, 0)",
    )
    follower = Follower(server(mysql), [f"{database}.*"], start=f"{file}:4")
    for place in (f"{file}:4", f"{file}:{offset}"):
        assert follower.run(place).transactions == 0
        assert follower.mirror(f"{database}.t") == []
    follower.run()
    assert follower.mirror(f"{database}.t") == [{"id": 1, "v": 0}]


def test_until_a_position_beyond_the_head_is_refused(shop: Shop) -> None:
    """What is not written yet is no end: the server's last place is named."""
    shop.put(1)
    file, offset = head(shop.stand)
    error = refused(shop, f"{file}:{offset + 1}", StartUnreachable)
    assert f"{file} ends at {offset}" in error.message
    error = refused(shop, f"{file.rpartition('.')[0]}.999999:4", StartUnreachable)
    assert "files listed" in error.message
    assert "SHOW BINARY LOGS" in error.hint


def test_until_a_position_of_another_servers_log_is_refused(shop: Shop) -> None:
    """A base name that is not this server's is never taken for one that is."""
    shop.put(1)
    refused(shop, "mariadb-bin.000001:4", StartUnreachable)


def test_until_a_gtid_set(shop: Shop) -> None:
    """Until all of it is read, in whatever order it stands in the log."""
    shop.put(1, 2)
    gtids = shop.executed()
    shop.put(3)
    shop.follower.run(f"gtid:{gtids}")
    assert shop.keys() == [1, 2]
    assert shop.follower.run(f"gtid:{gtids}").batch is None
    shop.follower.run()
    assert shop.keys() == [1, 2, 3]


def test_until_gtids_that_were_never_executed_is_refused(shop: Shop) -> None:
    """An unknown UUID, and a number that this server has not reached: each by name."""
    shop.put(1)
    uuid = shop.stand.rows("select @@server_uuid")[0][0]
    for gtid in (f"{NOBODY}:7", f"{uuid}:99999999"):
        error = refused(shop, f"gtid:{gtid}", EndNotReached)
        assert gtid in error.message


def test_until_a_moment(shop: Shop) -> None:
    """What was committed before it; a transaction of that very microsecond is not."""
    shop.put(1)
    moment = _now(shop.stand)
    shop.put(2)
    shop.follower.run(moment)
    assert shop.keys() == [1]
    shop.follower.run(_now(shop.stand))
    assert shop.keys() == [1, 2]


def test_until_a_moment_in_one_file(shop: Shop) -> None:
    """Before its first transaction at or after it; where there is none, the file's end."""
    shop.put(1)
    moment = _now(shop.stand)
    shop.put(2)
    late = _now(shop.stand)
    file, _ = head(shop.stand)
    shop.stand.execute("flush binary logs")
    shop.put(3)
    shop.follower.run(f"{file}@{moment}")
    assert shop.keys() == [1]
    shop.follower.run(f"{file}@{late}")
    assert shop.keys() == [1, 2]
    newest, _ = head(shop.stand)
    report = shop.follower.run(f"{newest}@{_now(shop.stand)}")
    assert (str(report.end.at), shop.keys()) == (shop.head(), [1, 2, 3])
    shop.put(4)
    shop.follower.run()
    assert shop.keys() == [1, 2, 3, 4]


def test_until_the_very_beginning_of_a_file(shop: Shop) -> None:
    """What stands before it is read, and the next run goes on: the cursor is behind a
    transaction, whose last event is its witness."""
    shop.put(1)
    shop.stand.execute("flush binary logs", "flush binary logs")
    file, _ = head(shop.stand)
    shop.put(2)
    for _ in range(2):
        shop.follower.run(f"{file}:4")
        assert shop.keys() == [1]
    shop.follower.run()
    assert shop.keys() == [1, 2]


def test_earliest_is_no_end(shop: Shop) -> None:
    """Nothing ends where the log begins."""
    refused(shop, "earliest", EndNotReached)


@pytest.mark.parametrize(
    "change",
    [
        "modify v varchar(9) character set latin1",
        "add column w varchar(9) generated always as (concat(id))",
    ],
)
def test_a_table_that_is_to_be_read_waits_for_a_run_without_an_end(shop: Shop, change: str) -> None:
    """What is read from the source belongs behind an end that nobody knew before: a run until
    a place ends there, and says who waits; the next run without one reads the table."""
    table = TableName(shop.name, "t")
    shop.put(1)
    shop.follower.lake_policies = LakePolicies(on_rewrite=OnRewrite.RESNAPSHOT)
    shop.stand.execute(f"alter table {shop.name}.t {change}")
    shop.follower.run(shop.head())
    for key in (2, 3):
        place = shop.head()
        shop.stand.execute(f"insert into {shop.name}.t (id, v) values ({key}, 7)")
        plan = make_plan(shop.follower.work(place))
        assert list(plan.returns.waits) == [table]
        told = Told()
        with shop.follower.ledger.lock(SOURCE, "test", None) as lease:
            report = capture(replace(shop.follower.work(place), progress=told), lease)
        assert str(report.end.at) == place
        assert [note for note in told.notes if "waits for a run without --until" in note]
        state = shop.follower.ledger.table_states(SOURCE)[table]
        assert state.condition is TableCondition.QUARANTINED
    shop.follower.run()
    rows = shop.stand.rows(f"select * from {shop.name}.t order by id")
    assert [tuple(row.values()) for row in shop.follower.mirror(f"{shop.name}.t")] == rows


def test_until_a_moment_that_is_not_there_is_refused(shop: Shop) -> None:
    """One before the oldest log, one that is yet to come: the span there is, is named."""
    shop.put(1)
    tomorrow = (datetime.now(UTC) + timedelta(days=1)).isoformat()
    for moment in ("2001-01-01T00:00:00Z", tomorrow):
        error = refused(shop, moment, MomentOutOfRange)
        assert "it reaches from" in error.message


def test_until_the_end_of_a_run(shop: Shop) -> None:
    """`run:<id>` is where that run ended: before it, so a later run has nothing to do; a run
    that nobody knows is refused."""
    shop.put(1)
    with shop.follower.ledger.lock(SOURCE, "test", "0f3c1d2e-run") as lease:
        report = capture(shop.follower.work(), lease)
    shop.follower.run()
    shop.put(2)
    idle = shop.follower.run("run:0f3c1d2e")
    assert (idle.batch, idle.end.at) == (None, report.end.at)
    refused(shop, "run:nobody", StartUnreachable)
    shop.follower.run()
    assert shop.keys() == [1, 2]


def test_until_latest_is_the_head(shop: Shop) -> None:
    """As without it."""
    shop.put(1)
    report = shop.follower.run("latest")
    assert (str(report.end.at), shop.keys()) == (shop.head(), [1])


def _now(stand: MySqlStand) -> str:
    """The server's clock, as a place; what is committed next is committed later. The log of MySQL
    5.7 has seconds, and the place is where the next one begins."""
    moment = "utc_timestamp(6) + interval 1 microsecond"
    if stand.version < (8,):
        stand.rows("select sleep(1 - microsecond(sysdate(6)) / 1000000)")
        moment = "utc_timestamp()"
    [(now,)] = stand.rows(f"select {moment}")
    text: str = now.isoformat()
    return f"{text}Z"
