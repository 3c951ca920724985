"""Where a run ends that was told to: a place, a set, a moment, a run."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from lockstep.pipeline.model.table_state import TableCondition
from lockstep.pipeline.run.capture import capture
from lockstep.pipeline.run.status.plan import make_plan
from lockstep.pipeline.values.errors import (
    EndNotReached,
    LockstepError,
    MomentOutOfRange,
    NotAnEventBoundary,
    StartUnreachable,
)
from lockstep.pipeline.values.policies import LakePolicies, OnRewrite
from lockstep.pipeline.values.table import TableName
from tests.fix_mysql import MySqlStand
from tests.mysql.logged import head
from tests.mysql.reading import server
from tests.positions.follower import SOURCE, Follower
from tests.positions.interrupted import noted
from tests.positions.one_table import NOBODY, Shop, open_shop


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


def test_ends_that_are_refused(shop: Shop) -> None:
    """Each by name, with what there is: a place where no event begins, however near one does, one
    that is not written yet, one of another log, numbers that nobody executed, moments that the log
    does not hold, a run that nobody knows, and where the log begins."""
    shop.put(1)
    file, offset = shop.stand.head()
    base, uuid = file.rpartition(".")[0], shop.stand.rows("select @@server_uuid")[0][0]
    tomorrow = (datetime.now(UTC) + timedelta(days=1)).isoformat()
    for until, kind, said in (
        (f"{file}:{offset - 1}", NotAnEventBoundary, "no event begins at"),
        (f"{file}:{offset + 1}", StartUnreachable, f"{file} ends at {offset}"),
        (f"{base}.999999:4", StartUnreachable, "files listed"),
        ("mariadb-bin.000001:4", StartUnreachable, "mariadb-bin.000001"),
        (f"gtid:{NOBODY}:7", EndNotReached, f"{NOBODY}:7"),
        (f"gtid:{uuid}:99999999", EndNotReached, f"{uuid}:99999999"),
        ("2001-01-01T00:00:00Z", MomentOutOfRange, "it reaches from"),
        (tomorrow, MomentOutOfRange, "it reaches from"),
        ("run:nobody", StartUnreachable, "nobody"),
        ("earliest", EndNotReached, ""),
    ):
        error = refused(shop, until, kind)
        assert said in error.message
        assert "files listed" not in said or "SHOW BINARY LOGS" in error.hint
    report = shop.follower.run("latest")
    assert (str(report.end.at), shop.keys()) == (shop.head(), [1])


PLACES: dict[str, Callable[[Shop], str]] = {
    "a position": Shop.head,
    "a set": lambda shop: f"gtid:{shop.executed()}",
    "a moment": lambda shop: moment(shop.stand),
    "a moment in one file": lambda shop: f"{head(shop.stand).file}@{moment(shop.stand)}",
    "the very beginning of a file": lambda shop: f"{new_file(shop)}:4",
}
"""Each where the log ends now; of a set all is read, in whatever order it stands in the log, and of
a moment what was committed before it."""


def new_file(shop: Shop) -> str:
    shop.stand.execute("flush binary logs", "flush binary logs")
    return str(head(shop.stand).file)


def test_until_a_place(shop: Shop) -> None:
    """What ends at or before it is read, the rest is the next run's. The same place again is an
    idle run, though there is more."""
    for number, (kind, place_of) in enumerate(PLACES.items()):
        with noted(kind):
            shop.put(2 * number)
            place = place_of(shop)
            shop.put(2 * number + 1)
            for _ in range(2):
                report = shop.follower.run(place)
                assert shop.keys() == [*range(2 * number + 1)]
            assert report.batch_id is None
            shop.follower.run()
            assert shop.keys() == [*range(2 * number + 2)]


def test_until_a_position_inside_a_transaction(shop: Shop) -> None:
    """The run ends before that transaction: a transaction is read whole or not at all."""
    shop.put(1)
    before = shop.head()
    shop.put(2)
    file, offset = shop.stand.head()
    events = shop.stand.rows(f"show binlog events in '{file}' from {before.rpartition(':')[2]}")
    inside = [row[1] for row in events if row[1] < offset][1:]
    assert len(inside) >= 3
    for place in inside:
        shop.follower.notes.clear()
        shop.follower.capture(f"{file}:{place}")
        assert shop.follower.notes == [
            f"{file}:{place} lies inside a transaction; the run ends at {before}"
        ]
    shop.follower.run(f"{file}:{inside[0]}")
    assert shop.keys() == [1]
    shop.follower.run()
    assert shop.keys() == [1, 2]


def test_until_a_position_before_the_start_is_an_idle_run(shop: Shop) -> None:
    """Nothing is read, the position stays, and the record says why."""
    place = shop.head()
    shop.put(1)
    shop.follower.run()
    shop.put(2)
    report = shop.follower.run(place)
    assert (report.batch_id, report.start, report.transactions) == (None, report.end, 0)
    assert report.is_past_end
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
    begin = head(mysql)
    mysql.execute(
        f"create table {database}.t (id int primary key, v int)",
        f"insert into {database}.t values (1, 0)",
    )
    follower = Follower(server(mysql), [f"{database}.*"], start=f"{begin.file}:4")
    for place in (f"{begin.file}:4", str(begin)):
        assert follower.run(place).transactions == 0
        assert follower.mirror(f"{database}.t") == []
    follower.run()
    assert follower.mirror(f"{database}.t") == [{"id": 1, "v": 0}]


def test_until_a_moment_after_all_of_one_file(shop: Shop) -> None:
    """Where no transaction of it is at or after the moment, the run ends with the file."""
    shop.put(1)
    late = moment(shop.stand)
    file, _ = shop.stand.head()
    shop.stand.execute("flush binary logs")
    shop.put(2)
    shop.follower.run(f"{file}@{late}")
    assert shop.keys() == [1]
    newest, _ = shop.stand.head()
    report = shop.follower.run(f"{newest}@{moment(shop.stand)}")
    assert (str(report.end.at), shop.keys()) == (shop.head(), [1, 2])
    shop.put(3)
    shop.follower.run()
    assert shop.keys() == [1, 2, 3]


CHANGES = (
    "modify v varchar(9) character set latin1",
    "add column w varchar(9) generated always as (concat(id))",
)


def test_tables_that_are_to_be_read_wait_for_a_run_without_an_end(shop: Shop) -> None:
    """What is read from the source belongs behind an end that nobody knew before: a run until
    a place ends there, and says who waits; the next run without one reads the tables."""
    names = [f"{shop.name}.t{number}" for number in range(len(CHANGES))]
    for name in names:
        shop.stand.execute(
            f"create table {name} like {shop.name}.t", f"insert into {name} values (1, 0)"
        )
    shop.follower.run()
    shop.follower.lake_policies = LakePolicies(on_rewrite=OnRewrite.RESNAPSHOT)
    for name, change in zip(names, CHANGES, strict=True):
        shop.stand.execute(f"alter table {name} {change}")
    shop.follower.run(shop.head())
    tables = [TableName(*name.split(".")) for name in names]
    for key in (2, 3):
        place = shop.head()
        shop.stand.execute(*(f"insert into {name} (id, v) values ({key}, 7)" for name in names))
        plan = make_plan(shop.follower.ports(place))
        assert [*plan.table_plans.wait_reasons] == tables
        shop.follower.notes.clear()
        report = shop.follower.capture(place)
        assert str(report.end.at) == place
        waiting = [note for note in shop.follower.notes if "waits: a run without --until" in note]
        assert len(waiting) == len(tables)
        states = shop.follower.states()
        assert {states[table].condition for table in tables} == {TableCondition.STOPPED}
    shop.follower.run()
    for name in names:
        rows = shop.stand.rows(f"select * from {name} order by id")
        assert [tuple(row.values()) for row in shop.follower.mirror(name)] == rows


def test_until_the_end_of_a_run(shop: Shop) -> None:
    """`run:<id>` is where that run ended: before it, so a later run has nothing to do."""
    shop.put(1)
    with shop.follower.ledger.lock(SOURCE, "test", "0f3c1d2e-run") as lease:
        report = capture(shop.follower.ports(), lease)
    shop.follower.run()
    shop.put(2)
    idle = shop.follower.run("run:0f3c1d2e")
    assert (idle.batch_id, idle.end.at) == (None, report.end.at)
    shop.follower.run()
    assert shop.keys() == [1, 2]


def has_exact_times(stand: MySqlStand) -> bool:
    """Its log says to the microsecond when a transaction was committed."""
    return bool(stand.rows("show variables like 'original_commit_timestamp'"))


def let_a_second_pass(stand: MySqlStand) -> None:
    """Where the log has whole seconds, what comes next is of another one."""
    if not has_exact_times(stand):
        stand.rows("select sleep(1.1)")


def moment(stand: MySqlStand) -> str:
    """The server's clock, as a place: what was committed lies before it, what is committed next
    does not. The logs of MySQL 5.7 and MariaDB have seconds, and the place is where the next one
    begins."""
    now = "utc_timestamp(6) + interval 1 microsecond"
    if not has_exact_times(stand):
        stand.rows("select sleep(1 - microsecond(sysdate(6)) / 1000000)")
        now = "utc_timestamp()"
    [(found,)] = stand.rows(f"select {now}")
    return f"{found.isoformat()}Z"
