"""The grammar of CREATE TABLE, ALTER TABLE, CREATE INDEX, CREATE DATABASE and ALTER
DATABASE.

Source: `alter_table_stmt` in `sql/sql_yacc.yy` of MySQL, and MariaDB's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from lockstep.pipeline.schema.context import ServerDialect
from lockstep.pipeline.schema.model import KeyKind
from lockstep.pipeline.schema.statements.changes import (
    EXCHANGE,
    FIRST,
    AddElement,
    AlterDatabase,
    AlterDefault,
    AlterTable,
    Clause,
    ConvertCharset,
    CreateDatabase,
    CreateLike,
    CreateSelect,
    CreateTable,
    DefineColumn,
    DropElement,
    Element,
    ElementKind,
    NeutralClause,
    RenameElement,
    RenameTo,
    RowsChange,
    SetOptions,
    SetVisibility,
    WrittenKey,
    WrittenOptions,
    WrittenPeriod,
)
from lockstep.pipeline.schema.statements.definitions import (
    accept_using_hash,
    read_column,
    read_default,
    read_definition,
    read_key,
    read_key_parts,
    sees_key,
)
from lockstep.pipeline.schema.statements.reader import CannotRead, StatementReader


def read_alter_table(reader: StatementReader, *, is_ignore: bool) -> AlterTable:
    """Read what follows ALTER TABLE. `is_ignore`: ALTER IGNORE TABLE, which deletes
    duplicate rows."""
    if_exists = reader.accept_if_exists()
    table = reader.read_table()
    if reader.accept("WAIT"):
        reader.next()
    else:
        reader.accept("NOWAIT")
    clauses: list[Clause] = [RowsChange("ALTER IGNORE")] if is_ignore else []
    while not reader.is_over:
        clauses.extend(_read_clauses(reader))
        if reader.accept_symbol(",") or reader.is_over:
            continue
        # A clause about partitions may follow the others without a comma.
        if not (reader.sees("PARTITION", "BY") or reader.sees("REMOVE", "PARTITIONING")):
            raise reader.unexpected("a comma")
    return AlterTable(table, tuple(clauses), if_exists)


def _read_clauses(reader: StatementReader) -> list[Clause]:
    word = reader.peek().keyword
    match word:
        case "ADD":
            return _read_add_clause(reader)
        case "DROP":
            return [_read_drop_clause(reader)]
        case "CHANGE" | "MODIFY":
            return [_read_change_column(reader)]
        case "ALTER":
            return [_read_alter_clause(reader)]
        case "RENAME":
            return [_read_rename_clause(reader)]
        case "CONVERT" if reader.sees("CONVERT", "TO"):
            return [_read_convert_clause(reader)]
    clause = _read_partition_clause(reader) or _read_neutral_clause(reader)
    if clause is not None:
        return [clause]
    first = reader.at
    options = _read_options(reader)
    if reader.at == first:
        raise reader.unexpected("a clause of ALTER TABLE")
    return [SetOptions(options)]


def _read_add_clause(reader: StatementReader) -> list[Clause]:
    reader.expect("ADD")
    if reader.accept("PARTITION"):
        # New partitions of RANGE and LIST are empty; those of HASH and KEY only move
        # rows.
        _take_rest(reader)
        return [NeutralClause()]
    if reader.context.facts.is_mariadb:
        if reader.accept("SYSTEM", "VERSIONING"):
            return [SetOptions(WrittenOptions(system_versioned=True))]
        if reader.accept("PERIOD", "FOR"):
            period = _read_period(reader)
            return [NeutralClause() if period is None else AddElement(period)]
    if sees_key(reader):
        return [_read_added_key(reader)]
    reader.accept("COLUMN")
    if_not_exists = reader.accept_if_not_exists()
    if reader.sees_symbol("("):
        return reader.read_enclosed(lambda: _read_added_group(reader, if_not_exists=if_not_exists))
    column = read_column(reader)
    return [DefineColumn(None, column, _read_position(reader), if_not_exists)]


def _read_added_group(reader: StatementReader, *, if_not_exists: bool) -> list[Clause]:
    """Read the columns and keys in ADD (…)."""

    def read_clause() -> Clause:
        if sees_key(reader):
            return _read_added_key(reader)
        return DefineColumn(None, read_column(reader), None, if_not_exists)

    return list(reader.read_list(read_clause))


def _read_added_key(reader: StatementReader) -> Clause:
    key = read_key(reader)
    return NeutralClause() if key is None else AddElement(key)


def _read_change_column(reader: StatementReader) -> Clause:
    word = reader.next().keyword
    reader.accept("COLUMN")
    if_exists = reader.accept_if_exists()
    old = reader.read_name()
    new = reader.read_name() if word == "CHANGE" else old
    column = read_definition(new, reader)
    return DefineColumn(old, column, _read_position(reader), if_exists)


def _read_position(reader: StatementReader) -> str | None:
    if reader.accept("FIRST"):
        return FIRST
    return reader.read_name() if reader.accept("AFTER") else None


def _read_alter_clause(reader: StatementReader) -> Clause:
    reader.expect("ALTER")
    if reader.accept_any("INDEX", "KEY"):
        reader.accept_if_exists()
        name = reader.read_name()
        visibility = reader.accept_any("VISIBLE", "INVISIBLE", "IGNORED", "NOT")
        if visibility == "NOT":
            reader.expect("IGNORED")
        return SetVisibility(ElementKind.KEY, name, visibility in ("INVISIBLE", "IGNORED"))
    if reader.accept_any("CHECK", "CONSTRAINT"):
        reader.read_name()
        if not reader.accept("NOT", "ENFORCED"):
            reader.expect("ENFORCED")
        return NeutralClause()
    reader.accept("COLUMN")
    if_exists = reader.accept_if_exists()
    name = reader.read_name()
    if reader.accept("DROP"):
        reader.expect("DEFAULT")
        return AlterDefault(name, None, if_exists)
    reader.expect("SET")
    if word := reader.accept_any("VISIBLE", "INVISIBLE"):
        return SetVisibility(ElementKind.COLUMN, name, word == "INVISIBLE")
    reader.expect("DEFAULT")
    return AlterDefault(name, read_default(reader), if_exists)


def _read_drop_clause(reader: StatementReader) -> Clause:
    reader.expect("DROP")
    if reader.accept("PARTITION"):
        _take_rest(reader)
        return RowsChange("DROP PARTITION")
    if reader.accept("SYSTEM", "VERSIONING"):
        return SetOptions(WrittenOptions(system_versioned=False))
    if reader.sees("PERIOD", "FOR") or reader.sees("PERIOD", "IF", "EXISTS"):
        reader.next()
        reader.accept_if_exists()
        reader.expect("FOR")
        reader.read_name()
        return NeutralClause()
    if reader.accept("PRIMARY", "KEY"):
        return DropElement(ElementKind.KEY, "PRIMARY")
    if reader.sees("CHECK") and reader.peek(1).is_name:
        reader.next()
        reader.read_name()
        return NeutralClause()
    if reader.accept_any("INDEX", "KEY"):
        kind = ElementKind.KEY
    elif reader.accept("FOREIGN", "KEY"):
        kind = ElementKind.FOREIGN_KEY
    elif reader.accept("CONSTRAINT"):
        kind = ElementKind.CONSTRAINT
    else:
        reader.accept("COLUMN")
        kind = ElementKind.COLUMN
    if_exists = reader.accept_if_exists()
    name = reader.read_name()
    reader.accept_any("RESTRICT", "CASCADE")
    return DropElement(kind, name, if_exists)


def _read_rename_clause(reader: StatementReader) -> Clause:
    reader.expect("RENAME")
    # In RENAME column.t, COLUMN is the name of a database.
    if reader.sees("COLUMN") and not reader.sees_symbol(".", 1):
        reader.next()
        return _read_renamed_element(reader, ElementKind.COLUMN)
    if reader.accept_any("INDEX", "KEY"):
        return _read_renamed_element(reader, ElementKind.KEY)
    if not reader.accept_any("TO", "AS"):
        reader.accept_symbol("=")
    return RenameTo(reader.read_table())


def _read_renamed_element(reader: StatementReader, kind: ElementKind) -> Clause:
    if_exists = reader.accept_if_exists()
    old = reader.read_name()
    reader.expect("TO")
    return RenameElement(kind, old, reader.read_name(), if_exists)


def _read_convert_clause(reader: StatementReader) -> Clause:
    reader.expect("CONVERT", "TO")
    if not reader.accept_charset_word():
        raise reader.unexpected("CHARACTER SET")
    charset = None if reader.accept("DEFAULT") else reader.read_word_or_string()
    collation = None
    if reader.accept("COLLATE"):
        collation = reader.read_value_name()
    return ConvertCharset(charset, collation)


_PARTITION_WORDS: Final = frozenset(
    {"ANALYZE", "CHECK", "OPTIMIZE", "REBUILD", "REPAIR", "REORGANIZE", "COALESCE"}
)


def _read_partition_clause(reader: StatementReader) -> Clause | None:
    """Read a clause about partitions or tablespaces; return None if none comes next."""
    if _skip_partitions(reader):
        return SetOptions(WrittenOptions(partitioned=True))
    if reader.accept("REMOVE", "PARTITIONING"):
        return SetOptions(WrittenOptions(partitioned=False))
    if word := reader.accept_any("DISCARD", "IMPORT"):
        if reader.accept("PARTITION"):
            reader.read_list(reader.read_name)
        reader.expect("TABLESPACE")
        return RowsChange(f"{word} TABLESPACE")
    if reader.accept("TRUNCATE", "PARTITION"):
        _take_rest(reader)
        return RowsChange("TRUNCATE PARTITION")
    if reader.accept("EXCHANGE", "PARTITION"):
        reader.read_name()
        reader.expect("WITH", "TABLE")
        other = reader.read_table()
        if reader.accept_any("WITH", "WITHOUT"):
            reader.expect("VALIDATION")
        return RowsChange(EXCHANGE, other)
    if reader.context.facts.is_mariadb and reader.sees("CONVERT"):
        raise CannotRead("CONVERT PARTITION and CONVERT TABLE are not supported")
    word = reader.peek().keyword
    if word in _PARTITION_WORDS and reader.sees(word, "PARTITION"):
        words = _take_rest(reader)
        loses_rows = word == "REPAIR" or (word == "REORGANIZE" and _may_delete_rows(words))
        return RowsChange(f"{word} PARTITION") if loses_rows else NeutralClause()
    return None


def _may_delete_rows(words: Sequence[str]) -> bool:
    """Return whether REORGANIZE PARTITION may delete rows. Servers delete a row if none
    of the new lists (VALUES IN) has its value; new ranges that leave out rows are
    refused."""
    return "INTO" in words and "VALUES LESS THAN" not in " ".join(words)


def _take_rest(reader: StatementReader) -> list[str]:
    """Take the rest of the statement and return its keywords. A clause about partitions
    is always the last clause."""
    words = []
    while not reader.is_over:
        words.append(reader.next().keyword)
    return words


def _read_neutral_clause(reader: StatementReader) -> Clause | None:
    """Read a clause that changes nothing in a `TableSchema`; return None if none comes
    next."""
    if reader.accept_any("ALGORITHM", "LOCK"):
        reader.read_value()
    elif reader.accept_any("ENABLE", "DISABLE"):
        reader.expect("KEYS")
    elif word := reader.accept_any("WITH", "WITHOUT"):
        if not reader.accept("VALIDATION"):
            raise CannotRead(f"{word} is not understood here")
    elif reader.accept("ORDER", "BY"):
        reader.read_list(lambda: (reader.read_table(), reader.accept_any("ASC", "DESC")))
    elif not reader.accept_any("FORCE", "NOWAIT", "SECONDARY_LOAD", "SECONDARY_UNLOAD"):
        return None
    return NeutralClause()


_NEUTRAL_OPTIONS: Final = frozenset(
    {"AUTO_INCREMENT", "AUTOEXTEND_SIZE", "AVG_ROW_LENGTH", "CHECKSUM", "TABLE_CHECKSUM"}
    | {"COMMENT", "COMPRESSION", "CONNECTION", "DELAY_KEY_WRITE", "ENCRYPTION"}
    | {"ENGINE_ATTRIBUTE", "INSERT_METHOD", "KEY_BLOCK_SIZE", "MAX_ROWS", "MIN_ROWS", "PACK_KEYS"}
    | {"PASSWORD", "SECONDARY_ENGINE", "SECONDARY_ENGINE_ATTRIBUTE", "STATS_AUTO_RECALC"}
    | {"STATS_PERSISTENT", "STATS_SAMPLE_PAGES", "PAGE_CHECKSUM", "TRANSACTIONAL"}
)
_ENGINE_NAMES: Final = {
    "INNODB": "InnoDB",
    "MYISAM": "MyISAM",
    "MARIA": "Aria",
    "ARIA": "Aria",
    "MERGE": "MRG_MYISAM",
    "HEAP": "MEMORY",
    "NDB": "ndbcluster",
    "NDBCLUSTER": "ndbcluster",
}
"""Engine in upper case → its name in information_schema. Any other name is in upper
case."""


def _read_options(reader: StatementReader) -> WrittenOptions:
    options = WrittenOptions()
    while True:
        first = reader.at
        reader.accept_symbol(",")
        new_options = _read_option(options, reader)
        if new_options is None:
            reader.at = first
            return options
        options = new_options


def _read_option(options: WrittenOptions, reader: StatementReader) -> WrittenOptions | None:
    """Read one option; if none comes next, take nothing and return None."""
    first = reader.at
    reader.accept("DEFAULT")
    if reader.accept_charset_word():
        reader.accept_symbol("=")
        collation = None if reader.context.facts.charset_resets_collation else options.collation
        return replace(options, charset=reader.read_word_or_string(), collation=collation)
    if reader.accept("COLLATE"):
        return replace(options, collation=reader.read_value_name())
    if reader.at > first:
        # DEFAULT belongs to another form, such as DEFAULT ENCRYPTION.
        reader.at = first
        return None
    if reader.accept_any("ENGINE", "TYPE"):
        return replace(options, engine=engine_name(reader.read_value_name(), reader.context.facts))
    if reader.accept("ROW_FORMAT"):
        return replace(options, row_format=reader.read_value_name().lower())
    return _read_other_option(options, reader)


def engine_name(written: str, facts: ServerDialect) -> str:
    """Return the name that an engine has in information_schema."""
    name = _ENGINE_NAMES.get(written.upper(), written.upper())
    return "MRG_MyISAM" if facts.is_mariadb and name == "MRG_MYISAM" else name


def _read_other_option(options: WrittenOptions, reader: StatementReader) -> WrittenOptions | None:
    if reader.accept_any(*_NEUTRAL_OPTIONS):
        reader.read_value()
    elif reader.accept_any("DATA", "INDEX"):
        reader.expect("DIRECTORY")
        reader.read_value()
    elif reader.accept("UNION"):
        reader.accept_symbol("=")
        reader.read_parenthesized()
    elif reader.accept("TABLESPACE"):
        reader.read_value_name()
    elif reader.accept("STORAGE"):
        reader.next()
    elif reader.accept("WITH", "SYSTEM", "VERSIONING"):
        return replace(options, system_versioned=True)
    elif reader.accept("START", "TRANSACTION"):
        pass
    elif not reader.context.facts.is_mariadb:
        return None
    elif reader.accept("SEQUENCE"):
        reader.accept_symbol("=")
        if reader.next().text != "0":
            raise CannotRead("SEQUENCE = 1 makes the table a sequence, which is not supported")
    elif reader.accept("PERIOD", "FOR"):
        reader.read_name()
        reader.read_parenthesized()
    elif reader.peek().is_name and reader.sees_symbol("=", 1):
        reader.at += 3  # `name = value` is an option of the storage engine.
    else:
        return None
    return options


def _skip_partitions(reader: StatementReader) -> bool:
    """Skip `PARTITION BY …`; return False if it does not come next. A structure
    contains only whether the table is partitioned, not how."""
    if not reader.accept("PARTITION", "BY"):
        return False
    is_linear = reader.accept("LINEAR")
    kind = reader.accept_any("RANGE", "LIST", "HASH", "KEY", "SYSTEM_TIME")
    if not kind or (is_linear and kind not in ("HASH", "KEY")):
        raise reader.unexpected("a way to partition")
    while not reader.is_over:
        if reader.sees_symbol("("):
            reader.read_parenthesized()
        elif reader.peek().keyword in (*_QUERY_WORDS, *_WORDS_BEFORE_QUERY, "START"):
            break
        else:
            reader.next()
    return True


_QUERY_WORDS: Final = ("SELECT", "WITH", "VALUES", "TABLE")
"""Words that begin a query. After the opening parenthesis of CREATE TABLE, other words
begin the list of columns."""
_WORDS_BEFORE_QUERY: Final = ("AS", "IGNORE", "REPLACE")
"""Words between CREATE TABLE and its query."""


def read_create_table(
    reader: StatementReader, *, or_replace: bool
) -> CreateTable | CreateLike | CreateSelect:
    """Read what follows CREATE TABLE."""
    if_not_exists = reader.accept_if_not_exists()
    table = reader.read_table()

    def read_like() -> CreateLike:
        reader.expect("LIKE")
        return CreateLike(table, reader.read_table(), if_not_exists, or_replace)

    if reader.sees("LIKE"):
        return read_like()
    if reader.sees_symbol("(") and reader.peek(1).keyword == "LIKE":
        return reader.read_enclosed(read_like)
    elements: tuple[Element, ...] = ()
    if reader.sees_symbol("(") and reader.peek(1).keyword not in _QUERY_WORDS:
        parsed_elements = reader.read_enclosed(
            lambda: reader.read_list(lambda: _read_element(reader))
        )
        elements = tuple(element for element in parsed_elements if element is not None)
    options = _read_options(reader)
    if _skip_partitions(reader):
        options = replace(options, partitioned=True)
    reader.accept("START", "TRANSACTION")
    word = reader.peek().keyword
    if word in _QUERY_WORDS or word in _WORDS_BEFORE_QUERY or reader.sees_symbol("("):
        reader.skip_rest()
        return CreateSelect(table, if_not_exists, or_replace)
    if not elements:
        raise CannotRead("the table has no columns")
    return CreateTable(table, elements, options, if_not_exists, or_replace)


def _read_element(reader: StatementReader) -> Element | None:
    """Read a column, a key, a foreign key or a period. Return None for a CHECK and for
    PERIOD FOR SYSTEM_TIME, which a `TableSchema` does not contain."""
    if reader.context.facts.is_mariadb and reader.accept("PERIOD", "FOR"):
        return _read_period(reader)
    if sees_key(reader):
        return read_key(reader)
    return read_column(reader)


def _read_period(reader: StatementReader) -> WrittenPeriod | None:
    """Read what follows PERIOD FOR. Return None for SYSTEM_TIME: the definitions of its
    two columns already say AS ROW START and AS ROW END."""
    name = reader.read_name()
    columns = reader.read_enclosed_names()
    return None if name.upper() == "SYSTEM_TIME" else WrittenPeriod(columns)


def read_create_index(kind: KeyKind, reader: StatementReader, *, or_replace: bool) -> AlterTable:
    """Read what follows CREATE [UNIQUE | FULLTEXT | SPATIAL] INDEX, as clauses of ALTER
    TABLE."""
    if_not_exists = reader.accept_if_not_exists()
    name = reader.read_name()
    uses_hash = accept_using_hash(reader)
    reader.expect("ON")
    table = reader.read_table()
    bare_key = WrittenKey(kind, (), name, if_not_exists=if_not_exists, uses_hash=uses_hash)
    key = read_key_parts(bare_key, reader)
    skip_algorithm_and_lock(reader)
    dropped_key = (DropElement(ElementKind.KEY, name, if_exists=True),) if or_replace else ()
    return AlterTable(table, (*dropped_key, AddElement(key)))


def skip_algorithm_and_lock(reader: StatementReader) -> None:
    """Skip ALGORITHM, LOCK, WAIT and NOWAIT."""
    while word := reader.accept_any("ALGORITHM", "LOCK", "WAIT", "NOWAIT"):
        if word in ("ALGORITHM", "LOCK"):
            reader.accept_symbol("=")
        if word != "NOWAIT":
            reader.next()


def read_create_database(reader: StatementReader, *, or_replace: bool) -> CreateDatabase:
    if_not_exists = reader.accept_if_not_exists()
    name = reader.read_name()
    options = _read_database_options(reader)
    return CreateDatabase(name, options.charset, options.collation, if_not_exists, or_replace)


def read_alter_database(reader: StatementReader) -> AlterDatabase:
    """Read what follows ALTER DATABASE. If no name is written, it alters the default
    database."""
    word = reader.peek().keyword
    option_words = ("DEFAULT", "CHARACTER", "CHARSET", "COLLATE", "ENCRYPTION", "COMMENT")
    has_no_name = word in option_words or reader.sees("READ", "ONLY")
    name = reader.context.database if has_no_name else reader.read_name()
    options = _read_database_options(reader)
    return AlterDatabase(name, options.charset, options.collation)


def _read_database_options(reader: StatementReader) -> WrittenOptions:
    options = WrittenOptions()
    while not reader.is_over:
        if reader.accept("READ", "ONLY") or reader.accept("DEFAULT", "ENCRYPTION"):
            reader.read_value()
            continue
        new_options = _read_option(options, reader)
        if new_options is None:
            raise reader.unexpected("a database's option")
        options = new_options
    return options
