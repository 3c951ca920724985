"""Entries in catalogs, as the ledger knows them."""

from __future__ import annotations

from dataclasses import replace

from lockstep.pipeline.catalog import EntryName, RecordedEntry
from lockstep.pipeline.ports.ledger import Ledger
from lockstep.pipeline.values.decisions import Lease
from lockstep.pipeline.values.table import TableName

HERE, ELSEWHERE = "catalog here", "catalog elsewhere"
BEGUN = RecordedEntry(TableName("shop", "Orders"), EntryName("shop", "orders"), "file:///lake/1")
MADE = replace(BEGUN, content_hash="0123456789abcdef", schema_version=3)


def test_an_entry_is_known_from_before_it_is_made(ledger: Ledger, lease: Lease) -> None:
    """As it was told last, of each catalog by itself, until it is forgotten."""
    ledger.note_registration(lease, HERE, BEGUN.table, BEGUN)
    assert ledger.registrations(lease.source, HERE).entries == {BEGUN.table: BEGUN}
    ledger.note_registration(lease, HERE, MADE.table, MADE)
    ledger.note_registration(lease, ELSEWHERE, BEGUN.table, BEGUN)
    assert ledger.registrations(lease.source, HERE).entries == {MADE.table: MADE}
    for _ in range(2):
        ledger.note_registration(lease, HERE, MADE.table, None)
    assert ledger.registrations(lease.source, HERE).entries == {}
    assert ledger.registrations(lease.source, ELSEWHERE).entries == {BEGUN.table: BEGUN}


def test_comments_were_looked_at_up_to_a_statement(ledger: Ledger, lease: Lease) -> None:
    """Of each catalog by itself."""
    assert ledger.registrations(lease.source, HERE).statement_id == 0
    for statement in (7, 12):
        ledger.note_registered_up_to(lease, HERE, statement)
    assert ledger.registrations(lease.source, HERE).statement_id == 12
    assert ledger.registrations(lease.source, ELSEWHERE).statement_id == 0
