"""Folded changes applied to the rows of a table, all in memory.

Belongs here: what a merge comes to where both are few. Does not: the fold (`latest`), which
tables are few (`resources.lake.sessions`), the commit.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from pipeline.changes.latest import comparable, is_present
from pipeline.changes.layout import changelog_names

_AT = "_sequence"
"""Where a row is; no column of a table is called so where changelogs spell it."""


def apply(rows: pa.Table, changes: pa.Table, key: Sequence[str]) -> pa.Table:
    """The rows after the changes, in no particular order.

    `changes`: one image per key, `_change_type` telling upsert from delete, the columns of
    `rows` as a changelog spells them. A change of a row that is not there adds it, unless it is
    a delete.
    """
    spelled = dict(zip(rows.schema.names, changelog_names(rows.schema.names), strict=True))
    names = [spelled[name] for name in key]
    changed = _keys([changes.column(name) for name in names], names)
    there = _keys([rows.column(name) for name in key], names)
    numbered = there.append_column(_AT, pa.array(range(rows.num_rows), pa.int64()))
    stays = numbered.join(changed, keys=names, join_type="left anti").column(_AT)
    after = changes.filter(is_present(changes.column("_change_type")))
    brought = after.select(list(spelled.values())).rename_columns(rows.schema.names)
    return pa.concat_tables([rows.take(stays), brought.cast(rows.schema)])


def _keys(columns: Sequence[pa.ChunkedArray], names: Sequence[str]) -> pa.Table:
    return pa.table([comparable(column) for column in columns], names=list(names))
