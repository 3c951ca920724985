"""Clauses of ALTER TABLE about partitions, tablespaces and how it is carried out.

Belongs here: their grammar, and whether rows come or go by them that no event tells of. Does not:
columns, keys and names (`alter`).

Source: `alter_table_stmt` in `sql/sql_yacc.yy` of MySQL, and MariaDB's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pipeline.schema.statements.changes import (
    Clause,
    Neutral,
    RowsChange,
    SetOptions,
)
from pipeline.schema.statements.lexer import CannotRead
from pipeline.schema.statements.options import skip_partitions
from pipeline.schema.statements.reader import StatementReader
from pipeline.schema.statements.written import (
    WrittenOptions,
)

_PARTITION_WORDS: Final = frozenset(
    {"ANALYZE", "CHECK", "OPTIMIZE", "REBUILD", "REPAIR", "REORGANIZE", "COALESCE"}
)


def read_partitions(reader: StatementReader) -> Clause | None:
    if skip_partitions(reader):
        return SetOptions(WrittenOptions(partitioned=True))
    if reader.accept("REMOVE", "PARTITIONING"):
        return SetOptions(WrittenOptions(partitioned=False))
    if word := reader.accept_any("DISCARD", "IMPORT"):
        if reader.accept("PARTITION"):
            reader.listed(reader.name)
        reader.expect("TABLESPACE")
        return RowsChange(f"{word} TABLESPACE")
    if reader.accept("TRUNCATE", "PARTITION"):
        to_the_end(reader)
        return RowsChange("TRUNCATE PARTITION")
    if reader.accept("EXCHANGE", "PARTITION"):
        reader.name()
        reader.expect("WITH", "TABLE")
        other = reader.table()
        if reader.accept_any("WITH", "WITHOUT"):
            reader.expect("VALIDATION")
        return RowsChange("EXCHANGE PARTITION", other)
    if reader.context.facts.mariadb and reader.sees("CONVERT"):
        raise CannotRead("CONVERT PARTITION and CONVERT TABLE are not followed")
    word = reader.peek().keyword
    if word in _PARTITION_WORDS and reader.sees(word, "PARTITION"):
        words = to_the_end(reader)
        rows_go = word == "REPAIR" or (word == "REORGANIZE" and _leaves_values_out(words))
        return (RowsChange if rows_go else Neutral)(f"{word} PARTITION")
    return None


def _leaves_values_out(words: Sequence[str]) -> bool:
    """Return whether REORGANIZE PARTITION may delete rows. Servers delete those whose value the new
    lists (VALUES IN) leave out; what new ranges leave out they refuse."""
    ranges = ("VALUES", "LESS", "THAN") in zip(words, words[1:], words[2:], strict=False)
    return "INTO" in words and not ranges


def to_the_end(reader: StatementReader) -> list[str]:
    """Take the rest, and return its keywords. Partition clauses stand alone: nothing but they is
    left."""
    words = []
    while not reader.over:
        words.append(reader.next().keyword)
    return words


def read_neutral(reader: StatementReader) -> Clause | None:
    for word in ("ALGORITHM", "LOCK"):
        if reader.accept(word):
            reader.accept_symbol("=")
            reader.next()
            return Neutral(word)
    if reader.accept("FORCE") or reader.accept("NOWAIT"):
        return Neutral("FORCE")
    if word := reader.accept_any("ENABLE", "DISABLE"):
        reader.expect("KEYS")
        return Neutral(f"{word} KEYS")
    if word := reader.accept_any("WITH", "WITHOUT"):
        if reader.accept("VALIDATION"):
            return Neutral("VALIDATION")
        raise CannotRead(f"{word} is not understood here")
    if reader.accept("ORDER", "BY"):
        reader.listed(lambda: _ordered(reader))
        return Neutral("ORDER BY")
    if word := reader.accept_any("SECONDARY_LOAD", "SECONDARY_UNLOAD"):
        return Neutral(word)
    return None


def _ordered(reader: StatementReader) -> None:
    reader.table()
    reader.accept_any("ASC", "DESC")
