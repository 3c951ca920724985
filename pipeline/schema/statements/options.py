"""Table options and PARTITION BY, behind a CREATE TABLE's columns or in an ALTER.

Belongs here: which options there are and what of them matters. MariaDB's engines bring
options of their own, `name = value`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from pipeline.schema.context import ServerDialect
from pipeline.schema.statements.lexer import CannotRead
from pipeline.schema.statements.reader import StatementReader
from pipeline.schema.statements.written import WrittenOptions

_VALUED: Final = frozenset(
    {"AUTO_INCREMENT", "AUTOEXTEND_SIZE", "AVG_ROW_LENGTH", "CHECKSUM", "TABLE_CHECKSUM"}
    | {"COMMENT", "COMPRESSION", "CONNECTION", "DELAY_KEY_WRITE", "ENCRYPTION"}
    | {"ENGINE_ATTRIBUTE", "INSERT_METHOD", "KEY_BLOCK_SIZE", "MAX_ROWS", "MIN_ROWS", "PACK_KEYS"}
    | {"PASSWORD", "SECONDARY_ENGINE", "SECONDARY_ENGINE_ATTRIBUTE", "STATS_AUTO_RECALC"}
    | {"STATS_PERSISTENT", "STATS_SAMPLE_PAGES", "PAGE_CHECKSUM", "TRANSACTIONAL"}
    | {"ENCRYPTED", "ENCRYPTION_KEY_ID", "ITEF_QUOTES", "PAGE_COMPRESSED"}
    | {"PAGE_COMPRESSION_LEVEL", "IETF_QUOTES"}
)
_AS_SERVER_SAYS: Final = {"INNODB": "InnoDB", "MYISAM": "MyISAM", "MARIA": "Aria", "ARIA": "Aria"}
"""Engines under information_schema's names; the others are upper case."""

_OTHER_ENGINES: Final = {"MERGE": "MRG_MYISAM", "HEAP": "MEMORY"}
_NDB: Final = {"NDB": "ndbcluster", "NDBCLUSTER": "ndbcluster"}


def read_options(reader: StatementReader) -> WrittenOptions:
    """Options one after the other, with commas between or none."""
    options = WrittenOptions()
    while True:
        place = reader.at
        reader.accept_symbol(",")
        found = read_option(options, reader)
        if found is None:
            reader.at = place
            return options
        options = found


def read_option(options: WrittenOptions, reader: StatementReader) -> WrittenOptions | None:
    """One option; None where none comes next, and nothing is taken."""
    place = reader.at
    reader.accept("DEFAULT")
    if reader.charset_word():
        reader.accept_symbol("=")
        collation = None if reader.context.facts.charset_resets else options.collation
        return replace(options, charset=reader.word_or_string(), collation=collation)
    if reader.accept("COLLATE"):
        reader.accept_symbol("=")
        return replace(options, collation=reader.word_or_string())
    if reader.at > place:
        reader.at = place
        return None
    if reader.accept_any("ENGINE", "TYPE"):
        reader.accept_symbol("=")
        return replace(options, engine=engine_name(reader.word_or_string(), reader.context.facts))
    if reader.accept("ROW_FORMAT"):
        reader.accept_symbol("=")
        return replace(options, row_format=reader.word_or_string().lower())
    return _neutral(options, reader)


def engine_name(written: str, facts: ServerDialect) -> str:
    """An engine under the name information_schema has for it."""
    word = written.upper()
    known = {**_AS_SERVER_SAYS, **_OTHER_ENGINES, **_NDB}
    name = known.get(word, word)
    return "MRG_MyISAM" if facts.mariadb and name == "MRG_MYISAM" else name


def _neutral(options: WrittenOptions, reader: StatementReader) -> WrittenOptions | None:
    if reader.peek().keyword in _VALUED:
        reader.next()
        reader.accept_symbol("=")
        reader.next()
        return options
    if reader.accept("START", "TRANSACTION"):
        return options
    if reader.accept_any("DATA", "INDEX"):
        reader.expect("DIRECTORY")
        reader.accept_symbol("=")
        reader.next()
        return options
    if reader.accept("UNION"):
        reader.accept_symbol("=")
        reader.parenthesized()
        return options
    if reader.accept("TABLESPACE"):
        reader.accept_symbol("=")
        reader.word_or_string()
        return options
    if reader.accept("STORAGE"):
        reader.next()
        return options
    if reader.accept("WITH", "SYSTEM", "VERSIONING"):
        return replace(options, system_versioned=True)
    if reader.context.facts.mariadb:
        if reader.accept("SEQUENCE"):
            reader.accept_symbol("=")
            if reader.next().text != "0":
                raise CannotRead("a table that becomes a sequence is not followed")
            return options
        if reader.accept("PERIOD", "FOR"):
            reader.name()
            reader.parenthesized()
            return options
        if reader.peek().is_name and reader.sees_symbol("=", 1):
            reader.at += 3
            return options
    return None


def skip_partitions(reader: StatementReader) -> bool:
    """`PARTITION BY …`, if it comes next; what it says of rows is no part of a structure."""
    if not reader.accept("PARTITION", "BY"):
        return False
    linear = reader.accept("LINEAR")
    kind = reader.accept_any("RANGE", "LIST", "HASH", "KEY", "SYSTEM_TIME")
    if not kind or (linear and kind not in ("HASH", "KEY")):
        raise reader.unexpected("a way to partition")
    while not reader.over:
        if reader.sees_symbol("("):
            reader.parenthesized()
        elif reader.peek().keyword in ("SELECT", "AS", "START"):
            break
        else:
            reader.next()
    return True
