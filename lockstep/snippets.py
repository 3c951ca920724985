"""Code that opens a table of the lake, ready to paste: one snippet for each reader.

Paths are quoted as each language requires, because they contain names from the source.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

_SESSION = "# with --packages io.delta:delta-spark_4.2_2.13:4.4.0, for Spark 4.2\n"

_BY_AGE = "spark.databricks.delta.vacuum.enforceTimeTravelWithinDeletedFileRetentionDuration"
"""Delta's refusal of a version whose commit is old, also where it was the newest until now."""


_REFUSED: Final[Mapping[str, Mapping[str, str]]] = {
    "delta-rs": {"typeWidening": "types of its columns were widened"},
    "Polars": {
        "columnMapping": "columns of it were renamed or dropped",
        "typeWidening": "types of its columns were widened",
    },
}
"""By reader, the features of a table that it refuses, and what made the table have them
(deltalake 1.6, Polars 2.1). Spark and DuckDB's delta extension read all that mirrors have."""


def refusals(features: Collection[str]) -> dict[str, str]:
    """Which readers cannot read a table with these features of the protocol, and why."""
    found = {}
    for reader, refused in _REFUSED.items():
        # A feature's name may go on: typeWidening-preview.
        why = [
            told
            for name, told in refused.items()
            if any(feature.partition("-")[0] == name for feature in features)
        ]
        if why:
            found[reader] = f"it does not read this table: {' and '.join(why)}"
    return found


def table_snippets(
    path: str, features: Collection[str] = (), version: int | None = None
) -> dict[str, str]:
    """Return the code that opens a Delta table, by reader, for each reader that supports its
    features; with `version`, the code that opens it at that version."""
    at = "" if version is None else f", version={version}"
    travel, told = "", ""
    if version is not None:
        travel = f'spark.conf.set("{_BY_AGE}", "false")\n'
        told = f'.option("versionAsOf", {version})'
    duck = "" if version is None else f", version => {version}"
    quoted = path.replace("'", "''")
    snippets = {
        "Spark": f'{_SESSION}{travel}spark.read.format("delta"){told}.load({path!r})',
        "delta-rs": (
            "from deltalake import DeltaTable, QueryBuilder\n"
            f'QueryBuilder().register("t", DeltaTable({path!r}{at}))'
            '.execute("select * from t").read_all()'
        ),
        "Polars": f"import polars\npolars.scan_delta({path!r}{at}).collect()",
        "DuckDB": f"install delta; load delta;\nselect * from delta_scan('{quoted}'{duck});",
    }
    refused = refusals(features)
    return {reader: snippet for reader, snippet in snippets.items() if reader not in refused}


def version_set_snippet(source: str, table: str, at: str | None) -> str:
    """Return the code that reads the table at a place in the log with this package."""
    place = "" if at is None else f", at={at!r}"
    return f"import lockstep\nlockstep.read_at({source!r}{place})[{table!r}].arrow()"


def changelog_snippets(source: str, table: str) -> dict[str, str]:
    """Return the code that reads all generations of a changelog as one relation with this
    package: a pyarrow.Table in the order of the changes, or a Spark DataFrame."""
    changelog = f"import lockstep\nlockstep.read_changelog({source!r}, {table!r})"
    return {"Python": f"{changelog}.arrow()", "Spark": f"{_SESSION}{changelog}.spark(spark)"}
