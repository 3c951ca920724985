"""The changes that a logged statement makes to structures.

Only statements on the list `HARMLESS_STATEMENTS` are passed over: they change neither
rows nor structures. Any other statement that is not recognised is `NotUnderstood`. A
statement is on the list if it begins with all words of an entry: `ANALYZE TABLE`
changes no rows, but MariaDB's `ANALYZE UPDATE` does.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from typing import Final

from lockstep.pipeline.schema.context import ANSI_QUOTES, NO_BACKSLASH_ESCAPES, StatementContext
from lockstep.pipeline.schema.statements.changes import (
    AlterDefault,
    AlterTable,
    CreateLike,
    CreateSelect,
    CreateTable,
    DefineColumn,
    DropDatabase,
    DropElement,
    DropTables,
    ElementKind,
    Irrelevant,
    NotUnderstood,
    RenameTables,
    RepairTables,
    SchemaChange,
    TruncateTable,
    affected_tables,
)
from lockstep.pipeline.schema.statements.definitions import accept_key_kind
from lockstep.pipeline.schema.statements.reader import CannotRead, StatementReader, Token
from lockstep.pipeline.schema.statements.table_statements import (
    engine_name,
    read_alter_database,
    read_alter_table,
    read_create_database,
    read_create_index,
    read_create_table,
    skip_algorithm_and_lock,
)
from lockstep.pipeline.values.table import TableName

Understood = tuple[SchemaChange, ...] | Irrelevant
Reading = Understood | NotUnderstood


@dataclass(frozen=True, slots=True)
class Harmless:
    """A kind of statement that changes neither rows nor structures. `words`: its first
    words, each with its alternatives; OR REPLACE, ALGORITHM, DEFINER and SQL SECURITY
    may follow the first word. `effect`: the reason why it is harmless, for readers of
    the list. `may_contain_statements`: it may contain statements that run later,
    separated by semicolons."""

    words: str
    effect: str
    may_contain_statements: bool = False

    @property
    def beginnings(self) -> tuple[tuple[str, ...], ...]:
        """Every combination of the alternatives in `words`."""
        return tuple(product(*(word.split("|") for word in self.words.split())))


_DDL: Final = "CREATE|ALTER|DROP"
_RUNS_LATER: Final = "defines code; the log has what the code does whenever it runs"

HARMLESS_STATEMENTS: Final = (
    Harmless("ANALYZE TABLE|TABLES", "collects statistics and histograms"),
    Harmless("CACHE INDEX", "assigns memory to indexes"),
    Harmless("CHECK TABLE|TABLES|VIEW|VIEWS", "only reads"),
    Harmless("CHECKSUM TABLE|TABLES", "only reads"),
    Harmless("FLUSH", "empties caches, rotates log files, reloads privileges"),
    Harmless("GRANT", "changes privileges"),
    Harmless("INSTALL PLUGIN|SONAME|COMPONENT", "extends the server"),
    Harmless("KILL", "ends sessions"),
    Harmless("LOCK TABLE|TABLES", "takes locks"),
    Harmless("OPTIMIZE TABLE|TABLES", "builds tables again, with the same rows"),
    Harmless("PURGE", "deletes log files"),
    Harmless("RENAME USER", "changes accounts"),
    Harmless("REPAIR VIEW|VIEWS", "changes views, which have no rows"),
    Harmless("RESET", "deletes log files and caches"),
    Harmless("REVOKE", "changes privileges"),
    Harmless("SET", "sets variables, passwords, default roles (not SET STATEMENT: see below)"),
    Harmless("SHUTDOWN", "stops the server"),
    Harmless("UNINSTALL PLUGIN|SONAME|COMPONENT", "reduces the server"),
    Harmless("UNLOCK TABLE|TABLES", "releases locks"),
    Harmless(
        f"{_DDL} EVENT|FUNCTION|PROCEDURE|TRIGGER|PACKAGE|LIBRARY",
        _RUNS_LATER,
        may_contain_statements=True,
    ),
    Harmless(f"{_DDL} VIEW", "changes views, which have no rows and never replace a table"),
    Harmless(f"{_DDL} JSON DUALITY VIEW", "changes views"),
    Harmless(f"{_DDL} JSON RELATIONAL DUALITY VIEW", "changes views"),
    Harmless(f"{_DDL} USER|ROLE", "changes accounts"),
    Harmless(f"{_DDL} MASKING POLICY", "changes what SELECT shows, not what the log has"),
    Harmless(f"{_DDL} SERVER|INSTANCE", "changes settings of the server"),
    Harmless(f"{_DDL} RESOURCE|LOGFILE GROUP", "changes settings of the server"),
    Harmless(f"{_DDL} TABLESPACE", "changes files; a tablespace with tables cannot be dropped"),
    Harmless(f"{_DDL} UNDO TABLESPACE", "changes files"),
    Harmless(f"{_DDL} SPATIAL REFERENCE SYSTEM", "changes a definition, not stored values"),
    Harmless(f"{_DDL} SEQUENCE", "changes sequences (CREATE OR REPLACE SEQUENCE is followed)"),
    Harmless("CREATE|DROP TEMPORARY TABLE|TABLES|SEQUENCE", "changes what only its session sees"),
)


_UNKNOWN_TABLE: Final = 1051
"""ER_BAD_TABLE_ERROR: DROP TABLE named tables that do not exist; all others were
dropped."""


def read_change(text: str, context: StatementContext) -> Reading:
    """Return the changes that a logged statement makes to structures; `NotUnderstood`
    for a text that cannot be read. `text`: decoded by the client's character set."""
    reading = _read_text(text, context)
    grammar = context.type_grammar_mode
    # A statement that defines no column means the same, for the same tables, in every
    # grammar.
    if grammar is not None and (isinstance(reading, NotUnderstood) or _defines_columns(reading)):
        reading = NotUnderstood(f"it ran under sql_mode={grammar}", _possible_tables(reading))
    if _may_set_mode(text, context):
        reading = _read_under_all_modes(text, context, reading)
    if not isinstance(reading, tuple):
        return reading
    if context.error not in (0, _UNKNOWN_TABLE):
        # A server logs a failed statement if it has already changed something. MySQL
        # 5.7 does so for a DROP TABLE with several tables.
        reason = f"it failed with error {context.error} in the middle"
        return NotUnderstood(reason, affected_tables(reading))
    if context.thread_specific and any(map(_may_mean_temporary, reading)):
        return NotUnderstood("it may have meant a temporary table", affected_tables(reading))
    return reading


def _may_mean_temporary(change: SchemaChange) -> bool:
    """Return whether a name in a statement whose event has the flag
    LOG_EVENT_THREAD_SPECIFIC_F may mean a temporary table of the session instead of a
    permanent one. Other kinds of statement are unambiguous: servers log whether a
    dropped table was temporary, and they log definitions in full. MariaDB also sets the
    flag for each CREATE OR REPLACE that replaced a table; in that case the flag says
    nothing about the table after LIKE."""
    if isinstance(change, CreateLike):
        return not change.or_replace
    return isinstance(change, AlterTable | RenameTables | RepairTables | TruncateTable)


def _defines_columns(reading: Reading) -> bool:
    return isinstance(reading, tuple) and any(
        any(isinstance(clause, DefineColumn | AlterDefault) for clause in change.clauses)
        if isinstance(change, AlterTable)
        else isinstance(change, CreateTable | CreateSelect)
        for change in reading
    )


def _possible_tables(reading: Reading) -> tuple[TableName, ...] | None:
    match reading:
        case Irrelevant():
            return ()
        case NotUnderstood():
            return reading.possible_tables
    return affected_tables(reading)


def _read_text(text: str, context: StatementContext) -> Reading:
    try:
        reader = StatementReader(text, context)
    except CannotRead as error:
        return NotUnderstood(str(error))
    try:
        engine, unknown_variables = read_settings(reader)
        changes = _read_statement(reader)
        if not isinstance(changes, Irrelevant) and not reader.is_over:
            raise reader.unexpected("the statement's end")
    except CannotRead as error:
        return NotUnderstood(str(error), _tables_of_unreadable(reader))
    if isinstance(changes, Irrelevant):
        return changes
    if unknown_variables:
        variables = ", ".join(unknown_variables)
        return NotUnderstood(f"SET STATEMENT changes {variables} for it", affected_tables(changes))
    if engine is None:
        return changes
    return tuple(_with_engine(change, engine) for change in changes)


def _with_engine(change: SchemaChange, engine: str) -> SchemaChange:
    """Give a new table this engine if its definition names none."""
    if not isinstance(change, CreateTable) or change.options.engine is not None:
        return change
    return replace(change, options=replace(change.options, engine=engine))


# -- by the first words -------------------------------------------------------------


def _read_statement(reader: StatementReader) -> Understood:
    if reader.is_over:
        return Irrelevant("nothing")
    first = reader.at
    change = _read_schema_change(reader)
    if change is not None:
        return (change,)
    reader.at = first
    return _read_harmless(reader)


def _read_schema_change(reader: StatementReader) -> SchemaChange | None:
    """Read a statement that changes structures. Return None if the first words belong
    to any other kind of statement."""
    match reader.next().keyword:
        case "CREATE":
            return _read_create(reader)
        case "ALTER":
            return _read_alter(reader)
        case "DROP":
            return _read_drop(reader)
        case "RENAME" if not reader.sees("USER"):
            return _read_rename(reader)
        case "TRUNCATE":
            reader.accept("TABLE")
            table = reader.read_table()
            skip_algorithm_and_lock(reader)
            return TruncateTable(table)
        case "REPAIR" if not (reader.sees("VIEW") or reader.sees("VIEWS")):
            return _read_repair(reader)
    return None


def _read_create(reader: StatementReader) -> SchemaChange | None:
    or_replace = reader.accept("OR", "REPLACE")
    if reader.accept("TABLE"):
        return read_create_table(reader, or_replace=or_replace)
    if reader.accept_any("DATABASE", "SCHEMA"):
        return read_create_database(reader, or_replace=or_replace)
    if or_replace and reader.accept("SEQUENCE"):
        # MariaDB drops the table or sequence that has this name.
        replaced_table = DropTables((reader.read_table(),), if_exists=True)
        reader.skip_rest()
        return replaced_table
    reader.accept_any("ONLINE", "OFFLINE")
    kind = accept_key_kind(reader)
    if reader.accept("INDEX"):
        return read_create_index(kind or "index", reader, or_replace=or_replace)
    return None


def _read_alter(reader: StatementReader) -> SchemaChange | None:
    reader.accept_any("ONLINE", "OFFLINE")
    ignore = reader.accept("IGNORE")
    reader.accept_any("ONLINE", "OFFLINE")
    if reader.accept("TABLE"):
        return read_alter_table(reader, is_ignore=ignore)
    if reader.accept_any("DATABASE", "SCHEMA"):
        return read_alter_database(reader)
    return None


def _read_drop(reader: StatementReader) -> SchemaChange | None:
    if reader.accept_any("TABLE", "TABLES"):
        if_exists = reader.accept_if_exists()
        tables = reader.read_tables()
        reader.accept_any("RESTRICT", "CASCADE")
        skip_algorithm_and_lock(reader)
        return DropTables(tables, if_exists)
    if reader.accept_any("DATABASE", "SCHEMA"):
        if_exists = reader.accept_if_exists()
        return DropDatabase(reader.read_name(), if_exists)
    reader.accept_any("ONLINE", "OFFLINE")
    if reader.accept("INDEX"):
        if_exists = reader.accept_if_exists()
        name = reader.read_name()
        reader.expect("ON")
        table = reader.read_table()
        skip_algorithm_and_lock(reader)
        return AlterTable(table, (DropElement(ElementKind.KEY, name, if_exists),))
    return None


def _read_rename(reader: StatementReader) -> SchemaChange:
    if not reader.accept_any("TABLE", "TABLES"):
        raise reader.unexpected("TABLE")
    if_exists = reader.accept_if_exists()

    def read_pair() -> tuple[TableName, TableName]:
        old = reader.read_table()
        skip_algorithm_and_lock(reader)
        reader.expect("TO")
        return old, reader.read_table()

    return RenameTables(reader.read_list(read_pair), if_exists)


def _read_repair(reader: StatementReader) -> SchemaChange:
    reader.accept_any("NO_WRITE_TO_BINLOG", "LOCAL")
    reader.accept_any("TABLE", "TABLES")
    tables = reader.read_tables()
    while reader.accept_any("QUICK", "EXTENDED", "USE_FRM", "FORCE"):
        pass
    return RepairTables(tables)


def _read_harmless(reader: StatementReader) -> Irrelevant:
    """Read a statement that is on the list `HARMLESS_STATEMENTS`. Raise CannotRead if
    it is not on the list, or if another statement follows it."""
    first_token = reader.next()
    is_ddl = first_token.keyword in ("CREATE", "ALTER", "DROP")
    if is_ddl:
        skip_attributes(reader)
    else:
        reader.accept_any("NO_WRITE_TO_BINLOG", "LOCAL")
    # SET STATEMENT … FOR runs any statement; `read_settings` reads it for MariaDB.
    first_word = "" if reader.sees("STATEMENT") else first_token.keyword
    for harmless in HARMLESS_STATEMENTS:
        for words in harmless.beginnings:
            if first_word == words[0] and reader.accept(*words[1:]):
                if not harmless.may_contain_statements and reader.skip_rest() > 0:
                    raise CannotRead(f"another statement follows {' '.join(words)}")
                return Irrelevant(" ".join(words))
    word = reader.peek().text[:40] if is_ddl else ""
    beginning = f"{first_token.keyword or 'the statement'} {word}".strip()
    raise CannotRead(f"{beginning} is not on the list of statements to pass over")


def skip_attributes(reader: StatementReader) -> None:
    """Skip attributes such as DEFINER between CREATE, ALTER or DROP and the kind of
    object."""
    reader.accept("OR", "REPLACE")
    while True:
        if reader.accept("ALGORITHM"):
            reader.expect_symbol("=")
            reader.read_name()
        elif reader.accept("DEFINER"):
            reader.expect_symbol("=")
            _skip_account(reader)
        elif reader.accept("SQL", "SECURITY"):
            reader.read_name()
        elif not reader.accept("AGGREGATE"):
            return


def _skip_account(reader: StatementReader) -> None:
    reader.read_word_or_string()
    if reader.sees_symbol("("):
        reader.read_parenthesized()
    host = reader.peek()
    if host.kind == "variable" and reader.next().text == "@":
        reader.read_word_or_string()


def _tables_of_unreadable(reader: StatementReader) -> tuple[TableName, ...] | None:
    """Return the tables that an unreadable statement may change: for CREATE TABLE and
    ALTER TABLE, the table and its new name. Return None, which stands for any table,
    for all other statements and if the names cannot be read."""
    reader.at = 0
    try:
        read_settings(reader)
        first = reader.accept_any("CREATE", "ALTER")
        reader.accept("OR", "REPLACE")
        reader.accept("IGNORE")
        if not first or not reader.accept("TABLE"):
            return None
        reader.accept_if_not_exists()
        reader.accept_if_exists()
        tables = [reader.read_table()]
        while not reader.is_over:
            if reader.next().keyword in ("RENAME", "TABLE") and first == "ALTER":
                reader.accept_any("TO", "AS")
                reader.accept_symbol("=")
                tables.append(reader.read_table())
    except CannotRead:
        return None
    return tuple(dict.fromkeys(tables))


# -- SET STATEMENT --------------------------------------------------------------------

# MariaDB parses the whole text of `SET STATEMENT variable=value, … FOR statement` under
# the session's variables, then sets the new values, and logs these with the statement.
# So if it sets `sql_mode`, the log does not say under which mode the text was parsed.

_LOGGED_VARIABLES: Final = frozenset(
    {
        "character_set_server",
        "collation_server",
        "explicit_defaults_for_timestamp",
        "sql_mode",
        "time_zone",
        "timestamp",
    }
)
"""Variables whose values are logged in the statement's event."""

_NEUTRAL_VARIABLES: Final = frozenset(
    """
    alter_algorithm analyze_sample_percentage aria_repair_threads aria_sort_buffer_size
    binlog_alter_two_phase binlog_annotate_row_events binlog_format binlog_row_image
    bulk_insert_buffer_size check_constraint_checks foreign_key_checks gtid_domain_id
    gtid_seq_no histogram_size histogram_type idle_readonly_transaction_timeout
    idle_transaction_timeout idle_write_transaction_timeout innodb_lock_wait_timeout
    innodb_snapshot_isolation innodb_strict_mode innodb_table_locks innodb_tmpdir
    interactive_timeout join_buffer_size lc_messages lock_wait_timeout log_disabled_statements
    log_queries_not_using_indexes log_slow_admin_statements log_slow_query log_slow_query_time
    log_slow_rate_limit log_warnings long_query_time low_priority_updates max_allowed_packet
    max_error_count max_heap_table_size max_session_mem_used max_statement_time
    myisam_repair_threads myisam_sort_buffer_size net_read_timeout net_write_timeout
    note_verbosity old_alter_table optimizer_switch profiling progress_report_time
    pseudo_thread_id read_buffer_size read_rnd_buffer_size server_id skip_parallel_replication
    skip_replication slow_query_log sort_buffer_size sql_log_bin sql_notes sql_warnings
    system_versioning_alter_history tmp_disk_table_size tmp_memory_table_size tmp_table_size
    transaction_isolation tx_isolation unique_checks use_stat_tables wait_timeout wsrep_on
    wsrep_osu_method
    """.split()  # noqa: SIM905 - a list literal would have a line for each name
)
"""Variables that affect neither structures nor stored values."""

_ENGINE_VARIABLES: Final = ("default_storage_engine", "storage_engine")


def read_settings(reader: StatementReader) -> tuple[str | None, tuple[str, ...]]:
    """Read each `SET STATEMENT … FOR` before the statement itself. Return the default
    engine of new tables, if it is set, and the names of variables that may change the
    statement's effect."""
    engine: str | None = None
    unknown_variables: list[str] = []
    while reader.context.facts.is_mariadb and reader.accept("SET", "STATEMENT"):
        for variable, tokens in reader.read_list(lambda: _read_assignment(reader)):
            is_name = len(tokens) == 1 and tokens[0].kind in ("word", "string")
            if is_name and variable in _ENGINE_VARIABLES:
                is_default = tokens[0].keyword == "DEFAULT"
                engine = None if is_default else engine_name(tokens[0].text, reader.context.facts)
            elif variable not in _LOGGED_VARIABLES | _NEUTRAL_VARIABLES:
                unknown_variables.append(variable)
        reader.expect("FOR")
    return engine, tuple(unknown_variables)


def _read_assignment(reader: StatementReader) -> tuple[str, tuple[Token, ...]]:
    """Return a variable's name in lower case, and the tokens of its value."""
    variable = reader.read_name().lower()
    if not reader.accept_symbol(":="):
        reader.expect_symbol("=")
    tokens: list[Token] = []
    depth = 0
    while depth or not (reader.sees("FOR") or reader.sees_symbol(",")):
        if reader.is_over:
            raise reader.unexpected("FOR")
        depth += reader.sees_symbol("(") - reader.sees_symbol(")")
        tokens.append(reader.next())
    return variable, tuple(tokens)


def _may_set_mode(text: str, context: StatementContext) -> bool:
    """Return whether SET STATEMENT may set `sql_mode`. In this case the event has the
    new mode, but the server parsed the text under the session's mode."""
    if not context.facts.is_mariadb or "sql_mode" not in text.lower():
        return False
    try:
        return StatementReader(text, context).sees("SET", "STATEMENT")
    except CannotRead:
        return True


def _read_under_all_modes(text: str, context: StatementContext, reading: Reading) -> Reading:
    """Return the reading if it is the same under every `sql_mode`, else
    `NotUnderstood`. A statement that defines a column is always `NotUnderstood`: the
    column's type and default depend on more modes than the two that govern quoting."""
    modes = (
        context.sql_mode & ~(ANSI_QUOTES | NO_BACKSLASH_ESCAPES) | quotes | escapes
        for quotes, escapes in product((0, ANSI_QUOTES), (0, NO_BACKSLASH_ESCAPES))
    )
    readings = [_read_text(text, replace(context, sql_mode=mode)) for mode in modes]
    if not _defines_columns(reading) and all(other == reading for other in readings):
        return reading
    possible_tables = {_possible_tables(other) for other in readings}
    reason = "SET STATEMENT changes sql_mode, and the log does not tell the session's own"
    return NotUnderstood(reason, possible_tables.pop() if len(possible_tables) == 1 else None)
