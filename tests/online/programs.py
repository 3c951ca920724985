"""gh-ost itself, where it is on PATH.

Belongs here: how it is started. Does not: the statements it sends (`gh_ost`), what a run
makes of them.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from lockstep.pipeline.values.errors import SetupIncomplete
from tests.fix_mysql import MySqlStand
from tests.online.running import Tool


def found(name: str) -> str:
    """The program on PATH. Raises SetupIncomplete where it is not."""
    program = shutil.which(name)
    if program is None:
        raise SetupIncomplete(f"{name} is not on PATH", hint="its statements are tested anyway")
    return program


def gh_ost_itself(
    mysql: MySqlStand, database: str, table: str, alter: str, log: Path, *more: str
) -> Tool:
    """gh-ost on the server that applications write to, a hundred rows a chunk with a rest
    after each."""
    command = [
        *(found("gh-ost"), "--execute", "--allow-on-master", "--assume-rbr"),
        *("--host=127.0.0.1", f"--port={mysql.port}"),
        *(f"--user={mysql.server.user}", f"--password={mysql.server.password}"),
        *(f"--database={database}", f"--table={table}", f"--alter={alter}"),
        *("--chunk-size=100", "--nice-ratio=5", "--cut-over-lock-timeout-seconds=10"),
        *("--default-retries=200", f"--serve-socket-file={log}.sock"),
    ]
    return Tool([*command, *more], dict(os.environ), log)
