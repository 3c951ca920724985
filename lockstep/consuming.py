"""Python's face of the changelog's consumers: `lockstep.consume` and its friends. Whose turn it is,
the ledger decides."""

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
from pipeline.changes.delivered import (
    DeliveredTable,
    Generation,
    delivered_segments,
    delivered_table,
    read_in_order,
    require_files,
)
from pipeline.consumers import Consumer, ConsumerStart, Delivery, DeliveryBounds
from pipeline.gaps import Gap
from pipeline.segment import Segment
from resources.adapters import Adapters
from resources.config import Settings, load_settings
from resources.lake.frame import changes_frame
from resources.lake.paths import LakePath

CONFIG = "lockstep.toml"
MAX_CHANGES = 1_000_000
"""Row images of a delivery unless told otherwise: a few hundred MiB of Arrow at most."""


@contextmanager
def consume(
    source: str, consumer: str, *, config: str | Path = CONFIG
) -> Iterator[ChangelogConsumer]:
    """Work as a consumer of a source's changelog; deliveries stay out when it ends.

    `ConsumerUnknown` before `make_consumer`. To be used with `with`.
    """
    with open_site(source, config) as (adapters, lake):
        adapters.consumers().deliveries_out(source, consumer)
        yield ChangelogConsumer(adapters, source, consumer, lake)


def make_consumer(
    source: str, consumer: str, *, start: ConsumerStart, config: str | Path = CONFIG
) -> Consumer:
    """A new consumer. `start`: "earliest" (everything), "latest" (what comes now), or a
    batch's id: everything after that. From now on it holds back what it needs."""
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
    """Give a consumer and its cursor up, for good. `author` is this account's name."""
    with Adapters(_settings(config), on_warning=_warn) as adapters:
        by = author or getpass.getuser()
        adapters.consumers().drop_consumer(source, consumer, author=by, reason=reason)


def list_consumers(source: str, *, config: str | Path = CONFIG) -> list[Consumer]:
    """Each consumer of a source, its cursor, and how far it is behind, by name."""
    with Adapters(_settings(config), on_warning=_warn) as adapters:
        return adapters.consumers().consumers(source)


class ChangelogConsumer:
    """A consumer at work; made by `consume`. Not for several threads at once."""

    def __init__(self, adapters: Adapters, source: str, name: str, lake: LakePath) -> None:
        self._site = adapters
        self._lake = lake
        self.source = source
        self.name = name

    def get(
        self, *, max_batches: int | None = None, max_changes: int | None = MAX_CHANGES
    ) -> ChangelogDelivery | None:
        """What comes after all that was given: whole batches, hence whole transactions,
        within the bounds but one batch at least. None: nothing new."""
        bounds = DeliveryBounds(max_batches, max_changes)
        delivery = self._site.consumers().deliver(self.source, self.name, bounds)
        return None if delivery is None else self._face(delivery)

    def out(self) -> list[ChangelogDelivery]:
        """Given and neither acknowledged nor rolled back, oldest first."""
        deliveries = self._site.consumers().deliveries_out(self.source, self.name)
        return [self._face(delivery) for delivery in deliveries]

    def ack(self, delivery: int) -> None:
        """Done with the oldest delivery that is out: the cursor moves to its end.

        `ConsumerRefused` for another one, a second time or after a rollback; nothing is
        changed then.
        """
        self._site.consumers().ack_delivery(self.source, self.name, delivery)

    def rollback(self, delivery: int | None = None) -> list[int]:
        """Take back everything that is out, or a delivery and those after it: `get` gives
        it again. The ids that were taken back."""
        return self._site.consumers().roll_back(self.source, self.name, delivery)

    def _face(self, delivery: Delivery) -> ChangelogDelivery:
        return ChangelogDelivery(self, self._site, delivery, self._lake)


class ChangelogDelivery:
    """A range of whole batches. The same batches hold the same rows whenever they are
    given, so `last_batch` in the consumer's own transaction makes exactly-once of it.

    `batches`: as in the column `_batch`, ascending. `start`: the place in the log that the first of
    them begins behind, `end`: the one that the last ends at. `changes`: row images in all `tables`,
    which are those with changes in it.
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
        """What nobody read, before these batches, because a person chose a later start."""
        gaps = self._site.ledger().gaps(self._delivery.source)
        return [gap for gap in gaps if gap.batch in self.batches]

    def generations(self, table: str, *, incomplete: bool = False) -> tuple[Generation, ...]:
        """The generations of the table's changelog that its changes here are of, oldest first,
        each with its columns: more than one where a column got another type meanwhile.
        `arrow` and `spark` give the rows of all."""
        return self._of(table, incomplete).generations

    def arrow(self, table: str, *, incomplete: bool = False) -> pa.Table:
        """The table's changes in the order of `_sequence`, with the changelog's columns;
        none where `tables` does not name it. A column that changed its type within the
        delivery has the newest one; values that do not fit it stand in `name@1`, or another
        generation of the changelog.

        `SegmentsLost` if files are gone; `TableQuarantined` unless `incomplete`.
        """
        return read_in_order(self._site.lake().segments, self._of(table, incomplete))

    def spark(self, table: str, spark: Any, *, incomplete: bool = False) -> Any:
        """As `arrow`, as a DataFrame of the SparkSession `spark`, in no particular order.

        Spark reads when the DataFrame is used: acknowledge afterwards.
        """
        found = self._of(table, incomplete)
        require_files(self._site.lake().segments, found)
        return changes_frame(spark, self._lake, found)

    def ack(self) -> None:
        """As `ChangelogConsumer.ack`."""
        self._consumer.ack(self.id)

    def rollback(self) -> list[int]:
        """As `ChangelogConsumer.rollback`: this delivery and those after it."""
        return self._consumer.rollback(self.id)

    @cached_property
    def _segments(self) -> tuple[Segment, ...]:
        return delivered_segments(self._site.ledger(), self._delivery)

    def _of(self, table: str, incomplete: bool) -> DeliveredTable:
        return delivered_table(
            self._site.ledger(),
            self._delivery,
            self._segments,
            table_name(table),
            incomplete=incomplete,
        )


@contextmanager
def open_site(source: str, config: str | Path) -> Iterator[tuple[Adapters, LakePath]]:
    """What a configured source is worked with, and the lake's absolute folder."""
    settings = _settings(config)
    settings.source(source)
    with Adapters(settings, on_warning=_warn) as adapters:
        yield adapters, settings.lake_path().absolute()


def _settings(config: str | Path) -> Settings:
    return load_settings(Path(config).absolute())


def _warn(sentence: str) -> None:
    warnings.warn(sentence, RuntimeWarning, stacklevel=2)
