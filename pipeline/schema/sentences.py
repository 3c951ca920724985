"""What a statement did, said to a person: one sentence for each effect.

Belongs here: wording, for the ledger, `lockstep plan` and the source's `_ddl` table.
"""

from __future__ import annotations

from typing import assert_never

from pipeline.schema.compare import differences
from pipeline.schema.evolving.effects import (
    Changed,
    Created,
    DatabaseEffect,
    Dirty,
    Dropped,
    Effect,
    NotFollowed,
    Renamed,
    Truncated,
    Unchanged,
    UnknownTable,
)

_SHOWN = 6
"""So many differences of a table are told; more are counted."""


def sentence(effect: Effect) -> str:
    """`shop.orders: column note: missing, there`, and the like."""
    match effect:
        case Created(table, after):
            return f"{table}: created with {len(after.columns)} columns"
        case Dropped(table):
            return f"{table}: dropped"
        case Renamed(table, to):
            return f"{table}: is now called {to}"
        case Truncated(table):
            return f"{table}: emptied"
        case Changed(table, before, after):
            found = differences(before, after)
            more = f"; and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
            return f"{table}: {'; '.join(found[:_SHOWN])}{more}"
        case Unchanged(table, why):
            return f"{table}: nothing, {why}"
        case Dirty(table, reason):
            return f"{table}: rows may have changed ({reason})"
        case NotFollowed(table, reason):
            return f"{table}: not followed, {reason}"
        case UnknownTable(table, statement):
            return f"{table}: {statement} on a table that was not known"
        case DatabaseEffect(name, kind):
            return f"database {name}: {kind}"
    assert_never(effect)
