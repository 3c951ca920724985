"""New columns whose values only the source knows: they are read by key, and the rest of the
table goes on through the log. A real server, whose SELECT is what the mirror must show."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytest

from lockstep.pipeline.model.table_state import TableEventKind
from lockstep.pipeline.ports.ledger import batch_content
from lockstep.pipeline.source_plan import TableSettings
from lockstep.pipeline.values.policies import Deletes, LakePolicies, OnRewrite
from lockstep.pipeline.values.table import TablePatterns
from lockstep.resources.mysql.server import MySqlServer
from lockstep.resources.mysql.watermarks import low_mark
from tests.fix_mysql import MySqlStand
from tests.positions.follower import SOURCE
from tests.positions.paused import Shop
from tests.positions.stories import Story, stories_in, tell

ADDED = (
    "g bigint generated always as (v * 2) stored",
    "g varchar(20) generated always as (concat('v', v)) virtual",
    "g varchar(40) {concat(id, '-', w)}",
    "g double {v / 7} first",
    "g int {id * 3} not null",
)


def added(stand: MySqlStand, statement: str) -> str:
    """The statement, in which an expression in braces is a column's default. MySQL 5.7 has no such
    default, and 8.0.15 adds none while it has GTIDs: there the column is generated."""
    kind = "default" if adds_defaults(stand) else "generated always as"
    return statement.replace("{", f"{kind} (").replace("}", ")")


def adds_defaults(stand: MySqlStand) -> bool:
    return stand.version >= (9, 0)


def columns_read(shop: Shop) -> list[tuple[str, ...] | None]:
    ledger = shop.follower.ledger
    found = [
        part
        for batch in shop.batches()
        for part in batch_content(ledger, SOURCE, batch.id).snapshots
    ]
    return [part.columns for part in found if part.table.database == shop.name]


ROWS = ", ".join(f"({n}, {n})" for n in range(10, 30))
TABLE = (
    "create table t (id int primary key, v int, w varchar(10) default 'w')",
    f"insert into t (id, v) values (1, 1), {ROWS}",
)


def test_stories_of_columns_that_are_read(mysql: MySqlStand) -> None:
    """Of a table of four columns with rows in the mirror."""
    policies = LakePolicies(on_rewrite=OnRewrite.RESNAPSHOT)
    stories: list[Story] = [
        *stories_in(globals()),
        *(partial(_is_read_as_a_whole, *c) for c in AS_A_WHOLE.values()),
    ]
    tell(mysql, stories, (), TABLE, lake_policies=policies)


def test_a_run_that_ends_before_the_merge_loses_nothing(mysql: MySqlStand) -> None:
    """The reading waits in files; the next run merges it."""
    tell(mysql, [_a_run_ends_before_the_merge], (), TABLE)


def only_the_column_is_read(shop: Shop) -> Iterator[None]:
    """Rows of before, of the same run before and behind the statement: all have it; the
    changelog goes on without a gap."""
    tables = {f"t{number}": definition for number, definition in enumerate(ADDED)}
    for table in tables:
        shop.do(f"create table {table} like t", f"insert into {table} select * from t")
    yield
    for table, definition in tables.items():
        shop.do(
            f"update {table} set v = 100 where id = 10",
            f"insert into {table} (id, v) values (30, 30)",
            added(shop.stand, f"alter table {table} add column {definition}"),
            f"update {table} set v = 101 where id = 11",
            f"insert into {table} (id, v) values (31, 31)",
            f"update {table} set id = 32 where id = 12",
            f"delete from {table} where id = 13",
        )
    yield
    assert shop.quarantined() == {}
    assert columns_read(shop) == [("g",)] * len(tables)
    for table in tables:
        shop.require_whole(table)
    shop.require_history()


def nothing_else_happens_to_it(shop: Shop) -> Iterator[None]:
    """No row is written behind the statement: the column is there all the same."""
    shop.do(added(shop.stand, "alter table t add column g varchar(40) {concat(id, '-', w)}"))
    yield
    assert columns_read(shop) == [("g",)]
    shop.require_whole("t")


def several_statements_are_one_reading(shop: Shop) -> Iterator[None]:
    """Columns that one run finds added are read together, but those that are gone again."""
    shop.do(
        added(shop.stand, "alter table t add column g varchar(40) {concat(id, '-', w)}"),
        "insert into t (id, v) values (30, 30)",
        "alter table t add column (x int, y int, gone int generated always as (v + 7))",
        "insert into t (id, v) values (31, 31)",
        "alter table t drop column gone",
        "alter table t change v value int",
        "alter table t add column h int generated always as (value * 3) stored",
        "update t set x = 5 where id = 12",
    )
    yield
    assert columns_read(shop) == [("g", "h")]
    shop.require_whole("t")
    shop.do("update t set value = 7 where id = 14")
    yield
    shop.require_whole("t")


def the_source_goes_on_while_it_is_read(shop: Shop) -> Iterator[None]:
    """Between the low watermark and the snapshot, and behind it: what the log has wins."""
    writing = [
        "update t set v = 500 where id = 15",
        "insert into t (id, v) values (50, 50)",
        "delete from t where id = 16",
        "update t set id = 51 where id = 17",
        "update t set id = 118 where id = 18",
    ]
    later = [
        "update t set v = 501 where id in (15, 19)",
        "delete from t where id = 50",
        "insert into t (id, v) values (16, -1)",
        "update t set id = 18 where id = 20",
        *(["update t set g = 'mine' where id = 22"] if adds_defaults(shop.stand) else []),
        "update t set id = 23 + 100 where id = 23",
        "insert into t (id, v) values (23, -2)",
    ]
    shop.do(added(shop.stand, "alter table t add column g varchar(80) {concat(id, '-', v)}"))
    with pytest.MonkeyPatch.context() as patch:
        _around_snapshots(shop, patch, writing, later)
        yield
    assert columns_read(shop) == [("g",)]
    yield
    shop.require_whole("t")


def _around_snapshots(
    shop: Shop, patch: pytest.MonkeyPatch, before: list[str], behind: list[str]
) -> None:
    """Statements that run once the structure is known, and while the snapshot is open."""
    taken = MySqlServer.snapshot

    @contextmanager
    def snapshot(server: MySqlServer, table: Any, *args: Any, **options: Any) -> Iterator[Any]:
        if table.name.database != shop.name:
            with taken(server, table, *args, **options) as rows:
                yield rows
            return

        def marked(*given: Any, **more: Any) -> Any:
            found = low_mark(*given, **more)
            shop.do(*before)
            return found

        with pytest.MonkeyPatch.context() as patched:
            patched.setattr("lockstep.resources.mysql.reader.low_mark", marked)
            with taken(server, table, *args, **options) as rows:
                shop.do(*behind)
                yield rows

    patch.setattr(MySqlServer, "snapshot", snapshot)


GENERATED = "add column g int generated always as (v * 2)"
AS_A_WHOLE: dict[str, tuple[str, Sequence[str], Sequence[str]]] = {
    "nothing tells its rows apart": (
        "k",
        ("create table k (id int, v int, w int)", "insert into k values (1, 2, 3), (1, 2, 3)"),
        (f"alter table k {GENERATED}",),
    ),
    "three of five columns beside the key": (
        "t",
        (),
        ("alter table t add column (a int {id}, b int {id}, c int {id})",),
    ),
    "the lake does not have it yet": (
        "n",
        (),
        (
            "create table n (id int primary key, v int, w int)",
            "insert into n values (1, 2, 3)",
            f"alter table n {GENERATED}",
            "insert into n (id, v) values (2, 3)",
        ),
    ),
    "its key changes behind the column": (
        "k",
        (
            "create table k (id int primary key, n int not null, v int, w int)",
            "insert into k values (1, 1, 1, 1), (2, 2, 2, 2)",
        ),
        (
            "alter table k add column g varchar(40) {concat(id, '-', v)}",
            "alter table k drop primary key, add primary key (id, n)",
            "insert into k (id, n) values (1, 1000)",
        ),
    ),
    "no log tells of other rows either": (
        "p",
        (
            "create table p (id int primary key, v int, w int) partition by range (id)"
            " (partition low values less than (10), partition high values less than maxvalue)",
            "insert into p values (1, 1, 1), (11, 11, 11)",
        ),
        (f"alter table p {GENERATED}", "alter table p truncate partition low"),
    ),
}
"""A table that is read as a whole, the statements of a run before, and those that add columns."""


def _is_read_as_a_whole(
    table: str, before: Sequence[str], statements: Sequence[str], shop: Shop
) -> Iterator[None]:
    shop.do(*before)
    yield
    shop.do(*(added(shop.stand, statement) for statement in statements))
    yield
    assert columns_read(shop) == [None]
    shop.require_whole(table, rereads=1)


def partial_images_are_read_as_a_whole(shop: Shop) -> Iterator[None]:
    """What an image leaves out of a row is not known to be what was read."""
    shop.do(
        added(shop.stand, "alter table t add column g varchar(40) {concat(id, '-', w)}"),
        "set session binlog_row_image = 'MINIMAL'",
        "update t set v = 77 where id = 15",
    )
    yield
    yield
    shop.require_whole("t", rereads=1)


def a_table_that_was_emptied_is_read_as_a_whole(shop: Shop) -> Iterator[None]:
    """Before the column came; behind it, nothing of what was read is left."""
    shop.do("truncate table t", "insert into t (id, v) values (1, 1)")
    shop.do(added(shop.stand, "alter table t add column g varchar(40) {concat(id, '-', w)}"))
    yield
    assert columns_read(shop) == [None]
    shop.do(
        added(shop.stand, "alter table t add column h varchar(40) {concat(id, '+', w)}"),
        "truncate table t",
    )
    shop.do("insert into t (id, v) values (2, 1)")
    yield
    assert shop.follower.mirror(f"{shop.name}.t") == shop.rows("t")


def a_column_of_a_pause_is_read_with_all_of_it(shop: Shop) -> Iterator[None]:
    """The table stops there while it catches up: that is why it is read."""
    shop.pause("t")
    shop.do(
        added(shop.stand, "alter table t add column g varchar(40) {concat(id, '-', w)}"),
        "insert into t (id, v) values (30, 30)",
    )
    yield
    shop.resume("t")
    yield
    events = (
        event
        for batch in shop.batches()
        for event in batch_content(shop.follower.ledger, SOURCE, batch.id).events
        if event.table == shop.table("t")
    )
    [why] = [event.reason for event in events if event.kind is TableEventKind.REREAD]
    assert why is not None and "column g" in why
    shop.require_whole("t", rereads=1)


def soft_deletes_keep_their_rows(shop: Shop) -> Iterator[None]:
    """A row that is gone has no value for the column."""
    soft = TableSettings(TablePatterns((f"{shop.name}.*",)), {"deletes": Deletes.SOFT})
    shop.follower.settings = [*shop.follower.settings, soft]
    shop.do(
        "delete from t where id = 15",
        added(shop.stand, "alter table t add column g int {id * 2}"),
        "delete from t where id = 16",
    )
    yield
    found = {row["id"]: row for row in shop.follower.mirror(f"{shop.name}.t")}
    assert {key: row["g"] for key, row in found.items() if row["_deleted_at"] is None} == {
        row["id"]: row["g"] for row in shop.rows("t")
    }
    assert {key: row["g"] for key, row in found.items() if row["_deleted_at"]} == {15: None, 16: 32}


def _a_run_ends_before_the_merge(shop: Shop) -> Iterator[None]:
    shop.do(added(shop.stand, "alter table t add column g varchar(40) {concat(id, '-', w)}"))
    shop.do("update t set v = 9 where id = 10")
    shop.follower.capture()
    shop.do("update t set v = 10 where id = 10", "insert into t (id, v) values (60, 1)")
    yield
    assert columns_read(shop) == [("g",)]
    shop.require_whole("t")
