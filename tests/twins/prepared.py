"""Prepared XA transactions in the memory ledger, and the rules they obey.

The rules are those of `resources/postgres/migrations`, by the same names. Does not
belong here: the row events themselves, which are in `spool`.
"""

from __future__ import annotations

from typing import Final

from pipeline.batch import Batch, BatchState, CaptureRecord, Prepared
from resources.postgres.refusals import refusal
from tests.twins.books import MemoryBooks

_XID_BYTES: Final = 64
"""The longest gtrid or bqual (MySQL manual, "XA Transaction SQL Statements")."""


def open_prepared(books: MemoryBooks, source: str) -> list[Prepared]:
    return [
        prepared
        for key, (of, prepared) in books.prepared.items()
        if of == source and key not in books.ended_by and _is_live(books, prepared)
    ]


def ended_prepared(books: MemoryBooks, batch: int) -> list[Prepared]:
    return [
        prepared
        for key, (_, prepared) in books.prepared.items()
        if books.ended_by.get(key) == batch
    ]


def record_prepared(books: MemoryBooks, batch: Batch, record: CaptureRecord) -> None:
    """Ends come first: an XID that one of them frees may be prepared again."""
    for ended in record.ended:
        _end(books, batch, ended.prepared)
    for prepared in record.prepared:
        _keep(books, batch, prepared)


def abandon_prepared(books: MemoryBooks, batch: int) -> None:
    """What the batch ended is open again; what it prepared is no longer live."""
    books.ended_by = {key: by for key, by in books.ended_by.items() if by != batch}


def _is_live(books: MemoryBooks, prepared: Prepared) -> bool:
    return books.batches[prepared.batch].state is not BatchState.ABANDONED


def _end(books: MemoryBooks, batch: Batch, prepared: Prepared) -> None:
    key = (prepared.batch, prepared.xid)
    source, _ = books.prepared.get(key, (None, None))
    if source != batch.source:
        raise refusal("prepared_known")
    if key in books.ended_by:
        raise refusal("prepared_ended_once")
    if batch.state is not BatchState.CAPTURING:
        raise refusal("prepared_ended_while_capturing")
    if not _is_live(books, prepared):
        raise refusal("prepared_end_live")
    books.ended_by[key] = batch.id


def _keep(books: MemoryBooks, batch: Batch, prepared: Prepared) -> None:
    key = (prepared.batch, prepared.xid)
    if prepared.batch != batch.id or batch.state is not BatchState.CAPTURING:
        raise refusal("prepared_while_capturing")
    if max(len(prepared.xid.gtrid), len(prepared.xid.bqual)) > _XID_BYTES:
        raise refusal("prepared_xid_fits")
    if key in books.prepared:
        raise refusal("prepared_once")
    if any(one.xid == prepared.xid for one in open_prepared(books, batch.source)):
        raise refusal("prepared_open_once")
    books.prepared[key] = (batch.source, prepared)
