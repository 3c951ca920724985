"""A MariaDB that the tests start, stop and kill, with a log as a source of ours needs it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from demo.mysql_search import Program
from demo.mysqld import ProgramMySql
from tests.mariadb.data import prepare_mariadb_data

# What a source of Lockstep's needs, and what makes a small server start quickly.
SETTINGS = (
    "--bind-address=127.0.0.1",
    "--server-id=1",
    "--log-bin=binlog",
    "--binlog-format=ROW",
    "--binlog-row-image=FULL",
    "--binlog-row-metadata=FULL",
    "--binlog-checksum=CRC32",
    "--performance-schema=OFF",
    "--innodb-buffer-pool-size=64M",
    "--innodb-log-file-size=16M",
    # Not every kernel lends io_uring to a test.
    "--innodb-use-native-aio=OFF",
    "--aria-pagecache-buffer-size=8M",
    "--key-buffer-size=8M",
    # From 11.4 on each start makes a key and a certificate, which takes it ten seconds and more.
    "--skip-ssl",
)


def mariadb_server(
    program: Program, folder: Path, cache: Path, *, port: int = 0, options: Sequence[str] = ()
) -> ProgramMySql:
    """A server, not started yet, that keeps its data and its log in `folder`.

    `port` 0 picks a free one. `options` are mariadbd's, after ours, so they win.
    """
    return ProgramMySql(
        program,
        folder,
        cache,
        port=port,
        # Servers that share a folder for temporary files delete each other's.
        options=(f"--tmpdir={folder}", *options),
        settings=SETTINGS,
        prepare=prepare_mariadb_data,
    )
