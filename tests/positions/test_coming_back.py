"""Tables that were paused or quarantined catch up through the log, and join the others."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, Final

import pytest

from lockstep.commands import plan as show
from lockstep.pipeline.model.table_state import OrderKind, TableCondition, TableEventKind
from lockstep.pipeline.run.capture import capture
from lockstep.pipeline.run.publish import publish
from lockstep.pipeline.run.status.plan import make_plan
from lockstep.pipeline.schema.context import StatementContext
from lockstep.pipeline.schema.model import TableSchema
from lockstep.pipeline.schema.statements.changes import NotUnderstood
from lockstep.pipeline.schema.statements.read import read_change
from lockstep.pipeline.start.bounds import Budget
from lockstep.pipeline.supply import RowsFromServer
from lockstep.pipeline.values.errors import (
    MirrorRefused,
    Need,
    PositionPurged,
    SegmentsLost,
    TableError,
)
from lockstep.pipeline.values.policies import OnPositionLost, StartPolicies
from lockstep.pipeline.values.table import TableName
from lockstep.resources.mysql.server import MySqlServer
from tests.fix_mysql import MySqlStand
from tests.mysql.logged import head
from tests.positions.follower import SOURCE
from tests.positions.interrupted import STEPS, Crash, Moments, at_moments, mortal, noted
from tests.positions.paused import Shop, open_shop
from tests.positions.servers import end_xa, prepare_xa
from tests.positions.stories import stories_in, tell
from tests.twins.mirrors import MemoryMirrors

PARTED = (
    "create table p (id int primary key, v int) partition by range (id)"
    " (partition low values less than (10), partition high values less than maxvalue)",
    "insert into p values (1, 1), (11, 11)",
)


def every_change_of_the_pause_comes_once(shop: Shop) -> Iterator[None]:
    """The others went on for several runs; the pause leaves no hole in the changelog, and
    what comes behind it has higher numbers."""
    shop.pause("a")
    for number in (2, 3, 4):
        shop.do(f"insert into a values ({number}, 0)", f"insert into b values ({number}, 0)")
        shop.do(f"update a set v = v + 1 where id < {number}")
        yield
    assert [row["id"] for row in shop.follower.mirror(f"{shop.name}.a")] == [1]
    shop.resume("a")
    shop.do("delete from a where id = 2", "insert into b values (9, 9)")
    yield
    shop.require_whole("a")
    shop.require_whole("b")
    (batch,) = shop.caught_up()
    before = shop.batches()[shop.batches().index(batch) - 1]
    assert (batch.end, batch.anchor, batch.previous_batch) == (before.end, before.anchor, before.id)
    assert shop.kinds("a")[-1] == ("delete", 2)


def several_tables_come_back_in_one_batch_each_from_its_place(shop: Shop) -> Iterator[None]:
    shop.pause("a")
    shop.do("insert into a values (2, 2)", "insert into b values (2, 2)")
    yield
    shop.pause("b")
    shop.do("insert into a values (3, 3)", "insert into b values (3, 3)")
    yield
    shop.do("create table c (id int primary key, v int)", "insert into c values (1, 1)")
    yield
    shop.resume("a")
    shop.resume("b")
    yield
    assert len(shop.caught_up()) == 1
    for table in ("a", "b", "c"):
        shop.require_whole(table)


def a_table_comes_back_with_the_version_it_was_read_under(shop: Shop) -> Iterator[None]:
    """The reading begins at another table's place: the log does not tell of that version."""
    shop.pause("a")
    shop.do("insert into a values (2, 2)")
    yield
    order_reading(shop, "b")
    yield
    shop.pause("b")
    shop.do("insert into a values (3, 3)", "insert into b values (3, 3)")
    yield
    shop.resume("a")
    shop.resume("b")
    yield
    shop.require_whole("a")
    shop.require_whole("b", rereads=1)


def order_reading(shop: Shop, table: str) -> None:
    """What `lockstep reload --from source` records of a table that is followed."""
    with shop.follower.leased() as lease:
        shop.follower.ledger.order_load(lease, shop.table(table), author="ann", reason="a trial")


def statements_of_the_pause_are_followed_in_their_order(shop: Shop) -> Iterator[None]:
    """Their versions are those that were recorded while the table stood: none is new."""
    shop.pause("a")
    shop.do(
        "insert into a values (2, 2)",
        "alter table a add column w int not null default 7",
        "insert into a values (3, 3, 3)",
    )
    yield
    shop.do(
        "alter table a change v u int, modify w bigint",
        "update a set u = 20 where id = 2",
        "truncate table a",
        "insert into a values (4, 4, 40000000000)",
    )
    yield
    before = versions(shop)
    shop.resume("a")
    yield
    shop.do("insert into a values (5, 5, 5)")
    yield
    shop.require_whole("a")
    assert versions(shop) == before
    assert TableEventKind.TRUNCATED in shop.events("a")
    assert ("truncate", None) in shop.kinds("a")
    shop.require_history()


def versions(shop: Shop) -> dict[TableName, int]:
    """The newest of each table."""
    found = shop.follower.ledger.last_versions(SOURCE).items()
    return {table: version for table, version in found if table.database == shop.name}


def tables_that_were_dropped_meanwhile(shop: Shop) -> Iterator[None]:
    """… are dropped when they come back, or what was made under their name."""
    shop.pause("a", "b")
    shop.do(
        *(f"insert into {table} values (2, 2)" for table in "ab"),
        *(f"drop table {table}" for table in "ab"),
        "create table a (id int primary key, name varchar(9))",
        "insert into a values (7, 'x')",
    )
    yield
    shop.resume("a")
    shop.resume("b")
    yield
    for table in "ab":
        assert ("insert", 2) in shop.kinds(table)
    shop.require_whole("a")
    assert shop.state("b").condition is TableCondition.DROPPED


def names_that_moved_during_the_pause(shop: Shop) -> Iterator[None]:
    """What the table was called before is caught up; what took its name is read from the
    source, as in any run."""
    shop.pause("a")
    shop.do("insert into a values (2, 2)", "insert into b values (7, 7)")
    shop.do("rename table a to old, b to a", "insert into a values (8, 8)")
    shop.do("insert into old values (3, 3)")
    yield
    shop.resume("a")
    shop.do("insert into a values (9, 9)")
    yield
    assert ("insert", 2) in shop.kinds("a")
    shop.require_whole("a", rereads=1)
    shop.require_whole("old", rereads=1)
    assert shop.state("b").condition is TableCondition.DROPPED


def a_table_that_was_read_in_vain_is_read_again(shop: Shop) -> Iterator[None]:
    """What it lacks is not in the log behind the place where the reading failed."""
    shop.do(*PARTED)
    yield
    shop.do("alter table p truncate partition low", "insert into p values (3, 3)")
    yield
    shop.resume("p")
    with pytest.MonkeyPatch.context() as patch:
        chunk = MySqlServer.chunk

        def refuse(server: MySqlServer, schema: TableSchema, *rest: Any, **more: Any) -> Any:
            if schema.name == shop.table("p"):
                raise TableError("a value is too large", hint="make it smaller")
            return chunk(server, schema, *rest, **more)

        patch.setattr(MySqlServer, "chunk", refuse)
        yield
    assert shop.state("p").has_stopped
    shop.do("insert into p values (4, 4)")
    yield
    shop.resume("p")
    shop.do("insert into p values (5, 5)")
    yield
    shop.require_whole("p", rereads=1)


GIVEN: Final = {
    # The log would stop the table there again: it is not tried.
    "none": ("add column w int default 5", "(2, 2, 2)", None, False),
    # The log's own account of its rows is another.
    "a wrong one": ("add column w int default 5", "(2, 2, 2)", "v int, w varchar(5)", False),
    # What became of the rows that were there no log tells.
    "of other values": ("modify v tinyint", "(2, 2)", "v tinyint", True),
    # One column is gone and another is there: by names alone old rows would lose theirs.
    "of another name": ("change v w bigint", "(2, 2)", "w bigint", True),
    "of another column": ("drop v, add w bigint default 9", "(2, 2)", "w bigint default 9", True),
    "of a later column": ("add w bigint, drop v", "(2, 2)", "w bigint", True),
}
"""What is altered behind the log's back, a row after that, the columns that a person gives, and
whether the log tells of the row by them."""


def _structure_given(
    alter: str, row: str, given: str | None, by_log: bool, shop: Shop
) -> Iterator[None]:
    """All rows are read from the source, and the forecast says so where no structure is given."""
    shop.do("insert into a values (300, 300)")
    yield
    shop.unlogged("set sql_mode = ''", *(f"alter table a {one}" for one in alter.split(", ")))
    shop.do(f"insert into a values {row}")
    yield
    if given is None:
        told = shop.resume("a")
        assert f"reads {shop.name}.a from the source: it stopped because the log and" in told
    else:
        shop.resume("a", f"create table a (id int primary key, {given})")
    yield
    assert (("insert", 2) in shop.kinds("a")) is by_log
    shop.require_whole("a", rereads=1)


def a_reload_counts_for_a_table_that_stops_again(shop: Shop) -> Iterator[None]:
    """It stops while it catches up: once it is resumed, its mirror is rewritten all the same."""
    shop.pause("a")
    shop.do(
        "insert into a values (2, 2)",
        "alter table a add column c int",
        "set sql_log_bin = 0",
        "alter table a add column w int default 5",
        "set sql_log_bin = 1",
        "insert into a values (3, 3, 3, 3)",
    )
    yield
    shop.follower.order(OrderKind.RELOAD, shop.table("a"))
    yield
    assert [*shop.quarantined()] == ["a"]
    shop.resume("a", "create table a (id int primary key, v int, c int, w int default 5)")
    yield
    shop.require_whole("a", rereads=1)


def a_structure_given_behind_a_statement_that_renames(shop: Shop) -> Iterator[None]:
    """Both have the same names, and each has the other's values."""
    shop.do("alter table a add u varchar(9) charset latin1", "insert into a values (8, 80, 'x')")
    yield
    swaps = "convert to charset utf8mb4, change v u varchar(9) charset latin1, change u v int"
    shop.do(
        "set sql_mode = ''",
        "delete from a where id = 8",
        "update a set u = '5'",
        f"alter table a {swaps}",
    )
    yield
    assert shop.state("a").has_stopped
    shop.resume("a", shop.stand.rows(f"show create table {shop.name}.a")[0][1])
    yield
    shop.require_whole("a", rereads=1)


def _a_log_that_is_gone_is_no_obstacle(shop: Shop) -> Iterator[None]:
    """What was purged cannot be read again: the table is read from the source."""
    shop.pause("a")
    shop.do("insert into a values (2, 2)", "flush binary logs")
    yield
    yield
    shop.do("flush binary logs")
    yield
    [(newest, *_)] = shop.stand.rows("show binary logs")[-1:]
    shop.stand.purge_to(newest)
    shop.resume("a")
    yield
    assert shop.caught_up() == []
    shop.require_whole("a", rereads=1)


def _xa_transactions(shop: Shop, *, purged: bool) -> Iterator[None]:
    """Prepared while the table stood, committed before it comes back or after: their rows
    come once, whether the log or the source brings the table back."""
    shop.pause("a")
    prepare(shop, 3, "a", "b")
    prepare(shop, 6, "a", "b")
    yield
    shop.do("insert into a values (4, 4)")
    commit(shop, 3)
    shop.do("flush binary logs")
    yield
    if purged:
        shop.do("flush binary logs")
        yield
        [(newest, *_)] = shop.stand.rows("show binary logs")[-1:]
        shop.stand.purge_to(newest)
    shop.resume("a")
    yield
    commit(shop, 6)
    shop.do("insert into a values (5, 5)")
    yield
    assert [row["id"] for row in shop.rows("a")] == [1, 3, 4, 5, 6]
    shop.require_whole("a", rereads=int(purged))
    shop.require_whole("b")


def _prepared_before_the_pause(shop: Shop, runs: int) -> Iterator[None]:
    """So many runs lie between, and the commit is in the pause: rows are read where they were
    prepared."""
    prepare(shop, 2)
    for number in range(runs):
        shop.do(f"insert into a values ({7 + number}, 7)")
        yield
    shop.pause("a")
    shop.do("insert into a values (4, 4)")
    commit(shop, 2)
    yield
    prepare(shop, 3)
    yield
    shop.resume("a")
    commit(shop, 3)
    yield
    shop.require_whole("a")


def prepare(shop: Shop, number: int, *tables: str) -> None:
    """A row for each table, of `a` unless told."""
    inserts = (f"insert into {shop.name}.{one} values ({number}, 0)" for one in tables or ("a",))
    prepare_xa(shop.stand, f"{shop.name}-{number}", *inserts)


def commit(shop: Shop, number: int) -> None:
    end_xa(shop.stand, f"{shop.name}-{number}")


def a_table_that_stops_again_goes_on_from_there(shop: Shop) -> Iterator[None]:
    """Altered behind the log's back twice: each structure given holds from its place."""
    for number in (2, 3):
        shop.do(
            "set sql_log_bin = 0",
            f"alter table a add column c{number} int default {number}",
            "set sql_log_bin = 1",
            f"insert into a (id) values ({number})",
        )
        shop.do(f"alter table a add column d{number} int")
        yield
    start = "create table a (id int primary key, v int, c2 int default 2"
    shop.resume("a", f"{start})")
    yield
    assert [*shop.quarantined()] == ["a"]
    shop.do("insert into a (id) values (4)", "alter table a add column e int")
    yield
    shop.resume("a", f"{start}, d2 int, c3 int default 3)")
    yield
    shop.do("insert into a (id) values (5)")
    yield
    assert len(shop.caught_up()) == 2
    shop.require_whole("a")
    shop.require_history()


def _followed_today(shop: Shop) -> Iterator[None]:
    def earlier(text: str, context: StatementContext) -> object:
        if "add column followed_today" in text:
            return NotUnderstood("not this one", possible_tables=(shop.table("a"),))
        return read_change(text, context)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("lockstep.pipeline.schema.tracker.read_change", earlier)
        shop.do(
            "insert into a values (2, 2)",
            "alter table a add column followed_today int default 4",
            "insert into a values (3, 3, 3)",
            "alter table a add column x int default 5",
            "insert into a values (4, 4, 4, 4)",
        )
        yield
        assert shop.state("a").has_stopped
    shop.resume("a")
    yield
    shop.do("insert into a values (5, 5, 5, 5)", "alter table a drop column x")
    shop.do("alter table a add column x int default 8")
    yield
    shop.require_whole("a")
    assert len(shop.caught_up()) == 1


def a_mirror_that_refused_a_write_is_written_once_more(shop: Shop) -> Iterator[None]:
    """The changelog has no hole all the same: the log brings what it lacks before that."""
    evolve, refused = MemoryMirrors.evolve, shop.state("a").mirror

    def refuses(mirrors: MemoryMirrors, mirror: str, *steps: Any, **told: Any) -> Any:
        if mirror == refused:
            raise MirrorRefused("Delta refuses the column", hint="look at it")
        return evolve(mirrors, mirror, *steps, **told)

    shop.do("alter table a add column items int", "insert into a values (2, 2, 2)")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(MemoryMirrors, "evolve", refuses)
        yield
    contents = shop.follower.ledger.contents(SOURCE, 1, 1_000, [shop.table("a")])
    written = [content.batch for content in contents if content.segments]
    assert shop.state("a").position == f"batch {written[-1]}"
    shop.do("insert into a values (3, 3, 3)")
    yield
    shop.resume("a")
    yield
    shop.require_whole("a", rereads=1)
    assert {2, 3} <= {key for kind, key in shop.kinds("a") if kind == "insert"}


def test_stories_of_tables_that_come_back(mysql: MySqlStand) -> None:
    """Each table by itself, whatever others of the source go through meanwhile."""
    several = [partial(_prepared_before_the_pause, runs=runs) for runs in (1, 3)]
    several += [partial(_structure_given, *case) for case in GIVEN.values()]
    tell(mysql, [*stories_in(globals()), *several, partial(_xa_transactions, purged=False)])


def test_a_statement_that_is_followed_today(mysql: MySqlStand) -> None:
    """A later version of Lockstep reads what an earlier one did not: the table catches up by
    what comes of it, and versions that were recorded meanwhile do not count."""
    tell(mysql, [_followed_today])


def test_tables_come_back_whose_log_is_gone(mysql: MySqlStand) -> None:
    """What was purged cannot be read again."""
    tell(mysql, (_a_log_that_is_gone_is_no_obstacle, partial(_xa_transactions, purged=True)))


# -- of a run as a whole -----------------------------------------------------------------------


@pytest.fixture
def shop(mysql: MySqlStand, database: str) -> Shop:
    """On a server whose log has no names of columns, as a server's has by default."""
    return open_shop(mysql, database)


def test_budgets_do_not_cut_it_and_the_newest_order_counts(shop: Shop) -> None:
    """One transaction a run: the pause has more. A pause without a change needs no batch."""
    shop.pause("a")
    shop.resume("a")
    shop.do("insert into a values (2, 2)")
    shop.run()
    assert [batch for batch in shop.batches() if batch.catches_up] == []
    shop.require_whole("a")
    shop.pause("a")
    shop.do("insert into a values (3, 3)", "insert into a values (4, 4)")
    shop.run()
    shop.resume("a")
    shop.resume("a")
    shop.do("insert into a values (5, 5)", "insert into a values (6, 6)")
    shop.follower.budget = Budget(max_transactions=1)
    shop.run()
    assert [row["id"] for row in shop.follower.mirror(f"{shop.name}.a")] == [1, 2, 3, 4, 5]
    shop.run()
    shop.require_whole("a")


@at_moments
def test_killed_at_any_step_it_comes_back_all_the_same(shop: Shop, moments: Moments) -> None:
    """Nothing is twice, nothing is missing, and a batch that was abandoned leaves the order
    open. One table comes back again and again."""
    for number, (step, after) in enumerate(moments(STEPS), start=1):
        with noted(f"killed at {step}, after it: {after}"):
            shop.pause("a")
            shop.do(
                f"insert into a (id, v) values ({10 * number}, 2)",
                f"alter table a add column w{number} int default 4",
            )
            shop.run()
            shop.resume("a")
            shop.do(
                f"insert into a (id, v) values ({10 * number + 1}, 3)",
                f"insert into b values ({10 * number}, 3)",
            )
            with mortal(shop.follower, step, after=after), pytest.raises(Crash):
                shop.run()
            shop.run()
            shop.require_whole("a")
            shop.require_whole("b")
            assert len(shop.caught_up()) == number
            assert shop.follower.ledger.open_orders(SOURCE) == []


def test_a_log_that_was_read_from_another_place_since(shop: Shop) -> None:
    """Somebody chose to jump forward: what lies between, the history does not know."""
    shop.pause("a")
    shop.do("insert into a values (2, 2)")
    shop.follower.choose("latest")
    shop.run()
    shop.do("insert into a values (3, 3)")
    shop.run()
    shop.resume("a")
    plan = make_plan(shop.follower.ports())
    assert "another place" in plan.table_plans.tables_supplied(RowsFromServer)[shop.table("a")]
    shop.run()
    assert shop.caught_up() == []
    shop.require_whole("a", rereads=1)


def test_prepared_rows_whose_log_is_gone_are_read_from_the_source(shop: Shop) -> None:
    """The log from the table's place on is still there, but the transaction that was committed
    since was prepared before it."""
    prepare(shop, 2)
    shop.do("insert into a values (3, 3)", "flush binary logs")
    shop.run()
    shop.do("insert into a values (4, 4)")
    kept = shop.run().end.at.file
    shop.pause("a")
    shop.do("insert into a values (5, 5)")
    commit(shop, 2)
    shop.run()
    shop.stand.purge_to(str(kept))
    shop.resume("a")
    assert shop.table("a") in make_plan(shop.follower.ports()).table_plans.tables_supplied(
        RowsFromServer
    )
    shop.run()
    shop.require_whole("a", rereads=1)


def test_a_resume_foresees_that_a_batch_is_abandoned(shop: Shop) -> None:
    """Files of the newest batch are lost, and the log that it read is gone: no run starts, since
    it would have to read the batch again."""
    follower = shop.follower
    shop.run()
    shop.pause("a")
    shop.do("insert into b values (2, 2)", "flush binary logs")
    files = follower.lake.files.keys() - ()
    with follower.leased() as lease:
        captured = capture(follower.ports(), lease)
    for path in follower.lake.files.keys() - files:
        del follower.lake.files[path]
    shop.stand.purge_to(str(captured.end.at.file))
    sentence = shop.resume("a")
    with pytest.raises(PositionPurged) as refusal:
        shop.run()
    assert sentence.startswith(
        f"{shop.table('a')} waits until a run starts: {refusal.value.message}"
    )


def test_a_resume_foresees_that_prepared_rows_are_lost(shop: Shop) -> None:
    """Tables show changes of the batch that keeps them, so no run starts, and the order waits."""
    follower = shop.follower
    shop.run()
    shop.pause("a")
    prepare(shop, 2, "b")
    shop.do("insert into b values (3, 3)")
    with follower.leased() as lease:
        capture(follower.ports(), lease)
        publish(follower.ports(), lease)
    follower.spool.files.clear()
    sentence = shop.resume("a")
    with pytest.raises(SegmentsLost) as refusal:
        shop.run()
    assert sentence.startswith(
        f"{shop.table('a')} waits until a run starts: {refusal.value.message}"
    )
    assert [order.kind for order in shop.orders()] == [OrderKind.RESUME]
    commit(shop, 2)


def test_a_reading_that_was_ordered_waits_with_its_table(shop: Shop) -> None:
    """The table is quarantined before it is read: nothing is read until it is resumed."""
    order_reading(shop, "a")
    shop.unlogged("alter table a add column w int default 5")
    shop.do("insert into a values (2, 2, 2)")
    shop.follower.run(str(head(shop.stand)))
    shop.run()
    assert shop.state("a").has_stopped
    shop.resume("a", "create table a (id int primary key, v int, w int default 5)")
    assert shop.table("a") in make_plan(shop.follower.ports()).table_plans.tables_supplied(
        RowsFromServer
    )
    shop.run()
    shop.require_whole("a", rereads=1)
    assert shop.follower.ledger.open_loads(SOURCE) == []


def test_a_pause_does_not_hide_that_the_log_disagrees(shop: Shop) -> None:
    """Its rows are read at once; the log alone would stop it at the same place again."""
    shop.unlogged("alter table a add column w int default 5")
    shop.do("insert into a values (2, 2, 2)")
    shop.run()
    assert shop.state("a").need is Need.STRUCTURE
    shop.pause("a")
    shop.resume("a")
    shop.run()
    assert [batch for batch in shop.batches() if batch.catches_up] == []
    shop.require_same("a")


@pytest.mark.parametrize("until", [False, True])
def test_no_table_goes_on_after_a_log_that_was_lost(shop: Shop, until: bool) -> None:
    """With `on_position_lost = "resnapshot"` all tables are read: also those that come back in that
    run, and after a run whose end a person fixed."""
    shop.follower.policies = StartPolicies(on_position_lost=OnPositionLost.RESNAPSHOT)
    shop.make(("c",))
    shop.run()
    shop.pause("a")
    shop.resume("a")
    shop.follower.order(OrderKind.RELOAD, shop.table("b"))
    shop.do(*(f"insert into {table} values (2, 2)" for table in "abc"), "flush binary logs")
    [(newest, *_)] = shop.stand.rows("show binary logs")[-1:]
    shop.stand.purge_to(newest)
    shop.do(*(f"insert into {table} values (3, 3)" for table in "abc"))
    if until:
        shop.follower.run(str(head(shop.stand)))
        shop.do(*(f"insert into {table} values (4, 4)" for table in "abc"))
    shop.run()
    for table in "abc":
        shop.require_same(table)
    assert shop.orders() == []


def test_a_plan_tells_how_tables_come_back(shop: Shop) -> None:
    """Where they stopped, where the others are, and how much of the log is read again."""
    shop.pause("a", "b")
    shop.do("insert into a values (2, 2)")
    stopped = shop.state("a").stopped
    shop.run()
    shop.resume("a")
    plan = make_plan(shop.follower.ports())
    newest = shop.batches()[-1]
    assert (stopped is not None) and newest.end is not None
    assert plan.table_plans.spans[shop.table("a")].low == stopped.at
    [step] = plan.table_plans.plans[shop.table("a")].steps
    assert step.price.log_bytes == newest.end.at.offset - stopped.at.offset
    assert list(show.supply_lines(plan.table_plans)) == [
        f"  back    {shop.table('a')} catches up through the log, from {stopped.at} to "
        f"{newest.end.at}: {step.price.log_bytes:,} bytes",
    ]
    assert len(shop.follower.ledger.open_orders(SOURCE)) == 1


def test_rows_that_a_foreign_key_took_unseen(mariadb: MySqlStand) -> None:
    """The log of a pause has not a word of them: the table stops there, and is read from the
    source when it is resumed."""
    name = mariadb.fresh_name()
    mariadb.execute(f"create database {name}")
    shop = open_shop(mariadb, name, ["a"])
    shop.do(
        "create table child (id int primary key, parent int,"
        " foreign key (parent) references a (id) on delete cascade)",
        "insert into child values (1, 1), (2, null)",
    )
    shop.run()
    shop.pause("child")
    shop.do("insert into child values (3, null)", "delete from a where id = 1")
    shop.run()
    shop.resume("child")
    shop.run()
    assert shop.state("child").has_stopped
    assert ("insert", 3) in shop.kinds("child")
    shop.resume("child")
    shop.run()
    shop.require_whole("child", rereads=1)
