"""The part of the ledger, in Postgres, that records the deletion of changes and of
values.

Changes are deleted because of their age; values are deleted because a policy no longer
shows them.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime

from lockstep.pipeline.schema.history import shown_as_to_json
from lockstep.pipeline.schema.model import TableSchema, schema_from_json, schema_to_json
from lockstep.pipeline.upkeep.changes import (
    ChangeFile,
    DeletableChanges,
    DeletedChanges,
    DeletionNotes,
    DeletionStep,
    Holder,
    PrunableRows,
    PruneResult,
)
from lockstep.pipeline.upkeep.clearing import (
    ClearedFile,
    ClearedLedgerRows,
    Tightening,
    UnclearedValues,
)
from lockstep.pipeline.values.decisions import Lease
from lockstep.pipeline.values.segment import SystemTable
from lockstep.pipeline.values.table import TableName
from lockstep.resources.postgres.rows import (
    Row,
    position_of,
    table_columns,
    table_of,
    value_of,
)
from lockstep.resources.postgres.schemas import effects_json
from lockstep.resources.postgres.session import LedgerPort


class PostgresDeletions(LedgerPort):
    """The port `Deletions` (`pipeline.ports.ledger`), which describes each method, on
    Postgres."""

    def deletion_notes(self, source: str, table: TableName | None = None) -> DeletionNotes:
        notes = [
            value_of(DeletedChanges, row, end=position_of(row, "end_"), table=None)
            for row in self._all("deletion_notes", source=source)
        ]
        if table is not None:
            for row in self._all("deletion_notes_of_table", source=source, **table_columns(table)):
                # Changes of all tables up to the last note are deleted anyway.
                if not notes or row["through"] > notes[-1].last_batch:
                    end = position_of(row, "end_")
                    notes.append(DeletedChanges(0, row["through"], end, table=table))
        return DeletionNotes(notes)

    def deletable_changes(self, source: str, moment: datetime) -> DeletableChanges:
        newest_old = self._only("acknowledged_before", source=source, moment=moment)
        holders = [
            Holder(row["kind"], row["name"], row["through"])
            for row in self._all("holders", source=source)
        ]
        return DeletableChanges(newest_old["batch"], holders)

    def change_files(self, source: str, above: int, through: int) -> list[ChangeFile]:
        rows = self._all("change_files", source=source, above=above, through=through)
        return [
            ChangeFile(
                SystemTable(row["name"]) if row["database"] is None else table_of(row),
                row["generation"],
                row["path"],
                row["size"],
            )
            for row in rows
        ]

    def begin_deletion(self, lease: Lease, through: int) -> None:
        with self._transaction(lease) as transaction:
            transaction.run("keep_consumers_out")
            transaction.run(
                "begin_deletion", source=lease.source, token=lease.token, through=through
            )

    def note_deletion_step(self, lease: Lease, step: DeletionStep, through: int) -> None:
        with self._transaction(lease) as transaction:
            transaction.run(f"note_{step}", source=lease.source, through=through)

    def prune(
        self, lease: Lease, rows: PrunableRows, above: int, through: int, most: int
    ) -> PruneResult:
        with self._transaction(lease) as transaction:
            limits = {"above": above, "through": through, "most": most}
            row = transaction.only(f"prune_{rows}", source=lease.source, **limits)
            return value_of(PruneResult, row)

    def pruned_through(self, source: str) -> int:
        return int(self._only("pruned_through", source=source)["batch"])

    # -- values that a policy no longer shows -----------------------------------------------------

    def uncleared_values(self, source: str) -> list[UnclearedValues]:
        return [_uncleared_values(row) for row in self._all("uncleared_values", source=source)]

    def note_tightened(self, lease: Lease, tightening: Tightening) -> None:
        with self._transaction(lease) as transaction:
            transaction.run(
                "note_tightened",
                source=lease.source,
                token=lease.token,
                **table_columns(tightening.table),
                through=tightening.last_batch,
                columns=list(tightening.columns),
                fewer_rows=tightening.has_fewer_rows,
                rehashed=tightening.is_rehashed,
                kept_because=tightening.kept_because,
            )

    def note_kept_because(self, lease: Lease, note: int, reason: str | None) -> None:
        with self._transaction(lease) as transaction:
            transaction.run("note_kept_because", source=lease.source, id=note, kept_because=reason)

    def begin_clearing(self, lease: Lease, note: int) -> None:
        with self._transaction(lease) as transaction:
            transaction.run("keep_consumers_out")
            transaction.run("begin_clearing", source=lease.source, id=note)

    def clear_files(self, lease: Lease, files: Sequence[ClearedFile]) -> None:
        with self._transaction(lease) as transaction:
            # Triggers refuse changes of recorded rows unless this setting is on in the
            # transaction.
            transaction.all("allow_clearing")
            for file in files:
                transaction.run(
                    "clear_file",
                    source=lease.source,
                    batch=file.batch,
                    name=file.table.value,
                    before=file.old_path,
                    path=file.new_file.path,
                    size=file.new_file.size,
                    sha256=file.new_file.sha256,
                )

    def ended_loads(self, source: str, table: TableName) -> list[tuple[int, TableSchema]]:
        rows = self._all("ended_loads", source=source, **table_columns(table))
        return [(row["id"], schema_from_json(row["schema"])) for row in rows]

    def clear_ledger_rows(self, lease: Lease, note: int, rows: ClearedLedgerRows) -> None:
        source = lease.source
        with self._transaction(lease) as transaction:
            transaction.all("allow_clearing")
            for version in rows.versions:
                schema, shown_as = version.schema, version.shown_as
                transaction.run(
                    "clear_version",
                    source=source,
                    **table_columns(version.table),
                    version=version.version,
                    schema=None if schema is None else json.dumps(schema_to_json(schema)),
                    fingerprint=None if schema is None else version.fingerprint,
                    shown_as=None if shown_as is None else json.dumps(shown_as_to_json(shown_as)),
                    reason=version.reason,
                )
            for statement in rows.statements:
                transaction.run(
                    "clear_statement",
                    source=source,
                    id=statement.id,
                    text=json.dumps(statement.text),
                    context=json.dumps(dict(statement.context)),
                    effects=effects_json(statement),
                )
            for load, structure in rows.loads:
                schema_text = json.dumps(schema_to_json(structure))
                transaction.run("clear_load", source=source, id=load, schema=schema_text)
                transaction.run("clear_chunks", source=source, id=load)
            transaction.run("note_cleared", source=source, id=note)


def _uncleared_values(row: Row) -> UnclearedValues:
    tightening = Tightening(
        table_of(row),
        last_batch=row["through"],
        columns=tuple(row["columns"]),
        has_fewer_rows=row["fewer_rows"],
        is_rehashed=row["rehashed"],
        kept_because=row["kept_because"],
    )
    return UnclearedValues(
        row["id"],
        tightening,
        row["noted_at"],
        has_begun=row["begun_at"] is not None,
        held_by=tuple((kind, name) for kind, name in row["holders"]),
        has_stale_mirror=row["stale"],
    )
