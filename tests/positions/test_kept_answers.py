"""A ledger that has the source's lock answers as one that is asked for the first time."""

from __future__ import annotations

from inspect import signature
from random import Random
from typing import Any, Final

from lockstep.pipeline.mirror.layout import application_id
from lockstep.pipeline.ports.ledger import Ledger
from lockstep.pipeline.values.decisions import Continuity
from tests.fix_ledger import LedgerOfTest
from tests.fix_mysql import MySqlStand
from tests.positions.paused import open_shop
from tests.positions.test_wants_at_random import LATE, TABLES, Chance

ACTIONS = 15
KEPT: Final = (
    "cursors",
    "batches",
    "unfinished_batches",
    "open_prepared",
    "capture_scopes",
    "open_override",
    "gaps",
    "table_states",
    "partial_tables",
    "open_orders",
    "open_loads",
    "pending_batches",
    "open_intents",
    "revisions",
    "examined_versions",
)
"""Questions whose answers are kept until something is written; others, with values of their own,
besides."""

WRITES: Final = frozenset(
    name
    for name in dir(Ledger)
    if not name.startswith("_") and "lease" in signature(getattr(Ledger, name)).parameters
)


def answers(ledger: LedgerOfTest, source: str) -> dict[str, Any]:
    states = ledger.table_states(source)
    applications = [application_id(source, state, "mirror") for state in states.values()]
    return {
        **{name: getattr(ledger, name)(source) for name in KEPT},
        "newest_writes": ledger.newest_writes(source, applications),
        "overlaps": ledger.live_batches(source, continuity=Continuity.OVERLAP),
        "schema_versions": ledger.schema_versions(source, *states),
        "contents": [
            ledger.contents(source, batch.id, batch.id) for batch in ledger.batches(source)
        ],
    }


class Compared(LedgerOfTest):
    """Whatever it is asked to write, it knows all answers before, and gives the ones of a ledger
    without a lock behind it."""

    def __init__(self, other: LedgerOfTest) -> None:
        super().__init__(other.database)
        self.other = other
        self.written = set[str]()

    def __getattribute__(self, name: str) -> Any:
        member = super().__getattribute__(name)
        # Tables are merged side by side: one asks whether the source is held while another writes.
        if name not in WRITES or name == "require_held":
            return member

        def write(lease: Any, *args: Any, **values: Any) -> Any:
            answers(self, lease.source)
            result = member(lease, *args, **values)
            assert answers(self, lease.source) == answers(self.other, lease.source), name
            self.written.add(name)
            return result

        return write


def test_what_is_kept_is_what_would_be_answered(mysql: MySqlStand, database: str) -> None:
    """Whatever runs, people and kills do in between."""
    shop = open_shop(mysql, database, TABLES)
    shop.follower.tables = [f"{database}.{table}" for table in TABLES]
    shop.make([LATE])
    ledger = shop.follower.ledger = Compared(shop.follower.ledger)
    chance = Chance(shop, Random(3))
    for _ in range(ACTIONS):
        chance.act()
    for xid in list(chance.prepared):
        chance.finish(xid, "commit")
    shop.run()
    assert ledger.written >= {
        "begin_batch",
        "record_capture",
        "intend",
        "settle",
        "mark_merged",
    }
