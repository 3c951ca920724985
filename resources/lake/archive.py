"""The class-data archive: Java's prepared classes, which halve Spark's start.

Java maps the archive instead of loading and checking some 20,000 classes one by one
(JEP 350, "Dynamic CDS Archives"). It holds for one build of Java and one class path, whose
jars Java compares by size and time, so its name is made of all that; where it is absent or does
not fit, Java starts without it.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from resources.lake.java import Java


def archive_path(jars: Path, class_path: Sequence[Path], java: Java) -> Path:
    """The archive that belongs to this Java and these jars, whether it exists or not."""
    told = "\n".join([java.description, *map(_jar, class_path)])
    return jars.parent / f"classes-{hashlib.sha256(told.encode()).hexdigest()[:16]}.jsa"


def _jar(path: Path) -> str:
    if not path.is_file():
        return str(path)
    found = path.stat()
    return f"{path} {found.st_size} {int(found.st_mtime)}"


def make_archive(jars: Path, class_path: Sequence[Path], java: Java) -> bool:
    """Make the archive unless it is there; whether one was made.

    A Spark of its own writes and merges a small table, then leaves behind the classes it
    used. Failing costs nothing but the speed, so it is no error.
    """
    target = archive_path(jars, class_path, java)
    if target.is_file():
        return False
    with tempfile.TemporaryDirectory(prefix="lockstep-archive-") as scratch:
        unfinished = target.with_name(f".{target.name}.{os.getpid()}")
        answer = subprocess.run(
            [sys.executable, "-m", "resources.lake.rehearsal", scratch, str(unfinished)],
            capture_output=True,
            check=False,
        )
        if answer.returncode != 0 or not unfinished.is_file():
            unfinished.unlink(missing_ok=True)
            return False
        for old in target.parent.glob("classes-*.jsa"):
            old.unlink(missing_ok=True)
        unfinished.replace(target)
    return True
