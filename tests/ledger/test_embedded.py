"""The embedded server: shared by processes, gone with the last, unharmed by any death."""

from __future__ import annotations

import hashlib
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from uuid import uuid4

import pytest
from psycopg2.extensions import parse_dsn

from lockstep.pipeline.values.errors import ConfigurationError
from lockstep.resources.postgres import embedded
from lockstep.resources.postgres.embedded import EmbeddedServer, account_of
from lockstep.resources.postgres.ledger import open_ledger
from tests.fix_ledger import _stop_left
from tests.ledger.made import DECISION
from tests.ledger.servers import is_gone, is_running, run

_HOLDER = """
import sys
from pathlib import Path
from lockstep.resources.postgres.ledger import open_ledger
with open_ledger("embedded", Path(sys.argv[1])) as ledger:
    with ledger.lock("shop", "the other process", None):
        print("ready", flush=True)
        sys.stdin.read()
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

# What gRPC does where a process forks is counted: its handlers wait for what other threads have
# under way. Then as an account that may not signal others, which root becomes.
_AS_ANY_ACCOUNT = """
import ctypes
import os
import pwd
import sys
import tempfile
from pathlib import Path
from lockstep.resources.postgres.ledger import open_ledger
folder = Path(sys.argv[1])
forks = []
counting = ctypes.CFUNCTYPE(None)(lambda: forks.append(1))
ctypes.CDLL(None).__register_atfork(counting, None, None, None)
open_ledger("embedded", folder).close()
from tests.ledger.test_embedded import stale
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
print(len(forks))
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
    return server_of(folder / "ledger" / "data")


def server_of(data: Path) -> int:
    return int((data / "postmaster.pid").read_text().split("\n", 1)[0])


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project's folder with a ledger that nobody uses."""
    folder = tmp_path_factory.mktemp("made")
    open_ledger("embedded", folder).close()
    return folder


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Iterator[Path]:
    """A copy of that project, whose server is gone in the end, whatever the test did. Whoever
    copies or restores a folder owns its files; root hands them over."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    yield tmp_path
    with suppress(FileNotFoundError):
        os.kill(postmaster(tmp_path), signal.SIGQUIT)


def test_processes_share_a_server(folder: Path) -> None:
    """Either may end first, also by Ctrl-C, and lets go of its lock; the last one stops it."""
    with open_ledger("embedded", folder) as ledger:
        pid = postmaster(folder)
        with another_process(folder) as other:
            assert postmaster(folder) == pid
            lease = ledger.newest_lease("shop")
            assert lease is not None
            assert (lease.holder, lease.live) == ("the other process", True)
            other.send_signal(signal.SIGINT)
            other.wait(60)
        with ledger.lock("shop", "next", None) as next_lease:
            assert next_lease.token == 2
        assert is_running(pid)
    assert is_gone(pid)


def test_a_process_that_was_killed_leaves_the_lock_and_the_books(folder: Path) -> None:
    """The next one takes over at once and stops what the dead one left running."""
    with another_process(folder) as other:
        other.kill()
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


def test_a_server_that_was_killed_recovers(folder: Path) -> None:
    """What was committed is there, also in a project that is a copy."""
    with open_ledger("embedded", folder) as ledger, ledger.lock("shop", "one", None) as lease:
        ledger.decide(lease, DECISION)
        os.kill(postmaster(folder), signal.SIGQUIT)
    with open_ledger("embedded", folder) as ledger:
        assert [decision.decision for decision in ledger.decisions("shop")] == [DECISION]


def stale(folder: Path, number: int) -> None:
    """The server of a ledger left its number, which is another process' by now."""
    lines = [str(number), str(folder), "1", "5432", "", "", "0 0", "ready"]
    (folder / "ledger" / "data" / "postmaster.pid").write_text("\n".join(lines) + "\n")


def test_a_stale_process_number_is_no_server(folder: Path, embedded_dsn: str) -> None:
    """Another program may have it by now, or the server of another project, which is not stopped
    for it."""
    other = server_of(Path(parse_dsn(embedded_dsn)["host"]))
    for number in (os.getpid(), other):
        stale(folder, number)
        with open_ledger("embedded", folder):
            assert postmaster(folder) != number
        assert is_running(other)


@pytest.mark.skipif(sys.platform != "linux", reason="glibc's own name for what is counted")
def test_any_account_starts_it_without_a_copy_of_its_process() -> None:
    """The programs of Postgres are begun without a fork. A stale number of another account, as
    after a restart of the machine, is no server: no signal may be sent to it."""
    with tempfile.TemporaryDirectory(prefix="lockstep-") as name:
        command = [sys.executable, "-c", _AS_ANY_ACCOUNT, name]
        done = subprocess.run(
            command, cwd=Path(__file__).parents[2], stdout=subprocess.PIPE, text=True, check=True
        )
    assert done.stdout == "0\n"


def test_a_folder_with_a_quote_and_a_backslash_works(made: Path, tmp_path: Path) -> None:
    """A DSN takes both, escaped."""
    folder = tmp_path / "it's a back\\slash"
    shutil.copytree(made / "ledger", folder)
    with closing(EmbeddedServer(folder)) as server:
        assert run(server.dsn, "select 1") == [(1,)]


@pytest.mark.parametrize("name", ["long" * 40, "orders, customers"])
def test_a_folder_that_no_socket_can_have_works(made: Path, tmp_path: Path, name: str) -> None:
    """Its path is too long, or would be read as two: the socket is then elsewhere, in a folder that
    only its owner enters."""
    folder = tmp_path / name
    shutil.copytree(made / "ledger", folder)
    server = EmbeddedServer(folder)
    try:
        ((sockets,),) = run(server.dsn, "show unix_socket_directories")
        assert Path("/proc", str(server_of(folder / "data")), "cwd").samefile(folder / "data")
        assert Path(str(sockets)).stat().st_mode & 0o777 == 0o700
    finally:
        server.close()
    assert not Path(str(sockets)).exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes another account")
def test_no_folder_that_another_account_links_to_is_given_away(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The name of the socket's folder can be foretold, and everybody may write to TMPDIR."""
    folder = tmp_path / ("long" * 40)
    shutil.copytree(made / "ledger", folder)
    shared, victim = tmp_path / "tmp", tmp_path / "victim"
    shared.mkdir()
    victim.mkdir(mode=0o700)
    monkeypatch.setattr(tempfile, "tempdir", str(shared))
    name = hashlib.sha256(os.fsencode(folder / "data")).hexdigest()[:16]
    (shared / f"lockstep-{name}").symlink_to(victim)
    with pytest.raises(ConfigurationError, match="belongs to somebody else"):
        EmbeddedServer(folder)
    assert victim.stat().st_uid == 0


def test_a_server_is_found_under_another_tmpdir(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A service may have one of its own; the commands of a shell use its server."""
    folder = tmp_path / ("long" * 20) / ("longer" * 10)
    shutil.copytree(made / "ledger", folder)
    with closing(EmbeddedServer(folder)) as server:
        (tmp_path / "another").mkdir()
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "another"))
        with closing(EmbeddedServer(folder)) as other:
            assert other.dsn == server.dsn
        assert run(server.dsn, "select 1") == [(1,)]


@pytest.mark.parametrize(("name", "value"), [("PGPORT", "5433"), ("PGHOSTADDR", "127.0.0.2")])
def test_a_server_is_found_whatever_libpq_is_told(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    """A shell may lead to another server; a service has no such variables."""
    shutil.copytree(made / "ledger", tmp_path / "ledger")
    monkeypatch.setenv(name, value)
    with closing(EmbeddedServer(tmp_path / "ledger")):
        monkeypatch.delenv(name)
        with closing(EmbeddedServer(tmp_path / "ledger")) as other:
            assert run(other.dsn, "select 1") == [(1,)]


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


@pytest.mark.skipif(os.geteuid() != 0, reason="only root opens what is others'")
def test_a_folder_of_nobody_here_is_refused(tmp_path: Path) -> None:
    """As a restored backup may be: its owner has a number and no name."""
    os.chown(tmp_path, 54_321, 54_321)
    with pytest.raises(ConfigurationError, match="belongs to user 54321, for whom there is no"):
        account_of(tmp_path)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes another account")
@pytest.mark.parametrize("installed", ["for all", "for root alone"])
def test_no_folder_is_opened_for_the_account_of_the_server(
    made: Path, tmp_path: Path, installed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Folders above the ledger, and above the programs, keep their modes, and the server runs,
    whatever the umask."""
    above = tmp_path / "above"
    project = above / "closed"
    above.mkdir(mode=0o700)
    shutil.copytree(made, project)
    if installed == "for root alone":
        programs = embedded.programs_folder()
        shutil.copytree(programs.parent, above / "installed")
        monkeypatch.setattr(embedded, "programs_folder", lambda: above / "installed" / "bin")
        copies = Path(tempfile.gettempdir(), f"lockstep-copies-{uuid4().hex}")
        monkeypatch.setattr(embedded, "_COPIES_FOLDER", copies)
    folders = [above, project, *above.parents]
    modes = [folder.stat().st_mode for folder in folders]
    mask = os.umask(0o077)
    try:
        with open_ledger("embedded", project) as ledger:
            assert ledger.decisions("shop") == []
            assert Path(f"/proc/{postmaster(project)}").stat().st_uid != 0
    finally:
        os.umask(mask)
    assert [folder.stat().st_mode for folder in folders] == modes
    if installed == "for root alone":
        shutil.rmtree(embedded._COPIES_FOLDER)


@pytest.mark.parametrize(("mode", "may_enter"), [(0o710, True), (0o701, False), (0o700, False)])
def test_the_group_s_permission_counts_for_an_account_of_the_group(
    mode: int, may_enter: bool
) -> None:
    account = pwd.struct_passwd(("other", "x", os.geteuid() + 1, os.getegid(), "", "/", ""))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(mode)
        assert embedded._may_enter(account, folder) == may_enter
        folder.chmod(0o700)


def test_a_server_of_a_killed_test_that_does_not_start_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody else removes its files at the same time, or was killed while it did: the tests of
    this process begin all the same (`tests.fix_ledger`)."""
    left = tmp_path / "ledgers-999999999-left"
    (left / "data" / "base").mkdir(parents=True)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    _stop_left()
    assert not left.exists()
