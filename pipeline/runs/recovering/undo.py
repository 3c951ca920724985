"""Which batch a run is undone to: where the lake stood before it.

Belongs here: finding that in the ledger. Does not: going back there (`recover`).
"""

from __future__ import annotations

from dataclasses import dataclass

from pipeline.errors import SpanRefused
from pipeline.ports.ledger import Ledger
from pipeline.runs.known_batches import RUNS, batch_of_run, no_such_run


@dataclass(frozen=True, slots=True)
class UndoneRun:
    """`run`: its whole id. It captured batches from `first` on, and came behind batch `behind`;
    `later`: batches that other runs captured after it, which are undone as well."""

    run: str
    first: int
    behind: int
    later: int


def undone_run(ledger: Ledger, source: str, run: str) -> UndoneRun:
    """`run` may be shortened. `SpanRefused` where none is called so, or nothing was before it."""
    batch = batch_of_run(ledger, source, run)
    newest = ledger.captured_cursor(source)
    assert newest is not None, "a run captured a batch"
    pruned = ledger.pruned_through(source)
    chain = ledger.live_batches(source, pruned, newest.batch)
    name = batch.dagster_run or run
    own = [one.id for one in chain if one.dagster_run == batch.dagster_run]
    before = [one.id for one in chain if one.id < own[0]]
    if own[0] <= pruned:
        raise SpanRefused(no_such_run(ledger, source, run), hint=RUNS)
    if not before:
        raise SpanRefused(
            f"run {name} captured the first batch of {source}: there is nothing to go back to",
            hint="to start over, move the ledger away, then `lockstep adopt --source "
            f"{source} --reason …`",
        )
    later = sum(one.id > own[-1] for one in chain)
    return UndoneRun(name, own[0], before[-1], later)
