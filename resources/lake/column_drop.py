"""Columns dropped without a query, by a commit of ours.

Belongs here: which tables that is for, and the commit. Does not: that a step is made once
(`altering`).

Delta's DROP COLUMN changes the schema, and the list of columns that have statistics if there is one
(delta-io/delta, `AlterTableDropColumnsDeltaCommand`). But first it asks whether the table is
clustered by the column, and puts the state of the whole table together to know: more than a second
of processor time for a table of two rows. Where protocol, properties and columns of a table leave
no room for anything that could depend on a column, its new schema is committed at once, by Delta's
own transaction.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from deltalake import DeltaTable

from pipeline.changes.evolution import MAPPING
from resources.lake.direct import takes_files
from resources.lake.paths import LakePath
from resources.lake.storage import delta_table, lake_errors
from resources.lake.transaction import transaction

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_STATISTICS: Final = "delta.dataSkippingStatsColumns"
"""Names columns."""


def drop_columns(session: SparkSession, table: LakePath, names: Sequence[str]) -> bool:
    """Commit the table without the columns. False, and nothing is done, where that is for Delta to
    judge."""
    with lake_errors(table):
        plain = _is_plain(delta_table(table), names)
    if not plain:
        return False
    # Delta lists no files where the schema is another: there is nothing to spare.
    with transaction(session, table, told=False) as held:
        before = held.metadata
        after = {**before, "schemaString": _without(before["schemaString"], names)}
        held.begun.updateMetadata(held.action({"metaData": after}), False)
        dropped = held.seq([held.seq([name]) for name in names])
        held.commit([], held.operation("DropColumns", dropped))
    return True


def _is_plain(table: DeltaTable, names: Sequence[str]) -> bool:
    """Whether nothing can depend on the columns, and they are some of the table's, not all."""
    properties = table.metadata().configuration
    there = {field.name for field in table.schema().fields}
    mode, by_name = MAPPING
    return (
        takes_files(table)
        and properties.get(mode) == by_name
        and _STATISTICS not in properties
        and {*names} < there
    )


def _without(schema: str, names: Sequence[str]) -> str:
    told: dict[str, Any] = json.loads(schema)
    kept = [field for field in told["fields"] if field["name"] not in names]
    return json.dumps({**told, "fields": kept})
