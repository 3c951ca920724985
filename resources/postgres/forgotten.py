"""Changes that are kept no longer, on Postgres."""

from __future__ import annotations

from datetime import datetime

from pipeline.decisions import Lease
from pipeline.segment import SourceTable
from pipeline.upkeep.changes import (
    ChangeFile,
    Forgettable,
    Forgotten,
    ForgottenNotes,
    ForgottenStep,
    Holder,
    Prunable,
    Pruned,
)
from resources.postgres.rows import Row, position, table
from resources.postgres.session import Books


class PostgresForgotten(Books):
    def forgotten(self, source: str) -> ForgottenNotes:
        return ForgottenNotes([_note(row) for row in self._all("forgotten", source=source)])

    def forgettable(self, source: str, moment: datetime) -> Forgettable:
        aged: int = self._only("acknowledged_before", source=source, moment=moment)["batch"]
        return Forgettable(aged, [Holder(**row) for row in self._all("holders", source=source)])

    def change_files(self, source: str, above: int, through: int) -> list[ChangeFile]:
        rows = self._all("change_files", source=source, above=above, through=through)
        return [
            ChangeFile(
                SourceTable(row["name"]) if row["database"] is None else table(row),
                row["generation"],
                row["path"],
                row["size"],
            )
            for row in rows
        ]

    def forget(self, lease: Lease, through: int) -> None:
        with self._step(lease) as step:
            step.run("keep_consumers_out")
            step.run("forget", source=lease.source, token=lease.token, through=through)

    def note_forgotten(self, lease: Lease, done: ForgottenStep, through: int) -> None:
        with self._step(lease) as step:
            step.run(f"note_{done}", source=lease.source, through=through)

    def prune(self, lease: Lease, rows: Prunable, above: int, through: int, most: int) -> Pruned:
        with self._step(lease) as step:
            ends = {"above": above, "through": through, "most": most}
            row = step.only(f"prune_{rows}", source=lease.source, **ends)
            return Pruned(row["gone"], row["reached"], row["ended"])

    def pruned_through(self, source: str) -> int:
        number: int = self._only("pruned_through", source=source)["batch"]
        return number


def _note(row: Row) -> Forgotten:
    return Forgotten(
        row["above"],
        row["through"],
        position(row, "end"),
        row["unlisted_at"],
        row["deleted"],
        row["pruned"],
    )
