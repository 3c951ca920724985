"""The log store: one commit for a version, made by whoever was told that version."""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
import zipfile
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from threading import Barrier
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from lockstep.pipeline.mirror.evolution import MAPPING_PROPERTY, NTZ_PROPERTY
from lockstep.pipeline.mirror.strategy import Scale
from lockstep.pipeline.ports.mirror_writes import (
    AddColumns,
    ColumnOrigin,
    DropColumns,
    Fill,
    FoldedChanges,
    MirrorStep,
    MirrorWrite,
    Replace,
    Rewrite,
    SetProperties,
)
from lockstep.pipeline.ports.mirrors import MirrorCommit, Mirrors
from lockstep.pipeline.values.errors import CommitConflict, LakeUnavailable, LeaseLost
from lockstep.resources.lake.delta.delta_log import commits_newest_first
from lockstep.resources.lake.delta.pin import Head, head_of
from lockstep.resources.lake.mirror.mirror import SparkMirrors
from lockstep.resources.lake.spark import log_store
from lockstep.resources.lake.spark.jars import jars_folder
from lockstep.resources.lake.spark.session import SparkProcess
from lockstep.resources.lake.spark.spark import session_settings
from tests.lake import build_log_store
from tests.lake.conftest import Lake
from tests.lake.made import PEOPLE, a_target, a_write, content, delete, update
from tests.lake.made import changes as images

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
MIRROR = "shop/shop/people"
WRITERS = 6
ROUNDS = 3


@dataclass(frozen=True, slots=True)
class Store:
    """The class itself, in a folder of its own."""

    session: SparkSession
    folder: Path

    def commit(
        self, version: int, text: str, pin: Mapping[str, str], *, overwrite: bool = False
    ) -> None:
        self.write(f"{version:020d}.json", text, pin, overwrite=overwrite)

    def write(
        self, name: str, text: str, pin: Mapping[str, str], *, overwrite: bool = False
    ) -> None:
        jvm: Any = self.session.sparkContext._jvm
        conf = jvm.org.apache.hadoop.conf.Configuration()
        for key, value in pin.items():
            conf.set(key, value)
        lines = jvm.java.util.ArrayList()
        lines.add(text)
        path = jvm.org.apache.hadoop.fs.Path(f"file://{self.folder}/{name}")
        jvm.lockstep.delta.PinnedLogStore(conf).write(path, lines.iterator(), overwrite, conf)

    def names(self) -> list[str]:
        return sorted(path.name for path in self.folder.iterdir())

    def head(self) -> Head:
        return head_of(self.folder.parent)


@pytest.fixture
def store(spark: SparkProcess, tmp_path: Path) -> Store:
    """Version 0 is there."""
    made = Store(spark.session(), tmp_path / "_delta_log")
    made.folder.mkdir()
    made.commit(0, "the first", made.head().pin_settings())
    return made


def test_of_many_that_commit_one_version_one_wins(store: Store) -> None:
    """Nothing is overwritten, nothing is left lying about, and each file is whole."""
    with ThreadPoolExecutor(WRITERS) as pool:
        for version in range(1, ROUNDS + 1):
            pin, together = store.head().pin_settings(), Barrier(WRITERS)

            def attempt(
                text: str,
                version: int = version,
                pin: Mapping[str, str] = pin,
                together: Barrier = together,
            ) -> str | None:
                together.wait(60)
                try:
                    store.commit(version, text, pin)
                except Py4JJavaError as error:
                    name: str = error.java_exception.getClass().getName()
                    assert name == "java.nio.file.FileAlreadyExistsException"
                    return None
                return text

            texts = [f"{writer} of {version}: {'x' * 10_000}" for writer in range(WRITERS)]
            (won,) = [text for text in pool.map(attempt, texts) if text is not None]
            file = store.folder / f"{version:020d}.json"
            assert file.read_text() == f"{won}\n"
    assert store.names() == [f"{version:020d}.json" for version in range(ROUNDS + 1)]


def test_nobody_commits_what_was_planned_for_another_place(store: Store) -> None:
    """No version, another one, another table's, one that is gone, over another, by a
    coordinator: each is refused, and leaves nothing."""
    head, first = store.head(), "00000000000000000001.json"
    staged = "00000000000000000001.5f2c7bd8-b1b1-4d0b-a8fb-e1c8a3a2a1a0.json"
    another = Head(0, hashlib.sha256(b"another").hexdigest())
    trials: list[tuple[str, Mapping[str, str], bool]] = [
        (first, {}, False),
        (first, Head(1, head.digest).pin_settings(), False),
        (first, Head(0, None).pin_settings(), False),
        (first, another.pin_settings(), False),
        (first, head.pin_settings(), True),
        (staged, head.pin_settings(), False),
        ("00000000000000000003.json", Head(2, head.digest).pin_settings(), False),
    ]
    for name, pin, overwrite in trials:
        with pytest.raises(Py4JJavaError) as error:
            store.write(name, "late", pin, overwrite=overwrite)
        refused = error.value.java_exception.getClass().getName()
        assert refused == "lockstep.delta.PinnedLogStore$CommitRefused", (name, pin)
    assert store.names() == ["00000000000000000000.json"]
    store.write("_last_checkpoint", "one", {}, overwrite=True)
    store.write("_last_checkpoint", "two", {}, overwrite=True)
    assert (store.folder / "_last_checkpoint").read_text() == "two\n"


# -- through Delta ---------------------------------------------------------------------------


def begun(disk: Lake) -> None:
    rows: list[dict[str, object]] = [{"id": number, "name": "old"} for number in (1, 2)]
    disk.mirrors.write(a_write(disk.mirrors, 1, "append", rows))


def test_a_session_that_was_told_no_version_commits_nothing(
    disk: Lake, folder: Path, spark: SparkProcess
) -> None:
    """Neither into a mirror nor a new table; with a version it does, checkpoints among it."""
    begun(disk)
    session, table = spark.session(), folder / MIRROR
    path = f"delta.`{table}`"
    for statement in (
        f"insert into {path} values (9, 'late')",
        f"alter table {path} set tblproperties ('delta.checkpointInterval' = '2')",
        f"create table delta.`{folder / 'new'}` (id int) using delta",
    ):
        with pytest.raises(Exception, match="the session may commit none"):
            session.sql(statement)
    assert disk.mirrors.version(MIRROR) == 0
    with session_settings(session, head_of(table).pin_settings()):
        session.sql(f"alter table {path} set tblproperties ('delta.checkpointInterval' = '2')")
    disk.mirrors.write(a_write(disk.mirrors, 2, "merge", [update(id=1, name="new")]))
    told = json.loads((table / "_delta_log" / "_last_checkpoint").read_text())
    assert (disk.mirrors.version(MIRROR), told["version"]) == (2, 2)


def test_delta_with_another_store_is_refused(spark: SparkProcess) -> None:
    """Asked of Delta, not of the settings."""
    session = spark.session()
    jvm: Any = session.sparkContext._jvm
    conf = jvm.org.apache.spark.SparkEnv.get().conf()
    conf.remove(log_store.FILE_LOG_STORE_SETTING)
    try:
        with pytest.raises(LakeUnavailable, match="HDFSLogStore"):
            log_store.require_log_store(session)
    finally:
        conf.set(log_store.FILE_LOG_STORE_SETTING, log_store.FILE_LOG_STORE)
    log_store.require_log_store(session)


STEPS: dict[str, tuple[MirrorStep, ...]] = {
    "properties": (SetProperties((NTZ_PROPERTY,)),),
    "columns": (
        SetProperties((MAPPING_PROPERTY,)),
        DropColumns(("name",)),
        AddColumns(pa.schema([("name", pa.string())])),
    ),
    "filled": (
        AddColumns(pa.schema([("more", pa.string())])),
        Fill((("more", pa.scalar("late")),)),
    ),
    "rewritten": (
        Rewrite(PEOPLE, (ColumnOrigin("id", pa.int64()), ColumnOrigin("name", pa.string()))),
    ),
}


IN_EVERY_TEST = {("columns", 2), ("rewritten", 1)}
"""The others are much like one of these; `make soak` has them too."""


class Sleeper(SparkMirrors):
    """Falls asleep before a step that it was allowed to make, the first time."""

    def __init__(self, folder: Path, spark: SparkProcess, at: int, sleep: Any) -> None:
        super().__init__(folder, staging=folder.parent / "staging", spark=spark)
        self._at, self._sleep, self._calls = at, sleep, 0

    def _commit_step(self, *args: Any) -> None:
        self._calls += 1
        if self._calls == self._at:
            self._sleep()
        super()._commit_step(*args)


@pytest.mark.parametrize(
    ("steps", "at"),
    [
        pytest.param(
            steps,
            at,
            id=f"{name} {at}",
            marks=[] if (name, at) in IN_EVERY_TEST else [pytest.mark.soak],
        )
        for name, steps in STEPS.items()
        for at in range(1, len(steps) + 1)
    ],
)
def test_a_step_that_comes_late_makes_no_commit(
    disk: Lake, folder: Path, spark: SparkProcess, steps: tuple[MirrorStep, ...], at: int
) -> None:
    """Another holder made the steps meanwhile and wrote: the sleeper's are not repeated behind
    that, and when it plans again it is told. What a query writes Delta itself passes over, by the
    application's transaction that it has already."""
    begun(disk)

    def meanwhile() -> None:
        attempt(disk.mirrors)
        disk.mirrors.write(
            a_write(disk.mirrors, 2, "merge", [update(id=1, name="new")], schema=schema())
        )
        held.append(LeaseLost("Another run took over.", hint="let it finish"))

    def schema() -> pa.Schema:
        version = disk.mirrors.version(MIRROR)
        assert version is not None
        return disk.mirrors.schema(MIRROR, version)

    held: list[LeaseLost] = []

    def asked() -> None:
        for error in held:
            raise error

    def attempt(mirrors: Mirrors) -> None:
        mirrors.evolve(
            MIRROR,
            steps,
            app_id=f"app/{MIRROR}",
            txn_version=2,
            after_version=0,
            require_held=asked,
        )

    late = Sleeper(folder, spark, at, meanwhile)
    passed_over = isinstance(steps[at - 1], Fill | Rewrite)
    with nullcontext() if passed_over else pytest.raises(CommitConflict):
        attempt(late)
    version = disk.mirrors.version(MIRROR)
    assert version == len(steps) + 1
    names = [row["name"] for row in content(disk.mirrors, MIRROR, PEOPLE, version)]
    assert names[0] == "new"


def test_a_mirror_that_was_made_anew_takes_no_late_commit(
    disk: Lake, folder: Path, spark: SparkProcess
) -> None:
    """In the same folder, at the very version the sleeper was told."""
    begun(disk)
    steps = (SetProperties((NTZ_PROPERTY,)),)

    def meanwhile() -> None:
        disk.mirrors.remove(MIRROR)
        rows = [{"id": 3, "name": "another"}]
        disk.mirrors.write(a_write(disk.mirrors, 2, "append", rows, app_id="another"))

    late = Sleeper(folder, spark, 1, meanwhile)
    with pytest.raises(CommitConflict):
        late.evolve(MIRROR, steps, app_id=f"app/{MIRROR}", txn_version=2, after_version=0)
    assert disk.mirrors.version(MIRROR) == 0
    assert content(disk.mirrors, MIRROR, PEOPLE, 0) == [{"id": 3, "name": "another"}]


# -- the jar ---------------------------------------------------------------------------------


def test_the_jar_is_what_the_source_compiles_to(tmp_path: Path) -> None:
    """It tells of which source it was made, and by which javac; that one makes it again."""
    told = build_log_store.told_by(log_store.LOG_STORE_JAR)
    assert told["Source-SHA-256"] == build_log_store.source_digest(), "`make jar` was not run"
    if shutil.which("javac") is None:
        return
    made = tmp_path / "made.jar"
    build_log_store.build(made, against=build_log_store.compile_path(jars_folder(sys.prefix)))
    with zipfile.ZipFile(made) as new, zipfile.ZipFile(log_store.LOG_STORE_JAR) as kept:
        assert new.namelist() == kept.namelist()
    if told["Created-By"] == build_log_store.javac_version():
        assert made.read_bytes() == log_store.LOG_STORE_JAR.read_bytes()


# -- two holders make the same write, one of them late -----------------------------------


BEFORE: list[dict[str, object]] = [{"id": number, "name": "old"} for number in (1, 2, 3)]


class LateWriter(SparkMirrors):
    """Falls asleep when it has seen that its write is not there yet."""

    def __init__(
        self,
        folder: Path,
        spark: SparkProcess,
        sleep: Callable[[], object],
        *,
        in_memory: bool = True,
    ) -> None:
        staging = folder.parent / "staging"
        super().__init__(folder, staging=staging, spark=spark, in_memory=in_memory)
        self._sleep = sleep

    def _commit_write(
        self, session: SparkSession, write: MirrorWrite, head: Head, chosen: Scale
    ) -> None:
        self._sleep()
        super()._commit_write(session, write, head, chosen)


def _the_write(disk: Lake, mode: str, number: int) -> MirrorWrite:
    changes: list[dict[str, object]] = [{"id": 4, "name": "new"}]
    if mode == "merge":
        changes += [update(id=1, name="new"), delete(id=2)]
    if mode == "replace":
        folded = FoldedChanges((disk.mirrors.stage("images", images(PEOPLE, changes)),))
        return Replace(a_target(number), ("id",), changes=folded)
    return a_write(disk.mirrors, number, mode, changes)


def _shown(mode: str, *, exists: bool) -> list[dict[str, object]]:
    new: dict[str, object] = {"id": 4, "name": "new"}
    if not exists or mode == "replace":
        return [new]
    if mode == "append":
        return [*BEFORE, new]
    return [{"id": 1, "name": "new"}, {"id": 3, "name": "old"}, new]


@pytest.mark.thin
@pytest.mark.parametrize("in_memory", [True, False])
@pytest.mark.parametrize(
    ("mode", "exists"), [("append", False), ("append", True), ("merge", True), ("replace", True)]
)
def test_a_write_that_comes_late_makes_no_commit(
    disk: Lake, folder: Path, spark: SparkProcess, mode: str, exists: bool, in_memory: bool
) -> None:
    """Another holder made it meanwhile, and also the next one: the sleeper, with a query of Spark's
    or without, reads back the commit that was made, and the mirror stays as it is."""
    if exists:
        disk.mirrors.write(a_write(disk.mirrors, 1, "append", BEFORE))
    write = _the_write(disk, mode, 2)
    done: list[MirrorCommit] = []

    def meanwhile() -> None:
        done.append(disk.mirrors.write(write))
        disk.mirrors.write(a_write(disk.mirrors, 3, "merge", [update(id=3, name="later")]))

    late = LateWriter(folder, spark, meanwhile, in_memory=in_memory).write(write)
    assert [late] == done
    newest = disk.mirrors.version(MIRROR)
    assert newest == late.delta_version + 1
    shown = content(disk.mirrors, MIRROR, PEOPLE, late.delta_version)
    assert shown == _shown(mode, exists=exists)
    assert [row["name"] for row in content(disk.mirrors, MIRROR, PEOPLE, newest)].count("new") == (
        len([row for row in shown if row["name"] == "new"])
    )


@pytest.mark.parametrize(("mode", "exists"), [("append", False), ("merge", True)])
def test_the_same_write_by_two_at_once_is_one_commit(
    disk: Lake, folder: Path, spark: SparkProcess, mode: str, exists: bool
) -> None:
    """Whoever loses finds the other's commit, at once or when it tries again."""
    if exists:
        disk.mirrors.write(a_write(disk.mirrors, 1, "append", BEFORE))
    write = _the_write(disk, mode, 2)
    both = Barrier(2)
    holders = [LateWriter(folder, spark, lambda: both.wait(60)) for _ in range(2)]

    def attempt(holder: LateWriter) -> MirrorCommit:
        try:
            return holder.write(write)
        except CommitConflict:
            both.abort()
            return disk.mirrors.write(write)

    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(attempt, holders)
    assert first == second
    assert disk.mirrors.version(MIRROR) == first.delta_version == (1 if exists else 0)
    assert content(disk.mirrors, MIRROR, PEOPLE, first.delta_version) == _shown(mode, exists=exists)
    found = [
        commit.transactions[write.target.app_id] for commit in commits_newest_first(folder / MIRROR)
    ]
    assert found == ([2, 1] if exists else [2])
