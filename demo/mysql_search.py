"""Finds a MySQL for the demo and the tests. `mysqld` starts it."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote, urlsplit

from demo.mysql_packages import packaged_mysqld
from lockstep.pipeline.values.errors import ConfigurationError

VARIABLE = "LOCKSTEP_TEST_MYSQL"
IMAGE = "mysql:8.4"
_VERSION = re.compile(r"Ver (?P<major>\d+)\.\d+\.\d+")


@dataclass(frozen=True, slots=True)
class GivenServer:
    """A server that somebody else runs, which we never start, stop or configure."""

    host: str
    port: int
    user: str
    password: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Program:
    """A `mysqld` of this host: the words that start it, and the version line that it prints."""

    command: tuple[str, ...]
    version: str


@dataclass(frozen=True, slots=True)
class DockerImage:
    """A MySQL image for a Docker engine that answers."""

    image: str


MySql = GivenServer | Program | DockerImage


def find_mysql(environment: Mapping[str, str]) -> MySql:
    """Return the first of LOCKSTEP_TEST_MYSQL, `mysqld` on PATH, Docker and Debian's packages,
    which are downloaded once into the user's cache. `ConfigurationError` if LOCKSTEP_TEST_MYSQL
    is no address, `SetupIncomplete` if there is no MySQL."""
    if environment.get(VARIABLE):
        return given_server(environment[VARIABLE])
    return _on_path(environment) or _docker() or _packaged(environment)


def given_server(dsn: str) -> GivenServer:
    """Parse `mysql://user:password@host:port`, whose port is 3306 by default."""
    parts = urlsplit(dsn)
    if parts.scheme != "mysql" or not parts.hostname or not parts.username:
        raise ConfigurationError(
            f"{VARIABLE} is not a server's address",
            hint=f"{VARIABLE}=mysql://root:password@127.0.0.1:3306",
        )
    password = unquote(parts.password or "")
    return GivenServer(parts.hostname, parts.port or 3306, unquote(parts.username), password)


def cache_folder(environment: Mapping[str, str]) -> Path:
    """Return the folder that keeps unpacked packages and prepared data folders."""
    base = environment.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "lockstep"


def suits(version: str) -> bool:
    """Return whether the output of `mysqld --version` is that of MySQL 8.0 or newer, not of
    MariaDB."""
    match = _VERSION.search(version)
    return "mariadb" not in version.lower() and match is not None and int(match["major"]) >= 8


def _version(command: tuple[str, ...]) -> str:
    done = subprocess.run([*command, "--version"], capture_output=True, text=True, check=False)
    return done.stdout.strip()


def _on_path(environment: Mapping[str, str]) -> Program | None:
    # Debian has servers in sbin, which is not on every account's PATH.
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
        done = subprocess.run(
            [program, "info", "--format", "{{.ServerVersion}}"],
            capture_output=True,
            check=False,
            timeout=5,
        )
    except subprocess.TimeoutExpired:
        return None
    return DockerImage(IMAGE) if done.returncode == 0 else None


def _packaged(environment: Mapping[str, str]) -> Program:
    command = packaged_mysqld(cache_folder(environment))
    return Program(command, _version(command))
