"""Finds a MySQL for the demo and the tests, which the module `mysqld` then starts."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote, urlsplit

from demo.mysql_packages import packaged_mysqld_command
from lockstep.pipeline.values.errors import ConfigurationError

ADDRESS_VARIABLE = "LOCKSTEP_TEST_MYSQL"
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
    """The name of a MySQL image; the Docker engine of this host answers."""

    image: str


MySql = GivenServer | Program | DockerImage


def find_mysql(environment: Mapping[str, str]) -> MySql:
    """Return the first of LOCKSTEP_TEST_MYSQL, `mysqld` on PATH, Docker and Debian's packages,
    which are downloaded once into the user's cache. `ConfigurationError` if LOCKSTEP_TEST_MYSQL
    is no address, `SetupIncomplete` if there is no MySQL."""
    if environment.get(ADDRESS_VARIABLE):
        return parse_given_server(environment[ADDRESS_VARIABLE])
    return _program_on_path(environment) or _docker_image() or _packaged_program(environment)


def parse_given_server(dsn: str) -> GivenServer:
    """Parse `mysql://user:password@host:port`, whose port is 3306 by default."""
    parts = urlsplit(dsn)
    if parts.scheme != "mysql" or not parts.hostname or not parts.username:
        raise ConfigurationError(
            f"{ADDRESS_VARIABLE} is not a server's address",
            hint=f"{ADDRESS_VARIABLE}=mysql://root:password@127.0.0.1:3306",
        )
    password = unquote(parts.password or "")
    return GivenServer(parts.hostname, parts.port or 3306, unquote(parts.username), password)


def cache_folder(environment: Mapping[str, str]) -> Path:
    """Return the folder that keeps unpacked packages and prepared data folders."""
    base = environment.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "lockstep"


def is_suitable(version: str) -> bool:
    """Return whether `version`, the output of `mysqld --version`, is that of MySQL 8.0 or newer,
    not of MariaDB."""
    match = _VERSION.search(version)
    return "mariadb" not in version.lower() and match is not None and int(match["major"]) >= 8


def _version(command: tuple[str, ...]) -> str:
    process = subprocess.run([*command, "--version"], capture_output=True, text=True, check=False)
    return process.stdout.strip()


def _program_on_path(environment: Mapping[str, str]) -> Program | None:
    # Debian has servers in sbin, which is not on every account's PATH.
    path = environment.get("PATH", "") + ":/usr/sbin:/usr/local/sbin"
    program = shutil.which("mysqld", path=path)
    if program is None:
        return None
    version = _version((program,))
    return Program((program, "--no-defaults"), version) if is_suitable(version) else None


def _docker_image() -> DockerImage | None:
    program = shutil.which("docker")
    if program is None:
        return None
    try:
        process = subprocess.run(
            [program, "info", "--format", "{{.ServerVersion}}"],
            capture_output=True,
            check=False,
            timeout=5,
        )
    except subprocess.TimeoutExpired:
        return None
    return DockerImage(IMAGE) if process.returncode == 0 else None


def _packaged_program(environment: Mapping[str, str]) -> Program:
    command = packaged_mysqld_command(cache_folder(environment))
    return Program(command, _version(command))
