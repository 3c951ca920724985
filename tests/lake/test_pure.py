"""The lake's decisions that need no lake: settings, statement, error names, jars."""

from __future__ import annotations

import errno
from dataclasses import replace
from pathlib import Path

import pytest
from obstore.store import MemoryStore
from pyspark.errors.exceptions.connect import SparkConnectGrpcException

from lockstep.pipeline.values.errors import (
    CommitConflict,
    ConfigurationError,
    LakeUnavailable,
    LockstepError,
    MirrorRefused,
    SetupIncomplete,
)
from lockstep.resources.lake.delta.statement import merge_statement
from lockstep.resources.lake.spark.jars import (
    DELTA_LOCK,
    S3_LOCK,
    class_path,
    locked_jars,
    locks_of,
    missing_or_damaged,
)
from lockstep.resources.lake.spark.java import Java, archive_path
from lockstep.resources.lake.spark.java_errors import JavaError, error_of, spark_errors
from lockstep.resources.lake.spark.remote import session_error
from lockstep.resources.lake.spark.session import memory_limits, start_hint
from lockstep.resources.lake.spark.settings import (
    SECOND_COMPILER_BYTES,
    SparkSettings,
    driver_memory,
)
from lockstep.resources.lake.store.paths import Bucket, ObjectPath
from lockstep.resources.lake.store.storage import mirror_errors

GIB = 1024**3


def settings(user: dict[str, str]) -> SparkSettings:
    return SparkSettings(
        user_settings=user,
        class_path=(Path("/jars/a.jar"), Path("/jars/b.jar")),
        archive=None,
        log4j=Path("/scratch/log4j2.properties"),
        scratch=Path("/scratch"),
        cores=2,
        heap_bytes=2 * GIB,
    )


def test_the_users_settings_win() -> None:
    """Anything Spark understands can be set."""
    assert settings({"spark.driver.memory": "3g"}).configuration()["spark.driver.memory"] == "3g"


def test_what_delta_needs_is_added_to_not_replaced() -> None:
    """A user's jars and extensions come after Delta's."""
    conf = settings({"spark.driver.extraClassPath": "/my.jar", "spark.sql.extensions": "Mine"})
    assert conf.configuration()["spark.driver.extraClassPath"] == "/jars/a.jar:/jars/b.jar:/my.jar"
    assert (
        conf.configuration()["spark.sql.extensions"]
        == "io.delta.sql.DeltaSparkSessionExtension,Mine"
    )


@pytest.mark.parametrize(
    ("log_bytes", "level"), [(0, 1), (SECOND_COMPILER_BYTES - 1, 1), (SECOND_COMPILER_BYTES, 4)]
)
def test_much_of_the_log_has_the_second_compiler(log_bytes: int, level: int) -> None:
    """Whatever the user adds comes after it."""
    given = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=3"}
    options = replace(settings(given), log_bytes=log_bytes).configuration()[
        "spark.driver.extraJavaOptions"
    ]
    assert [word for word in options.split() if "Tiered" in word] == [
        f"-XX:TieredStopAtLevel={level}",
        "-XX:TieredStopAtLevel=3",
    ]


def test_secrets_stay_off_the_command_line() -> None:
    """Only what the launcher itself needs is visible to the machine's other users."""
    launch = settings({"spark.hadoop.fs.s3a.secret.key": "hush"}).command_line_settings()
    assert "spark.hadoop.fs.s3a.secret.key" not in launch
    assert launch["spark.driver.extraClassPath"] == "/jars/a.jar:/jars/b.jar"


@pytest.mark.parametrize(("machine", "heap"), [(2, 1), (8, 2), (24, 6), (256, 8)])
def test_a_quarter_of_the_memory_is_spark_s(machine: int, heap: int) -> None:
    """From one GiB to eight."""
    assert driver_memory(machine * GIB) == heap * GIB


def test_spark_has_half_of_what_its_process_may_have(tmp_path: Path) -> None:
    """The least limit of the control groups counts, those around its own among them."""
    groups = tmp_path / "sys/fs/cgroup"
    for group, limit in (("", "max"), ("lockstep.slice", 4 * GIB), ("lockstep.slice/run", 5 * GIB)):
        (groups / group).mkdir(parents=True, exist_ok=True)
        (groups / group / "memory.max").write_text(f"{limit}\n")
    own_groups = tmp_path / "proc/self/cgroup"
    own_groups.parent.mkdir(parents=True)
    own_groups.write_text("1:cpu:/other\n0::/lockstep.slice/run\n")
    limits = [*memory_limits(tmp_path)]
    assert driver_memory(64 * GIB, limits) == 2 * GIB
    assert driver_memory(4 * GIB, limits) == GIB
    assert driver_memory(4 * GIB, [GIB * 3 // 4]) == GIB // 2, "Spark starts with no less"
    assert [*memory_limits(tmp_path / "nowhere")] == []


def test_identifiers_are_quoted_everywhere() -> None:
    """A name can end neither a quotation nor a statement."""
    text = merge_statement(
        mirror="/lake/a`b",
        columns=["id", "x`; drop"],
        source_columns=["id", "x`; drop"],
        key=["id"],
        bounds=[("id", "1", "2")],
        keep_marks={},
        soft=False,
        completed_columns=(),
    )
    assert text == (
        "merge into delta.`/lake/a``b` as t using changes as s\n"
        "on t.`id` = s.`id` and t.`id` between 1 and 2\n"
        "when matched and s.`_change_type` = 'delete' then delete\n"
        "when matched then update set t.`id` = s.`id`, t.`x``; drop` = s.`x``; drop`\n"
        "when not matched and s.`_change_type` <> 'delete' then insert (`id`, `x``; drop`) "
        "values (s.`id`, s.`x``; drop`)"
    )


def chained(*errors: tuple[str, str]) -> list[JavaError]:
    return [JavaError(name, message) for name, message in errors]


def test_java_s_errors_have_names_of_ours() -> None:
    """Races, storage, memory, data, and the rest."""
    wrapped = ("org.apache.spark.SparkException", "Job aborted")
    cases: list[tuple[tuple[str, str], type[Exception]]] = [
        (("io.delta.exceptions.ConcurrentAppendException", "x"), CommitConflict),
        (("java.io.IOException", "No space left on device"), LakeUnavailable),
        (("java.lang.OutOfMemoryError", "Java heap space"), LakeUnavailable),
        (("org.apache.spark.SparkArithmeticException", "value 12345"), MirrorRefused),
        (("java.lang.IllegalStateException", "one\n\tat two"), MirrorRefused),
        (("java.lang.RuntimeException", "f.parquet is not a Parquet file"), MirrorRefused),
        (("java.lang.IllegalStateException", "a stopped SparkContext"), LakeUnavailable),
        (("java.lang.InterruptedException", ""), LakeUnavailable),
        (("java.lang.NoClassDefFoundError", "io/delta/Table"), LakeUnavailable),
        (("java.io.IOException", "Stream closed"), LakeUnavailable),
    ]
    for cause, kind in cases:
        assert type(error_of(Path("/lake/t"), chained(wrapped, cause))) is kind


def test_a_java_that_died_is_no_fault_of_a_table(tmp_path: Path) -> None:
    """Its connection is refused from then on: the run fails, and the next one writes."""
    with (
        pytest.raises(LakeUnavailable, match="Spark stopped while writing"),
        mirror_errors(tmp_path, tmp_path / "t"),
        spark_errors(tmp_path / "t"),
    ):
        raise ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused")


def test_a_name_is_no_failure_of_the_machine() -> None:
    """A file or a column can be called like what Spark says when it is stopped."""
    folder = Path("/lake/shop/cancelled_orders")
    damaged = ("java.lang.RuntimeException", f"file:{folder}/part-0.parquet is not a Parquet file")
    unknown = ("org.apache.spark.sql.AnalysisException", "[X] no column `shutdown`")
    for cause in (damaged, unknown):
        assert type(error_of(folder, chained(cause))) is MirrorRefused


def test_a_session_that_cannot_be_set_is_no_fault_of_a_table() -> None:
    """Spark refuses a setting of Delta's while another thread is loading them: the run fails, and
    the next one writes."""
    refused = JavaError(
        "org.apache.spark.sql.AnalysisException",
        '[CANNOT_MODIFY_CONFIG] Cannot modify the value of the Spark config: "spark.x".',
        "CANNOT_MODIFY_CONFIG",
    )
    error = error_of(Path("/lake/t"), [refused])
    assert type(error) is LakeUnavailable
    assert str(error) == "Spark could not write /lake/t: CANNOT_MODIFY_CONFIG"


def test_errors_of_data_hold_no_values() -> None:
    """The name of the error, never its text, which quotes what it met."""
    error = JavaError("org.apache.spark.SparkArithmeticException", "12345", "CAST_OVERFLOW")
    told = str(error_of(Path("/lake/t"), [error]))
    assert told == "Spark refused its mirror: CAST_OVERFLOW: SparkArithmeticException"
    names = JavaError("org.apache.spark.sql.AnalysisException", "[X] no column `c`;\nplan", "X")
    assert str(error_of(Path("/lake/t"), [names])) == "Spark refused its mirror: [X] no column `c`;"


def test_missing_jars_send_to_set_up(tmp_path: Path) -> None:
    """Before Java is started at all."""
    with pytest.raises(SetupIncomplete) as caught:
        class_path(tmp_path)
    assert caught.value.hint == "run `lockstep setup`"


@pytest.mark.parametrize(
    ("url", "locks"),
    [
        ("s3://bucket", (DELTA_LOCK, S3_LOCK)),
        ("gs://bucket", (DELTA_LOCK,)),
        ("abfss://files@account.dfs.core.windows.net", (DELTA_LOCK,)),
    ],
)
def test_jars_of_s3_are_for_s3(url: str, locks: tuple[str, ...]) -> None:
    """Another store has a connector of the user's, and needs no S3A beside it."""
    assert locks_of(ObjectPath(Bucket(url, MemoryStore()), "lake")) == locks
    assert locks_of(Path("/lake")) == locks_of(None) == (DELTA_LOCK,)


def test_a_jar_with_other_content_is_not_sound(tmp_path: Path) -> None:
    """A file of the right name is not enough."""
    for jar in locked_jars():
        (tmp_path / jar.file_name).write_bytes(b"other")
    assert missing_or_damaged(tmp_path, locked_jars()) == list(locked_jars())


@pytest.mark.parametrize(
    ("master", "told"),
    [("local[2]", "the free memory"), ("spark://host:7077", "spark://host:7077 logs")],
)
def test_a_spark_that_does_not_start_is_looked_into_where_it_starts(master: str, told: str) -> None:
    assert told in start_hint({"spark.master": master})


@pytest.mark.parametrize(
    ("details", "kind", "told"),
    [
        (
            "Tls handshake failed: CERTIFICATE_VERIFY_FAILED: self signed",
            ConfigurationError,
            "trust",
        ),
        ("last error: Connection reset by peer", LakeUnavailable, "reset by peer"),
    ],
)
def test_who_gives_no_session_says_why(details: str, kind: type[LockstepError], told: str) -> None:
    """The words of gRPC, which PySpark hands on as it prints them."""
    printed = f'<_InactiveRpcError of RPC:\n\tstatus = UNAVAILABLE\n\tdetails = "{details}"\n>'
    error = session_error("sc://host:443", SparkConnectGrpcException(printed))
    assert type(error) is kind
    assert told in error.message


def test_an_archive_is_of_the_jars_as_they_are(tmp_path: Path) -> None:
    """Java rejects it without a word where one of them is another file by now."""
    java, jar = Java(Path("java"), 17, "a build"), tmp_path / "log-store.jar"
    jar.write_bytes(b"one")
    first = archive_path(tmp_path, [jar], java)
    assert archive_path(tmp_path, [jar], java) == first
    jar.write_bytes(b"another")
    assert archive_path(tmp_path, [jar], java) != first
