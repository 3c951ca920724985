"""Verify: MySQL and the lake held against each other at one place of the log, while others write.

The two sides come by independent paths, the server's own arithmetic and the mirror's files, and
meet as sums of hashes. The mirror's sum is carried through the log from the place that it shows to
the moment at which the source was read; where it does not fit there, rows tell which are wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import Final, TypeVar

from pipeline.arrow_errors import for_one_table
from pipeline.batch import Cursor
from pipeline.errors import (
    MirrorRefused,
    NothingMatches,
    SourceMoving,
    StructureMoved,
    TableBusy,
    TableError,
)
from pipeline.ports.compared import SourceSum
from pipeline.proof.hashes import RowHasher, RowSum
from pipeline.proof.prefixes import Carried, Prefix
from pipeline.proof.proven import Proof
from pipeline.retries import RUN_ENDED
from pipeline.runs.comparing.verify_differences import Side, differences
from pipeline.runs.comparing.verify_log import AGAIN, SumReader, read_log
from pipeline.runs.context import Workplace, tables_done
from pipeline.runs.cures import quarantines_of, reload_hint
from pipeline.runs.mirror_rows import Mirror
from pipeline.runs.reports import NotCompared, TableDifference, VerifyReport
from pipeline.table import TableName
from pipeline.table_state import TableCondition, TableState

READ_ON: Final = "`lockstep run` reads on until all are read; then `lockstep verify` again"


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
        cursor = ledger.cursors(source).acknowledged
        if cursor is None:
            raise SourceMoving(
                f"the lake shows nothing of {source} yet", hint=f"`lockstep run --source {source}`"
            )
        states = ledger.table_states(source)
        versions = {table: work.mirrors.version(state.mirror) for table, state in states.items()}
        waiting = frozenset(ledger.pending(source))
        loading = frozenset(load.table for load in ledger.open_loads(source))
        batches = ledger.unfinished(source)
        if not batches and ledger.cursors(source).acknowledged == cursor:
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
    following = TableCondition.FOLLOWING
    others = {table for table, state in states.items() if state.condition is not following}
    matched = {table for table in present if work.source.patterns.matches(table)}
    return sorted((matched | states.keys()) - others)


def side_of(work: Workplace, shown: LakeShown, table: TableName) -> Side:
    """What is needed to read a table on both sides."""
    state = shown.states.get(table)
    structure = work.server.structure(table)
    mirror = Mirror(work, state.mirror if state else "", shown.versions.get(table))
    keeps = work.source.policies_of(table).ignores_truncates
    return Side(table, RowHasher(structure, shown.flavour), mirror, keeps)


T = TypeVar("T")

Found = TableDifference | NotCompared


@dataclass(frozen=True, slots=True)
class Summed:
    """A table whose two sums are known."""

    side: Side
    source: SourceSum
    lake: RowSum

    def told(self, proof: Proof, at: Prefix) -> TableDifference:
        """It is equal: at that place the mirror has as many rows as the source."""
        rows = self.source.sum.rows
        return TableDifference(self.side.table, rows, rows, proof=proof, place=at)


def verify(
    work: Workplace, tables: Sequence[TableName] | None = None, *, show_values: bool = False
) -> VerifyReport:
    """Compare `tables`, or all that are captured and not quarantined.

    `SourceMoving` before the first run, and while captured batches wait for their merge. A
    table that cannot be compared is told of, and the others are.
    """
    clock = perf_counter()
    shown = what_the_lake_shows(work)
    tables = chosen(work, tables, shown.states)
    comparisons: dict[TableName, Found] = {}
    summed: dict[TableName, Summed] = {}
    for done, table in enumerate(tables):
        work.progress.tell(tables_done("compare", done, len(tables), table))
        one = tried(table, partial(_summed, work, shown, table))
        if isinstance(one, Summed):
            summed[table] = one
        else:
            comparisons[table] = one
    comparisons.update(_carried(work, shown, summed))
    for table, sums in summed.items():
        if table not in comparisons:
            rows = partial(_by_rows, work, shown.cursor, sums, show_values=show_values)
            comparisons[table] = tried(table, rows)
    return report(work, shown.cursor, comparisons, perf_counter() - clock)


def report(
    work: Workplace, cursor: Cursor, comparisons: Mapping[TableName, Found], seconds: float
) -> VerifyReport:
    """All that was found, by table."""
    ordered = [comparisons[table] for table in sorted(comparisons)]
    return VerifyReport(
        cursor.batch,
        cursor.position,
        tuple(comparison for comparison in ordered if isinstance(comparison, TableDifference)),
        quarantines_of(work.ledger.table_states(work.source.name)),
        seconds,
        tuple(one for one in ordered if isinstance(one, NotCompared) and not one.readable),
        tuple(one for one in ordered if isinstance(one, NotCompared) and one.readable),
    )


def tried(table: TableName, compare: Callable[[], T | Found]) -> T | Found:
    """One table that cannot be read never keeps the others from being compared."""
    try:
        with for_one_table("compare its rows"):
            return compare()
    except MirrorRefused as error:
        return NotCompared(table, error.reason, reload_hint(table))
    except TableBusy as error:
        again = f"`lockstep verify {table}` again, in a while"
        return NotCompared(table, error.reason, again, readable=True)
    except TableError as error:
        return NotCompared(table, error.reason, error.hint)
    except NothingMatches as error:
        return NotCompared(table, error.message, error.hint)
    except (StructureMoved, SourceMoving) as error:
        return NotCompared(table, error.message, error.hint, readable=True)


def _summed(work: Workplace, shown: LakeShown, table: TableName) -> Summed | Found:
    state = shown.states.get(table)
    if (unready := shown.unready(table)) is not None:
        return unready
    side = side_of(work, shown, table)
    source = work.server.row_sum(side.hasher.structure)
    if state is not None and state.has_stopped and _moved(shown.cursor, source):
        why = "it is stopped, and the source has moved on"
        return NotCompared(table, why, AGAIN, readable=True)
    return Summed(side, source, side.mirror.summed(side.hasher))


def _moved(cursor: Cursor, source: SourceSum) -> bool:
    return source.marks.high != cursor.position.at


def _carried(
    work: Workplace, shown: LakeShown, summed: Mapping[TableName, Summed]
) -> dict[TableName, Found]:
    """Tables that are equal, and those that the log cannot be followed of."""
    cursor = shown.cursor
    comparisons: dict[TableName, Found] = {}
    readers: dict[TableName, SumReader] = {}
    for table, one in summed.items():
        if _moved(cursor, one.source):
            readers[table] = SumReader(one.side.hasher, _carrying(one, shown))
        elif one.lake == one.source.sum:
            comparisons[table] = one.told(Proof.EXACT, _place(cursor))
    if not readers:
        return comparisons
    comparisons.update(read_log(work, cursor, readers))
    for table, reader in readers.items():
        reader.carried.finish()
        place = reader.carried.found
        if table in comparisons or reader.partial or place is None:
            continue
        proof = Proof.EXACT if reader.carried.exact else Proof.PREFIX
        comparisons[table] = summed[table].told(proof, place)
    return comparisons


def _carrying(one: Summed, shown: LakeShown) -> Carried:
    """From the mirror's place on; the read was not before that."""
    marks, place = one.source.marks, _place(shown.cursor)
    low, low_set = marks.low, marks.low_set
    if shown.here and low.file.base == place.at.file.base and low < place.at:
        low, low_set = place.at, place.gtids
    return Carried(one.lake, one.source.sum, low, marks.high, low_set)


def _by_rows(work: Workplace, cursor: Cursor, one: Summed, *, show_values: bool) -> TableDifference:
    """Its sums do not fit, or the log has not all of its columns."""
    return differences(
        work,
        cursor,
        one.side,
        TableDifference(
            one.side.table,
            one.source.sum.rows,
            one.lake.rows,
            proof=Proof.ROWS,
            place=_place(cursor),
        ),
        show_values=show_values,
    )


def _place(cursor: Cursor) -> Prefix:
    return Prefix(cursor.position.at, str(cursor.position.gtid_set))
