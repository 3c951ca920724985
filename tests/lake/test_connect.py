"""A Spark that is reached by Spark Connect: what it is asked for, and what is refused."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from uuid import UUID

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import functions as f

from lockstep.pipeline.mirror.generations import SharedColumn
from lockstep.pipeline.schema.types import sql_type
from lockstep.pipeline.values.errors import ConfigurationError, LakeUnavailable
from lockstep.resources.lake.changelog.frame import empty_rows, with_shared_columns
from lockstep.resources.lake.delta.delta_log import commits_newest_first, newest_version
from lockstep.resources.lake.spark.remote import (
    RemoteSpark,
    SparkServer,
    configured_server,
    differing_settings,
    require_compatible,
)
from lockstep.resources.lake.trial import require_correct_writes
from tests.e2e.project import environment
from tests.fix_connect import ConnectServer, free_port
from tests.lake.conftest import lake_at
from tests.lake.made import PEOPLE, a_write, content, update
from tests.lake.strangers import require_closed

pytestmark = pytest.mark.acceptance

MIRROR = "shop/shop/people"
OTHER = Path("/proc/self/cwd")
"""Below it each process has another folder."""


def test_a_server_of_ours_keeps_what_mirrors_stand_on(connect: RemoteSpark, tmp_path: Path) -> None:
    """It is tried with a table of which nothing stays."""
    require_correct_writes(connect, tmp_path / "lake", tmp_path / "staging")
    assert list(tmp_path.rglob("*")) == [tmp_path / "staging"]
    assert connect.display_name().startswith("Spark 4.")


EACH_TYPE = (
    *(pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.bool_()),
    *(pa.date32(), pa.timestamp("us"), pa.timestamp("us", "UTC"), pa.decimal128(38, 10)),
    *(pa.string(), pa.binary(), pa.list_(pa.float32())),
)
"""Of the columns of a lake."""


def test_columns_without_values_have_types_that_every_reader_knows(connect: RemoteSpark) -> None:
    """A type that is given to Spark Connect as an object may become another one in a table's log:
    `string collate UTF8_BINARY` is read by Spark alone."""
    schema = pa.schema([(f"c{number}", kind) for number, kind in enumerate(EACH_TYPE)])
    lacking = [SharedColumn(field.name, field.type, (None,)) for field in schema]
    none = empty_rows(connect.session(), schema)
    for rows in (none, with_shared_columns(none, lacking, 0)):
        [names] = rows.agg(*(f.typeof(f.first(name)) for name in schema.names)).collect()
        assert [*names] == [sql_type(kind) for kind in EACH_TYPE]


@pytest.mark.skipif(sys.platform != "linux", reason="ports are seen in /proc")
def test_no_other_account_speaks_to_it_beside_connect(connect_server: ConnectServer) -> None:
    """Spark's own ports take Java's objects from who has its secret; Connect has its token."""
    require_closed(connect_server.process.pid)


@pytest.mark.parametrize("unseen", ["lake", "staging"])
def test_a_server_with_another_disk_is_refused(
    connect_server: ConnectServer,
    connect_mode: None,
    unseen: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Before it is asked for anything."""
    monkeypatch.chdir(tmp_path)
    folders = {"lake": tmp_path / "lake", "staging": tmp_path / "staging"}
    spark = connect_server.remote(**{**folders, unseen: OTHER / unseen})
    with pytest.raises(ConfigurationError, match=f"does not see {OTHER / unseen} as this machine"):
        spark.session()


FITS = {
    "spark.sql.extensions": "other,io.delta.sql.DeltaSparkSessionExtension",
    "spark.delta.logStore.file.impl": "lockstep.delta.PinnedLogStore",
}


@pytest.mark.parametrize(
    ("version", "settings", "refusal"),
    [
        ("3.5.6", {}, "is 3.5.6; Spark 4 or newer is needed"),
        ("4.2.0", {"spark.sql.extensions": ""}, "has no Delta Lake"),
        ("4.2.0", {"spark.delta.logStore.file.impl": "Other"}, "tables' logs with Other,"),
        ("4.2.0", {"spark.delta.logStore.class": "Any"}, "tables' logs with Any,"),
    ],
)
def test_a_server_that_is_not_made_for_this_is_refused(
    version: str, settings: dict[str, str], refusal: str, tmp_path: Path
) -> None:
    """By what it says of itself, whatever it would do."""
    server = SparkServer("spark", 15002)
    require_compatible(server, "4.2.0", FITS, tmp_path)
    with pytest.raises(ConfigurationError, match=refusal):
        require_compatible(server, version, FITS | settings, tmp_path)


def test_a_setting_that_is_there_is_not_made_again() -> None:
    """Not one that is another, only longer; but where a server of ours has more under a key."""
    there = {"spark.sql.shuffle.partitions": "12", "spark.sql.extensions": "a.Ours,a.Theirs"}
    assert differing_settings({"spark.sql.extensions": "a.Theirs"}, there) == {}
    other = {"spark.sql.shuffle.partitions": "2", "spark.driver.memory": "1g"}
    assert differing_settings(other, there) == other


def test_nobody_there_and_a_wrong_token_are_told_apart(
    connect_mode: None, connect_server: ConnectServer, tmp_path: Path
) -> None:
    """At once, and without the token."""
    for host in ("127.0.0.1", "no..host"):
        nobody = SparkServer(host, free_port(), token="of-tests")
        with pytest.raises(LakeUnavailable, match=f"No Spark answers at {nobody}"):
            RemoteSpark(nobody, {}, lake=tmp_path, staging=tmp_path).session()
    other = SparkServer("127.0.0.1", connect_server.server.port, token="another")
    with pytest.raises(ConfigurationError, match="does not accept this token") as caught:
        RemoteSpark(other, {}, lake=tmp_path, staging=tmp_path).session()
    assert "another" not in str(caught.value)


def test_settings_of_the_server_must_be_as_told(
    connect_mode: None, connect_server: ConnectServer, tmp_path: Path
) -> None:
    """Those of a session are set; those that only a start can set are compared."""
    user = {"spark.driver.memory": "1g", "spark.sql.shuffle.partitions": "3"}
    spark = RemoteSpark(connect_server.server, user, lake=tmp_path, staging=tmp_path)
    assert spark.session().conf.get("spark.sql.shuffle.partitions") == "3"
    spark.stop()
    user["spark.driver.memory"] = "7g"
    with pytest.raises(
        ConfigurationError, match=r"spark\.driver\.memory is set when Spark's server"
    ):
        RemoteSpark(connect_server.server, user, lake=tmp_path, staging=tmp_path).session()


@pytest.mark.parametrize(
    ("told", "refusal"),
    [
        ({"token": "x"}, "has a token, but no remote"),
        ({"remote": "http://host:15002"}, "no address of Spark Connect"),
        ({"remote": "sc://host/;token=x"}, "holds a token"),
        ({"remote": "sc://host/;session_id=x"}, "names a session"),
        ({"remote": "sc://dbc-1.cloud.databricks.com:443/;use_ssl=true"}, "is Databricks"),
        ({"remote": "sc://host", "spark.master": "local[2]"}, 'has both remote and "spark.master"'),
    ],
)
def test_what_names_no_server_is_refused(told: dict[str, str], refusal: str) -> None:
    """By the table alone."""
    with pytest.raises(ConfigurationError, match=refusal):
        configured_server(told)


def test_a_token_goes_out_without_tls_to_this_machine_alone() -> None:
    """PySpark encrypts it for any other name."""
    here = configured_server({"remote": "sc://127.0.0.1:1", "token": "a b"})
    there = configured_server({"remote": "sc://spark:1/;use_ssl=true", "token": "a b"})
    assert here is not None
    assert there is not None
    one = UUID(int=0)
    assert here.url(one) == f"sc://localhost:1/;session_id={one};user_id=lockstep;token=a%20b"
    assert there.url(one).startswith("sc://spark:1/;use_ssl=true;session_id=")
    assert "a b" not in f"{here} {here!r}"


KILLED = """
import sys
from pathlib import Path
from lockstep.resources.lake.mirror.mirror import SparkMirrors
from lockstep.resources.lake.spark.remote import RemoteSpark
from lockstep.resources.lake.spark.remote import SparkServer
from tests.lake.made import a_write, update
folder, staging = Path(sys.argv[1]), Path(sys.argv[1]) / "of-the-dead"
spark = RemoteSpark(
    SparkServer("127.0.0.1", int(sys.argv[2]), token="of-tests"),
    {}, lake=folder / "lake", staging=staging,
)
mirrors = SparkMirrors(folder / "lake", staging=staging, spark=spark, in_memory=False)
write = a_write(mirrors, 2, "merge", [update(id=1, name="new")])
spark.session()
print("begun", flush=True)
mirrors.write(write)
"""


@pytest.mark.parametrize(
    "pause", [0.6, *(pytest.param(one, marks=pytest.mark.soak) for one in (0.2, 1.2))]
)
def test_what_a_dead_client_asked_for_is_committed_once_or_never(
    connect: RemoteSpark, connect_server: ConnectServer, tmp_path: Path, pause: float
) -> None:
    """The server goes on with a statement whose client was killed, while the next one makes the
    same write."""
    lake = lake_at(tmp_path / "lake", tmp_path / "staging", connect)
    lake.mirrors.write(a_write(lake.mirrors, 1, "append", [{"id": 1, "name": "old"}]))
    dead = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(tmp_path), str(connect_server.server.port)],
        env=environment(),
        stdout=subprocess.PIPE,
    )
    with dead:
        assert dead.stdout is not None
        assert dead.stdout.readline() == b"begun\n"
        time.sleep(pause)
        os.kill(dead.pid, signal.SIGKILL)
    write = a_write(lake.mirrors, 2, "merge", [update(id=1, name="new")])
    assert lake.mirrors.write(write).delta_version == 1
    lake.mirrors.write(a_write(lake.mirrors, 3, "merge", [update(id=1, name="newest")]))
    mirror = tmp_path / "lake" / MIRROR
    assert content(lake.mirrors, MIRROR, PEOPLE, 2) == [{"id": 1, "name": "newest"}]
    assert [one.transactions[f"app/{MIRROR}"] for one in commits_newest_first(mirror)] == [3, 2, 1]
    assert newest_version(mirror) == 2


def test_statements_of_a_dead_client_end(
    connect: RemoteSpark, connect_server: ConnectServer, tmp_path: Path
) -> None:
    """Whoever takes over ends one that would take weeks; should its client wake up, it gets nothing
    there any more."""
    dead = connect_server.remote(tmp_path / "lake", tmp_path / "of-the-dead")
    session = dead.session()
    rows = session.range(10**15).where("id % 1000000000 = 0")
    with ThreadPoolExecutor(1) as thread:
        never = tmp_path / "never"
        asked = thread.submit(rows.write.parquet, str(never))
        while not [*never.rglob("attempt_*")]:
            time.sleep(0.05)
        connect.end_statements(dead.client_id)
        with pytest.raises(PySparkException):
            asked.result()
    while [*never.rglob("attempt_*")]:
        time.sleep(0.05)
    with pytest.raises(PySparkException, match="SESSION_CLOSED"):
        session.range(3).count()
    dead.stop()
    assert connect.session().range(3).count() == 3
