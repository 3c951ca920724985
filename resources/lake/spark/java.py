"""Java, which Spark needs and pip cannot install: how it is found, and its class-data
archive.

Nothing here imports pyspark, so a check that only needs Java is fast.

Java maps the archive into memory instead of loading and verifying some 20,000 classes
one by one (JEP 350, "Dynamic CDS Archives"). An archive is valid for one build of Java
and one class path; Java compares the jars by size and time. The archive's name is a
hash of all these. Without a valid archive, Java only starts more slowly.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from lockstep.pipeline.values.errors import JavaMissing

OLDEST_MAJOR = 17
"""Oldest major version of Java on which Spark 4 runs (Spark documentation, "Overview")."""

_INSTALL_HINT = (
    "install Java 17, then try again: `apt-get install openjdk-17-jre-headless` on Debian "
    "or Ubuntu, `brew install openjdk@17` on macOS; or point JAVA_HOME at one"
)

_VERSION = re.compile(r'version "(?:1\.)?(?P<major>\d+)')


@dataclass(frozen=True, slots=True)
class Java:
    """A usable Java: the program, its major version, and what `java -version` prints."""

    program: Path
    major: int
    description: str


def require_java(environment: Mapping[str, str]) -> Java:
    """Return the Java that Spark will use: the one in JAVA_HOME, otherwise the one on
    PATH. Raise `JavaMissing` if there is none, if it does not run, or if it is too
    old."""
    home = environment.get("JAVA_HOME")
    if home:
        program = Path(home) / "bin" / "java"
        if not program.is_file():
            raise JavaMissing(
                f"JAVA_HOME is {home}, but there is no bin/java in it", hint=_INSTALL_HINT
            )
    else:
        on_path = shutil.which("java", path=environment.get("PATH", ""))
        if on_path is None:
            raise JavaMissing("Spark needs Java, and no java is on PATH", hint=_INSTALL_HINT)
        program = Path(on_path)
    return _usable_java(program, program.stat().st_mtime_ns)


@cache
def _usable_java(program: Path, _modified_at: int) -> Java:
    """Run `java -version` and return the usable Java. The result is cached by the time
    at which the program's file was modified. Raise `JavaMissing` if the program does
    not run or is too old."""
    try:
        result = subprocess.run(
            [str(program), "-version"], capture_output=True, text=True, check=True, timeout=30
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise JavaMissing(f"{program} does not run", hint=_INSTALL_HINT) from error
    description = (result.stderr + result.stdout).strip()
    version = _VERSION.search(description)
    if version is None:
        raise JavaMissing(f"{program} does not print its version", hint=_INSTALL_HINT)
    major = int(version["major"])
    if major < OLDEST_MAJOR:
        raise JavaMissing(
            f"{program} is Java {major}; Spark needs {OLDEST_MAJOR} or newer", hint=_INSTALL_HINT
        )
    return Java(program, major, description)


def archive_path(jars_folder: Path, class_path: Sequence[Path], java: Java) -> Path:
    """Return the path of the archive of this Java and these jars, whether or not it
    exists."""
    identity = "\n".join([java.description, *map(_jar_identity, class_path)])
    return jars_folder.parent / f"classes-{hashlib.sha256(identity.encode()).hexdigest()[:16]}.jsa"


def _jar_identity(path: Path) -> str:
    if not path.is_file():
        return str(path)
    status = path.stat()
    return f"{path} {status.st_size} {int(status.st_mtime)}"


def make_archive(jars_folder: Path, class_path: Sequence[Path], java: Java) -> bool:
    """Create the archive unless it exists, and return whether it was created. A
    separate Spark process writes and merges a small table; when it ends, Java dumps the
    classes that it used. No error is raised if that fails, because starts are then only
    slower."""
    archive = archive_path(jars_folder, class_path, java)
    if archive.is_file():
        return False
    with tempfile.TemporaryDirectory(prefix="lockstep-archive-") as scratch:
        draft = archive.with_name(f".{archive.name}.{os.getpid()}")
        result = subprocess.run(
            [sys.executable, "-m", "lockstep.resources.lake.rehearsal", scratch, str(draft)],
            capture_output=True,
            check=False,
        )
        if result.returncode != 0 or not draft.is_file():
            draft.unlink(missing_ok=True)
            return False
        for old_archive in archive.parent.glob("classes-*.jsa"):
            old_archive.unlink(missing_ok=True)
        draft.replace(archive)
    return True
