"""A run that is a fork is as good as a process of its own: it takes over what it was started with,
hears its signals, ends with whoever asked for it, and is begun once."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import sleep
from typing import Any

import pytest

from lockstep.forkserver import channel
from lockstep.forkserver.surroundings import first_difference, surroundings
from pipeline.retries import SPARK
from tests.cli import forks

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="Linux alone has what it takes")

REPOSITORY = Path(forks.__file__).parents[2]

Process = subprocess.Popen[str]


def begin(side: str, folder: Path, *doing: str, **more: Any) -> Process:
    variables = {"PYTHONPATH": str(REPOSITORY), **more.pop("variables", {})}
    return subprocess.Popen(
        [sys.executable, "-m", "tests.cli.forks", side, str(folder), *doing],
        cwd=more.pop("cwd", folder),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, **variables},
        **more,
    )


def ask(folder: Path, doing: str, given: str = "", **more: Any) -> tuple[int, str]:
    """The exit code of a command, and what it said."""
    with begin("ask", folder, doing, **more) as process:
        said, _ = process.communicate(given, timeout=30)
    return process.returncode, said


def until(true: Any) -> None:
    for _ in SPARK.tries():
        if true():
            return
    raise AssertionError("never")


def state(process: int) -> str:
    """As the kernel tells it; X where there is none."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):  # before it was opened, or before it was read
        return "X"


def is_there(process: int) -> bool:
    return state(process) not in "ZX"


def made(parent: Path) -> Path:
    (parent / ("long" * 40) / "spark").mkdir(parents=True)
    return parent / ("long" * 40)


@contextmanager
def served(folder: Path) -> Iterator[Process]:
    with begin("serve", folder, variables={"OF_THE_SERVER": "yes"}) as process:
        until((folder / "spark" / channel.SOCKET).exists)
        yield process
        process.kill()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made(tmp_path_factory.mktemp("forks"))


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Process]:
    """For those who leave it as it is."""
    with served(folder) as process:
        yield process


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """The folder of a server that a test ends."""
    return made(tmp_path)


@pytest.fixture
def own_server(own: Path) -> Iterator[Process]:
    with served(own) as process:
        yield process


def begun(folder: Path) -> tuple[Process, int]:
    """A command whose run sleeps, and the run's process."""
    command = begin("ask", folder, "sleep")
    assert command.stdout is not None
    return command, int(command.stdout.readline())


def ended(command: Process) -> int:
    with command:
        return command.wait(30)


def test_it_takes_over_what_a_process_has(server: Process, folder: Path, tmp_path: Path) -> None:
    """Arguments, variables, folder, streams, mode and ignored signals; nothing of the server's."""

    def as_a_background_job() -> None:
        os.umask(0o027)
        signal.signal(signal.SIGINT, signal.SIG_IGN)

    work = tmp_path / "work"
    work.mkdir()
    code, said = ask(
        folder,
        "tell",
        "typed",
        cwd=work,
        variables={"OF_THE_COMMAND": "ü"},
        preexec_fn=as_a_background_job,
    )
    told = json.loads(said)
    *streams, _for_what_it_imported, _reading_the_list = told.pop("open")
    assert code == 3
    assert told == {
        "arguments": [forks.__file__, "ask", str(folder), "tell"],
        "folder": str(work),
        "variable": "ü",
        "others": None,
        "given": "typed",
        "ignored": True,
    }
    assert streams == [0, 1, 2]
    assert (work / "made").stat().st_mode & 0o777 == 0o640


def test_a_signal_to_the_command_is_the_runs(server: Process, folder: Path) -> None:
    """… which answers it as it likes; others end both in the same way."""
    command, run = begun(folder)
    command.send_signal(signal.SIGINT)
    assert ended(command) == 130
    command, run = begun(folder)
    command.send_signal(signal.SIGTERM)
    assert (ended(command), is_there(run)) == (-signal.SIGTERM, False)
    assert ask(folder, "die")[0] == -signal.SIGSEGV


def test_a_signal_that_comes_as_the_run_begins_is_the_runs(server: Process, folder: Path) -> None:
    """Before anybody listens for it there, too. The process that forks goes on: the fork's end is
    not its own."""
    assert [ended(begin("interrupted", folder, "sleep")) for _ in range(5)] == [130] * 5
    assert ask(folder, "tell")[0] == 3


def test_a_command_that_is_stopped_stops_its_run(server: Process, folder: Path) -> None:
    """By Ctrl-Z, until somebody has it go on."""
    command, run = begun(folder)
    command.send_signal(signal.SIGTSTP)
    until(lambda: (state(command.pid), state(run)) == ("T", "T"))
    command.send_signal(signal.SIGCONT)
    until(lambda: (state(command.pid), state(run)) == ("S", "S"))
    command.send_signal(signal.SIGINT)
    assert ended(command) == 130


def test_a_command_that_is_killed_takes_its_run_along(server: Process, folder: Path) -> None:
    """A lease is not held by a run that nobody waits for."""
    command, run = begun(folder)
    command.kill()
    assert ended(command) == -signal.SIGKILL
    until(lambda: not is_there(run))
    assert ask(folder, "tell")[0] == 3


def test_a_server_that_is_killed_takes_its_runs_along(own_server: Process, own: Path) -> None:
    """… and the command knows that its run did not end by itself. The next one begins alone."""
    command, run = begun(own)
    own_server.kill()
    assert ended(command) == forks.LOST
    until(lambda: not is_there(run))
    code, said = ask(own, "tell")
    assert (code, said) == (forks.DECLINED, "it does not answer (Connection refused)")


def test_it_ends_behind_its_last_run(own_server: Process, own: Path) -> None:
    """When Spark's server ends, which held the other end of its pipe, or by a signal."""
    assert own_server.stdin is not None
    command, _ = begun(own)
    own_server.stdin.close()
    until(lambda: ask(own, "tell")[0] != 3)
    assert own_server.poll() is None
    command.send_signal(signal.SIGINT)
    assert (ended(command), own_server.wait(30)) == (130, 0)
    assert ask(own, "tell")[0] == forks.NOBODY


def test_it_ends_by_a_signal(own_server: Process, own: Path) -> None:
    """As systemd ends all processes of a service: by SIGTERM."""
    command, _ = begun(own)
    own_server.terminate()
    until(lambda: ask(own, "tell")[0] != 3)
    command.send_signal(signal.SIGINT)
    assert (ended(command), own_server.wait(30)) == (130, 0)


def test_runs_beside_each_other(server: Process, folder: Path) -> None:
    """Each has its own signals and its own end."""
    commands = [begun(folder) for _ in range(3)]
    commands[1][0].send_signal(signal.SIGINT)
    assert ended(commands[1][0]) == 130
    assert [is_there(run) for _, run in commands] == [True, False, True]
    for command, _ in commands[::2]:
        command.send_signal(signal.SIGINT)
        assert ended(command) == 130


def test_what_one_imported_the_next_finds(server: Process, folder: Path) -> None:
    """The server imports it behind the first run."""
    assert ask(folder, "import")[0] == 0
    until(lambda: ask(folder, "import")[0] == 1)


def test_what_was_read_at_the_start_must_be_the_same(server: Process, folder: Path) -> None:
    """A variable that a library reads once would be the server's."""
    code, said = ask(folder, "tell", variables={"NUMBA_NUM_THREADS": "1"})
    assert (code, said) == (forks.DECLINED, "NUMBA_NUM_THREADS is not the same there")


def test_code_that_is_newer_than_the_servers(server: Process, folder: Path) -> None:
    """An upgrade under a server that stays: runs are by the new code, and people are told."""
    file = Path(forks.__file__)
    times = file.stat()
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns + 1))
    try:
        code, said = ask(folder, "tell")
    finally:
        os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert code == forks.DECLINED
    assert said == "its code is older than what is installed: restart `lockstep spark serve`"


def test_nonsense_and_strangers_end_no_server(server: Process, folder: Path) -> None:
    """Bytes that are no message, a message without descriptors, one that is cut off."""
    for message in (b"\xff", b"{}", b"[1]", b'{"surroundings": 1}', b'{"arguments": []}', b""):
        with channel.new_socket() as connection, channel.address(folder / "spark") as address:
            connection.connect(address)
            if message:
                connection.send(message)
            connection.shutdown(1)
    sleep(0.1)
    assert (ask(folder, "tell")[0], server.poll()) == (3, None)


@pytest.mark.parametrize("stream", [0, 1, 2])
def test_a_closed_stream(server: Process, folder: Path, stream: int) -> None:
    """What the command opened next would be in its place, and get what the run says."""
    with begin("ask", folder, "die", preexec_fn=lambda: os.close(stream)) as command:
        assert command.wait(30) == forks.NOBODY


def test_without_a_server(own: Path) -> None:
    """A command begins by itself."""
    assert ask(own, "tell")[0] == forks.NOBODY


def test_whose_surroundings_differ() -> None:
    """Each by its name; a variable that one of the two lacks, too."""
    own = surroundings()
    assert first_difference(own, surroundings()) is None
    for name in own:
        assert first_difference(own, {**own, name: "other"}) == name
    assert first_difference(own, {**own, "LD_PRELOAD": ""}) == "LD_PRELOAD"


def test_another_folder_by_the_same_name(tmp_path: Path) -> None:
    """As in a container, or where a service has files of its own."""
    seen = surroundings(str(tmp_path))
    tmp_path.rename(tmp_path.with_name("elsewhere"))
    tmp_path.mkdir()
    assert first_difference(seen, surroundings(str(tmp_path))) == f"the folder {tmp_path}"
