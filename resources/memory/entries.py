"""Single entries of the memory ledger: tables' states, version sets, the source's
own tables.

Does not belong here: batches and writes, whose rules are in `books`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from pipeline.batch import Batch, BatchState, CaptureRecord
from pipeline.intent import VersionSetEntry
from pipeline.segment import SourcePart
from pipeline.table import TableName
from pipeline.table_state import Extent, SetAside, Stopped, TableCondition, TableState
from resources.ledger_rules import refusal
from resources.memory.books import ENDED, MemoryBooks

_UNFINISHED = (BatchState.CAPTURING, BatchState.CAPTURED, BatchState.MERGED)
_ASIDE = (TableCondition.QUARANTINED, TableCondition.PAUSED)


def record_state(books: MemoryBooks, source: str, state: TableState) -> None:
    """A table that is set aside or paused stays so, whatever a capture says of it."""
    _require_told(state)
    known = books.states.get((source, state.table))
    kept = known if known is not None and known.condition in _ASIDE else state
    lives_on = known is not None and known.generation == state.generation
    books.states[source, state.table] = replace(
        kept,
        generation=state.generation,
        mirror=state.mirror,
        changelog=state.changelog,
        changelog_generation=state.changelog_generation,
        mirror_version=known.mirror_version if known is not None and lives_on else None,
        behind=known.behind if known is not None else None,
        adopted=known.adopted if known is not None and lives_on else None,
    )


def record_handovers(books: MemoryBooks, batch: Batch, record: CaptureRecord) -> None:
    """Mirrors that change hands in a capture."""
    if record.handovers and batch.state is not BatchState.CAPTURING:
        raise refusal("handovers_while_capturing")
    for one in record.handovers:
        if len(books.of_source(batch.source, *_UNFINISHED)) > 1:
            raise refusal("handovers_alone")
        if one.generation != one.before.generation + 1:
            raise refusal("handovers_generation")
        if (one.shows is None) != (one.delta_version is None):
            raise refusal("handovers_whole")
        key = (batch.source, one.table)
        if key not in books.states:
            raise refusal("handovers_table")
        known = [version.version for version in books.versions.get(key, ())]
        if one.shows is not None and one.shows not in known:
            raise refusal("handovers_shows")
        books.states[key] = replace(
            books.states[key], mirror_version=one.shows, adopted=one.delta_version
        )
    books.handovers[batch.id] = record.handovers


def take_back_handovers(books: MemoryBooks, batch: Batch) -> None:
    """Mirrors are again whose they were before the batch."""
    for one in books.handovers.get(batch.id, ()):
        key = (batch.source, one.table)
        books.states[key] = replace(
            books.states[key],
            generation=one.before.generation,
            mirror=one.before.mirror,
            mirror_version=one.before.mirror_version,
            adopted=one.before.adopted,
        )


def begin_anew(books: MemoryBooks, source: str, table: TableName) -> None:
    state = books.states.get((source, table))
    if state is None or state.condition not in _ASIDE:
        raise refusal("table_states_anew")
    books.states[source, table] = replace(
        state, generation=state.generation + 1, mirror_version=None, adopted=None
    )


def _require_told(state: TableState) -> None:
    told = [text is not None for text in (state.reason, state.hint, state.position)]
    if told != [state.condition in _ASIDE] * 3:
        raise refusal("table_states_quarantine_explained")
    if state.condition is not TableCondition.PAUSED and (state.remedy is not None) != (
        state.condition is TableCondition.QUARANTINED
    ):
        raise refusal("table_states_remedy_told")
    if state.changelog_generation < 1:
        raise refusal("table_states_changelog_counts")
    optional = state.condition is TableCondition.QUARANTINED and state.stopped is None
    if (state.stopped is None) != (state.condition is TableCondition.ACTIVE or optional):
        raise refusal("table_states_stopped")


def quarantine(
    books: MemoryBooks, source: str, aside: SetAside, batch: Batch | None = None
) -> None:
    """In the capture of that batch, or outside of one. Repeating it changes nothing."""
    known = books.states.get((source, aside.table))
    if known is None:
        raise refusal("table_states_known")
    if known.condition in _ASIDE:
        return
    books.states[source, aside.table] = replace(
        known,
        condition=TableCondition.QUARANTINED,
        reason=aside.reason,
        hint=aside.hint,
        position=aside.position,
        remedy=aside.remedy,
        stopped=_stopped(books, source, aside, batch),
        behind=books.behind(source, aside.table, known.behind),
    )


def _stopped(
    books: MemoryBooks, source: str, aside: SetAside, batch: Batch | None
) -> Stopped | None:
    if batch is not None:
        return Stopped(batch.id, aside.at or batch.start.at)
    captured = books.of_source(source, *ENDED)
    end = captured[-1].end if captured else None
    return Stopped(captured[-1].id, aside.at or end.at) if end is not None else None


def settle_state(books: MemoryBooks, source: str, table: TableName, shows: int | None) -> None:
    """What a settled write leaves of the table's state."""
    state = books.states[source, table]
    if shows is not None:
        known = [one.version for one in books.versions.get((source, table), ())]
        if shows not in known:
            raise refusal("table_states_mirror_version")
        state = replace(state, mirror_version=shows)
    if state.behind is not None:
        state = replace(state, behind=books.behind(source, table, state.behind))
    books.states[source, table] = state


def source_parts_of(record: CaptureRecord) -> tuple[SourcePart, ...]:
    """What a capture adds to its source's own tables, by their names."""
    if len({part.table for part in record.source_parts}) < len(record.source_parts):
        raise refusal("source_files_pk")
    return tuple(sorted(record.source_parts, key=lambda part: part.table))


def renew_mirror(books: MemoryBooks, source: str, table: TableName, mirror: str) -> TableState:
    """The table's next mirror, in another folder."""
    state = books.states.get((source, table))
    if state is None:
        raise refusal("table_states_known")
    state = books.states[source, table] = replace(
        state,
        mirror_generation=state.mirror_generation + 1,
        mirror=mirror,
        mirror_version=None,
        adopted=None,
    )
    return state


def record_extents(books: MemoryBooks, batch: Batch, extents: Sequence[Extent]) -> None:
    for one in extents:
        if one.empty is not None and one.begins is None:
            raise refusal("extents_empty_of_partial")
        books.extents.append((batch.source, batch.id, one))


def partial_of(books: MemoryBooks, source: str) -> Iterator[Extent]:
    """The newest word on each table, of the newest live batch that has one."""
    found: dict[TableName, tuple[int, Extent]] = {}
    for of, number, one in books.extents:
        live = of == source and books.batches[number].state is not BatchState.ABANDONED
        if live and number >= found.get(one.table, (0, one))[0]:
            found[one.table] = (number, one)
    for table, (_, one) in sorted(found.items()):
        state = books.states.get((source, table))
        gone = state is not None and state.condition is TableCondition.DROPPED
        if one.begins is not None and not gone:
            yield one


def end_mirror(books: MemoryBooks, source: str, table: TableName) -> None:
    """A dropped table's next life is another generation."""
    state = books.states.get((source, table))
    if state is None or state.condition is not TableCondition.DROPPED:
        raise refusal("table_states_dropped")
    if state.mirror_version is not None:
        ended = replace(state, generation=state.generation + 1, mirror_version=None)
        ended = replace(ended, adopted=None)
        books.states[source, table] = ended


def version_set_of(books: MemoryBooks, batch: Batch) -> Iterator[VersionSetEntry]:
    """Tables whose newest segment or event up to the batch is merged by a write that ends there
    too: a write that goes further shows a later position."""
    chain = [one.id for one in books.of_source(batch.source, *ENDED) if one.id <= batch.id]
    for (source, table), state in sorted(books.states.items()):
        if source != batch.source or state.condition is not TableCondition.ACTIVE:
            continue
        writes = [w for w in books.writes(source, table) if w.intent.last_batch <= batch.id]
        merged = max((w.intent.last_batch for w in writes if w.intent.step == "merge"), default=0)
        newest = max(
            (one for one in chain if table in books.touched(one)),
            default=0,
        )
        if writes and merged >= newest > 0:
            newest_write = max(writes, key=lambda write: write.intent.id)
            yield VersionSetEntry(table, state.mirror, newest_write.delta_version)
