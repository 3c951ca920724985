"""Entries of mirrors in catalogs, on Postgres: `pipeline.ports.registrations`."""

from __future__ import annotations

from pipeline.catalog.values import EntryName, Registered
from pipeline.decisions import Lease
from pipeline.table import TableName
from resources.postgres.session import Books


class PostgresRegistrations(Books):
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

    def note_registration(self, lease: Lease, catalog: str, entry: Registered) -> None:
        with self._step(lease) as step:
            step.run(
                "note_registration",
                source=lease.source,
                catalog=catalog,
                database=entry.table.database,
                name=entry.table.name,
                schema_name=entry.name.schema,
                table_name=entry.name.table,
                location=entry.location,
                content=entry.content,
                shows=entry.shows,
            )

    def forget_registration(self, lease: Lease, catalog: str, table: TableName) -> None:
        with self._step(lease) as step:
            named = {"database": table.database, "name": table.name}
            step.run("forget_registration", source=lease.source, catalog=catalog, **named)

    def registered_up_to(self, source: str, catalog: str) -> int:
        rows = self._all("registered_up_to", source=source, catalog=catalog)
        return int(rows[0]["statement"]) if rows else 0

    def note_registered_up_to(self, lease: Lease, catalog: str, statement: int) -> None:
        with self._step(lease) as step:
            told = {"catalog": catalog, "statement": statement}
            step.run("note_registered_up_to", source=lease.source, **told)
