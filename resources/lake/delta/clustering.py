"""The columns by which the files of a mirror (the Delta table with a table's present
rows) are clustered: how they are read from its log, and the statements that change
them.

Delta stores the columns as domain metadata (protocol, "Clustered Table"), by their
physical names, which a rename does not change. A query that overwrites all rows ends
the clustering, and a column by which files are clustered cannot be dropped. Statements
are used because DataFrameWriter's `clusterBy` has no effect on a table that is named by
its path.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from typing import Any, Final

from deltalake import DeltaTable

from lockstep.pipeline.mirror.clustering import clustering_columns
from lockstep.resources.lake.delta.checksums import recent_commits
from lockstep.resources.lake.delta.columns import PHYSICAL_NAME, schema_of, table_spelling
from lockstep.resources.lake.delta.delta_log import actions
from lockstep.resources.lake.delta.statement import quoted
from lockstep.resources.lake.store.paths import LakePath
from lockstep.resources.lake.store.storage import delta_table

_FEATURE: Final = "clustering"
_CLUSTERING_DOMAIN: Final = "delta.clustering"
NOT_CLUSTERED: Final = {
    "domain": _CLUSTERING_DOMAIN,
    "configuration": json.dumps({"clusteringColumns": [], "domainName": _CLUSTERING_DOMAIN}),
    "removed": False,
}
"""The domain metadata of a table that is no longer clustered."""


def was_ever_clustered(table: DeltaTable) -> bool:
    return _FEATURE in (table.protocol().writer_features or [])


def clustering_of(path: LakePath, table: DeltaTable) -> tuple[str, ...] | None:
    """Return the columns by which a table is clustered, in the source's names; None if
    no recent commit has them."""
    if not was_ever_clustered(table):
        return ()
    columns = _recent_columns(path, table.version())
    if columns is None:
        return None
    names_by_physical = {
        field.metadata.get(PHYSICAL_NAME, field.name): field.name for field in table.schema().fields
    }
    source_names = {spelled: name for name, spelled in table_spelling(table).items()}
    return tuple(source_names[names_by_physical[column]] for column in columns)


def _recent_columns(path: LakePath, version: int) -> list[str] | None:
    """Return the physical names of the columns, from the newest checksum file that
    lists domains or the newest commit that changed the clustering; None if no recent
    version has either."""
    for commit_text, checksum in recent_commits(path, version):
        domains = checksum.get("domainMetadata")
        if domains is not None:
            return _columns_in(domains)
        changed_domains = [domain for _, domain in actions(commit_text, "domainMetadata")]
        if any(domain["domain"] == _CLUSTERING_DOMAIN for domain in changed_domains):
            return _columns_in(changed_domains)
    return None


def _columns_in(domains: Sequence[Any]) -> list[str]:
    for domain in domains:
        if domain["domain"] == _CLUSTERING_DOMAIN and not domain.get("removed"):
            return list(map(".".join, json.loads(domain["configuration"])["clusteringColumns"]))
    return []


def statement_to_cluster(path: LakePath, columns: Sequence[str]) -> str | None:
    """Return the statement that clusters a table by these columns; None if it is
    clustered by them already, or if Delta cannot cluster by them: Delta needs their
    statistics, which it has only of the table's first columns, and the table's order of
    columns can differ from the source's."""
    table = delta_table(path)
    names = clustering_columns(columns, schema_of(table), _indexed_columns(table))
    if names is None or names == clustering_of(path, table):
        return None
    return _cluster_statement(path, table, names)


def _indexed_columns(table: DeltaTable) -> Collection[str] | None:
    """Return the columns, in the source's names, of which the table's log has minimum
    and maximum values by properties that anybody may set; None if none is set."""
    properties = table.metadata().configuration
    spelled = table_spelling(table)
    listed = properties.get("delta.dataSkippingStatsColumns")
    if listed is not None:
        indexed = {name.strip().strip("`") for name in listed.split(",")}
        return [name for name, column in spelled.items() if column in indexed]
    count = int(properties.get("delta.dataSkippingNumIndexedCols", -1))
    return None if count < 0 else schema_of(table).names[:count]


def statement_to_uncluster(path: LakePath, columns: Collection[str]) -> str | None:
    """Return the statement that must run before these columns are dropped; None if the
    table is clustered by none of them. If recent commits do not show the clustering,
    the statement ends it."""
    table = delta_table(path)
    names = clustering_of(path, table)
    if names is None:
        return _cluster_statement(path, table, ())
    remaining = tuple(name for name in names if name not in columns)
    return None if remaining == names else _cluster_statement(path, table, remaining)


def _cluster_statement(path: LakePath, table: DeltaTable, names: Sequence[str]) -> str:
    spelled = table_spelling(table)
    column_list = f"({', '.join(quoted(spelled[name]) for name in names)})" if names else "none"
    return f"alter table delta.{quoted(str(path))} cluster by {column_list}"
