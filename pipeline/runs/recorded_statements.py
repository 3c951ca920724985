"""The statements that a source's history has, in the order they were recorded."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pipeline.ports.ledger import Ledger
from pipeline.schema.history import SchemaStatement

_PAGE: Final = 1_000


def recorded_statements(ledger: Ledger, source: str) -> Iterator[SchemaStatement]:
    """All of them, asked for in pages."""
    after = 0
    while page := ledger.schema_statements(source, limit=_PAGE, after=after):
        yield from page
        after = page[-1].id
