"""MariaDB's `SET STATEMENT variable=value, … FOR statement`, which is logged as it was written.

MariaDB parses the whole text under the session's variables, then sets the new ones, and logs the
context with these. So a statement that sets `sql_mode` was parsed under a mode that the log does
not have.
"""

from __future__ import annotations

from typing import Final

from lockstep.pipeline.schema.statements.reader import StatementReader, Token
from lockstep.pipeline.schema.statements.table_statements import engine_name

_LOGGED: Final = frozenset(
    {"character_set_server", "collation_server", "explicit_defaults_for_timestamp"}
    | {"sql_mode", "time_zone", "timestamp"}
)
"""Variables whose values during the statement are in its event."""

_NEUTRAL: Final = frozenset(
    {"alter_algorithm", "analyze_sample_percentage", "aria_repair_threads"}
    | {"aria_sort_buffer_size", "binlog_alter_two_phase", "binlog_annotate_row_events"}
    | {"binlog_format", "binlog_row_image", "bulk_insert_buffer_size", "check_constraint_checks"}
    | {"foreign_key_checks", "gtid_domain_id", "gtid_seq_no", "histogram_size", "histogram_type"}
    | {"idle_readonly_transaction_timeout", "idle_transaction_timeout"}
    | {"idle_write_transaction_timeout", "innodb_lock_wait_timeout", "innodb_snapshot_isolation"}
    | {"innodb_strict_mode", "innodb_table_locks", "innodb_tmpdir", "interactive_timeout"}
    | {"join_buffer_size", "lc_messages", "lock_wait_timeout", "log_disabled_statements"}
    | {"log_queries_not_using_indexes", "log_slow_admin_statements", "log_slow_query"}
    | {"log_slow_query_time", "log_slow_rate_limit", "log_warnings", "long_query_time"}
    | {"low_priority_updates", "max_allowed_packet", "max_error_count", "max_heap_table_size"}
    | {"max_session_mem_used", "max_statement_time", "myisam_repair_threads"}
    | {"myisam_sort_buffer_size", "net_read_timeout", "net_write_timeout", "note_verbosity"}
    | {"old_alter_table", "optimizer_switch", "profiling", "progress_report_time"}
    | {"pseudo_thread_id", "read_buffer_size", "read_rnd_buffer_size", "server_id"}
    | {"skip_parallel_replication", "skip_replication", "slow_query_log", "sort_buffer_size"}
    | {"sql_log_bin", "sql_notes", "sql_warnings", "system_versioning_alter_history"}
    | {"tmp_disk_table_size", "tmp_memory_table_size", "tmp_table_size", "transaction_isolation"}
    | {"tx_isolation", "unique_checks", "use_stat_tables", "wait_timeout", "wsrep_on"}
    | {"wsrep_osu_method"}
)
"""Variables that affect neither structures nor stored values."""

_ENGINE: Final = frozenset({"default_storage_engine", "storage_engine"})


def read_settings(reader: StatementReader) -> tuple[str | None, tuple[str, ...]]:
    """Read each `SET STATEMENT … FOR` before the statement itself. Return the engine for tables
    whose definition names none, and variables that may change what the statement does."""
    engine: str | None = None
    unknown: list[str] = []
    while reader.context.facts.mariadb and reader.accept("SET", "STATEMENT"):
        for variable, tokens in reader.listed(lambda: _assignment(reader)):
            if variable in _ENGINE and len(tokens) == 1 and tokens[0].kind in ("word", "string"):
                is_default = tokens[0].keyword == "DEFAULT"
                engine = None if is_default else engine_name(tokens[0].text, reader.context.facts)
            elif variable not in _LOGGED | _NEUTRAL:
                unknown.append(variable)
        reader.expect("FOR")
    return engine, tuple(unknown)


def _assignment(reader: StatementReader) -> tuple[str, tuple[Token, ...]]:
    """Return a variable's name in lower case, and the tokens of its value."""
    variable = reader.name().lower()
    if not reader.accept_symbol(":="):
        reader.expect_symbol("=")
    tokens: list[Token] = []
    depth = 0
    while depth or not (reader.sees("FOR") or reader.sees_symbol(",")):
        if reader.over:
            raise reader.unexpected("FOR")
        depth += reader.sees_symbol("(") - reader.sees_symbol(")")
        tokens.append(reader.next())
    return variable, tuple(tokens)
