"""The facts from which a start is decided, and the possible decisions. Values only.

A batch is the part of the log that one run read. A cursor is the end of the last batch.
Its anchor describes the event that ends there (offset, checksum, …), so that a later
run can tell whether the log is still the one that was read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from lockstep.pipeline.model.batch import Batch, Cursor
from lockstep.pipeline.ports.source import ServerFacts
from lockstep.pipeline.values.decisions import Continuity, Override
from lockstep.pipeline.values.errors import LockstepError
from lockstep.pipeline.values.gtid import GtidSet
from lockstep.pipeline.values.places import Place, Snapshot
from lockstep.pipeline.values.policies import StartPolicies
from lockstep.pipeline.values.position import Coordinates, LogFile


class AnchorReading(StrEnum):
    """The result of comparing the log's event before the cursor with the recorded
    anchor."""

    NOT_READ = "not read"
    SAME = "the same"
    DIFFERENT = "different"


class SetReading(StrEnum):
    """The result of comparing the server's transactions with those that were read under
    the same GTIDs. Commit times or hashes of the last ones are recorded."""

    NOT_COMPARED = "not kept"
    """Nothing was recorded, or nothing is compared because the cursor's anchor is
    enough."""
    SAME = "the same"
    DIFFERENT = "different"
    PURGED = "purged"
    """The last transaction that was read is no longer in the log."""


class StartRule(StrEnum):
    """The names of the start rules, in the order of `rules.TABLE`, which has their
    conditions."""

    CHOSEN_START_UNREACHABLE = "chosen-start-unreachable"
    CHOSEN_START_BEHIND = "chosen-start-behind"
    CHOSEN_START = "chosen-start"
    HISTORY_REWRITTEN = "history-rewritten"
    SET_REUSED = "set-reused"
    RESUME_SAME_SERVER = "resume-same-server"
    SET_UNPROVEN = "set-unproven"
    RESUME_AFTER_PURGE = "resume-after-purge"
    TABLES_READ_AGAIN = "tables-read-again"
    POSITION_PURGED = "position-purged"
    RESUME_OTHER_SERVER = "resume-other-server"
    SOURCE_DIVERGED = "source-diverged"
    PURGED_ON_OTHER_SERVER = "purged-on-other-server"
    SEARCH_BY_TIME = "search-by-time"
    SOURCE_CHANGED = "source-changed"
    CONFIGURED_SET_PURGED = "configured-set-purged"
    CONFIGURED_SET_DIVERGED = "configured-set-diverged"
    START_UNREACHABLE = "start-unreachable"
    CONFIGURED_SET = "configured-set"
    CONFIGURED_COORDINATES = "configured-coordinates"
    CONFIGURED_MOMENT_IN_FILE = "configured-moment-in-file"
    CONFIGURED_MOMENT = "configured-moment"
    CONFIGURED_SNAPSHOT = "configured-snapshot"
    CONFIGURED_EARLIEST = "configured-earliest"
    CONFIGURED_LATEST = "configured-latest"
    START_NOT_CHOSEN = "start-not-chosen"
    NO_RULE_APPLIES = "no-rule-applies"


@dataclass(frozen=True, slots=True)
class ChosenPlace:
    """The place that an operator chose, as this server has it: coordinates, or a GTID
    set to start after. `gtid_set`: the GTIDs that were executed before this place."""

    where: Coordinates | GtidSet
    gtid_set: GtidSet


@dataclass(frozen=True, slots=True)
class Question:
    """All facts from which a start is decided.

    - `source`: the source's name, for the commands in hints.
    - `cursor`: the end of the last captured batch if all its files are intact, else the
      end of the last acknowledged one.
    - `configured_start`: the start in lockstep.toml, used only without a cursor.
    - `override`: the start that an operator chose. `chosen_place`: that place on this
      server, or the error that says why the server does not have it; None without an
      override.
    - `set_reading`: NOT_COMPARED unless only the cursor's GTID set says where to
      continue. `reused_gtid`: the GTID of a transaction that differs.
    - `load_watermark`: the log's head when an unfinished run began to read tables.
    - `unpruned_batches`: all batches up to the cursor that the ledger still has, oldest
      first; empty unless the server lacks transactions that another server sent.
    """

    source: str = field(kw_only=True)
    facts: ServerFacts
    cursor: Cursor | None = None
    anchor_reading: AnchorReading = AnchorReading.NOT_READ
    configured_start: Place | Snapshot | None = None
    policies: StartPolicies = field(default_factory=StartPolicies)
    override: Override | None = None
    chosen_place: ChosenPlace | LockstepError | None = None
    set_reading: SetReading = SetReading.NOT_COMPARED
    reused_gtid: str = ""
    load_watermark: Coordinates | None = None
    unpruned_batches: Sequence[Batch] = ()

    @property
    def required_cursor(self) -> Cursor:
        """The cursor, for rules that apply only to a source with one."""
        assert self.cursor is not None, "the rule's row requires a cursor"
        return self.cursor

    @property
    def executed_gtids(self) -> GtidSet:
        return GtidSet.parse(self.facts.gtid_executed)

    @property
    def purged_gtids(self) -> GtidSet:
        return GtidSet.parse(self.facts.gtid_purged)

    @property
    def has_gtid_mode_on(self) -> bool:
        return self.facts.gtid_mode == "ON"

    @property
    def is_same_server(self) -> bool:
        cursor = self.cursor
        return cursor is not None and cursor.position.server_uuid == self.facts.server_uuid

    @property
    def is_other_server(self) -> bool:
        return self.cursor is not None and not self.is_same_server

    @property
    def can_resume_by_gtid(self) -> bool:
        """True if the run may continue at the cursor by its GTID set alone."""
        cursor = self.cursor
        resumable = cursor is not None and cursor.by_gtid and bool(cursor.position.gtid_set)
        return self.has_gtid_mode_on and resumable

    @property
    def file_is_gone(self) -> bool:
        """True if this is the server that was read, and it no longer has the cursor's
        file."""
        return self.is_same_server and not self.facts.lists(self.required_cursor.position.at.file)


@dataclass(frozen=True, slots=True)
class Since:
    """The first transaction committed at or after a moment (UTC), in `file` or in any
    file. `read_until`: everything that was committed before this time has been read."""

    moment: datetime
    file: LogFile | None = None
    read_until: datetime | None = None


StartPlace = Coordinates | GtidSet | Since
"""A place, the log after a GTID set, or the result of a search in the log."""


@dataclass(frozen=True, slots=True)
class Start:
    """The decision to read the log from `where` on. `continued_batch`: the number of
    the batch that ends exactly there. Otherwise `previous_batch`: the number of the
    batch before this start, and `continuity`: whether a gap or an overlap lies between
    them. A source's first start has neither. `override`: the id of an operator's
    choice."""

    rule: StartRule
    reason: str
    where: StartPlace
    continued_batch: int | None = None
    previous_batch: int | None = None
    continuity: Continuity | None = None
    override: int | None = None

    @property
    def continues_log(self) -> bool:
        """True if nothing lies between the last batch and this start."""
        return self.continued_batch is not None or self.continuity is Continuity.CONTIGUOUS


@dataclass(frozen=True, slots=True)
class Refusal:
    """The decision not to start, because of `error`."""

    rule: StartRule
    error: LockstepError

    @property
    def reason(self) -> str:
        return self.error.message


Answer = Start | LockstepError | None
"""A rule's answer: a start, the error of a refusal, or None if the rule does not
apply."""
