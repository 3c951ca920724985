"""The log store: the one class of Java in the product, in a jar that is part of the package.

    python -m resources.lake.log_store

makes the jar anew (`make jar`), byte for byte the same by the same javac: it tells in its
manifest which one that was, and the source's SHA-256. Belongs here: where the jar is, that Delta
uses what is in it, making it. Does not: what it does (`PinnedLogStore.java`), nor at which
version a commit is to be made (`pin`).
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tempfile
import zipfile
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pipeline.errors import LakeUnavailable, SetupIncomplete

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CLASS: Final = "lockstep.delta.PinnedLogStore"
SETTING: Final = "spark.delta.logStore.file.impl"
SOURCE: Final = Path(__file__).with_name("PinnedLogStore.java")
JAR: Final = Path(__file__).with_name("lockstep-log-store.jar")
RELEASE: Final = "17"

_MOMENT: Final = (1980, 1, 1, 0, 0, 0)
"""Of every file in the jar: the first that a zip can tell."""


def log_store_jar() -> Path:
    """The jar; `SetupIncomplete` where the package came without it."""
    if not JAR.is_file():
        raise SetupIncomplete(
            f"{JAR.name} is missing from the package", hint="install Lockstep again"
        )
    return JAR


def require_log_store(session: SparkSession) -> None:
    """`LakeUnavailable` unless it is our class that Delta writes local files' logs with: any
    other would commit wherever it can."""
    jvm = session.sparkContext._jvm
    assert jvm is not None
    stores = getattr(jvm, "org.apache.spark.sql.delta.storage.LogStore$")
    store = getattr(stores, "MODULE$").apply(session._jsparkSession)
    root = jvm.org.apache.hadoop.fs.Path("/")
    system = root.getFileSystem(session._jsparkSession.sessionState().newHadoopConf())
    chosen = store.getDelegate(system.makeQualified(root))
    found = chosen.logStoreImpl() if hasattr(chosen, "logStoreImpl") else chosen
    name = str(found.getClass().getName())
    if name != CLASS:
        raise LakeUnavailable(
            f"Spark would write the tables' logs with {name}, which does not stop a late run from "
            "committing",
            hint="take everything about log stores and file systems out of [spark] in "
            "lockstep.toml, then run again",
        )


def build(target: Path, *, against: str) -> None:
    """Compile the source, with the class path `against`, into a jar."""
    with tempfile.TemporaryDirectory() as scratch:
        command = ["javac", "--release", RELEASE, "-Xlint:all", "-Werror", "-d", scratch]
        subprocess.run([*command, "-cp", against, str(SOURCE)], check=True)
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
    return hashlib.sha256(SOURCE.read_bytes()).hexdigest()


def javac_version() -> str:
    done = subprocess.run(["javac", "-version"], check=True, capture_output=True, text=True)
    return done.stdout.strip()


def compile_path(delta: Path) -> str:
    """What the source is compiled against: Delta's jars in a folder, and Spark's Hadoop."""
    spec = find_spec("pyspark")
    assert spec is not None and spec.origin is not None, "pyspark is a dependency"
    hadoop = (Path(spec.origin).parent / "jars").glob("hadoop-client-api-*.jar")
    return ":".join(map(str, [*sorted(delta.glob("delta-storage-*.jar")), *sorted(hadoop)]))


if __name__ == "__main__":
    from resources.lake.jars import jars_folder

    build(JAR, against=compile_path(jars_folder(sys.prefix)))
