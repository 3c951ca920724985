"""Both sides of a comparison as hashes: the mirror's rows, and the log's images of them.

Belongs here: what `verify_rows` streams, in memory that does not grow with a table. Does not: the
order of a comparison (`verify_rows`), the source's side (`ports.source`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pipeline.changes.layout import DELETED_AT
from pipeline.position import Coordinates
from pipeline.proof.hashes import Hashes, RowHasher, RowShare, RowSum
from pipeline.proof.prefixes import Carried, Counts, Transactions, grouped
from pipeline.proof.rows import FirstTouch, Pairs, Tally, pairs, together
from pipeline.proof.sampling import Span
from pipeline.row_images import CHANGE_TYPES, RowImages, unpacked
from pipeline.runs.context import Workplace
from pipeline.segment import ChangeType

_COMES: Final = np.array(
    [kind in (ChangeType.INSERT, ChangeType.UPDATE_POSTIMAGE) for kind in CHANGE_TYPES]
)


@dataclass(frozen=True, slots=True)
class Mirror:
    """A table's mirror at a version; None where it has none yet, which is a table without
    rows."""

    work: Workplace
    path: str
    version: int | None

    def batches(
        self, schema: pa.Schema, column: str = "", spans: Sequence[Span] = ()
    ) -> Iterator[pa.RecordBatch]:
        """Its rows as that schema has them; with spans, at least those whose `column` lies in one
        of them. A column that the mirror lacks is NULL in it, and so a difference."""
        if self.version is None:
            return
        there = self.work.mirrors.schema(self.path, self.version)
        deleted = DELETED_AT.name in there.names and DELETED_AT.name not in schema.names
        names = [name for name in schema.names if name in there.names]
        marks = [DELETED_AT.name] if deleted else []
        # No column at all would leave out how many rows there are.
        asked = [*names, *marks] or there.names[:1]
        mirrors = self.work.mirrors
        if column in names and spans:
            found = mirrors.rows_near(self.path, asked, self.version, column, spans)
        else:
            found = mirrors.rows(self.path, asked, self.version)
        for batch in found:
            if deleted:
                batch = batch.filter(pc.is_null(batch.column(DELETED_AT.name)))
            columns = [
                batch.column(one.name).cast(one.type)
                if one.name in names
                else pa.nulls(batch.num_rows, one.type)
                for one in schema
            ]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)

    def summed(self, hasher: RowHasher) -> RowSum:
        found = RowSum()
        for batch in self.batches(hasher.schema):
            found = found + hasher.summed(batch)
        return found

    def pairs(self, hasher: RowHasher, part: RowShare) -> Pairs:
        """Those of a part of the rows."""
        return together(self._pairs(hasher, part))

    def _pairs(self, hasher: RowHasher, part: RowShare) -> Iterator[Pairs]:
        for batch in self.batches(hasher.schema):
            keys = hasher.keys(batch)
            inside = part.holds(keys)
            yield pairs(keys[inside], hasher.rows(batch)[inside])

    def rows(self, hasher: RowHasher, wanted: Hashes) -> pa.Table:
        """The rows whose keys have these hashes."""
        found = [
            batch.filter(pa.array(np.isin(hasher.keys(batch), wanted)))
            for batch in self.batches(hasher.schema)
        ]
        return pa.Table.from_batches(found, hasher.schema)


def comes(images: RowImages) -> npt.NDArray[np.bool_]:
    """Whether the row is there behind each image."""
    return np.asarray(_COMES[images.change_type.to_numpy()])


def whole(images: RowImages) -> npt.NDArray[np.bool_]:
    """Whether each image has every column."""
    if images.present is None:
        return np.ones(len(images.event), np.bool_)
    return np.asarray(images.present.is_null().to_numpy(zero_copy_only=False))


def keys_of(hasher: RowHasher, images: RowImages) -> Hashes:
    """Of each image. One after an update that leaves the key out has that of the one before."""
    keys = hasher.keys(images.columns)
    if images.present is None:
        return keys
    places = [hasher.structure.names.index(name) for name in hasher.key]
    bits = unpacked(images.present)
    if not bits.shape[1]:
        return keys
    for at in np.flatnonzero(~bits[:, places].all(axis=1) & comes(images)).tolist():
        keys[at] = keys[at - 1]
    return keys


@dataclass(slots=True)
class SumReader:
    """`verify_log.TableReader` that carries a sum. `partial`: an image lacked columns, and the
    sum says nothing since."""

    hasher: RowHasher
    carried: Carried
    partial: bool = False
    _taken: list[tuple[Counts, Counts, Hashes]] = field(default_factory=list)

    @property
    def schema(self) -> pa.Schema:
        return self.hasher.schema

    def take(self, images: RowImages, transactions: Counts) -> None:
        self.partial = self.partial or not whole(images).all()
        signs = np.where(comes(images), 1, -1)
        self._taken.append((transactions, signs, self.hasher.rows(images.columns)))

    def end(self, transactions: Transactions) -> None:
        taken, self._taken = self._taken, []
        if not taken:
            return
        which, signs, hashes = (np.concatenate(one) for one in zip(*taken, strict=True))
        self.carried.put(transactions, *grouped(which, signs, hashes))


@dataclass(slots=True)
class TouchReader:
    """`verify_log.TableReader` that notes what rows were."""

    hasher: RowHasher
    touch: FirstTouch

    @property
    def schema(self) -> pa.Schema:
        return self.hasher.schema

    def take(self, images: RowImages, transactions: Counts) -> None:
        keys, rows = keys_of(self.hasher, images), self.hasher.rows(images.columns)
        self.touch.put(keys, rows, comes(images), whole(images))

    def end(self, transactions: Transactions) -> None:
        """What was taken counts whatever transaction it is of."""


@dataclass(slots=True)
class TallyReader:
    """The same for a table without a key. `low`: the mark before the source's read."""

    hasher: RowHasher
    tally: Tally
    low: Coordinates
    _taken: list[tuple[Counts, Counts, Hashes]] = field(default_factory=list)

    @property
    def schema(self) -> pa.Schema:
        return self.hasher.schema

    def take(self, images: RowImages, transactions: Counts) -> None:
        signs = np.where(comes(images), 1, -1)
        self._taken.append((transactions, signs, self.hasher.rows(images.columns)))

    def end(self, transactions: Transactions) -> None:
        taken, self._taken = self._taken, []
        behind = transactions.through(self.low)
        for which, signs, hashes in taken:
            for later in (False, True):
                of = (which >= behind) == later
                self.tally.put(hashes[of], signs[of].tolist(), behind_low=later)


@dataclass(slots=True)
class BeforeReader:
    """`verify_log.TableReader` that keeps what some rows were: by the hash of the key, None
    where there was none."""

    hasher: RowHasher
    wanted: Hashes
    was: dict[int, pa.RecordBatch | None] = field(default_factory=dict)

    @property
    def schema(self) -> pa.Schema:
        return self.hasher.schema

    def take(self, images: RowImages, transactions: Counts) -> None:
        keys, there = keys_of(self.hasher, images), comes(images)
        for at in np.flatnonzero(np.isin(keys, self.wanted)).tolist():
            row = None if there[at] else images.columns.slice(at, 1)
            self.was.setdefault(int(keys[at]), row)

    def end(self, transactions: Transactions) -> None:
        """What was taken counts whatever transaction it is of."""
