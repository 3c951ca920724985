"""ALTER TABLE statements of many clauses, whose order the server resolves by itself.

Belongs here: clauses that chance makes for a table of whole numbers, so that a row tells by
its values which column each of them became. Servers refuse some of the statements. Other
statements are made by `random_statements`.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Final

from lockstep.pipeline.schema.model import TableSchema

NAMES: Final = ("a", "b", "c", "d", "e", "f", "G", "h i")
_TYPES: Final = (
    *("tinyint", "mediumint", "int", "int unsigned", "bigint", "double"),
    *("decimal(12,0)", "decimal(20,0) unsigned", "char(9)", "varchar(3)", "varchar(20)"),
    *("varbinary(30)", "text"),
)
_CHARSETS: Final = ("utf8mb4", "latin1", "utf8mb3 collate utf8mb3_bin")
_MOST: Final = 8
"""Clauses of one statement."""


def random_table(chance: Random, name: str) -> str:
    """A table of two to six columns and, now and then, keys over them."""
    columns = chance.sample(NAMES, chance.randint(2, 6))
    elements = [f"`{column}` {_definition(chance)}" for column in columns]
    elements += [_key(chance, columns) for _ in range(chance.randint(0, 2))]
    return f"create table `{name}` ({', '.join(elements)})"


def random_alter(chance: Random, table: TableSchema, *, mariadb: bool) -> str:
    """One to eight clauses on the table, most of them on columns that no other clause names."""
    clauses = list(_clauses(chance, table, mariadb=mariadb))
    chance.shuffle(clauses)
    return f"alter table `{table.name.name}` {', '.join(clauses[: chance.randint(1, _MOST)])}"


def _clauses(chance: Random, table: TableSchema, *, mariadb: bool) -> Iterator[str]:
    old = [column.name for column in table.columns]
    free = [name for name in NAMES if name not in old]
    chance.shuffle(free)
    anywhere = [*old, *free]
    fates = ("stay", "stay", "drop", "anew", "modify", "modify", "change", "rename", "default")
    for column in chance.sample(old, len(old)):
        fate = chance.choice(fates)
        new = free.pop() if free and chance.random() < 0.6 else chance.choice(old)
        match fate:
            case "drop":
                yield f"drop `{column}`"
            case "anew":
                yield f"drop column `{column}`"
                yield f"add `{column}` {_definition(chance)}{_where(chance, anywhere)}"
            case "modify":
                yield from _redefined(chance, f"modify `{column}`", column, anywhere, mariadb)
            case "change":
                head = f"change `{column}` `{new}`"
                yield from _redefined(chance, head, new, anywhere, mariadb)
            case "rename":
                yield f"rename column `{column}` to `{new}`"
            case "default":
                what = chance.choice(("set default 7", "set default null", "drop default"))
                yield f"alter `{column}` {what}"
                if not mariadb and chance.random() < 0.3:
                    yield f"alter column `{column}` set {chance.choice(('visible', 'invisible'))}"
    for new in free[: chance.randint(0, 3)]:
        made = _definition(chance)
        if chance.random() < 0.15:
            yield f"add (`{new}` {made})"
        else:
            yield f"add column `{new}` {made}{_where(chance, anywhere)}"
        if mariadb and chance.random() < 0.2:
            yield f"alter `{new}` set default 8"
    yield from _of_keys(chance, table, anywhere)
    if chance.random() < 0.1:
        yield f"convert to character set {chance.choice(_CHARSETS)}"
    if chance.random() < 0.1:
        yield f"rename to `{chance.choice(('t', 'T2', 'v'))}`"


def _redefined(
    chance: Random, head: str, name: str, columns: list[str], mariadb: bool
) -> Iterator[str]:
    where = _where(chance, columns)
    yield f"{head} {_definition(chance)}{where}"
    if mariadb and where and chance.random() < 0.15:
        yield f"alter `{name}` {chance.choice(('set default 8', 'drop default'))}"


def _of_keys(chance: Random, table: TableSchema, columns: list[str]) -> Iterator[str]:
    for key in table.keys:
        what = chance.choice(("stay", "stay", "drop", "rename"))
        if what == "drop":
            yield f"drop key `{key.name}`"
        elif what == "rename":
            yield f"rename key `{key.name}` to `k{chance.randint(1, 9)}`"
    if chance.random() < 0.3:
        yield f"add {_key(chance, columns)}"


def _key(chance: Random, columns: list[str]) -> str:
    chosen = chance.sample(columns, chance.randint(1, 2))
    kind = chance.choice(("key", "unique", "unique key"))
    return f"{kind} ({', '.join(f'`{one}`' for one in chosen)})"


def _definition(chance: Random) -> str:
    default = chance.choice(("", "", " default 5", " not null default '6'", " null default null"))
    key = " unique" if chance.random() < 0.05 else ""
    return f"{chance.choice(_TYPES)}{default}{key}"


def _where(chance: Random, columns: list[str]) -> str:
    what = chance.random()
    if what < 0.4:
        return ""
    return " first" if what < 0.55 else f" after `{chance.choice(columns)}`"
