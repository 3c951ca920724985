"""Where a run ends: at a place that it was told, at the head that was fixed before, where a budget
is spent, or where something stands in the log that lets no run by; and starts that are not
there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any, cast

import pytest

from lockstep.pipeline.model.table_state import TableCondition
from lockstep.pipeline.ports.ledger import batch_content
from lockstep.pipeline.ports.source import BinlogDump, Received, SourceServer
from lockstep.pipeline.run.capture import capture
from lockstep.pipeline.run.merge import merge
from lockstep.pipeline.run.status.plan import make_plan
from lockstep.pipeline.start.bounds import Budget
from lockstep.pipeline.values.errors import (
    EndNotReached,
    LockstepError,
    LogStops,
    MomentOutOfRange,
    NotAnEventBoundary,
    SourceDiverged,
    StartUnreachable,
)
from lockstep.pipeline.values.policies import LakePolicies, OnRewrite
from lockstep.pipeline.values.position import Coordinates
from lockstep.pipeline.values.table import TableName
from lockstep.resources.mysql.receiving import MySqlDump
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


# -- the head, and budgets ---------------------------------------------------------------------


BUDGETS = {
    Budget(max_transactions=2, max_bytes=1 << 30): 3,
    Budget(max_bytes=1): 5,
    Budget(max_seconds=1e-9): None,
}
"""How many runs five transactions take; how many in a time so short, nobody knows."""


def test_a_budget_cuts_between_transactions(shop: Shop) -> None:
    """Each run ends at the first end of a transaction at or beyond it; the next goes on; at
    last one finds nothing to do. However little time there is, a run that has something to read
    gets on."""
    for number, (budget, batches) in enumerate(BUDGETS.items()):
        with noted(str(budget)):
            keys = range(10 * number + 1, 10 * number + 6)
            shop.stand.execute(
                *(f"insert into {shop.name}.t values ({key}, 0), (-{key}, 0)" for key in keys)
            )
            shop.follower.budget = budget
            shown = [shop.keys()]
            while shop.follower.run().batch_id is not None:
                shown.append(shop.keys())
                assert len(shown[-1]) > len(shown[-2])
                assert sorted(shown[-1]) == sorted(-key for key in shown[-1])
            assert batches in (None, len(shown) - 1)
            assert len(shown[-1]) == len(shown[0]) + 2 * len(keys)


def test_a_run_gets_on_although_its_time_is_over_before_the_log_arrives(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first packet of a dump, which is no part of the log, comes alone."""
    pieces_of = MySqlDump.__iter__

    def first_packet_alone(dump: MySqlDump) -> Iterator[Received]:
        pieces = pieces_of(dump)
        first = next(pieces)
        end = first.begin + 4 + int.from_bytes(first.data[first.begin :][:3].tobytes(), "little")
        yield Received(first.data, first.begin, end)
        yield Received(first.data, end, first.end)
        yield from pieces

    monkeypatch.setattr(MySqlDump, "__iter__", first_packet_alone)
    shop.put(1)
    shop.follower.budget = Budget(max_seconds=1e-9)
    shop.follower.run()
    assert shop.keys() == [1]


def test_the_nearer_of_until_and_a_budget_ends_a_run(shop: Shop) -> None:
    """Both are kept, whichever comes first."""
    shop.put(1, 2, 3)
    place = shop.head()
    shop.put(4)
    shop.follower.budget = Budget(max_transactions=2)
    shop.follower.run(place)
    assert shop.keys() == [1, 2]
    shop.follower.run(place)
    assert shop.keys() == [1, 2, 3]


@dataclass
class BusyServer:
    """A server that commits something whenever a piece of its log was sent."""

    real: SourceServer
    write: Callable[[], None]

    def dump(self, start: Coordinates) -> BinlogDump:
        return BusyDump(self.real.dump(start), self.write)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)


@dataclass
class BusyDump:
    dump: BinlogDump
    write: Callable[[], None]

    @property
    def begins(self) -> Coordinates | None:
        return self.dump.begins

    def __iter__(self) -> Iterator[Received]:
        for got in self.dump:
            self.write()
            yield got

    def close(self) -> None:
        self.dump.close()


def test_a_source_that_is_always_written_to_ends_a_run(shop: Shop) -> None:
    """The end is fixed before the first byte: what is committed while the log is read is the
    next run's, and each run ends although the log never does."""
    real, numbers = shop.follower.server, count(1)
    busy = BusyServer(real, lambda: shop.put(next(numbers)))
    shop.follower.server = cast("SourceServer", busy)
    shop.put(0)
    for _ in range(3):
        begin = Coordinates.parse(shop.head())
        report = shop.follower.run()
        assert begin <= report.end.at < Coordinates.parse(shop.head())
    shop.follower.server = real
    shop.follower.run()
    assert shop.keys() == list(range(next(numbers)))


def test_foreign_traffic_moves_the_position(shop: Shop) -> None:
    """Other databases' changes are read over: a batch without segments, acknowledged; then
    nothing is left to do."""
    foreign = f"{shop.name}_foreign"
    shop.stand.execute(
        f"create database {foreign}",
        f"create table {foreign}.t (id int primary key)",
        f"insert into {foreign}.t values (1), (2)",
        f"drop database {foreign}",
    )
    report = shop.follower.run()
    assert (report.transactions, report.rows, report.counts) == (4, 0, {})
    cursor = shop.follower.ledger.cursors(SOURCE).acknowledged
    assert cursor is not None
    assert (cursor.batch, str(cursor.position.at)) == (report.batch_id, shop.head())
    assert batch_content(shop.follower.ledger, SOURCE, cursor.batch).segments == ()
    assert shop.follower.run().batch_id is None
    assert shop.told().reason == f"nothing was written to the log since {cursor.position}"


# -- what lets no run by -----------------------------------------------------------------------


UNKNOWN = "insert into t values (2, elsewhere())"
"""Whatever a stored function does is in no text that the log has."""


@pytest.fixture
def stopping(mysql: MySqlStand, database: str) -> Shop:
    """Whose log may get what lets no run by."""
    shop = open_shop(mysql, database, start="latest")
    mysql.execute("create function elsewhere() returns int no sql return 1", database=database)
    shop.follower.run()
    return shop


def stop(shop: Shop) -> None:
    shop.stand.execute("set binlog_format = statement", UNKNOWN, database=shop.name)


def test_all_before_the_place_is_captured(stopping: Shop) -> None:
    """The report says what stopped it; the position is right before the place. Later runs end there
    at once, with the same error; nothing more is recorded, and its hint is the way on."""
    stopping.put(1)
    before = stopping.head()
    stop(stopping)
    behind = stopping.head()
    stopping.put(3)
    report = stopping.follower.run()
    first = report.stop_error
    assert isinstance(first, LogStops)
    assert (stopping.keys(), str(report.end.at)) == ([1], before)
    acknowledged = stopping.follower.acknowledged()
    assert acknowledged is not None and str(acknowledged.position.at) == before
    batches = [one.id for one in stopping.follower.batches(limit=9) if one.end]
    for _ in range(2):
        with pytest.raises(LogStops) as again:
            stopping.follower.run()
        assert (again.value.message, again.value.hint) == (first.message, first.hint)
        assert batches == [one.id for one in stopping.follower.batches(limit=9) if one.end]
    assert f"start-at {behind}" in first.hint
    stopping.follower.choose(behind)
    assert stopping.follower.run().stop_error is None
    assert stopping.keys() == [1, 3]


@pytest.mark.parametrize("steps", [1, 2])
def test_a_run_that_dies_before_the_end_has_nothing_to_remember(stopping: Shop, steps: int) -> None:
    """Killed behind its capture, or its merge: the next run does the rest, and ends there."""
    stopping.put(1)
    before = stopping.head()
    stop(stopping)
    stopping.put(3)
    follower = stopping.follower
    with follower.ledger.lock(SOURCE, "dies", None) as lease:
        ports = follower.ports()
        capture(ports, lease)
        if steps > 1:
            merge(ports, lease)
    assert follower.run().stop_error is not None
    assert stopping.keys() == [1]
    acknowledged = follower.ledger.cursors(SOURCE).acknowledged
    assert acknowledged is not None and str(acknowledged.position.at) == before
    with pytest.raises(LogStops):
        follower.run()


# -- starts that are well written and not there ------------------------------------------------


def refused_start(shop: Shop, start: str, kind: type[LockstepError]) -> str:
    """The refusal's sentence; it is recorded with its hint, and no batch is begun."""
    follower = Follower(shop.follower.server, shop.follower.tables, start=start)
    with pytest.raises(kind) as caught:
        follower.run()
    assert caught.value.recovery.exit_code == 5
    [told] = follower.ledger.decisions(SOURCE)
    assert (told.decision.kind, told.decision.reason) == ("refusal", caught.value.message)
    assert told.decision.facts["hint"] == caught.value.hint
    assert caught.value.hint
    assert follower.ledger.batches(SOURCE) == []
    return caught.value.message


def test_starts_that_are_not_there(shop: Shop) -> None:
    """Another base name is another log, whatever its number; a file that is not written yet, and an
    offset that is not; a place where no event begins, of which the nearest one before is named (the
    last byte of a log is not its end); a UUID of nobody, and numbers that the server has not
    reached; moments outside of the span that there is."""
    file, offset = shop.stand.head()
    base, uuid = file.rpartition(".")[0], shop.stand.rows("select @@server_uuid")[0][0]
    executed = shop.executed()
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
        message = refused_start(shop, start, kind)
        assert all(words in message for words in said), start
