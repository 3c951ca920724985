"""Compares a random sample of rows in the lake with MySQL, while other sessions write
to MySQL."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from random import Random
from time import perf_counter
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lockstep.pipeline.model.batch import Cursor
from lockstep.pipeline.ports.source import SourceSample
from lockstep.pipeline.proof.hashes import Hashes
from lockstep.pipeline.proof.proven import ProofKind
from lockstep.pipeline.proof.rows import RowHashes, RowsBeforeLog, concatenated, pair_hashes
from lockstep.pipeline.proof.sampling import (
    ValueRange,
    covered_ranges,
    has_integer_key,
    is_in_ranges,
    random_rows,
    stretch_count,
    stretch_starts,
)
from lockstep.pipeline.run.context import Workplace
from lockstep.pipeline.run.proof.verify_differences import EXAMPLES, Side, by_key, differing_rows
from lockstep.pipeline.run.proof.verify_log import TouchReader, read_log
from lockstep.pipeline.run.proof.verify_rows import (
    Comparison,
    LakeShown,
    lake_shown,
    place_of,
    record_proofs,
    report,
    side_of,
    tables_to_compare,
    try_to_compare,
)
from lockstep.pipeline.run.reports import TableComparison, UncomparedTable, VerifyReport
from lockstep.pipeline.values.errors import LockstepError
from lockstep.pipeline.values.table import TableName

SAMPLED_TABLES: Final = 5
"""Largest number of tables that a run compares by sample."""


def prove_sample(work: Workplace, chance: Random) -> VerifyReport | None:
    """Compare a sample of rows after a run's merges, if the settings ask for that, and
    record the result. An error is reported and does not end the run. `chance`: the
    source of randomness."""
    rows = work.source.prove_rows
    if not rows:
        return None
    try:
        report = verify_sample(work, None, rows, chance, most_tables=SAMPLED_TABLES)
        record_proofs(work, report)
    except LockstepError as error:
        work.progress.note(f"no rows were compared: {error.message}")
        return None
    for table in report.tables:
        if not table.equal:
            work.progress.note(
                f"{table.table} DIFFERS from MySQL in {table.differing_rows} of {table.compared} "
                f"compared rows; `lockstep verify {table.table}` finds all of them"
            )
    return report


@dataclass(frozen=True, slots=True)
class Sampled:
    """The sampled rows of both sides, as they were read."""

    side: Side
    source: pa.Table
    lake: pa.Table


def verify_sample(
    work: Workplace,
    tables: Sequence[TableName] | None,
    rows: int,
    chance: Random,
    *,
    show_values: bool = False,
    most_tables: int | None = None,
) -> VerifyReport:
    """Compare about `rows` rows of each of `tables`, or of `most_tables` random ones;
    otherwise as `verify`. A table without a key is not compared, because its rows
    cannot be told apart."""
    clock = perf_counter()
    shown = lake_shown(work)
    names = tables_to_compare(work, tables, shown.states)
    if most_tables is not None and len(names) > most_tables:
        names = sorted(chance.sample(names, most_tables))
    comparisons: dict[TableName, Comparison] = {}
    sampled: dict[TableName, Sampled] = {}
    for table in names:
        result = try_to_compare(table, partial(_sampled, work, shown, table, rows, chance))
        if isinstance(result, Sampled):
            sampled[table] = result
        else:
            comparisons[table] = result
    touched = {table: RowsBeforeLog() for table in sampled}
    readers = {
        table: TouchReader(sample.side.hasher, touched[table]) for table, sample in sampled.items()
    }
    if readers:
        comparisons.update(read_log(work, shown.cursor, readers))
    for table, sample in sampled.items():
        if table not in comparisons:
            compare = partial(
                _compared, sample, touched[table], shown.cursor, show_values=show_values
            )
            comparisons[table] = try_to_compare(table, compare)
    return report(work, shown.cursor, comparisons, perf_counter() - clock)


def _sampled(
    work: Workplace, shown: LakeShown, table: TableName, rows: int, chance: Random
) -> Sampled | Comparison:
    if (unready := shown.unready(table)) is not None:
        return unready
    side = side_of(work, shown, table)
    if not side.keyed:
        why = "it has no key by which a sample of rows could be drawn"
        return UncomparedTable(table, why, f"`lockstep verify {table}`", is_readable=True)
    if has_integer_key(side.hasher.structure):
        return _by_numbers(work, side, rows, chance)
    return _by_values(work, side, rows, chance)


def _by_numbers(work: Workplace, side: Side, rows: int, chance: Random) -> Sampled:
    """Return a sample by a numeric key. Both sides order numbers in the same way, so
    each reads all rows in the stretches (ranges of consecutive keys) of the sample."""
    structure = side.hasher.structure
    first = structure.primary_key[0]

    def choose(least: int, most: int) -> list[int]:
        return stretch_starts(least, most, rows, chance)

    sample = work.server.sample(structure, choose)
    spans = covered_ranges([start for (start,) in sample.starts], sample.rows, first)

    def is_sampled(batch: pa.RecordBatch) -> npt.NDArray[np.bool_]:
        return np.asarray(is_in_ranges(batch.column(first), spans).to_numpy(zero_copy_only=False))

    return Sampled(side, _distinct(side, sample), _lake(side, first, spans, is_sampled))


def _by_values(work: Workplace, side: Side, rows: int, chance: Random) -> Sampled:
    """Return a sample by a key of text. Only the server knows the order of its
    collation, so the server's rows in each stretch are looked up in the mirror by key.
    One stretch begins at the table's first row, the others at random rows of the
    mirror."""
    structure = side.hasher.structure
    first = structure.primary_key[0]
    schema = side.hasher.schema
    keys = pa.schema([schema.field(name) for name in structure.primary_key])
    starts = random_rows(side.mirror.batches(keys), stretch_count(rows) - 1, chance)
    source = _distinct(side, work.server.sample(structure, [(), *starts]))
    columns = zip(*starts, strict=True) if starts else [()] * len(keys)
    first_keys = pa.RecordBatch.from_arrays(
        [pa.array(values, field.type) for values, field in zip(columns, keys, strict=True)],
        schema=keys,
    )
    sampled = _keys(side, [*source.to_batches(), first_keys])
    values = {*source.column(first).to_pylist(), *first_keys.column(0).to_pylist()}
    single = pa.types.is_string(keys.field(0).type) or pa.types.is_integer(keys.field(0).type)
    spans = [ValueRange(value, value) for value in sorted(values)] if single else []

    def is_sampled(batch: pa.RecordBatch) -> npt.NDArray[np.bool_]:
        return np.asarray(np.isin(side.hasher.key_hashes(batch), sampled))

    return Sampled(side, source, _lake(side, first, spans, is_sampled))


def _lake(
    side: Side,
    column: str,
    spans: Sequence[ValueRange],
    is_sampled: Callable[[pa.RecordBatch], npt.NDArray[np.bool_]],
) -> pa.Table:
    """Return the mirror's rows that belong to the sample."""
    batches = [
        batch.filter(pa.array(is_sampled(batch)))
        for batch in side.mirror.batches(side.hasher.schema, column, spans)
    ]
    return pa.Table.from_batches(batches, side.hasher.schema)


def _distinct(side: Side, sample: SourceSample) -> pa.Table:
    """Return the rows of all stretches without duplicates, because stretches may
    overlap."""
    rows = pa.concat_tables([side.hasher.schema.empty_table(), *sample.rows]).combine_chunks()
    _, firsts = np.unique(_keys(side, rows.to_batches()), return_index=True)
    return rows.take(pa.array(firsts))


def _keys(side: Side, batches: Iterable[pa.RecordBatch]) -> Hashes:
    empty = np.empty(0, np.uint64)
    return np.concatenate([empty, *(side.hasher.key_hashes(batch) for batch in batches)])


def _compared(
    sample: Sampled, touched: RowsBeforeLog, cursor: Cursor, *, show_values: bool
) -> TableComparison:
    side = sample.side
    source, lake = (_pairs(side, rows) for rows in (sample.source, sample.lake))
    keys = {*source["key"].tolist(), *lake["key"].tolist()}
    changed_rows = touched.with_keys(keys)
    wrong = changed_rows.wrong_rows(source, lake, keeps_deleted=side.keeps)
    # The values of a row that changed after the cursor are not those that the mirror
    # must have.
    unchanged = {
        key: row
        for key, row in by_key(side, sample.source).items()
        if key not in changed_rows.earlier_rows
    }
    in_lake = by_key(side, sample.lake)
    rows = tuple(differing_rows(side, wrong, unchanged, in_lake, show_values=show_values))
    return TableComparison(
        side.table,
        len(source),
        len(lake),
        len(wrong.only_source),
        len(wrong.only_lake),
        len(wrong.different),
        tuple(map(str, rows[:EXAMPLES])),
        ProofKind.SAMPLE,
        place_of(cursor),
        rows,
        compared=len(keys) - wrong.incomplete_count,
        kept=wrong.kept_count,
    )


def _pairs(side: Side, rows: pa.Table) -> RowHashes:
    hasher = side.hasher
    return concatenated(
        pair_hashes(hasher.key_hashes(batch), hasher.row_hashes(batch))
        for batch in rows.to_batches()
    )
