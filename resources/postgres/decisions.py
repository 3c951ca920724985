"""Decisions of runs (such as where to start), and choices of persons, on Postgres. A
gap is a range of the log that a decision skipped."""

from __future__ import annotations

import json

from lockstep.pipeline.model.batch import Batch
from lockstep.pipeline.model.gaps import CLOSING, Gap, GapEvent, with_closed
from lockstep.pipeline.model.table_state import TableEventKind
from lockstep.pipeline.ports.ledger import LAST_BATCH
from lockstep.pipeline.values.decisions import (
    Continuity,
    Decision,
    Lease,
    Override,
    RecordedDecision,
)
from lockstep.pipeline.values.errors import Recovery
from lockstep.pipeline.values.table import TableName
from lockstep.resources.postgres.rows import (
    Row,
    columns_of,
    coordinate_columns,
    coordinates_of,
    table_of,
    value_of,
)
from lockstep.resources.postgres.session import LedgerPort

_PLAIN_FIELDS = (
    "kind",
    "rule",
    "reason",
    "author",
    "previous_batch",
    "continuity",
    "override",
    "hint",
)
"""Fields of `Decision` that are stored unchanged, in columns of the same names."""


class PostgresDecisions(LedgerPort):
    """The port `Decisions` (`pipeline.ports.ledger`), which describes each method, on
    Postgres."""

    def decide(self, lease: Lease, decision: Decision) -> RecordedDecision:
        with self._transaction(lease, changes=()) as transaction:
            row = transaction.only(
                "decide",
                source=lease.source,
                token=lease.token,
                **columns_of(decision, *_PLAIN_FIELDS),
                facts=json.dumps(dict(decision.facts)),
                gap_tables=list(decision.gap_tables),
                recovery=None if decision.recovery is None else decision.recovery.name.lower(),
                **coordinate_columns(decision.head),
                structures=_tables_json(decision.structures),
            )
            return _decision(row)

    def decisions(self, source: str, *kinds: str, limit: int = 5) -> list[RecordedDecision]:
        rows = self._all("decisions", source=source, kinds=list(kinds), limit=limit)
        return [_decision(row) for row in rows]

    def start_decision(self, batch: Batch) -> RecordedDecision | None:
        rows = self._all("start_decision", source=batch.source, decision=batch.start_decision)
        return next(map(_decision, rows), None)

    def note_gtids_off(self, lease: Lease) -> None:
        with self._transaction(lease, changes=("cursors",)) as transaction:
            transaction.run("note_gtids_off", source=lease.source)

    def choose_start(self, lease: Lease, *, place: str, reason: str, author: str) -> Override:
        with self._transaction(lease) as transaction:
            row = transaction.only(
                "choose_start",
                source=lease.source,
                token=lease.token,
                place=place,
                reason=reason,
                author=author,
            )
            return _override(row)

    def open_override(self, source: str) -> Override | None:
        return next(iter(self._cached(_override, "open_override", source=source)), None)

    def gaps(self, source: str, through: int = LAST_BATCH) -> list[Gap]:
        rows = self._cached(dict, "gaps", source=source)
        rows = [row for row in rows if row["batch"] <= through]
        if not rows:
            return []
        event_rows = self._all(
            "closing_events",
            source=source,
            first_batch=min(row["batch"] for row in rows),
            last_batch=through,
            kinds=[kind.value for kind in CLOSING],
        )
        closing_events = [_gap_event(row) for row in event_rows]
        return [with_closed(_gap(row), closing_events) for row in rows]


def _decision(row: Row) -> RecordedDecision:
    decision = value_of(
        Decision,
        row,
        continuity=Continuity(row["continuity"]) if row["continuity"] else None,
        gap_tables=tuple(row["gap_tables"]),
        recovery=None if row["recovery"] is None else Recovery[row["recovery"].upper()],
        head=None if row["head_base"] is None else coordinates_of(row, "head_"),
        structures=_tables(row["structures"]),
    )
    return RecordedDecision(row["id"], row["decided_at"], decision)


def _tables_json(tables: tuple[TableName, ...] | None) -> str | None:
    if tables is None:
        return None
    return json.dumps([(table.database, table.name) for table in tables])


def _tables(json_tables: list[list[str]] | None) -> tuple[TableName, ...] | None:
    return None if json_tables is None else tuple(TableName(*names) for names in json_tables)


def _override(row: Row) -> Override:
    return value_of(Override, row)


def _gap(row: Row) -> Gap:
    begin, end = str(coordinates_of(row, "from_")), str(coordinates_of(row, "to_"))
    tables = tuple(row["gap_tables"])
    return value_of(Gap, row, tables=tables, begin=begin, end=end, closed={}, new_names={})


def _gap_event(row: Row) -> GapEvent:
    is_rename = row["new_name"] is not None
    return GapEvent(
        table=str(table_of(row)),
        batch=row["batch"],
        at=row["acknowledged_at"],
        kind=None if row["kind"] is None else TableEventKind(row["kind"]),
        new_name=str(TableName(row["new_database"], row["new_name"])) if is_rename else "",
        place=(row["place_number"], row["place_offset"]),
    )
