"""The results of a table's comparisons with MySQL, as the ledger keeps them: the
newest, and the newest that found it equal."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from lockstep.pipeline.values.position import Coordinates
from lockstep.pipeline.values.table import TableName


class ProofKind(StrEnum):
    """How a table was found equal."""

    EXACT = "exact"
    """The sums of row hashes are equal, and the table did not change while the source
    was read."""
    PREFIX = "prefix"
    """The sums are equal after one of the transactions that committed while the source
    was read."""
    ROWS = "rows"
    """Each of its rows was compared with the source's."""
    SAMPLE = "sample"
    """Some of its rows were compared with the source's."""


@dataclass(frozen=True, slots=True)
class EqualityProof:
    """The proof that `row_count` rows of a table are equal on both sides. `at`: the
    place of the log at which they are; `gtid_set`: the GTIDs up to that place."""

    kind: ProofKind
    row_count: int
    at: Coordinates
    gtid_set: str


@dataclass(frozen=True, slots=True)
class ComparisonResult:
    """The result of one comparison. `is_whole`: all rows were compared, not a sample.
    `proof`: None if a row differs; `differing_count`: number of rows that do."""

    table: TableName
    is_whole: bool
    proof: EqualityProof | None
    differing_count: int


@dataclass(frozen=True, slots=True)
class ComparisonRecord:
    """A table's comparisons of all rows (`is_whole`), or of samples. `compared_at`:
    when it was last compared, and `differing_count`: how many rows differed then.
    `proof`, `proven_at`: the newest proof that no row differed, and its time; None if
    there is no proof."""

    table: TableName
    is_whole: bool
    compared_at: datetime
    differing_count: int
    proof: EqualityProof | None
    proven_at: datetime | None


def open_differences(records: Iterable[ComparisonRecord]) -> dict[TableName, ComparisonRecord]:
    """Return the tables that differ from the source as far as is known, sorted, each
    with the comparison that says so. A comparison of all rows overrides all earlier
    ones. An equal sample overrides none."""
    differences: dict[TableName, ComparisonRecord] = {}
    for record in sorted(records, key=lambda record: (record.compared_at, record.is_whole)):
        if record.is_whole and not record.differing_count:
            differences.pop(record.table, None)
        elif record.differing_count and (record.is_whole or record.table not in differences):
            differences[record.table] = record
    return dict(sorted(differences.items()))


def proof_times(
    records: Iterable[ComparisonRecord], stopped: Collection[TableName]
) -> dict[TableName, datetime]:
    """Return the tables whose rows were all equal at the last comparison of all rows,
    with its time, whatever a later sample found (`open_differences`). `stopped` tables
    are left out, because their mirrors may lack later changes."""
    return {
        record.table: record.proven_at
        for record in records
        if record.is_whole
        and not record.differing_count
        and record.proven_at
        and record.table not in stopped
    }
