"""Files in changelogs that nobody recorded: told at the next look, and set right by a replay.

Somebody else compacts, appends, deletes, restores, vacuums …, while we run, replay, reload, undo
and delete old changes. Changelogs are Delta tables on disk, mirrors are in memory. A second source
reads the same log beside it and is left in peace: its changes are what the first one must have.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, Field, write_deltalake
from deltalake.exceptions import DeltaError
from deltalake.schema import PrimitiveType

from lockstep.commands.replay import replay_lines
from lockstep.pipeline.mirror.layout import changelog_path
from lockstep.pipeline.mirror.system_tables import system_table_path
from lockstep.pipeline.model.lake_commit import LakeCommit
from lockstep.pipeline.model.table_state import OrderKind, Supplier, TableState
from lockstep.pipeline.replay.spans import Span
from lockstep.pipeline.values.errors import LedgerRefused, PastRefused, SpanRefused
from lockstep.pipeline.values.places import AtCoordinates, Earliest, Latest, Place
from lockstep.pipeline.values.segment import SystemTable
from lockstep.pipeline.values.table import TableName
from lockstep.resources.lake.changelog.changelog import DeltaChangelog
from lockstep.resources.lake.changelog.claims import FileClaims
from lockstep.resources.lake.changelog.segments import ParquetSegments
from lockstep.resources.lake.delta import delta_log
from lockstep.resources.lake.delta.columns import mirror_schema
from lockstep.resources.lake.delta.delta_log import commits_newest_first
from lockstep.resources.lake.spark.session import SparkProcess
from lockstep.resources.lake.store.storage import sha256_of
from tests.chance import by_chance
from tests.fix_ledger import LedgerOfTest
from tests.fix_mysql import MySqlStand
from tests.hostile.test_foreign_commits import delta_as_it_comes
from tests.mysql.reading import server
from tests.outside import (
    OrderRequest,
    ReplayReport,
    RunPorts,
    capture,
    changelogs_with_moved_rows,
    correct_changelogs,
    delete_changes,
    give_order,
    plan_changes,
    plan_recovery,
    publish,
    recover,
    replay,
    tables_to_quarantine,
)
from tests.positions.fake import TABLE, FakeServer
from tests.positions.follower import SOURCE, Clock, Follower
from tests.positions.interrupted import noted
from tests.positions.one_table import NOBODY
from tests.twins.mirrors import MemoryMirrors

CHANGELOG = changelog_path(SOURCE, TABLE)
SOAK = pytest.mark.soak
EARLIEST, LATEST = Earliest(), Latest()
KINDS = ("_change_type", "id")
PLACE = ("_file", "_offset", "_row", "_change_type", "id", "v")
Changes = Counter[tuple[Any, ...]]


class Mirrors(MemoryMirrors):
    """In memory; the logs of changelogs are on disk."""

    folder: Path

    def history(self, folder: str) -> Iterator[LakeCommit]:
        if (self.folder / folder).is_dir():
            return commits_newest_first(self.folder / folder)
        return super().history(folder)

    def version(self, mirror: str) -> int | None:
        if (self.folder / mirror).is_dir():
            return delta_log.newest_version(self.folder / mirror)
        return super().version(mirror)

    def schema(self, mirror: str, version: int) -> pa.Schema:
        if (self.folder / mirror).is_dir():
            return mirror_schema(self.folder / mirror, version)
        return super().schema(mirror, version)


class Claims(FileClaims):
    """On disk; the tables are those of both."""

    memory: Follower

    def table_folders(self, source: str) -> list[str]:
        return [*super().table_folders(source), *self.memory.lake.tables]


class Files(dict[str, pa.Table]):
    """Files in memory, and those of a lake's folder."""

    folder: Path

    def __missing__(self, path: str) -> pa.Table:
        return pq.ParquetFile(self.folder / path.removeprefix("memory:/")).read()


def ports_on_disk(follower: Follower, folder: Path) -> RunPorts:
    """The follower's, with changelogs in a folder."""
    mirrors, claims = Mirrors(follower.lake), Claims(folder)
    mirrors.folder, claims.memory = folder, follower
    return replace(
        follower.ports(),
        segments=ParquetSegments(folder),
        changelog=DeltaChangelog(folder),
        mirrors=mirrors,
        claims=claims,
    )


@dataclass
class Source:
    """A source, its changelogs in a folder, and the same source in peace (`calm`)."""

    folder: Path
    clock: Clock = field(default_factory=Clock)
    fake: FakeServer = field(default_factory=lambda: FakeServer(NOBODY, 1))
    changelog: DeltaChangelog | None = None
    gone: tuple[int, int] = (0, 0)

    def __post_init__(self) -> None:
        server: Any = self.fake
        self.follower = Follower(
            server, ["shop.*"], start="earliest", ledger=LedgerOfTest(clock=self.clock)
        )
        files = self.follower.lake.files = Files()
        files.folder = self.folder
        self.calm = Follower(server, ["shop.*"], start="earliest")
        self.write(1, 2)
        self.run()
        self.schema = self.table().schema().to_json()

    # -- what we do --------------------------------------------------------------------------

    def ports(self) -> RunPorts:
        ports = replace(ports_on_disk(self.follower, self.folder), clock=self.clock)
        return replace(ports, changelog=self.changelog or ports.changelog)

    def write(self, *keys: int) -> None:
        for key in keys:
            number = len(self.fake.writes)
            self.fake.write(key, None if number % 5 == 4 else number)

    def capture(self) -> None:
        with self.follower.leased() as lease:
            capture(self.ports(), lease)

    def run(self) -> TableState:
        self.calm.run()
        self.follower.steps(self.ports())
        return self.state()

    def state(self) -> TableState:
        return self.follower.states()[TABLE]

    def replay(
        self, since: Place = EARLIEST, until: Place = LATEST, *, commit: bool = True
    ) -> ReplayReport:
        with self.follower.leased() as lease:
            return replay(self.ports(), lease, Span(since, until), commit=commit)

    def order(self, kind: OrderKind) -> None:
        with self.follower.leased() as lease:
            asked = OrderRequest(TABLE, "somebody", "a trial")
            give_order(self.ports(), lease, kind, asked)

    def come_back(self) -> None:
        """Runs, and a person who resumes the table, until it goes on."""
        for _ in range(3):
            if self.run().is_complete:
                break
            self.order(OrderKind.RESUME)
        assert self.state().is_complete, self.state().reason

    def forget(self) -> None:
        self.clock.now += timedelta(hours=3)
        self.run()
        ports = self.ports()
        delete_changes(ports, plan_changes(ports, timedelta(hours=2), timedelta(hours=1)), "test")

    def undo(self, batch: int, *, known: bool = False) -> None:
        """Unless a table would have to be read from the source. `known`: the ledger sets right what
        it can before it is moved away, as `lockstep undo` has it do."""
        if plan_recovery(self.ports(), batch).reloads:
            return
        if known:
            with self.follower.leased() as lease:
                assert all(
                    check.reason_not_corrected is None
                    for check in correct_changelogs(self.ports(), lease)
                )
        self.follower.lose_ledger()
        with self.follower.leased() as lease:
            recover(self.ports(), lease, author="somebody", after_batch=batch)

    # -- what there is -------------------------------------------------------------------------

    def table(self, folder: str = CHANGELOG) -> DeltaTable:
        return DeltaTable(self.folder / folder)

    def changes(self) -> Changes:
        """Without those that a later batch caught up with, of what is kept no longer."""
        gone = self.follower.ledger.deletion_notes(SOURCE).newest
        through = 1 << 60 if gone is None else gone.last_batch
        columns = [*PLACE, "_batch"]
        rows = self.table().to_pyarrow_table(columns=columns).to_pylist()
        return Counter(
            tuple(row[name] for name in PLACE)
            for row in rows
            if row["_change_type"] not in ("truncate", "resnapshot")
            and (self.is_kept(row) or row["_batch"] <= through)
        )

    def wanted(self) -> Changes:
        """Those of the source in peace, without those that are kept no longer."""
        rows = self.calm.lake.tables[CHANGELOG][-1].rows.select(list(PLACE)).to_pylist()
        return Counter(tuple(row.values()) for row in rows if self.is_kept(row))

    def is_kept(self, row: dict[str, Any]) -> bool:
        gone = self.follower.ledger.deletion_notes(SOURCE).newest
        if gone is not None:
            self.gone = (gone.end.at.file.number, gone.end.at.offset)
        return (int(row["_file"].rpartition(".")[2]), row["_offset"]) >= self.gone

    def require_right(self) -> None:
        assert self.changes() == self.wanted()
        assert {row["id"]: row["v"] for row in self.follower.mirror(str(TABLE))} == self.fake.rows

    def waits(self) -> bool:
        """Whether captured changes are not in the lake yet."""
        ledger = self.follower.ledger
        return bool(ledger.unfinished_batches(SOURCE)) or ledger.cursors(SOURCE).captured is None

    def miscapture(self) -> None:
        """What is captured next has another value than the log, and ledger and lake believe it."""
        self.capture()
        recorded = self.follower.recorded_segments()
        batch = max(recorded)
        [file] = recorded[batch][0].files
        path = self.folder / CHANGELOG / file.path
        rows = pq.ParquetFile(path).read()
        wrong = pa.array([-5] * rows.num_rows, rows.schema.field("v").type)
        pq.write_table(rows.set_column(rows.schema.get_field_index("v"), "v", wrong), path)
        self.follower.record_otherwise(batch, 0, path.stat().st_size, sha256_of(path))
        self.run()

    def told(self) -> list[str]:
        """What `status` says of it, in its words."""
        state = self.state()
        said = [] if state.is_complete else [state.reason or ""]
        ports = self.ports()
        return [
            *said,
            *(
                one.reason
                for one in (*tables_to_quarantine(ports), *changelogs_with_moved_rows(ports))
            ),
        ]


@pytest.fixture
def source(tmp_path: Path) -> Source:
    return Source(tmp_path / "lake")


# -- what somebody else does --------------------------------------------------------------------


def compact(table: DeltaTable) -> None:
    table.optimize.compact()


def again(table: DeltaTable) -> None:
    """Rows of ours a second time."""
    write_deltalake(table, table.to_pyarrow_table().slice(0, 2), mode="append")


def overwrite(table: DeltaTable) -> None:
    write_deltalake(table, table.to_pyarrow_table().slice(1), mode="overwrite")


def update(table: DeltaTable) -> None:
    table.update(updates={"v": "-1"}, predicate="id = 1")


def merged(table: DeltaTable) -> None:
    some = table.to_pyarrow_table().slice(0, 1)
    merger = table.merge(some, "t.id = s.id", source_alias="s", target_alias="t")
    merger.when_matched_delete().execute()


def other_columns(table: DeltaTable) -> None:
    rows = pa.table({"id": ["x"], "else": [1]})
    write_deltalake(table, rows, mode="overwrite", schema_mode="overwrite")


def add_column(table: DeltaTable) -> None:
    table.alter.add_columns([Field("z", PrimitiveType("integer"))])
    again(DeltaTable(table.table_uri))


def append_only(table: DeltaTable) -> None:
    again(table)
    table.alter.set_table_properties({"delta.appendOnly": "true"})


def restore_first(table: DeltaTable) -> None:
    table.restore(0)


FOREIGN: dict[str, Callable[[DeltaTable], Any]] = {
    "compact": compact,
    "z-order": lambda table: table.optimize.z_order(["id"]),
    "append": again,
    "overwrite": overwrite,
    "delete": lambda table: table.delete("id = 1"),
    "delete all": lambda table: table.delete(),
    "update": update,
    "merge": merged,
    "restore": restore_first,
    "other columns": other_columns,
    "a column": add_column,
    "a property": append_only,
}
MOVES = ("compact", "z-order")


def clean_up(table: DeltaTable) -> None:
    """Nobody sees any more what was committed: a checkpoint stands for it."""
    compact(table)
    table.create_checkpoint()
    for version in range(table.version()):
        delta_log.commit_file(Path(table.table_uri.removeprefix("file://")), version).unlink()


EVERY = {**FOREIGN, "clean up": clean_up}


FIRST = ("run", "replay")


SAME_ROWS, OTHER_SCHEMA = MOVES, ("other columns", "a column", "a property")


def test_a_changelog_is_told_of_and_set_right(source: Source) -> None:
    """Whatever was done to it: `status` says so, a run tells or sets it right, a replay sets it
    right and says so, and nothing is said any more. One thing after the other, drawn by chance of
    each kind, as is what comes first, a run or a replay; last, what leaves nothing of the log of
    before. The soak has all of them."""
    chance = by_chance()
    other_rows = FOREIGN.keys() - {*SAME_ROWS, *OTHER_SCHEMA}
    drawn = [chance.choice(SAME_ROWS), chance.choice(OTHER_SCHEMA)]
    drawn += chance.sample(sorted(other_rows), 2)
    for name in (*chance.sample(drawn, len(drawn)), "clean up"):
        done_and_set_right(source, name, chance.choice(FIRST))


@SOAK
@pytest.mark.parametrize("first", FIRST)
@pytest.mark.parametrize("name", EVERY)
def test_each_is_told_of_and_set_right(source: Source, name: str, first: str) -> None:
    for key in (1, 2):
        source.write(key, 1)
        source.run()
    done_and_set_right(source, name, first)


def done_and_set_right(source: Source, name: str, first: str) -> None:
    with noted(f"{name}, then a {first}"):
        source.write(3, 1)
        source.run()
        EVERY[name](source.table())
        version = source.table().version()
        assert any(f"of {CHANGELOG}" in told for told in source.told())
        source.write(9, 1)
        if first == "run":
            state = source.run()
            assert (state.is_complete) is (name in MOVES)
            assert source.changes() == source.wanted()
        else:
            compared = source.replay(commit=False)
            assert source.table().version() == version
            done = source.replay()
            for report in (compared, done):
                assert [one.changelog.folder for one in report.changelog_checks] == [CHANGELOG]
            assert done.wrong_changelogs == ()
            assert not done.unreplaced_segments
            assert source.replay().has_differences is False
        source.come_back()
        source.require_right()
        assert source.told() == []


def vacuum(table: DeltaTable) -> None:
    """All files that are not listed, however young."""
    table.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)


def test_files_that_were_compacted_and_deleted(source: Source) -> None:
    """A replay of some of the batches leaves every change where it is, and says so; one of all
    reads them from the log again. A run tells of them, too."""
    for key in (1, 2, 3, 4):
        source.write(key, 1)
        source.run()
    compact(source.table())
    vacuum(source.table())
    batches = source.follower.live_batches()
    part = source.replay(AtCoordinates(batches[-2].start.at))
    assert source.changes() == source.wanted()
    assert part.wrong_changelogs
    assert any(one.reason_waiting for one in part.unreplaced_segments)
    source.write(9)
    state = source.run()
    assert state.has_stopped
    assert "recorded files that are lost" in (state.reason or "")
    assert "lockstep replay --from earliest" in (state.hint or "")
    assert source.changes() == source.wanted()
    done = source.replay()
    assert not (done.wrong_changelogs or done.unreplaced_segments)
    source.come_back()
    source.require_right()
    assert source.told() == []
    assert not source.replay().has_differences


def test_rows_that_were_read_from_the_source_are_compacted_and_deleted(
    mysql: MySqlStand, database: str, tmp_path: Path
) -> None:
    """No log has them, so no replay brings their files back: the hints say to go on with the
    changelog as it is, which has every change once, and that is enough."""
    table, folder = TableName(database, "a"), tmp_path / "lake"
    mysql.execute(
        f"use {database}",
        "create table a (id int primary key, v int)",
        "insert into a values (1, 1), (2, 2)",
    )
    follower = Follower(server(mysql), [f"{database}.*"], start="snapshot")
    follower.lake.files = files = Files()
    files.folder = folder

    def run(key: int) -> TableState:
        mysql.execute(f"insert into {database}.a values ({key}, 0)")
        follower.steps(ports_on_disk(follower, folder))
        return follower.states()[table]

    for key in (3, 4, 5):
        assert run(key).is_complete
    changelog = DeltaTable(folder / changelog_path(SOURCE, table))
    compact(changelog)
    vacuum(changelog)
    state, cure = (
        run(6),
        f"`lockstep resume {table} --reason …` goes on with the changelog as it is",
    )
    assert "recorded files that are lost" in (state.reason or "")
    assert (state.hint or "").startswith(cure)
    assert "batch 1, because it has rows that were read from the source" in (state.hint or "")
    ports = ports_on_disk(follower, folder)
    with follower.leased() as lease:
        done = replay(ports, lease, Span(EARLIEST, LATEST), frozenset({table}))
    lines = "\n".join(replay_lines(done, is_planned=False))
    assert "the log cannot bring it back, because it has rows that were read" in lines
    assert f"`lockstep resume {table} --reason …`" in lines
    assert "--repair" not in lines
    with follower.leased() as lease:
        asked = OrderRequest(table, "somebody", "a trial")
        give_order(ports, lease, OrderKind.RESUME, asked)
    assert run(7).is_complete
    assert run(8).is_complete
    assert (*tables_to_quarantine(ports), *changelogs_with_moved_rows(ports)) == ()
    rows = DeltaTable(folder / changelog_path(SOURCE, table)).to_pyarrow_table()
    changes = Counter(zip(*(rows.column(name).to_pylist() for name in KINDS), strict=True))
    assert changes == Counter([("resnapshot", None), *(("insert", key) for key in range(4, 9))])


class Meanwhile(DeltaChangelog):
    """Somebody commits between a look and our own commit."""

    then: Callable[[], None] | None = None

    def now(self, folder: str) -> None:
        if folder == CHANGELOG and self.then is not None:
            then, self.then = self.then, None
            then()

    def publish(self, folder: str, **how: Any) -> Any:
        self.now(folder)
        return super().publish(folder, **how)

    def revise(self, folder: str, **how: Any) -> Any:
        self.now(folder)
        return super().revise(folder, **how)


BETWEEN = [("publish", "append"), ("set right", "overwrite"), ("revise", "compact")]


@pytest.mark.parametrize(
    ("step", "name"),
    [
        pytest.param(step, name, marks=[] if (step, name) in BETWEEN else [SOAK])
        for step in ("publish", "set right", "revise")
        for name in ("compact", "append", "overwrite")
    ],
)
def test_a_commit_between_a_look_and_our_own(source: Source, step: str, name: str) -> None:
    """The run that published tells of it: the newest commit is ours all the same."""
    for key in (1, 2):
        source.write(key)
        source.run()
    changelog = source.changelog = Meanwhile(source.folder)
    changelog.then = lambda: FOREIGN[name](source.table())
    if step == "publish":
        source.write(3)
        reason = source.run().reason or ""
        if name == "append":
            assert "may lack changes, or have some that never happened" in reason
            assert "Since this run it lists exactly the captured files" in reason
    elif step == "set right":
        compact(source.table())
        source.replay()
    else:
        source.write(3)
        changelog.then, then = None, changelog.then
        source.miscapture()
        changelog.then = then
        source.replay()
    assert changelog.then is None
    assert source.changes() == source.wanted()
    source.come_back()
    source.require_right()


def test_a_batch_that_was_published_and_not_merged(source: Source) -> None:
    """Its files are listed already, and are listed again."""
    source.write(1, 2)
    with source.follower.leased() as lease:
        ports = source.ports()
        capture(ports, lease)
        publish(ports, lease)
    compact(source.table())
    source.run()
    source.require_right()
    assert source.told() == []


@pytest.mark.parametrize("name", ["compact", pytest.param("z-order", marks=SOAK)])
def test_a_compaction_of_several_batches(source: Source, name: str) -> None:
    """Some of them go, by `keep_changes` or because a run is undone: the others stay, once."""
    for key in range(12):  # eight stay for a recovery
        source.write(key)
        source.run()
    FOREIGN[name](source.table())
    source.forget()
    assert source.follower.ledger.deletion_notes(SOURCE).newest is not None
    assert source.changes() == source.wanted()
    for folder in (CHANGELOG, system_table_path(SOURCE, SystemTable.TRANSACTIONS)):
        FOREIGN["compact"](source.table(folder))
    batches = source.follower.live_batches()
    source.undo(batches[-3].id)
    source.write(3)
    source.run()
    source.require_right()


@pytest.mark.parametrize("recovers_after", [False, True])
def test_a_compaction_that_logs_no_sizes(source: Source, recovers_after: bool) -> None:
    """A removed file's size is optional in Delta's log, and Trino leaves it out. Files that the
    ledger does not know, as it was made from the lake, are listed again all the same."""

    def lose_ledger(batch: int | None = None) -> None:
        source.follower.lose_ledger()
        with source.follower.leased() as lease:
            recover(source.ports(), lease, author="somebody", after_batch=batch)

    for key in range(4):
        source.write(key)
        source.run()
    batches = source.follower.live_batches()
    if not recovers_after:
        lose_ledger()
    compact(source.table())
    newest = Path(str(delta_log.commit_file(source.folder / CHANGELOG, source.table().version())))
    actions = [json.loads(line) for line in newest.read_text().splitlines()]
    for action in actions:
        if "remove" in action:
            del action["remove"]["size"]
            action["remove"]["extendedFileMetadata"] = False
    newest.write_text("\n".join(map(json.dumps, actions)))
    if recovers_after:
        lose_ledger(batches[-2].id)
    source.write(3)
    assert source.run().is_complete
    source.require_right()
    assert source.told() == []


# -- by Spark -------------------------------------------------------------------------------------

MAPPED = "alter table {t} set tblproperties ('delta.columnMapping.mode'='name')"
VECTORS = "alter table {t} set tblproperties ('delta.enableDeletionVectors'='true')"
DELETED = "delete from {t} where id = 1"
OTHER = "create table if not exists delta.`{other}` using delta as select * from {t} where id = 1"
AUTO = "alter table {t} set tblproperties ('delta.autoOptimize.autoCompact'='true')"
COMPACTED = (AUTO, "insert into {t} select * from {t} where id = 1")
BOTH = "auto-compaction, then DELETE by deletion vectors"
BY_SPARK = {
    BOTH: (*COMPACTED, VECTORS, DELETED),
    "OPTIMIZE": ("optimize {t}",),
    "auto-compaction": COMPACTED,
    "DELETE by deletion vectors": (VECTORS, DELETED),
    "REORG": (VECTORS, DELETED, "reorg table {t} apply (purge)"),
    "ZORDER": ("optimize {t} zorder by (id)", "vacuum {t}"),
    "RENAME COLUMN": (MAPPED, "alter table {t} rename column v to w", "optimize {t}"),
    "DROP COLUMN": (MAPPED, "alter table {t} drop column v", "update {t} set id = 7"),
    "CLONE": (
        OTHER,
        "delete from {t}",
        "create or replace table {t} shallow clone delta.`{other}`",
    ),
    "TRUNCATE": ("truncate table {t}",),
}
COMPACTS = {
    "spark.databricks.delta.autoCompact.minNumFiles": "2",
    "spark.databricks.delta.allowArbitraryProperties.enabled": "true",
}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name == BOTH else [SOAK]) for name in BY_SPARK]
)
def test_what_spark_did_is_set_right(source: Source, spark: SparkProcess, name: str) -> None:
    """Columns, properties and what the table asks of readers, too: delta-rs reads it again."""
    for key in (1, 2, 3):
        source.write(key, 1)
        source.run()
    names = {"t": f"delta.`{source.folder / CHANGELOG}`", "other": str(source.folder / "other")}
    session = spark.session(COMPACTS)
    with delta_as_it_comes(session):
        for statement in BY_SPARK[name]:
            session.sql(statement.format(**names)).collect()
    operations = {entry["operation"] for entry in source.table().history()}
    assert AUTO not in BY_SPARK[name] or "OPTIMIZE" in operations
    assert source.told()
    source.write(9)
    source.come_back()
    source.require_right()
    assert source.table().schema().to_json() == source.schema
    source.replay()
    source.require_right()
    assert source.told() == []


# -- at random ----------------------------------------------------------------------------------


@dataclass
class Chance:
    """`vacuumed`: whether captured files may be gone."""

    source: Source
    random: Random
    vacuumed: bool = False
    done: list[str] = field(default_factory=list)

    def act(self) -> None:
        ours = (self.run,) * 4 + (self.capture, self.replay, self.reload, self.undo, self.forget)
        self.source.write(self.random.randrange(6))
        if self.random.random() < 0.45:
            self.foreign()
        else:
            act = self.random.choice(ours)
            self.done.append(act.__name__)
            act()
        self.require_told()

    def foreign(self) -> None:
        name = self.random.choice([*FOREIGN, *MOVES * 3])
        self.done.append(name)
        with suppress(DeltaError):  # Not everything can be done to every table.
            FOREIGN[name](self.source.table())

    def run(self) -> None:
        if self.source.run().has_stopped and self.random.random() < 0.7:
            self.source.order(OrderKind.RESUME)

    def capture(self) -> None:
        self.source.capture()

    def replay(self) -> None:
        self.source.run()
        batches = self.source.follower.live_batches()
        batch = self.random.choice(batches)
        places: list[Place] = [EARLIEST, AtCoordinates(batch.start.at)]
        since = self.random.choice(places)
        with suppress(SpanRefused):
            done = self.source.replay(since)
            assert done.wrong_changelogs == ()
            stopped = not self.source.state().is_complete
            assert stopped or self.source.changes() == self.source.wanted()

    def reload(self) -> None:
        self.source.come_back()
        with suppress(PastRefused, LedgerRefused):
            self.source.follower.reload(TABLE, self.random.choice((None, Supplier.CHANGELOG)))
        self.source.run()

    def undo(self) -> None:
        self.source.come_back()
        batches = self.source.follower.live_batches()
        if len(batches) > 3:
            self.source.undo(batches[-2].id, known=self.random.random() < 0.5)
            self.source.come_back()

    def forget(self) -> None:
        """A ledger that was made from the lake does not know the files of before."""
        if "undo" not in self.done:
            self.source.forget()

    def require_told(self) -> None:
        """What is wrong is told."""
        try:
            right = self.source.changes() == self.source.wanted()
        except (DeltaError, pa.ArrowException, ValueError):
            right = False
        assert right or self.source.told() or self.source.waits(), self.done


@pytest.mark.parametrize(
    ("seed", "acts"), [(0, 8), *(pytest.param(n, 12, marks=SOAK) for n in range(60))]
)
def test_whatever_is_done_the_changes_are_the_sources(tmp_path: Path, seed: int, acts: int) -> None:
    chance = Chance(Source(tmp_path / "lake"), Random(seed))
    for _ in range(acts):
        chance.act()
    chance.source.come_back()
    chance.source.replay()
    chance.source.come_back()
    chance.source.require_right()
    assert chance.source.told() == [], chance.done
