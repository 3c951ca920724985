"""A table's comparisons in the ledger: the newest one, and the newest that found it equal."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from lockstep.pipeline.values.position import Coordinates
from lockstep.pipeline.values.table import TableName


class Proof(StrEnum):
    """The way in which a table was found equal."""

    EXACT = "exact"
    """The sums are equal, and nothing changed it between the marks of the source's read."""
    PREFIX = "prefix"
    """The sums are equal after one of the transactions between the marks."""
    ROWS = "rows"
    """Each of its rows was compared with the source's."""
    SAMPLE = "sample"
    """Some of its rows were compared with the source's."""


@dataclass(frozen=True, slots=True)
class Proven:
    """The proof that `rows` rows of a table are equal, at a place of the log with its GTIDs."""

    proof: Proof
    rows: int
    at: Coordinates
    gtid_set: str


@dataclass(frozen=True, slots=True)
class Compared:
    """The result of one comparison: a proof, or the number of differing rows. `whole`: all rows
    were compared, not a sample."""

    table: TableName
    whole: bool
    proven: Proven | None
    differing: int


@dataclass(frozen=True, slots=True)
class TableProof:
    """A table's comparisons of all rows (`whole`) or of samples. `compared_at`: time of the newest,
    which found the number `differing`; `proven_at`: time of the newest that found none."""

    table: TableName
    whole: bool
    compared_at: datetime
    differing: int
    proven: Proven | None
    proven_at: datetime | None


def open_differences(proofs: Iterable[TableProof]) -> dict[TableName, TableProof]:
    """Return the tables that differ from the source as far as is known, sorted, each with the
    comparison that says so. A comparison of all rows overrides earlier ones; an equal sample
    overrides none."""
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
    """Return the tables of which all rows were equal at the last comparison, and its time. Tables
    that have `stopped` are left out, because their mirrors may lack changes since then."""
    return {
        proof.table: proof.proven_at
        for proof in proofs
        if proof.whole and not proof.differing and proof.proven_at and proof.table not in stopped
    }
