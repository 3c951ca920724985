"""Folding row images that leave columns out, before anything is joined.

With `binlog_row_image=MINIMAL` or NOBLOB an update logs the columns it set, and a key to find
the row by. What an image leaves out is what the row had before it: what the newest image of
that row knows, which was told by another key if the key changed. What none knows is in the
mirror, in the row under the key that the oldest image tells it by: its origin.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pipeline.changes.layout import changelog_names, keep_names, lack_names, origin_names
from pipeline.changes.mapping import (
    comparable,
    is_present,
    kept_columns,
    mapped,
    outcome,
    row_images,
)
from pipeline.errors import Need, StoppedBy, TableError
from pipeline.ports.mirror_writes import PartColumn, StagedFiles
from pipeline.row_images import unpacked
from pipeline.segment import ChangeType

Images = tuple[pa.Table, StagedFiles]
"""Row images, and the part of a write whose files they are."""

Flags = npt.NDArray[np.bool_]
Places = npt.NDArray[np.int64]

OTHER_KEY = (
    "its row images leave columns out, and the log identifies its rows by another key than the lake"
)
LOST = "a row image leaves columns out, and the row it changes is not in the lake"
MOVED = (
    "a row image leaves columns out, and the row's key changed while the table was read from the "
    "source, or across a gap or an overlap of the log: what was left out is not known"
)
READ_AGAIN = "the next run reads it from the source; binlog_row_image=FULL keeps it from recurring"
HINT = (
    "`lockstep resume TABLE --reason …` re-reads it from MySQL; with binlog_row_image=FULL for "
    "every session that writes it this cannot happen"
)


def lacking_columns(parts: Sequence[StagedFiles], schema: pa.Schema) -> tuple[str, ...]:
    """Columns of the mirror that images of some part may leave out."""
    partial = [part.columns for part in parts if part.present is not None]
    return tuple(
        name
        for index, name in enumerate(schema.names)
        if any(columns[index].bit is not None for columns in partial)
    )


def coalesced(
    images: Sequence[Images],
    schema: pa.Schema,
    key: Sequence[str],
    marks: Sequence[str] = (),
    *,
    doubtful: int = 0,
    ignored: bool = False,
) -> tuple[pa.Table, tuple[str, ...]]:
    """The last image per key over all parts, as `mapping.folded` gives it, with what images
    leave out taken from those before them; and the columns that some row still lacks. Behind
    the keep marks come a mark for each column of `lacking_columns` (`layout.lack_names`) and the
    key of the row to look those up in (`layout.origin_names`).

    `doubtful`: what is looked up may be of before or behind an image with a `_sequence` up to
    that, so a row whose key changed there cannot be looked up. TableError where the row cannot be
    told.
    """
    names = ["_change_type", "_sequence", *marks]
    whole = pa.concat_tables(mapped(table, part.columns, schema, names) for table, part in images)
    order = np.argsort(whole.column("_sequence").to_numpy(), kind="stable")
    whole = whole.take(pa.array(order))
    rows = _followed(whole, [changelog_names(schema.names)[schema.names.index(n)] for n in key])
    known = _Known(images, order, rows)
    return _Coalescing(whole, rows, known, schema, tuple(key)).table(
        kept_columns((part.columns for _, part in images), schema),
        lacking_columns([part for _, part in images], schema),
        marks,
        doubtful=doubtful,
        ignored=ignored,
    )


@dataclass(frozen=True, slots=True)
class _Rows:
    """Images in their order: the row each tells of (`same` for one key), the image of that row
    before it, or -1, whether its key is another than that one's, whether a row begins with it,
    and whether the row was gone already. `last`: the last image per key."""

    before: Places
    moved: Flags
    begins: Flags
    inserted: Flags
    lost: Flags
    last: Places


def _followed(whole: pa.Table, key: Sequence[str]) -> _Rows:
    kind = whole.column("_change_type")
    inserted, updated, left, deleted = (
        pc.equal(kind, one.value).to_numpy().astype(np.bool_)
        for one in (
            ChangeType.INSERT,
            ChangeType.UPDATE_POSTIMAGE,
            ChangeType.UPDATE_PREIMAGE,
            ChangeType.DELETE,
        )
    )
    count = len(whole)
    same = _identities(whole, key)
    order = np.argsort(same, kind="stable")
    again = same[order][1:] == same[order][:-1]
    before = np.full(count, -1, np.int64)
    before[order[1:][again]] = order[:-1][again]
    paired = np.zeros(count, np.bool_)
    if count:
        paired[1:] = left[:-1] & updated[1:]
        paired[1:] &= np.diff(whole.column("_sequence").to_numpy()) == 1
    was_gone = (left | deleted)[before] & (before >= 0)
    lost = was_gone & ~inserted & ~paired
    before = np.where(paired, np.arange(count) - 1, before)
    moved = paired & (same != same[before])
    before[inserted | lost] = -1
    last = order[np.append(~again, True)] if count else order
    return _Rows(before, moved, inserted | moved | lost, inserted, lost, last)


def _identities(whole: pa.Table, key: Sequence[str]) -> Places:
    """A number per image, the same for the same key."""
    found = np.zeros(len(whole), np.int64)
    for name in key:
        column = comparable(whole.column(name))
        codes = pc.dictionary_encode(column.combine_chunks()).indices.fill_null(-1)
        numbers = codes.to_numpy(zero_copy_only=False).astype(np.int64) + 1
        found = found * (int(numbers.max(initial=0)) + 1) + numbers
        found = np.unique(found, return_inverse=True)[1].astype(np.int64)
    return found


class _Known:
    """Whether each image, in its order, knows a column."""

    def __init__(self, images: Sequence[Images], order: Places, rows: _Rows) -> None:
        self._parts = [(part.columns, *_bits(table, part)) for table, part in images]
        self._order = order
        self._begins = rows.begins

    def column(self, index: int) -> Flags:
        """An insert has every column. A column that a version does not know begins as NULL
        with its row."""
        told = [_tells(columns[index], bits, count) for columns, bits, count in self._parts]
        absent = np.repeat(
            [columns[index].absent for columns, _, _ in self._parts],
            [count for _, _, count in self._parts],
        )
        found: Flags = np.concatenate(told)[self._order]
        return found | (absent[self._order] & self._begins)


def _bits(table: pa.Table, part: StagedFiles) -> tuple[Flags | None, int]:
    images = row_images(table)
    if part.present is None:
        return None, len(images)
    bits = images.column(part.present).combine_chunks()
    return unpacked(bits), len(images)


def _tells(column: PartColumn, bits: Flags | None, count: int) -> Flags:
    if column.absent:
        return np.zeros(count, np.bool_)
    if bits is None or column.bit is None:
        return np.ones(count, np.bool_)
    return np.ones(count, np.bool_) if column.bit >= bits.shape[1] else bits[:, column.bit]


@dataclass(frozen=True, slots=True)
class _Coalescing:
    whole: pa.Table
    rows: _Rows
    known: _Known
    schema: pa.Schema
    key: tuple[str, ...]

    def table(
        self,
        kept: Sequence[str],
        lacking: Sequence[str],
        marks: Sequence[str],
        *,
        doubtful: int,
        ignored: bool,
    ) -> tuple[pa.Table, tuple[str, ...]]:
        names = self.schema.names
        spelled = dict(zip(names, changelog_names(names), strict=True))
        last, root = self.rows.last, _chased(self.rows.before, None)[self.rows.last]
        kind = self.whole.column("_change_type").take(pa.array(last))
        kind = outcome(kind, ignored=ignored)
        # A row that is gone is looked up only where it stays.
        asks = (
            is_present(kind).to_numpy()
            if "_committed_at" not in marks
            else np.ones(len(last), np.bool_)
        )
        found = {"_change_type": kind}
        found |= {mark: self.whole.column(mark).take(pa.array(last)) for mark in marks}
        unknown: dict[str, Flags] = {}
        places: dict[bytes, Places] = {}
        for index, name in enumerate(names):
            told = last
            if name in kept or name in lacking:
                knows = self.known.column(index)
                if name in self.key and not knows.all():
                    raise TableError(OTHER_KEY, hint=HINT)
                told, unknown[name] = self._told(knows, places)
            values = self.whole.column(spelled[name])
            gone = unknown.get(name)
            found[spelled[name]] = values.take(pa.array(told, mask=gone))
        for name in kept:
            if name not in lacking:
                found[keep_names(names)[names.index(name)]] = pa.array(unknown[name])
        return self._with_lacks(found, unknown, asks, root, kept, lacking, doubtful=doubtful)

    def _told(self, knows: Flags, places: dict[bytes, Places]) -> tuple[Places, Flags]:
        """The image that knows a column for each last one, and for which there is none."""
        same = knows.tobytes()
        if same not in places:
            places[same] = _chased(self.rows.before, knows)[self.rows.last]
        told = places[same]
        return told, ~knows[told]

    def _moved(self, doubtful: int) -> Flags:
        """Whether the key of each last one's row changed in an image up to that number."""
        numbers = self.whole.column("_sequence").to_numpy()
        there: Flags = self.rows.moved & (numbers <= doubtful)
        found: Flags = there[_chased(self.rows.before, there)[self.rows.last]]
        return found

    def _with_lacks(
        self,
        found: dict[str, pa.ChunkedArray],
        unknown: dict[str, Flags],
        asks: Flags,
        root: Places,
        kept: Sequence[str],
        lacking: Sequence[str],
        *,
        doubtful: int,
    ) -> tuple[pa.Table, tuple[str, ...]]:
        names = self.schema.names
        lacks = {name: unknown[name] & asks for name in lacking}
        for name in kept:
            if name in lacking:
                found[keep_names(names)[names.index(name)]] = pa.array(
                    np.zeros(len(root), np.bool_)
                )
        asked = np.zeros(len(root), np.bool_)
        for one in lacks.values():
            asked |= one
        if (asked & self.rows.lost[root]).any():
            raise TableError(LOST, hint=HINT)
        if (asked & self._moved(doubtful)).any():
            raise TableError(MOVED, hint=READ_AGAIN, need=Need.ROWS, by=StoppedBy.RUN)
        for name, one in lacks.items():
            found[lack_names(names)[names.index(name)]] = pa.array(one)
        for name in self.key:
            at = names.index(name)
            values = self.whole.column(changelog_names(names)[at])
            found[origin_names(names)[at]] = values.take(pa.array(root))
        return pa.table(found), tuple(name for name, one in lacks.items() if one.any())


def _chased(before: Places, stops: Flags | None) -> Places:
    """For each image the first one at or before it, along `before`, that stops; or the one
    where the row's images begin."""
    own = np.arange(len(before))
    ends = before < 0 if stops is None else stops | (before < 0)
    found = np.where(ends, own, before)
    while True:
        further = found[found]
        if (further == found).all():
            return found
        found = further
