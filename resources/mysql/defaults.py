"""The values of columns' defaults, computed by the server.

`default(t.c)` needs only SELECT. For a nullable column it is selected through an outer
join that matches nothing, so that no row is read. For a NOT NULL column it is selected
from the table's first row; for an empty table there is no answer. The result is the
present default; whether the column had it at an earlier place is known from the log.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, Final

import pymysql
from pymysql.cursors import Cursor

from lockstep.pipeline.schema.evolving.defaults import plain_value
from lockstep.pipeline.schema.model import ColumnSchema, TableSchema, ValueDefault, WrittenDefault
from lockstep.pipeline.values.server_errors import Meaning, meaning_of
from lockstep.pipeline.values.table import TableName, quoted, quoted_table
from lockstep.resources.mysql.connection import number_of

_SHORT_LOCK_WAIT: Final = "set session lock_wait_timeout = 1"
"""The queries wait at most 1 s for a session that alters a table."""
_LOCAL_ENGINES: Final = frozenset({"innodb", "myisam", "aria", "rocksdb"})
"""Other engines may fetch their tables from another server."""

_Form = tuple[str, Callable[[Any], str] | None]
_FORMS: Final[Mapping[str, _Form]] = {
    **dict.fromkeys(  # multiplied, because FLOAT prints six digits
        ("float", "double"), ("{} * 1e0", lambda answer: repr(float(answer)))
    ),
    "bit": ("{} + 0", lambda answer: f"b'{int(answer):b}'"),
    **dict.fromkeys(
        ("binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"),
        ("hex({})", lambda answer: f"0x{answer}"),
    ),
    **dict.fromkeys(
        ("char", "varchar", "tinytext", "text", "mediumtext", "longtext", "enum", "set"),
        ("hex(convert({} using utf8mb4))", lambda answer: bytes.fromhex(answer).decode()),
    ),
    **dict.fromkeys(("date", "datetime", "timestamp", "time", "year"), ("cast({} as char)", str)),
}
"""By type: the SQL template that reads a default, and the function that turns the
answer into the form of `ValueDefault`."""
_OTHER_FORM: Final[_Form] = ("cast({} as char)", None)
"""For all other types, of whose values only plain ones are used (`plain_value`)."""

_TABLES_PER_STATEMENT: Final = 40
"""Largest number of tables in one statement. The statement opens a table once for each
default."""

_ColumnOfTable = tuple[TableName, ColumnSchema]


def with_default_values(cursor: Cursor, tables: Sequence[TableSchema]) -> tuple[TableSchema, ...]:
    """Return the tables with the values of those defaults that only the server can
    compute. A default stays as it is written if the server gives no value to this
    account, or at present."""
    columns_by_table: list[list[_ColumnOfTable]] = []
    for table in tables:
        columns = [
            (table.name, column)
            for column in table.columns
            if isinstance(column.default, WrittenDefault)
        ]
        if columns and table.engine.lower() in _LOCAL_ENGINES:
            columns_by_table.append(columns)
    if not columns_by_table:
        return tuple(tables)
    cursor.execute(_SHORT_LOCK_WAIT)
    defaults: dict[tuple[TableName, str], str] = {}
    for first in range(0, len(columns_by_table), _TABLES_PER_STATEMENT):
        batch = columns_by_table[first : first + _TABLES_PER_STATEMENT]
        defaults.update(_read_defaults(cursor, [*chain.from_iterable(batch)]))
    return tuple(_with_defaults(table, defaults) for table in tables)


def _with_defaults(
    table: TableSchema, defaults: Mapping[tuple[TableName, str], str]
) -> TableSchema:
    columns = (
        replace(column, default=ValueDefault(defaults[table.name, column.name]))
        if (table.name, column.name) in defaults
        else column
        for column in table.columns
    )
    return replace(table, columns=tuple(columns))


def _read_defaults(
    cursor: Cursor, columns: Sequence[_ColumnOfTable]
) -> Iterator[tuple[tuple[TableName, str], str]]:
    """Yield the values that the server gives. If it refuses the statement, try each
    half of the columns, so that one refused default does not cost the others."""
    try:
        cursor.execute(f"select {', '.join(map(_subquery, columns))}")
    except pymysql.MySQLError as error:
        if meaning_of(number_of(error)) is Meaning.LOST:
            raise
        if len(columns) > 1:
            middle = len(columns) // 2
            yield from _read_defaults(cursor, columns[:middle])
            yield from _read_defaults(cursor, columns[middle:])
        return
    for (table, column), answer in zip(columns, cursor.fetchone() or (), strict=False):
        if answer is None:
            continue
        _, to_literal = _FORMS.get(column.type, _OTHER_FORM)
        text = plain_value(column, str(answer)) if to_literal is None else to_literal(answer)
        if text is not None:
            yield (table, column.name), text


def _subquery(column_of_table: _ColumnOfTable) -> str:
    name, column = column_of_table
    table = quoted_table(name)
    template, _ = _FORMS.get(column.type, _OTHER_FORM)
    default = template.format(f"default(t.{quoted(column.name)})")
    if column.nullable:
        return f"(select {default} from (select 1) z left join {table} t on false)"
    # A NULL then means that the table is empty, since the column itself cannot be NULL.
    return f"(select {default} from {table} t limit 1)"
