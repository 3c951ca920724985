"""A tool's process; and Percona Toolkit's programs, from Debian's packages, never installed.

Belongs here: which package it comes from and the words that start it. Does not: who writes
meanwhile, what a run makes of it.

Its Perl, Perl's modules and the client library are the packages' own, and so is the C
library: it runs on a Debian of any age.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, Self

from demo.mysql_packages import DebianPackages, command_with_own_loader, unpack
from tests.fix_mysql import MySqlStand

PATIENCE_SECONDS: Final = 180


class Tool:
    """One process, whose output goes to `log`. Left behind, it is killed."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], log: Path) -> None:
        self._log = log
        with log.open("wb") as output:
            self._process = subprocess.Popen(
                command,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()

    def hold(self, reached: Callable[[], bool]) -> None:
        """Stop it as soon as `reached` is true, which is asked again and again."""
        while not reached():
            assert self._process.poll() is None, self._said()
        self._process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        self._process.send_signal(signal.SIGCONT)

    def require_done(self) -> None:
        """It ends by itself, and well."""
        code = self._process.wait(PATIENCE_SECONDS)
        assert code == 0, self._said()

    def _said(self) -> str:
        return self._log.read_text(errors="replace")[-4000:]


PERCONA_TOOLKIT: Final = DebianPackages(
    title="Percona Toolkit",
    folder="percona-toolkit-debian-12",
    suite="bookworm",
    names="percona-toolkit",
    cure="its tests need Debian's apt-get, a mirror of Debian and its archive keyring",
)

_MODULES: Final = (
    "usr/lib/*-linux-gnu/perl5/5.*",
    "usr/share/perl5",
    "usr/lib/*-linux-gnu/perl-base",
    "usr/lib/*-linux-gnu/perl/5.*",
    "usr/share/perl/5.*",
)
"""Where Debian's Perl looks for modules (`perl -V`), below the packages' root."""


class PerconaToolkit:
    """The unpacked toolkit; fetched into `cache` if need be.

    Raises SetupIncomplete where there is no apt or no mirror of Debian.
    """

    def __init__(self, cache: Path) -> None:
        root = unpack(PERCONA_TOOLKIT, cache)
        perl = command_with_own_loader(PERCONA_TOOLKIT, root, root / "usr/bin/perl")
        self._perl, self._programs = perl, root / "usr/bin"
        self._command = (*perl, str(root / "usr/bin/pt-online-schema-change"))
        modules = [str(folder) for module in _MODULES for folder in sorted(root.glob(module))]
        (plugins,) = root.glob("usr/lib/*-linux-gnu/libmariadb3/plugin")
        self._environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(root),
            "PERL5LIB": ":".join(modules),
            # The account's way of logging in, caching_sha2_password, is one of them.
            "MARIADB_PLUGIN_DIR": str(plugins),
        }

    def online_schema_change(
        self, mysql: MySqlStand, database: str, table: str, alter: str, log: Path, *more: str
    ) -> Tool:
        """The program, started: twenty rows a chunk and a rest after each, so that there is a
        middle. `more`: further options."""
        dsn = f"h=127.0.0.1,P={mysql.port},u={mysql.server.user},D={database},t={table}"
        options: Sequence[str] = (
            *("--execute", "--alter", alter, "--no-version-check", "--recursion-method=none"),
            *("--chunk-size=20", "--chunk-time=0", "--sleep=0.02", "--progress=time,1"),
            # It looks for the column `rows`, and takes the table for an empty one without.
            "--set-vars=explain_format=TRADITIONAL",
            # Writers hold rows; ten tries, which is the default, can be too few for a small table.
            *("--tries", "copy_rows:100:0.1,swap_tables:100:0.1,create_triggers:100:0.1"),
        )
        password = [f"--password={mysql.server.password}"] if mysql.server.password else []
        command = [*self._command, *options, *password, *more, dsn]
        return Tool(command, self._environment, log)

    def run(self, program: str, mysql: MySqlStand, *options: str) -> str:
        """Another program of the toolkit, to its end; what it said."""
        password = [f"--password={mysql.server.password}"] if mysql.server.password else []
        host = ["--host=127.0.0.1", f"--port={mysql.port}", f"--user={mysql.server.user}"]
        command = [*self._perl, str(self._programs / program), *host, *password, *options]
        done = subprocess.run(
            command, env=self._environment, capture_output=True, text=True, check=False, timeout=60
        )
        return done.stdout + done.stderr
