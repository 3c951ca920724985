"""The embedded server: shared by processes, gone with the last, unharmed by any death."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from pipeline.errors import ConfigurationError
from resources.postgres.account import account_of
from resources.postgres.embedded import EmbeddedServer
from resources.postgres.ledger import open_ledger
from tests.ledger.made import DECISION
from tests.ledger.servers import is_gone, is_running, run

_HOLDER = """
import sys
from pathlib import Path
from resources.postgres.ledger import open_ledger
with open_ledger("embedded", Path(sys.argv[1])) as ledger:
    with ledger.lock("shop", "the other process", None):
        print("ready", flush=True)
        sys.stdin.read()
"""

# What gRPC does where a process forks: its handlers wait for what other threads have under way.
_COUNTED = """
import ctypes
import sys
from pathlib import Path
from resources.postgres.ledger import open_ledger
forks = []
counting = ctypes.CFUNCTYPE(None)(lambda: forks.append(1))
ctypes.CDLL(None).__register_atfork(counting, None, None, None)
open_ledger("embedded", Path(sys.argv[1])).close()
print(len(forks))
"""

# A server at its end: its file is gone, and it still has the folder's memory.
_LINGERING = """
import signal
import sys
import time
from pathlib import Path
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
Path("/proc/self/comm").write_text("postgres")
print("ready", flush=True)
signal.sigwait([signal.SIGINT])
Path("postmaster.pid").unlink()
time.sleep(0.3)
"""

# As an account that may not signal others; root becomes one once all is imported.
_WITHOUT_RIGHTS = """
import os
import sys
import tempfile
from pathlib import Path
from resources.postgres.ledger import open_ledger
from tests.ledger.test_embedded import stale
folder = Path(sys.argv[1])
stale(folder, 1)
if os.geteuid() == 0:
    owner = (folder / "ledger" / "data").stat()
    for path in (folder, *folder.rglob("*")):
        os.chown(path, owner.st_uid, owner.st_gid)
    os.setgroups([])
    os.setgid(owner.st_gid)
    os.setuid(owner.st_uid)
tempfile.tempdir = str(folder)  # root's own may be root's alone
open_ledger("embedded", folder).close()
"""


@contextmanager
def another_process(folder: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that holds the ledger and the lock of `shop`, until told or killed."""
    process = subprocess.Popen(
        [sys.executable, "-c", _HOLDER, str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        cwd=Path(__file__).parents[2],
        start_new_session=True,
    )
    with process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            yield process
        finally:
            process.kill()


def postmaster(folder: Path) -> int:
    text = (folder / "ledger" / "data" / "postmaster.pid").read_text()
    return int(text.split("\n", 1)[0])


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A project's folder whose server is gone in the end, whatever the test did."""
    yield tmp_path
    with suppress(FileNotFoundError):
        os.kill(postmaster(tmp_path), signal.SIGQUIT)


def test_processes_share_a_server(folder: Path) -> None:
    """Either may end first; the last one stops it."""
    with open_ledger("embedded", folder) as ledger:
        pid = postmaster(folder)
        with another_process(folder) as other:
            assert postmaster(folder) == pid
            lease = ledger.lease("shop")
            assert lease is not None
            assert (lease.holder, lease.live) == ("the other process", True)
            other.communicate("")
        assert other.returncode == 0
        assert is_running(pid)
    assert is_gone(pid)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_a_process_that_dies_leaves_the_lock_and_the_books(
    folder: Path, number: signal.Signals
) -> None:
    """The next one takes over at once and stops what the dead one left running."""
    with another_process(folder) as other:
        other.send_signal(number)
        other.wait(60)
    with open_ledger("embedded", folder) as ledger, ledger.lock("shop", "next", None) as lease:
        ledger.decide(lease, DECISION)
        assert lease.token == 2
        pid = postmaster(folder)
    assert is_gone(pid)


@pytest.mark.skipif(sys.platform != "linux", reason="processes are seen in /proc")
def test_a_server_has_stopped_when_its_process_is_gone(folder: Path) -> None:
    """Who starts the next one meets nothing of it."""
    server = EmbeddedServer(folder / "ledger")
    data, pid = folder / "ledger" / "data", postmaster(folder)
    command = [sys.executable, "-c", _LINGERING]
    with subprocess.Popen(command, cwd=data, stdout=subprocess.PIPE, text=True) as lingering:
        assert lingering.stdout is not None
        assert lingering.stdout.readline() == "ready\n"
        (data / "postmaster.pid").write_text(f"{lingering.pid}\n")
        server.close()
        assert lingering.poll() == 0
    os.kill(pid, signal.SIGQUIT)
    assert is_gone(pid)


@pytest.mark.skipif(sys.platform != "linux", reason="glibc's own name for it")
def test_no_process_is_copied_for_it(folder: Path) -> None:
    """As any account: the programs of Postgres are begun without a fork of this process."""
    command = [sys.executable, "-c", _COUNTED, str(folder)]
    repository = Path(__file__).parents[2]
    done = subprocess.run(command, cwd=repository, stdout=subprocess.PIPE, text=True, check=True)
    assert done.stdout == "0\n"


def test_a_server_that_was_killed_recovers(folder: Path) -> None:
    """What was committed is there."""
    with open_ledger("embedded", folder) as ledger, ledger.lock("shop", "one", None) as lease:
        ledger.decide(lease, DECISION)
        os.kill(postmaster(folder), signal.SIGQUIT)
    with open_ledger("embedded", folder) as ledger:
        assert [decision.decision for decision in ledger.decisions("shop")] == [DECISION]


def stale(folder: Path, number: int) -> None:
    """A ledger whose server left its number, which is another process' by now."""
    open_ledger("embedded", folder).close()
    lines = [str(number), str(folder), "1", "5432", "", "", "0 0", "ready"]
    (folder / "ledger" / "data" / "postmaster.pid").write_text("\n".join(lines) + "\n")


def test_a_stale_process_number_is_no_server(folder: Path, tmp_path_factory: Any) -> None:
    """Another program may have it by now, or the server of another project, which is not stopped
    for it."""
    other = tmp_path_factory.mktemp("other")
    with open_ledger("embedded", other):
        for number in (os.getpid(), postmaster(other)):
            stale(folder, number)
            with open_ledger("embedded", folder):
                assert postmaster(folder) != number
            assert is_running(postmaster(other))


def test_a_stale_number_of_another_account_is_no_server() -> None:
    """As after a restart of the machine: no signal may be sent to it."""
    with tempfile.TemporaryDirectory(prefix="lockstep-") as name:
        command = [sys.executable, "-c", _WITHOUT_RIGHTS, name]
        subprocess.run(command, cwd=Path(__file__).parents[2], check=True)


def test_a_folder_too_long_for_a_socket_works(tmp_path: Path) -> None:
    """The socket is then elsewhere, in a folder that only its owner enters."""
    folder = tmp_path / ("long" * 20) / ("longer" * 10)
    server = EmbeddedServer(folder)
    try:
        ((data,),) = run(server.dsn, "show data_directory")
        ((sockets,),) = run(server.dsn, "show unix_socket_directories")
        assert data == str(folder / "data")
        assert Path(str(sockets)).stat().st_mode & 0o777 == 0o700
    finally:
        server.close()
    assert not Path(str(sockets)).exists()


def test_commits_are_on_disk_and_nobody_comes_over_the_network(folder: Path) -> None:
    """What the ledger says was recorded survives a power cut; there is no TCP port. Closing a
    handle twice changes nothing, and closes no other."""
    server, other = (EmbeddedServer(folder / "ledger") for _ in range(2))
    server.close()
    server.close()
    for setting in ("fsync", "synchronous_commit", "full_page_writes"):
        assert run(other.dsn, f"show {setting}") == [("on",)]
    assert run(other.dsn, "show listen_addresses") == [("",)]
    other.close()


def test_a_copied_project_opens(tmp_path: Path) -> None:
    """Whoever copies or restores the folder owns the files then; root hands them over."""
    with open_ledger("embedded", tmp_path / "first"):
        pass
    shutil.copytree(tmp_path / "first", tmp_path / "second")
    with open_ledger("embedded", tmp_path / "second") as ledger:
        assert ledger.batches("shop") == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root opens what is others'")
def test_a_folder_of_nobody_here_is_refused(tmp_path: Path) -> None:
    """As a restored backup may be: its owner has a number and no name."""
    os.chown(tmp_path, 54_321, 54_321)
    with pytest.raises(ConfigurationError, match="belongs to user 54321, for whom there is no"):
        account_of(tmp_path)
