"""Set-up takes the first Python that fits, or a much quicker build of the same version."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from lockstep.interpreter import Python, choose, main, probe, programs

FIRST = Python("/one/python3.11", (3, 11, 7), (1.0, 2.0, 1.0))


@pytest.mark.parametrize(
    ("seconds", "instead"),
    [
        ((0.7, 1.4, 0.7), True),
        ((0.9, 1.8, 0.9), False),
        ((1.3, 2.6, 1.3), False),
        ((1.4, 1.4, 0.7), True),
        ((0.5, 2.0, 1.0), False),
    ],
)
def test_the_first_unless_another_is_much_quicker(
    seconds: tuple[float, ...], instead: bool
) -> None:
    """In most rounds; the machine was half as quick in the second, and once in a round."""
    other = Python("/two/python3.11", (3, 11, 2), seconds)
    assert choose(FIRST, []) == FIRST
    assert choose(FIRST, [other]) == (other if instead else FIRST)


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
    assert main(path, tmp_path) == 0
    told = capsys.readouterr()
    assert (told.out, told.err) == (f"{Path(sys.executable).resolve()}\n", "")
    assert main(str(broken), tmp_path) == 1


def test_what_is_chosen_instead_is_told_with_the_way_back(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is too old, and what is quicker but of another version, is not meant."""
    path = ":".join(
        str(answering(tmp_path / name, version, seconds))
        for name, version, seconds in (
            ("old", (3, 9, 1), 0.001),
            ("slow", (3, 11, 7), 0.003),
            ("other", (3, 12, 1), 0.001),
            ("quick", (3, 11, 2), 0.002),
        )
    )
    assert main(path, tmp_path) == 0
    told = capsys.readouterr()
    assert told.out == f"{tmp_path}/quick/python3\n"
    assert "1.5 times as long" in told.err
    assert f"make setup PYTHON={tmp_path}/slow/python3\n" in told.err


def answering(folder: Path, version: tuple[int, int, int], seconds: float) -> Path:
    """A folder with a program that answers as such a Python does."""
    program = folder / "python3"
    folder.mkdir()
    program.write_text(f"#!/bin/sh\necho '[\"{program}\", {list(version)}, {seconds}]'\n")
    program.chmod(0o755)
    return folder


def test_an_environment_keeps_its_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """To be made again from another build, with what is installed in it, would break it."""
    slow, quick = (
        answering(tmp_path / name, (3, 11, 7), seconds)
        for name, seconds in (("slow", 0.003), ("quick", 0.002))
    )
    (tmp_path / "pyvenv.cfg").write_text(f"home = {slow}\nexecutable = {slow}/python3\n")
    assert main(f"{slow}:{quick}", tmp_path) == 0
    assert capsys.readouterr() == (f"{slow}/python3\n", "")
    (slow / "python3").unlink()
    assert main(f"{slow}:{quick}", tmp_path) == 0
    assert capsys.readouterr().out == f"{quick}/python3\n"


def test_it_needs_the_standard_library_only() -> None:
    """It runs with the system's Python, before anything is installed."""
    root = Path(__file__).resolve().parents[1]
    command = [sys.executable, "-I", "-S", "-c", f"import sys; sys.path.insert(0, {str(root)!r})"]
    command[-1] += "; import lockstep.interpreter; assert not {'pipeline'} & set(sys.modules)"
    assert subprocess.run(command, check=False, cwd="/").returncode == 0
