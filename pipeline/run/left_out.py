"""Tables that the source's patterns leave out: no run reads their changes.

The first run whose patterns leave a followed table out stops it, so that the ledger has
the place up to which it was captured. Once a pattern matches it again, the next run
brings it back by itself, as every table that a run stopped: through the log, or from
the source if the log after that place is gone.

Two kinds of table have a hole instead, which only the source can fill: a dropped table
that was created again while it was left out, and a table that was left out by runs of
an earlier Lockstep, which did not stop it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache

from lockstep.pipeline.model.table_state import TableCondition, TableState
from lockstep.pipeline.ports.ledger import Ledger
from lockstep.pipeline.run.context import RunPorts
from lockstep.pipeline.run.stop_errors import reread_error, states_once_stopped
from lockstep.pipeline.schema.history import Knowledge
from lockstep.pipeline.values.errors import Need, StoppedBy, TableError
from lockstep.pipeline.values.table import TableName, TablePatterns, end_of_hole, ranges_before


def _left_out_tables(
    ledger: Ledger,
    source: str,
    patterns: TablePatterns,
    is_at_source: Callable[[TableName], bool] = lambda table: False,
) -> Iterator[tuple[TableName, TableError]]:
    """Yield the tables that the next run stops because patterns leave them out, or once
    did, each with the error that stops it. `is_at_source`: returns whether the server
    has the table now; asked only about dropped tables with a hole."""
    cursor = ledger.cursors(source).captured
    if cursor is None:
        return
    scopes = ledger.capture_scopes(source)
    ranges = ranges_before(scopes, cursor.batch + 1, str(cursor.position.at))
    first_batches: Mapping[TableName, int] | None = None
    for table, state in sorted(ledger.table_states(source).items()):
        reason = patterns.exclusion_reason(table)
        is_dropped = state.condition is TableCondition.DROPPED
        if state.has_stopped or (is_dropped and reason is not None):
            continue
        end = end_of_hole(table, None, ranges)
        if end is not None:  # only then the ledger is asked
            first_batches = first_batches or ledger.complete_since(source)
            end = end_of_hole(table, first_batches.get(table), ranges)
        if is_dropped and (end is None or not is_at_source(table)):
            continue
        version = ledger.schema_at(source, table) if is_dropped else None
        if version is not None and version.knowledge is Knowledge.DROPPED:
            continue  # its CREATE TABLE is still to come in the log, with all its rows
        if end is not None or reason is not None:
            yield table, _left_out_error(reason, end)


def hole_sentence(end: str) -> str:
    """Return the reason why a table lacks changes. `end`: the end of the part of the log
    that was not read for it."""
    return (
        f"the patterns of earlier runs left it out, so that its changes up to {end} were not read"
    )


def _left_out_error(reason: str | None, end: str | None) -> TableError:
    """Return the error that stops the table. `reason`: why the patterns leave it out
    now; None if they match it. `end`: as for `hole_sentence`; None without a hole."""
    if reason is None and end is not None:
        return reread_error(hole_sentence(end))
    return TableError(
        f"the patterns of the source left it out: {reason}",
        hint="once a pattern matches it again, the next run brings it back",
        need=None if end is None else Need.ROWS,
        by=StoppedBy.RUN,
    )


def states_of_next_run(
    ledger: Ledger, source: str, patterns: TablePatterns
) -> Mapping[TableName, TableState]:
    """Return the tables' states as the next run will find them: those that these
    patterns leave out are stopped, whether a run has stopped them yet or not."""
    states, cursor = ledger.table_states(source), ledger.cursors(source).captured
    if cursor is None:
        return states
    return states_once_stopped(states, cursor, dict(_left_out_tables(ledger, source, patterns)))


def left_out_now(ports: RunPorts) -> dict[TableName, TableError]:
    """Return the tables that the next run stops because patterns leave them out, or
    once did."""
    source, source_tables = ports.source, cache(ports.server.engines)
    return dict(
        _left_out_tables(
            ports.ledger, source.name, source.patterns, lambda table: table in source_tables()
        )
    )
