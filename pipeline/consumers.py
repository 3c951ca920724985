"""Named consumers of a source's changelog: values, and how much a delivery holds.

A consumer reads the changes of acknowledged batches, in order and in whole batches, hence
in whole transactions. What it was given is a delivery; deliveries are acknowledged oldest
first, or rolled back newest first and then given again under new ids.

    get ──▶ out ──ack──▶ acknowledged
             └──rollback──▶ rolled back

The cursor is the end of the newest acknowledged delivery, else where the consumer
began; it is never stored beside them. Does not belong here: reading any change.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal

from pipeline.errors import ConfigurationError
from pipeline.position import Position
from pipeline.table import TableName

MOST_BATCHES: Final = 1000
"""Batches of one delivery, whatever was asked for."""

ConsumerStart = Literal["earliest", "latest"] | int
"""Where a new consumer begins: before the first batch, behind the newest acknowledged one,
or behind that batch, which must be acknowledged."""


@dataclass(frozen=True, slots=True)
class Consumer:
    """A consumer as it stands. `cursor` is the newest batch it is done with, None before
    the first; `behind` counts acknowledged batches after that, `changes` their row
    images, `out` its deliveries that are neither acknowledged nor rolled back."""

    source: str
    name: str
    cursor: int | None
    behind: int
    changes: int
    out: int
    made_at: datetime


@dataclass(frozen=True, slots=True)
class Delivery:
    """A range of batches (`start`, `end`] that a consumer was given. `changes` counts
    their row images; `tables` are those with changes in them, sorted."""

    id: int
    source: str
    consumer: str
    batches: tuple[int, ...]
    start: Position
    end: Position
    changes: int
    tables: tuple[TableName, ...]

    @property
    def first_batch(self) -> int:
        return self.batches[0]

    @property
    def last_batch(self) -> int:
        return self.batches[-1]


@dataclass(frozen=True, slots=True)
class DeliveryBounds:
    """At most so many batches and row images, but one batch in any case."""

    max_batches: int | None = None
    max_changes: int | None = None

    def __post_init__(self) -> None:
        for name, value in (("max_batches", self.max_batches), ("max_changes", self.max_changes)):
            if value is not None and value < 1:
                raise ConfigurationError(
                    f"{name} is {value}, and a delivery holds at least one batch.",
                    hint=f"give {name} a number of 1 or more, or None for no limit",
                )

    @property
    def batches(self) -> int:
        return min(self.max_batches or MOST_BATCHES, MOST_BATCHES)


def chosen_batches(
    waiting: Iterable[tuple[int, int]], bounds: DeliveryBounds
) -> tuple[tuple[int, int], ...]:
    """The next delivery's batches of those that wait, each (id, row images), oldest
    first. Empty only if none wait."""
    chosen: list[tuple[int, int]] = []
    changes = 0
    for batch, more in waiting:
        full = bounds.max_changes is not None and changes + more > bounds.max_changes
        if chosen and (full or len(chosen) >= bounds.batches):
            break
        chosen.append((batch, more))
        changes += more
    return tuple(chosen)
