"""Java is found, or its cure is said."""

from __future__ import annotations

from pathlib import Path

import pytest

from lockstep.java import installed_version, java_program, main, major_version


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('openjdk version "21" 2023-09-19', 21),
        ('java version "1.8.0_401"', 8),
        ("The operation couldn't be completed. Unable to locate a Java Runtime.", None),
    ],
)
def test_the_version_is_read(text: str, expected: int | None) -> None:
    """Old and new numbering, and the stub that only says there is none."""
    assert major_version(text) == expected


def java(folder: Path, version: str) -> Path:
    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    program.chmod(0o755)
    return program


def test_java_home_comes_before_the_path(tmp_path: Path) -> None:
    """As Spark's own start script does it."""
    home, path = java(tmp_path / "home", "21.0.1"), java(tmp_path / "path", "17.0.1")
    environment = {"JAVA_HOME": str(tmp_path / "home"), "PATH": str(path.parent)}
    assert (java_program(environment), installed_version(environment)) == (str(home), 21)


def test_an_old_java_is_refused_with_its_cure(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A JAVA_HOME with Java 11 is not replaced behind its owner's back."""
    java(tmp_path, "11.0.2")
    code = main({"JAVA_HOME": str(tmp_path), "PATH": "/usr/bin:/bin"})
    said = capsys.readouterr().err
    assert (code, "Java 11 is too old" in said, "17" in said.splitlines()[-1]) == (2, True, True)
