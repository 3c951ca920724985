"""ALTER TABLE: its clauses, one after the other.

Belongs here: the grammar of clauses about columns, keys and names, and of those about partitions,
tablespaces and how it is carried out: whether rows come or go by them that no event tells of. Does
not: that all of them resolve against the table as it was (`pipeline.schema.evolving.alter`).

Source: `alter_table_stmt` in `sql/sql_yacc.yy` of MySQL, and MariaDB's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from pipeline.schema.statements.changes import (
    FIRST,
    AddColumn,
    AddForeignKey,
    AddKey,
    AddPeriod,
    AlterDefault,
    AlterKeyVisibility,
    AlterTable,
    AlterVisibility,
    ChangeColumn,
    Clause,
    ConvertCharset,
    DropColumn,
    DropConstraint,
    DropForeignKey,
    DropKey,
    Neutral,
    RenameColumn,
    RenameKey,
    RenameTo,
    RowsChange,
    SetOptions,
)
from pipeline.schema.statements.column_definitions import read_column, read_definition
from pipeline.schema.statements.create import read_period
from pipeline.schema.statements.defaults import read_default
from pipeline.schema.statements.keys import read_key, sees_key
from pipeline.schema.statements.lexer import CannotRead
from pipeline.schema.statements.options import read_options, skip_partitions
from pipeline.schema.statements.reader import StatementReader
from pipeline.schema.statements.written import (
    WrittenColumn,
    WrittenKey,
    WrittenOptions,
    WrittenReference,
)


def read_alter_table(reader: StatementReader, *, ignore: bool) -> AlterTable:
    """Behind ALTER [IGNORE] TABLE."""
    if_exists = reader.if_exists()
    table = reader.table()
    if reader.accept("WAIT"):
        reader.next()
    else:
        reader.accept("NOWAIT")
    clauses: list[Clause] = [RowsChange("ALTER IGNORE")] if ignore else []
    while not reader.over:
        clauses.extend(_clause(reader))
        more = reader.accept_symbol(",") or _partition_follows(reader)
        if not more and not reader.over:
            raise reader.unexpected("a comma")
    return AlterTable(table, tuple(clauses), if_exists)


def _partition_follows(reader: StatementReader) -> bool:
    return reader.sees("PARTITION", "BY") or reader.sees("REMOVE", "PARTITIONING")


def _clause(reader: StatementReader) -> list[Clause]:
    word = reader.peek().keyword
    match word:
        case "ADD":
            return _add(reader)
        case "DROP":
            return [_drop(reader)]
        case "CHANGE" | "MODIFY":
            return [_change(reader)]
        case "ALTER":
            return [_alter(reader)]
        case "RENAME":
            return [_rename(reader)]
        case "CONVERT" if reader.sees("CONVERT", "TO"):
            return [_convert(reader)]
    found = read_partitions(reader) or read_neutral(reader)
    if found is not None:
        return [found]
    place = reader.at
    options = read_options(reader)
    if reader.at == place:
        raise reader.unexpected("a clause of ALTER TABLE")
    return [SetOptions(options)]


def _add(reader: StatementReader) -> list[Clause]:
    reader.expect("ADD")
    if reader.accept("PARTITION"):
        # New partitions are empty; those of HASH and KEY only move rows.
        to_the_end(reader)
        return [Neutral("ADD PARTITION")]
    if reader.context.facts.mariadb:
        if reader.accept("SYSTEM", "VERSIONING"):
            return [SetOptions(WrittenOptions(system_versioned=True))]
        if reader.accept("PERIOD", "FOR"):
            period = read_period(reader)
            return [Neutral("ADD PERIOD") if period is None else AddPeriod(period)]
    if sees_key(reader) or reader.sees("CHECK"):
        return _added(read_key(reader))
    reader.accept("COLUMN")
    if_not_exists = reader.if_not_exists()
    if reader.sees_symbol("("):
        return reader.enclosed(lambda: _group(reader, if_not_exists=if_not_exists))
    column = read_column(reader)
    return [AddColumn(column, _position(reader), if_not_exists)]


def _group(reader: StatementReader, *, if_not_exists: bool) -> list[Clause]:
    found: list[Clause] = []
    while True:
        if sees_key(reader):
            found += _added(read_key(reader))
        else:
            found.append(AddColumn(read_column(reader), None, if_not_exists))
        if not reader.accept_symbol(","):
            return found


def _added(element: WrittenKey | WrittenReference | WrittenColumn | None) -> list[Clause]:
    match element:
        case WrittenKey():
            return [AddKey(element)]
        case WrittenReference():
            return [AddForeignKey(element)]
    return [Neutral("ADD CHECK")]


def _change(reader: StatementReader) -> Clause:
    word = reader.next().keyword
    reader.accept("COLUMN")
    if_exists = reader.if_exists()
    old = reader.name()
    new = reader.name() if word == "CHANGE" else old
    column = read_definition(new, reader)
    return ChangeColumn(old, column, _position(reader), if_exists)


def _position(reader: StatementReader) -> str | None:
    if reader.accept("FIRST"):
        return FIRST
    return reader.name() if reader.accept("AFTER") else None


def _alter(reader: StatementReader) -> Clause:
    reader.expect("ALTER")
    if reader.accept_any("INDEX", "KEY"):
        reader.if_exists()
        name = reader.name()
        hidden = reader.accept_any("VISIBLE", "INVISIBLE", "IGNORED", "NOT")
        if hidden == "NOT":
            reader.expect("IGNORED")
        return AlterKeyVisibility(name, hidden in ("INVISIBLE", "IGNORED"))
    if reader.accept_any("CHECK", "CONSTRAINT"):
        reader.name()
        if not reader.accept("NOT", "ENFORCED"):
            reader.expect("ENFORCED")
        return Neutral("ALTER CHECK")
    reader.accept("COLUMN")
    if_exists = reader.if_exists()
    name = reader.name()
    if reader.accept("DROP"):
        reader.expect("DEFAULT")
        return AlterDefault(name, None, if_exists)
    reader.expect("SET")
    if word := reader.accept_any("VISIBLE", "INVISIBLE"):
        return AlterVisibility(name, word == "INVISIBLE")
    reader.expect("DEFAULT")
    return AlterDefault(name, read_default(reader), if_exists)


def _drop(reader: StatementReader) -> Clause:
    reader.expect("DROP")
    if reader.accept("PARTITION"):
        to_the_end(reader)
        return RowsChange("DROP PARTITION")
    if reader.accept("SYSTEM", "VERSIONING"):
        return SetOptions(WrittenOptions(system_versioned=False))
    if reader.sees("PERIOD", "FOR") or reader.sees("PERIOD", "IF", "EXISTS"):
        reader.next()
        reader.if_exists()
        reader.expect("FOR")
        reader.name()
        return Neutral("DROP PERIOD")
    if reader.accept("PRIMARY", "KEY"):
        return DropKey(None)
    if reader.accept_any("INDEX", "KEY"):
        if_exists = reader.if_exists()
        return DropKey(reader.name(), if_exists)
    if reader.accept("FOREIGN", "KEY"):
        if_exists = reader.if_exists()
        return DropForeignKey(reader.name(), if_exists)
    if reader.accept("CONSTRAINT"):
        if_exists = reader.if_exists()
        return DropConstraint(reader.name(), if_exists)
    if reader.sees("CHECK") and reader.peek(1).is_name:
        reader.next()
        reader.name()
        return Neutral("DROP CHECK")
    reader.accept("COLUMN")
    if_exists = reader.if_exists()
    name = reader.name()
    reader.accept_any("RESTRICT", "CASCADE")
    return DropColumn(name, if_exists)


def _rename(reader: StatementReader) -> Clause:
    reader.expect("RENAME")
    if reader.sees("COLUMN") and not reader.sees_symbol(".", 1):
        reader.next()
        if_exists = reader.if_exists()
        old = reader.name()
        reader.expect("TO")
        return RenameColumn(old, reader.name(), if_exists)
    if reader.accept_any("INDEX", "KEY"):
        if_exists = reader.if_exists()
        old = reader.name()
        reader.expect("TO")
        return RenameKey(old, reader.name(), if_exists)
    if not reader.accept_any("TO", "AS"):
        reader.accept_symbol("=")
    return RenameTo(reader.table())


def _convert(reader: StatementReader) -> Clause:
    reader.expect("CONVERT", "TO")
    if not reader.charset_word():
        raise reader.unexpected("CHARACTER SET")
    charset = None if reader.accept("DEFAULT") else reader.word_or_string()
    collation = None
    if reader.accept("COLLATE"):
        reader.accept_symbol("=")
        collation = reader.word_or_string()
    return ConvertCharset(charset, collation)


def drop_index_clause(name: str, *, if_exists: bool) -> Clause:
    """DROP INDEX `PRIMARY` is the primary key."""
    key = DropKey(None if name.upper() == "PRIMARY" else name)
    return replace(key, if_exists=if_exists)


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
