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

from lockstep.pipeline.model.batch import BatchState, Cursor
from lockstep.pipeline.model.table_state import TableCondition, TableState
from lockstep.pipeline.ports.ledger import live_lease
from lockstep.pipeline.ports.source import ReadMarks, SourceSum
from lockstep.pipeline.proof.hashes import RowHasher, RowSum
from lockstep.pipeline.proof.proven import ComparisonResult, EqualityProof, ProofKind
from lockstep.pipeline.proof.running_sum import RunningSum, TransactionBoundary
from lockstep.pipeline.run.context import RunPorts
from lockstep.pipeline.run.mirror_rows import MirrorReader
from lockstep.pipeline.run.progress import table_progress
from lockstep.pipeline.run.proof.verify_differences import BothSides, compare_row_by_row
from lockstep.pipeline.run.proof.verify_log import AGAIN_HINT, SumReader, read_log
from lockstep.pipeline.run.reports import TableComparison, UncomparedTable, VerifyReport
from lockstep.pipeline.run.reshaping import reshaped_tables
from lockstep.pipeline.run.stop_errors import (
    arrow_errors_as_table_error,
    reload_hint,
    stopped_tables,
)
from lockstep.pipeline.values.errors import (
    MirrorRefused,
    NothingMatches,
    NotSampled,
    SourceMoving,
    StructureMoved,
    TableBusy,
    TableError,
)
from lockstep.pipeline.values.retries import RUN_ENDED
from lockstep.pipeline.values.table import TableName

READ_ON_HINT: Final = "`lockstep run` until all rows are read; then `lockstep verify` again"


@dataclass(frozen=True, slots=True)
class QuietLake:
    """The lake while no captured batch waits for its merge.

    - `cursor`: the place up to which it was acknowledged.
    - `versions`: the newest Delta version of each mirror.
    - `waiting_tables`: tables with changes that are not merged.
    - `loading_tables`: tables whose rows are being read from MySQL.
    - `reshaped_tables`: tables that the next run stops because of their settings, with
      the reason.
    - `flavour`: "mysql" or "mariadb".
    - `is_same_server`: the cursor is in the log of the server that answers now.
    """

    cursor: Cursor
    states: Mapping[TableName, TableState]
    versions: Mapping[TableName, int | None]
    waiting_tables: frozenset[TableName]
    loading_tables: frozenset[TableName]
    reshaped_tables: Mapping[TableName, str]
    flavour: str
    is_same_server: bool

    def require_ready(self, table: TableName) -> None:
        """Raise `SourceMoving` if the table cannot be compared now."""
        if table in self.loading_tables:
            raise SourceMoving("its rows are being read from the source", hint=READ_ON_HINT)
        if table in self.waiting_tables:
            raise SourceMoving("its changes wait to be merged", hint=AGAIN_HINT)
        if table in self.reshaped_tables:
            raise SourceMoving(self.reshaped_tables[table], hint=AGAIN_HINT)

    def require_comparable(self, table: TableName, marks: ReadMarks) -> None:
        """Raise `SourceMoving` if the table has stopped, and the source was read at a
        later place than the cursor: the mirror may lack changes before the cursor.
        `marks`: those of the source's read."""
        state = self.states.get(table)
        if state is not None and state.has_stopped and self.is_before(marks):
            raise SourceMoving("it is stopped, and the source has moved on", hint=AGAIN_HINT)

    def is_before(self, marks: ReadMarks) -> bool:
        """Return whether the source may have been read at a later place than the cursor."""
        return marks.high != self.cursor.position.at


def quiet_lake(ports: RunPorts) -> QuietLake:
    """Return the lake at a moment when no captured batch waits for its merge. While a
    run is active, wait for such a moment. Raise `SourceMoving` if there is none."""
    ledger, source = ports.ledger, ports.source.name
    for _ in RUN_ENDED.tries(ports.pause):
        cursor = ledger.cursors(source).acknowledged
        if cursor is None:
            raise SourceMoving(
                f"the lake shows nothing of {source} yet", hint=f"`lockstep run --source {source}`"
            )
        position = cursor.position
        states = ledger.table_states(source)
        versions = {table: ports.mirrors.version(state.mirror) for table, state in states.items()}
        waiting_tables = frozenset(ledger.pending_batches(source))
        loading_tables = frozenset(load.table for load in ledger.open_loads(source))
        batches = ledger.unfinished_batches(source)
        # If a run acknowledged meanwhile, the states and versions need not fit the
        # cursor.
        if not batches and ledger.cursors(source).acknowledged == cursor:
            notes = ledger.uncleared_values(source)
            reshaped = {table: error.reason for table, error in reshaped_tables(ports, notes)}
            facts = ports.server.facts()
            return QuietLake(
                cursor,
                states,
                versions,
                waiting_tables=waiting_tables,
                loading_tables=loading_tables,
                reshaped_tables=reshaped,
                flavour=facts.flavour,
                is_same_server=facts.server_uuid == position.server_uuid,
            )
        if live_lease(ledger, source) is None:
            break
    cause = (
        "a run did not finish reading the log after it"
        if batches and all(batch.state is BatchState.CAPTURING for batch in batches)
        else "what was captured since waits to be merged"
    )
    raise SourceMoving(f"the lake shows {source} up to {position}, and {cause}", hint=AGAIN_HINT)


def tables_to_compare(
    ports: RunPorts, tables: Sequence[TableName] | None, states: Mapping[TableName, TableState]
) -> list[TableName]:
    """Return the tables to compare, sorted. `tables`: those that were named; None for
    all that are followed. Raise `NothingMatches` for an unknown table."""
    server_tables = {*ports.server.engines()}
    if tables is not None:
        unknown = [table for table in tables if table not in server_tables and table not in states]
        if unknown:
            raise NothingMatches(
                f"neither the source nor the lake has a table {unknown[0]}",
                hint="`lockstep tables` lists all tables",
            )
        return sorted(tables)
    return sorted(
        table
        for table in server_tables | states.keys()
        if ports.source.patterns.matches(table)
        and (table not in states or states[table].condition is TableCondition.FOLLOWING)
    )


def sides_of(ports: RunPorts, lake: QuietLake, table: TableName) -> BothSides:
    """Return a table as MySQL and the lake have it."""
    state = lake.states.get(table)
    structure = ports.server.structure(table)
    mirror = MirrorReader(ports, state.mirror if state else "", lake.versions.get(table))
    keeps_deleted = ports.source.policies_of(table).keeps_unmarked_rows
    return BothSides(table, RowHasher(structure, lake.flavour), mirror, keeps_deleted)


T = TypeVar("T")

Comparison = TableComparison | UncomparedTable


@dataclass(frozen=True, slots=True)
class TableSums:
    """The sums of a table's rows: the source's and the mirror's."""

    sides: BothSides
    source: SourceSum
    mirror: RowSum

    def equal_comparison(self, proof: ProofKind, at: TransactionBoundary) -> TableComparison:
        """Return the comparison of equal sides. The caller has found that they are
        equal at the place `at`."""
        rows = self.source.sum.row_count
        return TableComparison(self.sides.table, rows, rows, proof=proof, place=at)


def verify(
    ports: RunPorts, tables: Sequence[TableName] | None = None, *, show_values: bool = False
) -> VerifyReport:
    """Compare `tables`, or all that are followed. `show_values`: report also the values
    of differing rows.

    Raise `SourceMoving` before the first run, and while captured batches wait for their
    merge. A table that cannot be compared is reported, and the others are compared.
    """
    timer_start = perf_counter()
    lake = quiet_lake(ports)
    tables = tables_to_compare(ports, tables, lake.states)
    comparisons: dict[TableName, Comparison] = {}
    sums_by_table: dict[TableName, TableSums] = {}
    for done_count, table in enumerate(tables):
        ports.progress.tell(table_progress("compare", done_count, len(tables), table))
        result = try_to_compare(table, partial(_sum_table, ports, lake, table))
        if isinstance(result, TableSums):
            sums_by_table[table] = result
        else:
            comparisons[table] = result
    comparisons.update(_compare_carried_sums(ports, lake, sums_by_table))
    for table, sums in sums_by_table.items():
        if table not in comparisons:
            compare_rows = partial(_compare_rows, ports, lake.cursor, sums, show_values=show_values)
            comparisons[table] = try_to_compare(table, compare_rows)
    return make_report(ports, lake.cursor, comparisons, perf_counter() - timer_start)


def make_report(
    ports: RunPorts, cursor: Cursor, comparisons: Mapping[TableName, Comparison], seconds: float
) -> VerifyReport:
    """Return the report on all tables, sorted by name."""
    compared = list[TableComparison]()
    unreadable, not_proven = list[UncomparedTable](), list[UncomparedTable]()
    for table in sorted(comparisons):
        comparison = comparisons[table]
        if isinstance(comparison, TableComparison):
            compared.append(comparison)
        elif comparison.is_readable:
            not_proven.append(comparison)
        else:
            unreadable.append(comparison)
    return VerifyReport(
        cursor.batch,
        cursor.position,
        tables=tuple(compared),
        quarantined=stopped_tables(
            ports.ledger.table_states(ports.source.name), ports.source.patterns.matches
        ),
        seconds=seconds,
        not_compared=tuple(unreadable),
        not_proven=tuple(not_proven),
    )


def try_to_compare(table: TableName, compare: Callable[[], T]) -> T | UncomparedTable:
    """Return what `compare` returns. An error that concerns one table becomes an
    `UncomparedTable`, so that the other tables are compared."""
    try:
        with arrow_errors_as_table_error("compare its rows"):
            return compare()
    except MirrorRefused as error:
        return UncomparedTable(table, error.reason, reload_hint(table))
    except TableBusy as error:
        hint = f"`lockstep verify {table.word}` again, in a while"
        return UncomparedTable(table, error.reason, hint, is_readable=True)
    except NotSampled as error:
        return UncomparedTable(table, error.reason, error.hint, is_readable=True)
    except TableError as error:
        return UncomparedTable(table, error.reason, error.hint)
    except NothingMatches as error:
        return UncomparedTable(table, error.message, error.hint)
    except (StructureMoved, SourceMoving) as error:
        return UncomparedTable(table, error.message, error.hint, is_readable=True)


def _sum_table(ports: RunPorts, lake: QuietLake, table: TableName) -> TableSums:
    lake.require_ready(table)
    sides = sides_of(ports, lake, table)
    source = ports.server.row_sum(sides.hasher.structure)
    lake.require_comparable(table, source.marks)
    return TableSums(sides, source, sides.mirror.row_sum(sides.hasher))


def _compare_carried_sums(
    ports: RunPorts, lake: QuietLake, sums_by_table: Mapping[TableName, TableSums]
) -> dict[TableName, Comparison]:
    """Carry the sums through the log. Return the tables that are equal, and those whose
    changes in the log could not be read."""
    cursor = lake.cursor
    comparisons: dict[TableName, Comparison] = {}
    readers: dict[TableName, SumReader] = {}
    for table, sums in sums_by_table.items():
        if lake.is_before(sums.source.marks):
            readers[table] = SumReader(sums.sides.hasher, _carried_sum(sums, lake))
        elif sums.mirror == sums.source.sum:
            comparisons[table] = sums.equal_comparison(ProofKind.EXACT, place_of(cursor))
    if not readers:
        return comparisons
    comparisons.update(read_log(ports, cursor, readers))
    for table, reader in readers.items():
        reader.carried_sum.compare()
        place = reader.carried_sum.match
        if table in comparisons or reader.has_partial_images or place is None:
            continue
        proof = ProofKind.PREFIX if reader.carried_sum.changes else ProofKind.EXACT
        comparisons[table] = sums_by_table[table].equal_comparison(proof, place)
    return comparisons


def _carried_sum(sums: TableSums, lake: QuietLake) -> RunningSum:
    """Return the mirror's sum, ready to be carried forward. MySQL was read at a place
    between the two marks, and not before the mirror's place."""
    marks, place = sums.source.marks, place_of(lake.cursor)
    low, low_set = marks.low, marks.low_set
    if lake.is_same_server and low.file.base == place.at.file.base and low < place.at:
        low, low_set = place.at, place.gtids
    return RunningSum(sums.mirror, sums.source.sum, low, marks.high, low_set)


def _compare_rows(
    ports: RunPorts, cursor: Cursor, sums: TableSums, *, show_values: bool
) -> TableComparison:
    """Compare row by row, because the sums differ or the log lacks columns."""
    return compare_row_by_row(
        ports,
        cursor,
        sums.sides,
        TableComparison(
            sums.sides.table,
            sums.source.sum.row_count,
            sums.mirror.row_count,
            proof=ProofKind.ROWS,
            place=place_of(cursor),
        ),
        show_values=show_values,
    )


def place_of(cursor: Cursor) -> TransactionBoundary:
    return TransactionBoundary(cursor.position.at, str(cursor.position.gtid_set))


def record_proofs(ports: RunPorts, report: VerifyReport) -> None:
    """Record in the ledger what was proven and what differs. No lease is needed,
    because runs do not read this record."""
    ports.ledger.note_compared(ports.source.name, list(_proofs(report)))


def _proofs(report: VerifyReport) -> Iterator[ComparisonResult]:
    for table in report.tables:
        is_whole = table.compared is None
        if not table.equal:
            yield ComparisonResult(table.table, is_whole, None, table.difference_count)
        elif table.place is not None:
            rows = table.source_rows if table.compared is None else table.compared
            proven = EqualityProof(table.proof, rows, table.place.at, table.place.gtids)
            yield ComparisonResult(table.table, is_whole, proven, 0)
