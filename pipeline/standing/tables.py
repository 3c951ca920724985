"""How one table stands, in a word, a sentence and a cure.

Not here: a source as a whole (`verdict`), how screens show it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import assert_never

from pipeline.gaps import Gap
from pipeline.proof.proven import TableProof, open_differences
from pipeline.snapshot.progress import LoadProgress
from pipeline.table import TableName
from pipeline.table_state import Extent, TableCondition, TableState
from pipeline.upkeep.clearing import InClear


class TableHealth(StrEnum):
    """What matters most of a table; the first that holds counts."""

    QUARANTINED = "quarantined"
    DIFFERS = "differs"
    PAUSED = "paused"
    DROPPED = "dropped"
    LOADING = "loading"
    GAP = "gap"
    PARTIAL = "partial"
    IN_CLEAR = "in clear"
    """Less of it is shown than before, and what was captured before is not cleared."""
    UNSEEN = "unseen"
    """Nothing was captured of it yet."""
    FOLLOWING = "following"

    @property
    def serious(self) -> bool:
        """Whether somebody has to act; a warning else."""
        return self in (TableHealth.QUARANTINED, TableHealth.DIFFERS)


@dataclass(frozen=True, slots=True)
class TableStanding:
    """`sentence` and `hint` say the same as long as nothing happens to the table; `progress`
    does not. `hint` is "" where there is nothing to do; `position` is a place of the log or ""."""

    table: TableName
    health: TableHealth
    sentence: str
    hint: str = ""
    position: str = ""
    progress: str = ""

    @property
    def follows(self) -> bool:
        """Whether the mirror, once there is one, follows the source and has all of it."""
        return self.health in (TableHealth.FOLLOWING, TableHealth.UNSEEN)


def table_standings(
    states: Mapping[TableName, TableState],
    *,
    partial: Iterable[Extent] = (),
    loading: Iterable[LoadProgress] = (),
    gaps: Iterable[Gap] = (),
    proofs: Sequence[TableProof] = (),
    in_clear: Iterable[InClear] = (),
) -> dict[TableName, TableStanding]:
    """Of each table that has a state or is partial, and of no other."""
    extents = {extent.table: extent for extent in partial}
    clear = {note.table: note for note in in_clear}
    reading = {progress.table: progress for progress in loading}
    differing = open_differences(proofs)
    oldest_first = sorted((gap for gap in gaps if gap.is_open), key=lambda gap: gap.batch)
    open_gaps = {table: gap for gap in oldest_first for table in gap.open_tables}
    return {
        table: _standing(
            table,
            states.get(table),
            differing.get(table),
            reading.get(table),
            open_gaps.get(str(table)),
            extents.get(table),
            clear.get(table),
        )
        for table in states.keys() | extents.keys()
    }


def unseen(table: TableName) -> TableStanding:
    """Of a table that the ledger does not know."""
    return TableStanding(table, TableHealth.UNSEEN, "nothing was captured of it yet")


def _standing(
    table: TableName,
    state: TableState | None,
    differing: TableProof | None,
    loading: LoadProgress | None,
    gap: Gap | None,
    partial: Extent | None,
    clear: InClear | None,
) -> TableStanding:
    stopped = None if state is None else _stopped(state, loading)
    if stopped is not None and stopped.health is TableHealth.QUARANTINED:
        return stopped
    if differing is not None:
        return TableStanding(
            table,
            TableHealth.DIFFERS,
            f"{differing.differing} rows differed from MySQL when last compared",
            f"`lockstep verify {table}` shows which; with `--repair` the next run mends them",
        )
    if stopped is not None:
        return stopped
    if gap is not None:
        return TableStanding(
            table,
            TableHealth.GAP,
            f"changes from {gap.begin} to {gap.end} were never read: {gap.reason}",
            f"`lockstep verify {table}` closes the gap if it is equal; `lockstep reload {table} "
            "--reason …` re-reads it from MySQL",
            gap.begin,
        )
    if partial is not None:
        begins = str(partial.begins)
        return TableStanding(table, TableHealth.PARTIAL, partial.sentence, partial.hint, begins)
    if clear is not None:
        return TableStanding(table, TableHealth.IN_CLEAR, clear.sentence, clear.until)
    return TableStanding(table, TableHealth.FOLLOWING, "it follows the source")


def _stopped(state: TableState, loading: LoadProgress | None) -> TableStanding | None:
    """What its state says; None where it is active."""
    table, reason, hint = state.table, state.reason or "", state.hint or ""
    place = state.position or (str(state.stopped.at) if state.stopped is not None else "")
    match state.condition:
        case TableCondition.ACTIVE:
            return None
        case TableCondition.QUARANTINED:
            return TableStanding(table, TableHealth.QUARANTINED, reason, hint, place)
        case TableCondition.PAUSED:
            return TableStanding(table, TableHealth.PAUSED, reason, hint, place)
        case TableCondition.DROPPED:
            return TableStanding(
                table,
                TableHealth.DROPPED,
                "it was dropped at the source; the mirror keeps what it had",
                'dropped_tables = "drop" removes the mirrors of dropped tables',
                place,
            )
        case TableCondition.LOADING:
            return TableStanding(
                table,
                TableHealth.LOADING,
                "its rows are being read from the source; the mirror has not all of them yet",
                "the next runs go on with it",
                progress=loading.sentence() if loading is not None else "",
            )
    assert_never(state.condition)
