"""The files of a session of tests go with it, however it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.conftest import KEPT_SESSIONS, PREFIX

REPOSITORY = Path(__file__).resolve().parents[1]
SESSION = """
import os, signal, sys
from pathlib import Path
from tests import conftest
for _ in range(int(sys.argv[3])):
    own = conftest.own_folder(Path(sys.argv[1]))
    (own.folder / "gigabytes").touch()
    print(own.folder, flush=True)
    match sys.argv[2]:
        case "is killed":
            os.kill(os.getpid(), signal.SIGKILL)
        case "fails":
            conftest.FAILED.append(None)
    conftest.leave(own, os.getpid())
"""


def sessions(parent: Path, how: str, count: int = 1) -> list[Path]:
    """The folders of so many sessions, one after the other, that ended like this."""
    done = subprocess.run(
        [sys.executable, "-c", SESSION, parent, how, str(count)],
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    assert done.returncode == (-signal.SIGKILL if how == "is killed" else 0)
    return [Path(line) for line in done.stdout.splitlines()]


def test_what_a_killed_session_left_is_removed_by_the_next_one(tmp_path: Path) -> None:
    [left] = sessions(tmp_path, "is killed")
    assert [path.name for path in left.iterdir()] == ["gigabytes"]
    sessions(tmp_path, "passes")
    assert [*tmp_path.iterdir()] == []


def test_what_failed_is_kept_in_the_newest_sessions(tmp_path: Path) -> None:
    left = sessions(tmp_path, "fails", KEPT_SESSIONS + 1)
    for age, folder in enumerate(reversed(left)):
        os.utime(folder, (time.time() - age, time.time() - age))
    sessions(tmp_path, "passes")
    assert {*tmp_path.iterdir()} == {*left[1:]}


@pytest.mark.skipif(PREFIX not in os.environ.get("TMPDIR", ""), reason="TMPDIR says where")
def test_this_session_has_such_a_folder(tmp_path: Path) -> None:
    """And its lock is beside it."""
    [own] = (path for path in tmp_path.parents if path.name.startswith(PREFIX))
    assert own.with_name(f"{own.name}.lock").exists()
