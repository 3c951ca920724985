"""Decisions, overrides and leases: values that the ledger (Lockstep's database in
Postgres) keeps besides batches.

Not here: the rules of a start (`pipeline.start`), what failed attempts mean for a
source (`pipeline.status`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from types import MappingProxyType
from typing import Any, ClassVar, Final

from lockstep.pipeline.values.errors import Recovery
from lockstep.pipeline.values.position import Coordinates
from lockstep.pipeline.values.table import TableName


class Continuity(StrEnum):
    """The relation of a start to the end of the batch before it: no change lies between
    them, some changes are read a second time, or some are never read."""

    CONTIGUOUS = "contiguous"
    OVERLAP = "overlap"
    GAP = "gap"


START_KIND: Final = "start"
"""The kind of a decision about where a batch begins."""

STRUCTURES_KIND: Final = "structures"
"""The kind of a decision that says which structures could not be compared with the
server's."""


@dataclass(frozen=True, slots=True)
class Decision:
    """A start, a refusal, an idle run or a failed step: the name of the rule that
    decided it, the reason in one sentence, and the facts (JSON) from which the rule
    concluded.

    `previous_batch`: for a start, the id of the batch before it, if the decision names
    one; `continuity`: how the start relates to the end of that batch; `gap_tables`:
    after a gap, the tables that may lack changes. `override`: the id of the operator's
    choice that the start carries out. `recovery` and `hint`: for a refusal or failure,
    who has to act, and what to type. `head`: for an idle run, the end of the log.
    `structures`: for a decision of the kind `STRUCTURES_KIND`, the tables whose
    structures are still to be compared.
    """

    kind: str
    rule: str
    reason: str
    facts: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    author: str = "lockstep"
    previous_batch: int | None = None
    continuity: Continuity | None = None
    gap_tables: tuple[str, ...] = ()
    override: int | None = None
    recovery: Recovery | None = None
    hint: str = ""
    head: Coordinates | None = None
    structures: tuple[TableName, ...] | None = None


@dataclass(frozen=True, slots=True)
class RecordedDecision:
    """A decision in the ledger, with its id and the time at which it was recorded."""

    id: int
    decided_at: datetime
    decision: Decision


class AttemptOutcome(StrEnum):
    """The end of an attempt that acknowledged no batch. The value is the kind of its
    decision."""

    IDLE = "idle"
    REFUSED = "refusal"
    """The start was refused."""
    FAILED = "failure"
    """A step before or after the start failed."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """The end of an attempt to run. `reason` is a sentence for people; programs use the
    other values, which `Decision` explains. `recovery` is None for an idle run. `rule`:
    for a failed step, the name of the error's class."""

    outcome: AttemptOutcome
    ended_at: datetime
    reason: str
    recovery: Recovery | None = None
    hint: str = ""
    head: Coordinates | None = None
    rule: str = ""

    @classmethod
    def of(cls, recorded: RecordedDecision) -> Attempt:
        """Return the attempt that ended with this decision, of a kind in
        `AttemptOutcome`."""
        decision = recorded.decision
        return cls(
            AttemptOutcome(decision.kind),
            recorded.decided_at,
            decision.reason,
            decision.recovery,
            decision.hint,
            decision.head,
            decision.rule,
        )


@dataclass(frozen=True, slots=True)
class LogEnd:
    """The end of a server's log (`place`) when a run asked for it in order to start.
    `asked_at`: that moment by the server's clock. `is_start`: the run started there."""

    server_uuid: str
    place: Coordinates
    asked_at: datetime
    is_start: bool

    @classmethod
    def of(cls, recorded: RecordedDecision) -> LogEnd | None:
        """Return the end that a decision about a start saw; None if it saw none. The
        decision of a recovery sees none."""
        facts = recorded.decision.facts
        if not facts.keys() >= {"server_uuid", "head", "read_at"}:
            return None
        return cls(
            facts["server_uuid"],
            Coordinates.parse(facts["head"]),
            datetime.fromisoformat(facts["read_at"]),
            facts.get("place") == facts["head"],
        )


@dataclass(frozen=True, slots=True)
class UnprovenStructures:
    """Tables whose rows were recorded although their structures could not be compared
    with the server's. The next run that reads the log compares them. `reason`: why the
    run at `since` could not compare them."""

    tables: frozenset[TableName]
    since: datetime
    reason: str


@dataclass(frozen=True, slots=True)
class Override:
    """An operator's choice of the place where the next run starts. `place` is a text
    that `pipeline.values.places` parses. The choice stays open until a batch has begun
    there; a batch that is abandoned does not count."""

    id: int
    place: str
    reason: str
    author: str
    chosen_at: datetime


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to write for one source. Each holder gets a higher `token` than the one
    before. The ledger refuses a commit with any lease but the newest (`LeaseLost`)."""

    source: str
    token: int
    holder: str
    run_id: str | None


@dataclass(frozen=True, slots=True)
class LeaseView:
    """A lease as other processes see it. `live`: its lock is held now. `beat_at`: the
    holder's last sign of life. `recorded_at`: when the holder last recorded a result in
    the ledger, or took the lease; None if unknown. `in_dagster`: the holder is a run of
    Dagster. `ended`: the holder released it. If a lease is not live although it was not
    released, its process was killed, or it hung and another run took over."""

    json_keys: ClassVar = ("holder", "run_id as run", "taken_at", "beat_at", "recorded_at")

    token: int
    holder: str
    run_id: str | None
    taken_at: datetime
    live: bool
    beat_at: datetime | None = None
    in_dagster: bool = False
    ended: bool = False
    recorded_at: datetime | None = None

    def death_decision(self) -> Decision:
        """Return the decision that the next run records for the run of this lease,
        which could not record its own end."""
        return Decision(
            AttemptOutcome.FAILED.value,
            "run-died",
            f"the run of {self.holder}, since {self.taken_at:%Y-%m-%d %H:%M:%S} UTC, never gave "
            "the source back: it was killed, or it hung and was taken over",
            {"run": self.run_id},
            recovery=Recovery.RETRY,
        )
