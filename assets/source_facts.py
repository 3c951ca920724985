"""What the checks of a source judge, gathered once for all of them.

Belongs here: the values and the questions. Does not: what they mean (`checks.rules`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from pipeline.batch import BatchState
from pipeline.consumers import Consumer
from pipeline.gaps import Gap
from pipeline.ports.consumers import Consumers
from pipeline.ports.ledger import Ledger
from pipeline.proof.proven import TableProof
from pipeline.runs.capturing.table_extents import partial_tables
from pipeline.runs.context import Workplace
from pipeline.runs.cures import quarantines_of
from pipeline.runs.inspecting.status import distance
from pipeline.standing.accounting import Account, accounts
from pipeline.standing.facts import Headroom, Lag
from pipeline.table import TableName
from pipeline.table_state import Extent, Quarantine, TableCondition

_BATCHES = 20
"""Batches that are added up: the newest ones."""


@dataclass(frozen=True, slots=True)
class ReadingConsumer:
    """A consumer, and since when it has acknowledged nothing of what there is; None where it is
    done with all of it."""

    consumer: Consumer
    behind_since: datetime | None


@dataclass(frozen=True, slots=True)
class CheckedSource:
    """`pause`: the longest between two scheduled runs, if any. `keep`: how long versions of
    mirrors stay. `accounts`: of the newest acknowledged batches, oldest first."""

    source: str
    now: datetime
    pause: timedelta | None
    keep: timedelta
    active: frozenset[TableName]
    quarantined: Sequence[Quarantine]
    paused: frozenset[TableName]
    gaps: Sequence[Gap]
    partial: Sequence[Extent]
    proofs: Sequence[TableProof]
    lag: Lag
    headroom: Headroom | None
    accounts: Sequence[Account]
    consumers: Sequence[ReadingConsumer]


def gather(
    work: Workplace, consumers: Consumers, pause: timedelta | None, keep: timedelta
) -> CheckedSource:
    source, ledger, now = work.source.name, work.ledger, work.clock()
    states = ledger.table_states(source)
    active = frozenset(t for t, state in states.items() if state.condition is TableCondition.ACTIVE)
    lag, room = distance(work, now)
    return CheckedSource(
        source=source,
        now=now,
        pause=pause,
        keep=keep,
        active=active,
        quarantined=quarantines_of(states),
        paused=frozenset(
            t for t, state in states.items() if state.condition is TableCondition.PAUSED
        ),
        gaps=ledger.gaps(source),
        partial=partial_tables(ledger, source, work.source.patterns),
        proofs=ledger.proofs(source),
        lag=lag,
        headroom=room,
        accounts=_accounts(ledger, source, active),
        consumers=[
            ReadingConsumer(consumer, _behind_since(ledger, consumer))
            for consumer in consumers.consumers(source)
        ],
    )


def _accounts(ledger: Ledger, source: str, active: frozenset[TableName]) -> tuple[Account, ...]:
    newest = ledger.batches(source, limit=2 * _BATCHES)
    done = [batch for batch in newest if batch.state is BatchState.ACKNOWLEDGED][:_BATCHES]
    if not done:
        return ()
    span = (source, done[-1].id, done[0].id)
    return accounts(
        reversed(done),
        ledger.rows_within(*span),
        ledger.table_events(*span),
        ledger.writes_within(*span),
        active,
    )


def _behind_since(ledger: Ledger, consumer: Consumer) -> datetime | None:
    """When the newest batch was acknowledged that it is done with; when it was made, if none."""
    if not consumer.behind:
        return None
    if consumer.cursor is None:
        return consumer.made_at
    [read] = ledger.live_batches(consumer.source, consumer.cursor, consumer.cursor)
    return read.acknowledged_at
