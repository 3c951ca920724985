"""Statements that chance makes, each from the tables that are there by then.

Belongs here: CREATE, ALTER, RENAME and the like, in many spellings. Servers refuse some of
them; what they accept is for others to follow. What a table is made of is `random_definitions`.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Final

from lockstep.pipeline.schema.model import ColumnSchema, ServerSchema, TableSchema
from lockstep.pipeline.values.table import TableName
from tests.schema.cases import Steps
from tests.schema.made_rows import quoted
from tests.schema.random_definitions import (
    NAMES,
    charset,
    definition,
    key,
    table_options,
)

_TABLES: Final = ("a", "b", "C", "d e", "order")
_TABLES_OF_MARIADB: Final = ("a", "b", "C", "d", "order")
"""ALTER … RENAME of a table with a hashed key leaves the old one where its name has a blank."""

_SESSION: Final = (
    "set sql_mode = default",
    "set sql_mode = ''",
    "set sql_mode = 'ANSI_QUOTES'",
    "set sql_mode = 'NO_BACKSLASH_ESCAPES'",
    "set sql_mode = 'REAL_AS_FLOAT,IGNORE_SPACE'",
    "set explicit_defaults_for_timestamp = 1",
    "set explicit_defaults_for_timestamp = 0",
    "set collation_connection = latin1_swedish_ci",
    "set foreign_key_checks = 0",
    "set collation_server = utf8mb3_bin",
)
_OF_MYSQL: Final = (
    "set default_collation_for_utf8mb4 = utf8mb4_general_ci",
    "set sql_generate_invisible_primary_key = 1",
)


def random_steps(seed: int, database: str, count: int, *, mariadb: bool) -> Steps:
    """So many statements in `database` and another beside it."""
    chance = Random(seed)
    maker = _Maker(chance, database, mariadb)
    yield f"create database `{database}_2` {charset(chance)}"
    server = ServerSchema()
    for _ in range(count):
        server = yield maker.statement(server)


class _Maker:
    """The choices of one sequence."""

    def __init__(self, chance: Random, database: str, mariadb: bool) -> None:
        self._chance = chance
        self._databases = (database, f"{database}_2")
        self._mariadb = mariadb
        self._forms: tuple[tuple[int, Callable[[ServerSchema], str]], ...] = (
            (6, self._create),
            (22, self._alter),
            (3, self._index),
            (3, self._rename),
            (1, self._drop),
            (1, self._like),
            (1, self._select),
            (1, self._truncate),
            (1, self._database),
            (2, self._session),
        )

    def statement(self, server: ServerSchema) -> str:
        weights, forms = zip(*self._forms, strict=True)
        form = self._chance.choices(forms, weights)[0]
        if not server.tables:
            form = self._create
        return self._spelled(form(server))

    # -- names ---------------------------------------------------------------------

    def _one(self, server: ServerSchema) -> TableSchema:
        return self._chance.choice(sorted(server.tables.values(), key=lambda one: one.name))

    def _free(self, server: ServerSchema) -> TableName:
        tables = _TABLES_OF_MARIADB if self._mariadb else _TABLES
        names = [TableName(d, t) for d in self._databases for t in tables]
        free = [name for name in names if name not in server.tables]
        return self._chance.choice(free or names)

    def _named(self, name: TableName) -> str:
        if name.database == self._databases[0] and self._chance.random() < 0.7:
            return quoted(name.name)
        return f"{quoted(name.database)}.{quoted(name.name)}"

    def _column(self, table: TableSchema) -> ColumnSchema:
        return self._chance.choice(table.columns)

    def _spelling(self, name: str) -> str:
        """A column's name in another case now and then."""
        return quoted(name.swapcase() if self._chance.random() < 0.1 else name)

    # -- statements ------------------------------------------------------------------

    def _create(self, server: ServerSchema) -> str:
        chance = self._chance
        names = chance.sample(NAMES, chance.randint(1, 7))
        elements = [
            f"{quoted(n)} {definition(chance, names, mariadb=self._mariadb)}" for n in names
        ]
        elements += [key(chance, names) for _ in range(chance.randint(0, 3))]
        if chance.random() < 0.5:
            elements.append(f"primary key ({quoted(chance.choice(names))})")
        options = table_options(chance)
        if chance.random() < 0.15 and server.tables and self._keeps_references(options):
            elements.append(self._foreign(self._one(server), names))
        head = "create table"
        if chance.random() < 0.1:
            head = "create or replace table" if self._mariadb else "create table if not exists"
        table = self._named(self._free(server))
        return f"{head} {table} ({', '.join(elements)}) {options}"

    def _keeps_references(self, engine: str) -> bool:
        """MariaDB makes an index for a foreign key of MyISAM, forgets the foreign key, and drops
        the index when another one can serve. It does not show which indexes these are, so those
        of a table that was read from the server are not followed."""
        return not self._mariadb or "myisam" not in engine.lower()

    def _foreign(self, parent: TableSchema, names: list[str]) -> str:
        child = quoted(self._chance.choice(names))
        action = self._chance.choice(("", " on delete cascade", " on update set null"))
        column = quoted(self._column(parent).name)
        return f"foreign key ({child}) references {self._named(parent.name)} ({column}){action}"

    def _alter(self, server: ServerSchema) -> str:
        table = self._one(server)
        clauses = [self._clause(table, server) for _ in range(self._chance.choice((1, 1, 1, 2, 3)))]
        return f"alter table {self._named(table.name)} {', '.join(clauses)}"

    def _clause(self, table: TableSchema, server: ServerSchema) -> str:
        chance = self._chance
        names = [column.name for column in table.columns]
        old = self._spelling(self._column(table).name)
        new = chance.choice(NAMES)
        made = definition(chance, names, mariadb=self._mariadb)
        constant = chance.choice(("1", "'2'", "null", "''"))
        shown = chance.choice(("visible", "invisible"))
        keys = [one.name for one in table.keys] or ["none"]
        where = chance.choice(
            ("", "", "", " first", f" after {self._spelling(chance.choice(names))}")
        )
        forms = [
            f"add {quoted(new)} {made}{where}",
            f"add column {quoted(new)} {made}{where}",
            f"add ({quoted(new)} {made})",
            f"drop column {old}",
            f"drop {old}, add {old} {made}{where}",
            f"modify {old} {made}{where}",
            f"modify column {old} {made}{where}",
            f"change {old} {quoted(new)} {made}{where}",
            f"rename column {old} to {quoted(new)}",
            f"alter {old} set default {constant}",
            f"alter column {old} drop default",
            f"add {key(chance, names)}",
            f"drop key {quoted(chance.choice(keys))}",
            f"rename key {quoted(chance.choice(keys))} to {quoted(new)}",
            "drop primary key",
            f"add primary key ({old})",
            f"convert to {charset(chance)}",
            charset(chance),
            f"rename to {self._named(self._free(server))}",
            *(
                [f"add {self._foreign(self._one(server), names)}"]
                if self._keeps_references(table.engine)
                else []
            ),
            chance.choice(
                ("force", "engine = innodb", "comment 'x, y'", "order by 1", "row_format dynamic")
            ),
        ]
        if self._mariadb:
            forms += [
                f"add column if not exists {quoted(new)} {made}",
                f"drop column if exists {quoted(new)}",
                f"modify column if exists {quoted(new)} {made}",
                f"rename column if exists {quoted(new)} to {old}",
                f"drop key if exists {quoted(new)}",
                f"add key if not exists {quoted(new)} ({old})",
                f"add unique if not exists ({old})",
            ]
        else:
            forms.append(f"alter column {old} set {shown}")
        return chance.choice(forms)

    def _index(self, server: ServerSchema) -> str:
        chance, table = self._chance, self._one(server)
        if table.keys and chance.random() < 0.3:
            name = quoted(chance.choice(table.keys).name)
            return f"drop index {name} on {self._named(table.name)}"
        kind = chance.choice(("", "", "unique "))
        column = quoted(self._column(table).name)
        name = quoted(chance.choice(NAMES))
        return f"create {kind}index {name} on {self._named(table.name)} ({column})"

    def _rename(self, server: ServerSchema) -> str:
        one, other, free = self._one(server).name, self._one(server).name, self._free(server)
        first, second, third = map(self._named, (one, other, free))
        if one == other:
            return f"rename table {first} to {third}"
        return f"rename table {first} to {third}, {second} to {first}, {third} to {second}"

    def _drop(self, server: ServerSchema) -> str:
        exists = self._chance.choice(("", "if exists "))
        return f"drop table {exists}{self._named(self._one(server).name)}"

    def _like(self, server: ServerSchema) -> str:
        made, like = self._named(self._free(server)), self._named(self._one(server).name)
        return f"create table {made} like {like}"

    def _select(self, server: ServerSchema) -> str:
        made, source = self._named(self._free(server)), self._named(self._one(server).name)
        return f"create table {made} {charset(self._chance)} select * from {source}"

    def _truncate(self, server: ServerSchema) -> str:
        return f"truncate {self._named(self._one(server).name)}"

    def _database(self, _: ServerSchema) -> str:
        return f"alter database `{self._chance.choice(self._databases)}` {charset(self._chance)}"

    def _session(self, _: ServerSchema) -> str:
        known = _SESSION if self._mariadb else (*_SESSION, *_OF_MYSQL)
        return self._chance.choice(known)

    def _spelled(self, statement: str) -> str:
        """The statement with a comment, or with other blanks, now and then."""
        chance = self._chance
        if chance.random() < 0.1:
            head, _, rest = statement.partition(" ")
            return f"/* drop table a; */ {head} -- it's\n{rest} # end"
        return f"\t{statement}\n" if chance.random() < 0.1 else statement
