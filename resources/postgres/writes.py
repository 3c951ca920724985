"""What is written to the lake, on Postgres: `pipeline.ports.writes`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from pipeline.catalog.values import EntryName, Registered
from pipeline.claim import BatchSpan
from pipeline.decisions import Lease
from pipeline.intent import (
    Intent,
    Missing,
    MissingTable,
    NewestWrites,
    SettledWrite,
    ShownVersion,
    VersionSetEntry,
)
from pipeline.life.events import MirrorWritten
from pipeline.segment import RevisedSegment, Revision
from pipeline.table import TableName
from resources.postgres.life_events import record
from resources.postgres.rows import Row, files_of, filled, of_files, of_table, table
from resources.postgres.session import Books
from resources.postgres.tables import count_behind

GONE = "dropped"
"""Why a table ended in the sets that the source did not have any more: nothing is missing."""


class PostgresWrites(Books):
    # -- mirrors -------------------------------------------------------------------------------

    def pending(self, source: str) -> dict[TableName, list[int]]:
        rows = self._kept(dict, "pending", source=source)
        return {table(row): [*row["batches"]] for row in rows}

    def open_intents(self, source: str) -> list[Intent]:
        return self._kept(_intent, "open_intents", source=source)

    def open_intent(
        self,
        lease: Lease,
        table: TableName,
        *,
        app_id: str,
        first_batch: int,
        last_batch: int,
        step: str,
    ) -> Intent:
        with self._step(lease, changes=("open_intents", "newest_writes")) as transaction:
            row = transaction.only(
                "open_intent",
                source=lease.source,
                token=lease.token,
                app_id=app_id,
                first_batch=first_batch,
                last_batch=last_batch,
                step=step,
                **of_table(table),
            )
            return _intent(row)

    def settle(
        self,
        lease: Lease,
        intent: Intent,
        delta_version: int,
        *,
        shows: int | None = None,
        reason: str | None = None,
        table_id: str | None = None,
        looked: bool = False,
    ) -> None:
        """Settling again at the same version changes nothing."""
        values = {
            "source": lease.source,
            "id": intent.id,
            "app_id": intent.app_id,
            "txn_version": intent.txn_version,
        }
        with self._step(lease) as step:
            told = {"delta_version": delta_version, "reason": reason, "table_id": table_id}
            if step.run("settle", token=lease.token, **values, **told) == 0:
                step.must("intent_exists", "writes_known", **values)
                return
            if shows is not None:
                record(step, lease, [(intent.table, MirrorWritten(shows))])
            count_behind(step, lease.source, intent.table)
            if looked:
                step.run("note_settled_looked", source=lease.source, id=intent.id)

    def give_up(self, lease: Lease, table: TableName) -> None:
        with self._step(lease) as step:
            step.run("give_up", source=lease.source, **of_table(table))

    def intended(self, source: str, batch: int) -> list[Intent]:
        return [_intent(row) for row in self._all("intended", source=source, batch=batch)]

    def newest_writes(self, source: str, app_id: str) -> NewestWrites:
        [newest] = self._kept(_newest, "newest_writes", source=source, app_id=app_id)
        return newest

    def version_set(self, source: str, batch: int) -> list[VersionSetEntry]:
        return [
            _entry(row)
            for row in self._all("version_set", source=source, batch=batch)
            if row["missing"] is None
        ]

    def mirror_versions(self, source: str, table: TableName, last: int) -> list[ShownVersion]:
        return [
            ShownVersion(row["batch"], _entry(row))
            for row in self._all("mirror_versions", source=source, last=last, **of_table(table))
        ]

    def missing_versions(self, source: str, batch: int) -> list[MissingTable]:
        return [
            MissingTable(table(row), Missing(row["missing"]), row["together"])
            for row in self._all("version_set", source=source, batch=batch)
            if row["missing"] not in (None, GONE)
        ]

    # -- upkeep --------------------------------------------------------------------------------

    def upkept(self, source: str) -> dict[str, int]:
        return {row["mirror"]: row["delta_version"] for row in self._all("upkept", source=source)}

    def note_upkept(self, lease: Lease, mirror: str, *, shows: int, delta_version: int) -> None:
        with self._step(lease, changes=()) as step:
            values = {"mirror": mirror, "shows": shows, "delta_version": delta_version}
            step.run("note_upkept", source=lease.source, token=lease.token, **values)

    def clock(self) -> datetime:
        moment: datetime = self._only("ledger_clock")["moment"]
        return moment

    # -- revisions -----------------------------------------------------------------------------

    def begin_revision(self, lease: Lease, segments: Sequence[RevisedSegment]) -> Revision:
        with self._step(lease) as step:
            row = step.only("begin_revision", source=lease.source, token=lease.token)
            for segment in segments:
                of = {
                    "revision": row["id"],
                    "source": lease.source,
                    "batch": segment.batch,
                    "schema_version": segment.schema_version,
                    **of_table(segment.table),
                }
                names = ("ordinal", "path", "images", "size", "sha256")
                for file in of_files(segment.files):
                    told = dict(zip(names, file, strict=True))
                    step.must("revise_file", "revised_files_segment", **of, **told)
            return Revision(row["id"], tuple(segments))

    def open_revision(self, source: str) -> Revision | None:
        rows = self._kept(dict, "open_revision", source=source)
        return Revision(rows[0]["id"], tuple(map(_segment, rows))) if rows else None

    def last_revision(self, source: str) -> int:
        number: int = self._only("last_revision", source=source)["id"]
        return number

    def end_revision(self, lease: Lease, revision: Revision, *, settled: bool) -> None:
        """Ending it again in the same way changes nothing."""
        state = "settled" if settled else "given up"
        values = {"source": lease.source, "id": revision.id, "state": state}
        with self._step(lease) as step:
            if step.run("end_revision", **values) == 0:
                step.must("revision_ended", "revisions_known", **values)

    # -- catalogs ------------------------------------------------------------------------------

    def registrations(self, source: str, catalog: str) -> dict[TableName, Registered]:
        rows = self._all("registrations", source=source, catalog=catalog)
        entries = (
            Registered(
                TableName(row["database"], row["name"]),
                EntryName(row["schema_name"], row["table_name"]),
                row["location"],
                row["content"],
                row["shows"],
            )
            for row in rows
        )
        return {entry.table: entry for entry in entries}

    def note_registration(
        self, lease: Lease, catalog: str, table: TableName, entry: Registered | None
    ) -> None:
        of = {"source": lease.source, "catalog": catalog, **of_table(table)}
        with self._step(lease, changes=()) as step:
            if entry is None:
                step.run("forget_registration", **of)
                return
            step.run(
                "note_registration",
                **of,
                schema_name=entry.name.schema,
                table_name=entry.name.table,
                location=entry.location,
                content=entry.content,
                shows=entry.shows,
            )

    def registered_up_to(self, source: str, catalog: str) -> int:
        rows = self._all("registered_up_to", source=source, catalog=catalog)
        return int(rows[0]["statement"]) if rows else 0

    def note_registered_up_to(self, lease: Lease, catalog: str, statement: int) -> None:
        with self._step(lease, changes=()) as step:
            told = {"catalog": catalog, "statement": statement}
            step.run("note_registered_up_to", source=lease.source, **told)

    # -- the lake ------------------------------------------------------------------------------

    _identity: str | None = None

    def identity(self) -> str:
        if self._identity is None:
            self._identity = str(self._only("identity")["id"])
        return self._identity

    def looked(self, source: str) -> dict[str, int]:
        rows = self._kept(dict, "looked", source=source)
        return {row["folder"]: row["delta_version"] for row in rows}

    def note_looked(self, lease: Lease, looked: Mapping[str, int | None]) -> None:
        with self._step(lease, changes=("looked",)) as step:
            gone = [folder for folder, version in looked.items() if version is None]
            if gone:
                step.run("forget_looked", source=lease.source, folders=gone)
            rows = [(lease.source, *seen) for seen in looked.items() if seen[1] is not None]
            step.insert("note_looked", rows)

    def number_above(self, lease: Lease, *, batch: int, txn_version: int) -> None:
        with self._step(lease) as step:
            step.run("number_above", batch=batch, txn_version=txn_version)

    def inherit(self, lease: Lease, spans: Iterable[BatchSpan]) -> None:
        with self._step(lease) as step:
            step.run("forget_inherited", source=lease.source)
            for span in spans:
                ends = {"above": span.after, "through": span.through}
                step.run("inherit", source=lease.source, **ends)

    def inherited(self, source: str) -> tuple[BatchSpan, ...]:
        rows = self._all("inherited", source=source)
        return tuple(BatchSpan(row["above"], row["through"]) for row in rows)


# -- mirrors -----------------------------------------------------------------------------------


def _entry(row: Row) -> VersionSetEntry:
    return filled(VersionSetEntry, row, table=table(row))


def _intent(row: Row) -> Intent:
    return filled(Intent, row, table=table(row))


def settled_write(row: Row) -> SettledWrite:
    return filled(SettledWrite, row, intent=_intent(row))


def _newest(row: Row) -> NewestWrites:
    settled = None if row["id"] is None else settled_write(row)
    return NewestWrites(settled, int(row["newest_intended"]))


# -- revisions ---------------------------------------------------------------------------------


def _segment(row: Row) -> RevisedSegment:
    return RevisedSegment(row["batch"], table(row), row["schema_version"], files_of(row))
