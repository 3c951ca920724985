"""Tables that have settings, and what chance writes to them and makes of them.

What a column's name begins with says what settings may do to it, so that an ALTER that renames one
takes its values to another rule. Whatever settings hide, or leave out with its row, has `SECRET` in
its text.

Belongs here: settings and SQL. Does not: runs, and what must be true (`test_followed`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from random import Random
from typing import Any, Final

import pymysql
from pymysql.cursors import Cursor

from lockstep.pipeline.schema.treatments import Conversion, Hash, read_mask
from lockstep.pipeline.shape.shape import ShapeRules
from tests.fix_mysql import MySqlStand
from tests.shape.reference import Of, Row, Settings

SECRET: Final = "QZX"

Making = Callable[[Random, str], Any]
"""A value of a type; the text is what its text begins with."""


def _moment(chance: Random) -> datetime:
    return datetime(2020, 1, 1) + timedelta(seconds=chance.randrange(10**7))


MADE: Final[Mapping[str, Making]] = {
    "varchar": lambda chance, text: f"{text}\u00c9{chance.randrange(10**5)}",
    "text": lambda chance, text: f"{text} {chance.randrange(10**5)}",
    "json": lambda chance, text: f'{{"a": "{text}{chance.randrange(99)}"}}',
    "longtext": lambda chance, text: f'{{"a": "{text}{chance.randrange(99)}"}}',
    "varbinary": lambda chance, text: text.encode() + bytes([chance.randrange(1, 255)]),
    "binary": lambda chance, _: chance.randbytes(15) + b"\1",
    "char": lambda chance, _: "-".join(
        f"{chance.randrange(16**n):0{n}x}" for n in (8, 4, 4, 4, 12)
    ),
    "enum": lambda chance, _: chance.choice("ab"),
    "int": lambda chance, _: chance.randint(-(10**9), 10**9),
    "bigint": lambda chance, _: chance.randint(-(10**12), 10**12),
    "tinyint": lambda chance, _: chance.randint(0, 1),
    "decimal": lambda chance, _: Decimal(chance.randint(-(10**7), 10**7)) / 100,
    "double": lambda chance, _: chance.randint(-(10**6), 10**6) / 8,
    "date": lambda chance, _: _moment(chance).date(),
    "datetime": lambda chance, _: _moment(chance).replace(microsecond=chance.randrange(999) * 1000),
    "timestamp": lambda chance, _: _moment(chance),
    "time": lambda chance, _: (
        f"{chance.randint(-99, 99):02}:{chance.randrange(60):02}:{chance.randrange(60):02}.25"
    ),
}
"""By the type's name in information_schema."""

TEXTS: Final = ("varchar(40)", "varchar(60)", "text")
WHOLE: Final = ("int", "bigint")
DATED: Final = ("date", "datetime(3)", "timestamp")
HASHED: Final = (
    *TEXTS,
    *WHOLE,
    *DATED,
    *("decimal(10,2)", "decimal(12,3)", "double", "time(2)", "binary(16)", "varbinary(30)"),
)
ANY: Final = (*HASHED, "json", "enum('a','b')", "tinyint")


@dataclass(frozen=True)
class Role:
    """What settings may do to columns whose names begin so, and the types that it is done to."""

    types: Sequence[str]
    setting: str = ""
    value: Any = None


ROLES: Final = {
    "s": Role(ANY),
    "x": Role(ANY, "exclude"),
    "h": Role(HASHED, "hashed", False),
    "hl": Role(TEXTS, "hashed", True),
    "mn": Role(ANY, "masks", "null"),
    "ml": Role((*TEXTS, *WHOLE, "decimal(10,2)"), "masks", "last:2"),
    "mf": Role(TEXTS, "masks", "first:2"),
    "my": Role(DATED, "masks", "year"),
    "cb": Role(("tinyint",), "types", "boolean"),
    "cu": Role(("binary(16)", "char(36)"), "types", "uuid"),
    "ct": Role(("time(2)",), "types", "microseconds"),
    "cs": Role((*WHOLE, *DATED, "decimal(10,2)", "time(2)", "enum('a','b')"), "types", "string"),
}
_NOTHING: Final = Settings()
TAKEN: Final = "g >= 0"


def settings_of(roles: Sequence[str], *, hashed_key: bool, rows: bool, include: bool) -> Settings:
    """Those that do what the roles say."""
    made: dict[str, dict[str, Any]] = {"exclude": {}, "hashed": {}, "masks": {}, "types": {}}
    for name in roles:
        role = ROLES[name]
        if role.setting:
            made[role.setting][f"{name}_*"] = role.value
    if hashed_key:
        made["hashed"]["k"] = False
    included = None
    if include:
        included = ["k", "g", "s_*", *made["hashed"], *made["masks"], *made["types"]]
        made["exclude"] = {}
    taken = (lambda row: None if row["g"] is None else row["g"] >= 0) if rows else None
    return Settings(
        [*made["exclude"]], included, made["hashed"], made["masks"], made["types"], taken
    )


def rules_of(settings: Settings) -> ShapeRules:
    """The same as lockstep.toml has it."""
    return ShapeRules(
        include_columns=None if settings.include is None else tuple(settings.include),
        exclude_columns=tuple(settings.exclude) or None,
        hash_columns={n: Hash.LOWER if low else Hash.EXACT for n, low in settings.hashed.items()}
        or None,
        mask_columns={name: read_mask(mask) for name, mask in settings.masks.items()} or None,
        types={name: Conversion(to) for name, to in settings.types.items()} or None,
        rows=None if settings.rows is None else TAKEN,
    )


@dataclass
class Traffic:
    """Tables of one database. `settings`: by the first letter of a table's name."""

    stand: MySqlStand
    database: str
    chance: Random
    settings: dict[str, Settings]
    roles: dict[str, list[str]] = field(default_factory=dict)
    image: str = "FULL"
    log: list[str] = field(default_factory=list)
    """What was sent, for whoever looks into a failure."""
    number: int = 0
    prepared: dict[str, str] = field(default_factory=dict)
    """XA transactions that are open, and the tables that they hold."""

    @property
    def mariadb(self) -> bool:
        return "MariaDB" in str(self.stand.rows("select version()")[0][0])

    def of(self, table: str) -> Settings:
        return self.settings.get(table[0], _NOTHING)

    @contextmanager
    def session(self) -> Iterator[Cursor]:
        with (
            self.stand.connect(
                self.database,
                init_command="set time_zone = '+00:00', sql_mode = 'STRICT_ALL_TABLES', "
                f"binlog_row_image = {self.image}, lock_wait_timeout = 1, "
                "innodb_lock_wait_timeout = 1",
            ) as session,
            session.cursor() as cursor,
        ):
            yield cursor

    def send(self, *statements: str | tuple[str, Sequence[Any]]) -> bool:
        """In one session; whether the server took all of them. What it refuses is left, with all
        behind it."""
        with self.session() as cursor:
            for statement in statements:
                text, values = (statement, ()) if isinstance(statement, str) else statement
                sent = cursor.mogrify(text, values)
                self.log.append(sent)
                try:
                    cursor.execute(text, values or None)
                except pymysql.MySQLError as error:
                    self.log.append(f"-- {error.args[0]}")
                    return False
        return True

    # -- what there is -------------------------------------------------------------------------

    def tables(self) -> list[str]:
        found = self.stand.rows(
            "select table_name from information_schema.tables where table_schema = "
            f"'{self.database}' order by 1"
        )
        return [name for (name,) in found]

    def columns(self, table: str) -> dict[str, Of]:
        found = self.stand.rows(
            "select column_name, data_type, coalesce(numeric_scale, datetime_precision, 0) from "
            f"information_schema.columns where table_schema = '{self.database}' "
            f"and table_name = '{table}' order by ordinal_position"
        )
        return {name: Of(kind, int(digits)) for name, kind, digits in found}

    def rows(self, table: str) -> list[Row]:
        """All rows, as values of the reference."""
        columns = self.columns(table)
        asked = ", ".join(
            f"cast(`{name}` as char)" if of.kind == "time" else f"`{name}`"
            for name, of in columns.items()
        )
        with self.session() as cursor:
            cursor.execute(f"select {asked} from {table}")
            return [
                {
                    name: _read(of, value)
                    for (name, of), value in zip(columns.items(), row, strict=True)
                }
                for row in cursor.fetchall()
            ]

    # -- rows ----------------------------------------------------------------------------------

    def row(self, table: str, *, taken: bool) -> dict[str, Any]:
        """A row with a value for each column."""
        settings = self.of(table)
        values: dict[str, Any] = {}
        for name, of in self.columns(table).items():
            if name == "k":
                values[name] = self.key(settings, of)
            elif name == "g":
                values[name] = self.chance.randint(0, 9) if taken else self.chance.randint(-9, -1)
            else:
                hidden = settings.hides(name) or not taken
                values[name] = self.value(of, SECRET if hidden else "plain")
        return values

    def key(self, settings: Settings, of: Of) -> Any:
        number = self.chance.randrange(40)
        if of.kind != "varchar":
            return number
        return f"{SECRET if settings.hides('k') else 'key'}{number}"

    def value(self, of: Of, text: str) -> Any:
        return None if self.chance.random() < 0.1 else MADE[of.kind](self.chance, text)

    def taken(self, table: str) -> bool:
        settings = self.of(table)
        return settings.rows is None or self.chance.random() < 0.7

    def writes(self, table: str) -> list[str | tuple[str, Sequence[Any]]]:
        """A few statements that change rows of a table."""
        return [self.write(table) for _ in range(self.chance.randint(1, 3))]

    def write(self, table: str) -> str | tuple[str, Sequence[Any]]:
        pick = self.chance.random()
        if pick < 0.4:
            rows = [
                self.row(table, taken=self.taken(table))
                for _ in range(self.chance.choice((1, 1, 5)))
            ]
            names = ", ".join(f"`{name}`" for name in rows[0])
            places = ", ".join(["(" + ", ".join(["%s"] * len(rows[0])) + ")"] * len(rows))
            word = self.chance.choice(("replace", "insert ignore"))
            values = [value for row in rows for value in row.values()]
            return f"{word} into {table} ({names}) values {places}", values
        row = self.row(table, taken=self.taken(table))
        if pick < 0.6:
            key = self.row(table, taken=True)["k"]
            changed = ", ".join(f"`{name}` = %s" for name in row if name != "k")
            values = [value for name, value in row.items() if name != "k"]
            return f"update ignore {table} set {changed} where k = %s", [*values, key]
        if pick < 0.75:
            of_all = [name for name in row if name not in ("k", "g")]
            if of_all:
                return self.one_column(table, self.chance.choice(of_all))
        if pick < 0.88:
            other = self.row(table, taken=True)["k"]
            return f"update ignore {table} set k = %s where k = %s", [row["k"], other]
        return f"delete from {table} where k = %s", [row["k"]]

    def one_column(self, table: str, name: str) -> tuple[str, Sequence[Any]]:
        """Of rows that are taken, or of those that are not."""
        settings, columns = self.of(table), self.columns(table)
        taken = self.taken(table)
        hidden = settings.hides(name) or not taken
        value = self.value(columns[name], SECRET if hidden else "plain")
        which = (
            "true"
            if settings.rows is None or "g" not in columns
            else (TAKEN if taken else f"not ({TAKEN})")
        )
        return f"update ignore {table} set `{name}` = %s where {which} limit 3", [value]

    # -- what happens --------------------------------------------------------------------------

    def traffic(self) -> None:
        """One transaction."""
        tables = self.free()
        if not tables:
            return
        changes = [one for _ in range(2) for one in self.writes(self.chance.choice(tables))]
        end = self.chance.choice(("commit", "commit", "commit", "rollback"))
        self.send("begin", *changes, end)

    def free(self) -> list[str]:
        return [one for one in self.tables() if one not in self.prepared.values()]

    def prepare(self) -> None:
        tables = self.free()
        if not tables:
            return
        self.number += 1
        table, xid = self.chance.choice(tables), f"'{self.database}{self.number}'"
        if self.send(f"xa start {xid}", *self.writes(table), f"xa end {xid}", f"xa prepare {xid}"):
            self.prepared[xid] = table

    def end(self) -> None:
        if self.prepared:
            xid = self.chance.choice(sorted(self.prepared))
            del self.prepared[xid]
            word = self.chance.choice(("commit", "commit", "rollback"))
            for _ in range(100):
                if self.send(f"xa {word} {xid}"):
                    return

    def alter(self) -> None:
        """One change of structure; also such that settings cannot follow."""
        tables = self.free()
        if not tables:
            return
        table = self.chance.choice(tables)
        self.number += 1
        columns = [name for name in self.columns(table) if name not in ("k", "g")]
        kinds = [self.added, self.added, self.whole]
        if columns:
            kinds += [self.changed, self.changed, self.modified, self.dropped]
        change = self.chance.choice(kinds)
        statement = change(table, self.chance.choice(columns) if columns else "")
        for one in statement.split("; "):
            if not self.send(one):
                return

    def definition(self, table: str, name: str) -> str:
        role = name.partition("_")[0]
        kind = self.chance.choice(ANY if self.chance.random() < 0.1 else ROLES[role].types)
        if kind == "timestamp":
            kind = "timestamp null"
        default = ""
        if kind.startswith("varchar") and self.chance.random() < 0.6:
            hidden = self.of(table).hides(name)
            default = f" default '{SECRET if hidden else 'plain'}default'"
        elif kind in WHOLE and self.chance.random() < 0.5:
            default = " not null default 77"
        return f"{kind}{default}"

    def named(self, role: str) -> str:
        return f"{role}_{self.number}"

    def added(self, table: str, other: str) -> str:
        name = self.named(self.chance.choice([*ROLES]))
        where = self.chance.choice(("", " first", f" after {other}" if other else ""))
        return f"alter table {table} add column {name} {self.definition(table, name)}{where}"

    def dropped(self, table: str, name: str) -> str:
        return f"alter table {table} drop column {name}"

    def modified(self, table: str, name: str) -> str:
        return f"alter table {table} modify {name} {self.definition(table, name)}"

    def changed(self, table: str, name: str) -> str:
        role = name.partition("_")[0]
        if self.chance.random() < 0.3:
            role = self.chance.choice([*ROLES])
        new = self.named(role)
        kept = self.stand.rows(
            "select column_type from information_schema.columns where table_schema = "
            f"'{self.database}' and table_name = '{table}' and column_name = '{name}'"
        )[0][0]
        return f"alter table {table} change {name} {new} {kept} null"

    def whole(self, table: str, _: str) -> str:
        new, other = f"{table[0]}{self.number}", f"u{self.number}"
        another = self.chance.choice(self.tables())
        choices = [
            f"truncate table {table}",
            f"rename table {table} to {new}",
            f"rename table {table} to {other}",
            f"create table {new} like {table}",
            f"create table {other} like {table}",
            f"drop table {table}; create table {table} {self.created(table)}",
            f"alter table {table} comment '{'plain' if table.startswith('u') else SECRET}'",
            "flush binary logs",
        ]
        if another != table and another not in self.prepared.values():
            choices.append(f"rename table {table} to away, {another} to {table}, away to {another}")
        if self.mariadb:
            choices.append(f"create or replace table {table} {self.created(table)}")
        return self.chance.choice(choices)

    def created(self, table: str) -> str:
        """The columns that a new table has."""
        roles = self.chance.sample([*ROLES], 4)
        key = self.chance.choice(("bigint", "varchar(40)"))
        columns = []
        for role in roles:
            self.number += 1
            name = self.named(role)
            columns.append(f"{name} {self.definition(table, name)}")
        return f"(k {key} primary key, g int, {', '.join(columns)})"

    def forget(self) -> None:
        """Nothing of it is left on the server."""
        while self.prepared:
            self.end()
        self.stand.execute(f"drop database {self.database}")

    def make(self, *tables: str) -> None:
        for table in tables:
            while table not in self.tables():
                self.send(f"create table {table} {self.created(table)}")

    def tighten(self) -> str:
        """Settings hide more of the tables that begin with a letter, which is returned."""
        letter = self.chance.choice(sorted(self.settings))
        before = self.settings[letter]
        more = settings_of([*ROLES], hashed_key="k" in before.hashed, rows=False, include=False)
        role = self.chance.choice(
            [name for name in ROLES if name not in ("s", "cb", "cu", "ct", "cs")]
        )
        pattern = f"{role}_*"
        if before.include is not None:
            return letter
        exclude = {*before.exclude, *([pattern] if ROLES[role].setting == "exclude" else [])}
        self.settings[letter] = replace(
            before,
            exclude=sorted(exclude),
            hashed={**before.hashed, **{p: v for p, v in more.hashed.items() if p == pattern}},
            masks={**before.masks, **{p: v for p, v in more.masks.items() if p == pattern}},
        )
        return letter


def _read(of: Of, value: Any) -> Any:
    if of.kind == "timestamp" and value is not None:
        return value.replace(tzinfo=UTC)
    return value
