"""Set-up takes the first Python that fits, or a much quicker build of the same version."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from lockstep.interpreter import Python, choose, main, probe, programs

FIRST = Python("/one/python3.11", (3, 11, 7), 1.0)


@pytest.mark.parametrize(
    ("others", "chosen"),
    [
        ((), 0),
        ((Python("/two/python3.11", (3, 11, 2), 0.7),), 1),
        ((Python("/two/python3.11", (3, 11, 2), 0.9),), 0),  # may be chance
        ((Python("/two/python3.12", (3, 12, 1), 0.5),), 0),  # another version was not meant
    ],
)
def test_the_first_unless_it_is_slow(others: tuple[Python, ...], chosen: int) -> None:
    found = (FIRST, *others)
    assert choose(found) == found[chosen]


def test_what_is_too_old_is_not_chosen() -> None:
    old = Python("/one/python3.9", (3, 9, 2), 0.1)
    assert choose((old, FIRST)) == FIRST
    assert choose((old,)) is None


def test_those_of_path_that_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What does not run and what has no `venv` is passed over in silence."""
    broken, whole = tmp_path / "broken", tmp_path / "whole"
    for folder, name, script in (
        (broken, "python3", "exit 1"),
        (broken, "python3.11", "echo no-answer"),
        (broken, "python3-config", "exit 1"),
        (whole, "python3", f'exec {sys.executable} "$@"'),
    ):
        folder.mkdir(exist_ok=True)
        (folder / name).write_text(f"#!/bin/sh\n{script}\n")
        (folder / name).chmod(0o755)
    path = f"{broken}:{tmp_path / 'missing'}::{whole}:{whole}"
    assert list(programs(path)) == [broken / "python3", broken / "python3.11", whole / "python3"]
    assert probe(broken / "python3") is probe(broken / "python3.11") is None
    assert main(path) == 0
    told = capsys.readouterr()
    assert (told.out, told.err) == (f"{Path(sys.executable).resolve()}\n", "")
    assert main(str(broken)) == 1


def test_what_is_chosen_instead_is_told_with_the_way_back(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Both builds answer as Pythons do."""
    for name, seconds in (("slow", 0.003), ("quick", 0.002)):
        program = tmp_path / name / "python3.11"
        program.parent.mkdir()
        program.write_text(f"#!/bin/sh\necho '[\"{program}\", [3, 11, 7], {seconds}]'\n")
        program.chmod(0o755)
    assert main(f"{tmp_path}/slow:{tmp_path}/quick") == 0
    told = capsys.readouterr()
    assert told.out == f"{tmp_path}/quick/python3.11\n"
    assert "1.5 times as long" in told.err
    assert f"make setup PYTHON={tmp_path}/slow/python3.11\n" in told.err


def test_it_needs_the_standard_library_only() -> None:
    """It runs with the system's Python, before anything is installed."""
    root = Path(__file__).resolve().parents[1]
    command = [sys.executable, "-I", "-S", "-c", f"import sys; sys.path.insert(0, {str(root)!r})"]
    command[-1] += "; import lockstep.interpreter; assert not {'pipeline'} & set(sys.modules)"
    assert subprocess.run(command, check=False, cwd="/").returncode == 0
