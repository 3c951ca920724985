"""pgbouncer itself, from Debian's packages, never installed.

Belongs here: starting it before a Postgres. Does not: what is asked through it.
"""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from psycopg2.extensions import make_dsn, parse_dsn

from demo.mysql_packages import DebianPackages, command_with_own_loader, unpack
from lockstep.pipeline.values.retries import SPARK

PGBOUNCER: Final = DebianPackages(
    title="pgbouncer",
    folder="pgbouncer-debian-12",
    suite="bookworm",
    names="pgbouncer",
    cure="its tests need Debian's apt-get, a mirror of Debian and its archive keyring",
)

_SETTINGS: Final = """\
[databases]
* = {server}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = {mode}
server_round_robin = {round_robin}
"""


@contextmanager
def pgbouncer(cache: Path, server: str, mode: str, *, round_robin: bool = False) -> Iterator[str]:
    """The server's DSN by way of a pgbouncer in that pool mode; fetched into `cache` if need be.

    Raises SetupIncomplete as `unpack` does.
    """
    root = unpack(PGBOUNCER, cache)
    program = command_with_own_loader(PGBOUNCER, root, root / "usr/sbin/pgbouncer")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    parts = {name: value for name, value in parse_dsn(server).items() if name != "dbname"}
    folder = Path(tempfile.mkdtemp(prefix="ledger-pooler-"))
    file = folder / "pgbouncer.ini"
    file.write_text(
        _SETTINGS.format(
            server=make_dsn("", **parts), port=port, mode=mode, round_robin=int(round_robin)
        )
    )
    # It refuses to be root's, and becomes another account once it has read its file.
    account = ("-u", pwd.getpwnam("nobody").pw_name) if os.geteuid() == 0 else ()
    process = subprocess.Popen(
        [*program, *account, str(file)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        for _ in SPARK.tries():
            with suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                break
            assert process.poll() is None, "pgbouncer did not start"
        yield make_dsn(server, host="127.0.0.1", port=port)
    finally:
        process.kill()
        process.wait()
        shutil.rmtree(folder)
