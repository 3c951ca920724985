"""Mirrors that a person has written again: from where it is said, or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from random import Random

import pytest

from lockstep.pipeline.model.table_state import Supplier, TableEventKind
from lockstep.pipeline.run.orders import Reload
from lockstep.pipeline.snapshot.pace import Pace
from lockstep.pipeline.source_plan import SnapshotPlan, TableSettings
from lockstep.pipeline.values.errors import Need, PastRefused, StoppedBy
from lockstep.pipeline.values.policies import Deletes, LakePolicies
from lockstep.pipeline.values.table import TablePatterns
from tests.fix_mysql import MySqlStand
from tests.mysql.reading import server
from tests.positions.follower import SOURCE, Follower
from tests.positions.interrupted import Crash, drawn, interrupted, mortal, noted
from tests.positions.paused import Shop
from tests.positions.stories import stories_in, tell
from tests.proof.writing import spoil
from tests.twins.lake import MemoryCommit


def test_stories_of_reloads(mysql: MySqlStand) -> None:
    tell(mysql, stories_in(globals()))


def test_stories_of_reloads_of_tables_that_are_read(mysql: MySqlStand) -> None:
    """Chunk by chunk, one in a run."""
    slow = SnapshotPlan(max_seconds=0.0, pace=Pace(first_rows=1, least_rows=1, most_rows=1))
    rows = ("insert into a values (2, 2), (3, 3), (4, 4)",)
    tell(mysql, [_a_reload_of_a_table_that_is_read], more=rows, start="snapshot", snapshot=slow)


def test_stories_of_reloads_from_an_earlier_version(mysql: MySqlStand) -> None:
    """Of tables whose rows were read from MySQL before the log that is read."""
    tell(mysql, [_a_version_and_what_came_since, _no_version_that_helps], start="snapshot")


STEPS = ("begin_batch", "record_capture", "intend", "settle", "mark_merged", "acknowledge")


def test_a_reload_from_an_earlier_version_that_is_killed(mysql: MySqlStand, database: str) -> None:
    """A second try writes the version, and the batches, that were recorded with the first."""
    shop = Shop(mysql, database, Follower(server(mysql), [f"{database}.*"], "snapshot"))
    shop.make(("a",), ("create table k (v int)", "insert into k values (1), (1)"))
    shop.run()
    for number, (step, after) in enumerate(drawn(STEPS), start=2):
        with noted(f"{step}, after: {after}"):
            for _ in range(2):
                shop.do(
                    f"insert into a values ({number}, 1) on duplicate key update v = v + 1",
                    f"insert into k values ({number}), (1)",
                    f"delete from k where v = {number - 1}",
                )
                shop.run()
            for table in "ak":
                wrong(shop, table)
                assert reload(shop, table, Supplier.CHANGELOG).supplier is Supplier.CHANGELOG
            shop.do("update a set v = v + 10", "insert into k values (5)")
            with mortal(shop.follower, step, after=after), suppress(Crash):
                shop.run()
            shop.run()
            for table in "ak":
                assert shop.events(table).count(TableEventKind.REBUILT) == number - 1
                assert shop.events(table).count(TableEventKind.REREAD) == 1
                shop.require_same(table)


def test_a_mirror_that_is_right_stays_as_it_is(mysql: MySqlStand, database: str) -> None:
    """Rows that were marked or kept, before the version and after it, and stamps."""
    tables = {f"t_{deletes.value}": deletes for deletes in Deletes}
    follower = Follower(server(mysql), [f"{database}.*"], "snapshot")
    follower.lake_policies = LakePolicies(stamps=("_committed_at", "_sequence"))
    follower.settings = [
        TableSettings(TablePatterns((f"{database}.{table}",)), {"deletes": deletes})
        for table, deletes in tables.items()
    ]
    shop, random = Shop(mysql, database, follower), Random(9)
    rows = ", ".join(f"({n}, {n})" for n in range(2, 20))
    shop.make([*tables], [f"insert into {table} values {rows}" for table in tables])
    shop.run()
    for number in range(3):
        for _ in range(6):
            key, other = random.randrange(20), random.randrange(20)
            for table in tables:
                shop.do(
                    f"delete from {table} where id = {key}",
                    f"update {table} set v = v + 1 where id = {other}",
                    f"insert into {table} (id, v) values ({20 + key}, 7)"
                    " on duplicate key update v = v + 2",
                )
        shop.run()
        if number == 1:
            for table in tables:
                shop.do(f"alter table {table} add column w int default 3, rename column v to x")
                shop.do(f"alter table {table} rename column x to v")
    before = {table: follower.mirror(f"{database}.{table}") for table in tables}
    mirrors = {table: follower.lake.tables[shop.state(table).mirror] for table in tables}
    commits = {table: len(mirror) for table, mirror in mirrors.items()}
    for table in tables:
        assert "from version 0 of" in reload(shop, table, Supplier.CHANGELOG).sentence
    shop.run()
    for table in tables:
        assert len(mirrors[table]) > commits[table]
        now = follower.mirror(f"{database}.{table}")
        assert sorted(map(str, now)) == sorted(map(str, before[table])), table


def test_a_version_with_rows_of_somebody_else_is_no_base(mysql: MySqlStand, database: str) -> None:
    """Somebody deletes rows before a run looks at the mirror, or between its look and its commit:
    the version below that is the base, and where it is gone there is none."""
    shop = Shop(mysql, database, Follower(server(mysql), [f"{database}.*"], "snapshot"))
    shop.make(("a",), ("insert into a values (2, 2)",))
    shop.run()
    lake, mirror = shop.follower.lake, shop.state("a").mirror
    commits = lake.tables[mirror]

    def delete() -> None:
        if not any(commit.operation == "DELETE" for commit in commits):
            left = commits[-1].rows.slice(0, 1)
            commits.append(MemoryCommit("", 0, "", left, operation="DELETE"))

    delete()
    shop.run()
    assert shop.state("a").stopped_by is StoppedBy.SYSTEM
    assert "from version 0 of" in reload(shop, "a", Supplier.CHANGELOG).sentence
    shop.run()
    shop.require_same("a")
    commits[:] = [replace(commit, operation="WRITE") for commit in commits]
    shop.do("insert into a values (3, 3)")
    with interrupted(shop.follower, "require_held", delete):
        shop.run()
    assert shop.state("a").stopped_by is StoppedBy.SYSTEM
    for vacuumed in (0, len(commits) - 1):
        lake.vacuumed[mirror] = vacuumed
        if vacuumed:
            with pytest.raises(PastRefused, match="no version of its mirror can be read"):
                reload(shop, "a", Supplier.CHANGELOG)
        else:
            assert "from version 2 of" in reload(shop, "a", Supplier.CHANGELOG).sentence
    lake.vacuumed.clear()
    shop.run()
    shop.require_same("a")


def test_the_version_is_gone_that_a_write_was_begun_with(mysql: MySqlStand, database: str) -> None:
    """MySQL is not read before a person says so: it was the changelog that a person asked for."""
    shop = Shop(mysql, database, Follower(server(mysql), [f"{database}.*"], "snapshot"))
    shop.make(("a",), ("insert into a values (2, 2)",))
    shop.run()
    shop.do("insert into a values (3, 3)")
    shop.run()
    reload(shop, "a", Supplier.CHANGELOG)
    with mortal(shop.follower, "intend", after=True), suppress(Crash):
        shop.run()
    shop.follower.lake.vacuumed[shop.state("a").mirror] = 1
    for _ in range(3):
        shop.run()
        assert shop.state("a").stopped_by is StoppedBy.SYSTEM
        assert shop.state("a").need is Need.ROWS
    assert shop.events("a").count(TableEventKind.REREAD) == 1
    shop.resume("a")
    shop.run()
    shop.require_same("a")


def reload(shop: Shop, table: str, supplier: Supplier | None = None) -> Reload:
    return shop.follower.reload(shop.table(table), supplier)


def damage(shop: Shop, table: str) -> None:
    """One of its changelog's files is lost."""
    files = shop.follower.lake.files
    del files[next(path for path in files if f"/_changes/{shop.name}/{table}/" in path)]


def wrong(shop: Shop, table: str) -> None:
    """The newest version of its mirror shows another value in each row."""
    spoil(shop.follower, shop.table(table), lambda rows: [row.update(v=-1) for row in rows])


def notes(shop: Shop, table: str) -> list[str]:
    return [note for note in shop.follower.notes if note.startswith(f"{shop.table(table)} ")]


def the_changelog_or_nothing(shop: Shop) -> Iterator[None]:
    """It is damaged between the order and the run: the table waits until MySQL is asked for."""
    assert "; until then the table stops" in reload(shop, "a", Supplier.CHANGELOG).sentence
    damage(shop, "a")
    yield
    (note,) = [note for note in notes(shop, "a") if " waits: " in note]
    assert "its changelog is damaged: " in note
    assert "--from source" in note
    assert shop.state("a").stopped_by is StoppedBy.RUN
    with pytest.raises(PastRefused, match="its changelog is damaged: "):
        reload(shop, "a", Supplier.CHANGELOG)
    found = reload(shop, "a", Supplier.SOURCE)
    assert found.sentence.endswith(", from the source; this also resumes the table")
    yield
    assert TableEventKind.REREAD in shop.events("a")
    shop.require_same("a")


def where_nobody_says_from_where_the_run_decides(shop: Shop) -> Iterator[None]:
    """It is whole when it is ordered, and damaged when the run looks."""
    assert reload(shop, "a").supplier is Supplier.CHANGELOG
    damage(shop, "a")
    yield
    yield
    assert TableEventKind.REREAD in shop.events("a")
    assert TableEventKind.REBUILT not in shop.events("a")
    # A table that is followed is read for the reason that its changelog is not enough.
    found = reload(shop, "a")
    (load,) = [
        load for load in shop.follower.ledger.open_loads(SOURCE) if load.table == shop.table("a")
    ]
    assert (found.supplier, load.id) == (Supplier.SOURCE, found.load_id)
    assert load.reason.startswith("because; ")
    yield


def a_pause_counts_more_than_a_read_that_was_ordered_before(shop: Shop) -> Iterator[None]:
    """The table stays where it stopped, and the log alone brings it back."""
    assert reload(shop, "a", Supplier.SOURCE).load_id is not None
    shop.pause("a")
    shop.do("insert into a values (2, 2)")
    yield
    assert shop.state("a").stopped_by is StoppedBy.PERSON
    assert shop.rows("a") != shop.follower.mirror(f"{shop.name}.a")
    shop.resume("a")
    yield
    yield
    shop.require_whole("a")


def it_stops_again_where_it_stopped(shop: Shop) -> Iterator[None]:
    """What is wanted from the changelog is not read from MySQL since the log did not help."""
    shop.do(
        "create table p (id int primary key) partition by range (id) "
        "(partition low values less than (10), partition high values less than maxvalue)",
        "insert into p values (1), (11)",
    )
    yield
    shop.pause("p")
    shop.do("alter table p truncate partition low", "insert into p values (12)")
    yield
    assert reload(shop, "p", Supplier.CHANGELOG).supplier is Supplier.CHANGELOG
    for _ in range(2):
        yield
        assert shop.state("p").need is Need.ROWS
        assert TableEventKind.REREAD not in shop.events("p")
    shop.resume("p")
    yield
    shop.require_whole("p", rereads=1)


def _a_version_and_what_came_since(shop: Shop) -> Iterator[None]:
    """It is the earliest version that has the rows which were read, and MySQL is asked for none."""
    yield
    shop.do("insert into a values (2, 2)", "delete from a where id = 1")
    yield
    shop.do("alter table a add column w int default 7", "insert into a values (3, 3, 3)")
    yield
    wrong(shop, "a")
    found = reload(shop, "a", Supplier.CHANGELOG)
    mirror = shop.state("a").mirror
    assert f", from version 0 of {mirror} and its changelog, since batch " in found.sentence
    assert "2 batches, 3 row images; no row is read from the source" in found.sentence
    shop.do("update a set v = 9 where id = 3")
    yield
    assert shop.events("a").count(TableEventKind.REBUILT) == 1
    assert shop.events("a").count(TableEventKind.REREAD) == 1
    shop.require_same("a")
    # Nobody who does not say so gets rows of an earlier version again.
    found = reload(shop, "a")
    assert (found.supplier, found.estimated_rows is None) == (Supplier.SOURCE, False)
    yield
    assert shop.events("a").count(TableEventKind.REREAD) == 2


def _no_version_that_helps(shop: Shop) -> Iterator[None]:
    """What is wrong with the newest version stays wrong if it is all that there is."""
    yield
    with pytest.raises(PastRefused, match="its newest, is the earliest that can be read"):
        reload(shop, "a", Supplier.CHANGELOG)
    shop.do("insert into a values (2, 2)")
    yield
    lake, mirror = shop.follower.lake, shop.state("a").mirror
    lake.vacuumed[mirror] = len(lake.tables[mirror])
    with pytest.raises(PastRefused, match="no version of its mirror can be read that shows batch"):
        reload(shop, "a", Supplier.CHANGELOG)
    del lake.vacuumed[mirror]
    yield


def _a_reload_of_a_table_that_is_read(shop: Shop) -> Iterator[None]:
    assert shop.state("a").is_loading
    with pytest.raises(PastRefused, match="its rows are being read from MySQL"):
        reload(shop, "a", Supplier.CHANGELOG)
    (before,) = [
        load for load in shop.follower.ledger.open_loads(SOURCE) if load.table == shop.table("a")
    ]
    for supplier in (None, Supplier.SOURCE):
        assert reload(shop, "a", supplier).sentence.endswith("the next run continues")
    assert shop.orders() == []
    while shop.state("a").is_loading:
        yield
    assert shop.events("a").count(TableEventKind.REREAD) == 1
    assert before.id not in {load.id for load in shop.follower.ledger.open_loads(SOURCE)}
    shop.require_same("a")
