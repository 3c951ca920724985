"""Making the jar: the classes of Java in the product.

    python -m tests.lake.build_log_store

makes it anew (`make jar`), byte for byte the same by the same javac: it tells in its manifest
which one that was, and the sources' SHA-256. Belongs here: compiling, and what a jar tells of
itself. Does not: anything that a run needs (`log_store`).
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tempfile
import zipfile
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from lockstep.resources.lake.spark.jars import jars_folder
from lockstep.resources.lake.spark.log_store import LOG_STORE_JAR

SOURCES: Final = tuple(
    LOG_STORE_JAR.with_name(f"{name}.java")
    for name in ("PinnedLogStore", "ObjectLogStore", "LocalFiles")
)
RELEASE: Final = "17"

_SHORT: Final = ("-J-XX:TieredStopAtLevel=1", "-J-XX:+UseSerialGC")
"""For a Java that runs for a second."""

_MOMENT: Final = (1980, 1, 1, 0, 0, 0)
"""Of every file in the jar: the first that a zip can tell."""


def build(target: Path, *, against: str) -> None:
    """Compile the sources, with the class path `against`, into a jar."""
    with tempfile.TemporaryDirectory() as scratch:
        command = ["javac", *_SHORT, "--release", RELEASE, "-Xlint:all", "-Werror", "-d", scratch]
        subprocess.run([*command, "-cp", against, *map(str, SOURCES)], check=True)
        classes = {
            str(path.relative_to(scratch)): path.read_bytes()
            for path in sorted(Path(scratch).rglob("*.class"))
        }
    manifest = (
        "Manifest-Version: 1.0\r\n"
        f"Created-By: {javac_version()}\r\n"
        f"Source-SHA-256: {source_digest()}\r\n\r\n"
    )
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as jar:
        for name, content in {"META-INF/MANIFEST.MF": manifest.encode(), **classes}.items():
            entry = zipfile.ZipInfo(name, _MOMENT)
            entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
            jar.writestr(entry, content)


def told_by(jar: Path) -> dict[str, str]:
    """The manifest of a jar."""
    with zipfile.ZipFile(jar) as opened:
        text = opened.read("META-INF/MANIFEST.MF").decode()
    return dict(line.split(": ", 1) for line in text.splitlines() if line)


def source_digest() -> str:
    return hashlib.sha256(b"".join(source.read_bytes() for source in SOURCES)).hexdigest()


def javac_version() -> str:
    done = subprocess.run(["javac", "-version"], check=True, capture_output=True, text=True)
    return done.stdout.strip()


def compile_path(delta: Path) -> str:
    """What the sources are compiled against: Delta's jars in a folder, and Spark's Hadoop."""
    spec = find_spec("pyspark")
    assert spec is not None and spec.origin is not None, "pyspark is a dependency"
    hadoop = (Path(spec.origin).parent / "jars").glob("hadoop-client-api-*.jar")
    return ":".join(map(str, [*sorted(delta.glob("delta-storage-*.jar")), *sorted(hadoop)]))


if __name__ == "__main__":
    build(LOG_STORE_JAR, against=compile_path(jars_folder(sys.prefix)))
