"""Finds the rows of one table that differ between MySQL and the mirror (the Delta table
with the current rows): their keys, their columns and, on request, their values.

Each side is read once. Its row hashes are partitioned by key into files, called shares.
Memory holds one share at a time, however large the table is and however many of its
rows differ.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import date, time, timedelta
from decimal import Decimal
from typing import Any, Final

import numpy as np
import pyarrow as pa

from lockstep.pipeline.model.batch import Cursor
from lockstep.pipeline.proof.hashes import Hashes, RowHasher
from lockstep.pipeline.proof.rows import (
    ROW_HASH_TYPE,
    RowHashes,
    RowsBeforeLog,
    RowTally,
    WrongRows,
    pair_hashes,
    share_indexes,
)
from lockstep.pipeline.run.context import RunPorts
from lockstep.pipeline.run.mirror_rows import MirrorReader
from lockstep.pipeline.run.proof.verify_log import (
    BeforeHashReader,
    BeforeRowReader,
    TableReader,
    TallyReader,
    read_log,
)
from lockstep.pipeline.run.reports import RowDifference, TableComparison
from lockstep.pipeline.values.errors import SourceMoving
from lockstep.pipeline.values.position import Coordinates
from lockstep.pipeline.values.shown import pluralize
from lockstep.pipeline.values.table import TableName, quoted

MOST_EXAMPLES: Final = 5
"""Largest number of differing rows in the `examples` of a table's comparison."""

MOST_DETAILS: Final = 500
"""Largest number of differing rows that are read again for their keys and columns."""

SHARE_ROWS: Final = 250_000
"""Number of rows in a share. Tables of more than `MOST_SHARES` shares are divided into
`MOST_SHARES` larger ones. A row takes 16 bytes on each side, and ten times that if it
differs."""

MOST_SHARES: Final = 64
"""Largest number of files that are open at once on each side, each with its own
buffer."""

_DIFFERENT, _ONLY_SOURCE, _ONLY_LAKE = "different", "only in MySQL", "only in the lake"


@dataclass(frozen=True, slots=True)
class BothSides:
    """A table on both sides. `hasher`: hashes the rows of both. `mirror`: reads the
    lake's rows. `keeps_deleted`: if a DELETE or a TRUNCATE removes rows at the source,
    they stay in the mirror as configured, and no column says that they were deleted."""

    table: TableName
    hasher: RowHasher
    mirror: MirrorReader
    keeps_deleted: bool = False

    @property
    def has_key(self) -> bool:
        return bool(self.hasher.structure.primary_key)


def compare_row_by_row(
    ports: RunPorts,
    cursor: Cursor,
    sides: BothSides,
    comparison: TableComparison,
    *,
    show_values: bool,
) -> TableComparison:
    """Return `comparison` with the rows that differ at the cursor. Raise `SourceMoving`
    if rows changed after it and the log lacks columns of them."""
    total = _Total()
    share_count = -(-max(comparison.source_rows, comparison.lake_rows, 1) // SHARE_ROWS)
    for share_rows in _wrong_rows(ports, cursor, sides, min(share_count, MOST_SHARES)):
        total.add(share_rows)
    sample = total.sample
    # Rows that differ are reported even if other rows could not be compared.
    if sample.incomplete_count and not sample.all_keys:
        raise SourceMoving(
            f"{pluralize(sample.incomplete_count, 'row')} changed since "
            f"{cursor.position}, and the log lacks some of their columns",
            hint="`lockstep run`, then `lockstep verify` at once; or set global binlog_row_image "
            "= FULL at the source",
        )
    source, lake, has_repeated_keys = _read_wrong_rows(ports, cursor, sides, sample)
    rows = list(differing_rows(sides, sample, source, lake, show_values=show_values))
    has_condition = total.has_all and not has_repeated_keys
    return replace(
        comparison,
        only_in_source=total.only_source_count,
        only_in_lake=total.only_lake_count,
        different=total.different_count,
        kept=sample.kept_count,
        examples=tuple(map(str, rows[:MOST_EXAMPLES])),
        rows=tuple(rows),
        where=_where_condition(sides, sample, source, lake) if has_condition else None,
    )


@dataclass(slots=True)
class _Total:
    """The numbers of differing rows by kind. `sample`: at most `MOST_DETAILS` of these
    rows. Its `kept_count` and `incomplete_count` are those of the whole table."""

    only_source_count: int = 0
    only_lake_count: int = 0
    different_count: int = 0
    sample: WrongRows = field(default_factory=WrongRows)

    def add(self, wrong: WrongRows) -> None:
        self.only_source_count += len(wrong.only_source)
        self.only_lake_count += len(wrong.only_lake)
        self.different_count += len(wrong.different)
        self.sample = (self.sample | wrong.first(MOST_DETAILS)).first(MOST_DETAILS)

    @property
    def has_all(self) -> bool:
        """True if the sample has every differing row."""
        wrong_count = self.only_source_count + self.only_lake_count + self.different_count
        return len(self.sample.all_keys) == wrong_count


def _wrong_rows(
    ports: RunPorts, cursor: Cursor, sides: BothSides, share_count: int
) -> Iterator[WrongRows]:
    """Yield the rows that differ, one share at a time."""
    with (
        closing(_Shares(ports, share_count)) as source,
        closing(_Shares(ports, share_count)) as lake,
    ):
        with ports.server.row_hashes(sides.hasher.structure) as hashes:
            for key_hashes, row_hashes in hashes.batches:
                source.put(pair_hashes(key_hashes, row_hashes))
            low = hashes.marks.low
        for hash_pairs in sides.mirror.row_hashes(sides.hasher):
            lake.put(hash_pairs)
        changes = _changes_in_log(ports, cursor, sides, low, share_count)
        for index, share_changes in enumerate(changes):
            yield share_changes.wrong_rows(
                source.share(index), lake.share(index), keeps_deleted=sides.keeps_deleted
            )


def _changes_in_log(
    ports: RunPorts, cursor: Cursor, sides: BothSides, low: Coordinates, share_count: int
) -> Sequence[RowsBeforeLog | RowTally]:
    """Return the log's changes of each share. `low`: the log's end just before the
    source was read."""
    if sides.has_key:
        rows_before_log = RowsBeforeLog()
        _read_log(ports, cursor, sides, BeforeHashReader(sides.hasher, rows_before_log))
        return rows_before_log.shares(share_count)
    tally = RowTally()
    _read_log(ports, cursor, sides, TallyReader(sides.hasher, tally, low))
    return tally.shares(share_count)


class _Shares:
    """The row hashes of one side, one file for each share."""

    def __init__(self, ports: RunPorts, count: int) -> None:
        self._files = [ports.spool.create_scratch_file() for _ in range(count)]
        self._sizes = [0] * count

    def put(self, row_hashes: RowHashes) -> None:
        indexes = share_indexes(row_hashes["key"], len(self._files))
        sorted_hashes = row_hashes[np.argsort(indexes, kind="stable")]
        ends = np.cumsum(np.bincount(indexes, minlength=len(self._files)))
        for index, rows in enumerate(np.split(sorted_hashes, ends[:-1])):
            if len(rows):
                self._files[index].write(rows.tobytes())
                self._sizes[index] += rows.nbytes

    def share(self, index: int) -> RowHashes:
        return np.frombuffer(self._files[index].read(0, self._sizes[index]), ROW_HASH_TYPE)

    def close(self) -> None:
        for file in self._files:
            file.close()


def _read_log(ports: RunPorts, cursor: Cursor, sides: BothSides, reader: TableReader) -> None:
    uncompared_tables = read_log(ports, cursor, {sides.table: reader})
    if table := uncompared_tables.get(sides.table):
        raise SourceMoving(table.reason, hint=table.hint)


# -- the rows themselves ---------------------------------------------------------------


RowsByKey = dict[int, pa.RecordBatch]
"""Each row as a record batch of one row, by the hash of its key."""


def _read_wrong_rows(
    ports: RunPorts, cursor: Cursor, sides: BothSides, wrong: WrongRows
) -> tuple[RowsByKey, RowsByKey, bool]:
    """Return the wrong rows of the source and of the mirror, and whether the mirror has
    several rows with one key. A repair that reads rows again by a condition would not
    remove the surplus ones."""
    if not wrong.all_keys:
        return {}, {}, False
    key_hashes = np.array(sorted(wrong.all_keys), np.uint64)
    source = rows_by_key(sides, _source_rows(ports, cursor, sides, key_hashes))
    rows = sides.mirror.rows_by_hash(sides.hasher, key_hashes)
    lake = rows_by_key(sides, rows)
    return source, lake, rows.num_rows > len(lake)


def _where_condition(
    sides: BothSides, wrong: WrongRows, source: RowsByKey, lake: RowsByKey
) -> str | None:
    """Return a SQL condition that selects the wrong rows; None if there are none, or
    if the key is not a single integer column."""
    if not sides.has_key or len(sides.hasher.key_columns) != 1 or not wrong.all_keys:
        return None
    [name] = sides.hasher.key_columns
    values = []
    for key_hash in wrong.all_keys:
        row = _row_of_either(source.get(key_hash), lake.get(key_hash))
        value = None if row is None else row.column(name)[0].as_py()
        if type(value) is not int:
            return None
        values.append(value)
    return f"{quoted(name)} in ({', '.join(map(str, sorted(values)))})"


def differing_rows(
    sides: BothSides, wrong: WrongRows, source: RowsByKey, lake: RowsByKey, *, show_values: bool
) -> Iterator[RowDifference]:
    """Yield at most `MOST_DETAILS` of the differing rows, ordered by kind and key."""
    kinds = {
        _DIFFERENT: wrong.different,
        _ONLY_SOURCE: wrong.only_source,
        _ONLY_LAKE: wrong.only_lake,
    }
    sample = sorted(wrong.all_keys)[:MOST_DETAILS]
    for kind, keys in kinds.items():
        rows = [(source.get(key), lake.get(key)) for key in sample if key in keys]
        rows.sort(key=lambda row: _key_values(sides, *row))
        for in_source, in_lake in rows:
            yield _difference(sides, kind, in_source, in_lake, show_values=show_values)


def _source_rows(ports: RunPorts, cursor: Cursor, sides: BothSides, key_hashes: Hashes) -> pa.Table:
    """Return the rows as they were at the cursor. A row that changed after it is
    restored from its first before image in the log."""
    rows = ports.server.rows_by_hash(sides.hasher.structure, set(key_hashes.tolist())).rows
    if not sides.has_key:
        return rows
    reader = BeforeRowReader(sides.hasher, key_hashes)
    _read_log(ports, cursor, sides, reader)
    changed_hashes = np.array(list(reader.rows), np.uint64)
    unchanged_rows = [
        batch.filter(pa.array(~np.isin(sides.hasher.key_hashes(batch), changed_hashes)))
        for batch in rows.to_batches()
    ]
    restored_rows = [row for row in reader.rows.values() if row is not None]
    return pa.Table.from_batches([*unchanged_rows, *restored_rows], sides.hasher.schema)


def rows_by_key(sides: BothSides, rows: pa.Table) -> RowsByKey:
    """Return one row for each key."""
    return {
        key: batch.slice(index, 1)
        for batch in rows.to_batches()
        for index, key in enumerate(sides.hasher.key_hashes(batch).tolist())
    }


def _difference(
    sides: BothSides,
    kind: str,
    source: pa.RecordBatch | None,
    lake: pa.RecordBatch | None,
    *,
    show_values: bool,
) -> RowDifference:
    columns = _differing_columns(sides.hasher, source, lake)
    shown = columns or sides.hasher.structure.names
    return RowDifference(
        kind,
        _key_text(sides, _row_of_either(source, lake), show_values=show_values),
        columns,
        source=_value_texts(source, shown) if show_values else None,
        lake=_value_texts(lake, shown) if show_values else None,
    )


def _row_of_either(
    source: pa.RecordBatch | None, lake: pa.RecordBatch | None
) -> pa.RecordBatch | None:
    """Return the source's row, or the mirror's if the source has none."""
    return source if source is not None else lake


def _differing_columns(
    hasher: RowHasher, source: pa.RecordBatch | None, lake: pa.RecordBatch | None
) -> tuple[str, ...]:
    """Return the columns in which two rows differ."""
    if source is None or lake is None:
        return ()
    names = hasher.structure.names
    columns = zip(names, hasher.texts(source), hasher.texts(lake), strict=True)
    return tuple(name for name, in_source, in_lake in columns if in_source[0] != in_lake[0])


def _key_text(sides: BothSides, row: pa.RecordBatch | None, *, show_values: bool) -> str:
    """Return the key of a row as text. Of a table without a key, values are shown only
    on request."""
    if row is None:
        return "a row that changed meanwhile"
    if not sides.has_key and not show_values:
        return f"a row without a key ({int(sides.hasher.row_hashes(row)[0]):016x})"
    names = sides.hasher.key_columns
    [values] = row.select(list(names)).to_pylist()
    return ", ".join(f"{name}={_value_text(values[name])}" for name in names)


def _key_values(
    sides: BothSides, source: pa.RecordBatch | None, lake: pa.RecordBatch | None
) -> tuple[tuple[bool, Any], ...]:
    """Return the values of a row's key, by which rows are sorted: numbers by their
    value, NULL first."""
    row = _row_of_either(source, lake)
    if row is None:
        return ()
    [values] = row.select(list(sides.hasher.key_columns)).to_pylist()
    return tuple((value is not None, value) for value in values.values())


def _value_texts(row: pa.RecordBatch | None, names: tuple[str, ...]) -> dict[str, str]:
    if row is None:
        return {}
    [values] = row.select(list(names)).to_pylist()
    return {name: _value_text(values[name]) for name in names}


def _value_text(value: object) -> str:
    """Return a value as text for people; strings are quoted."""
    if isinstance(value, Decimal):
        return format(value, "f")
    return str(value) if isinstance(value, date | time | timedelta) else repr(value)
