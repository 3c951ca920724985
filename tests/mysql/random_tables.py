"""Random tables: columns of every type with literals for them, and keys of one to three columns.

Every literal is a value of its column: nothing is cut off, rounded away or refused. `random_writes`
changes the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random
from typing import Final

Literal = Callable[[Random], str]

ALPHABETS: Final = {
    "utf8mb4": "aZ0 é€😀'\\",
    "utf8mb3": "bß€ \t",
    "latin1": "cÿ€ü",
    "koi8r": "жЯd",
    "cp1251": "ёЖ e",
    "utf16": "f😀ш",
    "utf32": "gц ",
    "ucs2": "hψ",
    "gbk": "中文i",
    "cp932": "日本jｱ",
    "gb18030": "产😀k",
    "ascii": "klm;",
}


@dataclass(frozen=True, slots=True)
class RandomColumn:
    """A definition without a name, and its literals. `key`: how it is named in a key, with
    `{}` for the name; empty where it cannot be in one. `computed`: never written to."""

    definition: str
    literal: Literal
    key: str = ""
    computed: bool = False


def _integer(chance: Random) -> RandomColumn:
    name, bits = chance.choice(
        (("tinyint", 8), ("smallint", 16), ("mediumint", 24), ("int", 32), ("bigint", 64))
    )
    unsigned = chance.random() < 0.5
    low = 0 if unsigned else -(1 << bits - 1)
    high = low + (1 << bits) - 1

    def literal(chance: Random) -> str:
        return str(chance.choice((low, high, 0, chance.randint(low, high), chance.randint(0, 50))))

    return RandomColumn(f"{name} unsigned" if unsigned else name, literal, "{}")


def _decimal(chance: Random) -> RandomColumn:
    precision = chance.randint(1, 65)
    scale = chance.randint(0, min(precision, 30))

    def literal(chance: Random) -> str:
        digits = chance.randrange(10 ** chance.randint(1, precision))
        text = f"{digits:0{scale + 1}}"
        return f"{chance.choice('+-')}{text[: len(text) - scale]}.{text[len(text) - scale :]}"

    return RandomColumn(f"decimal({precision},{scale})", literal, "{}")


def _floating(chance: Random) -> RandomColumn:
    def literal(chance: Random) -> str:
        return repr(chance.choice((0.0, -0.0, chance.uniform(-1e30, 1e30), chance.random())))

    name = chance.choice(("float", "double"))
    return RandomColumn(name, literal, "{}" if name == "double" else "")


def _bits(chance: Random) -> RandomColumn:
    width = chance.randint(1, 64)
    return RandomColumn(f"bit({width})", lambda chance: f"b'{chance.getrandbits(width):b}'", "{}")


def _year(_: Random) -> RandomColumn:
    return RandomColumn("year", lambda chance: str(chance.randint(1901, 2155)), "{}")


def _date(_: Random) -> RandomColumn:
    return RandomColumn("date", lambda chance: f"'{_day(chance, 1, 9999)}'", "{}")


def _moment(chance: Random) -> RandomColumn:
    name, first, last = chance.choice((("datetime", 1, 9998), ("timestamp", 1971, 2037)))

    def literal(chance: Random) -> str:
        return f"'{_day(chance, first, last)} {_clock(chance, 23)}'"

    return RandomColumn(f"{name}({chance.randint(0, 6)})", literal, "{}")


def _time(chance: Random) -> RandomColumn:
    def literal(chance: Random) -> str:
        return f"'{chance.choice(('', '-'))}{_clock(chance, 837)}'"

    return RandomColumn(f"time({chance.randint(0, 6)})", literal, "{}")


def _day(chance: Random, first: int, last: int) -> str:
    year, month, day = chance.randint(first, last), chance.randint(1, 12), chance.randint(1, 28)
    return f"{year:04}-{month:02}-{day:02}"


def _clock(chance: Random, hours: int) -> str:
    hour, second = chance.randint(0, hours), chance.uniform(0, 59.9)
    return f"{hour:02}:{chance.randint(0, 59):02}:{second:09.6f}"


def _text(chance: Random) -> RandomColumn:
    charset = chance.choice(list(ALPHABETS))
    length = chance.choice((1, 5, 20, 63, 64, 255))
    name = chance.choice(("char", "varchar"))
    definition = f"{name}({length}) character set {charset}"
    return RandomColumn(definition, characters(charset, length), "{}" if length < 30 else "")


def _long_text(chance: Random) -> RandomColumn:
    charset = chance.choice(list(ALPHABETS))
    name, length = chance.choice((("tinytext", 60), ("text", 300), ("longtext", 4000)))
    key = "{}(9)" if name == "text" else ""
    return RandomColumn(f"{name} character set {charset}", characters(charset, length), key)


def characters(charset: str, length: int) -> Literal:
    def literal(chance: Random) -> str:
        count = chance.choice((0, 1, chance.randint(0, length), length))
        text = "".join(chance.choices(ALPHABETS[charset], k=count))
        return "'" + text.replace("\\", "\\\\").replace("'", "''") + "'"

    return literal


def _bytes(chance: Random) -> RandomColumn:
    length = chance.choice((1, 5, 16, 255))
    name = chance.choice(("binary", "varbinary"))
    return RandomColumn(f"{name}({length})", _hex(length), "{}" if length < 30 else "")


def _blob(chance: Random) -> RandomColumn:
    name, length = chance.choice((("tinyblob", 255), ("blob", 300), ("mediumblob", 2000)))
    return RandomColumn(name, _hex(length), "{}(6)" if name == "blob" else "")


def _hex(length: int) -> Literal:
    def literal(chance: Random) -> str:
        data = chance.randbytes(chance.choice((0, 1, chance.randint(0, length), length)))
        return f"x'{(data + bytes(chance.randint(0, length - len(data)))).hex()}'"

    return literal


def _enum(chance: Random) -> RandomColumn:
    count = chance.choice((1, 3, 255, 300))
    members = ",".join(f"'m{n}é'" for n in range(count))
    charset = chance.choice(("latin1", "utf8mb4"))
    return RandomColumn(
        f"enum({members}) character set {charset}",
        lambda chance: str(chance.randint(1, count)),
        "{}",
    )


def _set(chance: Random) -> RandomColumn:
    count = chance.choice((1, 8, 9, 33, 64))
    members = ",".join(f"'s{n}'" for n in range(count))
    return RandomColumn(f"set({members})", lambda chance: str(chance.getrandbits(count)), "{}")


def _json(_: Random) -> RandomColumn:
    def literal(chance: Random) -> str:
        return f"cast({_document(chance, 3)} as json)"

    return RandomColumn("json", literal)


def _document(chance: Random, depth: int) -> str:
    """An SQL expression of a JSON value."""
    if depth == 0 or chance.random() < 0.3:
        leaf = chance.choice((_json_word, _json_number, _json_other))
        return leaf(chance)
    parts = [_document(chance, depth - 1) for _ in range(chance.randint(0, 4))]
    if chance.random() < 0.5:
        return f"json_array({', '.join(parts)})"
    keys = (f"'{''.join(chance.choices(ALPHABETS['gb18030'], k=3))}{n}'" for n in range(len(parts)))
    return f"json_object({', '.join(f'{k}, {v}' for k, v in zip(keys, parts, strict=True))})"


def _json_word(chance: Random) -> str:
    return f"json_quote({characters('utf8mb4', 200)(chance)})"


def _json_number(chance: Random) -> str:
    whole = chance.randint(-(1 << 63), (1 << 64) - 1)
    return f"cast('{chance.choice((0, 1, -1, 70000, whole, chance.uniform(-1e9, 1e9)))}' as json)"


def _json_other(chance: Random) -> str:
    return chance.choice(
        (
            "cast('null' as json)",
            "cast('true' as json)",
            f"cast('-{chance.randrange(10**20)}.{chance.randrange(10**9)}' as decimal(40,12))",
            f"timestamp'{_day(chance, 1, 9999)} {_clock(chance, 23)}'",
            f"date'{_day(chance, 1, 9999)}'",
            f"time'-{_clock(chance, 837)}'",
        )
    )


def _geometry(chance: Random) -> RandomColumn:
    name = chance.choice(("geometry", "point", "linestring"))

    def point(chance: Random) -> str:
        return f"point({chance.randint(-90, 90)}, {chance.uniform(-90, 90)!r})"

    def literal(chance: Random) -> str:
        reference = chance.choice((0, 4326, 3857))
        if name == "linestring" or (name == "geometry" and chance.random() < 0.5):
            return f"st_srid(linestring({point(chance)}, {point(chance)}), {reference})"
        return f"st_srid({point(chance)}, {reference})"

    return RandomColumn(name, literal)


def _vector(chance: Random) -> RandomColumn:
    most = chance.randint(1, 20)

    def literal(chance: Random) -> str:
        numbers = (f"{chance.uniform(-1e6, 1e6)!r}" for _ in range(chance.randint(1, most)))
        return f"to_vector('[{','.join(numbers)}]')"

    return RandomColumn(f"vector({most})", literal)


FAMILIES: Final = (
    *(_integer, _integer, _decimal, _decimal, _floating, _bits, _year, _date, _moment, _moment),
    *(_time, _text, _text, _text, _long_text, _bytes, _blob, _enum, _set, _json, _json),
    *(_geometry, _vector),
)
"""Each makes a column; those named twice come twice as often."""


@dataclass(frozen=True, slots=True)
class RandomTable:
    """`columns` by name; those of the key first."""

    name: str
    columns: dict[str, RandomColumn]
    key: tuple[str, ...]

    @property
    def written(self) -> list[str]:
        return [name for name, column in self.columns.items() if not column.computed]

    def create(self) -> str:
        parts = [f"{name} {column.definition}" for name, column in self.columns.items()]
        key = ", ".join(self.columns[name].key.format(name) for name in self.key)
        return f"create table {self.name} ({', '.join(parts)}, primary key ({key}))"

    def row(self, chance: Random) -> str:
        return f"({', '.join(self.columns[name].literal(chance) for name in self.written)})"


def random_tables(chance: Random, count: int) -> Iterator[RandomTable]:
    for number in range(count):
        width = chance.randint(1, 3)
        keys: list[RandomColumn] = []
        while len(keys) < width:
            column = chance.choice(FAMILIES)(chance)
            if column.key:
                keys.append(column)
        if not any(column.definition.startswith(("bigint", "varchar")) for column in keys):
            # Of most types there are too few values for a table's worth of keys.
            keys.append(_keyed(chance))
        rest = [chance.choice(FAMILIES)(chance) for _ in range(chance.randint(1, 12))]
        columns = {f"k{n}": _not_null(column) for n, column in enumerate(keys)}
        columns |= {f"c{n}": _nullable(column, chance) for n, column in enumerate(rest)}
        if chance.random() < 0.5:
            kind = chance.choice(("stored", "virtual"))
            definition = f"int unsigned generated always as (crc32(k0)) {kind}"
            columns["g"] = RandomColumn(definition, _nothing, computed=True)
        yield RandomTable(f"t{number}", columns, tuple(f"k{n}" for n in range(len(keys))))


def _not_null(column: RandomColumn) -> RandomColumn:
    return RandomColumn(f"{column.definition} not null", column.literal, column.key)


def _nullable(column: RandomColumn, chance: Random) -> RandomColumn:
    if chance.random() < 0.2:
        return _not_null(column)

    def literal(chance: Random) -> str:
        return "null" if chance.random() < 0.15 else column.literal(chance)

    return RandomColumn(f"{column.definition} null", literal)


def _nothing(_: Random) -> str:
    raise AssertionError("nobody writes to a generated column")


def _keyed(chance: Random) -> RandomColumn:
    if chance.random() < 0.5:
        return RandomColumn("bigint", lambda chance: str(chance.randint(-99, 99)), "{}")
    return RandomColumn("varchar(8)", characters("utf8mb4", 3), "{}")
