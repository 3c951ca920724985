"""Compares MySQL with the lake at one place of the log, while other sessions write to
MySQL.

Both sides compute a sum of row hashes, independently: the server computes one, the
other comes from the files of the mirror (the Delta table with the current rows). The
mirror's sum is then carried forward through the log, from the place that the mirror
shows to the moment at which MySQL was read. If the sums differ there, the rows are
compared one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import Final, TypeVar

from lockstep.pipeline.model.batch import Cursor
from lockstep.pipeline.model.table_state import TableCondition, TableState
from lockstep.pipeline.ports.source import SourceSum
from lockstep.pipeline.proof.hashes import RowHasher, RowSum
from lockstep.pipeline.proof.proven import ComparisonResult, EqualityProof, ProofKind
from lockstep.pipeline.proof.running_sum import RunningSum, TransactionBoundary
from lockstep.pipeline.run.context import Workplace, table_progress
from lockstep.pipeline.run.mirror_rows import MirrorReader
from lockstep.pipeline.run.proof.verify_differences import Side, differences
from lockstep.pipeline.run.proof.verify_log import AGAIN, SumReader, read_log
from lockstep.pipeline.run.reports import TableComparison, UncomparedTable, VerifyReport
from lockstep.pipeline.run.stop_errors import (
    arrow_errors_as_table_error,
    reload_hint,
    stopped_tables,
)
from lockstep.pipeline.values.errors import (
    MirrorRefused,
    NothingMatches,
    SourceMoving,
    StructureMoved,
    TableBusy,
    TableError,
)
from lockstep.pipeline.values.retries import RUN_ENDED
from lockstep.pipeline.values.table import TableName

READ_ON: Final = "`lockstep run` until all rows are read; then `lockstep verify` again"


@dataclass(frozen=True, slots=True)
class LakeShown:
    """The lake at one moment. `cursor`: the place up to which it was acknowledged;
    `versions`: the newest Delta version of each mirror. `waiting`: tables with changes
    that are not merged. `loading`: tables whose rows are being read from MySQL.
    `flavour`: "mysql" or "mariadb". `same_server`: the cursor is in the log of the
    server that answers now."""

    cursor: Cursor
    states: Mapping[TableName, TableState]
    versions: Mapping[TableName, int | None]
    waiting: frozenset[TableName]
    loading: frozenset[TableName]
    flavour: str
    same_server: bool

    def unready(self, table: TableName) -> UncomparedTable | None:
        """Return why the table cannot be compared now; None if it can."""
        if table in self.loading:
            why = "its rows are being read from the source"
            return UncomparedTable(table, why, READ_ON, is_readable=True)
        if table in self.waiting:
            return UncomparedTable(table, "its changes wait to be merged", AGAIN, is_readable=True)
        return None


def lake_shown(work: Workplace) -> LakeShown:
    """Return the lake at a moment when no captured batch waits for its merge. While a
    run is active, wait for such a moment. Raise `SourceMoving` if there is none."""
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
        # If a run acknowledged meanwhile, the states and versions need not fit the
        # cursor.
        if not batches and ledger.cursors(source).acknowledged == cursor:
            facts = work.server.facts()
            same = facts.server_uuid == cursor.position.server_uuid
            return LakeShown(cursor, states, versions, waiting, loading, facts.flavour, same)
        lease = ledger.lease(source)
        if lease is None or not lease.live:
            break
    upto = cursor.position if cursor else "nothing"
    raise SourceMoving(
        f"the lake shows {source} up to {upto}, and what was captured since waits to be merged",
        hint=AGAIN,
    )


def tables_to_compare(
    work: Workplace,
    tables: Sequence[TableName] | None,
    states: Mapping[TableName, TableState],
) -> list[TableName]:
    """Return the tables to compare, sorted. `tables`: those that were named; None for
    all that are followed. Raise `NothingMatches` for an unknown table."""
    present = {*work.server.engines()}
    if tables is not None:
        unknown = [table for table in tables if table not in present and table not in states]
        if unknown:
            raise NothingMatches(
                f"neither the source nor the lake has a table {unknown[0]}",
                hint="`lockstep tables` lists all tables",
            )
        return sorted(tables)
    following = TableCondition.FOLLOWING
    excluded = {table for table, state in states.items() if state.condition is not following}
    matched = {table for table in present if work.source.patterns.matches(table)}
    return sorted((matched | states.keys()) - excluded)


def side_of(work: Workplace, shown: LakeShown, table: TableName) -> Side:
    """Return access to a table on both sides, in MySQL and in the lake."""
    state = shown.states.get(table)
    structure = work.server.structure(table)
    mirror = MirrorReader(work, state.mirror if state else "", shown.versions.get(table))
    keeps = work.source.policies_of(table).ignores_truncates
    return Side(table, RowHasher(structure, shown.flavour), mirror, keeps)


T = TypeVar("T")

Comparison = TableComparison | UncomparedTable


@dataclass(frozen=True, slots=True)
class Summed:
    """A table with the sums of its two sides."""

    side: Side
    source: SourceSum
    lake: RowSum

    def equal(self, proof: ProofKind, at: TransactionBoundary) -> TableComparison:
        """Return the result that both sides are equal at the place `at`."""
        rows = self.source.sum.row_count
        return TableComparison(self.side.table, rows, rows, proof=proof, place=at)


def verify(
    work: Workplace, tables: Sequence[TableName] | None = None, *, show_values: bool = False
) -> VerifyReport:
    """Compare `tables`, or all that are followed. `show_values`: report also the values
    of differing rows.

    Raise `SourceMoving` before the first run, and while captured batches wait for their
    merge. A table that cannot be compared is reported, and the others are compared.
    """
    clock = perf_counter()
    shown = lake_shown(work)
    tables = tables_to_compare(work, tables, shown.states)
    comparisons: dict[TableName, Comparison] = {}
    summed: dict[TableName, Summed] = {}
    for done, table in enumerate(tables):
        work.progress.tell(table_progress("compare", done, len(tables), table))
        result = try_to_compare(table, partial(_summed, work, shown, table))
        if isinstance(result, Summed):
            summed[table] = result
        else:
            comparisons[table] = result
    comparisons.update(_carried(work, shown, summed))
    for table, sums in summed.items():
        if table not in comparisons:
            rows = partial(_by_rows, work, shown.cursor, sums, show_values=show_values)
            comparisons[table] = try_to_compare(table, rows)
    return report(work, shown.cursor, comparisons, perf_counter() - clock)


def report(
    work: Workplace, cursor: Cursor, comparisons: Mapping[TableName, Comparison], seconds: float
) -> VerifyReport:
    """Return the report on all tables, sorted by name."""
    ordered = [comparisons[table] for table in sorted(comparisons)]
    return VerifyReport(
        cursor.batch,
        cursor.position,
        tuple(comparison for comparison in ordered if isinstance(comparison, TableComparison)),
        stopped_tables(work.ledger.table_states(work.source.name)),
        seconds,
        tuple(
            item for item in ordered if isinstance(item, UncomparedTable) and not item.is_readable
        ),
        tuple(item for item in ordered if isinstance(item, UncomparedTable) and item.is_readable),
    )


def try_to_compare(table: TableName, compare: Callable[[], T | Comparison]) -> T | Comparison:
    """Return what `compare` returns. An error that concerns one table becomes a
    `UncomparedTable`, so that the other tables are compared."""
    try:
        with arrow_errors_as_table_error("compare its rows"):
            return compare()
    except MirrorRefused as error:
        return UncomparedTable(table, error.reason, reload_hint(table))
    except TableBusy as error:
        again = f"`lockstep verify {table}` again, in a while"
        return UncomparedTable(table, error.reason, again, is_readable=True)
    except TableError as error:
        return UncomparedTable(table, error.reason, error.hint)
    except NothingMatches as error:
        return UncomparedTable(table, error.message, error.hint)
    except (StructureMoved, SourceMoving) as error:
        return UncomparedTable(table, error.message, error.hint, is_readable=True)


def _summed(work: Workplace, shown: LakeShown, table: TableName) -> Summed | Comparison:
    state = shown.states.get(table)
    if (unready := shown.unready(table)) is not None:
        return unready
    side = side_of(work, shown, table)
    source = work.server.row_sum(side.hasher.structure)
    if state is not None and state.has_stopped and _moved(shown.cursor, source):
        why = "it is stopped, and the source has moved on"
        return UncomparedTable(table, why, AGAIN, is_readable=True)
    return Summed(side, source, side.mirror.row_sum(side.hasher))


def _moved(cursor: Cursor, source: SourceSum) -> bool:
    return source.marks.high != cursor.position.at


def _carried(
    work: Workplace, shown: LakeShown, summed: Mapping[TableName, Summed]
) -> dict[TableName, Comparison]:
    """Carry the sums through the log. Return the tables that are equal, and those whose
    changes in the log could not be read."""
    cursor = shown.cursor
    comparisons: dict[TableName, Comparison] = {}
    readers: dict[TableName, SumReader] = {}
    for table, sums in summed.items():
        if _moved(cursor, sums.source):
            readers[table] = SumReader(sums.side.hasher, _carrying(sums, shown))
        elif sums.lake == sums.source.sum:
            comparisons[table] = sums.equal(ProofKind.EXACT, place_of(cursor))
    if not readers:
        return comparisons
    comparisons.update(read_log(work, cursor, readers))
    for table, reader in readers.items():
        reader.carried.finish()
        place = reader.carried.match
        if table in comparisons or reader.partial or place is None:
            continue
        proof = ProofKind.EXACT if reader.carried.is_exact else ProofKind.PREFIX
        comparisons[table] = summed[table].equal(proof, place)
    return comparisons


def _carrying(sums: Summed, shown: LakeShown) -> RunningSum:
    """Return the mirror's sum, ready to be carried forward. MySQL was read at a place
    between the two marks, and not before the mirror's place."""
    marks, place = sums.source.marks, place_of(shown.cursor)
    low, low_set = marks.low, marks.low_set
    if shown.same_server and low.file.base == place.at.file.base and low < place.at:
        low, low_set = place.at, place.gtids
    return RunningSum(sums.lake, sums.source.sum, low, marks.high, low_set)


def _by_rows(
    work: Workplace, cursor: Cursor, sums: Summed, *, show_values: bool
) -> TableComparison:
    """Compare row by row, because the sums differ or the log lacks columns."""
    return differences(
        work,
        cursor,
        sums.side,
        TableComparison(
            sums.side.table,
            sums.source.sum.row_count,
            sums.lake.row_count,
            proof=ProofKind.ROWS,
            place=place_of(cursor),
        ),
        show_values=show_values,
    )


def place_of(cursor: Cursor) -> TransactionBoundary:
    return TransactionBoundary(cursor.position.at, str(cursor.position.gtid_set))


def record_proofs(work: Workplace, report: VerifyReport) -> None:
    """Record in the ledger what was proven and what differs. No lease is needed,
    because runs do not read this record."""
    work.ledger.note_compared(work.source.name, list(_compared(report)))


def _compared(report: VerifyReport) -> Iterator[ComparisonResult]:
    for table in report.tables:
        whole = table.compared is None
        if not table.equal:
            yield ComparisonResult(table.table, whole, None, table.differing_rows)
        elif table.place is not None:
            rows = table.source_rows if table.compared is None else table.compared
            proven = EqualityProof(table.proof, rows, table.place.at, table.place.gtids)
            yield ComparisonResult(table.table, whole, proven, 0)
