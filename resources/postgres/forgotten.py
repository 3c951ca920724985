"""Changes that are kept no longer, on Postgres."""

from __future__ import annotations

from datetime import datetime

from pipeline.decisions import Lease
from pipeline.segment import SourceTable
from pipeline.upkeep.changes import ChangeFile, Forgotten, ForgottenStep, Holder, Pruned
from resources.postgres.rows import Row, position, table
from resources.postgres.session import Books


class PostgresForgotten(Books):
    def forgotten(self, source: str) -> Forgotten | None:
        rows = self._all("notes_of_forgotten", source=source)
        return _note(rows[-1]) if rows else None

    def unfinished_notes(self, source: str) -> list[Forgotten]:
        notes = map(_note, self._all("notes_of_forgotten", source=source))
        return [forgotten for forgotten in notes if not forgotten.pruned]

    def holders(self, source: str) -> list[Holder]:
        return [Holder(**row) for row in self._all("holders", source=source)]

    def acknowledged_before(self, source: str, moment: datetime) -> int:
        number: int = self._only("acknowledged_before", source=source, moment=moment)["batch"]
        return number

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

    def prune(self, lease: Lease, above: int, last: int, through: int) -> int:
        with self._step(lease) as step:
            ends = {"above": above, "last": last, "through": through}
            rows: int = step.only("prune", source=lease.source, **ends)["rows"]
            return rows

    def prune_leases(self, lease: Lease, above: int, through: int, most: int) -> Pruned:
        return self._pruned("prune_leases", lease, above, through, most)

    def prune_batches(self, lease: Lease, above: int, through: int, most: int) -> Pruned:
        return self._pruned("prune_batches", lease, above, through, most)

    def _pruned(self, name: str, lease: Lease, above: int, through: int, most: int) -> Pruned:
        with self._step(lease) as step:
            ends = {"above": above, "through": through, "most": most}
            row = step.only(name, source=lease.source, **ends)
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
