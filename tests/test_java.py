"""Set-up finds Java or says its cure; `tests/lake` proves what a usable Java is."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from lockstep.java import main


def java(folder: Path, version: str) -> None:
    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    program.chmod(0o755)


def test_a_new_java_passes_in_silence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Set-up says nothing where nothing is to be done."""
    java(tmp_path, "21.0.1")
    assert main({"JAVA_HOME": str(tmp_path), "PATH": ""}) == 0
    assert capsys.readouterr().err == ""


def test_an_old_java_is_refused_with_its_cure(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A JAVA_HOME with Java 11 is not replaced behind its owner's back."""
    java(tmp_path, "11.0.2")
    code = main({"JAVA_HOME": str(tmp_path), "PATH": "/usr/bin:/bin"})
    said = capsys.readouterr().err
    assert (code, "is Java 11" in said, "hint: install Java 17" in said) == (2, True, True)


def test_set_up_needs_the_standard_library_only() -> None:
    """It runs with the system's Python, before anything is installed."""
    root = Path(__file__).resolve().parents[1]
    command = [
        sys.executable,
        "-I",
        "-S",
        "-c",
        f"import sys; sys.path.insert(0, {str(root)!r}); import lockstep.java",
    ]
    assert subprocess.run(command, check=False, cwd="/").returncode == 0
