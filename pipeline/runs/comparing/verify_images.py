"""What the log's images say of rows that are compared, as hashes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pipeline.position import Coordinates
from pipeline.proof.hashes import Hashes, RowHasher
from pipeline.proof.prefixes import Carried, Counts, Transactions, grouped
from pipeline.proof.rows import FirstTouch, RowTally
from pipeline.row_images import CHANGE_TYPES, RowImages, unpacked
from pipeline.segment import ChangeType

_COMES: Final = np.array(
    [kind in (ChangeType.INSERT, ChangeType.UPDATE_POSTIMAGE) for kind in CHANGE_TYPES]
)


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
    tally: RowTally
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
