"""The MariaDB programs the tests start, unpacked into the cache folder, never installed.

Belongs here: which packages they come from and the words that start them. What a data
folder needs is `data.py`, the settings of a running server are `server.py`.
"""

from __future__ import annotations

import platform
import subprocess
from pathlib import Path

from demo.mysql_packages import DebianPackage, through_own_loader, unpacked
from demo.mysql_search import Program
from pipeline.errors import SetupIncomplete
from tests.mariadb.maven import CURE, mariadb_11_4_files

MARIADB_10_11 = DebianPackage(
    title="MariaDB",
    folder="mariadb-debian-12",
    suite="bookworm",
    package="mariadb-server-core",
    cure="MariaDB's tests need Debian's apt-get, a mirror of Debian and its archive keyring",
)


def mariadb_10_11(cache: Path) -> Program:
    """MariaDB 10.11 as Debian 12 has it; fetched into `cache` if need be.

    Raises SetupIncomplete where there is no apt or no mirror of Debian.
    """
    root = unpacked(MARIADB_10_11, cache)
    started = through_own_loader(MARIADB_10_11, root, root / "usr/sbin/mariadbd")
    return _program(started, root / "usr/share/mysql", root / "usr/lib/mysql/plugin")


def mariadb_11_4(cache: Path, java: Path) -> Program:
    """MariaDB 11.4 from Maven Central, with the C library and the rest of Debian 12's.

    Raises SetupIncomplete on another processor than x86-64, or where one of the two
    cannot be fetched.
    """
    if platform.machine() != "x86_64":
        raise SetupIncomplete(f"MariaDB 11 is not built for {platform.machine()}", hint=CURE)
    libraries = unpacked(MARIADB_10_11, cache)
    root = mariadb_11_4_files(cache, java)
    started = through_own_loader(MARIADB_10_11, libraries, root / "bin/mariadbd")
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
