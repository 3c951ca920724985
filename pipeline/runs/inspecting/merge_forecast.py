"""How each table's changes would be merged, as far as a plan can tell.

Belongs here: the facts for it out of a tally. Does not: the decision (`changes.strategy`). How
many bytes the images have, and whether the mirror is small, is known once they are captured.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from pipeline.changes.strategy import Facts, choose, only_inserts
from pipeline.decisions import Continuity
from pipeline.errors import TableError
from pipeline.policies import Deletes
from pipeline.runs.begin import RunStart
from pipeline.runs.context import Workplace
from pipeline.runs.inspecting.log_tally import TableTally
from pipeline.schema.row_keys import merge_key
from pipeline.schema.tracker import SchemaTracker
from pipeline.table import TableName


def foreseen_merges(
    work: Workplace,
    run_start: RunStart,
    structures: SchemaTracker,
    tables: Mapping[TableName, TableTally],
    replaced: Collection[TableName],
) -> dict[TableName, str]:
    """A sentence for each table with changes. `replaced`: those that are emptied, made or read
    anew meanwhile."""
    soft = work.source.lake.deletes == Deletes.SOFT
    continues = run_start.decision.continuity not in (Continuity.GAP, Continuity.OVERLAP)
    all_new = continues and not work.ledger.gaps(work.source.name)
    found = {}
    for table, tally in tables.items():
        schema = structures.last_known(table)
        counts = tally.counts
        facts = Facts(
            keyed=schema is not None and bool(merge_key(schema)),
            soft=soft,
            replaces=table in replaced,
            images=counts.total + counts.updated,
            inserts_only=only_inserts([counts]),
            all_new=all_new,
            marked=soft,
        )
        try:
            strategy = choose(facts)
        except TableError as error:
            found[table] = f"cannot be merged: {error.reason}"
        else:
            found[table] = f"{strategy.way}: {strategy.reason}"
    return found
