"""Data folders for `mysqld`, copied from one that was initialised before.

Initialising takes seconds, copying tenths of a second. There is a prepared folder for each version
of the program; each copy becomes a server with its own UUID.
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
from lockstep.pipeline.values.errors import SetupIncomplete
from lockstep.resources.file_lock import exclusive_lock

# Options that cannot change after a data folder is initialised.
_INITIAL = (
    "lower-case-table-names",
    "innodb-page-size",
    "innodb-data-file-path",
    "innodb-undo-directory",
)


def prepare_data(program: Program, data: Path, cache: Path, options: Sequence[str]) -> None:
    """Create `data` as a fresh data folder (root without a password) unless it exists."""
    if data.exists():
        return
    initial_options = tuple(sorted(o for o in options if _option_name(o) in _INITIAL))
    prepared = _prepared(program, cache, initial_options)
    # Rename at the end, so that no later start uses a half-copied folder.
    with tempfile.TemporaryDirectory(dir=data.parent, prefix=".copying-") as folder:
        copy = Path(folder, "data")
        shutil.copytree(prepared, copy, ignore=shutil.ignore_patterns("auto.cnf"))
        copy.rename(data)


def account() -> tuple[str, ...]:
    """Return the option that mysqld requires to run as root."""
    return ("--user=root",) if os.geteuid() == 0 else ()


def _option_name(option: str) -> str:
    return option.removeprefix("--").partition("=")[0].replace("_", "-")


def _prepared(program: Program, cache: Path, initial_options: tuple[str, ...]) -> Path:
    marks = (*program.command, program.version, *initial_options)
    mark = hashlib.sha256("\0".join(marks).encode()).hexdigest()[:12]
    prepared = cache / f"mysql-data-{mark}"
    cache.mkdir(parents=True, exist_ok=True)
    with exclusive_lock(cache / f"mysql-data-{mark}.lock"):
        if not prepared.exists():
            _initialise(program, prepared, initial_options)
    return prepared


def _initialise(program: Program, prepared: Path, initial_options: tuple[str, ...]) -> None:
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
                *initial_options,
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
