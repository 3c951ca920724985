"""Data folders for `mysqld`, copied from one that was initialised before.

Initialising takes seconds, copying tenths of one. The prepared folder is kept per
version of the program; every copy becomes a server with a UUID of its own.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from demo.mysql_search import Program
from pipeline.errors import SetupIncomplete
from resources.file_lock import alone

# Options that are fixed when a data folder is initialised.
_BORN_WITH = (
    "lower-case-table-names",
    "innodb-page-size",
    "innodb-data-file-path",
    "innodb-undo-directory",
)


def prepare_data(program: Program, data: Path, cache: Path, options: Sequence[str]) -> None:
    """Make `data` a fresh data folder (root without a password) unless it exists already."""
    if data.exists():
        return
    born_with = tuple(sorted(o for o in options if _option_name(o) in _BORN_WITH))
    prepared = _prepared(program, cache, born_with)
    # What was copied half is not taken for a data folder by the next start.
    with tempfile.TemporaryDirectory(dir=data.parent, prefix=".copying-") as folder:
        copy = Path(folder, "data")
        shutil.copytree(prepared, copy, ignore=shutil.ignore_patterns("auto.cnf"))
        copy.rename(data)


def account() -> tuple[str, ...]:
    """The option without which mysqld refuses to run as root; nobody else needs it."""
    return ("--user=root",) if os.geteuid() == 0 else ()


def _option_name(option: str) -> str:
    return option.removeprefix("--").partition("=")[0].replace("_", "-")


def _prepared(program: Program, cache: Path, born_with: tuple[str, ...]) -> Path:
    marks = (*program.command, program.version, *born_with)
    mark = hashlib.sha256("\0".join(marks).encode()).hexdigest()[:12]
    prepared = cache / f"mysql-data-{mark}"
    cache.mkdir(parents=True, exist_ok=True)
    with alone(cache / f"mysql-data-{mark}.lock"):
        if not prepared.exists():
            _initialise(program, prepared, born_with)
    return prepared


def _initialise(program: Program, prepared: Path, born_with: tuple[str, ...]) -> None:
    with tempfile.TemporaryDirectory(dir=prepared.parent, prefix=".initialising-") as folder:
        data = Path(folder, "data")
        done = subprocess.run(
            [
                *program.command,
                "--initialize-insecure",
                *account(),
                f"--datadir={data}",
                "--loose-innodb-redo-log-capacity=64M",
                "--secure-file-priv=",
                *born_with,
            ],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            last = " ".join(done.stderr.strip().splitlines()[-1:])
            raise SetupIncomplete(
                f"mysqld could not make a data folder: {last}",
                hint="name a server: LOCKSTEP_TEST_MYSQL=mysql://root:password@host:3306",
            )
        data.rename(prepared)
