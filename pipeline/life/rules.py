"""The life of a captured table, as prose and as the table that is the code.

A table is *active* from the first batch that has something of it. Active tables are captured,
published and merged. One that has rows which are older than what was read of the log, or that is
to be read again, is *loading* first: its rows are read from the source, in as many runs as it
takes, and what the log has of it meanwhile is captured and published, and merged together with
them. It stops being active or loading in one of three ways:

- the source drops it: it is *dropped*. What was captured of it is still merged. A table that is
  made under its name makes it active again;
- something about it cannot be captured or written as it is: Lockstep puts it in *quarantine*,
  with a reason, a cure in words and as a value (`Remedy`), and the place in the log where it
  stopped. All other tables go on;
- a person *pauses* it, or has it reloaded, for which it stops.

A table comes back when a capture carries out an order: a person resumes or releases it, or the
next run releases it by itself where the remedy says so. How, and what is read for it, is decided
by `runs.rejoin`. Until then nothing is captured of it, and nothing that was captured is
merged.

Its mirror has a life of its own below these states: it shows a version of the table's structure
after each write, moves with a rename, is replaced when it is lost, is removed with a dropped
table, and begins a new generation when the lake and the ledger disagree.

The ledger keeps every event. A table's state is what its events make of it, one after the other;
when a batch is abandoned, what it said never happened, and the others are gone through again.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from pipeline.life import events
from pipeline.table_state import GOING, STOPPED, TableCondition

NEW: Final = None
"""A table that no batch had anything of yet."""

_ANY: Final = tuple(TableCondition)

Moment = tuple[TableCondition | None, type[events.Event]]


def _from(
    lives: tuple[TableCondition, ...], event: type[events.Event], to: TableCondition
) -> dict[Moment, TableCondition]:
    return {(life, event): to for life in lives}


def _kept(
    lives: tuple[TableCondition, ...], *kinds: type[events.Event]
) -> dict[Moment, TableCondition]:
    return {(life, event): life for life in lives for event in kinds}


TRANSITIONS: Final[Mapping[Moment, TableCondition]] = MappingProxyType(
    {
        (NEW, events.Followed): TableCondition.ACTIVE,
        (NEW, events.LoadBegun): TableCondition.LOADING,
        (NEW, events.Dropped): TableCondition.DROPPED,
    }
    | _from((TableCondition.ACTIVE, TableCondition.DROPPED), events.Followed, TableCondition.ACTIVE)
    | _kept((TableCondition.LOADING,), events.Followed)
    | _from(_ANY, events.LoadBegun, TableCondition.LOADING)
    | _from(_ANY, events.Loaded, TableCondition.ACTIVE)
    | _from(GOING, events.Dropped, TableCondition.DROPPED)
    | _from(GOING, events.Quarantined, TableCondition.QUARANTINED)
    | _from(_ANY, events.Paused, TableCondition.PAUSED)
    | _from((TableCondition.ACTIVE, TableCondition.LOADING), events.Reloaded, TableCondition.PAUSED)
    | _from(STOPPED, events.Rejoined, TableCondition.ACTIVE)
    # What follows leaves a table in the state it is in.
    | _kept(STOPPED, events.Followed, events.Dropped, events.Quarantined, events.Reloaded)
    | _kept((TableCondition.PAUSED,), events.Resumed)
    | _kept((TableCondition.QUARANTINED,), events.Released)
    | _kept(_ANY, events.MirrorWritten, events.MirrorReplaced, events.BatchAbandoned)
    | _kept(GOING, events.MirrorHandedOver)
    | _kept((TableCondition.DROPPED,), events.MirrorRemoved)
    | _kept(STOPPED, events.LakeRestarted)
)
"""The next life; what has no row is refused."""

REFUSALS: Final[Mapping[type[events.Event], str]] = MappingProxyType(
    {
        events.Resumed: "table_orders_resume_paused",
        events.Released: "table_orders_release_quarantined",
        events.Reloaded: "table_orders_reload_there",
        events.Rejoined: "table_orders_known",
        events.MirrorRemoved: "table_states_dropped",
        events.LakeRestarted: "table_states_anew",
    }
)
"""The ledger's rule that an event breaks which a table's state does not allow."""

ALWAYS_KEPT: Final = (events.Quarantined, events.Paused, events.Reloaded, events.LakeRestarted)
"""What is written down outside a capture even where it changes nothing: it does change something
once a batch before it is abandoned."""

UNKNOWN_TABLE: Final = "table_states_known"
UNEXPECTED: Final = "table_states_life"
