"""`lockstep start-at`: a place chosen by a person, once, recorded, never behind; and the gap that
it leaves: each table that it may have touched is named, until it is whole again."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from lockstep.commands.versions import version_set_values
from lockstep.pipeline.model.batch import BatchState
from lockstep.pipeline.model.gaps import Gap
from lockstep.pipeline.model.table_state import OrderKind, TableCondition, TableEventKind
from lockstep.pipeline.run.capture import capture
from lockstep.pipeline.run.dump.table_extents import record_complete
from lockstep.pipeline.run.proof.verify_rows import verify
from lockstep.pipeline.run.status.plan import make_plan
from lockstep.pipeline.run.status.version_sets import version_set_at
from lockstep.pipeline.run.stop_errors import reload_hint
from lockstep.pipeline.start.question import StartRule
from lockstep.pipeline.status.verdict import State, verdict
from lockstep.pipeline.values.decisions import Continuity
from lockstep.pipeline.values.errors import (
    LedgerUnavailable,
    PastRefused,
    PositionPurged,
    SchemaUnknownAt,
    SourceMoving,
    StartBehindCursor,
    StartUnreachable,
)
from lockstep.pipeline.values.places import moment_text, parse_place
from lockstep.pipeline.values.table import TableName
from tests.mysql.logged import head
from tests.outside import give_reload, plan_repairs, recover
from tests.positions.follower import SOURCE, Follower
from tests.positions.servers import (
    Pair,
    catch_up,
    executed,
    promote,
    purge,
    replicate,
    uuid_of,
)
from tests.positions.shop import (
    changes,
    follow,
    newest,
    open_shop,
    put,
    read_shop,
    refused,
    require_rule,
    require_same,
    take,
    turn_to,
)


@pytest.fixture
def follower(pair: Pair) -> Follower:
    """Two rows of A are read and acknowledged."""
    return read_shop(pair.a, 1, 2)


def _open(follower: Follower) -> str | None:
    choice = follower.ledger.open_override(SOURCE)
    return choice.place if choice else None


def test_a_jump_forward_leaves_a_gap(pair: Pair, follower: Follower) -> None:
    """What lies between is recorded with its places, its tables, the author and the reason;
    a row that was deleted there and inserted again later stands once in the mirror."""
    begin = str(follower.ledger.batches(SOURCE, limit=1)[0].end)
    take(pair.a, 1)
    put(pair.a, 2, v=1)
    place = str(head(pair.a))
    put(pair.a, 1, v=7)
    follower.choose(place, "the disk was full")
    follower.run()
    require_rule(follower, StartRule.CHOSEN_START)
    [gap] = follower.ledger.gaps(SOURCE)
    assert (gap.begin, gap.end, gap.tables) == (begin, place, ("shop.t",))
    assert (gap.author, "the disk was full" in gap.reason) == ("somebody", True)
    assert newest(follower).decision.continuity is Continuity.GAP
    assert follower.mirror("shop.t") == [{"id": 1, "v": 7}, {"id": 2, "v": 0}]
    assert _open(follower) is None
    put(pair.a, 3)
    take(pair.a, 2)
    put(pair.a, 2, v=3)
    follower.run()
    require_rule(follower, StartRule.RESUME_SAME_SERVER)
    require_same(follower, pair.a)
    put(pair.a, 4)
    follower.choose("latest")
    report = follower.run()
    assert (report.transactions, _open(follower)) == (0, None), "all of it is the gap"
    put(pair.a, 5)
    assert follower.run().transactions == 1
    assert len(follower.ledger.gaps(SOURCE)) == 2


def test_a_choice_stays_open_until_what_it_leads_to_is_captured(
    pair: Pair, follower: Follower
) -> None:
    """The log was purged, and the table altered in what is left of it. The run from the chosen
    place is refused at rows of which nobody knows the structure: `plan` foresees this, `status`
    does not go back to the refusal that the choice has answered, and `verify` does not say that
    anything waits to be merged. The hint names what to type."""
    take(pair.a, 1)
    purge(pair.a)
    with pair.a.metadata("MINIMAL"):
        put(pair.a, 3)
    pair.a.execute("alter table shop.t add w int", "insert into shop.t values (4, 0, 7)")
    refused(follower, PositionPurged, StartRule.POSITION_PURGED)
    follower.choose("earliest")
    for _ in range(2):
        with pytest.raises(SchemaUnknownAt) as caught:
            follower.run()
        assert _open(follower) == "earliest"
        plan = make_plan(follower.ports())
        assert isinstance(plan.refusal, SchemaUnknownAt)
        assert plan.start is not None
        assert plan.start.rule == StartRule.CHOSEN_START
        assert verdict(follower.standing(), datetime.now(UTC), None).state is State.BEHIND
        with pytest.raises(SourceMoving, match="a run did not finish reading the log after it"):
            verify(follower.ports())
    words = caught.value.hint.partition("`lockstep start-at ")[2]
    follower.choose(words.partition(" --reason")[0])
    follower.run()
    assert _open(follower) is None
    assert follower.mirror("shop.t")[-1] == {"id": 4, "v": 0, "w": 7}


def test_a_jump_back_is_refused(pair: Pair, follower: Follower) -> None:
    """Repeating is another command's; the choice stays open until another replaces it."""
    put(pair.a, 3)
    follower.choose("earliest")
    for _ in range(2):
        names = ["earliest", "somebody"]
        error = refused(follower, StartBehindCursor, StartRule.CHOSEN_START_BEHIND, names)
        assert "`lockstep start-at" in error.hint
        assert _open(follower) == "earliest"
    words = error.hint.partition("`lockstep start-at ")[2]
    follower.choose(words.partition(" --source")[0])
    follower.run()
    assert newest(follower).decision.continuity is Continuity.CONTIGUOUS
    require_same(follower, pair.a)


NOWHERE = (
    *("binlog.000099:4", "binlog.000001:999999", "run:nobody", "2001-01-01T00:00:00Z"),
    "gtid:33333333-3333-3333-3333-333333333333:1-5",
)


def test_places_that_are_not_there(pair: Pair, follower: Follower) -> None:
    """StartUnreachable with the reason; the choice is kept, and the next one counts."""
    for place in (*NOWHERE, f"gtid:{uuid_of(pair.a)}:1-999999"):
        follower.choose(place)
        refused(follower, StartUnreachable, StartRule.CHOSEN_START_UNREACHABLE, [place, "somebody"])
        assert _open(follower) == place
    follower.choose(str(head(pair.a)))
    follower.run()
    require_same(follower, pair.a)


def test_the_end_of_a_run_is_no_place_of_another_log(pair: Pair) -> None:
    """After a RESET the log grew past the same file and offset with other rows: to start there
    would leave out what comes before."""
    open_shop(pair.a)
    put(pair.a, 1, 2)
    follower = follow(pair.a)
    follower.run_id = "one"
    follower.run()
    read = head(pair.a)
    pair.a.execute("set sql_log_bin = 0", "drop database shop", "reset binary logs and gtids")
    open_shop(pair.a)
    put(pair.a, 3, 4)
    assert head(pair.a) == read
    put(pair.a, 5)
    follower.choose("run:one")
    names = [f"run one ended at {read}", "is a different one"]
    refused(follower, StartUnreachable, StartRule.CHOSEN_START_UNREACHABLE, names)
    follower.choose("earliest")
    follower.run()
    require_same(follower, pair.a)


def test_places_that_are_no_gap_and_those_that_are(pair: Pair, follower: Follower) -> None:
    """Where the source stands anyway, by file and offset, by its set, or by the run that ended
    there, named by the beginning of its id: contiguous. Of less: behind. A set of more, one with
    holes, or a moment, which is the first transaction committed then: what was never read is what
    the gap stands for."""
    follower.choose(str(head(pair.a)))
    put(pair.a, 3)
    assert follower.run().transactions == 1
    require_rule(follower, StartRule.CHOSEN_START)
    assert newest(follower).decision.continuity is Continuity.CONTIGUOUS
    read = executed(pair.a)
    put(pair.a, 4)
    follower.choose(f"gtid:{read}")
    follower.run()
    assert newest(follower).decision.continuity is Continuity.CONTIGUOUS
    put(pair.a, 5)
    with follower.ledger.lock(SOURCE, "test", "abc-123") as lease:
        capture(follower.ports(), lease)
    put(pair.a, 6)
    follower.choose("run:abc")
    follower.run()
    assert newest(follower).decision.continuity is Continuity.CONTIGUOUS
    require_same(follower, pair.a)
    assert follower.ledger.gaps(SOURCE) == []
    for behind in ("run:abc-123", f"gtid:{read}"):
        follower.choose(behind)
        refused(follower, StartBehindCursor, StartRule.CHOSEN_START_BEHIND, [behind])
    put(pair.a, 7)
    more = executed(pair.a)
    put(pair.a, 8)
    follower.choose(f"gtid:{more}")
    assert follower.run().transactions == 1
    assert newest(follower).decision.continuity is Continuity.GAP
    put(pair.a, 9, 10, 11)
    last = int(str(executed(pair.a)).rpartition("-")[2])
    follower.choose(f"gtid:{uuid_of(pair.a)}:1-{last - 3}:{last - 1}")
    assert follower.run().transactions == 2
    assert newest(follower).decision.continuity is Continuity.GAP
    put(pair.a, 12)
    [(now,)] = pair.a.rows("select utc_timestamp(6)")
    put(pair.a, 13)
    follower.choose(moment_text(now.replace(tzinfo=UTC)))
    assert follower.run().transactions == 1
    ids = [row["id"] for row in follower.mirror("shop.t")]
    assert ids == [1, 2, 3, 4, 5, 6, 8, 9, 11, 13]


def test_before_anything_is_acknowledged_any_choice_is_open(pair: Pair) -> None:
    """What was only captured is abandoned, without files left, and the chosen start counts."""
    open_shop(pair.a)
    put(pair.a, 1, 2)
    follower = follow(pair.a)
    follower.capture()
    put(pair.a, 3)
    follower.capture()
    assert follower.lake.files
    follower.choose("earliest")
    follower.capture()
    states = [batch.state for batch in follower.ledger.batches(SOURCE)]
    assert states == [BatchState.CAPTURED, BatchState.ABANDONED, BatchState.ABANDONED]
    assert [path for path in follower.lake.files if "batch-000000000003-" not in path] == []
    follower.run()
    require_same(follower, pair.a)
    assert len(changes(follower)) == 3
    assert follower.ledger.gaps(SOURCE) == []


def test_a_run_that_died_leaves_the_choice_open(
    pair: Pair, follower: Follower, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the beginning of its batch and the record: the batch is abandoned, and the
    next run carries out the same choice."""
    put(pair.a, 3)
    place = str(head(pair.a))
    put(pair.a, 4)
    follower.choose(place)

    def die(*_: object) -> None:
        raise LedgerUnavailable("gone", hint="wait")

    with monkeypatch.context() as patch:
        patch.setattr(follower.ledger, "record_capture", die)
        with pytest.raises(LedgerUnavailable):
            follower.run()
    follower.run()
    require_rule(follower, StartRule.CHOSEN_START)
    assert _open(follower) is None
    assert [row["id"] for row in follower.mirror("shop.t")] == [1, 2, 4]
    [gap] = follower.ledger.gaps(SOURCE)
    assert gap.batch == follower.ledger.batches(SOURCE, limit=1)[0].id


def test_a_place_on_another_server(pair: Pair, follower: Follower) -> None:
    """Behind a cursor of another server nothing shows a place to be contiguous but its set:
    more is a gap, the same is none. The new log's beginning lies before what was read."""
    replicate(pair.a, pair.b)
    catch_up(pair.a, pair.b)
    promote(pair.b)
    turn_to(follower, pair.b)
    follower.choose("binlog.000001:4")
    refused(follower, StartBehindCursor, StartRule.CHOSEN_START_BEHIND)
    place = str(head(pair.b))
    put(pair.b, 3)
    follower.choose(place)
    follower.run()
    require_rule(follower, StartRule.CHOSEN_START)
    assert newest(follower).decision.continuity is Continuity.CONTIGUOUS
    require_same(follower, pair.b)


# -- gaps: what was never read -----------------------------------------------------------------


T, U, V = (TableName("shop", name) for name in "tuv")


def _gap(follower: Follower) -> Gap:
    [gap] = follower.ledger.gaps(SOURCE)
    return gap


def test_a_gap_names_tables_that_only_the_server_knows_and_closes_with_the_last(pair: Pair) -> None:
    """`u` and `v` have their first rows in what was purged: they are named beside `t`, which
    the lake has; another database's table is not. A table's part closes once it is read
    from the source, emptied or dropped behind the gap, under whichever name it has by then; the
    gap is open until the last."""
    follower = read_shop(pair.a, 1)
    follower.order(OrderKind.PAUSE, T)
    pair.a.execute(
        "create table shop.u (id int primary key, v int)",
        "create table shop.v like shop.u",
        "create database other",
        "create table other.w like shop.u",
        "insert into shop.u values (1, 1)",
    )
    put(pair.a, 2)
    purge(pair.a)
    follower.choose(str(head(pair.a)))
    follower.run()
    assert _gap(follower).tables == ("shop.t", "shop.u", "shop.v")
    assert _gap(follower).open_tables == _gap(follower).tables
    follower.order(OrderKind.RESUME, T)
    follower.capture()
    assert _gap(follower).closed == {}, "not before it is acknowledged"
    follower.run()
    require_same(follower, pair.a)
    assert _gap(follower).closed["shop.t"].kind is TableEventKind.REREAD
    pair.a.execute("insert into shop.u values (2, 2)", "insert into shop.v values (2, 2)")
    follower.run()
    pair.a.execute("truncate shop.u")
    follower.run()
    assert _gap(follower).open_tables == ("shop.v",)
    pair.a.execute("create table shop.x like shop.u")
    follower.run()
    pair.a.execute(
        "drop table shop.x",
        "rename table shop.v to shop.x",
        "rename table shop.x to shop.y, shop.u to shop.x, shop.y to shop.u",
        "rename table shop.x to shop.y, shop.u to shop.x, shop.y to shop.u",
    )
    follower.run()
    assert _gap(follower).open_tables == ("shop.v",), "the rows of `v` are in `x`"
    pair.a.execute("truncate shop.u")
    follower.run()
    assert _gap(follower).open_tables == ("shop.v",)
    pair.a.execute("drop table shop.x")
    follower.run()
    gap = _gap(follower)
    assert (gap.is_open, gap.closed["shop.v"].kind) == (False, TableEventKind.DROPPED)
    assert gap.closed["shop.u"].batch < gap.closed["shop.v"].batch


def test_the_past_of_a_table_that_lacks_a_gap_is_refused(pair: Pair) -> None:
    """From the gap up to the batch as of which it was found equal; the hint names a place on either
    side. Version sets between say what they may lack."""
    follower = read_shop(pair.a, 1, 2)
    before = _end(follower)
    take(pair.a, 2)
    purge(pair.a)
    follower.choose("earliest", "lost")
    put(pair.a, 3, 4)
    inside = str(head(pair.a))
    put(pair.a, 5)
    follower.run()
    after = _end(follower)
    _record_verified(follower)
    for place in (inside, after, "latest"):
        with pytest.raises(PastRefused, match="was never read") as refused:
            _rebuilt(follower, place)
        assert before in refused.value.hint
        assert "`lockstep verify shop.t`" in refused.value.hint
    assert _rebuilt(follower, before) == [1, 2]
    assert version_set_at(follower.ledger, SOURCE, parse_place(before)).gaps == ()
    newest = version_set_at(follower.ledger, SOURCE, None)
    [line], [values] = newest.lines_on_gaps(), version_set_values(newest, Path("/lake"))["gaps"]
    assert values["open"] == ("shop.t",)
    assert "was never read (somebody chose earliest: lost); rows of shop.t may be wrong" in line
    put(pair.a, 2)
    follower.run()
    take(pair.a, 2)
    follower.run()
    equal = _end(follower)
    _record_verified(follower)
    put(pair.a, 6)
    follower.run()
    _record_verified(follower)
    assert _gap(follower).open_tables == ()
    assert _rebuilt(follower, equal) == [1, 3, 4, 5]
    assert _rebuilt(follower, "latest") == [1, 3, 4, 5, 6]
    with pytest.raises(PastRefused) as refused:
        _rebuilt(follower, after)
    assert (before in refused.value.hint, equal in refused.value.hint) == (True, True)
    assert version_set_at(follower.ledger, SOURCE, None).gaps == ()
    assert version_set_at(follower.ledger, SOURCE, parse_place(after)).lines_on_gaps() == [line]


def test_a_place_inside_the_batch_that_empties_the_table_is_right_from_there_on(pair: Pair) -> None:
    follower = read_shop(pair.a, 1, 2)
    take(pair.a, 2)
    purge(pair.a)
    follower.choose("earliest")
    put(pair.a, 3)
    lacking = str(head(pair.a))
    pair.a.execute("truncate shop.t")
    put(pair.a, 4)
    right = str(head(pair.a))
    put(pair.a, 5)
    follower.run()
    assert _rebuilt(follower, right) == [4]
    assert _rebuilt(follower, "latest") == [4, 5]
    with pytest.raises(PastRefused) as refused:
        _rebuilt(follower, lacking)
    assert f"right again as of {_end(follower)}" in refused.value.hint


def _end(follower: Follower) -> str:
    return str(follower.live_batches()[-1].captured_end.at)


def _record_verified(follower: Follower) -> None:
    """What `lockstep verify` records."""
    with follower.leased() as lease:
        record_complete(follower.ports(), lease, verify(follower.ports()))


def test_tables_that_a_gap_took_away_are_dropped(pair: Pair) -> None:
    """No statement says so that a run reads; with them their parts of the gap are closed. A table
    that the account cannot see is followed as before."""
    follower = read_shop(pair.a, 1)
    pair.a.execute(
        *(f"create table shop.{name} (id int primary key, v int)" for name in "uvx"),
        *(f"insert into shop.{name} values (1, 1)" for name in "uvx"),
    )
    follower.run()
    pair.a.execute("drop table shop.u", "rename table shop.v to shop.w")
    purge(pair.a)
    follower.choose("earliest")
    put(pair.a, 2)
    seen = [f"select on shop.{name}" for name in "tuvw"]
    try:
        pair.a.execute(
            "revoke select on *.* from lockstep",
            *(f"grant create, {one} to lockstep" for one in seen),
        )
        foreseen = make_plan(follower.ports()).reading
        follower.run()
    finally:
        pair.a.execute(
            "grant select on *.* to lockstep",
            *(f"revoke create, {one} from lockstep" for one in seen),
        )
    conditions = {table.name: state.condition for table, state in follower.states().items()}
    following, dropped = TableCondition.FOLLOWING, TableCondition.DROPPED
    assert {name: conditions[name] for name in "tuvx"} == {
        "t": following,
        "u": dropped,
        "v": dropped,
        "x": following,
    }
    assert not {"shop.u", "shop.v"} & {*_gap(follower).open_tables}
    assert foreseen is not None
    assert {table.name for table in foreseen.drops} == {"u", "v"}
    pair.a.execute("create table shop.u like shop.w", "insert into shop.u values (7, 7)")
    follower.run()
    assert follower.mirror("shop.u") == [{"id": 7, "v": 7}]


def test_a_type_that_changed_in_a_gap_is_told_and_the_hint_closes_the_gap(pair: Pair) -> None:
    """The mirror's values do not fit the new type, and nobody can compare them."""
    follower = read_shop(pair.a, 1)
    pair.a.execute(
        "create table shop.u (id int primary key, v varchar(9))",
        "insert into shop.u values (1, 'x')",
    )
    follower.run()
    pair.a.execute("set sql_mode = ''", "alter table shop.u modify v int")
    purge(pair.a)
    follower.choose("earliest")
    put(pair.a, 2)
    follower.run()
    [told] = verify(follower.ports()).not_compared
    reason = "its mirror shows the column 'v' with the type string, not int, and has values that"
    assert (told.table, reason in told.reason, told.hint) == (U, True, reload_hint(U)), told
    follower.reload(U)
    follower.run()
    assert follower.mirror("shop.u") == [{"id": 1, "v": 0}]
    assert "shop.u" not in _gap(follower).open_tables


def test_a_table_that_was_altered_in_a_gap_is_repaired_as_a_whole(pair: Pair) -> None:
    """Its mirror has the columns of before, so that no row of it can be written alone."""
    follower = read_shop(pair.a, 1, 2)
    pair.a.execute("alter table shop.t modify v bigint")
    take(pair.a, 2)
    purge(pair.a)
    follower.choose("earliest")
    pair.a.execute("create table shop.u (id int primary key)")
    follower.run()
    ports = follower.ports()
    report = verify(ports, [T])
    [repair] = plan_repairs(ports, report, "ada")
    assert (report.tables[0].where, repair.condition_rows) == ("`id` in (2)", None)
    with follower.leased() as lease:
        give_reload(ports, lease, repair)
    follower.run()
    require_same(follower, pair.a)
    assert "shop.t" not in _gap(follower).open_tables


def _rebuilt(follower: Follower, place: str) -> list[int]:
    """The keys of `t` as of a place."""
    return sorted(row["id"] for row in follower.rebuilt(T, place))


def test_a_ledger_from_the_lake_appends_no_key_that_a_gap_left(pair: Pair) -> None:
    """It does not know the gap, in which the row was deleted."""
    follower = read_shop(pair.a, 1, 2)
    take(pair.a, 2)
    purge(pair.a)
    follower.choose("earliest")
    put(pair.a, 3)
    follower.run()
    follower.lose_ledger()
    with follower.leased() as lease:
        recover(follower.ports(), lease, author="ada")
    for value in (1, 2):
        put(pair.a, 4 + value)
        follower.run()
    put(pair.a, 2, v=2)
    follower.run()
    require_same(follower, pair.a)
