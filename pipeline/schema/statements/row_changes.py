"""The tables that a statement changes and reads, from its text alone.

A session with binlog_format=STATEMENT logs its statements instead of the rows that they
change. `pipeline.schema.code` follows the tables' names to views, triggers and foreign
keys. A statement that calls a procedure, or a function that is not built in, is
refused: it may change any table. Only keywords that every server reserves end a list of
tables, since any other word may be the name of a table.

Grammar: MySQL manual, "Data Manipulation Statements", "Function Name Parsing and
Resolution", "Built-In Function and Operator Reference", "Keywords and Reserved Words";
`sql_yacc.yy` of both servers, in which a keyword is never the name of a stored
function.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final, TypeVar

from lockstep.pipeline.schema.context import IGNORE_SPACE, StatementContext, stored_name
from lockstep.pipeline.schema.model import RowChange, TableAccess
from lockstep.pipeline.schema.statements.read import read_settings
from lockstep.pipeline.schema.statements.reader import CannotRead, StatementReader, Token
from lockstep.pipeline.values.table import TableName

BUILT_IN_FUNCTIONS: Final = frozenset(
    """
    abs acos adddate addtime aes_decrypt aes_encrypt ascii asin atan atan2 avg benchmark bin
    bit_and bit_count bit_length bit_or bit_xor cast ceil ceiling char_length character_length
    coercibility compress concat concat_ws connection_id conv convert_tz cos cot count crc32
    curdate curtime date_add date_format date_sub datediff dayname dayofmonth dayofweek
    dayofyear degrees elt exp export_set extract extractvalue field find_in_set floor format
    found_rows from_base64 from_days from_unixtime get_lock greatest group_concat hex ifnull
    inet6_aton inet6_ntoa inet_aton inet_ntoa instr is_free_lock is_used_lock isnull
    json_array json_contains json_contains_path json_depth json_extract json_insert json_keys
    json_length json_merge json_merge_patch json_merge_preserve json_object json_quote
    json_remove json_replace json_search json_set json_type json_unquote json_valid last_day
    last_insert_id lcase least length ln load_file locate log log10 log2 lower lpad ltrim
    make_set makedate maketime max mid min monthname name_const now nullif oct octet_length
    ord period_add period_diff pi position pow power quote radians rand release_lock repeat
    reverse round row_count rpad rtrim sec_to_time session_user sha2 sign sin sleep soundex
    space sqrt std stddev stddev_pop stddev_samp str_to_date strcmp subdate substr substring
    substring_index subtime sum sysdate system_user tan time_format time_to_sec timediff
    to_base64 to_days to_seconds trim ucase uncompress uncompressed_length unhex
    unix_timestamp updatexml upper uuid uuid_short var_pop var_samp variance weekday
    weekofyear yearweek
    """.split()  # noqa: SIM905 - a list literal would have a line for each name
)
"""Built-in functions of every server since MySQL 5.7 and MariaDB 10.5. None of them
changes a table. A function of only some servers is left out: on the others, a stored
function may have its name. The tests call each function on several servers."""

KEYWORDS: Final = frozenset(
    """
    ALL AND ANY AS ASCII BETWEEN BIGINT BINARY BIT BLOB BY CASE CHAR CHARACTER CHARSET
    COALESCE COLLATION CONVERT CURRENT_DATE CURRENT_TIME CURRENT_TIMESTAMP CURRENT_USER
    DATABASE DATE DATETIME DAY DEC DECIMAL DEFAULT DISTINCT DIV DOUBLE ELSE ELSEIF ENUM EXISTS
    FLOAT FROM HAVING HOUR IF IN INDEX INSERT INT INTEGER INTERVAL INTO IS JOIN KEY LEFT LIKE
    LIMIT LOCALTIME LOCALTIMESTAMP MATCH MEDIUMINT MICROSECOND MINUTE MOD MONTH NCHAR NOT
    NUMERIC NVARCHAR ON OR PARTITION QUARTER REAL REGEXP REPLACE RETURN RIGHT RLIKE ROW SCHEMA
    SECOND SELECT SET SMALLINT SOME TEXT THEN TIME TIMESTAMP TIMESTAMPADD TIMESTAMPDIFF
    TINYINT TRUNCATE UNION USER USING UTC_DATE UTC_TIME UTC_TIMESTAMP VALUE VALUES VARBINARY
    VARCHAR WEEK WHEN WHERE WHILE XOR YEAR
    """.split()  # noqa: SIM905
)
"""Keywords that may come before a parenthesis, and are never the name of a stored
function."""


Access = TypeVar("Access", bound=TableAccess | None)

INSERT: Final = "INSERT"
UPDATE: Final = "UPDATE"
DELETE: Final = "DELETE"

_FIRST_WORDS: Final = frozenset({INSERT, "REPLACE", UPDATE, DELETE, "LOAD", "SELECT", "DO", "WITH"})
_REFUSED_WORDS: Final = frozenset(
    {"CALL", "EXECUTE", "PREPARE", "CREATE", "ALTER", "DROP", "TRUNCATE", "RENAME", "GRANT"}
    | {"REVOKE", "INSTALL", "UNINSTALL", "IMPORT"}
)
_TABLE_LIST_ENDS: Final = frozenset(
    {"WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "UNION", "INTO", "SET", "PROCEDURE"}
)
_JOIN_WORDS: Final = frozenset({"JOIN", "STRAIGHT_JOIN"})
_NOT_ALIASES: Final = (_TABLE_LIST_ENDS | _JOIN_WORDS) | (
    {"INNER", "LEFT", "RIGHT", "CROSS", "NATURAL", "ON", "USING", "USE", "FORCE", "IGNORE"}
    | {"PARTITION", "FOR", "LOCK"}
)
_SEQUENCE_FUNCTIONS: Final = frozenset({"nextval", "currval", "lastval", "setval"})


def read_row_change(text: str, context: StatementContext) -> TableAccess:
    """Return the tables that a statement changes and reads, for a statement that was
    logged instead of its rows."""

    def read(reader: StatementReader) -> TableAccess:
        _, unknown_variables = read_settings(reader)
        has_settings = reader.at > 0
        if unknown_variables or (has_settings and "sql_mode" in text.lower()):
            return TableAccess(reason="SET STATEMENT changes how it is parsed")
        first = reader.peek()
        if first.keyword not in _FIRST_WORDS and not reader.sees_symbol("("):
            word = first.text[:20] or "nothing"
            return TableAccess(reason=f"{word} … is not among the statements that can be read")
        return _Walk(reader).walk_to_end()

    return read_or_reason(text, context, read)


def read_create_select(text: str, context: StatementContext) -> TableAccess | None:
    """Return the tables that the query of CREATE TABLE … SELECT or … VALUES changes and
    reads; None if the statement has no query."""

    def read(reader: StatementReader) -> TableAccess | None:
        read_settings(reader)
        if not reader.accept("CREATE"):
            return None
        reader.accept("OR", "REPLACE")
        reader.accept("TEMPORARY")
        if not reader.accept("TABLE"):
            return None
        while not (reader.is_over or _begins_query(reader)):
            reader.next()
        return None if reader.is_over else _Walk(reader).walk_to_end(inside=True)

    has_query_word = any(word in text.lower() for word in ("select", "values"))
    return read_or_reason(text, context, read) if has_query_word else None


def _begins_query(reader: StatementReader) -> bool:
    """Return whether a query comes next. Some options of CREATE TABLE also begin with
    WITH, and bounds of partitions with VALUES."""
    first, third = reader.peek(), reader.peek(2)
    if first.keyword == "WITH":
        return reader.sees("WITH", "RECURSIVE") or third.keyword == "AS" or third.text == "("
    if first.keyword == "VALUES":
        return reader.sees_symbol("(", 1)
    return first.keyword == "SELECT"


def read_body(reader: StatementReader, *, is_view_query: bool) -> TableAccess:
    """Return the tables that a trigger's body changes and reads; with `is_view_query`,
    those that a view's query reads."""
    mode = reader.context.type_grammar_mode
    if mode is not None:
        return TableAccess(reason=f"it was created under sql_mode={mode}")
    try:
        return _Walk(reader, is_body=not is_view_query).walk_to_end()
    except CannotRead as error:
        return TableAccess(reason=str(error))


def read_or_reason(
    text: str, context: StatementContext, read: Callable[[StatementReader], Access]
) -> Access | TableAccess:
    """Return the result of `read`, or a `TableAccess` that says why the text cannot be
    read."""
    try:
        return read(StatementReader(text, context))
    except CannotRead as error:
        return TableAccess(reason=str(error))


@dataclass(frozen=True, slots=True)
class _Reference:
    """A table in the list of an UPDATE or a DELETE. `alias`: its alias, or else its
    name, in lower case."""

    table: TableName
    alias: str


@dataclass(slots=True)
class _Level:
    """State of the walk within a pair of parentheses, or a whole statement.
    `in_table_list`: a list of tables is being read; `expects_table`: its next table is
    due. `has_select`: SELECT was read. `awaits_set`: the SET of an UPDATE is still due.
    `references`: the list of tables of an UPDATE, or of a DELETE with several tables.
    `delete_chains`: names of the tables from which that DELETE deletes."""

    in_table_list: bool = False
    expects_table: bool = False
    has_select: bool = False
    awaits_set: bool = False
    references: list[_Reference] | None = None
    delete_chains: tuple[tuple[str, ...], ...] = ()

    def begin_table_list(self) -> None:
        self.in_table_list = self.expects_table = True

    def end_table_list(self) -> None:
        self.in_table_list = self.expects_table = False


@dataclass(slots=True)
class _Walk:
    """One pass over the tokens, which looks for keywords that come before names of
    tables. `is_body`: several statements may follow each other. `writes`: for each
    table, which of INSERT, UPDATE and DELETE it may get. `reads`: the tables that are
    read, in their order. `with_names`: names that WITH defines. `insert_target`: the
    table of the last INSERT, which ON DUPLICATE KEY UPDATE changes."""

    reader: StatementReader
    is_body: bool = False
    writes: dict[TableName, set[RowChange]] = field(default_factory=dict)
    reads: dict[TableName, None] = field(default_factory=dict)
    with_names: set[TableName] = field(default_factory=set)
    insert_target: TableName | None = None

    def walk_to_end(self, *, inside: bool = False) -> TableAccess:
        """Walk to the end, and return the tables. `inside`: the walk begins within
        parentheses."""
        self._read_level(_Level())
        while inside and self.reader.accept_symbol(")"):
            self._read_level(_Level())
        if not self.reader.is_over:
            raise CannotRead("a parenthesis is closed that is not open")
        writes = tuple((table, tuple(sorted(events))) for table, events in self.writes.items())
        return TableAccess(writes, tuple(self.reads), tuple(sorted(self.with_names)))

    def _record_write(self, table: TableName, *events: RowChange) -> None:
        self.writes.setdefault(table, set()).update(events)

    # -- names -------------------------------------------------------------------------

    def _take_name_chain(self) -> tuple[str, ...]:
        """Take `a`, `a.b`, `a.b.c` or `.a`, and return its names without a `.*` at the
        end."""
        reader = self.reader
        parts: list[str] = []
        if reader.accept_symbol("."):
            parts.append(reader.context.database)
        parts.append(reader.read_name())
        while reader.accept_symbol(".") and not reader.accept_symbol("*"):
            parts.append(reader.read_name())
        return tuple(parts)

    def _take_table(self) -> TableName:
        return self._table_named(self._take_name_chain())

    def _table_named(self, chain: tuple[str, ...]) -> TableName:
        if len(chain) > 2:
            raise CannotRead(f"{'.'.join(chain)} is not the name of a table")
        database = chain[0] if len(chain) == 2 else self.reader.context.database
        return stored_name(TableName(database, chain[-1]), self.reader.context)

    # -- one level ----------------------------------------------------------------------

    def _read_level(self, level: _Level) -> None:
        """Read up to the parenthesis that closes the level, or to the end."""
        reader = self.reader
        while not (reader.is_over or reader.sees_symbol(")")):
            begins_with_dot = (
                level.expects_table and reader.sees_symbol(".") and reader.peek(1).is_name
            )
            if begins_with_dot or reader.peek().is_name:
                if reader.sees_symbol(".", 1) or not self._take_keyword(level):
                    self._take_name(level)
            elif reader.peek().kind == "symbol":
                self._read_symbol(level)
            else:
                reader.next()
        self._close(level)

    def _read_symbol(self, level: _Level) -> None:
        symbol = self.reader.next().text
        if symbol == "(":
            inner = _Level()
            if level.expects_table:
                level.expects_table = False
                is_subquery = self.reader.peek().keyword in ("SELECT", "WITH", "VALUES", "TABLE")
                if not is_subquery:
                    inner = _Level(
                        in_table_list=True, expects_table=True, references=level.references
                    )
            self._read_level(inner)
            self.reader.expect_symbol(")")
        elif symbol == "," and level.in_table_list:
            level.expects_table = True
        elif symbol == ";":
            if not self.is_body:
                raise CannotRead("another statement follows")
            self._close(level)
            self.insert_target = None
            level.has_select = False
        elif symbol in ("{", "}", "?"):
            raise CannotRead(f"it contains {symbol}")

    def _read_parentheses(self) -> None:
        """Read `( … )` that contains tables only in subqueries."""
        self.reader.read_enclosed(lambda: self._read_level(_Level()))

    def _close(self, level: _Level) -> None:
        """End the list of tables. If it belongs to a DELETE, record the tables from
        which that deletes."""
        level.end_table_list()
        if level.awaits_set:
            raise CannotRead("UPDATE has no SET")
        references = level.references or []
        for chain in level.delete_chains:
            # A name that is not in the list may mean any of its tables.
            all_tables = [self._table_named(chain), *(reference.table for reference in references)]
            for table in _possible_tables(chain, references) or all_tables:
                self._record_write(table, DELETE)
        level.delete_chains = ()

    # -- words -------------------------------------------------------------------------

    def _take_keyword(self, level: _Level) -> bool:
        """Take a keyword that ends a list of tables, or that comes before tables.
        Return False for any other word."""
        reader = self.reader
        word = reader.peek().keyword
        is_call = reader.sees_symbol("(", 1)
        if word in _REFUSED_WORDS and not (word == "TRUNCATE" and is_call):
            raise CannotRead(f"it contains {word}")
        if word == "NEXT" and reader.peek(1).keyword == "VALUE":
            raise CannotRead("it draws from a sequence")
        if word in (INSERT, "REPLACE") and not is_call:
            self._read_insert()
        elif word == UPDATE:
            self._read_update(level)
        elif word == DELETE:
            self._read_delete(level)
        elif word == "LOAD" and reader.peek(1).keyword in ("DATA", "XML"):
            self._read_load()
        elif word == "WITH":
            self._read_with()
        elif word == "SELECT":
            reader.next()
            level.has_select = True
            level.end_table_list()
        elif word == "FROM":
            reader.next()
            if level.has_select:
                level.begin_table_list()
        elif word == "TABLE" and not is_call:
            reader.next()
            self.reads[self._take_table()] = None
        elif word in _JOIN_WORDS and reader.previous.keyword != "FOR":
            reader.next()
            level.expects_table = level.in_table_list
        elif reader.accept("ON", "DUPLICATE", "KEY", "UPDATE"):
            self._close(level)
            if self.insert_target is None:
                raise CannotRead("ON DUPLICATE KEY UPDATE does not follow an INSERT")
            self._record_write(self.insert_target, UPDATE)
        elif word == "FOR":
            reader.next()
            if reader.accept_any("UPDATE", "SHARE"):
                level.end_table_list()
            elif reader.accept("PORTION", "OF"):
                # MariaDB inserts what is left of a row before and after the portion.
                references = level.references or []
                for table in [*self.writes, *(reference.table for reference in references)]:
                    self._record_write(table, INSERT)
            else:
                reader.accept("SYSTEM_TIME", "FROM")
        elif word in _TABLE_LIST_ENDS and reader.previous.keyword != "FOR":
            if word == "SET" and level.awaits_set:
                self._record_updated(level)
            self._close(level)
            reader.next()
        else:
            return False
        return True

    def _take_name(self, level: _Level) -> None:
        """Take a name: of a table, a function, or anything else."""
        reader = self.reader
        before, token = reader.previous, reader.peek()
        if level.expects_table and reader.accept("LATERAL"):
            return
        chain = self._take_name_chain()
        is_call = reader.sees_symbol("(")
        if level.expects_table:
            level.expects_table = False
            if is_call:
                if token.keyword != "JSON_TABLE":
                    raise CannotRead(f"{token.text} is called where a table was expected")
                return
            if token.keyword != "DUAL":
                self._take_reference(level, self._table_named(chain))
            return
        if len(chain) > 1 and chain[-1].lower() in _SEQUENCE_FUNCTIONS:
            # MariaDB in Oracle's mode writes `sequence.nextval`.
            raise CannotRead("it draws from a sequence")
        if is_call:
            self._refuse_stored_function(chain, token, before)

    def _refuse_stored_function(self, chain: tuple[str, ...], token: Token, before: Token) -> None:
        """Raise CannotRead if a name before a parenthesis may call a stored function.
        `token`: the name's first token; `before`: the token before the name."""
        word = token.keyword
        if len(chain) == 1 and word in KEYWORDS:
            return
        ends_operand = before.is_literal or (before.kind == "symbol" and before.text == ")")
        if ends_operand or before.keyword == "AS":
            return  # it is an alias with a list of columns
        if len(chain) > 1 or not word or word.lower() not in BUILT_IN_FUNCTIONS:
            raise CannotRead(f"it calls {'.'.join(chain)}, which is not a built-in function")
        has_blank = token.end != self.reader.peek().start
        if has_blank and not self.reader.context.has_mode(IGNORE_SPACE):
            # Without IGNORE_SPACE, a name with a blank after it is a stored function's.
            raise CannotRead(f"a blank follows {token.text}, so it may be a stored function")

    def _take_reference(self, level: _Level, table: TableName) -> None:
        reader = self.reader
        self.reads[table] = None
        if level.references is None:
            return
        if reader.sees("PARTITION"):
            reader.next()
            self._read_parentheses()
        has_as = reader.accept("AS")
        alias = table.name
        if has_as or (reader.peek().is_name and reader.peek().keyword not in _NOT_ALIASES):
            alias = reader.next().text
        level.references.append(_Reference(table, alias.lower()))

    # -- statements -----------------------------------------------------------------------

    def _read_insert(self) -> None:
        reader = self.reader
        word = reader.next().keyword
        while reader.accept_any("LOW_PRIORITY", "DELAYED", "HIGH_PRIORITY", "IGNORE", "INTO"):
            pass
        self.insert_target = table = self._take_table()
        self._record_write(table, INSERT)
        if word == "REPLACE":
            self._record_write(table, DELETE)
        if reader.accept("PARTITION"):
            self._read_parentheses()
        queries = ("SELECT", "WITH", "VALUES", "VALUE", "TABLE")
        is_subquery = reader.peek(1).keyword in queries or reader.sees_symbol("(", 1)
        if reader.sees_symbol("(") and not is_subquery:
            self._read_parentheses()
        reader.accept("VALUE")

    def _read_update(self, level: _Level) -> None:
        self.reader.next()
        while self.reader.accept_any("LOW_PRIORITY", "IGNORE"):
            pass
        level.begin_table_list()
        level.awaits_set = True
        level.references = []

    def _record_updated(self, level: _Level) -> None:
        """Record the tables that the next token, SET, changes. A column that is written
        without its table may belong to any table of the list."""
        references = level.references or []
        all_tables = [reference.table for reference in references]
        updated_tables: list[TableName] = []
        for chain in self._assigned_columns():
            updated_tables += _possible_tables(chain[:-1], references) or all_tables
        if not updated_tables:
            raise CannotRead("UPDATE names no table")
        for table in updated_tables:
            self._record_write(table, UPDATE)
        level.awaits_set = False

    def _assigned_columns(self) -> Iterator[tuple[str, ...]]:
        """Yield the columns that SET changes, as `(column,)`, `(table, column)` or
        `(database, table, column)`. No token is taken."""
        reader = self.reader
        ahead = 1
        depth = 0
        expects_column = True
        while (token := reader.peek(ahead)).kind != "end":
            if token.kind == "symbol":
                depth += (token.text == "(") - (token.text == ")")
                if depth < 0 or (depth == 0 and token.text == ";"):
                    return
                expects_column = expects_column or (depth == 0 and token.text == ",")
            elif depth == 0 and token.keyword in ("WHERE", "ORDER", "LIMIT"):
                return
            if expects_column and token.is_name:
                chain = [token.text]
                while reader.sees_symbol(".", ahead + 1) and reader.peek(ahead + 2).is_name:
                    ahead += 2
                    chain.append(reader.peek(ahead).text)
                yield tuple(chain)
                expects_column = False
            ahead += 1

    def _read_delete(self, level: _Level) -> None:
        reader = self.reader
        reader.next()
        while reader.accept_any("LOW_PRIORITY", "QUICK", "IGNORE"):
            pass
        if reader.sees("HISTORY", "FROM"):
            reader.next()
        # DELETE FROM a …; DELETE FROM a, b USING …; DELETE a, b FROM …
        begins_with_from = reader.accept("FROM")
        names = reader.read_list(self._take_name_chain)
        if begins_with_from and not reader.accept("USING"):
            if len(names) > 1:
                raise reader.unexpected("USING")
            self._record_write(self._table_named(names[0]), DELETE)
            return
        if not begins_with_from:
            reader.expect("FROM")
        level.begin_table_list()
        level.references = []
        level.delete_chains = names

    def _read_load(self) -> None:
        reader = self.reader
        if not reader.accept("LOAD", "DATA"):
            reader.expect("LOAD", "XML")
        while reader.accept_any("LOW_PRIORITY", "CONCURRENT", "LOCAL"):
            pass
        reader.expect("INFILE")
        if reader.next().kind != "string":
            raise reader.unexpected("a file's name")
        duplicates = reader.accept_any("REPLACE", "IGNORE")
        reader.expect("INTO", "TABLE")
        table = self._take_table()
        self._record_write(table, INSERT)
        if duplicates == "REPLACE":
            self._record_write(table, DELETE)
        if reader.accept("PARTITION") or reader.sees_symbol("("):
            self._read_parentheses()

    def _read_with(self) -> None:
        """Read `WITH name [(columns)] AS (…), …`."""
        reader = self.reader
        reader.next()
        if reader.peek().keyword in ("ROLLUP", "CASCADED", "LOCAL", "CHECK"):
            return
        reader.accept("RECURSIVE")
        while True:
            self.with_names.add(self._table_named((reader.read_name(),)))
            if reader.sees_symbol("("):
                self._read_parentheses()
            reader.expect("AS")
            self._read_parentheses()
            if reader.accept("CYCLE"):
                if reader.sees_symbol("("):
                    reader.read_enclosed_names()
                else:
                    reader.read_list(reader.read_name)
                reader.expect("RESTRICT")
            if not reader.accept_symbol(","):
                return


def _possible_tables(chain: tuple[str, ...], references: Iterable[_Reference]) -> list[TableName]:
    """Return the tables of the list that `table` or `database.table` may mean; none for
    an empty chain."""
    match chain:
        case (alias,):
            return [item.table for item in references if item.alias == alias.lower()]
        case (_, name):
            return [item.table for item in references if item.table.name.lower() == name.lower()]
    return []
