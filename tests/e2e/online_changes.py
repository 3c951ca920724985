"""The statements that tools for online schema changes send, step by step.

Belongs here: what gh-ost and pt-online-schema-change do to a server, in SQL. Does not: who
writes meanwhile, what a run makes of it (`test_online_changes`).

Sources: gh-ost 1.1 (github.com/github/gh-ost, go/logic/applier.go and go/sql/builder.go,
"atomic cut-over"), pt-online-schema-change 3.6 (Percona Toolkit, the output of its --print
and of a server's general log). Both are told here for a table with the columns `id`, its key,
and `v`. gh-ost learns of rows from the binlog; here two SELECTs say what it would have learnt.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Final

from pymysql import Connection
from pymysql.cursors import Cursor

from tests.fix_mysql import MySqlStand

CHUNK: Final = 25
Between = Callable[[], None]
"""Called between two steps, while others write."""


def gh_ost(mysql: MySqlStand, database: str, table: str, alter: str, between: Between) -> None:
    """gh-ost: a ghost table, its rows, the changes since, and a cut-over behind a table that
    makes the RENAME wait."""
    name, ghost = f"`{database}`.`{table}`", f"`{database}`.`_{table}_gho`"
    log, old = f"`{database}`.`_{table}_ghc`", f"`{database}`.`_{table}_del`"
    with mysql.connect() as connection, connection.cursor() as apply:
        for statement in (
            f"drop /* gh-ost */ table if exists {ghost}",
            f"drop /* gh-ost */ table if exists {old}",
            f"drop /* gh-ost */ table if exists {log}",
            f"create /* gh-ost */ table {log} (id bigint unsigned auto_increment, last_update"
            " timestamp not null DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP, hint"
            " varchar(64) charset ascii not null, value varchar(4096) charset ascii not null,"
            " primary key(id), unique key hint_uidx(hint)) auto_increment=256",
            f"create /* gh-ost */ table {ghost} like {name}",
            f"alter /* gh-ost */ table {ghost} {alter}",
            f"insert /* gh-ost */ into {log} (id, hint, value) values (NULLIF(2, 0), 'state',"
            " 'GhostTableMigrated') on duplicate key update last_update=NOW(),"
            " value=VALUES(value)",
        ):
            apply.execute(statement)
        for first, last in _chunks(apply, name):
            between()
            apply.execute(
                f"insert /* gh-ost {name} */ ignore into {ghost} (`id`, `v`) (select `id`, `v`"
                f" from {name} force index (`PRIMARY`) where (((`id` >= {first})) and"
                f" ((`id` <= {last}))) lock in share mode)"
            )
            _catch_up(apply, apply, name, ghost)
        _cut_over(mysql, apply, name, ghost, old)
        between()
        apply.execute(f"drop /* gh-ost */ table if exists {log}")
        apply.execute(f"drop /* gh-ost */ table if exists {old}")


def _catch_up(reader: Cursor, apply: Cursor, name: str, ghost: str) -> None:
    """The row changes that the ghost table lacks, as gh-ost writes them."""
    there, copied = _rows(reader, name), _rows(apply, ghost)
    for key in copied.keys() - there.keys():
        apply.execute(f"delete /* gh-ost {ghost} */ from {ghost} where ((`id` = {key}))")
    for key, value in there.items():
        if key not in copied:
            apply.execute(
                f"replace /* gh-ost {ghost} */ into {ghost} (`id`, `v`) values (%s, %s)",
                (key, value),
            )
        elif copied[key] != value:
            apply.execute(
                f"update /* gh-ost {ghost} */ {ghost} set `id`=%s, `v`=%s where ((`id` = %s))",
                (key, value, key),
            )


def _cut_over(mysql: MySqlStand, apply: Cursor, name: str, ghost: str, old: str) -> None:
    """One session holds the lock, another one's RENAME waits for it behind no writer."""
    with mysql.connect() as locking, mysql.connect() as renaming, locking.cursor() as holder:
        holder.execute(
            f"create /* gh-ost */ table {old} (id int auto_increment primary key) engine=InnoDB"
            " comment='ghost-cut-over-sentry'"
        )
        holder.execute(f"lock /* gh-ost */ tables {name} write, {old} write")
        _catch_up(holder, apply, name, ghost)
        number = _number(renaming)
        rename = f"rename /* gh-ost */ table {name} to {old}, {ghost} to {name}"
        waiting = threading.Thread(target=_execute, args=(renaming, rename))
        waiting.start()
        while not _waits(apply, number):
            assert waiting.is_alive(), "the RENAME did not wait for the lock"
        holder.execute(f"drop /* gh-ost */ table if exists {old}")
        holder.execute("unlock /* gh-ost */ tables")
        waiting.join()


def _number(connection: Connection[Cursor]) -> int:
    with connection.cursor() as cursor:
        cursor.execute("select connection_id()")
        found = cursor.fetchone()
        assert found is not None
        return int(found[0])


def _execute(connection: Connection[Cursor], statement: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement)


def _waits(cursor: Cursor, number: int) -> bool:
    cursor.execute(
        "select 1 from information_schema.processlist where id = %s"
        " and state like '%%metadata lock%%' and info like 'rename%%'",
        (number,),
    )
    return cursor.fetchone() is not None


def pt_online_schema_change(
    mysql: MySqlStand, database: str, table: str, alter: str, between: Between
) -> None:
    """pt-online-schema-change: triggers keep the new table up to date; one RENAME swaps."""
    name, new = f"`{database}`.`{table}`", f"`{database}`.`_{table}_new`"
    old, trigger = f"`{database}`.`_{table}_old`", f"`{database}`.`pt_osc_{database}_{table}"
    with mysql.connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"show create table {name}")
        told = cursor.fetchone()
        assert told is not None
        cursor.execute(str(told[1]).replace(f"CREATE TABLE `{table}`", f"CREATE TABLE {new}", 1))
        cursor.execute(f"ALTER TABLE {new} {alter}")
        replace = f"REPLACE INTO {new} (`id`, `v`) VALUES (NEW.`id`, NEW.`v`)"
        for kind, event, body in (
            ("del", "DELETE", f"DELETE IGNORE FROM {new} WHERE {new}.`id` <=> OLD.`id`;"),
            (
                "upd",
                "UPDATE",
                f"DELETE IGNORE FROM {new} WHERE !(OLD.`id` <=> NEW.`id`) AND"
                f" {new}.`id` <=> OLD.`id`; {replace};",
            ),
            ("ins", "INSERT", f"{replace};"),
        ):
            cursor.execute(
                f"CREATE TRIGGER {trigger}_{kind}` AFTER {event} ON {name} FOR EACH ROW BEGIN"
                f" DECLARE CONTINUE HANDLER FOR 1146 begin end; {body} END"
            )
        for first, last in _chunks(cursor, name):
            between()
            cursor.execute(
                f"INSERT LOW_PRIORITY IGNORE INTO {new} (`id`, `v`) SELECT `id`, `v` FROM {name}"
                f" FORCE INDEX(`PRIMARY`) WHERE ((`id` >= '{first}')) AND ((`id` <= '{last}'))"
                " LOCK IN SHARE MODE /*pt-online-schema-change 1 copy nibble*/"
            )
        cursor.execute(f"ANALYZE TABLE {new} /* pt-online-schema-change */")
        cursor.execute(f"RENAME TABLE {name} TO {old}, {new} TO {name}")
        between()
        cursor.execute(f"DROP TABLE IF EXISTS {old}")
        for kind in ("del", "upd", "ins"):
            cursor.execute(f"DROP TRIGGER IF EXISTS {trigger}_{kind}`")


def _chunks(cursor: Cursor, name: str) -> list[tuple[int, int]]:
    """Ranges of the key that hold all rows there are."""
    cursor.execute(f"select min(id), max(id) from {name}")
    found = cursor.fetchone()
    assert found is not None
    return [(at, at + CHUNK - 1) for at in range(found[0], found[1] + 1, CHUNK)]


def _rows(cursor: Cursor, name: str) -> dict[int, Any]:
    cursor.execute(f"select id, v from {name}")
    return dict(cursor.fetchall())
