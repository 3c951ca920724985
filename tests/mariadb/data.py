"""Data folders for `mariadbd`, copied from one that was bootstrapped before.

MariaDB has no `--initialize`: its system tables are made by the statements that the
package ships, fed to `mariadbd --bootstrap` in the order of its mariadb-install-db.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from demo.mysql_search import Program
from demo.mysqld import root_options
from lockstep.pipeline.values.errors import SetupIncomplete
from lockstep.resources.file_lock import exclusive_lock

# Without @auth_root_socket the second makes root@localhost with an empty password. Their
# names begin with mysql_ up to MariaDB 10.11 and with mariadb_ from 11 on.
_SYSTEM_TABLES = ("m*_system_tables.sql", "m*_system_tables_data.sql")
_BEFORE = "create database if not exists mysql;\nuse mysql;\nset @auth_root_socket = null;\n"


def prepare_mariadb_data(program: Program, data: Path, cache: Path, options: Sequence[str]) -> None:
    """Make `data` a fresh data folder (root without a password) unless it exists already.

    `options` are the server's; none of them changes how a folder is born.
    """
    if data.exists():
        return
    mark = hashlib.sha256("\0".join((*program.command, program.version)).encode())
    prepared = cache / f"mariadb-data-{mark.hexdigest()[:12]}"
    cache.mkdir(parents=True, exist_ok=True)
    with exclusive_lock(prepared.with_suffix(".lock")):
        if not prepared.exists():
            _bootstrap(program, prepared)
    # What was copied half is not taken for a data folder by the next start.
    with tempfile.TemporaryDirectory(dir=data.parent, prefix=".copying-") as folder:
        copy = Path(folder, "data")
        shutil.copytree(prepared, copy)
        copy.rename(data)


def _bootstrap(program: Program, prepared: Path) -> None:
    share = next(
        Path(word.partition("=")[2])
        for word in program.command
        if word.startswith("--lc-messages-dir=")
    )
    files = [file for pattern in _SYSTEM_TABLES for file in share.glob(pattern)]
    statements = _BEFORE + "".join(file.read_text() for file in files)
    with tempfile.TemporaryDirectory(dir=prepared.parent, prefix=".bootstrapping-") as folder:
        data = Path(folder, "data")
        data.mkdir()
        done = subprocess.run(
            [
                *program.command,
                "--bootstrap",
                *root_options(),
                f"--datadir={data}",
                "--innodb-log-file-size=16M",
                "--innodb-buffer-pool-size=64M",
            ],
            input=statements,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            last = " ".join(done.stderr.strip().splitlines()[-1:])
            raise SetupIncomplete(
                f"mariadbd could not make a data folder: {last}",
                hint=f"delete the unpacked packages in {prepared.parent} and start again",
            )
        data.rename(prepared)
