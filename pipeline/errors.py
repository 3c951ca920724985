"""Every way in which Lockstep refuses, fails or stops.

One leaf per situation an operator can tell apart. A leaf knows who has to act
(`recovery`) and what to type (`hint`); the driver's exception travels as its cause.
No driver's exception crosses a port: adapters translate.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from enum import Enum, StrEnum
from typing import ClassVar, Final, TypeVar

from pipeline.shown import shown


class Recovery(Enum):
    """Who has to act; decides Dagster's retry policy and is the exit code. The ledger keeps it by
    its name with what failed."""

    CONFIGURATION = 2
    RETRY = 3
    OPERATOR = 5

    @property
    def exit_code(self) -> int:
        return self.value


class LockstepError(Exception):
    """Base of all refusals; never raised itself.

    `message` is one sentence that names the thing concerned; `hint` is what to do or
    type next; `listed`: what the sentence ends with, a line each. None of them ever
    holds a secret or a row's value. `recorded`: the ledger keeps it
    already, as a decision that a run was refused by.
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
    """Designed, but not built in this version."""

    recovery = Recovery.CONFIGURATION


class SecretMissing(ConfigurationError):
    """An env: or file: reference leads nowhere."""


class AccessDenied(ConfigurationError):
    """The server knows us not, or not with this password."""


class HostUnknown(ConfigurationError):
    """The host name does not resolve."""


class NothingMatches(ConfigurationError):
    """No table of the source matches a pattern."""


class SpanRefused(ConfigurationError):
    """A span of the past lies outside of what was captured, or ends before it begins."""


class ConditionRefused(ConfigurationError):
    """Rows of a table cannot be read again by a condition: it is none, or the table allows none."""


class PastRefused(ConfigurationError):
    """What is asked for of the past cannot be told: not any more, not yet, or never."""


class ConsumerUnknown(ConfigurationError):
    """The source's changelog has no consumer of that name."""


class JavaMissing(ConfigurationError):
    """Spark needs Java 17 or newer."""


class SetupIncomplete(ConfigurationError):
    """Something that `lockstep setup` provides is not there (Delta's jars, say)."""


class TlsRefused(ConfigurationError):
    """The connection could not be secured as configured."""


# -- try again -------------------------------------------------------------------


class TemporaryTrouble(LockstepError):
    """Base of what a later try may get past; never raised itself."""

    recovery = Recovery.RETRY


class SourceUnavailable(TemporaryTrouble):
    """MySQL refuses connections, or the connection was lost."""


class LedgerUnavailable(TemporaryTrouble):
    """Postgres cannot be reached, or the connection was lost."""


class SourceBusy(TemporaryTrouble):
    """Another run holds the source's lock."""


class BatchesWait(TemporaryTrouble):
    """What was captured is not merged yet, and what is asked for begins behind that."""


class RowsNotRead(TemporaryTrouble):
    """The rows of a condition could not be read just now, or not joined with the log."""


class LeaseLost(TemporaryTrouble):
    """Another run took the source over; nothing of this run was recorded after that."""


class CommitConflict(TemporaryTrouble):
    """Somebody else committed to the same Delta table first."""


class LakeUnavailable(TemporaryTrouble):
    """The lake's storage cannot be written or read (full, read-only, gone)."""


class DiskFull(TemporaryTrouble):
    """A disk of this machine has no space left for Lockstep's own files."""


class CatalogUnavailable(TemporaryTrouble):
    """The catalog of `[catalog]` does not answer."""


class CatalogRefused(TemporaryTrouble):
    """The catalog does not do what it is asked about one entry."""


class StreamEndedEarly(TemporaryTrouble):
    """The server's stream ended before the run's end was reached."""


class SourceMoving(TemporaryTrouble):
    """A comparison needs the source and the lake to stand still."""


class StructureMoved(TemporaryTrouble):
    """A table is not, or no longer, built as whoever wants to read it thinks."""


# -- an operator must decide -----------------------------------------------------


class OperatorNeeded(LockstepError):
    """Base of the decisions only a person can take; never raised itself."""

    recovery = Recovery.OPERATOR


class StartNotChosen(OperatorNeeded):
    """No cursor and no configured start."""


class StartUnreachable(OperatorNeeded):
    """The chosen start is not on the server (file unknown, offset beyond it)."""


class NotAnEventBoundary(OperatorNeeded):
    """The chosen offset is not the beginning of an event."""


class MomentOutOfRange(OperatorNeeded):
    """A moment that the server's log does not reach back to, or that has not come yet."""


class EndNotReached(OperatorNeeded):
    """The server's log does not hold all GTIDs that a run was to end with."""


class HistoryRewritten(OperatorNeeded):
    """The log at the cursor is not the log that was read."""


class HistoryUnproven(OperatorNeeded):
    """The server's log cannot show that its history is the one that was read."""


class SourceChanged(OperatorNeeded):
    """Another server answers at the source's address."""


class SourceDiverged(OperatorNeeded):
    """The server lacks transactions that were read, or that a chosen start names."""


class StartBehindCursor(OperatorNeeded):
    """The chosen start lies before what is acknowledged or captured."""


class PreparedBeforeStart(OperatorNeeded):
    """An XA transaction is prepared whose rows lie before the source's start."""


class TransactionsWithoutGtid(OperatorNeeded):
    """The log holds anonymous transactions where a GTID set tells what was read, or where
    `gtid_mode` keeps the server from sending them."""


class SegmentsLost(OperatorNeeded):
    """Captured files are damaged or missing, and part of their batch is merged."""


class NoRuleApplies(OperatorNeeded):
    """The facts fit no rule of the start table: a defect, reported as a refusal."""


class ServerSettings(OperatorNeeded):
    """The server's settings cannot give what a run needs."""


class PrivilegeMissing(OperatorNeeded):
    """The account lacks a privilege."""


class LogStops(OperatorNeeded):
    """Base of what stands in the log and lets no run by; never raised itself. `at`: where, as
    far as its hint does not say yet what to type to go on behind it. `before`: the end of the
    last transaction before it, up to which the log can be captured; "" if that is unknown."""

    def __init__(self, message: str, *, hint: str, at: str = "", before: str = "") -> None:
        super().__init__(message, hint=hint)
        self.at = at
        self.before = before


class SourceRefused(OperatorNeeded):
    """MySQL answered a question with an error that is not about one table."""


class UnsupportedStatement(LogStops):
    """A statement in the log changes a captured table in a way not followed."""


class UnsupportedEvent(LogStops):
    """An event type that is not on the allow-list."""


class PreparedElsewhere(LogStops):
    """An XA transaction is committed whose prepare lies before the source's start."""


class DamagedEvent(LogStops):
    """Bytes that are not what the log's grammar or checksum demands."""


class TransactionsMissing(OperatorNeeded):
    """The server had executed transactions that its log did not show."""


class ForeignCommit(OperatorNeeded):
    """A lake table holds a commit that is not ours, or lacks one that was."""


class TableQuarantined(OperatorNeeded):
    """All changes of a table are wanted, and from some place on it has none."""


class LedgerRefused(OperatorNeeded):
    """The ledger's constraints refused a step out of order; nothing was changed."""


class ConsumerRefused(LedgerRefused):
    """A step of a changelog's consumer is out of order, a second time or unknown; nothing
    was changed. `rule`: which one it breaks, for programs."""

    def __init__(self, message: str, *, hint: str, rule: str = "") -> None:
        super().__init__(message, hint=hint)
        self.rule = rule


class LedgerNewer(OperatorNeeded):
    """The ledger was written by a newer Lockstep."""


class PositionPurged(OperatorNeeded):
    """The log file the cursor stands in is no longer on the server."""


class SchemaUnknownAt(OperatorNeeded):
    """Rows of a captured table lie at a place where nobody knows how it was built."""


class VersionSetUnknown(OperatorNeeded):
    """Nothing was acknowledged that shows a source, or a table of it, as of a place."""


class VersionGone(OperatorNeeded):
    """A version of a mirror cannot be read any more: its log or its files were cleaned up, or
    another table has its folder."""


# -- one table -------------------------------------------------------------------


class Remedy(StrEnum):
    """What makes a table whole again that is quarantined. The ledger keeps it; a hint only
    puts it in words."""

    CATCH_UP = "catch-up"
    """Once a person resumes it, the log after its place."""
    REWRITE_MIRROR = "rewrite-mirror"
    """Once a person resumes it, the log, and all of it from the source: a write to its
    mirror was refused."""
    RESUMED_RESNAPSHOT = "resumed-resnapshot"
    """Once a person resumes it, all of it from the source: the log alone cannot bring it."""
    CONSENT = "consent"
    """The same; and nothing but a person's `resume` consents to what it may show then."""
    RESNAPSHOT = "resnapshot"
    """All of it from the source, by the next run."""
    BACKFILL = "backfill"
    """Its new columns from the source, by the next run."""


BY_ITSELF: Final = (Remedy.RESNAPSHOT, Remedy.BACKFILL)
"""What the next run does without being told."""


class TableError(Exception):
    """Concerns one table only: it is quarantined, the others go on.

    Caught by the steps of a run and recorded in the ledger; never reaches a user as
    an exception. `reason` is one sentence, `hint` the cure in words, `remedy` as a value.
    """

    def __init__(self, reason: str, *, hint: str, remedy: Remedy = Remedy.CATCH_UP) -> None:
        self.reason = shown(reason)
        self.hint = shown(hint, keep="\n")
        super().__init__(self.reason)
        self.remedy = remedy


class StructureUnknown(TableError):
    """Nobody knows how a table is built whose rows are in the log."""


class ValueLeftOut(TableError):
    """A row has a value that the log does not tell: reading the table from the source does."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason, hint="read it from the source")


class TableBusy(TableError):
    """Others keep a table from being read now: it waits for the next run."""


class MirrorRefused(TableError):
    """A table's mirror cannot be read or written as it is: writing it anew is the cure."""


_START_AT: Final = re.compile(r"`(lockstep\x20start-at (?![^`]*--source)[^`]*?)( --reason [^`]*)`")

Named = TypeVar("Named", bound=LockstepError)


def named(error: Named, source: str) -> Named:
    """The same error; `lockstep start-at` in its hint says which source is meant: without it the
    command is refused where there are several."""
    error.hint = _START_AT.sub(rf"`\1 --source {source}\2`", error.hint)
    return error


@contextmanager
def naming(source: str) -> Iterator[None]:
    """What is refused inside says in its hint which source its commands are for."""
    try:
        yield
    except LockstepError as error:
        named(error, source)
        raise
