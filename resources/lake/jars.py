"""Delta's jars, and those of the object stores: which ones, whether they are there, and fetching
them at set-up.

`lockstep setup` brings exactly the jars of `jars.lock`, and when asked to those of `jars-s3.lock`,
whose SHA-256 must match, into the environment. A run only looks whether they are there.
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

from pipeline.errors import SetupIncomplete

DELTA: Final = "jars.lock"
S3: Final = "jars-s3.lock"

SETUP: Final = {DELTA: "`lockstep setup`", S3: "`lockstep setup --with s3`"}
"""What brings the jars of a list."""


@dataclass(frozen=True, slots=True)
class Jar:
    organisation: str
    artifact: str
    version: str
    sha256: str

    @property
    def file_name(self) -> str:
        return f"{self.artifact}-{self.version}.jar"


def locked_jars(*locks: str) -> tuple[Jar, ...]:
    """Those of these lists, or of all."""
    found = []
    for lock in locks or (DELTA, S3):
        text = files("resources.lake").joinpath(lock).read_text(encoding="utf-8")
        lines = [line.split() for line in text.splitlines() if line and not line.startswith("#")]
        found += [Jar(*fields) for fields in lines]
    return tuple(found)


def jars_folder(prefix: str) -> Path:
    """Where set-up puts the jars inside a virtual environment (`sys.prefix`)."""
    return Path(prefix) / "share" / "lockstep" / "jars"


def class_path(folder: Path, lock: str = DELTA) -> tuple[Path, ...]:
    """The jars of a list in `folder`; `SetupIncomplete` if one is not there."""
    paths = tuple(folder / jar.file_name for jar in locked_jars(lock))
    missing = [path.name for path in paths if not path.is_file()]
    if missing:
        raise SetupIncomplete(
            f"Java's jars are not set up: {missing[0]} is missing", hint=SETUP[lock]
        )
    return paths


def unsound(folder: Path, jars: Iterable[Jar]) -> list[Jar]:
    """Jars that are missing from `folder` or have another content than locked."""
    return [jar for jar in jars if _digest(folder / jar.file_name) != jar.sha256]


def bring_jars(folder: Path, *locks: str, java: Path, settings: Path | None = None) -> list[Jar]:
    """Fetch what of these lists is missing or damaged in `folder`; the jars fetched.

    Each jar is checked, then moved into place whole. `settings` is an Ivy settings
    file for machines that reach Maven Central through a mirror of their own.
    """
    wanted = unsound(folder, locked_jars(*locks))
    if not wanted:
        return []
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder, prefix=".fetch-") as scratch:
        fetched = Path(scratch)
        _resolve(wanted, fetched, java, settings)
        wrong = unsound(fetched, wanted)
        if wrong:
            raise SetupIncomplete(
                f"{wrong[0].file_name} was not fetched with the content locked for it",
                hint="check what answers for Maven Central here, then `lockstep setup` again",
            )
        for jar in wanted:
            (fetched / jar.file_name).replace(folder / jar.file_name)
    return wanted


def _resolve(jars: Iterable[Jar], target: Path, java: Path, settings: Path | None) -> None:
    """Ivy, from pyspark's own jars, retrieves `jars` and nothing they depend on."""
    ivy_file = target / "ivy.xml"
    ivy_file.write_text(_ivy_module(jars), encoding="utf-8")
    own = files("resources.lake").joinpath("ivysettings.xml")
    settings_file = target / "ivysettings.xml"
    settings_file.write_bytes(settings.read_bytes() if settings else own.read_bytes())
    command = [
        *(str(java), "-cp", str(_ivy_jar()), "org.apache.ivy.Main"),
        *("-settings", str(settings_file), "-cache", str(target / "cache")),
        *("-ivy", str(ivy_file), "-types", "jar"),
        *("-retrieve", f"{target}/[artifact]-[revision].[ext]"),
    ]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    if answer.returncode != 0:
        raise SetupIncomplete(
            "Java's jars could not be fetched from Maven Central",
            hint="check the network, then `lockstep setup` again; a mirror of Maven Central: "
            "`lockstep setup --ivy-settings FILE`",
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


def _digest(path: Path) -> str | None:
    try:
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except FileNotFoundError:
        return None
