"""The versions of a table's structure, and what each is otherwise than the one before.

Belongs here: a version beside the statement that made it, its changes in words. Does not: which
version was in force at a place (`schema_history`), comparing structures (`schema.compare`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from pipeline.ports.ledger import Ledger
from pipeline.schema.compare import differences
from pipeline.schema.history import SchemaStatement, SchemaVersion, VersionOrigin


@dataclass(frozen=True, slots=True)
class ToldVersion:
    """A version, the statement that made it if one did, and what is otherwise than in the
    version before: "what: before, now"."""

    version: SchemaVersion
    statement: SchemaStatement | None
    changes: tuple[str, ...]


def _statement(ledger: Ledger, source: str, version: SchemaVersion) -> SchemaStatement | None:
    return None if version.statement is None else ledger.statement(source, version.statement)


def told_versions(
    ledger: Ledger, source: str, versions: Sequence[SchemaVersion]
) -> Iterator[ToldVersion]:
    yield ToldVersion(versions[0], _statement(ledger, source, versions[0]), ())
    for before, now in pairwise(versions):
        yield ToldVersion(now, _statement(ledger, source, now), tuple(_changes(before, now)))


def _changes(before: SchemaVersion, now: SchemaVersion) -> Iterator[str]:
    """What is otherwise in the later one: columns by where they come from, then each part
    as "what: before, now"."""
    if now.schema is None or before.schema is None:
        return
    parts = differences(before.schema, now.schema)
    columns = list(_columns(before, now))
    for part in parts:
        if columns and part.startswith("columns: "):
            yield from columns
        else:
            yield part
    if not parts and now.origin is VersionOrigin.CARRIED:
        yield f"nothing: as in version {before.version}"


def _columns(before: SchemaVersion, now: SchemaVersion) -> Iterator[str]:
    """Columns that are new, renamed or gone; none where the rows of before are not this
    table's, or nothing of that happened."""
    if now.schema is None or before.schema is None or now.columns_from is None:
        return
    for column, origin in zip(now.schema.columns, now.columns_from, strict=True):
        if origin is None:
            yield f"column {column.name}: new"
        elif origin != column.name:
            yield f"column {origin}: now {column.name}"
    for old in before.schema.columns:
        if old.name not in now.columns_from:
            yield f"column {old.name}: dropped"
