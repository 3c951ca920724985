"""What a comparison begins with: what the lake shows, and which tables are compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pipeline.batch import Cursor
from pipeline.errors import NothingMatches, SourceMoving
from pipeline.proof.hashes import RowHasher
from pipeline.retries import RUN_ENDED
from pipeline.runs.comparing.verify_differences import Side
from pipeline.runs.comparing.verify_log import AGAIN
from pipeline.runs.context import Workplace
from pipeline.runs.mirror_rows import Mirror
from pipeline.runs.reports import NotCompared
from pipeline.table import TableName
from pipeline.table_state import TableCondition, TableState

READ_ON: Final = "`lockstep snapshot` reads on until all are read; then `lockstep verify` again"


@dataclass(frozen=True, slots=True)
class LakeShown:
    """What the lake shows: the acknowledged cursor, the tables' states, and the version that
    each mirror had then. `waiting`: tables of which something is not merged; `loading`: those
    whose rows are being read from the source. `flavour`: the source's; `here`: whether the cursor
    is a place of the log of the server that answers."""

    cursor: Cursor
    states: Mapping[TableName, TableState]
    versions: Mapping[TableName, int | None]
    waiting: frozenset[TableName]
    loading: frozenset[TableName]
    flavour: str
    here: bool

    def unready(self, table: TableName) -> NotCompared | None:
        """Why the table cannot be compared just now."""
        if table in self.loading:
            why = "its rows are being read from the source"
            return NotCompared(table, why, READ_ON, readable=True)
        if table in self.waiting:
            return NotCompared(table, "changes of it wait to be merged", AGAIN, readable=True)
        return None


def what_the_lake_shows(work: Workplace) -> LakeShown:
    """Cursor and versions of one moment: nothing that is captured waits for its merge."""
    ledger, source = work.ledger, work.source.name
    cursor = None
    for _ in RUN_ENDED.tries(work.pause):
        cursor = ledger.acknowledged_cursor(source)
        if cursor is None:
            raise SourceMoving(
                f"the lake shows nothing of {source} yet", hint=f"`lockstep run --source {source}`"
            )
        states = ledger.table_states(source)
        versions = {table: work.mirrors.version(state.mirror) for table, state in states.items()}
        waiting = frozenset(ledger.pending(source))
        loading = frozenset(load.table for load in ledger.open_loads(source))
        batches = ledger.unfinished(source)
        if not batches and ledger.acknowledged_cursor(source) == cursor:
            facts = work.server.facts()
            here = facts.server_uuid == cursor.position.server_uuid
            return LakeShown(cursor, states, versions, waiting, loading, facts.flavour, here)
        lease = ledger.lease(source)
        if lease is None or not lease.live:
            break
    upto = cursor.position if cursor else "nothing"
    raise SourceMoving(
        f"the lake shows {source} up to {upto}, and what was captured since waits to be merged",
        hint=AGAIN,
    )


def chosen(
    work: Workplace,
    tables: Sequence[TableName] | None,
    states: Mapping[TableName, TableState],
) -> list[TableName]:
    """Which tables are compared, sorted; `NothingMatches` for one that nobody knows."""
    present = {*work.server.engines()}
    if tables is not None:
        unknown = [table for table in tables if table not in present and table not in states]
        if unknown:
            raise NothingMatches(
                f"neither the source nor the lake knows {unknown[0]}",
                hint="`lockstep tables` lists what there is",
            )
        return sorted(tables)
    going = (TableCondition.ACTIVE, TableCondition.LOADING)
    quarantined = {table for table, state in states.items() if state.condition not in going}
    matched = {table for table in present if work.source.patterns.matches(table)}
    return sorted((matched | states.keys()) - quarantined)


def side_of(work: Workplace, shown: LakeShown, table: TableName) -> Side:
    """What is needed to read a table on both sides."""
    state = shown.states.get(table)
    structure = work.server.structure(table)
    mirror = Mirror(work, state.mirror if state else "", shown.versions.get(table))
    return Side(table, RowHasher(structure, shown.flavour), mirror)
