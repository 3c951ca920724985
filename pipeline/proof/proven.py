"""The results of a table's comparisons with MySQL, as the ledger keeps them: the
newest, and the newest that found it equal."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from lockstep.pipeline.values.position import Coordinates
from lockstep.pipeline.values.table import TableName


class Proof(StrEnum):
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
class Proven:
    """The proof that `rows` rows of a table are equal, at a place of the log with its
    GTIDs."""

    proof: Proof
    rows: int
    at: Coordinates
    gtid_set: str


@dataclass(frozen=True, slots=True)
class Compared:
    """The result of one comparison. `whole`: all rows were compared, not a sample.
    `proven`: the proof if no row differs; `differing`: number of rows that do."""

    table: TableName
    whole: bool
    proven: Proven | None
    differing: int


@dataclass(frozen=True, slots=True)
class TableProof:
    """A table's comparisons of all rows (`whole`), or of samples. `compared_at`: when
    it was last compared, and `differing`: how many rows differed then. `proven`,
    `proven_at`: the newest proof that no row differed, and its time; None without
    one."""

    table: TableName
    whole: bool
    compared_at: datetime
    differing: int
    proven: Proven | None
    proven_at: datetime | None


def open_differences(proofs: Iterable[TableProof]) -> dict[TableName, TableProof]:
    """Return the tables that differ from the source as far as is known, sorted, each
    with the comparison that says so. A comparison of all rows overrides all earlier
    ones. An equal sample overrides none."""
    differences: dict[TableName, TableProof] = {}
    for proof in sorted(proofs, key=lambda proof: (proof.compared_at, proof.whole)):
        if proof.whole and not proof.differing:
            differences.pop(proof.table, None)
        elif proof.differing and (proof.whole or proof.table not in differences):
            differences[proof.table] = proof
    return dict(sorted(differences.items()))


def proven_since(
    proofs: Iterable[TableProof], stopped: Collection[TableName]
) -> dict[TableName, datetime]:
    """Return the tables whose rows were all equal at the last comparison, with its
    time. `stopped` tables are left out, because their mirrors may lack later
    changes."""
    return {
        proof.table: proof.proven_at
        for proof in proofs
        if proof.whole and not proof.differing and proof.proven_at and proof.table not in stopped
    }
