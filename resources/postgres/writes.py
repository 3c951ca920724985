"""Writes of batches to mirrors, on Postgres: `pipeline.ports.writes`."""

from __future__ import annotations

from pipeline.decisions import Lease
from pipeline.intent import (
    Intent,
    Missing,
    MissingTable,
    SettledWrite,
    ShownVersion,
    VersionSetEntry,
)
from pipeline.life.events import MirrorWritten
from pipeline.table import TableName
from resources.postgres.life_events import record
from resources.postgres.rows import Row, of_table, table
from resources.postgres.session import Books
from resources.postgres.tables import count_behind

GONE = "dropped"
"""Why a table ended in the sets that the source did not have any more: nothing is missing."""


class PostgresWrites(Books):
    def pending(self, source: str) -> dict[TableName, list[int]]:
        return {table(row): list(row["batches"]) for row in self._all("pending", source=source)}

    def open_intents(self, source: str) -> list[Intent]:
        return [_intent(row) for row in self._all("open_intents", source=source)]

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
        with self._step(lease) as transaction:
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
            if step.run("settle", **values, **told) == 0:
                step.must("intent_exists", "writes_known", **values)
                return
            if shows is not None:
                record(step, lease, [(intent.table, MirrorWritten(shows))])
            count_behind(step, lease.source, intent.table)

    def give_up(self, lease: Lease, table: TableName) -> None:
        with self._step(lease) as step:
            step.run("give_up", source=lease.source, **of_table(table))

    def settled(self, source: str, batch: int) -> list[SettledWrite]:
        return [settled_write(row) for row in self._all("settled", source=source, batch=batch)]

    def intended(self, source: str, batch: int) -> list[Intent]:
        return [_intent(row) for row in self._all("intended", source=source, batch=batch)]

    def last_settled(self, source: str, app_id: str) -> SettledWrite | None:
        row = self._first("last_settled", source=source, app_id=app_id)
        return None if row is None else settled_write(row)

    def last_intended(self, source: str, app_id: str) -> int:
        return int(self._only("last_intended", source=source, app_id=app_id)["txn_version"])

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


def _entry(row: Row) -> VersionSetEntry:
    return VersionSetEntry(table(row), row["mirror"], row["delta_version"], row["table_id"])


def _intent(row: Row) -> Intent:
    return Intent(
        id=row["id"],
        table=table(row),
        app_id=row["app_id"],
        txn_version=row["txn_version"],
        first_batch=row["first_batch"],
        last_batch=row["last_batch"],
        step=row["step"],
    )


def settled_write(row: Row) -> SettledWrite:
    return SettledWrite(
        _intent(row), row["delta_version"], row["intended_at"], row["settled_at"], row["reason"]
    )
