"""Rules about the binary log: its content, and its safety in a crash. How long it is
kept: `retention`.

Variables: MySQL manual, "Binary Logging Options and Variables"; MariaDB documentation,
"Replication and Binary Log System Variables".
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from lockstep.pipeline.check.findings import (
    CheckRule,
    Fault,
    Fine,
    Level,
    RuleVerdict,
    RunEvidence,
    SourceEvidence,
    with_topic,
)
from lockstep.pipeline.values.errors import LockstepError, ServerSettings

_OLDEST_VERSIONS: Final = {"mysql": (5, 7, 7), "mariadb": (10, 5, 0)}
"""The first versions whose logs are read: MySQL logs XA PREPARE since 5.7.7, and
MariaDB logs metadata of columns (binlog_row_metadata) since 10.5."""

_PRODUCT_NAMES: Final = {"mysql": "MySQL", "mariadb": "MariaDB"}
_VERSION_NUMBER = re.compile(r"(\d+)\.(\d+)(?:\.(\d+))?")


def set_global_hint(name: str, value: str, *, for_sessions: bool = False) -> str:
    """Return a SET GLOBAL statement with a note on making it permanent by the
    configuration file: only MySQL has SET PERSIST. `for_sessions`: open sessions keep
    the former value."""
    note = (
        ", and let applications reconnect: open sessions keep their value" if for_sessions else ""
    )
    return f"set global {name} = {value}; (and put it into the server's configuration{note})"


def _variable_rule(
    name: str,
    values: tuple[str, ...],
    level: Level,
    consequence: str,
    cure: str,
    error: type[LockstepError] | None = None,
) -> CheckRule[RunEvidence | SourceEvidence]:
    """Return the rule that a global variable must have one of these values. It does not
    apply to servers without the variable."""

    def judge(evidence: RunEvidence | SourceEvidence) -> Iterator[RuleVerdict]:
        value = evidence.variable(name)
        if value is None:
            return
        if value.upper() in values:
            yield Fine(f"{name} = {value or repr(value)}")
        else:
            yield Fault(f"{name} is {value!r}: {consequence}")

    wanted = " or ".join(value or "''" for value in values)
    return CheckRule(
        name, f"global variable, wanted: {wanted}", level, consequence, cure, judge, error
    )


_REQUIRED_RULES: Final = (
    _variable_rule(
        "log_bin",
        ("ON",),
        "refusal",
        "the server writes no binary log",
        "set log_bin in the server's configuration and restart it",
        ServerSettings,
    ),
    _variable_rule(
        "binlog_format",
        ("ROW",),
        "refusal",
        "statements instead of rows would be logged",
        set_global_hint("binlog_format", "'ROW'", for_sessions=True),
        ServerSettings,
    ),
    _variable_rule(
        "binlog_row_value_options",
        ("",),
        "refusal",
        "JSON documents would be logged in part",
        set_global_hint("binlog_row_value_options", "''", for_sessions=True),
        ServerSettings,
    ),
)
"""Global settings without which a run refuses to read. A session may differ from them;
then a run stops at the session's events."""

_CHECKED_RULES: Final = (
    _variable_rule(
        "binlog_row_image",
        ("FULL", "FULL_NODUP"),
        "warning",
        "rows are logged in part: merges look up the missing columns, which costs more; changelogs "
        "have NULL in them; a table is quarantined if the row is not in its mirror, if the log "
        "identifies its rows by another key, or if MariaDB leaves columns out of an update",
        set_global_hint("binlog_row_image", "'FULL'", for_sessions=True),
    ),
    _variable_rule(
        "binlog_checksum",
        ("CRC32",),
        "warning",
        "a damaged event would look like an intact one",
        set_global_hint("binlog_checksum", "'CRC32'"),
    ),
    _variable_rule(
        "sync_binlog",
        ("1",),
        "warning",
        "after a crash the log may lack committed transactions that are in the lake",
        set_global_hint("sync_binlog", "1"),
    ),
    _variable_rule(
        "innodb_flush_log_at_trx_commit",
        ("1",),
        "warning",
        "after a crash tables may lack changes that the log and the lake have",
        set_global_hint("innodb_flush_log_at_trx_commit", "1"),
    ),
    _variable_rule(
        "binlog_order_commits",
        ("ON",),
        "warning",
        "transactions may commit in another order than that of the log, so a consistent read may "
        "match no place in it; `verify` then compares rows one by one while sessions write",
        set_global_hint("binlog_order_commits", "ON"),
    ),
    _variable_rule(
        "binlog_error_action",
        ("ABORT_SERVER",),
        "warning",
        "when the log cannot be written (a full disk), the server continues without it, and "
        "changes are lost without a trace",
        set_global_hint("binlog_error_action", "'ABORT_SERVER'"),
    ),
    _variable_rule(
        "binlog_storage_engine",
        ("",),
        "refusal",
        "the log is kept inside InnoDB, a form that this version was not tested with",
        "take binlog_storage_engine out of the server's configuration and restart it",
    ),
    _variable_rule(
        "mysql56_temporal_format",
        ("ON",),
        "warning",
        "the log lacks the precision of new TIME, DATETIME and TIMESTAMP columns, and their "
        "tables would be quarantined",
        set_global_hint("mysql56_temporal_format", "ON"),
    ),
    _variable_rule(
        "gtid_strict_mode",
        ("ON",),
        "warning",
        "GTIDs may be logged out of order, so no failover could be followed by GTID",
        set_global_hint("gtid_strict_mode", "ON"),
    ),
    _variable_rule(
        "gtid_mode",
        ("ON",),
        "warning",
        "positions are tied to this one server",
        "switch GTIDs on (OFF_PERMISSIVE, ON_PERMISSIVE, ON, one step at a time), so that a "
        "failover can be followed one day",
    ),
    _variable_rule(
        "enforce_gtid_consistency",
        ("ON",),
        "warning",
        "gtid_mode cannot be switched on, and statements that GTIDs forbid go unnoticed",
        "set global enforce_gtid_consistency = WARN; (and ON, once the error log stays quiet)",
    ),
)
"""Settings that only `check` reports: a run reads the log whatever they are. Variables
that the server does not have are skipped."""


def _judge_version(evidence: RunEvidence) -> Iterator[RuleVerdict]:
    product = _PRODUCT_NAMES.get(evidence.flavour, evidence.flavour)
    match = _VERSION_NUMBER.match(evidence.version)
    oldest = _OLDEST_VERSIONS.get(evidence.flavour)
    version = tuple(int(part or 0) for part in match.groups()) if match else ()
    if oldest is None or not version:
        yield Fault(f"the server is {product} {evidence.version}, which Lockstep does not know")
    elif version < oldest:
        yield Fault(
            f"the server is {product} {evidence.version}, whose log Lockstep does not read "
            f"({'.'.join(map(str, oldest))} is the first that it reads)"
        )
    else:
        yield Fine(f"{product} {'.'.join(map(str, version))}")


def _judge_metadata(evidence: SourceEvidence) -> Iterator[RuleVerdict]:
    value = evidence.variable("binlog_row_metadata")
    if value is None:
        return
    sentence = "columns are known from the statements that made them"
    if value.upper() == "FULL":
        sentence = "the log also describes the columns, and both descriptions are compared"
    yield Fine(f"binlog_row_metadata = {value}: {sentence}")


def _judge_encryption(evidence: SourceEvidence) -> Iterator[RuleVerdict]:
    if evidence.variable("binlog_encryption", "encrypt_binlog") == "ON":
        yield Fine(
            "the log's files are encrypted, but the server sends their events in plain text: keep "
            "TLS on"
        )


def _judge_compression(evidence: SourceEvidence) -> Iterator[RuleVerdict]:
    settings = map(evidence.variable, ("binlog_transaction_compression", "log_bin_compress"))
    if "ON" in settings:
        yield Fine("the log is compressed, which costs some time and has no other effect")


RUN_RULES: Final = with_topic(
    "the log",
    CheckRule(
        "version",
        "the server's product and version",
        "refusal",
        "older servers' logs are not read",
        "use MySQL 5.7 or newer, or MariaDB 10.5 or newer",
        _judge_version,
        ServerSettings,
    ),
    *_REQUIRED_RULES,
)
CHECK_RULES: Final = with_topic(
    "the log",
    *_CHECKED_RULES,
    CheckRule(
        "binlog_row_metadata",
        "global variable; any value will do",
        "ok",
        "nothing: with FULL, the history's names, keys and members are compared with the log, "
        "and a start in the past knows its tables",
        "nothing to do",
        _judge_metadata,
    ),
    CheckRule(
        "encryption",
        "binlog_encryption, encrypt_binlog",
        "ok",
        "nothing: files are encrypted, the events that a run reads are not",
        "nothing to do",
        _judge_encryption,
    ),
    CheckRule(
        "compression",
        "binlog_transaction_compression, log_bin_compress",
        "ok",
        "nothing: both forms are read",
        "nothing to do",
        _judge_compression,
    ),
)
