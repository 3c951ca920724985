"""Lists of the domain as the small tables that Dagster's page can show."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import dagster as dg

from pipeline.changes.extents import cure
from pipeline.gaps import Gap
from pipeline.proof.proven import TableProof
from pipeline.table_state import Extent, SetAside


def partial_table(tables: Sequence[Extent]) -> dg.MetadataValue:
    return _table(
        ("table", "begins", "hint"),
        [(str(one.table), str(one.begins), cure(one.table)) for one in tables],
    )


def proof_age(one: TableProof, now: datetime) -> float | None:
    """Seconds since a table was last found equal; None for never."""
    return None if one.proven_at is None else round((now - one.proven_at).total_seconds(), 3)


def proof_table(proofs: Sequence[TableProof]) -> dg.MetadataValue:
    return _table(
        ("table", "compared", "at", "differing", "proven at", "rows", "position"),
        [
            (
                str(one.table),
                "all rows" if one.whole else "a sample",
                one.compared_at.isoformat(),
                str(one.differing),
                one.proven_at.isoformat() if one.proven_at else "never",
                str(one.proven.rows) if one.proven else "",
                str(one.proven.at) if one.proven else "",
            )
            for one in proofs
        ],
    )


def quarantine_table(tables: Sequence[SetAside]) -> dg.MetadataValue:
    return _table(
        ("table", "reason", "hint", "position"),
        [(str(one.table), one.reason, one.hint, one.position) for one in tables],
    )


def gap_table(gaps: Sequence[Gap]) -> dg.MetadataValue:
    return _table(
        ("tables", "from", "to", "reason", "decided at"),
        [
            (
                ", ".join(one.open_tables),
                one.begin,
                one.end,
                one.reason,
                one.decided_at.isoformat(),
            )
            for one in gaps
        ],
    )


def _table(names: Sequence[str], rows: Sequence[Sequence[str]]) -> dg.MetadataValue:
    return dg.MetadataValue.table(
        [dg.TableRecord(dict(zip(names, row, strict=True))) for row in rows],
        schema=dg.TableSchema([dg.TableColumn(name, "string") for name in names]),
    )
