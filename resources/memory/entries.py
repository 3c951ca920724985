"""Single entries of the memory ledger: tables' states and versions, cursors, version sets.

Does not belong here: batches and writes, whose rules are in `books`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from pipeline.batch import (
    Batch,
    SetAside,
    TableCondition,
    TableState,
    TableVersion,
    VersionSetEntry,
)
from resources.ledger_rules import refusal
from resources.memory.books import ENDED, MemoryBooks


def record_state(books: MemoryBooks, source: str, state: TableState) -> None:
    told = [text is not None for text in (state.reason, state.hint, state.position)]
    if told != [state.condition is TableCondition.QUARANTINED] * 3:
        raise refusal("table_states_quarantine_explained")
    known = books.states.get((source, state.table))
    if known is not None and known.condition is TableCondition.QUARANTINED:
        state = replace(
            known, generation=state.generation, mirror=state.mirror, changelog=state.changelog
        )
    books.states[source, state.table] = state


def record_version(books: MemoryBooks, source: str, version: TableVersion) -> None:
    key = (source, version.structure.name)
    known = books.versions.get(key, ())
    if version.version <= len(known):
        raise refusal("table_versions_pk")
    if version.version != len(known) + 1:
        raise refusal("table_versions_no_gap")
    books.versions[key] = (*known, version)


def quarantine(books: MemoryBooks, source: str, aside: SetAside) -> None:
    known = books.states.get((source, aside.table))
    if known is None:
        raise refusal("table_states_known")
    if known.condition is TableCondition.ACTIVE:
        books.states[source, aside.table] = replace(
            known,
            condition=TableCondition.QUARANTINED,
            reason=aside.reason,
            hint=aside.hint,
            position=aside.position,
        )


def version_set_of(books: MemoryBooks, batch: Batch) -> Iterator[VersionSetEntry]:
    """Tables whose newest segment up to the batch is merged by a write that ends there
    too: a write that goes further shows a later position."""
    chain = [one.id for one in books.of_source(batch.source, *ENDED) if one.id <= batch.id]
    for (source, table), state in sorted(books.states.items()):
        if source != batch.source or state.condition is not TableCondition.ACTIVE:
            continue
        writes = [w for w in books.writes(source, table) if w.intent.last_batch <= batch.id]
        merged = max((w.intent.last_batch for w in writes if w.intent.step == "merge"), default=0)
        newest = max(
            (one for one in chain if any(s.table == table for s in books.segments.get(one, ()))),
            default=0,
        )
        if writes and merged >= newest > 0:
            yield VersionSetEntry(table, state.mirror, max(w.delta_version for w in writes))
