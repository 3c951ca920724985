"""Commits of somebody else in our tables: what may have changed them is found, whenever it
came, and what leaves them as they were keeps nobody from going on."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import pyarrow as pa
import pytest
from deltalake import DeltaTable, Field, write_deltalake
from deltalake.schema import PrimitiveType

from lockstep.pipeline.model.batch import Batch, BatchState
from lockstep.pipeline.model.foreign_commits import (
    Ahead,
    AllExpected,
    Foreign,
    Unknown,
    judge_changelog_log,
    judge_foreign,
)
from lockstep.pipeline.model.lake_commit import LakeCommit, LogSince, metadata_text
from lockstep.pipeline.model.table_state import OrderKind, TableState
from lockstep.pipeline.values.gtid import GtidSet
from lockstep.pipeline.values.position import Coordinates, Position
from lockstep.resources.lake.changelog.claims import FileClaims
from lockstep.resources.lake.delta import delta_log
from lockstep.resources.lake.delta.delta_log import log_since
from lockstep.resources.lake.mirror.mirror import SparkMirrors
from lockstep.resources.lake.spark.log_store import FILE_LOG_STORE, FILE_LOG_STORE_SETTING
from lockstep.resources.lake.spark.session import SparkProcess
from tests.lake.conftest import Lake
from tests.lake.test_log_store import LateWriter
from tests.outside import tables_to_quarantine
from tests.positions.fake import TABLE, FakeServer
from tests.positions.follower import Follower
from tests.positions.interrupted import Crash, interrupted
from tests.positions.one_table import NOBODY

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# -- by delta-rs, which needs no Java --------------------------------------------------------

ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "v": ["a", "b", "c"]})


def _restore(table: DeltaTable) -> None:
    table.restore(0)


def _add_column(table: DeltaTable) -> None:
    table.alter.add_columns([Field("z", PrimitiveType("integer"))])


def _set(name: str, value: str) -> Callable[[DeltaTable], None]:
    return lambda table: table.alter.set_table_properties({name: value}, raise_if_not_exists=False)


CHANGING: dict[str, Callable[[DeltaTable], Any]] = {
    "insert": lambda table: write_deltalake(table, ROWS, mode="append"),
    "overwrite": lambda table: write_deltalake(table, ROWS, mode="overwrite"),
    "delete": lambda table: table.delete("id = 2"),
    "delete all": lambda table: table.delete(),
    "update": lambda table: table.update(updates={"v": "'x'"}, predicate="id = 1"),
    "restore": _restore,
    "add column": _add_column,
    "our property": _set("delta.enableDeletionVectors", "true"),
}
NEUTRAL: dict[str, Callable[[DeltaTable], Any]] = {
    "compact": lambda table: table.optimize.compact(),
    "vacuum": lambda table: table.vacuum(dry_run=False),
    "a property": _set("delta.checkpointInterval", "20"),
    "how long versions stay": _set("delta.logRetentionDuration", "interval 90 days"),
}


@pytest.fixture
def made(tmp_path: Path) -> DeltaTable:
    """Two files, two commits."""
    for _ in range(2):
        write_deltalake(tmp_path / "t", ROWS, mode="append")
    return DeltaTable(tmp_path / "t")


def _path(table: DeltaTable) -> Path:
    return Path(table.table_uri.removeprefix("file://"))


@pytest.mark.parametrize("name", CHANGING)
def test_what_may_have_changed_a_table_is_foreign(made: DeltaTable, name: str) -> None:
    """Whatever the operation is called: what it did to files and columns decides."""
    CHANGING[name](made)
    found = log_since(_path(made), 1)
    assert [commit.delta_version for commit in found.commits][:1] == [2]
    assert any(judge_foreign(commit) is not None for commit in found.commits)


@pytest.mark.parametrize("name", NEUTRAL)
def test_what_leaves_a_table_as_it_was_is_neutral(made: DeltaTable, name: str) -> None:
    NEUTRAL[name](made)
    found = log_since(_path(made), 1)
    assert [judge_foreign(commit) for commit in found.commits] == [None] * len(found.commits)


def test_a_commit_that_lies_about_itself_is_found(made: DeltaTable) -> None:
    """`dataChange` is a claim: an OPTIMIZE that drops a row does not have as many rows."""
    path = _path(made)
    made.optimize.compact()
    file = path / "_delta_log" / f"{2:020d}.json"
    lines = file.read_text().splitlines()
    for number, line in enumerate(lines):
        action = json.loads(line)
        if "add" in action:
            stats = json.loads(action["add"]["stats"])
            action["add"]["stats"] = json.dumps({**stats, "numRecords": stats["numRecords"] - 1})
            lines[number] = json.dumps(action)
    file.write_text("\n".join(lines) + "\n")
    (commit,) = log_since(path, 1).commits
    assert judge_foreign(commit) is not None


def test_line_separators_in_statistics_do_not_end_an_action(made: DeltaTable) -> None:
    """JSON does not escape U+2028 and U+0085, so a text in a file's statistics may have them."""
    write_deltalake(
        made, ROWS.set_column(1, "v", [["a\u2028b", "c\u2029d", "e\x85f"]]), mode="append"
    )
    assert "a\u2028b" in (_path(made) / "_delta_log" / f"{2:020d}.json").read_text("utf-8")
    (commit,) = log_since(_path(made), 1).commits
    assert [file.row_count for file in commit.adds] == [3]


def test_commits_that_were_cleaned_up_unseen_are_unknown(made: DeltaTable) -> None:
    """What Delta cleans up behind a checkpoint passes only if it was looked at before."""
    path = _path(made)
    for _ in range(3):
        made.optimize.compact()
        write_deltalake(made, ROWS, mode="append")
    DeltaTable(path).create_checkpoint()
    newest = DeltaTable(path).version()
    for version in range(newest):
        delta_log.commit_file(path, version).unlink()
    unseen = judge_changelog_log(log_since(path, 1), 1, "ledger", {})
    assert isinstance(unseen, Unknown | Foreign)
    assert log_since(path, newest).commits == ()
    assert log_since(path, newest).missing_version is None


def _batch(number: int, end: str, captured: datetime) -> Batch:
    start, stop = (Position(Coordinates.parse(at), GtidSet(), "s", None) for at in (BEGIN, end))
    state = BatchState.ACKNOWLEDGED
    return Batch(
        number, "shop", state, start, 6, None, 0, 1, None, captured, end=stop, captured_at=captured
    )


BEGIN, END = "binlog.000001:4", "binlog.000001:40"
AT = datetime(2026, 11, 1, 6, tzinfo=UTC)
LATER = AT + timedelta(microseconds=1)


@pytest.mark.parametrize(
    ("pruned", "batches", "judgement"),
    [
        (8, [], AllExpected),
        (7, [], Ahead),
        (8, [_batch(7, "binlog.000001:99", AT)], Ahead),
        (7, [_batch(7, END, AT)], AllExpected),
        (7, [_batch(7, END, LATER)], Ahead),
    ],
    ids=["forgotten", "unknown", "elsewhere", "known", "of another copy"],
)
def test_whose_batch_a_commit_is_about(pruned: int, batches: list[Batch], judgement: type) -> None:
    """It has to be the ledger's own, by its place and its moment. Only a batch that the ledger has
    forgotten may be unknown: it lies in the ledger's past."""
    said = {"ledger": "ledger", "batches": [1, 7], "place": END, "captured_at": AT.isoformat()}
    seen = LogSince(1, commits=(LakeCommit(1, user_metadata=metadata_text(said)),))
    known = {batch.id: batch for batch in batches}
    assert isinstance(judge_changelog_log(seen, 0, "ledger", known, pruned), judgement)
    assert isinstance(judge_changelog_log(seen, 0, "another", known, pruned), Ahead)


def test_a_look_reads_what_came_since_then(
    made: DeltaTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However long the log is: no folder is listed, and no earlier commit is read."""
    path = _path(made)
    log = path / "_delta_log"
    for version in range(2, 3000):
        txn = {"txn": {"appId": "lockstep/a", "version": version * 2}}
        (log / f"{version:020d}.json").write_text(json.dumps(txn) + "\n")
    (log / "_last_checkpoint").write_text('{"version": 2990, "size": 1}')
    reads: list[int] = []
    read = delta_log.read_commit

    def counted(table: Path, version: int, *kinds: str) -> Any:
        reads.append(version)
        return read(table, version, *kinds)

    def nobody(_: Path) -> NoReturn:
        raise AssertionError("the folder was listed")

    monkeypatch.setattr(delta_log, "read_commit", counted)
    monkeypatch.setattr(Path, "iterdir", nobody)
    assert delta_log.newest_version(path) == 2999
    assert len(log_since(path, 2997).commits) == 2
    assert reads == [2997, 2998, 2999, 3000]


# -- by Spark, in a source's mirror ----------------------------------------------------------

BY_SPARK = {
    "INSERT": "insert into {t} values (77, 77)",
    "UPDATE": "update {t} set v = 77 where id = 1",
    "DELETE": "delete from {t} where id = 1",
    "MERGE": "merge into {t} t using (select 1 as id) s on t.id = s.id when matched then delete",
    "ADD COLUMN": "alter table {t} add columns (z int)",
    "TRUNCATE": "truncate table {t}",
    "RESTORE": "restore table {t} to version as of 0",
    "OUR PROPERTY": "alter table {t} set tblproperties ('delta.enableDeletionVectors'='false')",
}
LEFT_AS_IT_WAS = (
    "optimize {t}",
    "reorg table {t} apply (purge)",
    "alter table {t} set tblproperties ('team'='us', 'delta.checkpointInterval'='20')",
    "alter table {t} unset tblproperties ('team')",
    "vacuum {t}",
)


@dataclass
class Stand:
    """A source whose mirror is on disk, and somebody with a Spark of their own."""

    fake: FakeServer
    follower: Follower
    disk: Lake
    mirrors: SparkMirrors
    spark: SparkProcess

    def ports(self) -> Any:
        assert self.disk.folder is not None
        return replace(
            self.follower.ports(),
            segments=self.disk.segments,
            changelog=self.disk.changelog,
            mirrors=self.mirrors,
            claims=FileClaims(self.disk.folder),
        )

    def run(self) -> TableState:
        self.follower.steps(self.ports())
        return self.follower.states()[TABLE]

    def write(self) -> None:
        key = len(self.fake.writes) + 2
        self.fake.write(key, 0)
        self.fake.write(1, key)

    def sql(self, statement: str) -> None:
        t = f"delta.`{self.mirrors.path('shop/shop/t')}`"
        session = self.spark.session()
        with delta_as_it_comes(session):
            session.sql(statement.format(t=t)).collect()

    def resume(self) -> None:
        self.follower.order(OrderKind.RESUME, TABLE)

    def require_same(self) -> None:
        version = self.mirrors.version("shop/shop/t")
        assert version is not None
        batches = self.mirrors.rows("shop/shop/t", ["id", "v"], version)
        rows = [(row["id"], row["v"]) for batch in batches for row in batch.to_pylist()]
        assert sorted(rows) == sorted(self.fake.rows.items())


@contextmanager
def delta_as_it_comes(session: SparkSession) -> Iterator[None]:
    """Spark as others have it: its log store commits wherever it can."""
    jvm, context = session.sparkContext._jvm, session.sparkContext._jsc
    assert jvm is not None and context is not None
    settings, logs = context.sc().conf(), jvm.org.apache.spark.sql.delta.DeltaLog
    logs.clearCache()
    settings.set(FILE_LOG_STORE_SETTING, "io.delta.storage.HDFSLogStore")
    try:
        yield
    finally:
        settings.set(FILE_LOG_STORE_SETTING, FILE_LOG_STORE)
        logs.clearCache()


@pytest.fixture
def stand(disk: Lake, spark: SparkProcess) -> Stand:
    fake: Any = FakeServer(NOBODY, 1)
    follower = Follower(fake, ["shop.*"], start="earliest")
    assert isinstance(disk.mirrors, SparkMirrors)
    made = Stand(fake, follower, disk, disk.mirrors, spark)
    made.write()
    made.run()
    return made


def try_operation(stand: Stand, name: str, *, idle: bool) -> None:
    """Somebody did it since the last run; the table comes back whole."""
    stand.sql(BY_SPARK[name])
    version = stand.mirrors.version("shop/shop/t")
    (told,) = tables_to_quarantine(stand.ports())
    assert f"version {version}" in told.reason
    if not idle:
        stand.write()
    state = stand.run()
    assert state.has_stopped
    assert state.reason == told.reason
    assert "lockstep reload shop.t --reason" in (state.hint or "")
    stand.resume()
    assert stand.run().is_complete
    assert tables_to_quarantine(stand.ports()) == []
    stand.require_same()


def test_a_mirror_that_somebody_wrote_to_is_quarantined(stand: Stand) -> None:
    """Also where nothing of the table changed since; and what leaves it as it was is none of
    our business."""
    stand.sql("optimize {t}")
    assert tables_to_quarantine(stand.ports()) == []
    try_operation(stand, "INSERT", idle=True)


def test_the_commit_of_a_run_that_died_is_its_own(stand: Stand) -> None:
    """The ledger has its intent, and not yet that it was carried out."""

    def die() -> None:
        raise Crash

    stand.write()
    with interrupted(stand.follower, "settle", die), pytest.raises(Crash):
        stand.run()
    assert tables_to_quarantine(stand.ports()) == []
    assert stand.run().is_complete
    stand.require_same()


@pytest.mark.soak
def test_what_leaves_a_mirror_as_it_was(stand: Stand) -> None:
    for statement in LEFT_AS_IT_WAS:
        stand.sql(statement)
    assert tables_to_quarantine(stand.ports()) == []
    stand.write()
    assert stand.run().is_complete
    stand.require_same()


@pytest.mark.soak
@pytest.mark.parametrize("idle", [True, False])
@pytest.mark.parametrize("name", BY_SPARK)
def test_each_operation_is_found(stand: Stand, name: str, idle: bool) -> None:
    stand.write()
    stand.run()
    try_operation(stand, name, idle=idle)


def test_an_insert_below_our_own_commit_is_found(stand: Stand, folder: Path) -> None:
    """It came behind the look and before our append: the newest commit is ours all the same."""
    others = iter([BY_SPARK["INSERT"]])
    stand.mirrors = LateWriter(folder, stand.spark, lambda: [*map(stand.sql, others)])
    stand.write()
    for _ in range(2):
        state = stand.run()
    assert state.has_stopped
    stand.resume()
    assert stand.run().is_complete
    stand.require_same()
