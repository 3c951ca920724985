"""Rules about the binary log: its content, its safety in a crash, and its retention
compared with the schedule of runs.

Variables: MySQL manual, "Binary Logging Options and Variables", "Binary Log
Expiration"; MariaDB documentation, "Replication and Binary Log System Variables",
"Purging Log Files"; Amazon RDS user guide, "mysql.rds_set_configuration".
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import lru_cache
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
from lockstep.pipeline.snapshot.log_retention import ReadingTime, log_retention, week_setting
from lockstep.pipeline.values.errors import LockstepError, ServerSettings
from lockstep.pipeline.values.shown import duration_text

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

_ADVISED_RULES: Final = (
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
        "a consistent read may match no place in the log, so `verify` compares a table row by row "
        "while sessions write to it",
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
"""Settings that only `check` reports. Variables that the server does not have are
skipped."""


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
        yield Fine("its files are encrypted, but a dump sends events in plain text: keep TLS on")


def _judge_compression(evidence: SourceEvidence) -> Iterator[RuleVerdict]:
    settings = map(evidence.variable, ("binlog_transaction_compression", "log_bin_compress"))
    if "ON" in settings:
        yield Fine("it is compressed, which costs some time and has no other effect")


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
    *_ADVISED_RULES,
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
        "nothing: a dump is not encrypted by it",
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


# -- how long it is kept ---------------------------------------------------------------


_MIN_RETENTION: Final = timedelta(days=2)
"""Shortest retention that survives a weekend without runs."""

_PAUSES_KEPT: Final = 3
"""The log should be kept for this many of the schedule's longest pauses, so that two
failed runs in a row lose nothing."""

_SEARCH_WINDOW: Final = timedelta(days=100)
_DAILY_SEARCH_WINDOW: Final = timedelta(days=2)
"""Time within which a schedule is searched for its longest pause; the shorter one is
enough for a schedule that is the same every day."""

_MIN_STEP: Final = timedelta(hours=6)
"""Shortest time between two moments of that search."""

_ONE_WEEK_HINT: Final = set_global_hint(*week_setting({}))
_RDS_PATH: Final = "/rdsdbbin"


@lru_cache  # Each part of a source and Dagster's checks ask for it.
def longest_pause(cron: str, now: datetime) -> timedelta:
    """Return the longest time between two ticks of a cron expression in the 100 days
    after `now`. A result above 6 hours is exact.

    To be fast, the function looks only at moments that are as far apart as the longest
    pause so far: a longer pause contains at least one of them.
    """
    from croniter import croniter  # Runs import these rules too, and need no schedule.

    ticks = croniter(cron, now)
    _minute, _hour, *days = ticks.expanded[:5]
    until = now + (_DAILY_SEARCH_WINDOW if days == [["*"]] * 3 else _SEARCH_WINDOW)
    longest, probe = timedelta(), now
    while probe < until:
        ticks.set_current(probe, force=True)
        before = ticks.get_prev(datetime)
        after = ticks.get_next(datetime)
        longest = max(longest, after - before)
        probe = max(probe + max(longest, _MIN_STEP), after)
    return longest


def longest_pause_from_now(cron: str | None) -> timedelta | None:
    """Return the `longest_pause` from the current hour on; None without a schedule."""
    hour = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
    return None if cron is None else longest_pause(cron, hour)


def _judge_retention(evidence: SourceEvidence) -> Iterator[RuleVerdict]:
    retention = log_retention(evidence.survey.settings)
    pause = evidence.longest_pause
    if retention is None:
        yield Fine("logs are kept until somebody purges them; watch the disk")
        return
    kept = f"logs are kept for {duration_text(retention)}"
    cure = set_global_hint(*week_setting(evidence.survey.settings))
    if pause is not None and retention < _PAUSES_KEPT * pause:
        loses_position = retention <= pause
        consequence = "a failed run or two lose the position"
        if loses_position:
            consequence = "the position would be lost"
        yield Fault(
            f"{kept}, and the schedule's longest pause is {duration_text(pause)}: {consequence}",
            cure=cure,
            level="refusal" if loses_position else None,
        )
    elif retention < _MIN_RETENTION:
        yield Fault(f"{kept}: a longer pause loses the position", cure=cure)
    else:
        yield Fine(kept)


def _judge_load_time(evidence: SourceEvidence) -> Iterator[RuleVerdict]:
    settings = evidence.survey.settings
    reading_time = ReadingTime(log_retention(settings), evidence.plan.snapshot.max_seconds)
    if reading_time.shortening_sentence is not None:
        yield Fault(reading_time.shortening_sentence, cure=set_global_hint(*week_setting(settings)))


def _judge_size_limit(evidence: SourceEvidence) -> Iterator[RuleVerdict]:
    for name in ("max_binlog_total_size", "binlog_space_limit"):
        limit = int(evidence.variable(name) or 0)
        if limit:
            yield Fault(
                f"{name} is {limit} bytes: a burst of writes purges logs before they are read",
                cure=set_global_hint(name, "0"),
            )
            return


def _judge_managed_service(evidence: SourceEvidence) -> Iterator[RuleVerdict]:
    folder = evidence.variable("basedir") or ""
    if folder.startswith(_RDS_PATH) or evidence.variable("aurora_version") is not None:
        yield Fault("this looks like Amazon RDS, which purges logs as soon as it can")


RETENTION_RULES: Final = with_topic(
    "retention",
    CheckRule(
        "retention",
        "binlog_expire_logs_seconds, expire_logs_days, binlog_expire_logs_auto_purge, and the "
        "longest pause of the schedule",
        "warning",
        "logs that are purged before they are read lose the position (warning below "
        f"{_PAUSES_KEPT} pauses or {_MIN_RETENTION.days} days, refusal below one pause)",
        _ONE_WEEK_HINT,
        _judge_retention,
    ),
    CheckRule(
        "reading tables",
        "binlog_expire_logs_seconds, against `max_seconds` under [sources.snapshot]",
        "warning",
        "a run reads tables for at most half of the time that the log is kept: so reading takes "
        "more runs, and a table that cannot be cut into chunks may never be read",
        _ONE_WEEK_HINT,
        _judge_load_time,
    ),
    CheckRule(
        "log size limit",
        "max_binlog_total_size, binlog_space_limit",
        "warning",
        "logs are purged by size, however long they should be kept",
        set_global_hint("max_binlog_total_size", "0"),
        _judge_size_limit,
    ),
    CheckRule(
        "managed service",
        "signs of Amazon RDS (basedir, aurora_version)",
        "warning",
        "it purges logs by a setting of its own",
        "call mysql.rds_set_configuration('binlog retention hours', 168);",
        _judge_managed_service,
    ),
)
