"""gh-ost: the statements it sends, step by step.

Belongs here: what gh-ost does to a server, in SQL. Does not: who writes meanwhile, what a
run makes of it.

Source: gh-ost 1.1.9 (github.com/github/gh-ost): go/logic/applier.go (tables, changelog,
`AtomicCutOverMagicLock`, `AtomicCutoverRename`, `SwapTablesQuickAndBumpy`),
go/sql/builder.go (`BuildRangeInsertQuery`, the three DML builders), go/logic/migrator.go
(their order). Told for a table with the columns `id`, its key, and `v`. gh-ost learns of rows
from the binlog; here two SELECTs say what it would have learnt.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Final

from pymysql import Connection
from pymysql.cursors import Cursor

from tests.fix_mysql import MySqlStand

CHUNK: Final = 100
Between = Callable[[], None]
"""Called between two steps, while others write."""


def gh_ost(
    mysql: MySqlStand,
    database: str,
    table: str,
    alter: str,
    between: Between,
    *,
    two_step: bool = False,
    keep_old: bool = False,
) -> None:
    """A ghost table, its rows, the changes since, and a cut-over: the atomic one, or that of
    `--cut-over=two-step`. `keep_old`: without `--ok-to-drop-table`."""
    name, ghost = f"`{database}`.`{table}`", f"`{database}`.`_{table}_gho`"
    log, old = f"`{database}`.`_{table}_ghc`", f"`{database}`.`_{table}_del`"
    with mysql.connect(database) as connection, connection.cursor() as apply:
        for statement in (
            f"drop /* gh-ost */ table if exists {log}",
            f"create /* gh-ost */ table {log} (id bigint unsigned auto_increment, last_update"
            " timestamp not null DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP, hint"
            " varchar(64) charset ascii not null, value varchar(4096) charset ascii not null,"
            " primary key(id), unique key hint_uidx(hint)) auto_increment=256"
            " comment='gh-ost changelog'",
            f"create /* gh-ost */ table {ghost} like {name}",
            f"alter /* gh-ost */ table {ghost} {alter}",
        ):
            apply.execute(statement)
        _note(apply, log, 2, "state", "GhostTableMigrated")
        for number, (first, last) in enumerate(_chunks(apply, name)):
            between()
            _note(apply, log, 1, "heartbeat", str(number))
            apply.execute(
                f"insert /* gh-ost {name} */ ignore into {ghost} (`id`, `v`) (select `id`, `v`"
                f" from {name} force index (`PRIMARY`) where (((`id` > {first}) or"
                f" ((`id` = {first}))) and ((`id` < {last}) or ((`id` = {last})))) lock in share"
                " mode)"
            )
            _catch_up(apply, apply, name, ghost)
        if two_step:
            _swap_in_two(mysql, apply, name, ghost, old, between)
        else:
            _swap_at_once(mysql, apply, name, ghost, old)
        between()
        apply.execute(f"drop /* gh-ost */ table if exists {log}")
        if not keep_old:
            apply.execute(f"drop /* gh-ost */ table if exists {old}")


def _note(apply: Cursor, log: str, number: int, hint: str, value: str) -> None:
    apply.execute(
        f"insert /* gh-ost */ into {log} (id, hint, value) values (NULLIF(%s, 0), %s, %s)"
        " on duplicate key update last_update=NOW(), value=VALUES(value)",
        (number, hint, value),
    )


def _catch_up(reader: Cursor, apply: Cursor, name: str, ghost: str) -> None:
    """The row changes that the ghost table lacks, in one transaction, as gh-ost writes them."""
    there, copied = _rows(reader, name), _rows(apply, ghost)
    apply.execute("begin")
    for key in copied.keys() - there.keys():
        apply.execute(f"delete /* gh-ost {ghost} */ from {ghost} where ((`id` = {key}))")
    for key, value in there.items():
        if key not in copied:
            apply.execute(
                f"insert /* gh-ost {ghost} */ ignore into {ghost} (`id`, `v`) values (%s, %s)",
                (key, value),
            )
        elif copied[key] != value:
            apply.execute(
                f"update /* gh-ost {ghost} */ {ghost} set `id`=%s, `v`=%s where ((`id` = %s))",
                (key, value, key),
            )
    apply.execute("commit")


def _swap_at_once(mysql: MySqlStand, apply: Cursor, name: str, ghost: str, old: str) -> None:
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


def _swap_in_two(
    mysql: MySqlStand, apply: Cursor, name: str, ghost: str, old: str, between: Between
) -> None:
    """Between the two statements nobody has the name."""
    with mysql.connect(_database(name)) as locking, locking.cursor() as holder:
        holder.execute(f"lock /* gh-ost */ tables {name} write")
        _catch_up(holder, apply, name, ghost)
        holder.execute(f"alter /* gh-ost */ table {name} rename {_last(old)}")
        between()
        apply.execute(f"alter /* gh-ost */ table {ghost} rename {_last(name)}")
        holder.execute("unlock /* gh-ost */ tables")


def _last(name: str) -> str:
    """The new name has no database: gh-ost's connections have chosen one."""
    return name.partition(".")[2]


def _database(name: str) -> str:
    return name.partition(".")[0].strip("`")


def _execute(connection: Connection[Cursor], statement: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement)


def _number(connection: Connection[Cursor]) -> int:
    with connection.cursor() as cursor:
        cursor.execute("select connection_id()")
        found = cursor.fetchone()
        assert found is not None
        return int(found[0])


def _waits(cursor: Cursor, number: int) -> bool:
    cursor.execute(
        "select 1 from information_schema.processlist where id = %s"
        " and state like '%%metadata lock%%' and info like 'rename%%'",
        (number,),
    )
    return cursor.fetchone() is not None


def _chunks(cursor: Cursor, name: str) -> list[tuple[int, int]]:
    """Ranges of the key that hold all rows there are."""
    cursor.execute(f"select id from {name} order by id")
    keys = [int(key) for (key,) in cursor.fetchall()]
    firsts = keys[::CHUNK]
    return list(zip(firsts, [*(first - 1 for first in firsts[1:]), keys[-1]], strict=True))


def _rows(cursor: Cursor, name: str) -> dict[int, Any]:
    cursor.execute(f"select id, v from {name}")
    return dict(cursor.fetchall())
