"""Lists of the domain as the small tables that Dagster's page can show."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import dagster as dg

from assets.source_facts import ReadingConsumer
from pipeline.gaps import Gap
from pipeline.proof.proven import TableProof
from pipeline.standing.accounting import Account
from pipeline.table_state import Extent, Quarantine


def partial_table(tables: Sequence[Extent]) -> dg.MetadataValue:
    return _table(
        ("table", "begins", "hint"),
        [(str(table.table), str(table.begins), table.hint) for table in tables],
    )


def proof_age(proof: TableProof, now: datetime) -> float | None:
    """Seconds since a table was last found equal; None for never."""
    return None if proof.proven_at is None else round((now - proof.proven_at).total_seconds(), 3)


def proof_table(proofs: Sequence[TableProof]) -> dg.MetadataValue:
    return _table(
        ("table", "compared", "at", "differing", "proven at", "rows", "position"),
        [
            (
                str(proof.table),
                "all rows" if proof.whole else "a sample",
                proof.compared_at.isoformat(),
                str(proof.differing),
                proof.proven_at.isoformat() if proof.proven_at else "never",
                str(proof.proven.rows) if proof.proven else "",
                str(proof.proven.at) if proof.proven else "",
            )
            for proof in proofs
        ],
    )


def quarantine_table(tables: Sequence[Quarantine]) -> dg.MetadataValue:
    return _table(
        ("table", "reason", "hint", "position"),
        [(str(table.table), table.reason, table.hint, table.position) for table in tables],
    )


def gap_table(gaps: Sequence[Gap]) -> dg.MetadataValue:
    return _table(
        ("tables", "from", "to", "reason", "decided at"),
        [
            (
                ", ".join(gap.open_tables),
                gap.begin,
                gap.end,
                gap.reason,
                gap.decided_at.isoformat(),
            )
            for gap in gaps
        ],
    )


def account_table(accounts: Sequence[Account]) -> dg.MetadataValue:
    return _table(
        ("batch", "images read", "images written", "rows written", "rows merged", "not merged"),
        [
            (
                str(account.batch),
                str(account.read),
                str(account.images),
                str(account.written.total),
                str(account.merged.total),
                ", ".join(map(str, account.unmerged)),
            )
            for account in accounts
        ],
    )


def consumer_table(consumers: Sequence[ReadingConsumer]) -> dg.MetadataValue:
    return _table(
        ("consumer", "batches behind", "changes behind", "deliveries out", "since"),
        [
            (
                consumer.consumer.name,
                str(consumer.consumer.behind),
                str(consumer.consumer.changes),
                str(consumer.consumer.out),
                consumer.behind_since.isoformat() if consumer.behind_since else "",
            )
            for consumer in consumers
        ],
    )


def _table(names: Sequence[str], rows: Sequence[Sequence[str]]) -> dg.MetadataValue:
    return dg.MetadataValue.table(
        [dg.TableRecord(dict(zip(names, row, strict=True))) for row in rows],
        schema=dg.TableSchema([dg.TableColumn(name, "string") for name in names]),
    )
