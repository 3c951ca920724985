"""All errors of Lockstep, one class per situation that an operator can tell apart.

A class says who has to act (`recovery`), an error what to type next (`hint`). A driver's
exception never crosses a port: the adapter raises one of these with the exception as its cause.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum, StrEnum
from typing import ClassVar

from lockstep.pipeline.values.shown import shown


class Recovery(Enum):
    """Who has to act after an error. The value is the process's exit code, and Dagster retries a
    run by it. The ledger keeps the member's name with each failed attempt."""

    CONFIGURATION = 2
    RETRY = 3
    OPERATOR = 5

    @property
    def exit_code(self) -> int:
        return self.value


class LockstepError(Exception):
    """Base of all errors; never raised itself.

    `message` is one sentence that names what is concerned, `hint` says what to do or type next,
    and `listed` are lines that follow the message. None of them ever contains a secret or a row's
    value. `recorded`: the ledger already has the error, as the decision that refused a run.
    """

    json_keys: ClassVar = ("kind", "message", "hint")

    recovery: ClassVar[Recovery]

    def __init__(self, message: str, *, hint: str, listed: Iterable[str] = ()) -> None:
        self.message = "\n  ".join(map(shown, (message, *listed)))
        self.hint = shown(hint, keep="\n")
        super().__init__(self.message)
        self.recorded = False

    @property
    def kind(self) -> str:
        return type(self).__name__

    def __str__(self) -> str:
        return self.message


# -- configuration ---------------------------------------------------------------


class ConfigurationError(LockstepError):
    """lockstep.toml, a secret or the machine's set-up is wrong."""

    recovery = Recovery.CONFIGURATION


class NotYet(LockstepError):
    """The feature is designed, but this version does not have it."""

    recovery = Recovery.CONFIGURATION


class SecretMissing(ConfigurationError):
    """The variable or file of an env: or file: reference does not exist."""


class AccessDenied(ConfigurationError):
    """The server does not accept the account or its password."""


class HostUnknown(ConfigurationError):
    """The host name does not resolve."""


class NothingMatches(ConfigurationError):
    """No table of the source matches a pattern."""


class SpanRefused(ConfigurationError):
    """A span of the past lies outside the captured batches, or ends before it begins."""


class ConditionRefused(ConfigurationError):
    """A condition for rows to read again is invalid, or the table does not allow one."""


class PastRefused(ConfigurationError):
    """The lake cannot show the requested past: it no longer can, cannot yet, or never will."""


class ConsumerUnknown(ConfigurationError):
    """The source's changelog has no consumer of that name."""


class JavaMissing(ConfigurationError):
    """Spark needs Java 17 or newer."""


class SetupIncomplete(ConfigurationError):
    """Something that `lockstep setup` provides is missing, such as Delta's jars."""


class TlsRefused(ConfigurationError):
    """The connection could not be secured as configured."""


# -- try again -------------------------------------------------------------------


class TemporaryTrouble(LockstepError):
    """Base of errors that may be gone at a later try; never raised itself."""

    recovery = Recovery.RETRY


class SourceUnavailable(TemporaryTrouble):
    """MySQL refuses connections, or the connection was lost."""


class LedgerUnavailable(TemporaryTrouble):
    """Postgres cannot be reached, or the connection was lost."""


class SourceBusy(TemporaryTrouble):
    """Another run holds the source's lock."""


class BatchesWait(TemporaryTrouble):
    """Captured batches are not merged yet, and the command needs them merged."""


class RowsNotRead(TemporaryTrouble):
    """The rows of a condition could not be read now, or could not be related to the log."""


class LeaseLost(TemporaryTrouble):
    """Another run took over the source. Nothing of this run was recorded after that."""


class CommitConflict(TemporaryTrouble):
    """Another writer committed to the same Delta table first."""


class LakeUnavailable(TemporaryTrouble):
    """The lake's storage cannot be written or read: it is full, read-only or not reachable."""


class DiskFull(TemporaryTrouble):
    """A disk of this machine has no space left for Lockstep's own files."""


class CatalogUnavailable(TemporaryTrouble):
    """The catalog of `[catalog]` does not answer."""


class CatalogRefused(TemporaryTrouble):
    """The catalog refuses a request about one entry."""


class StreamEndedEarly(TemporaryTrouble):
    """The server's stream ended before the run's end was reached."""


class SourceMoving(TemporaryTrouble):
    """The source or the lake changed during a comparison or another step that allows no change."""


class StructureMoved(TemporaryTrouble):
    """A table that is to be read does not have the expected structure (any longer)."""


# -- an operator must decide -----------------------------------------------------


class OperatorNeeded(LockstepError):
    """Base of errors that only a person can resolve; never raised itself."""

    recovery = Recovery.OPERATOR


class StartNotChosen(OperatorNeeded):
    """The source has neither a cursor nor a configured start."""


class StartUnreachable(OperatorNeeded):
    """The server does not have the chosen start: it lacks the file, or the file is shorter."""


class NotAnEventBoundary(OperatorNeeded):
    """The chosen offset is not the beginning of an event."""


class MomentOutOfRange(OperatorNeeded):
    """A moment lies before the beginning of the server's log, or in the future."""


class EndNotReached(OperatorNeeded):
    """The server's log lacks GTIDs of the set with which a run was told to end."""


class HistoryRewritten(OperatorNeeded):
    """The log at the cursor is not the log that was read."""


class HistoryUnproven(OperatorNeeded):
    """Nothing in the server's log proves that its history is the one that was read."""


class SourceChanged(OperatorNeeded):
    """Another server answers at the source's address."""


class SourceDiverged(OperatorNeeded):
    """The server lacks transactions that were read, or that the chosen start includes."""


class StartBehindCursor(OperatorNeeded):
    """The chosen start lies before the end of an acknowledged or captured batch."""


class PreparedBeforeStart(OperatorNeeded):
    """An XA transaction was prepared before the source's start, so its rows would be missing."""


class TransactionsWithoutGtid(OperatorNeeded):
    """The log has anonymous transactions, and either only a GTID set tells which transactions were
    read, or the server's `gtid_mode` keeps it from sending them."""


class SegmentsLost(OperatorNeeded):
    """Files of a batch are damaged or missing, and part of the batch is merged already."""


class NoRuleApplies(OperatorNeeded):
    """The facts match no rule of the start table, which is a defect of Lockstep."""


class ServerSettings(OperatorNeeded):
    """A run cannot work with the server's settings."""


class PrivilegeMissing(OperatorNeeded):
    """The account lacks a privilege."""


class LogStops(OperatorNeeded):
    """Base of errors about an event or statement that no run can pass; never raised itself.

    `at`: the place of the event, or "" if the hint already says what to type to continue after it.
    `before`: the end of the last transaction before the event, up to which the log can be captured,
    or "" if unknown.
    """

    def __init__(self, message: str, *, hint: str, at: str = "", before: str = "") -> None:
        super().__init__(message, hint=hint)
        self.at = at
        self.before = before


class SourceRefused(OperatorNeeded):
    """MySQL answered a query with an error that does not concern a single table."""


class UnsupportedStatement(LogStops):
    """A statement in the log changes a captured table in a way that Lockstep cannot follow."""


class UnsupportedEvent(LogStops):
    """The log has an event whose type is not on the allow-list."""


class PreparedElsewhere(LogStops):
    """The log commits an XA transaction that was prepared before the source's start."""


class DamagedEvent(LogStops):
    """Bytes of the log violate its grammar or do not match their checksum."""


class TransactionsMissing(OperatorNeeded):
    """The server has executed transactions that its log does not have."""


class ForeignCommit(OperatorNeeded):
    """A table in the lake has a commit that Lockstep did not make, or lacks one that it made."""


class TableQuarantined(OperatorNeeded):
    """A command needs all changes of a table that is quarantined from some position on."""


class LedgerRefused(OperatorNeeded):
    """A constraint of the ledger refused a step that was out of order. Nothing was changed."""


class ConsumerRefused(LedgerRefused):
    """A step of a consumer is unknown, repeated or out of order. Nothing was changed. `rule`: the
    name of the broken rule, for programs."""

    def __init__(self, message: str, *, hint: str, rule: str = "") -> None:
        super().__init__(message, hint=hint)
        self.rule = rule


class LedgerNewer(OperatorNeeded):
    """The ledger was written by a newer Lockstep."""


class PositionPurged(OperatorNeeded):
    """The log file of the cursor is no longer on the server."""


class SchemaUnknownAt(OperatorNeeded):
    """The log has rows of a captured table at a position where its structure is unknown."""


class VersionSetUnknown(OperatorNeeded):
    """No acknowledged batch shows the source, or one of its tables, as of the requested place."""


class VersionGone(OperatorNeeded):
    """A version of a mirror can no longer be read: its log or files were deleted, or its folder
    belongs to another table."""


# -- one table -------------------------------------------------------------------


class Need(StrEnum):
    """Something that a mirror lacks, other than the changes that the log has after the mirror's
    place. The ledger keeps the first four, because they do not follow from anything else in it. The
    others are computed."""

    ROWS = "rows"
    """All rows: they are not in the log."""
    COLUMNS = "columns"
    """The values of new columns, which differ from row to row and are in no log."""
    MIRROR = "mirror"
    """A mirror: the table has none, or one that refused a write."""
    CONSENT = "consent"
    """All rows, but only after a person's `resume` has consented to what the mirror will show."""
    SHAPE = "shape"
    """All rows in the shape of the present settings: the mirror shows more than these allow."""
    LOG = "log"
    """Part of the log, which was purged before it was read."""


class StoppedBy(StrEnum):
    """Who stopped a table, and so who starts it again."""

    RUN = "run"
    """A run: the next one starts it by itself."""
    SYSTEM = "system"
    """Lockstep: it waits until a person resumes it or has it reloaded."""
    PERSON = "person"
    """A person paused it: it waits until a person resumes it or has it reloaded."""


class TableError(Exception):
    """An error that concerns one table: the table is quarantined, and the others continue.

    The steps of a run catch it and record it in the ledger, so a user never sees the exception.
    `reason` is one sentence, and `hint` says in words how to cure it. `need`: what the table lacks
    besides the log's changes. `by`: RUN if the next run can supply that without a person.
    """

    def __init__(
        self,
        reason: str,
        *,
        hint: str,
        need: Need | None = None,
        by: StoppedBy = StoppedBy.SYSTEM,
    ) -> None:
        self.reason = shown(reason)
        self.hint = shown(hint, keep="\n")
        super().__init__(self.reason)
        self.need, self.by = need, by


class StructureUnknown(TableError):
    """The log has rows of a table whose structure is unknown."""


class ValueLeftOut(TableError):
    """The log does not contain a value of a row, so the table has to be read from the source."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason, hint="read it from the source")


class TableBusy(TableError):
    """Other sessions keep a table from being read now, so it waits for the next run."""


class MirrorRefused(TableError):
    """A table's mirror cannot be read or written and has to be replaced by a new one."""
