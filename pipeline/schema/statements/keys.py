"""Keys, indexes and foreign keys, in CREATE TABLE, ALTER TABLE and CREATE INDEX.

Belongs here: the grammar. Does not: the names a server gives, which keys a foreign key
needs (`pipeline.schema.evolving.keys`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from pipeline.schema.model import KeyPart
from pipeline.schema.statements.reader import StatementReader
from pipeline.schema.statements.written import WrittenKey, WrittenReference

_FIRST_WORDS: Final = frozenset(
    {"CONSTRAINT", "PRIMARY", "UNIQUE", "INDEX", "KEY", "FULLTEXT", "SPATIAL", "FOREIGN", "CHECK"}
)
_ACTIONS: Final = ("RESTRICT", "CASCADE")
_VALUED: Final = (
    "KEY_BLOCK_SIZE",
    "COMMENT",
    "ENGINE_ATTRIBUTE",
    "SECONDARY_ENGINE_ATTRIBUTE",
    "CLUSTERING",
)


def sees_key(reader: StatementReader) -> bool:
    """Whether a key or constraint comes next, and no column of such a name."""
    return reader.peek().keyword in _FIRST_WORDS


def read_key(reader: StatementReader) -> WrittenKey | WrittenReference | None:
    """A key, a foreign key, or None for a CHECK constraint."""
    name = _constraint(reader)
    if reader.accept("CHECK"):
        reader.skip_check()
        return None
    if reader.accept("FOREIGN"):
        reader.expect("KEY")
        if_not_exists = reader.if_not_exists()
        index = None if reader.sees_symbol("(") else reader.name()
        columns = reader.names()
        reference = replace(read_reference(columns, reader), name=name, index=index)
        return replace(reference, if_not_exists=if_not_exists)
    if reader.accept("PRIMARY"):
        reader.expect("KEY")
        if_not_exists = reader.if_not_exists()
        read_name_and_type(reader)
        return read_parts(WrittenKey("primary", (), "PRIMARY", if_not_exists=if_not_exists), reader)
    kind = reader.accept_any("UNIQUE", "FULLTEXT", "SPATIAL").lower()
    if not reader.accept_any("INDEX", "KEY") and not kind:
        raise reader.unexpected("INDEX")
    if_not_exists = reader.if_not_exists()
    own, hashed = read_name_and_type(reader)
    key = WrittenKey(kind or "index", (), own or name, if_not_exists=if_not_exists, hash=hashed)
    return read_parts(key, reader)


def _constraint(reader: StatementReader) -> str | None:
    if not reader.accept("CONSTRAINT"):
        return None
    if reader.peek().keyword in ("PRIMARY", "UNIQUE", "FOREIGN", "CHECK"):
        return None
    return reader.name()


def read_name_and_type(reader: StatementReader) -> tuple[str | None, bool]:
    """`[name] [USING type]`: the name may be left out, so may the type; whether it is HASH."""
    name = None
    if reader.peek().is_name and not reader.sees("USING"):
        typed = reader.sees("TYPE") and not reader.sees_symbol("(", 1)
        name = None if typed else reader.name()
    return name, bool(reader.accept_any("USING", "TYPE")) and reader.name().upper() == "HASH"


def read_parts(key: WrittenKey, reader: StatementReader) -> WrittenKey:
    """`(part, …) option …`."""
    parts = reader.enclosed(lambda: reader.listed(lambda: _part(reader)))
    return read_key_options(replace(key, parts=parts), reader)


def _part(reader: StatementReader) -> KeyPart:
    if reader.sees_symbol("("):
        part = KeyPart(None, expression=reader.parenthesized())
    else:
        part = KeyPart(reader.name())
        if reader.accept_symbol("("):
            part = replace(part, prefix=reader.integer())
            reader.expect_symbol(")")
    order = reader.accept_any("ASC", "DESC")
    return replace(part, descending=order == "DESC")


def read_key_options(key: WrittenKey, reader: StatementReader) -> WrittenKey:
    while True:
        if reader.accept_any("USING", "TYPE"):
            key = replace(key, hash=reader.name().upper() == "HASH")
        elif reader.accept_any(*_VALUED):
            reader.accept_symbol("=")
            reader.next()
        elif reader.accept("WITH", "PARSER"):
            reader.name()
        elif reader.accept("VISIBLE") or reader.accept("NOT", "IGNORED"):
            key = replace(key, invisible=False)
        elif reader.accept_any("INVISIBLE", "IGNORED"):
            key = replace(key, invisible=True)
        elif reader.context.facts.mariadb and reader.peek().is_name and reader.sees_symbol("=", 1):
            reader.at += 3
        else:
            return key


def read_reference(columns: tuple[str, ...], reader: StatementReader) -> WrittenReference:
    """`REFERENCES table [(column, …)] …`."""
    reader.expect("REFERENCES")
    table = reader.table(database="")
    referenced = reader.names() if reader.sees_symbol("(") else ()
    reference = WrittenReference(columns, table, referenced)
    facts, ignored = reader.context.facts, False
    while True:
        if reader.accept("MATCH"):
            reader.next()
            # MySQL manual 5.7, "FOREIGN KEY Constraints": with MATCH, the actions are ignored.
            ignored = not (facts.mariadb or facts.mysql_8)
        elif reader.accept("ON", "DELETE"):
            reference = replace(reference, on_delete=_action(reader))
        elif reader.sees("ON", "UPDATE") and reader.peek(2).keyword in (*_ACTIONS, "SET", "NO"):
            reader.at += 2
            reference = replace(reference, on_update=_action(reader))
        elif ignored:
            return replace(reference, on_delete=None, on_update=None)
        else:
            return reference


def _action(reader: StatementReader) -> str:
    if word := reader.accept_any(*_ACTIONS):
        return word
    for first, second in (("SET", "NULL"), ("SET", "DEFAULT"), ("NO", "ACTION")):
        if reader.accept(first, second):
            return f"{first} {second}"
    raise reader.unexpected("a referential action")
