"""What is altered with sql_log_bin=0 is noticed by the run that reads the first rows after it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, cast

import pytest

from lockstep.commands.status import status_lines, status_values
from lockstep.pipeline.model.table_state import TableCondition
from lockstep.pipeline.ports.ledger import unproven_structures
from lockstep.pipeline.ports.source import CurrentSchemas, SourceServer
from lockstep.pipeline.run.dump import structure_proof
from lockstep.pipeline.run.dump.logged_statements import statements_between
from lockstep.pipeline.schema.effects import LoggedStatement
from lockstep.pipeline.start.bounds import Budget
from lockstep.pipeline.status.verdict import verdict
from lockstep.pipeline.values.decisions import STRUCTURES_KIND
from lockstep.pipeline.values.errors import Need, SourceMoving, UnsupportedEvent
from lockstep.pipeline.values.table import TableName
from lockstep.resources.mysql.server import MySqlServer
from tests.fix_mysql import MySqlStand
from tests.mysql.reading import server, settings
from tests.positions.follower import SOURCE, Follower
from tests.positions.interrupted import Crash, Moments, at_moments, mortal, noted
from tests.positions.paused import Shop, open_shop
from tests.positions.servers import prepare_xa
from tests.positions.stories import stories_in, tell
from tests.schema.schemas_made import table as made


@dataclass(frozen=True, slots=True)
class Altered:
    """A table, an ALTER of it that no log has, a row behind that, and what a run says of it; None
    if the rows mean what they meant."""

    columns: str
    alter: str
    row: str
    said: str | None = None


_NUMBERS = "id int primary key, a int, b int"
_WORDS = "id int primary key, a enum('x', 'z'), b int"
_SETS = "id int primary key, a set('x', 'z'), b int"
_TEXT = "id int primary key, a varchar(9), b int"

MISREAD = {
    "moved": Altered(
        _NUMBERS, "modify a int after b", "(2, 3, 4)", "columns: (id, a, b), (id, b, a)"
    ),
    "renamed": Altered(_NUMBERS, "change a c int", "(2, 3, 4)", "columns: (id, a, b), (id, c, b)"),
    "swapped": Altered(
        _NUMBERS, "change a b int, change b a int", "(2, 3, 4)", "columns: (id, a, b), (id, b, a)"
    ),
    "replaced": Altered(
        _NUMBERS, "drop a, add c int", "(2, 3, 4)", "columns: (id, a, b), (id, b, c)"
    ),
    "members": Altered(
        _WORDS,
        "modify a enum('z', 'x')",
        "(2, 'x', 4)",
        "column a members: ('x', 'z'), ('z', 'x')",
    ),
    "chosen": Altered(
        _SETS, "modify a set('z', 'x')", "(2, 'x', 4)", "column a members: ('x', 'z'), ('z', 'x')"
    ),
    "keyed": Altered(
        "id int primary key, a int, b int not null",
        "drop primary key, add primary key (b)",
        "(2, 3, 4)",
        "key: (id), (b)",
    ),
    "unkeyed": Altered(_NUMBERS, "drop primary key", "(2, 3, 4)", "key: (id), none"),
    "computed": Altered(
        _NUMBERS,
        "drop a, add a int as (id + 1) stored after id",
        "(2, default, 4)",
        "column a generated: none, …",
    ),
}
"""Of each kind that a TABLE_MAP without names shows nothing of."""

HARMLESS = {
    "same": Altered(_NUMBERS, "comment = 'as before'", "(2, 3, 4)"),
    "commented": Altered(_NUMBERS, "modify a int comment 'another'", "(2, 3, 4)"),
    "indexed": Altered(_NUMBERS, "add key (a), add unique key (a, b)", "(2, 3, 4)"),
    "valued": Altered(_NUMBERS, "alter a set default 7", "(2, 3, 4)"),
    "collation": Altered(_TEXT, "default character set latin1 collate latin1_bin", "(2, 'a', 4)"),
    "ordered": Altered(_TEXT, "modify a varchar(9) collate utf8mb4_bin", "(2, 'a', 4)"),
    "counting": Altered(_NUMBERS, "auto_increment = 1000", "(2, 3, 4)"),
    "counted": Altered(_NUMBERS, "modify id int auto_increment", "(2, 3, 4)"),
    "built": Altered(_NUMBERS, "engine = InnoDB, row_format = compact", "(2, 3, 4)"),
    "parted": Altered(_NUMBERS, "partition by hash (id) partitions 2", "(2, 3, 4)"),
    "checked": Altered(_NUMBERS, "add constraint positive check (a > 0)", "(2, 3, 4)"),
}


def require_quarantined(shop: Shop, table: str, said: str) -> None:
    state = shop.state(table)
    assert state.has_stopped
    assert said in (state.reason or "")
    assert state.need is Need.ROWS
    assert f"`lockstep resume {shop.name}.{table} --reason …`" in (state.hint or "")


@pytest.mark.thin
@pytest.mark.parametrize(
    "nameless",
    [
        *("mysql", "mysql57", "mariadb"),
        *(pytest.param(name, marks=pytest.mark.soak) for name in ("mysql80", "mariadb11")),
    ],
    indirect=True,
)
def test_a_table_that_was_altered_without_the_log_is_set_aside(nameless: MySqlStand) -> None:
    """Nothing of the batch is recorded for it, and for every other table all of it is. A resume
    reads it from the source, and it goes on by the structure that it has."""
    with nameless.own_database() as name:
        altered = MISREAD | HARMLESS
        shop = open_shop(
            nameless,
            name,
            ("a",),
            *(f"create table {table} ({one.columns})" for table, one in altered.items()),
            *(f"insert into {table} (id, b) values (1, 1)" for table in altered),
        )
        shop.unlogged(*(f"alter table {table} {one.alter}" for table, one in altered.items()))
        shop.do(*(f"insert into {table} values {one.row}" for table, one in altered.items()))
        report = shop.run()
        for table, one in MISREAD.items():
            require_quarantined(shop, table, one.said or "")
            assert shop.kinds(table) == [("insert", 1)]
        assert {quarantine.table.name for quarantine in report.quarantined} == {*MISREAD}
        for table in HARMLESS:
            shop.require_whole(table)
        for table in MISREAD:
            shop.resume(table)
        shop.run()
        shop.do(*(f"update {table} set b = b + 5" for table in altered))
        shop.run()
        for table in MISREAD:
            shop.require_whole(table, rereads=1)


# -- when the server is asked ------------------------------------------------------------------


@dataclass
class Asked:
    """A server that is watched while it is asked for structures: `before` and `after` happen once,
    around the question about all tables; `locked` with each table that is asked about again."""

    real: SourceServer
    before: Callable[[], object] = lambda: None
    after: Callable[[CurrentSchemas], CurrentSchemas] = lambda current: current
    locked: Callable[[], object] = lambda: None
    names: list[set[str]] = field(default_factory=list)
    again: list[str] = field(default_factory=list)

    def current_schemas(self, tables: Collection[TableName]) -> CurrentSchemas:
        self.names.append({table.name for table in tables})
        if len(self.names) > 1:
            return self.real.current_schemas(tables)
        self.before()
        return self.after(self.real.current_schemas(tables))

    def locked_schema(self, table: TableName) -> CurrentSchemas:
        self.again.append(table.name)
        self.locked()
        return self.real.locked_schema(table)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)


@pytest.fixture
def shop(mysql: MySqlStand, database: str) -> Shop:
    """Two tables of two columns of one type, on a server whose log has no names of columns."""
    shop = open_shop(mysql, database, ("x",), *map(_created, "ab"), *map(_filled, "ab"))
    shop.run()
    return shop


def _created(table: str) -> str:
    return f"create table {table} (id int primary key, u int, v int)"


def _filled(table: str) -> str:
    return f"insert into {table} values (1, 10, 100)"


SWAPPED = "alter table a change u v int, change v u int"
ROW = "insert into a values (2, 20, 200)"


def watched(shop: Shop, **happens: Any) -> Asked:
    asked = Asked(shop.follower.server, **happens)
    shop.follower.server = cast("SourceServer", asked)
    return asked


def require_swap_noticed(shop: Shop) -> None:
    """Nothing of the table's rows is in its changelog but the first."""
    require_quarantined(shop, "a", "columns: (id, u, v), (id, v, u)")
    assert shop.kinds("a") == [("insert", 1)]


def require_back(shop: Shop, table: str = "a") -> None:
    """Once it is resumed, it goes on."""
    for _ in comes_back(shop, table):
        shop.run()


def comes_back(shop: Shop, table: str) -> Iterator[None]:
    shop.resume(table)
    yield
    shop.do(f"update {table} set v = v + 1")
    yield
    shop.require_whole(table, rereads=1)


def test_runs_without_rows_ask_nothing(shop: Shop) -> None:
    """Neither an idle one, nor one that reads statements, or rows of tables that are not captured;
    any other asks about the tables that it read rows of."""
    asked = watched(shop)
    shop.run()
    shop.do("create table c (id int)", "alter table b comment = 'nothing'")
    with shop.stand.own_database() as other:
        shop.stand.execute("create table t (id int)", "insert into t values (1)", database=other)
        shop.run()
    assert asked.names == []
    shop.do(ROW)
    shop.run()
    assert asked.names == [{"a"}]
    assert asked.again == []


BETWEEN = {
    "altered": "alter table altered add w int",
    "swapped": "alter table swapped change u v int, change v u int",
    "dropped": "drop table dropped",
    "renamed": "rename table renamed to elsewhere",
    "replaced": "rename table replaced to c, b to replaced",
}


def test_statements_between_the_end_and_the_question_are_no_difference(shop: Shop) -> None:
    """The log that the run did not read is followed up to the answer; the next run reads it."""
    shop.do(*(f"create table {table} like a" for table in BETWEEN))
    asked = watched(shop, before=lambda: shop.do(*BETWEEN.values()))
    shop.do(*(f"insert into {table} values (2, 20, 200)" for table in BETWEEN))
    assert shop.run().quarantined == ()
    for table in BETWEEN:
        assert ("insert", 2) in shop.kinds(table)
    assert asked.again == []


def test_a_statement_that_hides_what_was_altered_before_does_not_help(shop: Shop) -> None:
    """Altered back with the log: the server has what the history had at the batch's end, and the
    rows before were read by another structure."""
    watched(shop, before=lambda: shop.do(SWAPPED))
    shop.unlogged(SWAPPED)
    shop.do(ROW)
    shop.run()
    require_quarantined(shop, "a", "columns: (id, v, u), (id, u, v)")
    assert shop.kinds("a") == [("insert", 1)]
    require_back(shop)


def test_an_answer_that_is_ahead_of_the_log_accuses_nobody(shop: Shop) -> None:
    """What is altered at this moment may show before it is logged, or not yet though it is. The
    table is asked about again while nobody alters it, and only that answer counts."""

    def altered_already(current: CurrentSchemas) -> CurrentSchemas:
        columns = "(id int primary key, v int, u int)"
        name = shop.table("a")
        return replace(
            current, tables={name: replace(made(f"create table a {columns}"), name=name)}
        )

    asked = watched(shop, after=altered_already)
    shop.do(ROW)
    assert shop.run().quarantined == ()
    assert asked.again == ["a"]
    shop.require_whole("a")


def test_what_is_altered_before_it_is_asked_about_again_is_followed(shop: Shop) -> None:
    """The log is read up to the second answer."""

    def nothing_seen(current: CurrentSchemas) -> CurrentSchemas:
        return replace(current, tables={})

    watched(shop, after=nothing_seen, locked=lambda: shop.do(SWAPPED))
    shop.do(ROW)
    assert shop.run().quarantined == ()
    shop.run()
    shop.require_whole("a")


def test_a_table_that_nobody_can_lock_is_neither_accused_nor_recorded(shop: Shop) -> None:
    """Somebody has it locked for writing: nothing is recorded until it can be told."""
    with shop.stand.connect(shop.name) as session, session.cursor() as cursor:
        cursor.execute("set sql_log_bin = 0")
        cursor.execute("lock tables a write")
        cursor.execute(SWAPPED)
        cursor.execute("set sql_log_bin = 1")
        cursor.execute(ROW)
        with pytest.raises(SourceMoving, match=r"a is not the history's, and it is not known yet"):
            shop.run()
        assert shop.state("a").is_complete
        assert shop.kinds("a") == [("insert", 1)]
    shop.run()
    require_swap_noticed(shop)
    require_back(shop)


def test_stories_of_what_is_altered_without_the_log(mysql: MySqlStand) -> None:
    """Of two tables of two columns of one type."""
    tell(mysql, stories_in(globals()), (), [*map(_created, "ab"), *map(_filled, "ab")])


def a_table_that_is_gone_without_a_statement(shop: Shop) -> Iterator[None]:
    """Nothing more comes of it, and its last rows cannot be proven."""
    shop.do(ROW)
    shop.unlogged("drop table a")
    yield
    require_quarantined(shop, "a", "the source does not have it any more, and no statement")
    assert (shop.state("a").hint or "").endswith("goes on as after a DROP in the log")
    shop.resume("a")
    yield
    assert shop.state("a").condition is TableCondition.DROPPED


def rows_that_wait_in_a_prepared_transaction(shop: Shop) -> Iterator[None]:
    """They would come out by the history's structure: the table is set aside when they are read,
    and has them once when it is back."""
    shop.unlogged(SWAPPED)
    prepare_xa(shop.stand, shop.name, f"insert into {shop.name}.a values (2, 20, 200)")
    yield
    require_swap_noticed(shop)
    shop.do(f"xa commit '{shop.name}'")
    yield
    require_swap_noticed(shop)
    yield from comes_back(shop, "a")


def test_rows_that_a_select_read(mysql: MySqlStand, database: str) -> None:
    """Altered once its rows were read: they are not joined with the log, but read again by the
    structure that the table has."""
    mysql.execute(*map(_created, "ab"), *map(_filled, "ab"), "flush binary logs", database=database)
    shop = Shop(mysql, database, Follower(server(mysql), [f"{database}.*"], start="snapshot"))
    asked = watched(shop, before=lambda: shop.unlogged(SWAPPED))
    assert shop.run().quarantined == ()
    assert asked.again == ["a"]
    shop.do("update a set v = v + 1")
    shop.run()
    shop.require_whole("a", rereads=1)
    shop.require_whole("b", rereads=1)


def a_name_that_was_given_away_in_the_batch(shop: Shop) -> Iterator[None]:
    """The rows before the rename were read by the structure that the table has under its new name,
    which no row in the log is of."""
    shop.unlogged(SWAPPED)
    shop.do(ROW, "rename table a to c")
    yield
    require_quarantined(shop, "a", "c, as it is called now, is not the history's")
    assert shop.kinds("a") == [("insert", 1)]
    yield
    shop.require_whole("c", rereads=1)


def a_name_that_was_swapped_in_the_batch(shop: Shop) -> Iterator[None]:
    """Two tables changed places by a third name, which neither of them has afterwards."""
    shop.unlogged(SWAPPED)
    shop.do(ROW, "rename table a to x, b to a, x to b")
    yield
    require_quarantined(shop, "a", "b, as it is called now, is not the history's")
    require_quarantined(shop, "b", "its structure is not the history's")
    assert shop.kinds("a") == [("insert", 1)]
    shop.resume("a")
    shop.resume("b")
    yield
    shop.do("update a set v = v + 1", "update b set v = v + 1")
    yield
    shop.require_same("a")
    shop.require_same("b")


def rows_before_a_statement_that_has_the_table_read_again(shop: Shop) -> Iterator[None]:
    """The statement leaves the table to the next run; its rows before are not recorded either."""
    shop.unlogged(SWAPPED)
    shop.do(ROW, "alter table a drop primary key, add primary key (id, u)")
    yield
    assert shop.kinds("a") == [("insert", 1)]
    assert shop.state("a").has_stopped


def defaults_that_row_images_leave_out(shop: Shop) -> Iterator[None]:
    """A default counts where the log does not have the value, and only there."""
    shop.unlogged("alter table a alter v set default 7", "alter table b alter v set default 7")
    shop.do(
        "insert into b values (2, 20, 200)",
        "set binlog_row_image = 'MINIMAL'",
        "insert into a (id, u) values (2, 20)",
        "insert into b (id, u, v) values (3, 30, 300)",
    )
    yield
    require_quarantined(shop, "a", "column v default: none, '7'")
    shop.require_whole("b")
    yield from comes_back(shop, "a")


def test_columns_that_the_account_may_not_read_are_no_difference(shop: Shop) -> None:
    """information_schema shows the others alone. The table is compared once it can be read."""
    name = shop.stand.fresh_name()
    table = f"{shop.name}.a"
    shop.stand.execute(
        f"create user {name} identified by 'x'",
        f"grant replication slave, replication client on *.* to {name}",
        f"grant select on {table} to {name}",
    )
    shop.follower.server = MySqlServer(settings(shop.stand, user=name, password="x"))
    shop.stand.execute(
        f"revoke select on {table} from {name}", f"grant select (id) on {table} to {name}"
    )
    shop.do(ROW)
    assert shop.run().quarantined == ()
    require_open(shop, "a", "could not be compared with the server's: ")
    shop.stand.execute(f"grant select on {table} to {name}")
    shop.do("create table nothing (id int)")
    assert shop.run().quarantined == ()
    assert unproven_structures(shop.follower.ledger, SOURCE) is None
    shop.stand.execute(f"drop user {name}")


def require_open(shop: Shop, tables: str, why: str) -> None:
    """The run says which structures it could not compare, and so does `lockstep status`."""
    (decision,) = [
        one.decision
        for one in shop.follower.ledger.decisions(SOURCE, limit=1)
        if one.decision.kind == STRUCTURES_KIND
    ]
    assert why in decision.reason
    assert decision.reason in shop.follower.notes
    now = datetime.now(UTC)
    found = shop.follower.standing(now=now)
    assert found.unproven is not None
    assert {table.name for table in found.unproven.tables} == {*tables}
    judged = verdict(found, now, None)
    told = "\n".join(status_lines(found, judged, now))
    assert f"not compared with the server: the structures of {shop.name}.{tables[0]}" in told
    assert status_values(found, judged, now, ())["unproven"].reason == decision.reason


def test_an_answer_of_another_server_counts_for_nothing(shop: Shop) -> None:
    """Whoever answers behind the address now, its structures are not those of this log. The next
    run compares the table, whether it reads rows of it or not."""
    shop.unlogged(SWAPPED)
    shop.do(ROW, "insert into b values (2, 20, 200)")
    asked = watched(shop, after=lambda current: replace(current, server_uuid="another"))
    assert shop.run().quarantined == ()
    assert asked.again == []
    require_open(shop, "ab", "another server (another) answered than the one whose log was read")
    shop.do("insert into b values (3, 30, 300)")
    shop.run()
    require_quarantined(shop, "a", "columns: (id, u, v), (id, v, u)")
    assert unproven_structures(shop.follower.ledger, SOURCE) is None
    require_back(shop)
    shop.require_whole("b")


def test_what_could_not_be_compared_is_right_after_all(shop: Shop) -> None:
    """The note is gone, and nothing is asked of the table that has no new rows."""
    shop.do(ROW)
    asked = watched(shop, after=lambda current: replace(current, head=shop.reports[0].start.at))
    shop.run()
    require_open(shop, "a", "the server's log ends at ")
    shop.do("insert into b values (3, 30, 300)")
    assert shop.run().quarantined == ()
    assert asked.names[-1] == {"a", "b"}
    (decision,) = shop.follower.ledger.decisions(SOURCE, limit=1)
    assert decision.decision.rule == "structures-compared"
    shop.do("insert into b values (4, 30, 300)")
    shop.run()
    assert asked.names[-1] == {"b"}


def test_what_was_dropped_before_it_could_be_compared_is_not_called_right(shop: Shop) -> None:
    """Nobody compares it any more, and the decision does not say that somebody did."""
    shop.do(ROW)
    watched(shop, after=lambda current: replace(current, server_uuid="another"))
    shop.run()
    require_open(shop, "a", "another server (another) answered")
    shop.do("drop table a", "insert into b values (3, 30, 300)")
    shop.run()
    (decision,) = shop.follower.ledger.decisions(SOURCE, limit=1)
    assert decision.decision.reason == (
        f"the structures of {shop.name}.a need no comparison any more: they are the server's, or "
        "the table was dropped or is read again"
    )
    assert unproven_structures(shop.follower.ledger, SOURCE) is None


def test_a_paused_table_is_compared_when_it_is_back(shop: Shop) -> None:
    """What could not be compared before its pause is not forgotten in it. The log is not enough to
    bring it back, so it is read from the source."""
    shop.unlogged(SWAPPED)
    shop.do(ROW)
    watched(shop, after=lambda current: replace(current, server_uuid="another"))
    shop.run()
    shop.pause("a")
    shop.do("insert into b values (3, 30, 300)")
    shop.run()
    left = unproven_structures(shop.follower.ledger, SOURCE)
    assert left is not None
    assert left.tables == {shop.table("a")}
    shop.resume("a")
    shop.do("insert into b values (4, 30, 300)")
    shop.run()
    shop.require_whole("a", rereads=1)
    assert unproven_structures(shop.follower.ledger, SOURCE) is None


def test_a_table_that_catches_up_proves_no_other(shop: Shop) -> None:
    """What an earlier run could not compare is still compared after another table caught up."""
    shop.pause("b")
    shop.unlogged(SWAPPED)
    shop.do(ROW, "insert into b values (2, 20, 200)")
    watched(shop, after=lambda current: replace(current, server_uuid="another"))
    shop.run()
    shop.resume("b")
    shop.do("create table nothing (id int)")
    shop.run()
    require_quarantined(shop, "a", "columns: (id, u, v), (id, v, u)")
    shop.require_whole("b")


# -- where a run ends --------------------------------------------------------------------------


@pytest.mark.parametrize(("few", "noticed"), [(1 << 20, True), (0, False)])
def test_a_run_that_ends_before_the_log_does(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, few: int, noticed: bool
) -> None:
    """It is compared if little of the log comes after its end; what was altered there is followed.
    Where much does, the first run that comes near the log's end compares its tables, too."""
    monkeypatch.setattr(structure_proof, "LATER_LOG_BYTES", few)
    shop.follower.budget = Budget(max_transactions=1)
    shop.do("insert into b values (2, 20, 200)", "alter table b add w int")
    shop.unlogged(SWAPPED)
    shop.do(ROW, *(f"insert into b values ({number}, 30, 300, 3)" for number in range(3, 20)))
    shop.run()
    assert shop.run().quarantined == ()
    shop.run()
    assert (shop.state("a").has_stopped) == noticed
    assert len(shop.kinds("a")) == 1 + (not noticed)
    shop.follower.budget = Budget()
    shop.run()
    require_quarantined(shop, "a", "columns: (id, u, v), (id, v, u)")
    assert unproven_structures(shop.follower.ledger, SOURCE) is None
    shop.require_whole("b")


def test_a_log_that_cannot_be_followed_to_the_answer_accuses_nobody(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What stands in the log after the batch stops the next run, not this one."""

    def stops(*_: object) -> Iterator[LoggedStatement]:
        raise UnsupportedEvent("an event of type 200 stands in the log", hint="look at it")

    monkeypatch.setattr(structure_proof, "statements_between", stops)
    shop.unlogged(SWAPPED)
    shop.do(ROW)
    watched(shop, before=lambda: shop.do("update b set v = 8"))
    assert shop.run().quarantined == ()
    require_open(shop, "a", "the log cannot be followed from ")


def test_once_the_log_could_not_be_followed_no_table_is_accused(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two tables are asked about again. The log up to the first answer cannot be followed, and has
    an ALTER of the second one."""
    real, asked = statements_between, list[str]()

    def stops_once(*arguments: Any) -> Iterator[LoggedStatement]:
        asked.append("")
        if len(asked) == 2:
            raise UnsupportedEvent("an event of type 200 stands in the log", hint="look at it")
        yield from real(*arguments)

    def altered() -> None:
        if not asked[1:]:
            shop.do("alter table b change u v int, change v u int")

    monkeypatch.setattr(structure_proof, "statements_between", stops_once)
    watched(shop, after=lambda current: replace(current, tables={}), locked=altered)
    shop.do(ROW, "insert into b values (2, 20, 200)")
    assert shop.run().quarantined == ()
    require_open(shop, "ab", "the log cannot be followed from ")
    assert shop.run().quarantined == ()
    assert unproven_structures(shop.follower.ledger, SOURCE) is None


def a_table_that_comes_back_through_the_log(shop: Shop) -> Iterator[None]:
    """Altered in its pause: the log is not enough, and it is read from the source."""
    shop.pause("a", "b")
    shop.do("insert into b values (2, 20, 200)")
    shop.unlogged(SWAPPED)
    shop.do(ROW)
    yield
    shop.resume("a")
    shop.resume("b")
    yield
    assert shop.kinds("a")[1:2] == [("resnapshot", None)]
    shop.require_whole("a", rereads=1)


STEPS = ("abandon", "begin_batch", "record_capture")


@at_moments
def test_killed_between_question_and_record(shop: Shop, moments: Moments) -> None:
    """The next run asks again; nothing of the table was recorded."""
    for number, (step, after) in enumerate(moments(STEPS), start=2):
        table = f"a{number}"
        with noted(f"killed at {step}, after it: {after}"):
            shop.do(f"create table {table} like a", f"insert into {table} values (1, 10, 100)")
            shop.run()
            shop.unlogged(f"alter table {table} change u v int, change v u int")
            shop.do(
                f"insert into {table} values (2, 20, 200)",
                f"insert into b values ({number}, 20, 200)",
            )
            with mortal(shop.follower, step, after=after), pytest.raises(Crash):
                shop.run()
            shop.run()
            require_quarantined(shop, table, "columns: (id, u, v), (id, v, u)")
            assert shop.kinds(table) == [("insert", 1)]
            shop.require_whole("b")
            require_back(shop, table)
