"""spirit: the statements it sends, step by step.

Belongs here: what spirit does to a server, in SQL. Does not: who writes meanwhile, what a
run makes of it.

Source: spirit 0.16.0 (github.com/block/spirit): pkg/migration/change.go
(`attemptMySQLDDL`, `createNewTable`, `alterNewTable`, `dropOldTable`, `cleanup`),
pkg/migration/runner.go (their order), pkg/migration/cutover.go (`executeRenameUnderLock`),
pkg/dbconn/tablelock.go, pkg/applier/single_target.go, pkg/checkpoint/checkpoint.go,
pkg/sentinel/sentinel.go. Told for a table with the columns `id`, its key, and `v`. spirit
learns of rows from the binlog; here two SELECTs say what it would have learnt.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import pymysql
from pymysql.cursors import Cursor

from tests.fix_mysql import MySqlStand
from tests.online.gh_ost import CHUNK, Between

_CHECKPOINT: Final = """(
	id int NOT NULL AUTO_INCREMENT PRIMARY KEY,
	copier_watermark TEXT,
	checksum_watermark TEXT,
	binlog_position TEXT,
	statement TEXT,
	original_table_name VARCHAR(64) NOT NULL DEFAULT '',
	move_phase VARCHAR(32) NOT NULL DEFAULT '',
	cutover_at TEXT,
	created_at DATETIME NOT NULL DEFAULT CURRENT_TIMESTAMP
)"""


def spirit(
    mysql: MySqlStand,
    database: str,
    table: str,
    alter: str,
    between: Between,
    *,
    defer: bool = False,
) -> None:
    """A new table, its rows, the changes since, and a RENAME under the lock that holds both
    tables. `defer`: with the sentinel of `--defer-cutover`, dropped by an operator."""
    new, old, checkpoint = f"_{table}_new", f"_{table}_old", f"_{table}_chkpnt"
    with mysql.connect(database) as connection, connection.cursor() as apply:
        _refused(apply, f"ALTER TABLE `{table}` ALGORITHM=INSTANT, {alter}")
        for statement in (
            f"DROP TABLE IF EXISTS `{new}`",
            f"CREATE TABLE `{new}` LIKE `{table}`",
            f"ALTER TABLE `{new}` {alter}, ALGORITHM=COPY",
            f"DROP TABLE IF EXISTS `{checkpoint}`",
            f"CREATE TABLE `{checkpoint}` {_CHECKPOINT}",
            *(
                ["CREATE TABLE IF NOT EXISTS `_spirit_sentinel` (id int NOT NULL PRIMARY KEY)"]
                * defer
            ),
        ):
            apply.execute(statement)
        for rows in _chunks(apply, table):
            between()
            values = ", ".join(f"({key}, {value})" for key, value in rows)
            apply.execute(f"INSERT IGNORE INTO `{new}` (`id`, `v`) VALUES {values}")
            apply.execute(
                f"REPLACE INTO `{checkpoint}` (id, copier_watermark, checksum_watermark,"
                " binlog_position, statement, original_table_name, move_phase, cutover_at)"
                " VALUES (1, %s, '', '', %s, %s, '', '')",
                (str(rows[-1][0]), alter, table),
            )
            _flush(apply, apply, table, new)
        apply.execute(f"ANALYZE TABLE `{database}`.`{new}`")
        if defer:
            between()
            apply.execute("DROP TABLE `_spirit_sentinel`")
        apply.execute(f"DROP TABLE IF EXISTS `{old}`")
        _cut_over(mysql, database, table)
        between()
        for name in (old, new, checkpoint):
            apply.execute(f"DROP TABLE IF EXISTS `{name}`")


def _refused(apply: Cursor, statement: str) -> None:
    """spirit asks the server first whether it can do it at once, and goes on if not."""
    try:
        apply.execute(statement)
    except pymysql.err.OperationalError:
        return
    raise AssertionError(f"{statement} needs no second table")


def _cut_over(mysql: MySqlStand, database: str, table: str) -> None:
    new, old = f"_{table}_new", f"_{table}_old"
    with mysql.connect(database, autocommit=True) as connection, connection.cursor() as holder:
        holder.execute("START TRANSACTION")
        holder.execute(f"LOCK TABLES `{table}` WRITE, `{new}` WRITE")
        _flush(holder, holder, table, new)
        holder.execute(f"RENAME TABLE `{table}` TO `{old}`, `{new}` TO `{table}`")
        holder.execute("UNLOCK TABLES")
        holder.execute("ROLLBACK")


def _flush(reader: Cursor, apply: Cursor, table: str, new: str) -> None:
    """The row changes that the new table lacks, as spirit writes them."""
    there, copied = _rows(reader, table), _rows(apply, new)
    gone = [f"({key})" for key in copied.keys() - there.keys()]
    if gone:
        apply.execute(f"DELETE FROM `{new}` WHERE (`id`) IN ({','.join(gone)})")
    changed = [
        f"({key}, {value})" for key, value in there.items() if copied.get(key, "none") != value
    ]
    if changed:
        apply.execute(f"REPLACE INTO `{new}` (`id`, `v`) VALUES {', '.join(changed)}")


def _chunks(cursor: Cursor, table: str) -> Iterable[list[tuple[int, Any]]]:
    """The rows there are by now, a chunk at a time, each read when it is its turn."""
    cursor.execute(f"SELECT `id` FROM `{table}` ORDER BY `id`")
    keys = [key for (key,) in cursor.fetchall()]
    for first in keys[::CHUNK]:
        cursor.execute(
            f"SELECT `id`, `v` FROM `{table}` FORCE INDEX (PRIMARY) WHERE `id` >= {first}"
            f" ORDER BY `id` LIMIT {CHUNK}"
        )
        yield list(cursor.fetchall())


def _rows(cursor: Cursor, table: str) -> dict[int, Any]:
    cursor.execute(f"SELECT `id`, `v` FROM `{table}`")
    return dict(cursor.fetchall())
