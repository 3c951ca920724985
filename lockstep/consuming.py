"""Consumers of a changelog in Python: `lockstep.consume`, `make_consumer`, `drop_consumer` and
`list_consumers`. The ledger keeps their cursors and decides what they receive."""

from __future__ import annotations

import getpass
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa

from lockstep.grammar import table_name
from lockstep.pipeline.mirror.delivered import (
    DeliveredTable,
    Generation,
    delivered_segments,
    delivered_table,
    read_in_order,
    require_files,
)
from lockstep.pipeline.model.gaps import Gap
from lockstep.pipeline.values.consumers import Consumer, ConsumerStart, Delivery, DeliveryBounds
from lockstep.pipeline.values.segment import Segment
from lockstep.resources.adapters import Adapters
from lockstep.resources.config import Settings, load_settings
from lockstep.resources.lake.changelog.frame import changes_frame
from lockstep.resources.lake.store.paths import LakePath

CONFIG = "lockstep.toml"
MAX_CHANGES = 1_000_000
"""Default limit of row images in a delivery: a few hundred MiB of Arrow at most."""


@contextmanager
def consume(
    source: str, consumer: str, *, config: str | Path = CONFIG
) -> Iterator[ChangelogConsumer]:
    """Yield a consumer of a source's changelog. Deliveries that were neither acknowledged nor
    rolled back stay open when the context ends. `ConsumerUnknown` before `make_consumer`."""
    with open_site(source, config) as (adapters, lake):
        adapters.consumers().deliveries_out(source, consumer)  # raises ConsumerUnknown
        yield ChangelogConsumer(adapters, source, consumer, lake)


def make_consumer(
    source: str, consumer: str, *, start: ConsumerStart, config: str | Path = CONFIG
) -> Consumer:
    """Create a consumer. `start`: "earliest" (all changes), "latest" (changes from now on), or a
    batch's id (changes after that batch). From now on, upkeep keeps the files that it needs."""
    with open_site(source, config) as (adapters, _):
        return adapters.consumers().make_consumer(source, consumer, start)


def drop_consumer(
    source: str,
    consumer: str,
    *,
    reason: str,
    author: str | None = None,
    config: str | Path = CONFIG,
) -> None:
    """Delete a consumer and its cursor. `author` defaults to the name of this account."""
    with Adapters(_settings(config), on_warning=_warn) as adapters:
        by = author or getpass.getuser()
        adapters.consumers().drop_consumer(source, consumer, author=by, reason=reason)


def list_consumers(source: str, *, config: str | Path = CONFIG) -> list[Consumer]:
    """Return a source's consumers in the order of their names, with cursor and backlog."""
    with Adapters(_settings(config), on_warning=_warn) as adapters:
        return adapters.consumers().consumers(source)


class ChangelogConsumer:
    """A consumer that `consume` opened. It must not be used by several threads at once."""

    def __init__(self, adapters: Adapters, source: str, name: str, lake: LakePath) -> None:
        self._site = adapters
        self._lake = lake
        self.source = source
        self.name = name

    def get(
        self, *, max_batches: int | None = None, max_changes: int | None = MAX_CHANGES
    ) -> ChangelogDelivery | None:
        """Return the changes after all earlier deliveries: whole batches, and so whole
        transactions, within the bounds, but at least one batch. None if there is nothing new."""
        bounds = DeliveryBounds(max_batches, max_changes)
        delivery = self._site.consumers().deliver(self.source, self.name, bounds)
        if delivery is None:
            return None
        return ChangelogDelivery(self, self._site, delivery, self._lake)

    def out(self) -> list[ChangelogDelivery]:
        """Return the deliveries that are neither acknowledged nor rolled back, oldest first."""
        deliveries = self._site.consumers().deliveries_out(self.source, self.name)
        return [
            ChangelogDelivery(self, self._site, delivery, self._lake) for delivery in deliveries
        ]

    def ack(self, delivery: int) -> None:
        """Acknowledge the oldest open delivery, which moves the cursor to its end.

        `ConsumerRefused`, with nothing changed, if it is not the oldest, or was acknowledged or
        rolled back before.
        """
        self._site.consumers().ack_delivery(self.source, self.name, delivery)

    def rollback(self, delivery: int | None = None) -> list[int]:
        """Take back all open deliveries, or one and those after it, so that `get` returns their
        changes again. Return their ids."""
        return self._site.consumers().roll_back(self.source, self.name, delivery)


class ChangelogDelivery:
    """A range of whole batches. A batch has the same rows in every delivery, so a consumer that
    stores `last_batch` in its own transaction applies each change exactly once.

    `batches`: ascending, as in the column `_batch`; `start`, `end`: the places in the log before
    the first and after the last of them; `tables`: those with changes; `changes`: number of row
    images in all of them.
    """

    def __init__(
        self, consumer: ChangelogConsumer, adapters: Adapters, delivery: Delivery, lake: LakePath
    ) -> None:
        self._consumer = consumer
        self._site = adapters
        self._delivery = delivery
        self._lake = lake
        self.id = delivery.id
        self.batches = delivery.batches
        self.first_batch, self.last_batch = delivery.first_batch, delivery.last_batch
        self.start, self.end = delivery.start, delivery.end
        self.changes = delivery.changes
        self.tables = tuple(str(table) for table in delivery.tables)

    @property
    def gaps(self) -> list[Gap]:
        """Parts of the log before these batches that were never read, because a person chose a
        later start."""
        gaps = self._site.ledger().gaps(self._delivery.source)
        return [gap for gap in gaps if gap.batch in self.batches]

    def generations(self, table: str, *, incomplete: bool = False) -> tuple[Generation, ...]:
        """Return the changelog's generations in this delivery, oldest first, each with its columns;
        several if a column's type changed. `arrow` and `spark` return the rows of all of them."""
        return self._delivered(table, incomplete).generations

    def arrow(self, table: str, *, incomplete: bool = False) -> pa.Table:
        """Return the table's changes in the order of `_sequence`, with the changelog's columns; no
        rows if `tables` does not have it. A column whose type changed within the delivery has its
        newest type; values that do not fit it are in `name@1`, named after their generation.

        `SegmentsLost` if files are missing; `TableQuarantined` unless `incomplete`.
        """
        return read_in_order(self._site.lake().segments, self._delivered(table, incomplete))

    def spark(self, table: str, spark: Any, *, incomplete: bool = False) -> Any:
        """Return the same as a DataFrame of the SparkSession `spark`, in no particular order.

        Spark reads when the DataFrame is used: acknowledge afterwards.
        """
        delivered = self._delivered(table, incomplete)
        require_files(self._site.lake().segments, delivered)
        return changes_frame(spark, self._lake, delivered)

    def ack(self) -> None:
        """Acknowledge this delivery, as `ChangelogConsumer.ack` does."""
        self._consumer.ack(self.id)

    def rollback(self) -> list[int]:
        """Take back this delivery and those after it, as `ChangelogConsumer.rollback` does."""
        return self._consumer.rollback(self.id)

    @cached_property
    def _segments(self) -> tuple[Segment, ...]:
        return delivered_segments(self._site.ledger(), self._delivery)

    def _delivered(self, table: str, incomplete: bool) -> DeliveredTable:
        return delivered_table(
            self._site.ledger(),
            self._delivery,
            self._segments,
            table_name(table),
            incomplete=incomplete,
        )


@contextmanager
def open_site(source: str, config: str | Path) -> Iterator[tuple[Adapters, LakePath]]:
    """Yield the adapters of a configuration that has the source, and the lake's absolute path."""
    settings = _settings(config)
    settings.source(source)
    with Adapters(settings, on_warning=_warn) as adapters:
        yield adapters, settings.lake_path().absolute()


def _settings(config: str | Path) -> Settings:
    return load_settings(Path(config).absolute())


def _warn(sentence: str) -> None:
    warnings.warn(sentence, RuntimeWarning, stacklevel=2)
