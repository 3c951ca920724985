"""Decisions and who may write: what the ledger keeps besides batches.

Not here: the rules (`pipeline.start`), what attempts mean for a source (`pipeline.standing`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from types import MappingProxyType
from typing import Any, ClassVar, Final

from pipeline.errors import Recovery
from pipeline.position import Coordinates
from pipeline.table import TableName


class Continuity(StrEnum):
    """What lies between the end of a batch and a start that goes on elsewhere: nothing,
    and nothing twice; something twice; or something that nobody read."""

    CONTIGUOUS = "contiguous"
    OVERLAP = "overlap"
    GAP = "gap"


STRUCTURES: Final = "structures"
"""The kind of a decision that says whether structures could be compared with the server's."""


@dataclass(frozen=True, slots=True)
class Decision:
    """A start decision, a refusal, an idle run or a failed step: its rule's name, the
    reason in one sentence, and the facts it was drawn from (JSON).

    A start behind the batch `follows`, but not at its end, tells what lies between
    (`continuity`), and for a gap the tables that may miss changes. `override` is the
    operator's choice that it carries out. A refusal and a failure say whose move it is
    (`recovery`) and what to type (`hint`); an idle run where the log ended (`head`). One of the
    kind `STRUCTURES` names the tables whose `structures` are still to be compared.
    """

    kind: str
    rule: str
    reason: str
    facts: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    author: str = "lockstep"
    follows: int | None = None
    continuity: Continuity | None = None
    gap_tables: tuple[str, ...] = ()
    override: int | None = None
    recovery: Recovery | None = None
    hint: str = ""
    head: Coordinates | None = None
    structures: tuple[TableName, ...] | None = None


@dataclass(frozen=True, slots=True)
class RecordedDecision:
    id: int
    decided_at: datetime
    decision: Decision


class AttemptOutcome(StrEnum):
    """How an attempt ended that did not bring a batch to its end; the kind of its decision."""

    IDLE = "idle"
    REFUSED = "refusal"
    """The start was refused."""
    FAILED = "failure"
    """A step failed behind the start, or before it."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """How an attempt to run ended: the values among what was decided, to go by. `reason` is its
    sentence, for people. `recovery`: whose move it is, None for an idle one; `hint`: what to type,
    if anything. `head`: where the log ended in which an idle one found nothing."""

    outcome: AttemptOutcome
    ended_at: datetime
    reason: str
    recovery: Recovery | None = None
    hint: str = ""
    head: Coordinates | None = None


@dataclass(frozen=True, slots=True)
class Unproven:
    """Tables with rows that were recorded although their structures could not be compared with the
    server's; the next run that reads the log compares them. `reason`: why, as the run of `since`
    said it."""

    tables: frozenset[TableName]
    since: datetime
    reason: str


@dataclass(frozen=True, slots=True)
class Override:
    """An operator's one-shot choice of a start: `place` as `pipeline.places` reads it.
    Open until a batch that is not abandoned was begun by it."""

    id: int
    place: str
    reason: str
    author: str
    chosen_at: datetime


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to write for one source. `token` grows with every holder; a commit with
    an older token than the ledger's is refused (`LeaseLost`)."""

    source: str
    token: int
    holder: str
    dagster_run: str | None


@dataclass(frozen=True, slots=True)
class LeaseView:
    """What others see of a lease: who, since when, whether its lock is held now, and the
    holder's last sign of life. `in_dagster`: Dagster records what is done under it; `ended`: it was
    given back. A lease that is neither live nor ended belonged to a process that was killed, or
    hung and was taken over."""

    json_keys: ClassVar = ("holder", "dagster_run", "taken_at", "beat_at")

    token: int
    holder: str
    dagster_run: str | None
    taken_at: datetime
    live: bool
    beat_at: datetime | None = None
    in_dagster: bool = False
    ended: bool = False

    def died(self) -> Decision:
        """How the run of this lease ended, as the run after it records that: it cannot say so
        itself."""
        return Decision(
            AttemptOutcome.FAILED.value,
            "run-died",
            f"the run of {self.holder}, since {self.taken_at:%Y-%m-%d %H:%M:%S} UTC, never gave "
            "the source back: it was killed, or it hung and was taken over",
            {"run": self.dagster_run},
            recovery=Recovery.RETRY,
        )
