"""`lockstep read TABLE`: a snippet, ready to paste, for each common reader."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lockstep import exits, report
from lockstep.commands.verify import table_name
from lockstep.desk import Desk, Outcome
from pipeline.errors import NothingMatches
from pipeline.table import TableName

if TYPE_CHECKING:
    from pipeline.ports.ledger import Ledger


def perform(arguments: argparse.Namespace, desk: Desk) -> Outcome:
    """The mirror's path from the ledger, its version at the acknowledged position, and how
    to open it. Asks neither MySQL nor the lake."""
    from resources.site import Site

    table = table_name(arguments.table)
    with Site(desk.settings, on_warning=desk.note) as site:
        for source in desk.sources(arguments.source):
            told = describe(site.ledger(), source.name, table, desk.settings.lake_path())
            if told is not None:
                for reader, snippet in told["snippets"].items():
                    desk.say(f"# {reader}\n{snippet}\n")
                return Outcome(exits.DONE, told)
    raise NothingMatches(
        f"No run has captured a table {table} yet.", hint="lockstep tables, then lockstep run"
    )


def describe(ledger: Ledger, source: str, table: TableName, lake: Path) -> dict[str, Any] | None:
    """Where the table is and how to read it, as JSON; None if the source has no such."""
    state = ledger.table_states(source).get(table)
    if state is None:
        return None
    cursor = ledger.acknowledged_cursor(source)
    versions = ledger.version_set(source, cursor.batch) if cursor else []
    path = str(lake / state.mirror)
    return {
        "source": source,
        "table": str(table),
        "path": path,
        "changelog": str(lake / state.changelog),
        "delta_version": next((e.delta_version for e in versions if e.table == table), None),
        "position": report.position_json(cursor.position if cursor else None),
        "state": state.condition.value,
        "snippets": snippets(path),
    }


def snippets(path: str) -> dict[str, str]:
    """Code per reader; the path is quoted as the reader's language wants it."""
    quoted = "'" + path.replace("'", "''") + "'"
    return {
        "Spark": f'spark.read.format("delta").load({path!r})',
        "delta-rs": (
            "from deltalake import DeltaTable, QueryBuilder\n"
            f'QueryBuilder().register("t", DeltaTable({path!r}))'
            '.execute("select * from t").read_all()'
        ),
        "DuckDB": f"install delta; load delta;\nselect * from delta_scan({quoted});",
    }
