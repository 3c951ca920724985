"""Reads the present structures of tables from information_schema, and databases with
their triggers and views.

A table may be dropped between two of the queries; it then has no columns and is left
out. information_schema shows only what the account is allowed to see. If the account
has privileges on single columns of a table, only these columns are shown; such a table
is not returned but reported (`WholeTables.unread`).

MariaDB's information_schema shows the actions of foreign keys only to accounts with
more than SELECT. SHOW CREATE TABLE shows them to every account that may see the table,
and is used instead.

A trigger is shown only to accounts with TRIGGER on its table, and the query of a view
only to accounts with SHOW VIEW and SELECT on it. For other accounts triggers are
missing without any error (MySQL manual, "The INFORMATION_SCHEMA TRIGGERS Table";
measured on MySQL 5.7 to 9.7 and MariaDB).

Sources: MySQL manual, "The INFORMATION_SCHEMA COLUMNS Table"; MariaDB documentation,
"Information Schema COLUMNS Table" (MariaDB prints every default as an expression).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import pymysql
from pymysql.cursors import Cursor

from lockstep.pipeline.schema.code import read_code, read_view
from lockstep.pipeline.schema.context import PARSING_MODES, ServerDialect, StatementContext
from lockstep.pipeline.schema.evolving.defaults import with_plain_default
from lockstep.pipeline.schema.hidden_columns import hidden_from_ordinals, knows_hidden_places
from lockstep.pipeline.schema.model import (
    ColumnSchema,
    DatabaseCode,
    DatabaseSchema,
    Default,
    ExpressionDefault,
    ForeignKey,
    KeyKind,
    KeyPart,
    KeySchema,
    ReferentialAction,
    TableAccess,
    TableSchema,
    Trigger,
    ValueDefault,
    View,
    now_digits,
    now_expression,
)
from lockstep.pipeline.values.server_errors import Meaning, meaning_of
from lockstep.pipeline.values.survey import has_privilege
from lockstep.pipeline.values.table import SYSTEM_DATABASES, TableName, quoted_table
from lockstep.resources.mysql.connection import Dialect, number_of, read_dialect
from lockstep.resources.mysql.visible_tables import (
    Scope,
    account_grants,
    partly_visible_tables,
    scopes_of,
    select_by_table,
)

# In these queries, words in upper case stand for columns or expressions that depend on
# the server's version.
_TABLES: Final = """
select table_schema, table_name, engine, table_collation, create_options, table_type
  from information_schema.tables
 where table_type in ('BASE TABLE', 'SYSTEM VERSIONED') and {where}
 order by table_schema, table_name
"""
_COLUMNS: Final = """
select table_schema, table_name, column_name, data_type, is_nullable, column_type,
       character_maximum_length, numeric_precision, numeric_scale, datetime_precision,
       character_set_name, collation_name, column_default, extra, generation_expression, SRID,
       ordinal_position, privileges
  from information_schema.columns where {where}
 order by table_schema, table_name, ordinal_position
"""
_KEYS: Final = """
select table_schema, table_name, index_name, non_unique, index_type, INVISIBLE,
       column_name, sub_part, collation, EXPRESSION
  from information_schema.statistics where {where}
 order by table_schema, table_name, index_name, seq_in_index
"""

_HASHING_ENGINES: Final = frozenset({"innodb", "myisam", "aria"})
"""Engines of MariaDB that hash only the keys that are too long for a B-tree."""
_ROW_FORMAT: Final = re.compile(r"row_format=(\w+)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class WholeTables:
    """The tables that the account can read as a whole. `unread`: other existing tables,
    each with a sentence about what the account lacks."""

    tables: tuple[TableSchema, ...]
    unread: Mapping[TableName, str]


def read_whole_tables(cursor: Cursor, names: Collection[TableName] | None = None) -> WholeTables:
    """Read tables as `read_schemas` does, but leave out those with a column that the
    account does not see."""
    tables, unread = _read_tables(cursor, names)
    partly_visible = frozenset(partly_visible_tables(cursor, [table.name for table in tables]))
    unread |= dict.fromkeys(
        partly_visible, "the account has privileges on columns of the table only"
    )
    return WholeTables(tuple(table for table in tables if table.name not in partly_visible), unread)


def read_schemas(
    cursor: Cursor, names: Collection[TableName] | None = None, *, foreign_keys: bool = True
) -> tuple[TableSchema, ...]:
    """Read every base table outside of the system databases, or those of `names` that
    exist, except tables with a visible column that the account cannot read. Columns
    that the account does not see are missing without notice, so use it only for tables
    that `read_whole_tables` returned before. `foreign_keys`: read these, too."""
    return _read_tables(cursor, names, foreign_keys=foreign_keys)[0]


def _read_tables(
    cursor: Cursor, names: Collection[TableName] | None, *, foreign_keys: bool = True
) -> tuple[tuple[TableSchema, ...], dict[TableName, str]]:
    dialect = read_dialect(cursor)
    wanted = None if names is None else frozenset(names)
    scopes = scopes_of(wanted)
    tables = {table.name: table for table in _tables(cursor, scopes)}
    columns_by_table = _columns(cursor, scopes, dialect)
    hashing_tables = {
        name for name, table in tables.items() if table.engine.lower() in _HASHING_ENGINES
    }
    keys_by_table = _keys(cursor, scopes, dialect, hashing_tables if dialect.is_mariadb else set())
    foreign_keys_by_table = _foreign_keys(cursor, scopes, dialect) if foreign_keys else {}
    knows_places = knows_hidden_places(dialect.version, mariadb=dialect.is_mariadb)
    schemas: list[TableSchema] = []
    unread: dict[TableName, str] = {}
    for name, table in tables.items():
        if name not in columns_by_table or (wanted is not None and name not in wanted):
            continue
        columns, keys = columns_by_table[name], keys_by_table.get(name, ())
        if columns.refused:
            unread[name] = f"the account may not read {', '.join(columns.refused)} of the table"
            continue
        schema = replace(
            table,
            columns=tuple(columns.schemas),
            keys=tuple(keys),
            foreign_keys=foreign_keys_by_table.get(name, ()),
            expression_columns=hidden_from_ordinals(columns.ordinals, keys) if knows_places else (),
        )
        schemas.append(schema)
    return tuple(schemas), unread


def _tables(cursor: Cursor, scopes: Sequence[Scope]) -> Iterator[TableSchema]:
    """Yield the tables, without columns and keys."""
    for name, (engine, collation, options, kind) in select_by_table(cursor, _TABLES, scopes):
        row_format = _ROW_FORMAT.search(options or "")
        yield TableSchema(
            name,
            (),
            charset=with_utf8mb3(collation.partition("_")[0]) if collation else None,
            collation=with_utf8mb3(collation),
            engine=engine or "",
            row_format=row_format[1].lower() if row_format else None,
            partitioned="partitioned" in (options or ""),
            system_versioned=kind == "SYSTEM VERSIONED",
        )


@dataclass(frozen=True, slots=True)
class _TableColumns:
    """A table's columns, with their ordinal positions. `refused`: the names of those
    that the account cannot read."""

    schemas: list[ColumnSchema] = field(default_factory=list)
    ordinals: list[int] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)


def _columns(
    cursor: Cursor, scopes: Sequence[Scope], dialect: Dialect
) -> dict[TableName, _TableColumns]:
    query = _COLUMNS.replace("SRID", "srs_id" if dialect.is_mysql_from(8, 0, 3) else "null")
    columns_by_table: dict[TableName, _TableColumns] = {}
    for table, (*row, ordinal, privileges) in select_by_table(cursor, query, scopes):
        column = _read_column(_ColumnRow(*row), mariadb=dialect.is_mariadb)
        columns = columns_by_table.setdefault(table, _TableColumns())
        columns.schemas.append(column)
        columns.ordinals.append(int(ordinal))
        if "select" not in str(privileges).lower().split(","):
            columns.refused.append(column.name)
    return columns_by_table


_SPECIAL_KEY_KINDS: Final[Mapping[str, KeyKind]] = {"FULLTEXT": "fulltext", "SPATIAL": "spatial"}


def _keys(
    cursor: Cursor, scopes: Sequence[Scope], dialect: Dialect, hashing_tables: Collection[TableName]
) -> dict[TableName, list[KeySchema]]:
    """Return the tables' keys. `hashing_tables`: tables whose engine has HASH keys only
    for keys that are too long for a B-tree."""
    # MySQL has functional key parts since 8.0.13.
    expression = "expression" if dialect.is_mysql_from(8, 0, 13) else "null"
    query = _KEYS.replace("INVISIBLE", _invisible_expression(dialect)).replace(
        "EXPRESSION", expression
    )
    parts_by_table: dict[TableName, dict[tuple[str, KeyKind, bool, bool], list[KeyPart]]] = {}
    for table, row in select_by_table(cursor, query, scopes):
        name, non_unique, kind, invisible, column, prefix, order, expression_text = row
        special_kind = _SPECIAL_KEY_KINDS.get(kind)
        is_whole_column = prefix is None or special_kind is not None
        part = KeyPart(
            column,
            None if is_whole_column else int(prefix),
            None if expression_text is None else _unescape(expression_text),
            order == "D",
        )
        ordinary_kind: KeyKind = "index" if int(non_unique) else "unique"
        is_hashed = kind == "HASH" and table in hashing_tables
        key_kind: KeyKind = special_kind or ("primary" if name == "PRIMARY" else ordinary_kind)
        key = (name, key_kind, invisible == "YES", is_hashed)
        parts_by_table.setdefault(table, {}).setdefault(key, []).append(part)
    return {
        table: [
            KeySchema(name, key_kind, tuple(key_parts), invisible, hashed=is_hashed)
            for (name, key_kind, invisible, is_hashed), key_parts in keys.items()
        ]
        for table, keys in parts_by_table.items()
    }


def _invisible_expression(dialect: Dialect) -> str:
    """Return the SQL expression that is 'YES' if the optimizer ignores an index: an
    INVISIBLE one in MySQL, an IGNORED one since MariaDB 10.6."""
    if dialect.is_mysql_from(8, 0, 0):
        return "if(is_visible = 'YES', 'NO', 'YES')"
    return "ignored" if dialect.is_mariadb and dialect.version >= 100_600 else "'NO'"


_LENGTH_TYPES: Final = frozenset({"char", "varchar", "binary", "varbinary"})
_TEMPORAL_TYPES: Final = frozenset({"datetime", "timestamp", "time"})
_MOMENT_TYPES: Final = frozenset({"datetime", "timestamp"})
_MEMBER_TYPES: Final = frozenset({"enum", "set"})
_NUMBER_TYPES: Final = re.compile(r"(tiny|small|medium|big)?int|decimal|float|double")
_DIGITS_AND_DECIMALS: Final = re.compile(r"(?:float|double)\((\d+),(\d+)\)")
_DIMENSIONS: Final = re.compile(r"vector\((\d+)\)")
_COMPRESSED: Final = re.compile(r"/\*M?!\d+ COMPRESSED")
_OLD_TEMPORAL: Final = re.compile(r"/\* mariadb-5\.3 \*/")  # a temporal column in the old format
_GENERATED: Final = re.compile(r"\b(VIRTUAL|STORED|PERSISTENT)\b")
_PERIOD: Final = re.compile(r"ROW (START|END)", re.IGNORECASE)  # of system versioning
_QUOTED: Final = re.compile(r"(x?)'((?:[^'\\]|''|\\.)*)'", re.DOTALL)
_STRING_LITERAL: Final = re.compile(r"(?:_[a-z0-9]+)?'((?:[^'\\]|''|\\.)*)'", re.DOTALL)
_NUMBER_LITERAL: Final = re.compile(r"-?[0-9][0-9.]*(e[+-]?[0-9]+)?", re.IGNORECASE)
_HEX_OR_BITS: Final = re.compile(r"0x[0-9a-f]*|x'[0-9a-f]*'|b'[01]*'", re.IGNORECASE)
_BACKSLASHED: Final = re.compile(r"\\(.)", re.DOTALL)
_ESCAPED: Final = re.compile(r"''|\\(.)", re.DOTALL)
_CONTROL_CHARACTERS: Final = {"0": "\0", "n": "\n", "r": "\r"}
_TEXT_OR_BLOB: Final = re.compile(r"(text|blob)$", re.IGNORECASE)
_NOT_PRINTED: Final = ExpressionDefault("…")
"""Stands for the default of a TEXT or BLOB column: MySQL 8.0.15 does not print its
expression."""


@dataclass(frozen=True, slots=True)
class _ColumnRow:
    """A row of information_schema.columns; `srid` is None on MariaDB and before MySQL
    8.0.3."""

    name: str
    data_type: str
    nullable: str
    column_type: Any
    characters: int | None
    precision: int | None
    scale: int | None
    fraction: int | None
    charset: str | None
    collation: str | None
    default: Any
    extra: str | None
    expression: Any
    srid: int | None


def _read_column(row: _ColumnRow, *, mariadb: bool) -> ColumnSchema:
    """Return the column in terms of the model. On MariaDB, a temporal column in the
    format before 10.1.2 has the type "old …", because its width is not in the log.
    MySQL's log itself tells the two formats apart."""
    data_type, column_type, extra = row.data_type.lower(), _text(row.column_type), row.extra or ""
    if data_type == "geometrycollection" and not mariadb:
        data_type = "geomcollection"  # MySQL before 8.0.11 has the longer name
    has_members = data_type in _MEMBER_TYPES  # members may look like the other patterns
    is_number = _NUMBER_TYPES.fullmatch(data_type) is not None
    digits = _DIGITS_AND_DECIMALS.match(column_type) if is_number else None
    precision, scale = (row.precision, row.scale) if data_type == "decimal" else (None, None)
    if digits is not None:
        precision, scale = int(digits[1]), int(digits[2])
    is_old = mariadb and not has_members and _OLD_TEMPORAL.search(column_type) is not None
    expression = _text(row.expression or "")
    if not mariadb:
        expression = _unescape(expression)
    period = _PERIOD.fullmatch(expression)
    generated = None if period else _GENERATED.search(extra.upper())
    members = _read_members(column_type) if has_members else ()
    column = ColumnSchema(
        row.name,
        f"old {data_type}" if is_old else data_type,
        row.nullable == "YES",
        length=_length(row, data_type, column_type),
        precision=precision,
        scale=scale,
        unsigned=is_number and " unsigned" in column_type,
        zerofill=is_number and " zerofill" in column_type,
        # For ENUM and SET, information_schema has no character set if it is `binary`.
        charset=with_utf8mb3(row.charset) or ("binary" if members else None),
        collation=with_utf8mb3(row.collation) or ("binary" if members else None),
        members=members,
        on_update="ON UPDATE" in extra.upper(),
        auto_increment="AUTO_INCREMENT" in extra.upper(),
        generated=expression if generated else None,
        stored=generated is not None and generated[1] != "VIRTUAL",
        invisible="INVISIBLE" in extra.upper(),
        srid=row.srid,
        compressed=not has_members and _COMPRESSED.search(column_type) is not None,
        system_period=period[1].lower() if period else None,
    )
    if generated or period:
        return column
    return with_plain_default(replace(column, default=_default(row, mariadb=mariadb)))


def with_utf8mb3(name: str | None) -> str | None:
    """Return the name of a character set or collation with utf8mb3 for `utf8`, its name
    before MySQL 8.0.30."""
    return None if name is None else re.sub(r"^utf8(?=_|$)", "utf8mb3", name)


def _read_members(column_type: str) -> tuple[str, ...]:
    """Return the members in a type such as `enum('a','it''s')`. The server escapes them
    with `append_unescaped` (`sql/unireg.cc`): quotes are doubled; NUL, newline,
    carriage return and backslash have a backslash before them. MySQL prints bytes that
    are not valid as x'…': these become U+FFFD."""
    return tuple(
        bytes.fromhex(text).decode("utf-8", "replace")
        if hexed
        else _ESCAPED.sub(_unescape_match, text)
        for hexed, text in _QUOTED.findall(column_type)
    )


def _unescape_match(match: re.Match[str]) -> str:
    letter = match.group(1)
    return "'" if letter is None else _CONTROL_CHARACTERS.get(letter, letter)


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def _unescape(expression: str) -> str:
    """Remove the backslashes from an expression, which MySQL prints as if inside a
    string."""
    return _BACKSLASHED.sub(lambda match: _CONTROL_CHARACTERS.get(match[1], match[1]), expression)


def _length(row: _ColumnRow, data_type: str, column_type: str) -> int | None:
    """See `ColumnSchema.length`."""
    if data_type == "bit":
        return row.precision
    if data_type in _TEMPORAL_TYPES:
        return row.fraction
    if match := _DIMENSIONS.match(column_type):
        return int(match[1])
    return row.characters if data_type in _LENGTH_TYPES else None


def _default(row: _ColumnRow, *, mariadb: bool) -> Default | None:
    is_expression = "DEFAULT_GENERATED" in (row.extra or "").upper()
    if row.default is None:
        return _NOT_PRINTED if is_expression and _TEXT_OR_BLOB.search(row.data_type) else None
    text = _text(row.default)
    if not mariadb:
        # MySQL 5.7 does not mark CURRENT_TIMESTAMP, its only expression, as an
        # expression.
        is_now = row.data_type.lower() in _MOMENT_TYPES and now_digits(text) is not None
        return (
            _printed_expression(_unescape(text)) if is_expression or is_now else ValueDefault(text)
        )
    if text.upper() == "NULL":
        return None
    constant = _literal_text(text)
    return _printed_expression(text) if constant is None else ValueDefault(constant)


def _literal_text(text: str) -> str | None:
    """Return the value of an expression of MariaDB if it is a literal; None
    otherwise."""
    if match := _STRING_LITERAL.fullmatch(text):
        return _ESCAPED.sub(_unescape_match, match[1])
    return text if _NUMBER_LITERAL.fullmatch(text) or _HEX_OR_BITS.fullmatch(text) else None


def _printed_expression(text: str) -> ExpressionDefault:
    """Return an expression: CURRENT_TIMESTAMP in one spelling, others as the server
    prints them."""
    digits = now_digits(text)
    return ExpressionDefault(text if digits is None else now_expression(digits))


_REFERENCES: Final = """
select table_schema, table_name, constraint_name, column_name, referenced_table_schema,
       referenced_table_name, referenced_column_name
  from information_schema.key_column_usage
 where referenced_table_name is not null and {where}
 order by table_schema, table_name, constraint_name, ordinal_position
"""
_ACTIONS: Final = """
select constraint_schema, table_name, constraint_name, delete_rule, update_rule
  from information_schema.referential_constraints where {where}
"""
_ACTION: Final = r"(RESTRICT|CASCADE|SET NULL|NO ACTION|SET DEFAULT)"
_FOREIGN_KEY: Final = re.compile(
    r"CONSTRAINT `((?:[^`]|``)*)` FOREIGN KEY .*? REFERENCES .*?\)"
    rf"(?: ON DELETE {_ACTION})?(?: ON UPDATE {_ACTION})?,?$",
    re.MULTILINE,
)
"""A foreign key in the answer to SHOW CREATE TABLE: its name and its two actions."""
GONE_ERRORS: Final = frozenset({1049, 1051, 1109, 1146})
"""ER_BAD_DB_ERROR, ER_BAD_TABLE_ERROR, ER_UNKNOWN_TABLE, ER_NO_SUCH_TABLE."""

_Actions = dict[tuple[TableName, str], tuple[ReferentialAction, ReferentialAction]]
"""ON DELETE and ON UPDATE, by table and constraint."""


def _foreign_keys(
    cursor: Cursor, scopes: Sequence[Scope], dialect: Dialect
) -> dict[TableName, tuple[ForeignKey, ...]]:
    """Return the foreign keys of the tables that have any."""
    columns: dict[tuple[TableName, str], list[tuple[str, TableName, str]]] = {}
    for table, (name, column, database, parent, referenced) in select_by_table(
        cursor, _REFERENCES, scopes
    ):
        key_columns = columns.setdefault((table, name), [])
        key_columns.append((column, TableName(database, parent), referenced))
    if not columns:
        return {}
    actions: _Actions = {
        (table, name): (on_delete, on_update)
        for table, (name, on_delete, on_update) in select_by_table(
            cursor, _ACTIONS, scopes, schema="constraint_schema"
        )
    }
    actions |= _shown_actions(
        cursor, sorted({table for table, _ in columns.keys() - actions.keys()})
    )
    default_action: ReferentialAction = (
        "NO ACTION" if dialect.is_mysql_from(8, 0, 0) else "RESTRICT"
    )
    keys_by_table: dict[TableName, list[ForeignKey]] = {}
    for (table, name), parts in columns.items():
        child_columns, (parent, *_), referenced = zip(*parts, strict=True)
        rules = actions.get((table, name), (default_action, default_action))
        keys_by_table.setdefault(table, []).append(
            ForeignKey(name, child_columns, parent, referenced, *rules)
        )
    return {table: tuple(keys) for table, keys in keys_by_table.items()}


def _shown_actions(cursor: Cursor, tables: Sequence[TableName]) -> _Actions:
    """Return the actions that SHOW CREATE TABLE prints; no action for a table that was
    dropped."""
    actions: _Actions = {}
    for table in tables:
        try:
            cursor.execute(f"show create table {quoted_table(table)}")
        except pymysql.MySQLError as error:
            if number_of(error) not in GONE_ERRORS:
                raise
            continue
        (_, text, *_) = cursor.fetchone() or ("", "")
        for quoted_name, on_delete, on_update in _FOREIGN_KEY.findall(text):
            name = quoted_name.replace("``", "`")
            actions[table, name] = (on_delete or "RESTRICT", on_update or "RESTRICT")
    return actions


_MYSQL_DATABASE: Final = "mysql"
"""The system database in which managed services keep tables of their own."""

_DATABASES: Final = """
select schema_name, default_character_set_name, default_collation_name
  from information_schema.schemata order by schema_name
"""
_TRIGGERS: Final = """
select trigger_schema, trigger_name, event_manipulation, event_object_schema, event_object_table,
       action_statement, sql_mode
  from information_schema.triggers order by trigger_schema, trigger_name
"""
_VIEWS: Final = """
select table_schema, table_name, view_definition from information_schema.views
 order by table_schema, table_name
"""
_SYSTEM_TABLES: Final = f"""
select table_name from information_schema.tables
 where table_schema = '{_MYSQL_DATABASE}' and table_type = 'BASE TABLE' order by table_name
"""
_NO_QUERY: Final = "the account may not see the view's query"


def read_databases(cursor: Cursor) -> tuple[DatabaseSchema, ...]:
    """Read every database that the account sees, with its triggers and views. Of the
    system databases only `mysql` is included, because managed services keep tables in
    it."""
    cursor.execute(_DATABASES)
    rows = [
        (name, with_utf8mb3(charset) or "", with_utf8mb3(collation) or "")
        for name, charset, collation in cursor.fetchall()
        if name.lower() not in SYSTEM_DATABASES or name == _MYSQL_DATABASE
    ]
    user_databases = [name for name, *_ in rows if name != _MYSQL_DATABASE]
    codes = _code_by_database(cursor, user_databases, read_dialect(cursor))
    return tuple(DatabaseSchema(*row, codes[row[0]]) for row in rows if row[0] in codes)


def _code_by_database(
    cursor: Cursor, databases: Collection[str], dialect: Dialect
) -> Mapping[str, DatabaseCode]:
    """Return the triggers and views of each of these databases, and those of the system
    database `mysql` if the account sees a table of it."""
    visible_databases = {*databases, _MYSQL_DATABASE}
    triggers, views = defaultdict[str, list[Trigger]](list), defaultdict[str, list[View]](list)
    for database, name, event_list, table_database, table, body, modes in _fetch_rows(
        cursor, _TRIGGERS
    ):
        if database not in visible_databases:
            continue
        code = read_code(body, _statement_context(dialect, database, modes), is_view_query=False)
        events: Any = tuple(word.strip() for word in str(event_list).upper().split(","))
        triggers[database].append(Trigger(name, TableName(table_database, table), events, code))
    for database, name, query in _fetch_rows(cursor, _VIEWS):
        if database not in visible_databases:  # `sys` alone has a hundred views
            continue
        context = _statement_context(dialect, database, "")
        if query:
            code = read_code(query, context, is_view_query=True)
        else:
            code = _code_by_show_create(cursor, TableName(database, name), context)
        views[database].append(View(name, code))
    grants = account_grants(cursor)
    codes = {
        name: DatabaseCode(
            tuple(triggers[name])
            if has_privilege(grants, "TRIGGER", TableName(name, ""))
            else None,
            tuple(views[name]),
        )
        for name in databases
    }
    if mysql_tables := tuple(str(name) for (name,) in _fetch_rows(cursor, _SYSTEM_TABLES)):
        # No server allows triggers on tables of this database.
        codes[_MYSQL_DATABASE] = DatabaseCode((), tuple(views[_MYSQL_DATABASE]), mysql_tables)
    return codes


def _code_by_show_create(cursor: Cursor, view: TableName, context: StatementContext) -> TableAccess:
    """Return the code of a view by SHOW CREATE VIEW, for a view whose query
    information_schema does not show. Older servers show it only to the view's
    definer."""
    try:
        cursor.execute(f"show create view {quoted_table(view)}")
    except pymysql.MySQLError as error:
        if meaning_of(number_of(error)) is Meaning.LOST:
            raise
        return TableAccess(reason=_NO_QUERY)
    return next(
        (read_view(row[1], context) for row in cursor.fetchall()), TableAccess(reason=_NO_QUERY)
    )


def _fetch_rows(cursor: Cursor, query: str) -> Iterable[tuple[Any, ...]]:
    cursor.execute(query)
    return cursor.fetchall()


def _statement_context(dialect: Dialect, database: str, modes: str) -> StatementContext:
    server_dialect = ServerDialect(version=dialect.version, flavour=dialect.flavour)
    bits = sum(PARSING_MODES.get(word, 0) for word in str(modes or "").upper().split(","))
    return StatementContext(server_dialect, database, bits)
