"""What comparisons of tables found, on Postgres: `pipeline.ports.proofs`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pipeline.proof.proven import Compared, Proof, Proven, TableProof
from resources.postgres.rows import Row, coordinates, of_coordinates, of_table, table
from resources.postgres.session import Books


class PostgresProofs(Books):
    def note_compared(self, source: str, compared: Sequence[Compared]) -> None:
        with self._session.step("identity") as (step, _):
            for one in compared:
                step.run("note_compared", source=source, **_of_compared(one))

    def proofs(self, source: str) -> list[TableProof]:
        return [table_proof(row) for row in self._all("proofs", source=source)]


def _of_compared(value: Compared) -> dict[str, Any]:
    proven = value.proven
    return {
        **of_table(value.table),
        **of_coordinates(None if proven is None else proven.at),
        "whole": value.whole,
        "differing": value.differing,
        "proof": None if proven is None else proven.proof.value,
        "rows": None if proven is None else proven.rows,
        "gtid_set": None if proven is None else proven.gtid_set,
    }


def table_proof(row: Row) -> TableProof:
    proven = None
    if row["proof"] is not None:
        at = coordinates(row, "at")
        proven = Proven(Proof(row["proof"]), row["rows"], at, row["gtid_set"])
    return TableProof(
        table(row), row["whole"], row["compared_at"], row["differing"], proven, row["proven_at"]
    )
