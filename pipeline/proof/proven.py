"""What is kept of a table's comparisons: the newest, and the newest that found it equal.

Values only.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from pipeline.position import Coordinates
from pipeline.table import TableName


class Proof(StrEnum):
    """How a table was compared."""

    EXACT = "exact"
    """Nothing changed it between the marks of the source's read."""
    PREFIX = "prefix"
    """It is the table behind one transaction between the marks, known by its sum."""
    ROWS = "rows"
    """Each of its rows was held against the source's."""
    SAMPLE = "sample"
    """Some of its rows were."""


@dataclass(frozen=True, slots=True)
class Proven:
    """A table was found equal: `rows` of it, at a place of the log with these GTIDs executed."""

    proof: Proof
    rows: int
    at: Coordinates
    gtid_set: str


@dataclass(frozen=True, slots=True)
class Compared:
    """One comparison of a table: what it proved, or how many rows differ. `whole`: of all rows,
    else of a sample."""

    table: TableName
    whole: bool
    proven: Proven | None
    differing: int


@dataclass(frozen=True, slots=True)
class TableProof:
    """What the ledger has of a table's comparisons, of all rows or of samples. `compared_at`: the
    newest, which found so many rows `differing`; `proven_at`: the newest that found none."""

    table: TableName
    whole: bool
    compared_at: datetime
    differing: int
    proven: Proven | None
    proven_at: datetime | None


def open_differences(proofs: Iterable[TableProof]) -> dict[TableName, TableProof]:
    """Tables that differ by what is known of them, in their order, each with the comparison that
    says so. All rows of a table outweigh earlier samples of it; a sample that is equal refutes
    nothing."""
    found: dict[TableName, TableProof] = {}
    for proof in sorted(proofs, key=lambda one: (one.compared_at, one.whole)):
        if proof.whole and not proof.differing:
            found.pop(proof.table, None)
        elif proof.differing and (proof.whole or proof.table not in found):
            found[proof.table] = proof
    return dict(sorted(found.items()))


def proven_since(
    proofs: Iterable[TableProof], stopped: Collection[TableName]
) -> dict[TableName, datetime]:
    """Tables that were found equal as a whole when they were last compared, and when. What was
    proven of a table that has stopped since says nothing of what its mirror shows now."""
    return {
        proof.table: proof.proven_at
        for proof in proofs
        if proof.whole and not proof.differing and proof.proven_at and proof.table not in stopped
    }
