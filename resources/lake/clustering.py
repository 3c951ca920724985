"""By which columns a mirror's files are clustered, asked of its log and changed there.

Delta has it as metadata of a domain (protocol, "Clustered Table"), by the names that files know
columns by, so that it outlives a rename. A query that overwrites the rows ends it, and a column
that files are clustered by cannot be dropped. DataFrameWriter's `clusterBy` does nothing for a
table that is named by its path.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from typing import Any, Final

from deltalake import DeltaTable

from pipeline.changes.clustering import clustered_by
from resources.lake.columns import PHYSICAL_NAME, column_names, schema_of
from resources.lake.delta_log import FAR, actions, checksum_of, commit_file
from resources.lake.paths import LakePath
from resources.lake.statement import quoted
from resources.lake.storage import delta_table

FEATURE: Final = "clustering"
_DOMAIN: Final = "delta.clustering"
NOT_CLUSTERED: Final = {
    "domain": _DOMAIN,
    "configuration": json.dumps({"clusteringColumns": [], "domainName": _DOMAIN}),
    "removed": False,
}
"""The domain's metadata of a table that is clustered no longer."""


def may_be_clustered(table: DeltaTable) -> bool:
    """Return whether a table was ever clustered."""
    return FEATURE in (table.protocol().writer_features or [])


def clustering_of(path: LakePath, table: DeltaTable) -> tuple[str, ...] | None:
    """Return the columns that a table is clustered by, as the source calls them. None if nothing
    near by in the log tells."""
    if not may_be_clustered(table):
        return ()
    columns = _columns_near(path, table.version())
    if columns is None:
        return None
    physical = {
        field.metadata.get(PHYSICAL_NAME, field.name): field.name for field in table.schema().fields
    }
    named = {own: name for name, own in column_names(table).items()}
    return tuple(named[physical[column]] for column in columns)


def _columns_near(path: LakePath, version: int) -> list[str] | None:
    """By the newest checksum file that lists domains, or the newest commit that changed it."""
    for at in range(version, max(version - FAR, -1), -1):
        domains = checksum_of(path, at).get("domainMetadata")
        if domains is not None:
            return _columns(domains)
        try:
            commit = commit_file(path, at).read_text(encoding="utf-8")
        except FileNotFoundError:
            return None
        changed = [domain for _, domain in actions(commit, "domainMetadata")]
        if any(domain["domain"] == _DOMAIN for domain in changed):
            return _columns(changed)
    return None


def _columns(domains: Sequence[Any]) -> list[str]:
    for domain in domains:
        if domain["domain"] == _DOMAIN and not domain.get("removed"):
            return [
                ".".join(path) for path in json.loads(domain["configuration"])["clusteringColumns"]
            ]
    return []


def statement_to_cluster(path: LakePath, wanted: Sequence[str]) -> str | None:
    """Return what is to be executed so that a table is clustered by these columns; None if it is,
    or if it cannot be, where columns stand in another order than at the source."""
    table = delta_table(path)
    names = clustered_by(wanted, schema_of(table))
    return (
        None if names is None or names == clustering_of(path, table) else _alter(path, table, names)
    )


def statement_to_let_go(path: LakePath, columns: Collection[str]) -> str | None:
    """Return what is to be executed before these columns are dropped; None if the table is
    clustered by none of them."""
    table = delta_table(path)
    names = clustering_of(path, table)
    if names is None:
        return _alter(path, table, ())
    left = tuple(name for name in names if name not in columns)
    return None if left == names else _alter(path, table, left)


def _alter(path: LakePath, table: DeltaTable, names: Sequence[str]) -> str:
    own = column_names(table)
    columns = f"({', '.join(quoted(own[name]) for name in names)})" if names else "none"
    return f"alter table delta.{quoted(str(path))} cluster by {columns}"
