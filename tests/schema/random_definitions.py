"""Column definitions, keys and options that chance makes, for `random_statements`.

Belongs here: every type and attribute, in many spellings. Not every combination is one
that a server accepts.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Final

from tests.schema.made_rows import quoted

NAMES: Final = ("a", "b", "C", "d_d", "e f", "key", "ü", "h")

_SETS: Final = (
    ("utf8mb4", ("utf8mb4_bin", "utf8mb4_unicode_ci", "utf8mb4_general_ci")),
    ("utf8mb3", ("utf8mb3_general_ci", "utf8mb3_bin")),
    ("utf8", ("utf8_unicode_ci",)),
    ("latin1", ("latin1_german1_ci", "latin1_bin")),
    ("ucs2", ("ucs2_bin",)),
    ("ascii", ("ascii_general_ci",)),
    ("binary", ("binary",)),
    ("gbk", ("gbk_bin",)),
)
_INTEGERS: Final = (
    *("tinyint", "smallint", "mediumint", "int", "integer", "bigint", "int1", "int2", "int3"),
    *("int4", "int8", "middleint", "bool", "tinyint(1)", "int(7)", "bigint(20)"),
)
_OTHERS: Final = (
    *("decimal", "decimal(9)", "dec(12,4)", "numeric(30,10)", "float", "float(20)", "float(30)"),
    *("float(7,2)", "double", "double precision", "real", "date", "time", "time(3)", "datetime"),
    *("datetime(6)", "timestamp", "timestamp(2)", "year", "bit", "bit(12)", "binary", "binary(3)"),
    *("varbinary(20)", "blob", "tinyblob", "blob(300)", "longblob", "json", "geometry", "point"),
)
_CHARACTERS: Final = (
    *("char", "char(5)", "varchar(1)", "varchar(40)", "varchar(300)", "text", "tinytext"),
    *("mediumtext", "longtext", "text(50)", "text(90)", "text(400)", "long varchar"),
    *("enum('a','b')", "enum('x','it''s','Ü')", "set('a','b','c')", "character varying(9)"),
)
_NATIONAL: Final = ("national char(4)", "nvarchar(7)", "nchar varying(8)", "char(6) byte")
_MOMENTS: Final = ("datetime", "timestamp")


def charset(chance: Random) -> str:
    """CHARACTER SET, COLLATE, or both, of one of a few sets."""
    name, collations = chance.choice(_SETS)
    word = chance.choice(("character set", "charset"))
    collation = chance.choice(collations)
    return chance.choice(
        (f"{word} {name}", f"collate {collation}", f"{word} {name} collate {collation}")
    )


def table_options(chance: Random) -> str:
    """None, one or two."""
    known = (
        charset(chance),
        f"default {charset(chance)}",
        "engine=InnoDB",
        "engine = MyISAM",
        "comment='it''s, (a) comment'",
        "auto_increment 5",
        "row_format=dynamic",
    )
    return chance.choice((" ", ", ")).join(chance.sample(known, chance.choice((0, 0, 1, 2))))


def definition(chance: Random, names: Sequence[str], *, mariadb: bool) -> str:
    """What stands behind a column's name."""
    if chance.random() < 0.08:
        kind = chance.choice(("", " virtual", " stored"))
        return f"bigint as (length({quoted(chance.choice(names))}) + 1){kind}"
    kind, parts = _typed(chance)
    parts += [_nullability(chance), _default(chance, kind)]
    if chance.random() < 0.1:
        parts.append(chance.choice(("comment 'x, y'", 'comment "it\'s"', "unique", "unique key")))
    if chance.random() < 0.05:
        parts.append("invisible")
    if chance.random() < 0.05 and not mariadb:
        parts.append("column_format fixed")
    if chance.random() < 0.03:
        parts.append("check (1 in (1, 2))")
    shuffled = parts[1:]
    chance.shuffle(shuffled)
    return " ".join(part for part in (parts[0], *shuffled) if part)


def _typed(chance: Random) -> tuple[str, list[str]]:
    form = chance.random()
    if form < 0.3:
        kind = chance.choice(_INTEGERS)
        sign = chance.choice(("", "", " unsigned", " signed", " unsigned zerofill", " zerofill"))
        return "number", [kind if kind == "bool" else kind + sign]
    if form < 0.6:
        kind = chance.choice(_CHARACTERS)
        text = chance.choice(("", "", "", f" {charset(chance)}", " binary", " ascii"))
        return ("member" if kind[:3] in ("enu", "set") else "text"), [kind + text]
    if form < 0.65:
        return "text", [chance.choice(_NATIONAL)]
    kind = chance.choice(_OTHERS)
    return kind, [kind]


def _nullability(chance: Random) -> str:
    return chance.choice(("", "", "", "null", "not null"))


def _default(chance: Random, kind: str) -> str:
    if chance.random() < 0.6:
        return ""
    base = kind.partition("(")[0]
    if base in _MOMENTS:
        digits = kind[len(base) :]
        now = chance.choice((f"current_timestamp{digits}", f"now{digits or '()'}"))
        moments = (
            f"default {now}",
            f"default {now} on update {now}",
            f"on update {now}",
            "default '2024-02-29 12:34:56'",
            "default null",
        )
        return chance.choice(moments)
    if kind == "number":
        return "default " + chance.choice(("0", "1", "'7'", "+3", "1.4", "true", "b'1'", "null"))
    if kind == "member":
        return "default " + chance.choice(("'a'", "'b'", "null", "'A'"))
    if kind == "text":
        return "default " + chance.choice(("''", "'x'", '"y"', "'it''s'", "'a' 'b'", "null", "5"))
    if base in ("decimal", "dec", "numeric", "float", "double", "real"):
        return "default " + chance.choice(("0", "1.25", "'-3.5'", ".5", "null"))
    if base in ("binary", "varbinary"):
        return "default " + chance.choice(("'a'", "x'4142'", "''", "null"))
    if base in ("date", "year", "time", "bit"):
        return "default " + chance.choice(("'2024-02-29'", "1", "'12:34'", "b'1'", "null"))
    return ""


def key(chance: Random, names: Sequence[str]) -> str:
    """A key over one or two columns, named or not."""
    kind = chance.choice(("key", "index", "unique", "unique key", "constraint `k1` unique"))
    name = f" {quoted(chance.choice(NAMES))}" if chance.random() < 0.4 else ""
    chosen = chance.sample(list(names), min(len(names), chance.choice((1, 1, 2))))
    parts = ", ".join(quoted(one) + chance.choice(("", "", "", "(3)", " desc")) for one in chosen)
    return f"{kind}{name} ({parts})"
