"""Spark's process: begun in the way that starts fastest, silent, and gone with the process that
started it; and the sessions that writes get of it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from lockstep.pipeline.mirror.strategy import Size
from lockstep.pipeline.values.errors import ConfigurationError, JavaMissing, LakeUnavailable
from lockstep.resources.adapters import Adapters
from lockstep.resources.lake.delta.versions import FilesSize, files_size, table_size
from lockstep.resources.lake.spark import session
from lockstep.resources.lake.spark.jars import S3_LOCK, class_path, jars_folder
from lockstep.resources.lake.spark.java import archive_path, require_java
from lockstep.resources.lake.spark.log_store import log_store_jar
from lockstep.resources.lake.spark.session import (
    JavaProcess,
    SparkProcess,
    define_environment,
    settings_in,
    spark_home,
)
from lockstep.resources.lake.spark.spark import (
    FEW_ROWS_SETTINGS,
    exclusive_session,
    session_settings,
)
from tests.dagster.place import settings_for
from tests.lake.conftest import Lake, disk_lake
from tests.lake.made import a_write
from tests.lake.strangers import require_closed

ROOT = Path(__file__).parents[2]


def child(folder: Path, program: str, **more: str) -> subprocess.Popen[bytes]:
    """A Python process in `folder`, whose temporary files go to `folder`/tmp; `more` variables."""
    (folder / "tmp").mkdir(exist_ok=True)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(folder / "tmp"), **more}
    return subprocess.Popen(
        [sys.executable, "-c", program],
        cwd=folder,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def test_java_dies_with_a_killed_run(tmp_path: Path) -> None:
    """Kill -9 closes the pipe that Java reads; the writing end of ours tells when it is gone. What
    it leaves among the temporary files goes with the next start, and what others use does not.
    Before, nobody waits for a start in vain, and the next one writes; no line of Spark's reaches
    the terminal, and no program of the machine's is needed but those of `spark-submit`, as Hadoop's
    own files would (`LocalFiles.java`). A connection that Java resets is told by an error alone: no
    traceback. No thread adds a variable to the environment or deletes one, since delta-rs may read
    it then. Delta's settings are loaded before anything is written: Spark refuses to set one that
    another thread is just registering."""
    program = """
import os, socket, struct, sys, threading
def heard(event, given):
    if threading.current_thread() is not threading.main_thread():
        added = event == "os.putenv" and os.fsdecode(given[0]) not in os.environ
        if added or event == "os.unsetenv":
            print(event, given)
sys.addaudithook(heard)
from pathlib import Path
from py4j.java_gateway import GatewayClient
from py4j.protocol import ERROR
from lockstep.resources.lake.lake import Lake
lake = Lake(Path("lake"), staging="staging", spark_conf={}, on_warning=print)
assert "pyspark" not in sys.modules
lake.mirrors.prepare()
spark = lake.mirrors._spark
spark.stop()
print("stopped", flush=True)
from lockstep.resources.lake.spark.java_classes import jvm_of, scala_object
settings = scala_object(jvm_of(spark.session()), "org.apache.spark.sql.internal.SQLConf")
loaded = settings.containsConfigKey("spark.databricks.delta.allFilesInCrc.enabled")
from lockstep.pipeline.ports.mirror_writes import staged_paths
from tests.lake.made import PEOPLE, a_write, update
for number, mode in ((1, "append"), (2, "merge")):
    write = a_write(lake.mirrors, number, mode, [update(id=number)], mirror="m")
    lake.mirrors.write(write)
    lake.mirrors.unstage(*staged_paths(write))
java = spark.session().sparkContext._gateway.proc.pid

def reset():
    with server.accept()[0] as connection:
        connection.recv(1)
        linger = struct.pack("ii", 1, 0)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)

with socket.create_server(("127.0.0.1", 0)) as server:
    threading.Thread(target=reset).start()
    client = GatewayClient("127.0.0.1", server.getsockname()[1])
    print(java, loaded, client.send_command("x" * 100_000, retry=False) == ERROR, flush=True)
sys.stdin.read()
"""
    home = require_java(os.environ).program.resolve().parents[1]
    programs = tmp_path / "tmp" / "programs"
    programs.mkdir(parents=True)
    for name in ("bash", "dirname"):
        (programs / name).symlink_to(str(shutil.which(name)))
    process = child(tmp_path, program, PATH=str(programs), JAVA_HOME=str(home))
    assert process.stdout is not None
    assert process.stdout.readline() == b"stopped\n"
    number, *told = process.stdout.readline().split()
    with ending(int(number)):
        process.send_signal(signal.SIGKILL)
        assert (told, process.communicate()) == ([b"True"] * 2, (b"", b""))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["lake", "staging", "tmp"]
    assert [path.name for path in (tmp_path / "lake").iterdir()] == ["m"]
    temporary = tmp_path / "tmp"
    [left] = [path for path in temporary.glob("lockstep-spark-*") if path.is_dir()]
    used = scratches(temporary)
    assert (len(used), str(left) in used, left.exists()) == (2, False, False)
    assert list(temporary.glob("lockstep-*")) == []


def test_what_a_java_leaves_that_was_starting_goes_with_the_next_start(tmp_path: Path) -> None:
    """A run that needs no Spark ends while its Java still starts. Java creates its folder again if
    it is missing, and nobody would remove a folder without a lock."""
    program = """
import os, sys, time
from pathlib import Path
from lockstep.resources.lake.lake import Lake
Lake(Path("lake"), staging="staging", spark_conf={}, on_warning=print).mirrors.prepare()
java = []
while not java:
    time.sleep(0.01)
    # The last child: `java -version` ended before it.
    if list(Path(os.environ["TMPDIR"]).glob("lockstep-spark-*/spark.log")):
        tasks = Path("/proc/self/task").iterdir()
        java = [word for task in tasks for word in (task / "children").read_text().split()]
print(java[-1], flush=True)
sys.stdin.read()
"""
    process = child(tmp_path, program)
    assert process.stdout is not None
    while not (line := process.stdout.readline()).strip().isdigit():
        assert line
    with ending(int(line)):
        process.communicate()
    temporary = tmp_path / "tmp"
    assert len(scratches(temporary)) == 2
    assert list(temporary.glob("lockstep-*")) == []


def scratches(temporary: Path) -> list[str]:
    """The folders that a process makes among the temporary files, two at a time as starts of Spark
    do, and removes."""
    program = """
from lockstep.resources.lake.spark.session import make_scratch
one, other = make_scratch(), make_scratch()
assert one.folder.is_dir()
for each in one, other:
    print(each.folder)
    each.end()
"""
    return subprocess.run(
        [sys.executable, "-c", program],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(temporary)},
    ).stdout.split()


@contextmanager
def ending(number: int) -> Iterator[None]:
    """What is done within makes a process end, at the latest a minute after it."""
    import select

    process = os.pidfd_open(number)
    try:
        yield
        poll = select.poll()
        poll.register(process, select.POLLIN)
        assert poll.poll(60_000)
    finally:
        os.close(process)


@pytest.mark.parametrize("memory", ["lots", "320m"])
def test_a_start_that_fails_is_told_where_spark_is_needed(tmp_path: Path, memory: str) -> None:
    """`prepare` is silent; the one who waits gets the refusal with Java's own words, or Spark's."""
    program = f"""
from lockstep.resources.lake.spark.session import SparkProcess
from lockstep.pipeline.values.errors import ConfigurationError
spark = SparkProcess({{"spark.driver.memory": "{memory}"}}, on_warning=print)
spark.prepare()
try:
    spark.session()
except ConfigurationError as error:
    print(error.message, error.hint)
spark.stop()
"""
    process = child(tmp_path, program)
    said, complained = process.communicate()
    assert said.startswith(b"Spark did not start: ")
    assert b"`spark.driver.memory`" in said
    assert (complained, process.returncode) == (b"", 0)
    assert list((tmp_path / "tmp").glob("lockstep-*")) == []


def test_a_start_that_the_system_refuses_is_told_in_its_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No Java process ended without a message: there was none."""
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    with pytest.raises(LakeUnavailable) as caught:
        JavaProcess().start(settings_in(tmp_path, {}, None))
    program = f"{tmp_path}/./bin/spark-submit"
    assert caught.value.message == (
        f"Spark did not start: [Errno 2] No such file or directory: {program!r}"
    )


def test_a_stopped_spark_that_never_ran_costs_nothing() -> None:
    """Stopping is always allowed."""
    SparkProcess({}, on_warning=print).stop()


@pytest.mark.skipif(sys.platform != "linux", reason="ports are seen in /proc")
def test_no_other_account_speaks_to_it(spark: SparkProcess) -> None:
    """Spark's ports take Java's objects, and those run code: only from who has the secret."""
    java: Any = spark.session().sparkContext._gateway
    require_closed(java.proc.pid)


def test_a_cluster_is_asked_what_it_sees(
    spark: SparkProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What its tasks read of ours and write for us is there, and nothing of it stays; where they
    have another folder below the same path, a start is refused. (The tasks are those of a Spark
    that is there; executors of a cluster's own: `test_executors_must_see_the_lake`.)"""
    session, lake = spark.session(), tmp_path / "lake"
    monkeypatch.chdir(tmp_path)
    apart = Path("/proc/self/cwd") / f"lake-{uuid4()}"
    ours, other = (
        SparkProcess(
            {"spark.master": "local-cluster[1,1,512]"},
            lake=place,
            staging=tmp_path / "staging",
            on_warning=print,
        )
        for place in (lake, apart)
    )
    ours._require_visible(session)
    assert list(lake.rglob("*")) == []
    java: Any = session.sparkContext._gateway
    try:
        with pytest.raises(ConfigurationError, match=f"does not see {apart} as this machine does"):
            other._require_visible(session)
    finally:
        shutil.rmtree(Path(f"/proc/{java.proc.pid}/cwd") / apart.name)


@pytest.mark.soak
def test_executors_must_see_the_lake(tmp_path: Path) -> None:
    """Asked before anything is written. Where each has a folder of its own below the same path, a
    start is refused; else, their rows are in the lake. A Spark that was stopped leaves nothing but
    the lake, and has said nothing."""
    program = """
from pathlib import Path
from lockstep.pipeline.values.errors import ConfigurationError
from lockstep.resources.lake.spark.session import SparkProcess
from tests.uncompiled import UNCOMPILED
from tests.lake.conftest import lake_at
from tests.lake.made import PEOPLE, a_write, content
conf = {
    "spark.master": "local-cluster[1,1,512]",
    "spark.executor.memory": "512m",
    "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    **UNCOMPILED,
}
staging = Path("staging").absolute()

class Asked(SparkProcess):
    def _require_visible(self, session):
        super()._require_visible(session)
        apart = Path("/proc/self/cwd/lake")
        other = SparkProcess(conf, lake=apart, staging=staging, on_warning=print)
        try:
            other._require_visible(session)
        except ConfigurationError as error:
            print(error.message)

lake = Path("lake").absolute()
spark = Asked(conf, lake=lake, staging=staging, on_warning=print)
mirrors = lake_at(lake, staging, spark, in_memory=False).mirrors
mirrors.write(a_write(mirrors, 1, "append", [{"id": 1, "name": "one"}]))
print(len(content(mirrors, "shop/shop/people", PEOPLE, 0)))
spark.stop()
"""
    process = child(tmp_path, program)
    try:
        said, complained = process.communicate()
    finally:
        shutil.rmtree(spark_home() / "work", ignore_errors=True)
    refused, written = said.decode().splitlines()
    assert refused.endswith("does not see /proc/self/cwd/lake as this machine does")
    assert (written, complained, process.returncode) == ("1", b"", 0)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["lake", "staging", "tmp"]
    assert list((tmp_path / "tmp").glob("lockstep-*")) == []


@pytest.mark.parametrize(
    ("told", "message"),
    [
        ('openjdk version "11.0.2" 2019-01-15', "is Java 11; Spark needs 17 or newer"),
        ('java version "1.8.0_392"', "is Java 8; Spark needs 17 or newer"),
        ("what?", "does not print its version"),
    ],
)
def test_an_old_java_is_refused(tmp_path: Path, told: str, message: str) -> None:
    """With the command that installs a newer one."""
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text(f"#!/bin/sh\necho '{told}' >&2\n")
    java.chmod(0o755)
    with pytest.raises(JavaMissing, match=message) as caught:
        require_java({"PATH": str(java.parent)})
    assert "apt-get install openjdk-17-jre-headless" in caught.value.hint


def test_no_java_at_all_is_refused(tmp_path: Path) -> None:
    """JAVA_HOME is believed first, and named when it is wrong."""
    with pytest.raises(JavaMissing, match="no java is on PATH"):
        require_java({"PATH": str(tmp_path)})
    with pytest.raises(JavaMissing, match="JAVA_HOME is"):
        require_java({"JAVA_HOME": str(tmp_path), "PATH": os.environ["PATH"]})


def test_a_newer_java_is_found() -> None:
    """The one these tests run on."""
    assert require_java(os.environ).major >= 17


@pytest.mark.skipif(sys.platform != "linux", reason="what a process maps is seen in /proc")
def test_java_uses_the_archive_of_classes_whatever_the_lake_is(spark: SparkProcess) -> None:
    """The class path begins as the archive's does: what a store needs is at its end."""
    folder = jars_folder(sys.prefix)
    jars = (*class_path(folder), log_store_jar())
    java: Any = spark.session().sparkContext._gateway
    maps = Path(f"/proc/{java.proc.pid}/maps").read_text()
    assert str(archive_path(folder, jars, require_java(os.environ))) in maps
    paths = getattr(java.jvm, "java.lang.System").getProperty("java.class.path").split(":")
    assert paths[: len(jars)] == [str(jar) for jar in jars]
    assert paths[-len(class_path(folder, S3_LOCK)) :] == [
        str(jar) for jar in class_path(folder, S3_LOCK)
    ]


def test_no_thread_of_a_run_that_begins_changes_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What opens the lake in the background finds every variable defined."""
    names = ("SPARK_HOME", "SPARK_AUTH_SOCKET_TIMEOUT", "SPARK_BUFFER_SIZE")
    for name in names:
        monkeypatch.delenv(name, raising=False)
    settings = settings_for(tmp_path, "shop")
    with Adapters(settings, on_warning=print) as adapters:
        found = list[set[str]]()
        monkeypatch.setattr(adapters, "ledger", lambda: found.append(set(os.environ)))
        monkeypatch.setattr(threading.Thread, "start", lambda thread: thread.run())
        adapters.warm([])
    assert found[0].issuperset(names)


def test_the_spark_of_pyspark_is_started_and_jars_are_named_once() -> None:
    """Not another one that the machine has."""
    found = {"SPARK_HOME": "/opt/spark", "SPARK_DIST_CLASSPATH": "/own.jar"}
    for _ in range(2):
        define_environment(found, [Path("/store.jar")])
    assert found["SPARK_HOME"] == str(spark_home())
    assert found["SPARK_DIST_CLASSPATH"] == "/own.jar:/store.jar"


def test_java_speaks_english_and_names_files_as_before() -> None:
    """Its errors are told apart by the system's words, which have the language of the locale."""
    for locale in ({"LC_ALL": "de_DE.UTF-8"}, {"LC_CTYPE": "de_DE.UTF-8"}):
        found = {"LANG": "de_DE.UTF-8", **locale}
        define_environment(found)
        locales = {name: text for name, text in found.items() if name.startswith(("LC_", "LANG"))}
        assert locales == {"LANG": "de_DE.UTF-8", "LC_CTYPE": "de_DE.UTF-8", "LC_MESSAGES": "C"}


def test_a_java_process_that_is_gone_is_ended_without_a_word(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """PySpark's warning would be the last lines of a run, after what happened and the hint."""
    from py4j.protocol import Py4JError
    from pyspark import SparkContext

    monkeypatch.setattr(SparkContext, "_active_spark_context", None)

    class Gone:
        def stop(self) -> None:
            raise Py4JError("the process is gone")

    context: Any = object.__new__(SparkContext)
    vars(context)["_jsc"] = Gone()
    running = session.RunningSpark(context)
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        session._stop_spark(running)
    assert warned == []


# -- which session a write gets: few rows are not worth compiling for --------------------


_BROADCAST = "spark.sql.autoBroadcastJoinThreshold"


def test_sessions_are_used_again_each_for_its_size(spark: SparkProcess) -> None:
    """Two at a time are two; one that saw an error is not given again."""
    taken = partial(exclusive_session, spark)
    with taken() as many, taken(few_rows=True) as few, taken() as other:
        assert many is not other
        assert (
            few.conf.get(_BROADCAST) == FEW_ROWS_SETTINGS[_BROADCAST] != many.conf.get(_BROADCAST)
        )
    with taken(few_rows=True) as again:
        assert again is few
    with pytest.raises(ZeroDivisionError), taken(few_rows=True) as again:
        assert again is few
        raise ZeroDivisionError
    with taken(few_rows=True) as new:
        assert new is not few


def test_the_user_has_the_last_word(spark: SparkProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the [spark] table sets is not switched off for few rows."""
    monkeypatch.setattr(spark, "_user_settings", {_BROADCAST: "1"})
    idle = spark.idle_sessions(few_rows=True)
    idle.clear()
    with exclusive_session(spark, few_rows=True) as session:
        assert session.conf.get(_BROADCAST) == spark.session().conf.get(_BROADCAST)
    idle.clear()


def test_what_holds_for_a_commit_gives_way_again(spark: SparkProcess) -> None:
    """To what the user set; it ends where nobody had set it, also behind an error."""
    session, theirs, ours = spark.session(), "spark.lockstep.theirs", "spark.lockstep.ours"
    session.conf.set(theirs, "before")
    with pytest.raises(ZeroDivisionError), session_settings(session, {theirs: "now", ours: "now"}):
        assert {session.conf.get(key) for key in (theirs, ours)} == {"now"}
        raise ZeroDivisionError
    assert (session.conf.get(theirs), session.conf.get(ours, None)) == ("before", None)
    session.conf.unset(theirs)


def test_files_say_how_much_they_hold(disk: Lake, folder: Path, tmp_path: Path) -> None:
    """The mirror's own, all of them; and staged ones, unless one is damaged."""
    for number in (1, 2):
        rows = [{"id": 10 * number + one} for one in range(3)]
        disk.mirrors.write(a_write(disk.mirrors, number, "append", rows))
    mirror = folder / "shop/shop/people"
    size = sum(file.stat().st_size for file in mirror.glob("*.parquet"))
    assert table_size(DeltaTable(mirror)) == Size(6, size)
    two, broken = tmp_path / "two.parquet", tmp_path / "broken.parquet"
    pq.write_table(pa.table({"id": [1, 2]}), two)
    broken.write_bytes(b"PAR1, and then nothing")
    values = pq.read_metadata(two).row_group(0).total_byte_size
    assert files_size([two] * 2) == FilesSize(Size(4, 2 * two.stat().st_size), 2 * values)
    assert files_size([two, broken]) is None


def test_a_write_goes_by_both(
    disk: Lake, tmp_path: Path, spark: SparkProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Few rows into a mirror of many are not few."""
    asked: list[bool] = []

    def told(
        spark: SparkProcess, *, few_rows: bool = False
    ) -> AbstractContextManager[SparkSession]:
        asked.append(few_rows)
        return exclusive_session(spark, few_rows=few_rows)

    monkeypatch.setattr("lockstep.resources.lake.mirror.mirror.exclusive_session", told)
    mirrors = disk_lake(tmp_path, spark, Size(3, 1 << 20)).mirrors
    mirrors.write(a_write(mirrors, 1, "append", [{"id": 1}, {"id": 2}]))
    mirrors.write(a_write(mirrors, 2, "append", [{"id": 3}]))
    mirrors.write(a_write(mirrors, 3, "append", [{"id": 4}]))
    assert asked == [True, True, False]
