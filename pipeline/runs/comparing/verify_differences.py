"""Which rows of one table a mirror has wrong: their keys, their columns, and their values if asked.

Each side is read once. Its hashes wait in files, one for each share of the rows, so that memory
holds one share at a time, however large the table is and however many of its rows differ.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import date, time, timedelta
from decimal import Decimal
from typing import Final

import numpy as np
import pyarrow as pa

from pipeline.batch import Cursor
from pipeline.errors import SourceMoving
from pipeline.position import Coordinates
from pipeline.proof.hashes import Hashes, RowHasher
from pipeline.proof.rows import PAIR, FirstTouch, Pairs, RowTally, Wrong, pairs, share_of
from pipeline.runs.comparing.verify_log import (
    BeforeReader,
    TableReader,
    TallyReader,
    TouchReader,
    read_log,
)
from pipeline.runs.context import Workplace
from pipeline.runs.mirror_rows import Mirror
from pipeline.runs.reports import RowDifference, TableDifference
from pipeline.table import TableName

EXAMPLES: Final = 5
DETAILS: Final = 500
"""So many rows that differ are read again, for their keys and columns."""

SHARE_ROWS: Final = 250_000
"""Rows whose hashes are compared at once: 16 bytes each, on both sides; where all of them differ,
ten times that."""

MOST_SHARES: Final = 64
"""Files that are open at once, on each side, each with a buffer of its own."""

_DIFFERENT, _MISSING, _SURPLUS = "different", "only in MySQL", "only in the lake"


@dataclass(frozen=True, slots=True)
class Side:
    """What is needed to read one table on both sides. `keeps`: whether the mirror keeps rows that
    are gone at the source, and nothing in it says which."""

    table: TableName
    hasher: RowHasher
    mirror: Mirror
    keeps: bool = False

    @property
    def keyed(self) -> bool:
        return bool(self.hasher.structure.primary_key)


def differences(
    work: Workplace, cursor: Cursor, side: Side, told: TableDifference, *, show_values: bool
) -> TableDifference:
    """`told`, with the rows that differ at the cursor; `SourceMoving` where the log says too
    little of rows that changed since."""
    found = _Found()
    shares = -(-max(told.source_rows, told.lake_rows, 1) // SHARE_ROWS)
    for share in _wrong(work, cursor, side, min(shares, MOST_SHARES)):
        found.add(share)
    wrong = found.some
    if wrong.untold and not wrong.all:
        raise SourceMoving(
            f"{wrong.untold:,} rows changed since {cursor.position}, and the log lacks some of "
            "their columns",
            hint="`lockstep run`, then `lockstep verify` at once; or set global binlog_row_image "
            "= FULL at the source",
        )
    source, lake, repeated = _both(work, cursor, side, wrong)
    rows = list(told_rows(side, wrong, source, lake, show_values=show_values))
    return replace(
        told,
        only_in_source=found.only_source,
        only_in_lake=found.only_lake,
        different=found.different,
        kept=found.kept,
        examples=tuple(map(str, rows[:EXAMPLES])),
        rows=tuple(rows),
        where=None if repeated or not found.all_known else _where(side, wrong, source, lake),
    )


@dataclass(slots=True)
class _Found:
    """How many rows differ, and `DETAILS` of them."""

    only_source: int = 0
    only_lake: int = 0
    different: int = 0
    kept: int = 0
    some: Wrong = field(default_factory=Wrong)

    def add(self, wrong: Wrong) -> None:
        self.only_source += len(wrong.only_source)
        self.only_lake += len(wrong.only_lake)
        self.different += len(wrong.different)
        self.kept += wrong.kept
        self.some = (self.some | wrong.least(DETAILS)).least(DETAILS)

    @property
    def all_known(self) -> bool:
        return len(self.some.all) == self.only_source + self.only_lake + self.different


def _wrong(work: Workplace, cursor: Cursor, side: Side, of: int) -> Iterator[Wrong]:
    """Of each share of the rows."""
    hasher = side.hasher
    with closing(_Shares(work, of)) as source, closing(_Shares(work, of)) as lake:
        with work.server.row_hashes(hasher.structure) as hashes:
            for keys, rows in hashes.batches:
                source.put(pairs(keys, rows))
            marks = hashes.marks
        for some in side.mirror.pairs(hasher):
            lake.put(some)
        for number, share in enumerate(_touched(work, cursor, side, marks.low, of)):
            yield share.wrong(source.share(number), lake.share(number), keeps=side.keeps)


def _touched(
    work: Workplace, cursor: Cursor, side: Side, low: Coordinates, of: int
) -> Sequence[FirstTouch | RowTally]:
    """What the log says of each share of the rows."""
    if side.keyed:
        touch = FirstTouch()
        _read(work, cursor, side, TouchReader(side.hasher, touch))
        return touch.shares(of)
    tally = RowTally()
    _read(work, cursor, side, TallyReader(side.hasher, tally, low))
    return tally.shares(of)


class _Shares:
    """One side's hashes, which wait in a file for each share of the rows."""

    def __init__(self, work: Workplace, of: int) -> None:
        self._files = [work.spool.scratch() for _ in range(of)]
        self._sizes = [0] * of

    def put(self, found: Pairs) -> None:
        numbers = share_of(found["key"], len(self._files))
        ordered = found[np.argsort(numbers, kind="stable")]
        ends = np.cumsum(np.bincount(numbers, minlength=len(self._files)))
        for number, rows in enumerate(np.split(ordered, ends[:-1])):
            if len(rows):
                self._files[number].write(rows.tobytes())
                self._sizes[number] += rows.nbytes

    def share(self, number: int) -> Pairs:
        return np.frombuffer(self._files[number].read(0, self._sizes[number]), PAIR)

    def close(self) -> None:
        for file in self._files:
            file.close()


def _read(work: Workplace, cursor: Cursor, side: Side, reader: TableReader) -> None:
    for table in read_log(work, cursor, {side.table: reader}).values():
        raise SourceMoving(table.reason, hint=table.hint)


# -- the rows themselves -------------------------------------------------------------------


Rows = dict[int, pa.RecordBatch]
"""By the hash of its key, each as a batch of one."""


def _both(work: Workplace, cursor: Cursor, side: Side, wrong: Wrong) -> tuple[Rows, Rows, bool]:
    """Some of the rows that differ, of the source and of the mirror; and whether the mirror has
    several of one key, of which a merge would leave as many as there are."""
    if not wrong.all:
        return {}, {}, False
    wanted = np.array(sorted(wrong.all)[:DETAILS], np.uint64)
    source = by_key(side, _source_rows(work, cursor, side, wanted))
    rows = side.mirror.rows(side.hasher, wanted)
    lake = by_key(side, rows)
    return source, lake, rows.num_rows > len(lake)


def _where(side: Side, wrong: Wrong, source: Rows, lake: Rows) -> str | None:
    """A condition for all that differ, which a key of one column of whole numbers gives."""
    if not side.keyed or len(side.hasher.key) != 1 or not 0 < len(wrong.all) <= DETAILS:
        return None
    [name] = side.hasher.key
    values = []
    for number in wrong.all:
        row = source.get(number, lake.get(number))
        value = None if row is None else row.column(name)[0].as_py()
        if type(value) is not int:
            return None
        values.append(value)
    column = "`" + name.replace("`", "``") + "`"
    return f"{column} in ({', '.join(map(str, sorted(values)))})"


def told_rows(
    side: Side,
    wrong: Wrong,
    source: Mapping[int, pa.RecordBatch],
    lake: Mapping[int, pa.RecordBatch],
    *,
    show_values: bool,
) -> Iterator[RowDifference]:
    """Some of those that differ, by kind and key; the rows of both sides by their keys' hashes."""
    kinds = {_DIFFERENT: wrong.different, _MISSING: wrong.only_source, _SURPLUS: wrong.only_lake}
    some = sorted(wrong.all)[:DETAILS]
    for kind, keys in kinds.items():
        found = [
            difference(side, kind, source.get(key), lake.get(key), show_values=show_values)
            for key in some
            if key in keys
        ]
        yield from sorted(found, key=lambda one: one.key)


def _source_rows(work: Workplace, cursor: Cursor, side: Side, wanted: Hashes) -> pa.Table:
    """As they were at the cursor: what the log touched since is what it says it was."""
    rows = work.server.rows_by_hash(side.hasher.structure, set(wanted.tolist()))
    if not side.keyed:
        return rows.rows
    before = BeforeReader(side.hasher, wanted)
    _read(work, cursor, side, before)
    if not before.was:
        return rows.rows
    touched = np.array(list(before.was), np.uint64)
    left = [
        batch.filter(pa.array(~np.isin(side.hasher.keys(batch), touched)))
        for batch in rows.rows.to_batches()
    ]
    was = [row for row in before.was.values() if row is not None]
    return pa.Table.from_batches([*left, *was], side.hasher.schema)


def by_key(side: Side, rows: pa.Table) -> Rows:
    """One row for each key."""
    found: Rows = {}
    for batch in rows.to_batches():
        for at, key in enumerate(side.hasher.keys(batch).tolist()):
            found[key] = batch.slice(at, 1)
    return found


def difference(
    side: Side,
    kind: str,
    source: pa.RecordBatch | None,
    lake: pa.RecordBatch | None,
    *,
    show_values: bool,
) -> RowDifference:
    columns = _columns(side.hasher, source, lake)
    shown = columns or side.hasher.structure.names
    return RowDifference(
        kind,
        _key(side, source if source is not None else lake, show_values=show_values),
        columns,
        _values(source, shown) if show_values else None,
        _values(lake, shown) if show_values else None,
    )


def _columns(
    hasher: RowHasher, source: pa.RecordBatch | None, lake: pa.RecordBatch | None
) -> tuple[str, ...]:
    """Those in which two rows differ."""
    if source is None or lake is None:
        return ()
    names = hasher.structure.names
    both = zip(names, hasher.texts(source), hasher.texts(lake), strict=True)
    return tuple(name for name, ours, theirs in both if ours[0] != theirs[0])


def _key(side: Side, row: pa.RecordBatch | None, *, show_values: bool) -> str:
    """The key's columns; of a table without one nothing that its rows hold, unless asked."""
    if row is None:
        return "a row that changed meanwhile"
    if not side.keyed and not show_values:
        return f"a row without a key ({int(side.hasher.rows(row)[0]):016x})"
    names = side.hasher.key
    [values] = row.select(list(names)).to_pylist()
    return ", ".join(f"{name}={_shown(values[name])}" for name in names)


def _values(row: pa.RecordBatch | None, names: tuple[str, ...]) -> dict[str, str]:
    if row is None:
        return {}
    [values] = row.select(list(names)).to_pylist()
    return {name: _shown(values[name]) for name in names}


def _shown(value: object) -> str:
    """As a person reads it; what is text, and what is not, can be told."""
    if isinstance(value, Decimal):
        return format(value, "f")
    return str(value) if isinstance(value, date | time | timedelta) else repr(value)
