"""Files of this machine: as Spark's Java makes them, as Hadoop's own class would, without a command
for each (`LocalFiles.java`; that none is needed: `test_session`); staged ones; and a lake on a file
system without the hard links by which Lockstep commits without replacing what another committed."""

from __future__ import annotations

import ctypes
import gc
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pytest
from py4j.protocol import Py4JJavaError

from lockstep.pipeline.values.errors import LakeUnavailable
from lockstep.resources.lake.spark.java_errors import JavaError, error_of
from lockstep.resources.lake.spark.session import SparkProcess
from lockstep.resources.lake.store.staging import Staging
from tests.e2e.warm import REPOSITORY

OURS = ("lockstep.delta.LocalFiles", "lockstep.delta.LocalFiles$Context")


@pytest.fixture
def hadoop(spark: SparkProcess) -> Any:
    """Java's `org.apache.hadoop.fs`."""
    jvm: Any = spark.session().sparkContext._jvm
    return jvm.org.apache.hadoop.fs


@pytest.fixture
def conf(spark: SparkProcess) -> Any:
    """What Hadoop is told by Spark."""
    return spark.session()._jsparkSession.sessionState().newHadoopConf()


@pytest.fixture
def files(hadoop: Any, conf: Any) -> Any:
    """The file system that Spark's queries use."""
    system = hadoop.Path("file:///").getFileSystem(conf)
    assert system.getClass().getName() == OURS[0]
    return system


@pytest.fixture
def context(hadoop: Any, conf: Any) -> Any:
    """The one that Delta's log stores use."""
    context = hadoop.FileContext.getFileContext(hadoop.FsConstants.LOCAL_FS_URI, conf)
    assert context.getDefaultFileSystem().getClass().getName() == OURS[1]
    return context


@pytest.mark.parametrize("mode", [0o600, 0o644, 0o755, 0o1777])
def test_permissions_are_those_that_were_asked_for(
    files: Any, hadoop: Any, tmp_path: Path, mode: int
) -> None:
    """As `chmod` sets them, whatever the umask."""
    permission = hadoop.permission.FsPermission(f"{mode:o}")
    files.mkdirs(hadoop.Path(str(tmp_path / "folder")))
    files.create(hadoop.Path(str(tmp_path / "folder" / "file"))).close()
    files.setPermission(hadoop.Path(str(tmp_path / "folder" / "file")), permission)
    files.setPermission(hadoop.Path(str(tmp_path / "folder")), permission)
    found = [(tmp_path / name).stat().st_mode & 0o7777 for name in ("folder", "folder/file")]
    assert found == [mode, mode]


def test_what_is_made_has_the_permissions_of_hadoops_own(
    files: Any, hadoop: Any, conf: Any, tmp_path: Path
) -> None:
    theirs = hadoop.LocalFileSystem()
    theirs.initialize(hadoop.FsConstants.LOCAL_FS_URI, conf)
    modes = []
    for name, system in (("ours", files), ("theirs", theirs)):
        system.create(hadoop.Path(str(tmp_path / name / "one" / "file"))).close()
        made = sorted((tmp_path / name).rglob("*"))
        assert [path.name for path in made] == ["one", ".file.crc", "file"]
        modes.append([path.stat().st_mode for path in made])
    assert modes[0] == modes[1]


def test_links_are_told_as_links(context: Any, hadoop: Any, tmp_path: Path) -> None:
    """A file's own status, a link's, one that leads nowhere, and nothing at all."""
    (tmp_path / "file").write_bytes(b"12345")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    (tmp_path / "nowhere").symlink_to(tmp_path / "gone")

    def status(name: str) -> Any:
        return context.getFileLinkStatus(hadoop.Path(str(tmp_path / name)))

    assert (status("file").isSymlink(), status("file").getLen()) == (False, 5)
    for name, end in (("link", "file"), ("nowhere", "gone")):
        assert status(name).isSymlink()
        assert status(name).getSymlink().toString() == f"file:{tmp_path / end}"
    with pytest.raises(Py4JJavaError, match="FileNotFoundException"):
        status("gone")


def test_a_permission_that_the_system_refuses_is_an_error(
    files: Any, hadoop: Any, tmp_path: Path
) -> None:
    missing = hadoop.Path(str(tmp_path / "missing"))
    with pytest.raises(Py4JJavaError, match="NoSuchFileException"):
        files.setPermission(missing, hadoop.permission.FsPermission("644"))


# -- staged files go with their process, however it ends ---------------------------------


ROOT = Path(__file__).parents[2]
ROWS = pa.table({"id": [1, 2, 3]})
STAGES = """
import os, signal, sys
from pathlib import Path
import pyarrow as pa
from lockstep.resources.lake.store.staging import Staging
staging = Staging(Path(sys.argv[1]))
print(staging.stage("x", pa.table({"id": [1]})), flush=True)
with staging.new_folder() as folder:
    (Path(folder) / "of spark").touch()
    os.kill(os.getpid(), signal.SIGKILL)
"""


def killed(folder: Path) -> Path:
    """A file that was staged by a process that is gone."""
    done = subprocess.run(
        [sys.executable, "-c", STAGES, str(folder)], cwd=ROOT, stdout=subprocess.PIPE, check=False
    )
    return Path(done.stdout.decode().strip())


def test_what_a_killed_process_left_is_removed(tmp_path: Path) -> None:
    """By the next one that stages; what a living one has is left alone."""
    living = Staging(tmp_path)
    mine = Path(living.stage("mine", ROWS))
    left = killed(tmp_path)
    assert left.exists()
    other = Staging(tmp_path)
    theirs = Path(other.stage("theirs", ROWS))
    assert (left.exists(), mine.exists(), theirs.exists()) == (False, True, True)
    assert sorted(tmp_path.iterdir()) == sorted(
        one for file in (mine, theirs) for one in (file.parent, file.parent.with_suffix(".lock"))
    )
    del living, other
    gc.collect()
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_cannot_be_written_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk is not filled further."""

    def full(rows: pa.Table, sink: object, **options: object) -> None:
        raise OSError(28, "No space left on device")

    staging = Staging(tmp_path)
    kept = Path(staging.stage("kept", ROWS))
    monkeypatch.setattr("lockstep.resources.lake.store.staging.pq.write_table", full)
    with pytest.raises(LakeUnavailable, match="has no space left"):
        staging.stage("x", ROWS)
    assert list(kept.parent.iterdir()) == [kept]


# -- a file system without hard links ----------------------------------------------------


WITHOUT_LINKS: Final = f"import {__name__} as test; test.refuse_hard_links()\n"
COMMIT: Final = """
import pyarrow as pa
from pathlib import Path
from deltalake import CommitProperties
from lockstep.pipeline.values.errors import LakeUnavailable
from lockstep.resources.lake.changelog.changelog import commit_files
from lockstep.resources.lake.mirror.deletion import _create_commit_file
from lockstep.resources.lake.store.storage import lake_errors

lake, columns = Path.cwd(), pa.schema([("id", pa.int64())])
for commit in (
    lambda: commit_files(lake / "t", None, columns, {}, [], CommitProperties()),
    lambda: _create_commit_file(lake / "commit.json", b""),
):
    try:
        with lake_errors(lake):
            commit()
    except LakeUnavailable as error:
        print(error.message)
"""
CHECK: Final = "from lockstep.cli import main; main(['check', '--json'])"
SOURCE: Final = """
[[sources]]
name = "shop"
host = "127.0.0.1"
port = 1
user = "lockstep"
password = "env:LOCKSTEP_TEST_NOWHERE"
tables = ["shop.*"]
"""


def refuse_hard_links() -> None:
    """Have the kernel refuse them to this process, as such file systems do, by a filter of system
    calls: seccomp(2)."""
    link, linkat = {"x86_64": (86, 265), "aarch64": (37, 37)}[os.uname().machine]
    load, equal, end = 0x20, 0x15, 0x06
    lines = (
        (load, 0, 0, 0),
        (equal, 1, 0, link),
        (equal, 0, 1, linkat),
        (end, 0, 0, 0x00050001),  # with EPERM
        (end, 0, 0, 0x7FFF0000),  # allowed
    )
    text = b"".join(
        code.to_bytes(2, sys.byteorder) + bytes((yes, no)) + value.to_bytes(4, sys.byteorder)
        for code, yes, no, value in lines
    )
    content = ctypes.create_string_buffer(text)

    class Filter(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("lines", ctypes.c_void_p))

    program = Filter(len(lines), ctypes.addressof(content))
    libc = ctypes.CDLL(None)
    assert libc.prctl(38, 1, 0, 0, 0) == 0  # PR_SET_NO_NEW_PRIVS
    assert libc.prctl(22, 2, ctypes.byref(program)) == 0  # PR_SET_SECCOMP, SECCOMP_MODE_FILTER


def refused(lake: Path) -> str:
    return (
        f"The lake's storage at {lake} does not allow hard links, with which commits are made, or "
        "changes to its files"
    )


def printed(code: str, folder: Path) -> str:
    return subprocess.run(
        [sys.executable, "-c", WITHOUT_LINKS + code],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY), "PYTHONWARNINGS": "ignore"},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    ).stdout


def test_a_commit_says_why_it_cannot_be_made(tmp_path: Path) -> None:
    """One of delta-rs, of Lockstep, and of Spark, whose message has no number."""
    assert printed(COMMIT, tmp_path).splitlines() == [refused(tmp_path)] * 2
    chain = [JavaError("java.nio.file.FileSystemException", "b -> a: Operation not permitted")]
    error = error_of(tmp_path, chain)
    assert (type(error), str(error)) == (LakeUnavailable, refused(tmp_path))


def test_check_tries_it(tmp_path: Path) -> None:
    """In the lake's folder, or where it would be made; nothing of the trial is left."""
    (tmp_path / "lockstep.toml").write_text(SOURCE)
    findings = json.loads(printed(CHECK, tmp_path))["machine"]["findings"]
    [lake] = [finding for finding in findings if finding["subject"] == "lake"]
    assert (lake["level"], lake["sentence"]) == ("refusal", refused(tmp_path))
    assert [path.name for path in tmp_path.iterdir()] == ["lockstep.toml"]
