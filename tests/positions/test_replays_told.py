"""What the log cannot tell a second time: said, left as it was recorded, and compared; and tables
of a past that is broken."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from lockstep.commands import replay as show
from lockstep.pipeline.model.table_state import OrderKind
from lockstep.pipeline.replay.spans import Span
from lockstep.pipeline.run.dump.table_extents import record_complete
from lockstep.pipeline.run.proof.verify_rows import verify
from lockstep.pipeline.run.replay.replay import plan_replay
from lockstep.pipeline.run.replay.segment_comparison import SegmentStanding
from lockstep.pipeline.run.run import lock_when_free
from lockstep.pipeline.values.errors import BatchesWait, PastRefused, SourceBusy
from lockstep.pipeline.values.places import parse_place
from lockstep.pipeline.values.policies import Deletes, LakePolicies
from lockstep.pipeline.values.table import TableName
from tests.fix_mysql import MySqlStand
from tests.mysql.logged import head
from tests.mysql.reading import server
from tests.positions.follower import SOURCE, Follower
from tests.positions.servers import Pair, catch_up, executed, promote, replicate
from tests.positions.shop import follow, put, turn_to
from tests.positions.shop import open_shop as open_pair
from tests.proof.writing import spoil

WHOLE = Span(parse_place("earliest"), parse_place("latest"))


def _spoils(key: int) -> Callable[[list[dict[str, Any]]], object]:
    return lambda rows: [row.update(v=-1) for row in rows if row["id"] == key]


def test_a_stamp_that_the_mirror_only_keeps_is_not_compared(
    mysql: MySqlStand, database: str
) -> None:
    """The setting no longer names it, and soft deletes read a mark of the same name."""
    soft = LakePolicies(deletes=Deletes.SOFT)
    policies = replace(soft, stamps=("_committed_at",))
    start = str(head(mysql))
    follower = Follower(server(mysql), [f"{database}.*"], start, lake_policies=policies)
    create = "create table t (id int primary key, v int)"
    mysql.execute(create, "insert into t values (1, 1), (2, 2)", database=database)
    follower.run()
    follower.lake_policies = soft
    mysql.execute(
        "update t set v = 3 where id = 1", "delete from t where id = 2", database=database
    )
    follower.run()
    assert "_committed_at" in follower.mirror(f"{database}.t")[0]
    spoil(follower, TableName(database, "t"), _spoils(1))
    [mirror] = follower.replay().mirrors
    assert (mirror.wrong, mirror.not_compared) == (1, None)
    assert [row["v"] for row in follower.mirror(f"{database}.t")] == [3, 2]


def test_what_came_from_elsewhere_stays_and_its_mirror_is_compared(
    mysql: MySqlStand, database: str
) -> None:
    """Rows read from the source, tables brought back, a mirror made anew, a statement, an XA
    transaction over two batches; a row that was changed since is put right."""
    table = TableName(database, "t")

    def do(*statements: str) -> None:
        mysql.execute(*statements, database=database)

    do("create table t (id int primary key, v int)", "insert into t values (1, 1), (2, 2), (3, 3)")
    follower = Follower(server(mysql), [f"{database}.*"], start="snapshot")
    follower.run()
    do("update t set v = 20 where id = 2")
    follower.run()
    with mysql.connect(database) as session, session.cursor() as cursor:
        for text in ("xa start 'x'", "insert into t values (9, 9)", "xa end 'x'", "xa prepare 'x'"):
            cursor.execute(text)
    follower.run()
    do("xa commit 'x'")
    follower.run()
    follower.order(OrderKind.PAUSE, table)
    do("insert into t values (4, 4)", "alter table t add column more int default 7")
    follower.run()
    follower.order(OrderKind.RESUME, table)
    do("insert into t values (5, 5, 5)")
    follower.run()
    follower.order(OrderKind.RELOAD, table)
    follower.run()
    do("update t set v = 200 where id = 2")
    follower.run()
    before = follower.mirror(str(table))
    planned = plan_replay(follower.ports(), Span(parse_place("earliest"), parse_place("latest")))
    done = follower.replay()
    whys = [batch.reason_not_recaptured for batch in done.batches if batch.segments]
    assert [
        batch.reason_not_recaptured for batch in planned.batches if batch.reason_not_recaptured
    ] == [*filter(None, whys)]
    assert "it has rows that were read from the source" in whys
    assert "it has rows of an XA transaction that was prepared before it" in whys
    assert "it brought back tables that had stopped" in whys
    assert None in whys
    assert not done.has_differences
    assert {segment.standing for segment in done.segments} == {
        SegmentStanding.SAME,
        SegmentStanding.AS_RECORDED,
    }
    spoil(follower, table, _spoils(2))
    compared = follower.replay(commit=False)
    assert [mirror.wrong for mirror in compared.mirrors] == [1]
    [row] = compared.mirrors[0].rows
    assert (row.kind, row.key, row.columns, row.lake) == ("different", "id=2", ("v",), None)
    assert follower.mirror(str(table)) != before
    follower.replay()
    assert follower.mirror(str(table)) == before
    (count,) = mysql.rows(f"select count(*) from {database}.t")[0]
    assert len(before) == count


def test_a_span_over_a_failover(pair: Pair) -> None:
    """What the old server's log told is compared, what the new one's tells is read again."""
    open_pair(pair.a)
    follower = follow(pair.a)
    put(pair.a, 1, 2)
    follower.run()
    replicate(pair.a, pair.b)
    catch_up(pair.a, pair.b)
    promote(pair.b)
    turn_to(follower, pair.b)
    put(pair.b, 2, 3, v=5)
    follower.run()
    done = follower.replay()
    whys = [batch.reason_not_recaptured for batch in done.batches if batch.segments]
    assert whys == ["it was captured from another server than the one that answers now", None]
    assert not done.has_differences


def test_tables_of_a_broken_past(pair: Pair) -> None:
    """As of each transaction, where images leave columns out: behind a failover, and behind a gap
    of which nothing is left to see, once a comparison has shown that. What the spans around them
    hold is right."""
    open_pair(pair.a)
    follower = follow(pair.a)
    seen: list[tuple[str, list[dict[str, Any]]]] = []

    def do(stand: MySqlStand, statement: str) -> None:
        stand.execute("use shop", "set session binlog_row_image = minimal", statement)
        rows = stand.rows("select id, v from shop.t order by id")
        kept = [dict(zip(("id", "v"), row, strict=True)) for row in rows]
        seen.append((f"gtid:{executed(stand)}", kept))

    do(pair.a, "insert into t values (1, 1), (2, 2)")
    do(pair.a, "update t set v = 10 where id = 1")
    follower.run()
    do(pair.a, "update t set v = 20 where id = 2")
    follower.run()
    replicate(pair.a, pair.b)
    catch_up(pair.a, pair.b)
    promote(pair.b)
    turn_to(follower, pair.b)
    do(pair.b, "update t set v = 30 where id = 1")
    do(pair.b, "delete from t where id = 2")
    follower.run()
    pair.b.execute("insert into shop.t values (7, 7)", "delete from shop.t where id = 7")
    follower.choose("latest")
    follower.run()
    do(pair.b, "insert into t values (3, 3)")
    follower.run()
    name = TableName("shop", "t")
    with pytest.raises(PastRefused, match="was never read"):
        follower.rebuilt(name, seen[-1][0])
    with follower.leased() as lease:
        record_complete(follower.ports(), lease, verify(follower.ports()))
    for place, rows in seen:
        found = follower.rebuilt(name, place)
        assert sorted(found, key=lambda row: int(row["id"])) == rows, place
    done = follower.replay()
    assert not done.has_differences
    assert {batch.reason_not_recaptured for batch in done.batches if batch.segments} == {
        "it was captured from another server than the one that answers now",
        None,
    }


def test_a_table_of_the_past_has_the_name_of_then(mysql: MySqlStand, database: str) -> None:
    """Each name is there for its own time; the new one from the end of the batch on that has the
    rename, since its changelog does not have the rows that were copied."""
    follower = Follower(server(mysql), [f"{database}.*"])
    places: list[tuple[str, str, int]] = []

    def do(name: str, *statements: str) -> None:
        for text in statements:
            mysql.execute(text, database=database)
            (count,) = mysql.rows(f"select count(*) from {database}.{name}")[0]
            places.append((name, str(head(mysql)), count))

    mysql.execute("create table a (id int primary key, v int)", database=database)
    follower.run()
    do("a", "insert into a values (1, 1)", "insert into a values (2, 2)")
    follower.run()
    mysql.execute("rename table a to c", database=database)
    places.append(("", str(head(mysql)), 0))
    do("c", "insert into c values (3, 3)")
    follower.run()
    do("c", "update c set v = 7", "delete from c where id = 1")
    follower.run()
    for name, place, count in places:
        for asked in "ac":
            table = TableName(database, asked)
            if asked == name:
                assert len(follower.rebuilt(table, place)) == count
            else:
                with pytest.raises(PastRefused):
                    follower.rebuilt(table, place)


def test_captured_batches_that_wait(mysql: MySqlStand, database: str) -> None:
    """A replay comes behind them; and behind the run that has the source."""
    mysql.execute(f"create table {database}.t (id int primary key, v int)")
    follower = Follower(server(mysql), [f"{database}.*"])
    follower.run()
    mysql.execute(f"insert into {database}.t values (1, 1)")
    follower.capture()
    with pytest.raises(BatchesWait, match="captured but not merged"):
        follower.replay()
    follower.run()
    assert not follower.replay().has_differences
    told: list[str] = []

    class Told(Exception):
        pass

    def tell(sentence: str) -> None:
        told.append(sentence)
        raise Told

    lock = partial(follower.ledger.lock, SOURCE, "a replay", None)
    with follower.ledger.lock(SOURCE, "a run", None):
        with pytest.raises(SourceBusy):
            follower.replay()
        with pytest.raises(Told), lock_when_free(lock, tell):
            raise AssertionError("somebody else has it")
    assert "is busy: a run" in told[0]
    with lock_when_free(lock, tell) as lease:
        assert lease.holder == "a replay"


def test_a_replay_tells_of_each_batch_once(mysql: MySqlStand, database: str) -> None:
    """Whether it is read again from the log or from its changelog alone: in the answer, and not
    while it works as well."""
    mysql.execute("create table t (id int primary key, v int)", database=database)
    follower = Follower(server(mysql), [f"{database}.*"])
    follower.run()
    for key in (1, 2):
        mysql.execute(f"insert into {database}.t values ({key}, 1)", "flush binary logs")
        follower.run()
    newest = mysql.rows("show binary logs")[-1][0]
    mysql.execute(f"insert into {database}.t values (3, 1)")
    follower.run()
    mysql.execute(f"purge binary logs to '{newest}'")
    report = follower.replay()
    told = [*follower.notes, *show.replay_lines(report, is_planned=False)]
    gone = [batch.batch.id for batch in report.batches if batch.reason_not_recaptured]
    assert len(gone) == 2
    for batch in gone:
        assert len([line for line in told if re.search(rf"\bbatch {batch}\b", line)]) == 1, told
    assert len([line for line in told if "batches" in line]) == 1, told
