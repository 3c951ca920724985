"""The ledger's record of writes to the lake, on Postgres: intents (writes to mirrors,
recorded before they are tried), revisions (replacements of segments' files), upkeep and
catalogs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from lockstep.pipeline.catalog import EntryName, RecordedEntry, Registrations
from lockstep.pipeline.model.claim import BatchSpan
from lockstep.pipeline.model.life import MirrorWritten
from lockstep.pipeline.values.decisions import Lease
from lockstep.pipeline.values.intent import (
    Intent,
    MirrorVersion,
    MissingReason,
    MissingTable,
    NewestWrites,
    RecordedVersionSet,
    SettledWrite,
    VersionSetEntry,
)
from lockstep.pipeline.values.segment import RevisedSegment, Revision, Revisions
from lockstep.pipeline.values.table import TableName
from lockstep.resources.postgres.life_events import record_events
from lockstep.resources.postgres.rows import (
    Row,
    columns_of,
    file_rows,
    files_of,
    table_columns,
    table_of,
    value_of,
)
from lockstep.resources.postgres.session import LedgerPort
from lockstep.resources.postgres.tables import note_missing_batches

_DROPPED = "dropped"
"""The value of `version_sets.missing` for a table that was dropped at the source: a
version set without it is complete."""


_CHANGED_BY_SETTLING = (
    "table_states",
    "partial_tables",
    "open_orders",
    "pending_batches",
    "open_intents",
    "newest_writes",
    "examined_versions",
    "gaps",
)
"""Cached statements (`LedgerPort._cached`) whose rows change when a write is settled."""


class PostgresWrites(LedgerPort):
    """The port `Writes` (`pipeline.ports.ledger`), which describes each method, on
    Postgres."""

    # -- mirrors -------------------------------------------------------------------------------

    def pending_batches(self, source: str) -> dict[TableName, list[int]]:
        rows = self._cached(dict, "pending_batches", source=source)
        return {table_of(row): [*row["batches"]] for row in rows}

    def open_intents(self, source: str) -> list[Intent]:
        return self._cached(_intent, "open_intents", source=source)

    def intend(self, lease: Lease, intents: Collection[Intent]) -> dict[TableName, Intent]:
        with self._transaction(lease, changes=("open_intents", "newest_writes")) as transaction:
            keys = {"source": lease.source, "token": lease.token}
            rows = [{**keys, **_intent_columns(intent)} for intent in intents]
            return {table_of(row): _intent(row) for row in transaction.insert("intend", rows)}

    def note_kept_rows(self, lease: Lease, intent: Intent) -> None:
        with self._transaction(lease, changes=("open_intents",)) as transaction:
            transaction.run("note_kept_rows", source=lease.source, id=intent.id)

    def settle(
        self,
        lease: Lease,
        intent: Intent,
        delta_version: int,
        *,
        schema_version: int | None = None,
        reason: str | None = None,
        table_id: str | None = None,
        is_examined: bool = False,
    ) -> None:
        """Settle an intent. Settling it again at the same Delta version changes
        nothing."""
        values = {"source": lease.source, **columns_of(intent, "id", "app_id", "txn_version")}
        with self._transaction(lease, changes=_CHANGED_BY_SETTLING) as transaction:
            commit = {"delta_version": delta_version, "reason": reason, "table_id": table_id}
            if transaction.run("settle", token=lease.token, **values, **commit) == 0:
                transaction.run_or_refuse("intent_exists", "writes_known", **values)
                return
            if schema_version is not None:
                event = MirrorWritten(schema_version)
                record_events(transaction, lease, [(intent.table, event)])
            note_missing_batches(transaction, lease.source, intent.table)
            if is_examined:
                transaction.run("note_settled_version", source=lease.source, id=intent.id)

    def give_up(self, lease: Lease, table: TableName) -> None:
        with self._transaction(lease) as transaction:
            transaction.run("give_up_intents", source=lease.source, **table_columns(table))

    def intents_of_batch(self, source: str, batch: int) -> list[Intent]:
        return [_intent(row) for row in self._all("intents_of_batch", source=source, batch=batch)]

    def newest_writes(self, source: str, app_ids: Collection[str]) -> dict[str, NewestWrites]:
        return dict(
            self._cached(_newest, "newest_writes", source=source, applications=sorted(app_ids))
        )

    def mirror_version(self, source: str, write: int) -> MirrorVersion | None:
        row = self._first("mirror_version", source=source, write=write)
        return None if row is None else _mirror_version(row)

    def newest_version_before(
        self, source: str, app_ids: Collection[str], batch: int
    ) -> MirrorVersion | None:
        values = {"applications": sorted(app_ids), "batch": batch}
        row = self._first("newest_version_before", source=source, **values)
        return None if row is None else _mirror_version(row)

    def version_set(self, source: str, batch: int) -> RecordedVersionSet:
        rows = self._all("version_set", source=source, batch=batch)
        return RecordedVersionSet(
            entries=[_entry(row) for row in rows if row["missing"] is None],
            missing_tables=[
                MissingTable(table_of(row), MissingReason(row["missing"]), row["together"])
                for row in rows
                if row["missing"] not in (None, _DROPPED)
            ],
        )

    def mirror_versions(self, source: str, table: TableName, last: int) -> list[MirrorVersion]:
        rows = self._all("mirror_versions", source=source, last=last, **table_columns(table))
        return [_mirror_version(row) for row in rows]

    # -- upkeep --------------------------------------------------------------------------------

    def upkeep_versions(self, source: str) -> dict[str, int]:
        return {
            row["mirror"]: row["delta_version"]
            for row in self._all("upkeep_versions", source=source)
        }

    def note_upkeep_version(
        self, lease: Lease, mirror: str, *, shows: int, delta_version: int
    ) -> None:
        with self._transaction(lease, changes=()) as transaction:
            values = {"mirror": mirror, "shows": shows, "delta_version": delta_version}
            transaction.run("note_upkeep_version", source=lease.source, token=lease.token, **values)

    def clock(self) -> datetime:
        moment: datetime = self._only("clock")["moment"]
        return moment

    # -- revisions -----------------------------------------------------------------------------

    def begin_revision(self, lease: Lease, segments: Sequence[RevisedSegment]) -> Revision:
        with self._transaction(lease) as transaction:
            row = transaction.only("begin_revision", source=lease.source, token=lease.token)
            for segment in segments:
                keys = {
                    "revision": row["id"],
                    "source": lease.source,
                    "batch": segment.batch,
                    "schema_version": segment.schema_version,
                    **table_columns(segment.table),
                }
                for file in file_rows(segment.files):
                    transaction.run_or_refuse(
                        "revise_file", "revised_files_segment", **keys, **file
                    )
            return Revision(row["id"], tuple(segments))

    def revisions(self, source: str) -> Revisions:
        rows = self._cached(dict, "revisions", source=source)
        revision_id = rows[0]["id"]
        segments = tuple(_segment(row) for row in rows if row["files"] is not None)
        return Revisions(revision_id, Revision(revision_id, segments) if segments else None)

    def end_revision(self, lease: Lease, revision: Revision, *, settled: bool) -> None:
        """End a revision. Ending it again in the same way changes nothing."""
        state = "settled" if settled else "given up"
        values = {"source": lease.source, "id": revision.id, "state": state}
        with self._transaction(lease) as transaction:
            if transaction.run("end_revision", **values) == 0:
                transaction.run_or_refuse("revision_ended", "revisions_known", **values)

    # -- catalogs ------------------------------------------------------------------------------

    def registrations(self, source: str, catalog: str) -> Registrations:
        rows = self._all("registrations", source=source, catalog=catalog)
        entries = [_registration(row) for row in rows if row["database"] is not None]
        return Registrations({entry.table: entry for entry in entries}, rows[0]["statement"])

    def note_registration(
        self, lease: Lease, catalog: str, table: TableName, entry: RecordedEntry | None
    ) -> None:
        keys = {"source": lease.source, "catalog": catalog, **table_columns(table)}
        with self._transaction(lease, changes=()) as transaction:
            if entry is None:
                transaction.run("delete_registration", **keys)
                return
            transaction.run(
                "note_registration",
                **keys,
                schema_name=entry.name.schema,
                table_name=entry.name.table,
                location=entry.location,
                content=entry.content_hash,
                schema_version=entry.schema_version,
                new_schema_name=entry.new_name and entry.new_name.schema,
                new_table_name=entry.new_name and entry.new_name.table,
            )

    def note_registered_up_to(self, lease: Lease, catalog: str, statement: int) -> None:
        with self._transaction(lease, changes=()) as transaction:
            values = {"catalog": catalog, "statement": statement}
            transaction.run("note_registered_up_to", source=lease.source, **values)

    # -- the lake ------------------------------------------------------------------------------

    _identity: str | None = None

    def identity(self) -> str:
        if self._identity is None:
            self._identity = str(self._only("identity")["id"])
        return self._identity

    def examined_versions(self, source: str) -> dict[str, int]:
        rows = self._cached(dict, "examined_versions", source=source)
        return {row["folder"]: row["delta_version"] for row in rows}

    def note_examined_versions(self, lease: Lease, versions: Mapping[str, int | None]) -> None:
        with self._transaction(lease, changes=("examined_versions",)) as transaction:
            removed_folders = [folder for folder, version in versions.items() if version is None]
            if removed_folders:
                transaction.run(
                    "delete_examined_versions", source=lease.source, folders=removed_folders
                )
            rows = [
                {"source": lease.source, "folder": folder, "delta_version": version}
                for folder, version in versions.items()
                if version is not None
            ]
            transaction.insert("note_examined_versions", rows)

    def replacement_times(self, source: str, folders: Sequence[str]) -> dict[str, datetime | None]:
        rows = self._all("replacement_times", source=source, folders=list(folders))
        return {row["mirror"]: row["at"] for row in rows}

    def skip_numbers(
        self,
        lease: Lease,
        *,
        batch: int,
        txn_version: int,
        inherited: Iterable[BatchSpan] | None = None,
    ) -> None:
        with self._transaction(lease) as transaction:
            transaction.run("number_above", batch=batch, txn_version=txn_version)
            if inherited is not None:
                transaction.run("delete_inherited_batches", source=lease.source)
            for span in inherited or ():
                ends = {"above": span.after, "through": span.through}
                transaction.run("inherit", source=lease.source, **ends)

    def highest_number(self) -> int:
        return int(self._only("highest_number")["batch"])

    def inherited_batches(self, source: str) -> tuple[BatchSpan, ...]:
        rows = self._all("inherited_batches", source=source)
        return tuple(BatchSpan(row["above"], row["through"]) for row in rows)


# -- mirrors ---------------------------------------------------------------------------


def _entry(row: Row) -> VersionSetEntry:
    return value_of(VersionSetEntry, row, table=table_of(row))


def _intent(row: Row) -> Intent:
    return value_of(Intent, row, table=table_of(row), copied_write_id=row["copies"])


def _intent_columns(intent: Intent) -> dict[str, Any]:
    values = {**columns_of(intent), "copies": intent.copied_write_id}
    return {**values, **table_columns(intent.table)}


def _mirror_version(row: Row) -> MirrorVersion:
    return value_of(MirrorVersion, row, table=table_of(row), write_id=row["write"])


def settled_write(row: Row) -> SettledWrite:
    return value_of(SettledWrite, row, intent=_intent(row))


def _newest(row: Row) -> tuple[str, NewestWrites]:
    settled = None if row["id"] is None else settled_write(row)
    return row["application"], NewestWrites(settled, int(row["newest_intended"]))


def _registration(row: Row) -> RecordedEntry:
    is_being_renamed = row["new_schema_name"] is not None
    return RecordedEntry(
        table_of(row),
        EntryName(row["schema_name"], row["table_name"]),
        row["location"],
        row["content"],
        row["schema_version"],
        EntryName(row["new_schema_name"], row["new_table_name"]) if is_being_renamed else None,
    )


def _segment(row: Row) -> RevisedSegment:
    return RevisedSegment(row["batch"], table_of(row), row["schema_version"], files_of(row))
