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
import pyarrow as pa

from lockstep.pipeline.model.batch import Cursor
from lockstep.pipeline.ports.source import ReadMarks, SourceSample
from lockstep.pipeline.proof.hashes import Flags, Hashes, membership, sorted_unique
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
from lockstep.pipeline.run.context import RunPorts
from lockstep.pipeline.run.proof.verify_differences import (
    MOST_EXAMPLES,
    BothSides,
    differing_rows,
    rows_by_key,
)
from lockstep.pipeline.run.proof.verify_log import BeforeHashReader, read_log
from lockstep.pipeline.run.proof.verify_rows import (
    Comparison,
    QuietLake,
    make_report,
    place_of,
    quiet_lake,
    record_proofs,
    sides_of,
    tables_to_compare,
    try_to_compare,
)
from lockstep.pipeline.run.reports import TableComparison, VerifyReport
from lockstep.pipeline.values.errors import LockstepError, NotSampled
from lockstep.pipeline.values.table import TableName

SAMPLED_TABLES: Final = 5
"""Largest number of tables that a run compares by sample."""


def prove_sample(ports: RunPorts, randomness: Random) -> VerifyReport | None:
    """Compare a sample of rows after a run's merges, if the settings ask for that, and
    record the result. An error is reported and does not end the run. `randomness`: the
    source of randomness."""
    row_count = ports.source.sample_rows
    if not row_count:
        return None
    try:
        report = verify_sample(ports, None, row_count, randomness, most_tables=SAMPLED_TABLES)
        record_proofs(ports, report)
    except LockstepError as error:
        ports.progress.note(f"no rows were compared: {error.message}")
        return None
    for comparison in report.tables:
        if not comparison.equal:
            table = comparison.table
            ports.progress.note(
                f"{table} DIFFERS from MySQL in {comparison.difference_count} of "
                f"{comparison.compared} compared rows; `lockstep verify {table.word}` finds all of "
                "them"
            )
    return report


@dataclass(frozen=True, slots=True)
class TableSample:
    """The sampled rows of both sides, as they were read. `marks`: the places of the log
    around the read of the source."""

    sides: BothSides
    marks: ReadMarks
    source_rows: pa.Table
    lake_rows: pa.Table


def verify_sample(
    ports: RunPorts,
    tables: Sequence[TableName] | None,
    row_count: int,
    randomness: Random,
    *,
    show_values: bool = False,
    most_tables: int | None = None,
) -> VerifyReport:
    """Compare about `row_count` rows of each table, chosen at random. `tables`: None for
    all that are followed. `most_tables`: if there are more tables, compare this many,
    chosen at random. A table without a key is not compared, because its rows cannot be
    told apart."""
    timer_start = perf_counter()
    quiet = quiet_lake(ports)
    names = tables_to_compare(ports, tables, quiet.states)
    if most_tables is not None and len(names) > most_tables:
        names = sorted(randomness.sample(names, most_tables))
    comparisons: dict[TableName, Comparison] = {}
    samples: dict[TableName, TableSample] = {}
    for table in names:
        result = try_to_compare(
            table, partial(_sample_table, ports, quiet, table, row_count, randomness)
        )
        if isinstance(result, TableSample):
            samples[table] = result
        else:
            comparisons[table] = result
    rows_before_log = {table: RowsBeforeLog() for table in samples}
    readers = {
        table: BeforeHashReader(sample.sides.hasher, rows_before_log[table])
        for table, sample in samples.items()
    }
    if readers:
        comparisons.update(read_log(ports, quiet.cursor, readers))
    for table, sample in samples.items():
        if table not in comparisons:
            compare = partial(
                _compare_sample,
                sample,
                rows_before_log[table],
                quiet.cursor,
                show_values=show_values,
            )
            comparisons[table] = try_to_compare(table, compare)
    return make_report(ports, quiet.cursor, comparisons, perf_counter() - timer_start)


def _sample_table(
    ports: RunPorts, quiet: QuietLake, table: TableName, row_count: int, randomness: Random
) -> TableSample:
    quiet.require_ready(table)
    sides = sides_of(ports, quiet, table)
    if not sides.has_key:
        reason = "it has no key by which a sample of rows could be drawn"
        raise NotSampled(reason, hint=f"`lockstep verify {table.word}`")
    has_number = has_integer_key(sides.hasher.structure)
    draw_sample = _sample_by_number if has_number else _sample_by_value
    sample = draw_sample(ports, sides, row_count, randomness)
    quiet.require_comparable(table, sample.marks)
    return sample


def _sample_by_number(
    ports: RunPorts, sides: BothSides, row_count: int, randomness: Random
) -> TableSample:
    """Return a sample by a numeric key. Both sides order numbers in the same way, so
    each reads all rows in the stretches (ranges of consecutive keys) of the sample."""
    structure = sides.hasher.structure
    first_column = structure.primary_key[0]

    def choose(least: int, most: int) -> list[int]:
        return stretch_starts(least, most, row_count, randomness)

    sample = ports.server.sample(structure, choose)
    ranges = covered_ranges([start for (start,) in sample.starts], sample.rows, first_column)

    def is_sampled(batch: pa.RecordBatch) -> Flags:
        return np.asarray(
            is_in_ranges(batch.column(first_column), ranges).to_numpy(zero_copy_only=False)
        )

    lake_rows = _lake_rows(sides, first_column, ranges, is_sampled)
    return TableSample(sides, sample.marks, _distinct_rows(sides, sample), lake_rows)


def _sample_by_value(
    ports: RunPorts, sides: BothSides, row_count: int, randomness: Random
) -> TableSample:
    """Return a sample by a key that is not one integer column. Only the server knows
    the order of such keys (a collation, for example), so the server's rows in each
    stretch are looked up in the mirror by key. One stretch begins at the table's first
    row, the others at random rows of the mirror."""
    structure = sides.hasher.structure
    first_column = structure.primary_key[0]
    schema = sides.hasher.schema
    key_schema = pa.schema([schema.field(name) for name in structure.primary_key])
    starts = random_rows(sides.mirror.batches(key_schema), stretch_count(row_count) - 1, randomness)
    sample = ports.server.sample(structure, [(), *starts])
    source_rows = _distinct_rows(sides, sample)
    # A row of the mirror at which a stretch begins is looked up even if the server does
    # not have it: that is how rows which only the mirror has are found.
    first_keys = pa.RecordBatch.from_pylist(
        [dict(zip(key_schema.names, start, strict=True)) for start in starts], key_schema
    )
    key_hashes = sorted_unique(_key_hashes(sides, [*source_rows.to_batches(), first_keys]))
    values = {*source_rows.column(first_column).to_pylist(), *first_keys.column(0).to_pylist()}
    first_type = key_schema.field(0).type
    can_filter = pa.types.is_string(first_type) or pa.types.is_integer(first_type)
    ranges = [ValueRange(value, value) for value in sorted(values)] if can_filter else []

    def is_sampled(batch: pa.RecordBatch) -> Flags:
        return membership(sides.hasher.key_hashes(batch), key_hashes)

    lake_rows = _lake_rows(sides, first_column, ranges, is_sampled)
    return TableSample(sides, sample.marks, source_rows, lake_rows)


def _lake_rows(
    sides: BothSides,
    column: str,
    ranges: Sequence[ValueRange],
    is_sampled: Callable[[pa.RecordBatch], Flags],
) -> pa.Table:
    """Return the mirror's rows that belong to the sample."""
    batches = [
        batch.filter(pa.array(is_sampled(batch)))
        for batch in sides.mirror.batches(sides.hasher.schema, column, ranges)
    ]
    return pa.Table.from_batches(batches, sides.hasher.schema)


def _distinct_rows(sides: BothSides, sample: SourceSample) -> pa.Table:
    """Return the rows of all stretches without duplicates, because stretches may
    overlap."""
    rows = pa.concat_tables([sides.hasher.schema.empty_table(), *sample.rows]).combine_chunks()
    _, first_indexes = np.unique(_key_hashes(sides, rows.to_batches()), return_index=True)
    return rows.take(pa.array(first_indexes))


def _key_hashes(sides: BothSides, batches: Iterable[pa.RecordBatch]) -> Hashes:
    empty = np.empty(0, np.uint64)
    return np.concatenate([empty, *(sides.hasher.key_hashes(batch) for batch in batches)])


def _compare_sample(
    sample: TableSample, rows_before_log: RowsBeforeLog, cursor: Cursor, *, show_values: bool
) -> TableComparison:
    sides = sample.sides
    source, lake = (_row_hashes(sides, rows) for rows in (sample.source_rows, sample.lake_rows))
    keys = {*source["key"].tolist(), *lake["key"].tolist()}
    before_log = rows_before_log.with_keys(keys)
    wrong = before_log.wrong_rows(source, lake, keeps_deleted=sides.keeps_deleted)
    # The values of a row that changed after the cursor are not those that the mirror
    # must have.
    unchanged_rows = {
        key: row
        for key, row in rows_by_key(sides, sample.source_rows).items()
        if key not in before_log.earlier_rows
    }
    in_lake = rows_by_key(sides, sample.lake_rows)
    rows = tuple(differing_rows(sides, wrong, unchanged_rows, in_lake, show_values=show_values))
    return TableComparison(
        sides.table,
        source_rows=len(source),
        lake_rows=len(lake),
        only_in_source=len(wrong.only_source),
        only_in_lake=len(wrong.only_lake),
        different=len(wrong.different),
        examples=tuple(map(str, rows[:MOST_EXAMPLES])),
        proof=ProofKind.SAMPLE,
        place=place_of(cursor),
        rows=rows,
        compared=len(keys) - wrong.incomplete_count,
        kept=wrong.kept_count,
    )


def _row_hashes(sides: BothSides, rows: pa.Table) -> RowHashes:
    hasher = sides.hasher
    return concatenated(
        pair_hashes(hasher.key_hashes(batch), hasher.row_hashes(batch))
        for batch in rows.to_batches()
    )
