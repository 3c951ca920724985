"""Which MySQL the demo and the tests run on.

Belongs here: the order in which one is looked for, and the values that describe what
was found. Starting it is `mysqld.py`, fetching Debian's is `mysql_packages.py`.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote, urlsplit

from demo.mysql_packages import packaged_mysqld
from pipeline.errors import ConfigurationError

VARIABLE = "LOCKSTEP_TEST_MYSQL"
IMAGE = "mysql:8.4"
_VERSION = re.compile(r"Ver (?P<major>\d+)\.\d+\.\d+")


@dataclass(frozen=True, slots=True)
class GivenServer:
    """A server somebody else runs; never started, stopped or set by us."""

    host: str
    port: int
    user: str
    password: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Program:
    """The words that start a `mysqld` on this machine, its version line as it prints it."""

    command: tuple[str, ...]
    version: str


@dataclass(frozen=True, slots=True)
class DockerImage:
    """An image of MySQL for a Docker engine that answered."""

    image: str


MySql = GivenServer | Program | DockerImage


def find_mysql(environment: Mapping[str, str]) -> MySql:
    """The MySQL to use: LOCKSTEP_TEST_MYSQL, `mysqld` on PATH, Docker, Debian's packages.

    May download (once, into the user's cache folder). Raises ConfigurationError for a
    LOCKSTEP_TEST_MYSQL that is no DSN, SetupIncomplete if no MySQL is to be had.
    """
    if environment.get(VARIABLE):
        return given_server(environment[VARIABLE])
    return _on_path(environment) or _docker() or _packaged(environment)


def given_server(dsn: str) -> GivenServer:
    """`mysql://user:password@host:port`, the port 3306 unless given."""
    parts = urlsplit(dsn)
    if parts.scheme != "mysql" or not parts.hostname or not parts.username:
        raise ConfigurationError(
            f"{VARIABLE} is not a server's address",
            hint=f"{VARIABLE}=mysql://root:password@127.0.0.1:3306",
        )
    password = unquote(parts.password or "")
    return GivenServer(parts.hostname, parts.port or 3306, unquote(parts.username), password)


def cache_folder(environment: Mapping[str, str]) -> Path:
    """Where unpacked packages and prepared data folders are kept between runs."""
    base = environment.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "lockstep"


def suits(version: str) -> bool:
    """Whether `mysqld --version` speaks of MySQL 8.0 or newer, and not of MariaDB."""
    match = _VERSION.search(version)
    return "mariadb" not in version.lower() and match is not None and int(match["major"]) >= 8


def _version(command: tuple[str, ...]) -> str:
    asked = subprocess.run([*command, "--version"], capture_output=True, text=True, check=False)
    return asked.stdout.strip()


def _on_path(environment: Mapping[str, str]) -> Program | None:
    # Debian keeps servers in sbin, which is not on everybody's PATH.
    path = environment.get("PATH", "") + ":/usr/sbin:/usr/local/sbin"
    program = shutil.which("mysqld", path=path)
    if program is None:
        return None
    version = _version((program,))
    return Program((program, "--no-defaults"), version) if suits(version) else None


def _docker() -> DockerImage | None:
    program = shutil.which("docker")
    if program is None:
        return None
    try:
        asked = subprocess.run(
            [program, "info", "--format", "{{.ServerVersion}}"],
            capture_output=True,
            check=False,
            timeout=5,
        )
    except subprocess.TimeoutExpired:
        return None
    return DockerImage(IMAGE) if asked.returncode == 0 else None


def _packaged(environment: Mapping[str, str]) -> Program:
    command = packaged_mysqld(cache_folder(environment))
    return Program(command, _version(command))
