"""A structure that a person gives is never guessed over, and what comes of it is told before."""

from __future__ import annotations

import pytest

from pipeline.errors import ConfigurationError, LedgerRefused, Remedy
from pipeline.runs.inspecting.table_commands import Asked, foresee_release
from pipeline.schema.context import StatementContext
from pipeline.schema.statements.changes import NotUnderstood
from pipeline.schema.statements.read import read_change
from pipeline.table_state import TableCondition
from tests.fix_mysql import MySqlStand
from tests.positions.follower import SOURCE
from tests.positions.paused import Shop, open_shop

NEVER_FOLLOWED = "comment 'nobody follows this'"


@pytest.fixture
def shop(mysql: MySqlStand, database: str, monkeypatch: pytest.MonkeyPatch) -> Shop:
    """`a` has a text besides, and a statement with that comment is not understood."""
    opened = open_shop(
        mysql,
        database,
        ("a", "b"),
        "alter table a add s varchar(9)",
        "insert into a values (8, 80, 'eight')",
    )

    def fewer(text: str, context: StatementContext) -> object:
        if NEVER_FOLLOWED in text:
            return NotUnderstood("not this one", may_touch=(opened.table("a"),))
        return read_change(text, context)

    for module in ("pipeline.schema.tracker", "pipeline.runs.inspecting.table_commands"):
        monkeypatch.setattr(f"{module}.read_change", fewer)
    return opened


def stop(shop: Shop, clauses: str) -> None:
    """A statement that nobody follows, with a row behind it."""
    shop.do(f"alter table a {clauses}, {NEVER_FOLLOWED}", "insert into a (id) values (9)")
    shop.run()
    assert shop.state("a").condition is TableCondition.QUARANTINED


def created(shop: Shop) -> str:
    return str(shop.stand.rows(f"show create table {shop.name}.a")[0][1])


def test_a_person_says_which_column_became_which(shop: Shop) -> None:
    """Nothing is read: the rows of before have their values under the new names."""
    stop(shop, "change s s2 varchar(20), change v w bigint")
    told = shop.release("a", created(shop), s="s2", v="w")
    assert "the next run catches" in told
    assert "no row is read from the source, s becomes s2, v becomes w" in told
    shop.run()
    shop.do("insert into a values (10, 1, 'x')", "alter table a change s2 s3 varchar(20)")
    shop.run()
    shop.require_whole("a")
    assert len(shop.caught_up()) == 1
    shop.require_history()


def test_two_columns_may_have_swapped_their_names(shop: Shop) -> None:
    """By names alone each row would show the other's value."""
    shop.do("alter table a add u int default 5", "update a set u = id")
    shop.run()
    stop(shop, "change u v int, change v u int default 5")
    shop.release("a", created(shop), u="v", v="u")
    shop.run()
    shop.require_whole("a")


def test_where_not_all_is_said_the_table_is_read(shop: Shop) -> None:
    """One of two is named; the other may have become what is new."""
    stop(shop, "change s s2 varchar(20), change v w bigint")
    told = shop.release("a", created(shop), s="s2")
    assert "and reads it from the source: by the structure given v may have become w" in told
    shop.run()
    shop.require_whole("a", rereads=1)


def test_what_is_owed_is_not_forgotten_where_it_stops_again(shop: Shop) -> None:
    """Rows of before are to be read, and the table stops once more before that: whatever is
    given with the next release, they are."""
    stop(shop, "change s s2 varchar(20)")
    shop.do(
        "set sql_log_bin = 0",
        "alter table a add column w int",
        "set sql_log_bin = 1",
        "insert into a values (10, 1, 'x', 1)",
    )
    shop.run()
    given = "create table a (id int primary key, v int, s2 varchar(20)"
    shop.release("a", f"{given})")
    report = shop.run()
    (quarantined,) = report.quarantined
    assert quarantined.remedy is Remedy.RELEASED_RESNAPSHOT
    assert quarantined.hint.endswith("; a release reads it from the source")
    assert "reads a from the source" in shop.release("a", f"{given}, w int)").replace(
        f"{shop.name}.", ""
    )
    shop.run()
    shop.require_whole("a", rereads=1)


def test_a_statement_that_changes_rows_is_no_matter_of_structures(shop: Shop) -> None:
    """Given the structure that the table has, the rows that went with a partition stay gone."""
    shop.do(
        "create table p (id int primary key) partition by range (id) "
        "(partition low values less than (10), partition high values less than maxvalue)",
        "insert into p values (1), (11)",
    )
    shop.run()
    shop.do("alter table p truncate partition low", "insert into p values (12)")
    shop.run()
    told = shop.release("p", "create table p (id int primary key)")
    assert "and reads it from the source: " in told
    shop.run()
    shop.require_whole("p", rereads=1)


def test_what_is_said_of_columns_must_be_possible(shop: Shop) -> None:
    """In a sentence that names what is there; nothing is recorded."""
    stop(shop, "change s s2 varchar(20)")
    with pytest.raises(ConfigurationError, match="had no column x where it stopped, only id, v, s"):
        shop.release("a", created(shop), x="s2")
    with pytest.raises(
        ConfigurationError, match="there was already a column v, and nothing says what"
    ):
        shop.release("a", created(shop), s="v")
    assert shop.follower.ledger.open_orders(SOURCE) == []


def test_a_release_is_told_without_being_given(shop: Shop) -> None:
    """In the words of the order itself; nothing is recorded, and no lock is asked for."""
    stop(shop, "change s s2 varchar(20)")
    work = shop.follower.work()
    asked = Asked(shop.table("a"), "ann", "", created(shop))
    with shop.follower.ledger.lock(SOURCE, "somebody else", None):
        told = foresee_release(work, asked)
    assert "and reads it from the source: the statement that stopped it renames" in (told.next)
    assert shop.follower.ledger.open_orders(SOURCE) == []
    assert shop.release("a", created(shop)) == told.next
    bare = foresee_release(work, Asked(shop.table("a"), "ann", ""))
    assert "and reads it from the source: not this one" in bare.next
    with pytest.raises(LedgerRefused, match="only a table that is quarantined is released"):
        foresee_release(work, Asked(shop.table("b"), "ann", ""))


def test_what_was_altered_later_is_no_part_of_it(shop: Shop) -> None:
    """The structure given is compared with the one where the table stopped, not with what
    statements made of it since, as far as they were followed."""
    shop.do(
        "set sql_log_bin = 0",
        "alter table a add column w int default 5",
        "set sql_log_bin = 1",
        "insert into a values (2, 2, 'x', 2)",
    )
    shop.run()
    shop.do("alter table a add column x int default 6", "insert into a values (3, 3, 'y', 3, 3)")
    shop.run()
    told = shop.release("a", "create table a (id int primary key, v int, s varchar(9), w int)")
    assert "no row is read from the source" in told
    told = shop.release(
        "a", "create table a (id int primary key, v int, s varchar(9), w int default 5)"
    )
    shop.run()
    shop.require_whole("a")


def test_a_statement_behind_a_structure_given_stops_the_table_again(shop: Shop) -> None:
    """What a person said of the first is no word about the second, which swaps two columns."""
    shop.do("alter table a add u int default 5", "update a set u = id")
    shop.run()
    stop(shop, "change s s2 varchar(20)")
    between = created(shop)
    shop.do(f"alter table a change u v int, change v u int default 5, {NEVER_FOLLOWED}")
    shop.do("insert into a (id, u, v) values (10, 1, 2)")
    shop.run()
    shop.release("a", between, s="s2")
    shop.run()
    assert shop.state("a").condition is TableCondition.QUARANTINED
    shop.release("a")
    shop.run()
    shop.require_whole("a", rereads=1)
