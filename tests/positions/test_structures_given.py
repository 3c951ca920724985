"""A structure that a person gives is never guessed over, and what comes of it is told before."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from lockstep.pipeline.model.table_state import OrderKind, TableOrder
from lockstep.pipeline.run.orders import (
    HistoryAtStop,
    OrderRequest,
    _history_at_stop,
    plan_resume,
)
from lockstep.pipeline.schema.context import StatementContext
from lockstep.pipeline.schema.model import TableSchema
from lockstep.pipeline.schema.statements.changes import NotUnderstood
from lockstep.pipeline.schema.statements.read import read_change
from lockstep.pipeline.values.errors import ConfigurationError, LedgerRefused, Need
from lockstep.pipeline.values.table import TableName
from tests.fix_mysql import MySqlStand
from tests.positions.follower import SOURCE
from tests.positions.paused import Shop
from tests.positions.stories import stories_in, tell

NEVER_FOLLOWED = "comment 'nobody follows this'"


@pytest.fixture(autouse=True)
def followed_by_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """A statement with that comment is not understood."""

    def fewer(text: str, context: StatementContext) -> object:
        if NEVER_FOLLOWED in text:
            may_touch = (TableName(context.database or "", "a"),)
            return NotUnderstood("not this one", possible_tables=may_touch)
        return read_change(text, context)

    for module in (
        "lockstep.pipeline.schema.tracker",
        "lockstep.pipeline.run.orders",
    ):
        monkeypatch.setattr(f"{module}.read_change", fewer)


def test_stories_of_structures_given(mysql: MySqlStand) -> None:
    """`a` has a text besides."""
    text = ("alter table a add s varchar(9)", "insert into a values (8, 80, 'eight')")
    tell(mysql, stories_in(globals()), more=text)


def _stop(shop: Shop, clauses: str) -> Iterator[None]:
    """A statement that nobody follows, with a row behind it."""
    shop.do(f"alter table a {clauses}, {NEVER_FOLLOWED}", "insert into a (id) values (9)")
    yield
    assert shop.state("a").has_stopped


def created(shop: Shop) -> str:
    return str(shop.stand.rows(f"show create table {shop.name}.a")[0][1])


def a_person_says_which_column_became_which(shop: Shop) -> Iterator[None]:
    """Nothing is read: the rows of before have their values under the new names."""
    yield from _stop(shop, "change s s2 varchar(20), change v w bigint")
    told = shop.resume("a", created(shop), s="s2", v="w")
    assert "the next run catches" in told
    assert "no row is read from the source, s becomes s2, v becomes w" in told
    yield
    shop.do("insert into a values (10, 1, 'x')", "alter table a change s2 s3 varchar(20)")
    yield
    shop.require_whole("a")
    assert len(shop.caught_up()) == 1
    shop.require_history()


def two_columns_may_have_swapped_their_names(shop: Shop) -> Iterator[None]:
    """By names alone each row would show the other's value."""
    shop.do("alter table a add u int default 5", "update a set u = id")
    yield
    yield from _stop(shop, "change u v int, change v u int default 5")
    shop.resume("a", created(shop), u="v", v="u")
    yield
    shop.require_whole("a")


def where_not_all_is_said_the_table_is_read(shop: Shop) -> Iterator[None]:
    """One of two is named; the other may have become what is new."""
    yield from _stop(shop, "change s s2 varchar(20), change v w bigint")
    told = shop.resume("a", created(shop), s="s2")
    reason = "the given structure does not say whether v was renamed to w"
    assert f"and reads it from the source: {reason}" in told
    yield
    shop.require_whole("a", rereads=1)


def what_is_owed_is_not_forgotten_where_it_stops_again(shop: Shop) -> Iterator[None]:
    """Rows of before are to be read, and the table stops once more before that: whatever is
    given with the next resume, they are."""
    yield from _stop(shop, "change s s2 varchar(20)")
    shop.unlogged("alter table a add column w int")
    shop.do("insert into a values (10, 1, 'x', 1)")
    yield
    given = "create table a (id int primary key, v int, s2 varchar(20)"
    shop.resume("a", f"{given})")
    yield
    quarantined = shop.quarantined()["a"]
    assert quarantined.need is Need.ROWS
    assert quarantined.hint.endswith("; resumed, it is read from the source")
    assert "reads a from the source" in shop.resume("a", f"{given}, w int)").replace(
        f"{shop.name}.", ""
    )
    yield
    shop.require_whole("a", rereads=1)


def a_statement_that_changes_rows_is_no_matter_of_structures(shop: Shop) -> Iterator[None]:
    """Given the structure that the table has, the rows that went with a partition stay gone."""
    shop.do(
        "create table p (id int primary key) partition by range (id) "
        "(partition low values less than (10), partition high values less than maxvalue)",
        "insert into p values (1), (11)",
    )
    yield
    shop.do("insert into p values (2)", "alter table p truncate partition low")
    shop.do("insert into p values (12)")
    yield
    assert ("insert", 2) in shop.kinds("p"), "what comes before that place is captured"
    told = shop.resume("p", "create table p (id int primary key)")
    assert "and reads it from the source: " in told
    yield
    shop.require_whole("p", rereads=1)


def what_is_said_of_columns_must_be_possible(shop: Shop) -> Iterator[None]:
    """In a sentence that names what is there; nothing is recorded."""
    yield from _stop(shop, "change s s2 varchar(20)")
    with pytest.raises(ConfigurationError, match="had no column x where it stopped, only id, v, s"):
        shop.resume("a", created(shop), x="s2")
    with pytest.raises(
        ConfigurationError, match="there was already a column v, and nothing says what"
    ):
        shop.resume("a", created(shop), s="v")
    assert shop.orders() == []


def a_resume_is_told_without_being_given(shop: Shop) -> Iterator[None]:
    """In the words of the order itself; nothing is recorded, and no lock is asked for."""
    yield from _stop(shop, "change s s2 varchar(20)")
    ports = shop.follower.ports()
    asked = OrderRequest(shop.table("a"), "ann", "", created(shop))
    with shop.follower.ledger.lock(SOURCE, "somebody else", None):
        told = plan_resume(ports, asked)
    assert "and reads it from the source: the statement that stopped it renames" in (told.sentence)
    assert shop.orders() == []
    assert shop.resume("a", created(shop)) == told.sentence
    bare = plan_resume(ports, OrderRequest(shop.table("a"), "ann", ""))
    assert "and reads it from the source: not this one" in bare.sentence
    with pytest.raises(LedgerRefused, match="only a table that is stopped"):
        plan_resume(ports, OrderRequest(shop.table("b"), "ann", ""))


def the_history_where_a_table_stopped_is_its_own(shop: Shop) -> Iterator[None]:
    """Whatever tables have names before and after it; with the statement that begins there, if one
    does, and what that makes of the table, if it is followed."""
    parts = "partition by range (id) (partition low values less than (10))"
    shop.do(
        "create table a0 (id int primary key, first int)",
        f"create table p (id int primary key, part int) {parts}",
        "create table z (id int primary key, last int)",
    )
    yield
    shop.do("alter table p truncate partition low")
    yield from _stop(shop, "change s s2 varchar(20)")
    shop.pause("z")

    def history(table: str) -> HistoryAtStop:
        stopped = shop.state(table).stopped
        now = datetime.now(UTC)
        order = TableOrder(0, shop.table(table), OrderKind.RESUME, "ann", "", now, stopped)
        return _history_at_stop(shop.follower.ports(), order)

    def columns(schema: TableSchema | None) -> list[str] | None:
        return None if schema is None else [column.name for column in schema.columns]

    found = {table: history(table) for table in ("a", "p", "z")}
    assert {table: columns(at_stop.schema_before) for table, at_stop in found.items()} == {
        "a": ["id", "v", "s"],
        "p": ["id", "part"],
        "z": ["id", "last"],
    }
    statements = {table: at_stop.statement for table, at_stop in found.items()}
    assert statements["a"] is not None
    assert NEVER_FOLLOWED in statements["a"].text
    assert statements["p"] is not None
    assert "truncate partition" in statements["p"].text
    assert statements["z"] is None
    assert [at_stop.is_followed for at_stop in found.values()] == [False, True, False]
    assert columns(found["p"].schema_after) == ["id", "part"]


def what_was_altered_later_is_no_part_of_it(shop: Shop) -> Iterator[None]:
    """The structure given is compared with the one where the table stopped, not with what
    statements made of it since, as far as they were followed."""
    shop.unlogged("alter table a add column w int default 5")
    shop.do("insert into a values (2, 2, 'x', 2)")
    yield
    shop.do("alter table a add column x int default 6", "insert into a values (3, 3, 'y', 3, 3)")
    yield
    told = shop.resume("a", "create table a (id int primary key, v int, s varchar(9), w int)")
    assert "no row is read from the source" in told
    shop.resume("a", "create table a (id int primary key, v int, s varchar(9), w int default 5)")
    yield
    assert len(shop.caught_up()) == 1
    shop.require_whole("a")
    shop.do("insert into a (id) values (4)", "alter table a add column y int default 7")
    yield
    shop.require_whole("a")
    shop.require_history()


def a_statement_behind_a_structure_given_stops_the_table_again(shop: Shop) -> Iterator[None]:
    """What a person said of the first is no word about the second, which swaps two columns."""
    shop.do("alter table a add u int default 5", "update a set u = id")
    yield
    yield from _stop(shop, "change s s2 varchar(20)")
    between = created(shop)
    shop.do(f"alter table a change u v int, change v u int default 5, {NEVER_FOLLOWED}")
    shop.do("insert into a (id, u, v) values (10, 1, 2)")
    yield
    shop.resume("a", between, s="s2")
    yield
    assert shop.state("a").has_stopped
    shop.resume("a")
    yield
    shop.require_whole("a", rereads=1)
