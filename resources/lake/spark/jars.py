"""The jars of Delta and of object stores: their lock files, their checks, and their
download.

`lockstep setup` downloads exactly the jars of `jars.lock` into the environment, and
those of `jars-s3.lock` if asked to; their SHA-256 must match. A run only checks that
they exist.
"""

from __future__ import annotations

import hashlib
import subprocess
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Final
from xml.sax.saxutils import quoteattr

from lockstep.pipeline.values.errors import SetupIncomplete
from lockstep.resources.lake.store.paths import LakePath, ObjectPath

DELTA_LOCK: Final = "jars.lock"
S3_LOCK: Final = "jars-s3.lock"

SETUP_COMMANDS: Final = {DELTA_LOCK: "`lockstep setup`", S3_LOCK: "`lockstep setup --with s3`"}
"""The command that downloads the jars of each lock file."""


@dataclass(frozen=True, slots=True)
class Jar:
    """A line of a lock file: a jar of Maven Central, and the SHA-256 of its content in
    hex."""

    organisation: str
    artifact: str
    version: str
    sha256: str

    @property
    def file_name(self) -> str:
        return f"{self.artifact}-{self.version}.jar"


def locked_jars(*locks: str) -> tuple[Jar, ...]:
    """Return the jars of these lock files, by default of all lock files."""
    jars = []
    for lock in locks or (DELTA_LOCK, S3_LOCK):
        text = files("lockstep.resources.lake.spark").joinpath(lock).read_text(encoding="utf-8")
        lines = [line.split() for line in text.splitlines() if line and not line.startswith("#")]
        jars += [Jar(*fields) for fields in lines]
    return tuple(jars)


def locks_of(lake: LakePath | None) -> tuple[str, ...]:
    """Return the lock files with the jars that Spark needs for a lake."""
    return (DELTA_LOCK, *store_locks(lake))


def store_locks(lake: LakePath | None) -> tuple[str, ...]:
    """Return the lock files with the jars that the lake's store needs besides Delta's:
    one for a store with S3's protocol. For other stores the user names a connector."""
    needs_s3 = isinstance(lake, ObjectPath) and lake.has_s3_protocol
    return (S3_LOCK,) if needs_s3 else ()


def jars_folder(prefix: str) -> Path:
    """Return the folder of the jars inside a virtual environment (`sys.prefix`)."""
    return Path(prefix) / "share" / "lockstep" / "jars"


def class_path(folder: Path, lock: str = DELTA_LOCK) -> tuple[Path, ...]:
    """Return the path in `folder` of each jar of a lock file. Raise `SetupIncomplete`
    if a jar is missing."""
    paths = tuple(folder / jar.file_name for jar in locked_jars(lock))
    missing = [path.name for path in paths if not path.is_file()]
    if missing:
        raise SetupIncomplete(
            f"Java's jars are not set up: {missing[0]} is missing",
            hint=f"run {SETUP_COMMANDS[lock]}",
        )
    return paths


def missing_or_damaged(folder: Path, jars: Iterable[Jar]) -> list[Jar]:
    """Return the jars that are missing from `folder` or differ from their locked
    content."""
    return [jar for jar in jars if _sha256_if_exists(folder / jar.file_name) != jar.sha256]


def download_jars(
    folder: Path, *locks: str, java: Path, ivy_settings: Path | None = None
) -> list[Jar]:
    """Download the jars of these lock files that are missing or damaged in `folder`,
    and return them. All are checked before the first is moved to `folder`. `java`: the
    program. `ivy_settings`: an Ivy settings file, for machines that reach Maven Central
    through another server."""
    unusable_jars = missing_or_damaged(folder, locked_jars(*locks))
    if not unusable_jars:
        return []
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder, prefix=".fetch-") as scratch:
        fetch_folder = Path(scratch)
        _download(unusable_jars, fetch_folder, java, ivy_settings)
        damaged = missing_or_damaged(fetch_folder, unusable_jars)
        if damaged:
            raise SetupIncomplete(
                f"{damaged[0].file_name} was downloaded, but its SHA-256 is not the one in "
                "the lock file",
                hint="check which server answers for Maven Central on this network, then run "
                "`lockstep setup` again",
            )
        for jar in unusable_jars:
            (fetch_folder / jar.file_name).replace(folder / jar.file_name)
    return unusable_jars


def _download(jars: Iterable[Jar], target: Path, java: Path, ivy_settings: Path | None) -> None:
    """Download `jars`, without their dependencies, with the copy of Ivy that is among
    pyspark's jars."""
    ivy_file = target / "ivy.xml"
    ivy_file.write_text(_ivy_module(jars), encoding="utf-8")
    default_settings = files("lockstep.resources.lake.spark").joinpath("ivysettings.xml")
    settings_file = target / "ivysettings.xml"
    settings_file.write_bytes(
        ivy_settings.read_bytes() if ivy_settings else default_settings.read_bytes()
    )
    command = [
        *(str(java), "-cp", str(_ivy_jar()), "org.apache.ivy.Main"),
        *("-settings", str(settings_file), "-cache", str(target / "cache")),
        *("-ivy", str(ivy_file), "-types", "jar"),
        *("-retrieve", f"{target}/[artifact]-[revision].[ext]"),
    ]
    ivy = subprocess.run(command, capture_output=True, text=True, check=False)
    if ivy.returncode != 0:
        raise SetupIncomplete(
            "Java's jars could not be downloaded from Maven Central",
            hint="check the network, then run `lockstep setup` again; for a mirror of Maven "
            "Central, run `lockstep setup --ivy-settings FILE`",
        )


def _ivy_module(jars: Iterable[Jar]) -> str:
    lines = "".join(
        f"<dependency org={quoteattr(jar.organisation)} name={quoteattr(jar.artifact)} "
        f'rev={quoteattr(jar.version)} transitive="false"/>'
        for jar in jars
    )
    return (
        '<ivy-module version="2.0"><info organisation="lockstep" module="jars"/>'
        f"<dependencies>{lines}</dependencies></ivy-module>"
    )


def _ivy_jar() -> Path:
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise SetupIncomplete("pyspark is not installed", hint="install Lockstep again")
    paths = sorted((Path(spec.origin).parent / "jars").glob("ivy-*.jar"))
    if not paths:
        raise SetupIncomplete("pyspark came without its jars", hint="install Lockstep again")
    return paths[0]


def _sha256_if_exists(path: Path) -> str | None:
    try:
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except FileNotFoundError:
        return None
