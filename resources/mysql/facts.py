"""What a server says of itself: version, settings, log, GTIDs, its clock.

Belongs here: the questions, in the dialects of MySQL and MariaDB. Does not: what the answers
mean for a run (`pipeline.start`), a close look at account and tables (`survey`).
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from pymysql.cursors import Cursor

from pipeline.errors import ServerSettings
from pipeline.ports.source import BinlogSize, ServerFacts
from pipeline.position import LogFile, ServerLife
from resources.mysql.watermarks import read_head, read_value

_SETTINGS = (
    "server_uuid",
    "server_id",
    "version",
    "version_comment",
    "gtid_mode",
    "log_bin",
    "binlog_format",
    "binlog_row_image",
    "binlog_row_metadata",
    "binlog_row_value_options",
    "binlog_transaction_compression",
    "binlog_checksum",
    "binlog_expire_logs_seconds",
    "binlog_expire_logs_auto_purge",
    "default_storage_engine",
    "explicit_defaults_for_timestamp",
    "expire_logs_days",
    "lower_case_table_names",
    "system_time_zone",
)
_EXECUTED = "select @@global.gtid_executed"
_PURGED = "select @@global.gtid_purged"
_CLOCK = "select utc_timestamp(6)"


def read_facts(cursor: Cursor, address: str) -> ServerFacts:
    """One round of questions; `ServerSettings` where the server has no log. `address`: host and
    port, to be printed."""
    found = _settings(cursor)
    if found.get("log_bin", "").upper() != "ON":
        raise ServerSettings(
            f"{address} writes no binary log",
            hint="set log_bin in the server's configuration and restart it",
        )
    mariadb = "mariadb" in found["version"].lower()
    executed = _binlog_state(cursor) if mariadb else read_value(cursor, _EXECUTED)
    binlogs = _binlogs(cursor)
    head = read_head(cursor)
    purged = _first_list(cursor, binlogs) if mariadb else read_value(cursor, _PURGED)
    clock = datetime.fromisoformat(read_value(cursor, _CLOCK)).replace(tzinfo=UTC)
    life = _life(cursor, clock)
    server_id = found["server_id"]
    return ServerFacts(
        server_uuid=found.get("server_uuid") or f"server-id:{server_id}",
        server_id=int(server_id),
        version=found["version"],
        flavour="mariadb" if mariadb else "mysql",
        gtid_mode="ON" if mariadb else found.get("gtid_mode", "OFF"),
        gtid_executed=executed,
        gtid_purged=purged,
        binlogs=binlogs,
        head=head,
        settings=found,
        read_at=clock,
        life=life,
    )


def _settings(cursor: Cursor) -> dict[str, str]:
    cursor.execute(
        f"show global variables where variable_name in ({', '.join(['%s'] * len(_SETTINGS))})",
        _SETTINGS,
    )
    return {name.lower(): value for name, value in cursor.fetchall()}


def _life(cursor: Cursor, clock: datetime) -> ServerLife | None:
    cursor.execute("show global status where variable_name in ('uptime', 'com_reset')")
    found = {name.lower(): int(value) for name, value in cursor.fetchall()}
    uptime, resets = found.get("uptime"), found.get("com_reset")
    if uptime is None or resets is None:
        return None
    return ServerLife(clock - timedelta(seconds=uptime), resets)


def _binlog_state(cursor: Cursor) -> str:
    return read_value(cursor, "select @@global.gtid_binlog_state")


def _first_list(cursor: Cursor, binlogs: tuple[BinlogSize, ...]) -> str:
    """What MariaDB executed before its oldest log file: the list at that file's head."""
    if not binlogs:
        return ""
    cursor.execute("show binlog events in %s limit 5", (str(binlogs[0].file),))
    found = [row[5] for row in cursor.fetchall() if row[2] == "Gtid_list"]
    return found[0].strip("[]") if found else ""


def _binlogs(cursor: Cursor) -> tuple[BinlogSize, ...]:
    cursor.execute("show binary logs")
    return tuple(BinlogSize(LogFile.parse(row[0]), int(row[1])) for row in cursor.fetchall())
