"""Named consumers of a source's changelog, and the size of a delivery.

A batch is a part of the log that a run captured at once; it is acknowledged once all
mirrors have its changes. A consumer reads acknowledged batches, in order and whole,
hence whole transactions. The batches that it gets at once are called a delivery.
Deliveries are acknowledged oldest first, or rolled back newest first; the batches of a
delivery that was rolled back are delivered again under a new id.

    get ──▶ out ──ack──▶ acknowledged
             └──rollback──▶ rolled back

The cursor is the end of the newest acknowledged delivery; if there is none, it is the
place where the consumer began. It is computed, never stored. Not here: reading changes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal

from lockstep.pipeline.values.errors import ConfigurationError
from lockstep.pipeline.values.position import Position
from lockstep.pipeline.values.table import TableName

BATCH_LIMIT: Final = 1000
"""Largest number of batches in a delivery, even if the caller allows more."""

ConsumerStart = Literal["earliest", "latest"] | int
"""The place at which a new consumer begins. "earliest": before the first batch from
which on the changes of all tables are kept. "latest": after the newest acknowledged
batch. A number: after the batch with that id, which must be acknowledged."""


@dataclass(frozen=True, slots=True)
class Consumer:
    """A consumer's state. `cursor`: the id of the last batch before its cursor, or None
    if the cursor is before the first batch. `batches_behind`: number of acknowledged
    batches of the source after the cursor; `changes_behind`: number of their row
    images. `deliveries_out`: number of its deliveries that are neither acknowledged nor
    rolled back."""

    source: str
    name: str
    cursor: int | None
    batches_behind: int
    changes_behind: int
    deliveries_out: int
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Delivery:
    """A range of the log, (`start`, `end`], that a consumer was given. `batches`: ids
    of the batches in it, ascending. `changes`: number of their row images. `tables`:
    the tables with changes in them, sorted."""

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
    """Limits of a delivery, which has at least one batch in any case. None: no limit."""

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
    def most_batches(self) -> int:
        """The largest number of batches in the delivery."""
        return min(self.max_batches or BATCH_LIMIT, BATCH_LIMIT)


def next_batches(waiting: Iterable[tuple[int, int]], bounds: DeliveryBounds) -> tuple[int, ...]:
    """Return the ids of the next delivery's batches; none only if no batch waits.
    `waiting`: the id and the number of row images of each batch, oldest first."""
    batch_ids: list[int] = []
    changes = 0
    for batch, images in waiting:
        exceeds_changes = bounds.max_changes is not None and changes + images > bounds.max_changes
        if batch_ids and (exceeds_changes or len(batch_ids) >= bounds.most_batches):
            break
        batch_ids.append(batch)
        changes += images
    return tuple(batch_ids)
