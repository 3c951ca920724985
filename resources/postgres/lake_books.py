"""What the ledger keeps of its lake: `pipeline.ports.lake_books`, a function a question or step.

Does not belong here: connections, and the rules of order, which the schema holds.
"""

from __future__ import annotations

from collections.abc import Mapping

from psycopg2.extras import RealDictCursor

from pipeline.decisions import Lease
from pipeline.table import TableName
from resources.ledger_rules import refusal
from resources.postgres import rows
from resources.postgres.queries import query


def identity(cursor: RealDictCursor) -> str:
    cursor.execute(query("identity"))
    (row,) = cursor.fetchall()
    return str(row["id"])


def looked(cursor: RealDictCursor, source: str) -> dict[str, int]:
    cursor.execute(query("looked"), {"source": source})
    return {row["folder"]: row["delta_version"] for row in cursor.fetchall()}


def note_looked(cursor: RealDictCursor, lease: Lease, found: Mapping[str, int | None]) -> None:
    for folder, version in found.items():
        values = {"source": lease.source, "folder": folder, "delta_version": version}
        cursor.execute(query("forget_looked" if version is None else "note_looked"), values)


def last_intended(cursor: RealDictCursor, source: str, app_id: str) -> int:
    cursor.execute(query("last_intended"), {"source": source, "app_id": app_id})
    (row,) = cursor.fetchall()
    return int(row["txn_version"])


def begin_anew(cursor: RealDictCursor, lease: Lease, table: TableName) -> None:
    cursor.execute(query("begin_anew"), {"source": lease.source, **rows.of_table(table)})
    if cursor.rowcount == 0:
        raise refusal("table_states_anew")


def number_above(cursor: RealDictCursor, _: Lease, *, batch: int, txn_version: int) -> None:
    cursor.execute(query("number_above"), {"batch": batch, "txn_version": txn_version})
