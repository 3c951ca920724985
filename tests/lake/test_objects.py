"""The lake in an object store: every kind of write once, whoever else writes and whatever gets
lost on the way."""

from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from threading import Barrier
from typing import Any

import pyarrow as pa
import pytest
from py4j.protocol import Py4JJavaError

from lockstep.pipeline.mirror.evolution import MAPPING_PROPERTY, WIDENING_PROPERTY
from lockstep.pipeline.mirror.strategy import NO_FEW_ROWS
from lockstep.pipeline.model.lake_commit import MetadataChange
from lockstep.pipeline.ports.mirror_writes import (
    AddColumns,
    DropColumns,
    MirrorStep,
    MirrorWrite,
    Replace,
    SetProperties,
    WidenColumn,
)
from lockstep.pipeline.values.errors import CommitConflict, ConfigurationError, LakeUnavailable
from lockstep.resources.lake.changelog.claims import FileClaims
from lockstep.resources.lake.changelog.segments import ParquetSegments
from lockstep.resources.lake.delta.delta_log import actions, commit_file
from lockstep.resources.lake.delta.pin import head_of
from lockstep.resources.lake.delta.versions import DeltaVersion, version_rows
from lockstep.resources.lake.mirror.upkeep import SparkUpkeep
from lockstep.resources.lake.spark.java_errors import JavaError, error_of
from lockstep.resources.lake.spark.session import SparkProcess
from lockstep.resources.lake.spark.visible import require_visible
from lockstep.resources.lake.store.paths import ObjectPath, object_path
from lockstep.resources.lake.trial import require_conditional_writes, require_correct_writes
from tests.fix_objects import ObjectStore
from tests.lake.conftest import Lake, lake_at
from tests.lake.faults import Fault, Faults
from tests.lake.made import PEOPLE, Row, a_target, a_write, changes, content, own_part

MIRROR = "shop/shop/people"
CHANGELOG = "shop/_changes/shop/people"
WRITERS = 6


@pytest.fixture
def lake(object_store: ObjectStore, tmp_path: Path, spark: SparkProcess) -> Lake:
    """Under a prefix of a store that does as it should."""
    return lake_at(object_store.prefix(), tmp_path, spark)


@pytest.fixture
def faults(object_store: ObjectStore) -> Faults:
    return Faults(object_store.faulty_port)


@pytest.fixture
def faulty(object_store: ObjectStore, tmp_path: Path, spark: SparkProcess) -> Lake:
    """Under a prefix of a store behind `faults`."""
    return lake_at(object_store.faulty_prefix(), tmp_path, spark)


def rows(lake: Lake) -> list[Row]:
    version = lake.mirrors.version(MIRROR)
    assert version is not None
    return content(lake.mirrors, MIRROR, PEOPLE, version)


def test_every_kind_of_write(lake: Lake) -> None:
    """Rows, columns changed, set back, removed; a write that is repeated is none. (By Spark's
    queries: `test_deleted_rows_go_from_the_files`.)"""
    writes: list[tuple[str, list[Row]]] = [
        ("append", [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}]),
        ("merge", [{"id": 1, "name": "aa"}, {"id": 3, "name": "c"}]),
        ("merge", [{"id": 2, "name": None, "_change_type": "delete"}]),
    ]
    for number, (mode, images) in enumerate(writes, start=1):
        write = a_write(lake.mirrors, number, mode, images)
        done = lake.mirrors.write(write)
        assert (done.delta_version, lake.mirrors.write(write).delta_version) == (number - 1,) * 2
    assert rows(lake) == [{"id": 1, "name": "aa"}, {"id": 3, "name": "c"}]
    steps = [AddColumns(pa.schema([("more", pa.int64())]))]
    for _ in range(2):
        (step,) = lake.mirrors.evolve(MIRROR, steps, app_id="e", txn_version=4, after_version=2)
        assert step.delta_version == 3
    assert lake.mirrors.restore(MIRROR, 1, "") == 4
    assert len(rows(lake)) == 3
    claims = FileClaims(lake.mirrors._lake)  # type: ignore[attr-defined]
    assert claims.table_folders("shop") == [MIRROR]
    lake.mirrors.remove(MIRROR)
    assert (lake.mirrors.version(MIRROR), claims.table_folders("shop")) == (None, [])


def test_only_what_reads_a_mirror_asks_for_its_files(faulty: Lake, faults: Faults) -> None:
    """Runs that append would ask for a file more each."""

    def asked_by(write: MirrorWrite) -> list[str]:
        before = len(faults.requests())
        faulty.mirrors.write(write)
        return faults.requests()[before:]

    first, second = ([{"id": number, "name": "a"}] for number in (1, 2))
    created = asked_by(a_write(faulty.mirrors, 1, "append", first))
    puts = [one.removeprefix("PUT ") for one in created if one.startswith("PUT ")]
    [file] = [path for path in puts if path.endswith(".parquet")]
    staged = faulty.mirrors.stage("snapshot", pa.Table.from_pylist(second, schema=PEOPLE))
    for write, reads in (
        (a_write(faulty.mirrors, 2, "append", second), False),
        (a_write(faulty.mirrors, 3, "merge", second), True),
        (Replace(a_target(4), ("id",), (own_part((staged,), PEOPLE),)), False),
    ):
        asked = [one for one in asked_by(write) if one.endswith(file)]
        assert (asked != []) == reads, (write, asked)
    assert rows(faulty) == second


def test_a_prefix_is_written_alike_by_all(
    object_store: ObjectStore, tmp_path: Path, spark: SparkProcess
) -> None:
    """Each character that a prefix may have, also for the files of deleted rows."""
    path = object_store.prefix() / "_Az09.!$&'()+,;=:@-"
    prefix = object_path(str(path), object_store.options())
    lake = lake_at(prefix, tmp_path, spark, NO_FEW_ROWS, in_memory=False)
    for number, mode in enumerate(("append", "merge"), start=1):
        images: list[Row] = [{"id": 1, "name": mode}, {"id": 2, "name": mode}]
        lake.mirrors.write(a_write(lake.mirrors, number, mode, images[: 3 - number]))
    assert any(file.name.startswith("deletion_vector") for file in (prefix / MIRROR).rglob())
    assert rows(lake) == [{"id": 1, "name": "merge"}, {"id": 2, "name": "append"}]


def test_of_many_that_commit_one_version_one_wins(
    object_store: ObjectStore, spark: SparkProcess
) -> None:
    """Nothing is overwritten, and a commit behind another one than was planned on is refused."""
    log = object_store.prefix() / "_delta_log"
    session = spark.session()
    jvm: Any = session.sparkContext._jvm
    session.sparkContext.setLogLevel("OFF")

    def commit(version: int, text: str, pin: dict[str, str]) -> str:
        conf = session._jsparkSession.sessionState().newHadoopConf()
        for key, value in pin.items():
            conf.set(key, value)
        lines = jvm.java.util.ArrayList()
        lines.add(text)
        path = jvm.org.apache.hadoop.fs.Path(f"{log}/{version:020d}.json")
        try:
            jvm.lockstep.delta.ObjectLogStore(conf).write(path, lines.iterator(), False, conf)
        except Py4JJavaError as error:
            return str(error.java_exception.getClass().getSimpleName())
        return text

    assert commit(0, "first", head_of(log.parent).pin_settings()) == "first"
    pin = head_of(log.parent).pin_settings()
    gate = Barrier(WRITERS)

    def writer(number: int) -> str:
        gate.wait()
        return commit(1, f"writer {number}", pin)

    with ThreadPoolExecutor(WRITERS) as threads:
        said = list(threads.map(writer, range(WRITERS)))
    [winner] = [text for text in said if text.startswith("writer")]
    assert said.count("FileAlreadyExistsException") == WRITERS - 1
    assert (log / f"{1:020d}.json").read_text() == f"{winner}\n"
    stale = {
        **head_of(log.parent).pin_settings(),
        **{k: v for k, v in pin.items() if "parent" in k},
    }
    assert commit(2, "of yesterday", stale) == "CommitRefused"


def test_a_failed_write_says_why_where_a_stream_cannot_be_aborted(spark: SparkProcess) -> None:
    """Hadoop's streams for `gs` and `abfss` cannot be aborted, nor can this one."""
    session = spark.session()
    jvm: Any = session.sparkContext._jvm
    store = jvm.lockstep.delta.ObjectLogStore(jvm.org.apache.hadoop.conf.Configuration())
    [upload] = [one for one in store.getClass().getDeclaredMethods() if one.getName() == "upload"]
    upload.setAccessible(True)
    full = jvm.java.io.FileOutputStream("/dev/full")
    arguments = jvm.java.util.ArrayList()
    arguments.add(jvm.org.apache.hadoop.fs.FSDataOutputStream(full, None))
    arguments.add(b"{}")
    with pytest.raises(Py4JJavaError) as failed:
        upload.invoke(None, arguments.toArray())
    assert "No space left on device" in str(failed.value.java_exception.getCause())


def test_a_commit_is_made_once_whatever_gets_lost(faulty: Lake, faults: Faults) -> None:
    """Java's and delta-rs': each asks once more by itself, is told that there is one, and looks
    whose it is."""
    before = len(faults.done())
    lost = (Fault.LOST_ANSWER, Fault.CUT, Fault.SLOW_DOWN)
    modes = ("append", "merge", "merge")
    for number, (fault, mode) in enumerate(zip(lost, modes, strict=True), start=1):
        write = a_write(faulty.mirrors, number, mode, [{"id": number, "name": "a"}])
        with faults.planned("PUT", f"people/_delta_log/{number - 1:020d}.json", fault):
            assert faulty.mirrors.write(write).delta_version == number - 1
    assert [row["id"] for row in rows(faulty)] == [1, 2, 3]
    for batch, fault in enumerate(lost, start=1):
        images = changes(PEOPLE, [{"id": batch, "name": "a"}], first=batch)
        with faults.planned("PUT", "batch-", fault):
            writer = faulty.segments.open(
                CHANGELOG, batch=batch, schema_version=1, schema=images.schema
            )
            writer.write(images)
            files = writer.close()
        with faults.planned("PUT", f"people/_delta_log/{batch - 1:020d}.json", fault):
            done = faulty.changelog.publish(
                CHANGELOG,
                app_id="app",
                batch=batch,
                schema=images.schema,
                files=files,
                user_metadata="{}",
            )
        assert done.delta_version == batch - 1
    with faults.planned("PUT", f"people/_delta_log/{3:020d}.json", Fault.LOST_ANSWER):
        listed = faulty.changelog.restate(
            CHANGELOG, app_id="app", batch=3, files=files, user_metadata="{}"
        )
    assert len(faults.done()) == before + 10
    assert listed.delta_version == 3 and faulty.changelog.is_newest_version(CHANGELOG, 3)
    assert faulty.changelog.listed_files(CHANGELOG) == {file.path: file.size for file in files}


def test_a_late_writer_commits_nothing(faulty: Lake, faults: Faults) -> None:
    """Somebody else's commit comes while ours is on its way."""
    faulty.mirrors.write(a_write(faulty.mirrors, 1, "append", [{"id": 1, "name": "a"}]))
    late = a_write(faulty.mirrors, 2, "merge", [{"id": 1, "name": "late"}], app_id="late")
    other = a_write(faulty.mirrors, 2, "merge", [{"id": 1, "name": "first"}])
    before = len(faults.done())
    with ThreadPoolExecutor(1) as thread:
        with faults.planned("PUT", f"people/_delta_log/{1:020d}.json", Fault.HELD):
            waits = thread.submit(faulty.mirrors.write, late)
            while len(faults.done()) == before:
                time.sleep(0.01)
            faulty.mirrors.write(other)
        with pytest.raises(CommitConflict):
            waits.result()
    assert rows(faulty) == [{"id": 1, "name": "first"}]


REFUSALS = {
    Fault.EXPIRED: "credentials that have expired",
    Fault.SKEWED: "clock is wrong",
    Fault.ELSEWHERE: "another region",
    Fault.CONFLICT: "but there is none",
}


def test_a_store_that_refuses_is_everybodys_matter(faulty: Lake, faults: Faults) -> None:
    """One sentence, whoever asked: our client, delta-rs, or Java in the middle of a commit. No
    mirror is to blame, and what was under way is done once when it is tried again."""
    write = a_write(faulty.mirrors, 1, "append", [{"id": 1, "name": "a"}])
    images = changes(PEOPLE, [{"id": 1, "name": "a"}], first=1)
    writer = faulty.segments.open(CHANGELOG, batch=1, schema_version=1, schema=images.schema)
    writer.write(images)
    files = writer.close()

    def published(batch: int = 1) -> None:
        faulty.changelog.publish(
            CHANGELOG,
            app_id="app",
            batch=batch,
            schema=images.schema,
            files=files,
            user_metadata="{}",
        )

    for fault, told in REFUSALS.items():
        with faults.planned("PUT", "people/_delta_log/", fault, -1):
            for attempt in (published, lambda: faulty.mirrors.write(write)):
                with pytest.raises(LakeUnavailable, match=told):
                    attempt()
        with faults.planned("", "", fault, -1), pytest.raises(LakeUnavailable, match=told):
            faulty.mirrors.write(write)
    published()
    assert faulty.mirrors.write(write).delta_version == 0
    assert faulty.changelog.is_newest_version(CHANGELOG, 0)
    with (
        faults.planned("", "", Fault.EXPIRED, -1),
        pytest.raises(LakeUnavailable, match=REFUSALS[Fault.EXPIRED]),
    ):
        faulty.changelog.is_newest_version(CHANGELOG, 0)
    with (
        faults.planned("PUT", "people/_delta_log/", Fault.CONFLICT, -1),
        pytest.raises(LakeUnavailable, match=REFUSALS[Fault.CONFLICT]),
    ):
        published(2)
    published(2)
    with (
        faults.planned("PUT", "people/_delta_log/", Fault.EXPIRED, -1),
        pytest.raises(LakeUnavailable, match=REFUSALS[Fault.EXPIRED]),
    ):
        faulty.changelog.restore(
            CHANGELOG, 0, app_id="app/restated", txn_version=1, user_metadata="{}"
        )
    for path in ("", ".parquet"):
        with faults.planned("", path, Fault.EXPIRED, -1), pytest.raises(LakeUnavailable):
            faulty.mirrors.reason_unreadable(MIRROR, 0)
    assert faulty.mirrors.reason_unreadable(MIRROR, 0) is None
    assert faulty.mirrors.reason_unreadable(MIRROR, 1) is not None


def test_an_answer_without_a_code_is_understood_by_its_status(object_store: ObjectStore) -> None:
    """An answer to HEAD has no body; Java says the status alone."""
    refused = JavaError(
        "software.amazon.awssdk.services.s3.model.S3Exception",
        "Forbidden (Service: S3, Status Code: 403, Request ID: null)",
    )
    assert "is not accessible with these credentials" in str(
        error_of(object_store.prefix(), [refused])
    )


@pytest.mark.soak
def test_spark_gives_up_a_store_that_stays_busy(faulty: Lake, faults: Faults) -> None:
    """After some minutes, where S3A's own pauses would take hours."""
    write = a_write(faulty.mirrors, 1, "append", [{"id": 1, "name": "a"}])
    with (
        faults.planned("PUT", "people/_delta_log/", Fault.SLOW_DOWN, -1),
        pytest.raises(LakeUnavailable, match="is busy, and was busy at each retry"),
    ):
        faulty.mirrors.write(write)
    assert faulty.mirrors.write(write).delta_version == 0


def test_a_commit_is_not_judged_without_its_facts(faulty: Lake, faults: Faults) -> None:
    """A store that fails meanwhile is no reason to take a commit for one that changed columns."""
    faulty.mirrors.write(a_write(faulty.mirrors, 1, "append", [{"id": 1, "name": "a"}]))
    path = faulty.mirrors._lake / MIRROR  # type: ignore[attr-defined]
    (metadata,) = dict(actions(commit_file(path, 0).read_bytes().decode(), "metaData")).values()
    metadata["configuration"]["delta.checkpointInterval"] = "20"
    commit_file(path, 1).write_bytes(json.dumps({"metaData": metadata}).encode())
    with faults.planned("GET", "list-type", Fault.EXPIRED, -1), pytest.raises(LakeUnavailable):
        faulty.mirrors.log_since(MIRROR, 0)
    (commit,) = faulty.mirrors.log_since(MIRROR, 0).commits
    assert commit.metadata_change == MetadataChange(False, ("delta.checkpointInterval",))


def test_a_store_that_fails_a_reader_is_named(
    faulty: Lake, faults: Faults, spark: SparkProcess
) -> None:
    """Also while it is asked whether a table with widened columns has deletion vectors, or which
    files upkeep may delete."""
    faulty.mirrors.write(a_write(faulty.mirrors, 1, "append", [{"id": 1, "name": "a"}]))
    wider: list[MirrorStep] = [
        SetProperties((WIDENING_PROPERTY,)),
        WidenColumn("id", pa.decimal128(20, 0)),
    ]
    (*_, commit) = faulty.mirrors.evolve(MIRROR, wider, app_id="e", txn_version=2, after_version=0)
    lake = faulty.mirrors._lake  # type: ignore[attr-defined]
    version = DeltaVersion(lake / MIRROR, commit.delta_version, None, 1)
    with faults.planned("GET", ".crc", Fault.EXPIRED, -1), pytest.raises(LakeUnavailable):
        version_rows(version)
    upkeep = SparkUpkeep(lake, spark=spark, keep=timedelta(days=7))
    with faults.planned("", "", Fault.EXPIRED, -1), pytest.raises(LakeUnavailable):
        upkeep.vacuum(MIRROR)
    assert version_rows(version)["id"].to_pylist() == [1]


def test_a_store_that_fails_between_two_steps_is_named(faulty: Lake, faults: Faults) -> None:
    """As between the step that was found missing and the clustering that it would break."""
    rows = [{"id": 1, "name": "a"}]
    faulty.mirrors.write(a_write(faulty.mirrors, 1, "append", rows, cluster_by=("name",)))
    newest = faulty.mirrors.version(MIRROR)
    assert newest is not None

    def dropped() -> None:
        faulty.mirrors.evolve(
            MIRROR,
            [SetProperties((MAPPING_PROPERTY,)), DropColumns(("name",))],
            app_id="e",
            txn_version=2,
            after_version=newest,
        )

    with (
        faults.planned("GET", f"{newest + 1:020d}.crc", Fault.EXPIRED, -1),
        pytest.raises(LakeUnavailable, match=REFUSALS[Fault.EXPIRED]),
    ):
        dropped()
    dropped()
    assert faulty.mirrors.schema(MIRROR, newest + 3).names == ["id"]


def test_a_store_that_fails_a_trial_is_named(
    object_store: ObjectStore, faults: Faults, spark: SparkProcess, tmp_path: Path
) -> None:
    """Whatever of the trial it fails, and although nothing can be deleted then."""
    lake, staging = object_store.faulty_prefix(), tmp_path / "staging"
    with faults.planned("", "", Fault.EXPIRED, -1):
        with pytest.raises(LakeUnavailable):
            require_correct_writes(spark, lake, staging)
        with pytest.raises(ConfigurationError, match="does not see"):
            require_visible(spark.session(), lake, staging, "Spark")


def test_parts_that_nobody_finished_are_given_up(
    object_store: ObjectStore, spark: SparkProcess
) -> None:
    """Below the source's folder, and nowhere else."""
    prefix = object_store.prefix()
    for source in ("shop", "shop2"):
        object_store.begin_upload(prefix / f"{source}/_changes/d/t/batch-000000000001-v1.parquet")
    ParquetSegments(prefix, spark=spark).abort_uploads("shop")
    left = [key for key in object_store.uploads() if key.startswith(f"{prefix.key}/")]
    assert left == [f"{prefix.key}/shop2/_changes/d/t/batch-000000000001-v1.parquet"]


def test_a_store_is_tried_before_it_is_used(object_store: ObjectStore) -> None:
    """One that keeps its word leaves nothing behind; one that is not there, or overwrites, is
    refused in a sentence."""
    lake = object_store.prefix()
    require_conditional_writes(lake)
    assert not lake.is_dir()
    nowhere = object_path("s3://nobody/lake", object_store.options())
    with pytest.raises(LakeUnavailable, match="has no such bucket"):
        require_conditional_writes(nowhere)


def test_a_store_whose_answer_is_lost_is_not_one_that_overwrites(
    object_store: ObjectStore, faults: Faults
) -> None:
    """The client asks again, and is told that the object is there."""
    before = len(faults.done())
    with faults.planned("PUT", "_lockstep-probe", Fault.LOST_ANSWER):
        require_conditional_writes(object_store.faulty_prefix())
    assert len(faults.done()) == before + 1


def test_a_store_that_is_never_free_is_not_one_that_overwrites(
    object_store: ObjectStore, faults: Faults
) -> None:
    """It says of each new object that another request has its name."""
    with (
        faults.planned("PUT", "_lockstep-probe", Fault.CONFLICT, -1),
        pytest.raises(LakeUnavailable, match=REFUSALS[Fault.CONFLICT]),
    ):
        require_conditional_writes(object_store.faulty_prefix())


def test_a_store_that_overwrites_is_refused(
    object_store: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two runs could commit one version."""

    def overwritten(path: ObjectPath, content: bytes) -> bool:
        path.write_bytes(content)
        return True

    monkeypatch.setattr(ObjectPath, "create_once", overwritten)
    with pytest.raises(ConfigurationError, match="overwrite the first"):
        require_conditional_writes(object_store.prefix())
