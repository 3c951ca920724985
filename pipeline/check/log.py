"""Rules about how the log is written: what must be in it, and what a crash may lose.

Variables: MySQL manual, "Binary Logging Options and Variables"; MariaDB documentation,
"Replication and Binary Log System Variables".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from lockstep.pipeline.check.evidence import RunEvidence, SourceEvidence
from lockstep.pipeline.check.findings import CheckRule, Evidence, Fault, Fine, Level, Verdict, about
from lockstep.pipeline.values.errors import LockstepError, ServerSettings

_OLDEST: Final = {"mysql": (5, 7, 7), "mariadb": (10, 5, 0)}
"""The first versions whose logs are read: MySQL logs XA PREPARE since 5.7.7, and MariaDB logs
metadata of columns (binlog_row_metadata) since 10.5."""

_NAMES: Final = {"mysql": "MySQL", "mariadb": "MariaDB"}
_NOT_FULL: Final = "columns are known from the statements that made them"
_METADATA: Final = {"FULL": "the log also describes the columns, which is a second anchor"}
_NUMBER = re.compile(r"(\d+)\.(\d+)(?:\.(\d+))?")


def set_global(name: str, value: str) -> str:
    """Return the statement, and what makes it permanent; only MySQL has SET PERSIST."""
    return f"set global {name} = {value}; (and put it into the server's configuration)"


def _for_sessions(name: str, value: str) -> str:
    return (
        f"set global {name} = {value}; (and put it into the server's configuration, and let "
        "applications reconnect: open sessions keep their value)"
    )


@dataclass(frozen=True, slots=True)
class RequiredSetting:
    """A global variable that must have one of these values if the server has the variable."""

    name: str
    values: tuple[str, ...]
    level: Level
    cost: str
    cure: str

    def verdicts(self, settings: Mapping[str, str]) -> Iterator[Verdict]:
        value = settings.get(self.name)
        if value is None:
            return
        if value.upper() in self.values:
            yield Fine(f"{self.name} = {value or repr(value)}")
        else:
            yield Fault(f"{self.name} is {value!r}: {self.cost}")


_REQUIRED: Final = (
    RequiredSetting(
        "log_bin",
        ("ON",),
        "refusal",
        "the server writes no binary log",
        "set log_bin in the server's configuration and restart it",
    ),
    RequiredSetting(
        "binlog_format",
        ("ROW",),
        "refusal",
        "statements instead of rows would be logged",
        _for_sessions("binlog_format", "'ROW'"),
    ),
    RequiredSetting(
        "binlog_row_value_options",
        ("",),
        "refusal",
        "JSON documents would be logged in part",
        _for_sessions("binlog_row_value_options", "''"),
    ),
)
"""Settings without which a run refuses to read. It stops at events of a session that differs."""

_ADVISED: Final = (
    RequiredSetting(
        "binlog_row_image",
        ("FULL", "FULL_NODUP"),
        "warning",
        "rows are logged in part; what is left out is looked up in the mirror, so merges cost "
        "more, changelogs have NULL there, and a table is quarantined where the row is not in its "
        "mirror, the log identifies its rows by another key, or MariaDB leaves columns out of an "
        "update",
        _for_sessions("binlog_row_image", "'FULL'"),
    ),
    RequiredSetting(
        "binlog_checksum",
        ("CRC32",),
        "warning",
        "a damaged event would look like an intact one",
        set_global("binlog_checksum", "'CRC32'"),
    ),
    RequiredSetting(
        "sync_binlog",
        ("1",),
        "warning",
        "after a crash the log may lack what was committed and, if it was read, is in the lake",
        set_global("sync_binlog", "1"),
    ),
    RequiredSetting(
        "innodb_flush_log_at_trx_commit",
        ("1",),
        "warning",
        "after a crash tables may lack what the log, and so the lake, already shows",
        set_global("innodb_flush_log_at_trx_commit", "1"),
    ),
    RequiredSetting(
        "binlog_order_commits",
        ("ON",),
        "warning",
        "a consistent read may then match no place in the log, and `verify` compares a table that "
        "is written to row by row, which takes longer",
        set_global("binlog_order_commits", "ON"),
    ),
    RequiredSetting(
        "binlog_error_action",
        ("ABORT_SERVER",),
        "warning",
        "when the log cannot be written (a full disk), the server goes on without it and "
        "changes are lost without a trace",
        set_global("binlog_error_action", "'ABORT_SERVER'"),
    ),
    RequiredSetting(
        "binlog_storage_engine",
        ("",),
        "refusal",
        "the log is kept inside InnoDB, a form that this version was not tested with",
        "take binlog_storage_engine out of the server's configuration and restart it",
    ),
    RequiredSetting(
        "mysql56_temporal_format",
        ("ON",),
        "warning",
        "new TIME, DATETIME and TIMESTAMP columns have a form whose precision is not in "
        "the log, and their tables would be quarantined",
        set_global("mysql56_temporal_format", "ON"),
    ),
    RequiredSetting(
        "gtid_strict_mode",
        ("ON",),
        "warning",
        "GTIDs may be logged out of order, so a failover could not be followed by them",
        set_global("gtid_strict_mode", "ON"),
    ),
    RequiredSetting(
        "gtid_mode",
        ("ON",),
        "warning",
        "positions are tied to this one server",
        "switch GTIDs on (OFF_PERMISSIVE, ON_PERMISSIVE, ON, one step at a time), so that a "
        "failover can be followed one day",
    ),
    RequiredSetting(
        "enforce_gtid_consistency",
        ("ON",),
        "warning",
        "gtid_mode cannot be switched on, and statements that GTIDs forbid go unnoticed",
        "set global enforce_gtid_consistency = WARN; (and ON, once the error log stays quiet)",
    ),
)
"""Settings that only `check` reports. Variables that the server does not have are skipped."""


def _version(evidence: RunEvidence) -> Iterator[Verdict]:
    product = _NAMES.get(evidence.flavour, evidence.flavour)
    match = _NUMBER.match(evidence.version)
    oldest = _OLDEST.get(evidence.flavour)
    number = tuple(int(part or 0) for part in match.groups()) if match else ()
    if oldest is None or not number:
        yield Fault(f"the server is {product} {evidence.version}, which this version does not know")
    elif number < oldest:
        yield Fault(
            f"the server is {product} {evidence.version}, whose log this version does not read "
            f"({'.'.join(map(str, oldest))} is the first that it reads)"
        )
    else:
        yield Fine(f"{product} {'.'.join(map(str, number))}")


def _required(wanted: RequiredSetting) -> CheckRule[RunEvidence]:
    return _rule(wanted, lambda evidence: evidence.settings, error=ServerSettings)


def _advised(wanted: RequiredSetting) -> CheckRule[SourceEvidence]:
    return _rule(wanted, lambda evidence: evidence.survey.settings)


def _rule(
    wanted: RequiredSetting,
    settings: Callable[[Evidence], Mapping[str, str]],
    error: type[LockstepError] | None = None,
) -> CheckRule[Evidence]:
    values = " or ".join(value or "''" for value in wanted.values)
    return CheckRule(
        wanted.name,
        f"global variable, wanted: {values}",
        wanted.level,
        wanted.cost,
        wanted.cure,
        lambda evidence: wanted.verdicts(settings(evidence)),
        error,
    )


def _metadata(evidence: SourceEvidence) -> Iterator[Verdict]:
    value = evidence.setting("binlog_row_metadata")
    if value is not None:
        yield Fine(f"binlog_row_metadata = {value}: {_METADATA.get(value.upper(), _NOT_FULL)}")


def _encryption(evidence: SourceEvidence) -> Iterator[Verdict]:
    if evidence.setting("binlog_encryption", "encrypt_binlog") == "ON":
        yield Fine("its files are encrypted, but a dump sends events in plain text: keep TLS on")


def _compression(evidence: SourceEvidence) -> Iterator[Verdict]:
    if "ON" in (
        evidence.setting("binlog_transaction_compression"),
        evidence.setting("log_bin_compress"),
    ):
        yield Fine("it is compressed, which costs some time and has no other effect")


RUN_RULES: Final = about(
    "the log",
    CheckRule(
        "version",
        "the server's product and version",
        "refusal",
        "older servers' logs are not read",
        "use MySQL 5.7 or newer, or MariaDB 10.5 or newer",
        _version,
        ServerSettings,
    ),
    *map(_required, _REQUIRED),
)
CHECK_RULES: Final = about(
    "the log",
    *map(_advised, _ADVISED),
    CheckRule(
        "binlog_row_metadata",
        "global variable; any value will do",
        "ok",
        "nothing: names, keys and members of columns come from the history of statements; FULL "
        "adds a second anchor, and lets a start in the past know its tables",
        "nothing to do",
        _metadata,
    ),
    CheckRule(
        "encryption",
        "binlog_encryption, encrypt_binlog",
        "ok",
        "nothing: a dump is not encrypted by it",
        "nothing to do",
        _encryption,
    ),
    CheckRule(
        "compression",
        "binlog_transaction_compression, log_bin_compress",
        "ok",
        "nothing: both forms are read",
        "nothing to do",
        _compression,
    ),
)
