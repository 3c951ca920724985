"""What the memory ledger keeps of a consumer and of a delivery. Values only."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class DeliveryState(StrEnum):
    OUT = "out"
    ACKNOWLEDGED = "acknowledged"
    ROLLED_BACK = "rolled back"


@dataclass(frozen=True, slots=True)
class ConsumerEntry:
    """`start_batch` is the batch it begins behind; None before the first."""

    id: int
    source: str
    name: str
    start_batch: int | None
    made_at: datetime
    dropped: bool = False


@dataclass(frozen=True, slots=True)
class DeliveryEntry:
    id: int
    consumer: int
    batches: tuple[int, ...]
    state: DeliveryState = DeliveryState.OUT
