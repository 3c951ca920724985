"""Decisions and who may write: what the ledger keeps besides batches.

Belongs here: start decisions, a person's choice of a start, leases. Does not: the
rules (`pipeline.start`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from types import MappingProxyType
from typing import Any


class Continuity(StrEnum):
    """What lies between the end of a batch and a start that goes on elsewhere: nothing,
    and nothing twice; something twice; or something that nobody read."""

    CONTIGUOUS = "contiguous"
    OVERLAP = "overlap"
    GAP = "gap"


@dataclass(frozen=True, slots=True)
class Decision:
    """A start decision, a refusal, an idle run or a failed step: its rule's name, the
    reason in one sentence, and the facts it was drawn from (JSON).

    A start behind the batch `follows`, but not at its end, tells what lies between
    (`continuity`), and for a gap the tables that may miss changes. `override` is the
    operator's choice that it carries out.
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


@dataclass(frozen=True, slots=True)
class RecordedDecision:
    id: int
    decided_at: datetime
    decision: Decision


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
    holder's last sign of life."""

    token: int
    holder: str
    dagster_run: str | None
    taken_at: datetime
    live: bool
    beat_at: datetime | None = None
