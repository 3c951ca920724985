"""All errors of Lockstep, one class per situation that an operator can tell apart.

A class says who has to act (`recovery`). Its docstring says what has happened and, in a
second paragraph, what to do in general: docs/reference.md shows both. An error says
what to type next (`hint`). The adapters in `resources` translate the exceptions of
their drivers: they raise one of these errors with the driver's exception as its cause.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum, StrEnum
from typing import ClassVar

from lockstep.pipeline.values.shown import printable


class Recovery(Enum):
    """The party that has to act after an error: the author of the configuration, nobody,
    or an operator. The value is the exit code of the process. Dagster tries a run again
    only after RETRY. The ledger keeps the member's name with each failed attempt."""

    CONFIGURATION = 2
    RETRY = 3
    OPERATOR = 5

    @property
    def exit_code(self) -> int:
        return self.value


class LockstepError(Exception):
    """Base of all errors; never raised itself.

    `message` is one sentence that names the object concerned, `hint` says what to do or
    type next, and `listed` are lines that follow the message. None of them ever
    contains a secret or a row's value. `is_recorded`: the ledger already has the error,
    as a decision that refused a run.
    """

    json_keys: ClassVar = ("kind", "message", "hint")

    recovery: ClassVar[Recovery]

    def __init__(self, message: str, *, hint: str, listed: Iterable[str] = ()) -> None:
        self.message = "\n  ".join(map(printable, (message, *listed)))
        self.hint = printable(hint, keep="\n")
        super().__init__(self.message)
        self.add_note(f"hint: {self.hint}")  # Python prints it below the message
        self.is_recorded = False

    @property
    def kind(self) -> str:
        return type(self).__name__

    def __str__(self) -> str:
        return self.message


# -- configuration ---------------------------------------------------------------


class ConfigurationError(LockstepError):
    """lockstep.toml, a secret or the machine's set-up is wrong.

    Correct what the message names.
    """

    recovery = Recovery.CONFIGURATION


class NotYet(LockstepError):
    """The feature is designed, but this version does not have it.

    Do without it, as the hint says.
    """

    recovery = Recovery.CONFIGURATION


class SecretMissing(ConfigurationError):
    """The variable or file of an env: or file: reference does not exist.

    Set the variable, or make the file readable for the account that does the runs.
    """


class AccessDenied(ConfigurationError):
    """The server does not accept the account or its password.

    Check `user` and `password` of the source, or `[ledger] dsn`.
    """


class HostUnknown(ConfigurationError):
    """The host name does not resolve.

    Check `host` of the source, or `[ledger] dsn`.
    """


class NothingMatches(ConfigurationError):
    """No table of the source matches a pattern.

    `lockstep tables` lists what there is.
    """


class SpanRefused(ConfigurationError):
    """A span of the past lies outside the captured batches, or ends before it begins.

    Name the span by moments, GTIDs or runs that `lockstep status` shows.
    """


class ConditionRefused(ConfigurationError):
    """A condition for rows to read again is invalid, or the table does not allow one.

    Correct the condition, or read the whole table: `lockstep reload TABLE --from source
    --reason …`.
    """


class PastRefused(ConfigurationError):
    """The lake does not have the requested past: its changes were deleted, are not
    captured yet, or were never captured.

    Choose the earliest place that the hint names, or let `lockstep run` capture more of
    the log.
    """


class ConsumerUnknown(ConfigurationError):
    """The source's changelog has no consumer of that name.

    Create it with `lockstep.make_consumer`.
    """


class JavaMissing(ConfigurationError):
    """Spark needs Java 17 or newer.

    Install Java 17 or newer, or set JAVA_HOME.
    """


class SetupIncomplete(ConfigurationError):
    """Something that `lockstep setup` provides is missing, such as Delta's jars.

    Type `lockstep setup`, or the `pip install` of the hint.
    """


class TlsRefused(ConfigurationError):
    """The connection could not be secured as configured.

    Set `tls_ca`, and `host` to a name that the certificate has; a self-signed
    certificate needs `tls = "required"`.
    """


# -- try again -------------------------------------------------------------------


class TemporaryTrouble(LockstepError):
    """Base of errors whose cause may be gone at a later try; never raised itself."""

    recovery = Recovery.RETRY


class SourceUnavailable(TemporaryTrouble):
    """MySQL refuses connections, or the connection was lost.

    Start the server; if it is up, look at its error log, and at proxies.
    """


class LedgerUnavailable(TemporaryTrouble):
    """Postgres cannot be reached, or the connection was lost.

    Start Postgres; nothing was recorded unless `lockstep status` shows it.
    """


class SourceBusy(TemporaryTrouble):
    """Another run holds the source's lock.

    Wait, or end that process; the lock is released with it, or after a minute of
    silence.
    """


class BatchesWait(TemporaryTrouble):
    """Captured batches are not merged yet, and the command needs them merged.

    Type `lockstep run`, then repeat the command.
    """


class RowsNotRead(TemporaryTrouble):
    """The rows that a condition selects cannot be read now, or their place in the log
    is unknown.

    Repeat the command; the mirror is unchanged.
    """


class LeaseLost(TemporaryTrouble):
    """Another run took over the source, or Postgres failed over to a server that lacked
    this run's lease. Nothing of this run was recorded after that.

    Do nothing; if it happens again, find out why runs hang, or what ends connections to
    Postgres (a firewall, a pooler's `server_lifetime`).
    """


class CommitConflict(TemporaryTrouble):
    """Another writer committed to the same Delta table first.

    Type `lockstep run`; if it happens every time, stop the other writer.
    """


class LakeUnavailable(TemporaryTrouble):
    """The lake is full, read-only or not reachable.

    Free space, mount the lake or start the store, then run again.
    """


class DiskFull(TemporaryTrouble):
    """A disk of this machine has no space left for Lockstep's own files.

    Free space in the folder of the message, then run again; nothing is lost.
    """


class CatalogUnavailable(TemporaryTrouble):
    """The catalog of `[catalog]` does not answer.

    Start it; the next run updates it, or `lockstep catalog --yes` does so at once.
    """


class CatalogRefused(TemporaryTrouble):
    """The catalog refuses a request about one entry.

    Look at the catalog's log, then type `lockstep catalog --yes`.
    """


class StreamEndedEarly(TemporaryTrouble):
    """The server's stream ended before the run's end was reached.

    Run again; if it happens again, look at the server's error log.
    """


class SourceMoving(TemporaryTrouble):
    """The source or the lake changed during a step that allows no change, such as a
    comparison.

    Run again; if it happens again, end what keeps changing or locking the table.
    """


class StructureMoved(TemporaryTrouble):
    """A table that is to be read does not have the expected structure.

    Run again: the run reads the structure again.
    """


# -- an operator must decide -----------------------------------------------------


class OperatorNeeded(LockstepError):
    """Base of errors that only a person can resolve; never raised itself."""

    recovery = Recovery.OPERATOR


class StartNotChosen(OperatorNeeded):
    """The source has neither a cursor nor a configured start.

    Set `start` in lockstep.toml: `"snapshot"`, `"earliest"`, `"latest"` or a place.
    """


class StartUnreachable(OperatorNeeded):
    """The server does not have the chosen start: it lacks the file, or the file is
    shorter.

    Choose a place that SHOW BINARY LOGS lists.
    """


class NotAnEventBoundary(OperatorNeeded):
    """The chosen offset is not the beginning of an event.

    Choose the place that the hint names.
    """


class MomentOutOfRange(OperatorNeeded):
    """A moment lies before the beginning of the server's log, or in the future.

    Choose a moment that the log has, `earliest` or `latest`.
    """


class EndNotReached(OperatorNeeded):
    """The server's log lacks GTIDs of the set with which a run was told to end.

    Choose GTIDs that the server has executed.
    """


class HistoryRewritten(OperatorNeeded):
    """The log at the cursor is not the log that was read.

    If its log was only reset, or its data restored, accept what is missing: `lockstep
    start-at earliest --reason …`, `lockstep run`, `lockstep verify --repair`. If it is
    another server, begin again under a new source name.
    """


class HistoryUnproven(OperatorNeeded):
    """Nothing in the server's log proves that its history is the one that was read.

    If it is the same history, type `lockstep start-at gtid:<set> --reason …`, as the
    hint says, then `lockstep verify`.
    """


class SourceChanged(OperatorNeeded):
    """Another server answers at the source's address.

    Point the source at the server that was read, or set `on_source_changed =
    "timestamp"`.
    """


class SourceDiverged(OperatorNeeded):
    """The server lacks transactions that were read, or that the chosen start includes.

    Let the server catch up, or point the source at one that has them. If they are lost
    for good, `lockstep undo RUN` takes the runs back that read them, as the hint says.
    """


class StartBehindCursor(OperatorNeeded):
    """The chosen start lies before the end of an acknowledged or captured batch.

    Choose a later place; a replay reads a span of the past again.
    """


class PreparedBeforeStart(OperatorNeeded):
    """An XA transaction was prepared before the source's start, so its rows would be
    missing.

    Wait until it ends (`xa recover` lists it), or start before its prepare.
    """


class TransactionsWithoutGtid(OperatorNeeded):
    """The log has anonymous transactions that cannot be read: either reading continues
    after a GTID set, which does not say where they are, or the server's `gtid_mode` keeps
    it from sending them.

    Type `lockstep start-at PLACE --reason …`, or set `gtid_mode = ON_PERMISSIVE` until
    they are read.
    """


class SegmentsLost(OperatorNeeded):
    """Files of a batch, or the kept rows of a prepared XA transaction, are damaged or
    missing, and the lake shows part of what was read with them.

    Restore the files from a copy of the lake; if there is none, do what the hint says.
    """


class NoRuleApplies(OperatorNeeded):
    """The facts match no rule of the table of starts, which is a defect of Lockstep.

    Report it, with what `lockstep status --json` prints.
    """


class ServerSettings(OperatorNeeded):
    """A run cannot work with the server's settings.

    Set at the server what the hint says.
    """


class PrivilegeMissing(OperatorNeeded):
    """The account lacks a privilege.

    Type the GRANT of the hint.
    """


class SourceRefused(OperatorNeeded):
    """MySQL answered a query with an error that does not concern a single table.

    Correct at the server what its error names, then run again.
    """


class LogStops(OperatorNeeded):
    """Base of errors about an event or statement that no run can pass; never raised
    itself.

    `event_place`: the place of the event, or "" if the hint already says what to type
    to continue after it. `transaction_end`: the end of the last transaction before the
    event, up to which the log can be captured, or "" if unknown.
    """

    def __init__(
        self, message: str, *, hint: str, event_place: str = "", transaction_end: str = ""
    ) -> None:
        super().__init__(message, hint=hint)
        self.event_place = event_place
        self.transaction_end = transaction_end


class UnsupportedStatement(LogStops):
    """A statement in the log changes a captured table in a way that Lockstep cannot
    follow.

    All transactions before it are captured. The hint names the place after it and, if the
    statement was logged instead of row events, the setting that passes over it.
    """


class UnsupportedEvent(LogStops):
    """The log has an event whose type is not on the allow-list.

    All transactions before it are captured. Wait for a version that reads it, or continue
    after it with `lockstep start-at`.
    """


class PreparedElsewhere(LogStops):
    """The log commits an XA transaction that was prepared before the source's start.

    Start before that prepare, or after the commit with `lockstep start-at PLACE
    --reason …`, then `lockstep verify --repair`.
    """


class DamagedEvent(LogStops):
    """Bytes of the log violate its grammar or do not match their checksum.

    Restore the file if there is an intact copy; else continue after it with `lockstep
    start-at`, then `lockstep verify --repair`.
    """


class TransactionsMissing(OperatorNeeded):
    """The server has executed transactions that its log does not have.

    Find out why (a restore, filters of the log, RESET). Nothing was recorded.
    """


class ForeignCommit(OperatorNeeded):
    """A table in the lake has a commit that Lockstep did not make, or lacks one that it
    made.

    Find out who wrote it; then type `lockstep reload TABLE --reason …` for a mirror,
    `lockstep resume TABLE` for a changelog, `lockstep recover` for a folder.
    """


class TableQuarantined(OperatorNeeded):
    """A command needs all changes of a table that is quarantined from some position on.

    Bring the table back, or read up to there with `incomplete=True`.
    """


class LedgerRefused(OperatorNeeded):
    """A constraint of the ledger refused a step that was out of order. Nothing was
    changed.

    Do what the hint says.
    """


class ConsumerRefused(LedgerRefused):
    """A step of a consumer is unknown, repeated or out of order. Nothing was changed.

    Acknowledge the oldest delivery first, or roll back.

    `rule`: the name of the broken rule, for programs.
    """

    def __init__(self, message: str, *, hint: str, rule: str = "") -> None:
        super().__init__(message, hint=hint)
        self.rule = rule


class LedgerNewer(OperatorNeeded):
    """The ledger was written by a newer Lockstep.

    Use that version, or restore the ledger's backup from before the upgrade.
    """


class PositionPurged(OperatorNeeded):
    """The log file of the cursor is no longer on the server.

    Restore the file, or accept the gap: `lockstep start-at earliest --reason …`, then
    `lockstep verify --repair`. Keep logs longer.
    """


class SchemaUnknownAt(OperatorNeeded):
    """The log has rows of a captured table at a position where its structure is
    unknown.

    Start at the place that the hint names, or later, or exclude the table.
    """


class VersionSetUnknown(OperatorNeeded):
    """No acknowledged batch shows the source, or one of its tables, as of the requested
    place.

    Choose a place that `lockstep versions --list` shows.
    """


class VersionGone(OperatorNeeded):
    """A version of a mirror can no longer be read: its log or files were deleted, or
    its folder belongs to another table.

    Read as of a later place; keep versions longer with `keep` under `[lake]`.
    """


# -- one table -------------------------------------------------------------------


class Need(StrEnum):
    """Something that a mirror (the Delta table with a table's current rows) lacks and
    cannot get by reading on in the log. The ledger keeps the first five; the others are
    computed from settings and from the server's log files."""

    ROWS = "rows"
    """All rows: they are not in the log."""
    STRUCTURE = "structure"
    """The structure that the log shows, which is not the history's. The log alone would
    stop the table at the same place again. A person may give the structure; otherwise
    all rows are read."""
    COLUMNS = "columns"
    """The values of new columns, which differ from row to row and are in no log."""
    MIRROR = "mirror"
    """A mirror: the table has none, or one that refused a write."""
    CONSENT = "consent"
    """All rows, but only after a person's `resume` has consented to what the mirror
    will show."""
    SHAPE = "shape"
    """All rows in the shape of the present settings: the mirror shows more than these
    allow."""
    LOG = "log"
    """Part of the log, which was purged before it was read."""


class StoppedBy(StrEnum):
    """The party that stopped a table, which decides how the table starts again."""

    RUN = "run"
    """A run: the next one starts it by itself."""
    SYSTEM = "system"
    """Lockstep: it waits until a person resumes it or has it reloaded."""
    PERSON = "person"
    """A person paused it: it waits until a person resumes it or has it reloaded."""


class TableError(Exception):
    """An error that concerns one table: a run stops capturing and merging it, and the
    other tables continue.

    The steps of a run catch it and record it in the ledger, so a user never sees the
    exception. `reason` is one sentence, and `hint` says in words how to cure it.
    `need`: what the table lacks besides the log's changes. `by`: RUN if the next run
    can supply that without a person.
    """

    def __init__(
        self,
        reason: str,
        *,
        hint: str,
        need: Need | None = None,
        by: StoppedBy = StoppedBy.SYSTEM,
    ) -> None:
        self.reason = printable(reason)
        self.hint = printable(hint, keep="\n")
        super().__init__(self.reason)
        self.need, self.by = need, by


class NotSampled(TableError):
    """No sample of the table's rows can be compared, only the whole table."""


class StructureUnknown(TableError):
    """The log has rows of a table whose structure is unknown."""


class ValueLeftOut(TableError):
    """The log does not contain a value of a row, so the table has to be read from the
    source."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason, hint="read it from the source")


class TableBusy(TableError):
    """Other sessions keep a table from being read now, so it waits for the next run."""


class MirrorRefused(TableError):
    """A table's mirror cannot be read or written, and has to be replaced."""
