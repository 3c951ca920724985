"""The past as partitions: what fills them, and replays of them. Only MySQL is real here."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import dagster as dg
import pyarrow as pa
import pytest

from lockstep.assets.coverage import FILE, next_coverage, read_coverage, write_coverage
from lockstep.assets.dead_runs import GRACE, RunUnderWay, reason_dead, runs_under_way
from lockstep.assets.home import dagster_home
from lockstep.assets.names import SOURCE_TAG, WAITS_TAG, SourceNames
from lockstep.pipeline.ports.ledger import batch_content
from lockstep.pipeline.replay.partitions import Partitions
from tests.dagster.place import Stand, source_of
from tests.fix_mysql import MySqlStand
from tests.twins.segments import print_of

NAMES = SourceNames("shop")
HOUR = timedelta(hours=1)
RANGE = ("dagster/asset_partition_range_start", "dagster/asset_partition_range_end")
NIGHTLY = '[sources.replay]\nschedule = "0 3 * * *"\nspan = "2h"\n'


@pytest.fixture
def stand(mysql: MySqlStand, database: str, tmp_path: Path) -> Iterator[Stand]:
    """A source with one table, whose past is replayed each night."""
    mysql.execute("create table a (id int primary key, v int)", database=database)
    with source_of(mysql, database, tmp_path, extra=NIGHTLY) as made:
        yield made


def filled(stand: Stand) -> list[str]:
    """The partitions that Dagster takes for covered."""
    return sorted(stand.instance.get_materialized_partitions(NAMES.replayed_key))


def hours(first: datetime, count: int) -> list[str]:
    begin = Partitions.HOURLY.begin_of(first)
    return [(begin + number * HOUR).strftime("%Y-%m-%d-%H:%M") for number in range(count)]


def replayed(stand: Stand, first: str, last: str) -> dg.ExecuteInProcessResult:
    """A range of partitions as one run, as a backfill launches it."""
    return stand.run("replay", dict(zip(RANGE, (first, last), strict=True)))


def test_the_past_is_covered_and_replayed(stand: Stand, mysql: MySqlStand, database: str) -> None:
    """Hours that are over are told once, empty ones too, the open one not; a range of them is
    one run that heals a wrong mirror, tells of each hour, and of nothing without a partition. Of
    two, the one that comes behind the other finds nothing."""
    assert stand.coverages() == {}, "nothing was captured: there is no past"
    # Batches of other sources.
    stand.adapters.books.database.tell("select setval('lockstep.batches_id_seq', 7)")
    before = datetime.now(UTC)
    mysql.execute("insert into a values (1, 1), (2, 2)", database=database)
    around = {Partitions.HOURLY.begin_of(moment) for moment in (before, datetime.now(UTC))}
    stand.run()
    begins = stand.coverages()["shop"].begins
    assert begins in around
    stand.adapters.later = 3 * HOUR
    stand.run()
    told = filled(stand)
    assert told == hours(begins, len(told))
    assert len(told) >= 3
    stand.run()
    assert filled(stand) == told
    mirror = stand.adapters.lake.tables["shop/" + database + "/a"]
    mirror[-1] = replace(mirror[-1], rows=mirror[-1].rows.slice(0, 1))
    done = [replayed(stand, told[0], told[-1]) for _ in range(2)]
    assert [one.success for one in done] == [True, True]
    events = [one.get_asset_materialization_events() for one in done]
    for some in events:
        partitions = [event.partition for event in some if event.asset_key == NAMES.replayed_key]
        assert partitions == told
    right = [some[0].materialization.metadata["rows put right"].value for some in events]
    assert right == [1, 0]
    shown = stand.adapters.lake.tables["shop/" + database + "/a"][-1].rows
    assert sorted(shown.column("id").to_pylist()) == [1, 2]
    again = replayed(stand, told[0], told[0]).get_asset_materialization_events()
    assert again[0].materialization.metadata["rows put right"].value == 0


def test_the_past_begins_with_the_first_transaction(
    stand: Stand, mysql: MySqlStand, database: str
) -> None:
    """Of a batch that read hours of the log, not with its end; the batch's transactions tell, for
    its start says no moment."""
    for number in (1, 2):  # the newest batch's anchor is compared with the log
        mysql.execute(f"insert into a values ({number}, 1)", database=database)
        stand.run()
    begins = stand.coverages()["shop"].begins
    books, lake = stand.adapters.books, stand.adapters.lake
    batch = next(iter(books.live_batches("shop", limit=1)), None)
    assert batch is not None and batch.start.committed_at is None
    books.database.tell(
        "update lockstep.batches set anchor_file_created = 0 where id = %s", batch.id
    )
    for part in batch_content(books, "shop", batch.id).system_segments:
        [file] = part.files
        path = lake.path(f"shop/{part.table}/{file.path}")
        rows = lake.files[path].to_pylist()
        moved = [{**row, "_committed_at": row["_committed_at"] - 5 * HOUR} for row in rows]
        lake.files[path] = pa.Table.from_pylist(moved, schema=lake.files[path].schema)
        size, digest = print_of(lake.files[path])
        books.misrecord(batch.id, part.table, replace(file, size=size, sha256=digest))
    stand.run()
    assert stand.coverages()["shop"].begins == begins, "what was found once is kept"
    (stand.adapters.settings.state_folder / FILE).unlink()
    stand.run()
    assert stand.coverages()["shop"].begins == begins - 5 * HOUR


def test_the_past_of_tables_read_as_they_are_begins_with_their_run(
    stand: Stand, mysql: MySqlStand, database: str
) -> None:
    """Nothing was committed while the tables were read: the first batch has no transaction, whose
    time could be told."""
    before = datetime.now(UTC)
    stand.run()
    around = {Partitions.HOURLY.begin_of(moment) for moment in (before, datetime.now(UTC))}
    begins = stand.coverages()["shop"].begins
    assert begins in around
    mysql.execute("insert into a values (1, 1)", database=database)
    stand.adapters.later = 2 * HOUR
    stand.run()
    assert stand.coverages()["shop"].begins == begins
    assert filled(stand)[:2] == hours(begins, 2)


def test_each_night_the_last_hours_are_one_run(stand: Stand) -> None:
    """The range of the closed partitions that the span touches; before the first is closed, a
    sentence."""
    stand.run()
    coverage = stand.coverages()["shop"]
    tick = stand.definitions().resolve_schedule_def("lockstep_shop_replay_schedule")
    for passed, begins in ((4, (2, 3)), (1, (0, 0)), (0.5, None)):
        at = coverage.begins + passed * HOUR
        context = dg.build_schedule_context(stand.instance, scheduled_execution_time=at)
        told = tick.evaluate_tick(context)
        if begins is None:
            assert told.skip_message == "No partition of shop is over yet."
            continue
        [request] = told.run_requests or []
        keys = [hours(coverage.begins + number * HOUR, 1)[0] for number in begins]
        assert [request.tags[tag] for tag in RANGE] == keys


def test_a_replay_waits_for_a_run(mysql: MySqlStand, database: str, tmp_path: Path) -> None:
    """It is not taken for dead meanwhile; then it goes on. Runs at a time record theirs in files:
    SQLite's tables in memory lock each other out."""
    rows, home = "create table a (id int primary key)", dagster_home(tmp_path / ".lockstep")
    with (
        source_of(mysql, database, tmp_path, rows, extra=NIGHTLY, home=home) as stand,
        ThreadPoolExecutor(1) as threads,
        ExitStack() as held,
    ):
        stand.run()
        stand.adapters.later = HOUR
        [first] = hours(stand.coverages()["shop"].begins, 1)
        held.enter_context(stand.adapters.books.lock("shop", "a run", None))
        waiting = threads.submit(replayed, stand, first, first)
        while not (found := waits(stand)):
            assert not waiting.done(), waiting.result().all_events
        [run] = found
        at = datetime.now(UTC) + GRACE / 2
        assert reason_dead(run, stand.adapters.books.newest_lease("shop"), at) is None
        assert reason_dead(run, stand.adapters.books.newest_lease("shop"), at + GRACE) is not None
        held.close()
        assert waiting.result().success


def waits(stand: Stand) -> list[RunUnderWay]:
    """The runs that said that they wait."""
    records = stand.instance.get_run_records(dg.RunsFilter(tags={SOURCE_TAG: "shop"}))
    said = {one.dagster_run.run_id for one in records if WAITS_TAG in one.dagster_run.tags}
    return [run for run in runs_under_way(stand.instance, "shop") if run.run_id in said]


def test_the_beginning_only_moves_back(tmp_path: Path) -> None:
    """An earlier first transaction (a lake that was recovered) is told of; a later one is not."""
    first = datetime(2026, 11, 22, 6, 30, tzinfo=UTC)
    begun = next_coverage(None, first, Partitions.HOURLY)
    assert begun.begins == first.replace(minute=0)
    assert next_coverage(begun, first + 9 * HOUR, Partitions.HOURLY) == begun
    earlier = next_coverage(begun, first - 9 * HOUR, Partitions.HOURLY)
    assert earlier.begins == begun.begins - 9 * HOUR
    write_coverage(tmp_path, "shop", earlier)
    assert read_coverage(tmp_path, "shop") == earlier
    longer = next_coverage(earlier, first, Partitions.DAILY)
    assert longer.begins == longer.until == earlier.begins.replace(hour=0)
    (tmp_path / "coverage.json").write_text('{"shop": {"begins": 7}}')
    assert read_coverage(tmp_path, "shop") is None
