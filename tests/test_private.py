"""What Lockstep keeps beside lockstep.toml is for its account alone; and who is waited for."""

from __future__ import annotations

import io
import os
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from threading import Event, Thread

import dagster as dg
import pyarrow as pa
import pytest

from lockstep.assets.coverage import Coverage, write_coverage
from lockstep.assets.home import dagster_home
from lockstep.assets.run_page import page_path, store_page
from lockstep.assets.table_list import TableEntry, update_table_list
from lockstep.cli import write_report
from lockstep.pipeline.values.errors import DiskFull, LakeUnavailable, LockstepError, Recovery
from lockstep.resources import file_lock
from lockstep.resources.full_disk import disk_full_error
from lockstep.resources.lake.changelog.spool import FileSpool
from lockstep.resources.lake.spark.java_errors import JavaError, error_of
from lockstep.resources.lake.store.staging import Staging
from lockstep.resources.postgres.ledger import open_ledger
from lockstep.resources.private import make_private

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@dg.job
def nothing() -> None:
    """A run of it is recorded, and that is all."""


def a_ledger(state: Path) -> None:
    open_ledger("embedded", state).close()


def a_run_of_dagster(state: Path) -> None:
    with dg.DagsterInstance.from_config(str(dagster_home(state))) as instance:
        assert nothing.execute_in_process(instance=instance).success


def a_table_list(state: Path) -> None:
    update_table_list(state, "shop", [TableEntry("a", "b", "c", "d")], complete=True)


def a_partition(state: Path) -> None:
    write_coverage(state, "shop", Coverage(NOW, NOW))


def a_page(state: Path) -> None:
    store_page(page_path(state, "shop", "run 1"), "")


def a_staged_file(state: Path) -> None:
    staging = Staging(state / "staging")
    assert Path(staging.stage("rows", pa.table({"a": [1]}))).exists()


def a_scratch_file(state: Path) -> None:
    FileSpool(state.parent / "lake", state / "staging" / "spool").create_scratch_file()


def a_report_of_a_defect(state: Path) -> None:
    write_report(state / "defects", ValueError(), "run", (), NOW)


MAKERS: tuple[Callable[[Path], None], ...] = (
    a_ledger,
    a_run_of_dagster,
    a_table_list,
    a_partition,
    a_page,
    a_staged_file,
    a_scratch_file,
    a_report_of_a_defect,
)


@pytest.mark.parametrize("make", MAKERS, ids=lambda make: make.__name__)
def test_nothing_of_lockstep_s_own_is_for_others(
    make: Callable[[Path], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whichever is the first to make the folder, and whoever makes a file in it (SQLite, Arrow,
    Postgres), under a usual umask; the folder above stays as it is."""
    monkeypatch.delenv("DAGSTER_HOME", raising=False)
    above, mask = tmp_path.stat().st_mode, os.umask(0o022)
    try:
        make(tmp_path / ".lockstep")
    finally:
        os.umask(mask)
    state = tmp_path / ".lockstep"
    made = [state, *state.rglob("*")]
    assert [path for path in made if path.stat().st_mode & 0o077] == []
    assert (stat.S_IMODE(state.stat().st_mode), tmp_path.stat().st_mode) == (0o700, above)


WRITERS = (a_ledger, a_run_of_dagster, a_table_list, a_partition, a_staged_file)


@pytest.mark.parametrize("make", WRITERS, ids=lambda make: make.__name__)
def test_a_full_disk_is_told_with_its_place(
    make: Callable[[Path], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever finds it out: it is no defect, no mistake of the configuration, and tried again."""
    monkeypatch.delenv("DAGSTER_HOME", raising=False)
    state = tmp_path / ".lockstep"
    with full_disk(state), pytest.raises(Exception) as raised:
        make(state)
        pytest.fail("there was room")
    error = raised.value
    if not isinstance(error, LockstepError):
        with full_disk(state):
            told = disk_full_error(error, [state])
        assert told is not None, repr(error)
        error = told
    assert error.recovery is Recovery.RETRY, error.message
    assert "o space left on" in error.message or "has no space left" in error.message
    assert str(state) in error.message


LIBRARY = JavaError(
    "java.lang.UnsatisfiedLinkError", "no snappyjava in java.library.path: /usr/java/packages/lib"
)
LATER = JavaError(
    "java.lang.NoClassDefFoundError", "Could not initialize class org.xerial.snappy.Snappy"
)
SPILLED = JavaError("java.io.IOException", "No space left on device")


@pytest.mark.parametrize("error", [LIBRARY, LATER, SPILLED], ids=["library", "later", "spilled"])
def test_spark_without_room_for_temporary_files_names_their_folder(
    error: JavaError, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Java names no file whose disk is full, and says of a library that it is not there. If the
    lake's disk is full as well, it is the lake that is named."""
    temporary, lake = tmp_path / "temporary", tmp_path / "lake"
    lake.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    chain = [JavaError("org.apache.spark.SparkException", "Job aborted"), error]
    with full_disk(temporary):
        told = error_of(lake / "t", chain)
        with full_disk(lake):
            lake_told = error_of(lake / "t", chain)
    assert isinstance(told, DiskFull)
    assert told.message == f"No space left on {temporary}, for Spark's temporary files."
    assert isinstance(lake_told, LakeUnavailable)
    assert isinstance(error_of(lake / "t", chain), LakeUnavailable)


@contextmanager
def full_disk(folder: Path) -> Iterator[None]:
    """A file system of its own without a free byte; root alone may mount one."""
    folder.mkdir(exist_ok=True)
    command = ["mount", "-t", "tmpfs", "-o", "size=64k,mode=0755", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(command, check=False, capture_output=True).returncode:
        pytest.skip("no file system may be mounted here")
    try:
        with suppress(OSError), (folder / "filled").open("wb", buffering=0) as filled:
            while filled.write(b"x" * 4096):
                continue
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def test_a_folder_that_is_there_keeps_its_mode(tmp_path: Path) -> None:
    """Somebody chose it: a volume, or a group that looks at the reports."""
    tmp_path.chmod(0o750)
    make_private(tmp_path)
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o750


_HOLDING = """
import fcntl, sys
held = open(sys.argv[1], "rb")
fcntl.flock(held, fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""


class _Screen(io.StringIO):
    """A standard error that says when something was written to the end."""

    def __init__(self) -> None:
        super().__init__()
        self.flushed = Event()

    def flush(self) -> None:
        self.flushed.set()


@pytest.mark.skipif(sys.platform != "linux", reason="locks are seen in /proc")
@pytest.mark.parametrize("lock", ["turn", "users"])
def test_a_lock_that_is_waited_for_names_its_holder(
    tmp_path: Path, lock: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a while, by its process and what was typed: no command hangs without a word."""
    screen = _Screen()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setattr(file_lock, "MESSAGE_AFTER_SECONDS", 0.01)
    path = tmp_path / "ledger" / lock
    make_private(path.parent)
    path.touch()
    command = [sys.executable, "-c", _HOLDING, str(path)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        waiting = Thread(target=a_ledger, args=[tmp_path])
        waiting.start()
        assert screen.flushed.wait(60)
        holder.communicate()
    waiting.join()
    told = screen.getvalue()
    assert told.startswith(f"Waiting for process {holder.pid} ({sys.executable} -c")
    assert told.endswith(f", which holds the lock {path}.\n")


def test_a_file_of_another_device_is_another_file() -> None:
    """Inodes are numbered by file system: `/proc/locks` has both, and who waits for a lock."""
    locks = (
        "1: FLOCK  ADVISORY  WRITE 101 fe:00:42 0 EOF\n"
        "1: -> FLOCK  ADVISORY  WRITE 102 fe:00:42 0 EOF\n"
        "2: FLOCK  ADVISORY  WRITE 103 00:1b:42 0 EOF\n"
        "3: FLOCK  ADVISORY  READ 104 fe:00:42 0 EOF\n"
        "4: POSIX  ADVISORY  WRITE 105 fe:00:42 0 EOF\n"
    )
    assert file_lock.lock_holders(locks, "fe:00:42") == ["101", "104"]
