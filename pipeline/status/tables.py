"""Judges the health of one table: a word, a sentence and what to do. `verdict` judges
the source."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from lockstep.pipeline.model.gaps import Gap
from lockstep.pipeline.model.table_state import Extent, TableState
from lockstep.pipeline.proof.proven import ComparisonRecord, open_differences
from lockstep.pipeline.snapshot.progress import LoadProgress
from lockstep.pipeline.upkeep.clearing import UnclearedValues
from lockstep.pipeline.values.errors import StoppedBy
from lockstep.pipeline.values.shown import pluralize
from lockstep.pipeline.values.table import TableName, TablePatterns


class TableHealth(StrEnum):
    """The most important fact about a table. The first member that applies counts."""

    LEFT_OUT = "left out"
    """The source's patterns do not match it, so no run reads its changes."""
    STOPPED_BY_SYSTEM = "stopped by Lockstep"
    DIFFERS = "differs"
    STOPPED_BY_PERSON = "stopped by a person"
    STOPPED_BY_RUN = "stopped by the last run"
    DROPPED = "dropped"
    READING = "following, reading rows"
    GAP = "gap"
    PARTIAL = "partial"
    IN_PLAINTEXT = "in plaintext"
    """Its settings hide more than before, and the lake still has earlier values that
    they hide now."""
    UNSEEN = "unseen"
    """Nothing of it was captured yet."""
    FOLLOWING = "following"

    @property
    def is_serious(self) -> bool:
        """True if the table's rows are missing or wrong until a person acts."""
        return self in (TableHealth.STOPPED_BY_SYSTEM, TableHealth.DIFFERS)


@dataclass(frozen=True, slots=True)
class TableStanding:
    """A table's health. `sentence`, `hint`: change only if something happens to the
    table; `hint` is "" if there is nothing to do. `position`: a place of the log, or
    "". `progress`: how far the table's rows are read, which changes with time."""

    table: TableName
    health: TableHealth
    sentence: str
    hint: str = ""
    position: str = ""
    progress: str = ""

    @property
    def follows(self) -> bool:
        """True if the mirror is complete and follows, or does not exist yet."""
        return self.health in (TableHealth.FOLLOWING, TableHealth.UNSEEN)


def table_standings(
    states: Mapping[TableName, TableState],
    patterns: TablePatterns,
    *,
    extents: Iterable[Extent] = (),
    loads: Iterable[LoadProgress] = (),
    gaps: Iterable[Gap] = (),
    proofs: Sequence[ComparisonRecord] = (),
    uncleared_values: Iterable[UnclearedValues] = (),
) -> dict[TableName, TableStanding]:
    """Return the health of each table that has a state or is partial. `patterns`: those
    of the source."""
    extent_of = {extent.table: extent for extent in extents}
    uncleared_of = {uncleared.table: uncleared for uncleared in uncleared_values}
    load_of = {load.table: load for load in loads}
    difference_of = open_differences(proofs)
    oldest_first = sorted((gap for gap in gaps if gap.is_open), key=lambda gap: gap.batch)
    gap_of = {table: gap for gap in oldest_first for table in gap.open_tables}
    standings = {}
    for table in states.keys() | extent_of.keys():
        reason = patterns.exclusion_reason(table)
        if reason is not None:
            standings[table] = _left_out_standing(table, states.get(table), reason)
            continue
        standings[table] = _standing(
            table,
            states.get(table),
            difference=difference_of.get(table),
            load=load_of.get(table),
            gap=gap_of.get(str(table)),
            extent=extent_of.get(table),
            uncleared=uncleared_of.get(table),
        )
    return standings


def unseen_standing(table: TableName) -> TableStanding:
    """Return the health of a table that the ledger does not know."""
    return TableStanding(table, TableHealth.UNSEEN, "nothing of it was captured yet")


def _left_out_standing(table: TableName, state: TableState | None, reason: str) -> TableStanding:
    """Return the health of a table that the source's patterns leave out."""
    sentence = f"no run reads its changes: {reason}; the mirror keeps what it had"
    return TableStanding(
        table, TableHealth.LEFT_OUT, sentence, position="" if state is None else state.place_text
    )


def _standing(
    table: TableName,
    state: TableState | None,
    *,
    difference: ComparisonRecord | None,
    load: LoadProgress | None,
    gap: Gap | None,
    extent: Extent | None,
    uncleared: UnclearedValues | None,
) -> TableStanding:
    standing = None if state is None else _state_standing(state, load)
    if standing is not None and standing.health is TableHealth.STOPPED_BY_SYSTEM:
        return standing
    if difference is not None:
        count = pluralize(difference.differing_count, "row")
        return TableStanding(
            table,
            TableHealth.DIFFERS,
            f"{count} differed from MySQL when last compared",
            f"`lockstep verify {table.word}` shows which; with `--repair` the next run mends them",
        )
    if standing is not None:
        return standing
    if gap is not None:
        return TableStanding(
            table,
            TableHealth.GAP,
            f"changes from {gap.begin} to {gap.end} were never read: {gap.reason}",
            f"`lockstep verify {table.word}` closes the gap if it is equal; `lockstep reload "
            f"{table.word} --reason …` re-reads it from MySQL",
            gap.begin,
        )
    if extent is not None:
        begins = str(extent.begins)
        return TableStanding(table, TableHealth.PARTIAL, extent.sentence, extent.hint, begins)
    if uncleared is not None:
        return TableStanding(table, TableHealth.IN_PLAINTEXT, uncleared.sentence, uncleared.hint)
    return TableStanding(table, TableHealth.FOLLOWING, "it follows the source")


_STOPPED_HEALTH: Final = {
    StoppedBy.RUN: TableHealth.STOPPED_BY_RUN,
    StoppedBy.SYSTEM: TableHealth.STOPPED_BY_SYSTEM,
    StoppedBy.PERSON: TableHealth.STOPPED_BY_PERSON,
}


def _state_standing(state: TableState, load: LoadProgress | None) -> TableStanding | None:
    """Return the health that the table's state says; None if its mirror follows the
    source and is complete."""
    table = state.table
    if state.is_complete:
        return None
    if state.is_loading:
        return TableStanding(
            table,
            TableHealth.READING,
            "its rows are being read from the source; the mirror does not have all of them yet",
            "the next runs continue reading",
            progress=load.sentence() if load is not None else "",
        )
    if state.stopped_by is not None:
        health = _STOPPED_HEALTH[state.stopped_by]
        return TableStanding(table, health, state.reason or "", state.hint or "", state.place_text)
    return TableStanding(
        table,
        TableHealth.DROPPED,
        "it was dropped at the source; the mirror keeps what it had",
        'dropped_tables = "drop" removes the mirrors of dropped tables',
        state.place_text,
    )
