"""A follower with policies of its own, in memory or on disk, and what it has afterwards.

Belongs here: its lake and its history as tests read them. Does not: comparing two of them
(`test_then_and_now`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from fnmatch import fnmatch
from typing import Any, Final
from urllib.parse import unquote

import pyarrow as pa
from deltalake import DeltaTable

from lockstep.pipeline.model.table_state import StoppedTable, TableEventKind
from lockstep.pipeline.ports.ledger import batch_content
from lockstep.pipeline.run.context import RunPorts
from lockstep.pipeline.run.dump.table_changes import DROPPED_BEFORE_READ
from lockstep.pipeline.run.proof.verify_rows import verify
from lockstep.pipeline.run.proof.verify_schema import verify_schema
from lockstep.pipeline.run.stop_errors import stopped_tables
from lockstep.pipeline.values.policies import ForeignKeys, LakePolicies, OnRewrite
from lockstep.pipeline.values.table import TableName, TableStructure
from tests.lake.conftest import Lake
from tests.positions.follower import SOURCE, Follower

CHANGES = f"{SOURCE}/_changes/"
ALL = 1_000_000
_OF_THE_RUN = ("_batch", "_sequence")
"""Columns of a changelog that depend on how the log was cut into runs."""

_OF_A_CAPTURE = (*_OF_THE_RUN, "rows", "first_sequence", "last_sequence")

_VALUE: Final = re.compile(r"(default|generated): .*?(?=; column |; key |; and |$)", re.DOTALL)

Rows = dict[tuple[Any, ...], dict[str, Any]]


@dataclass
class Reader(Follower):
    """A follower with policies of its own, and a lake on disk if it is given one."""

    lake_policies: LakePolicies = field(
        default_factory=lambda: LakePolicies(
            on_rewrite=OnRewrite.RESNAPSHOT, foreign_keys=ForeignKeys.RESNAPSHOT
        )
    )
    disk: Lake | None = None

    def ports(self, until: str | None = None) -> RunPorts:
        made, lake = super().ports(until), self.disk
        if lake is None:
            return made
        return replace(made, segments=lake.segments, changelog=lake.changelog, mirrors=lake.mirrors)

    def run_whole(self) -> None:
        """A run, and another if a merge left tables for the next one to read."""
        self.run()
        if any(table.starts_by_itself for table in self._stopped()):
            self.run()

    def changelogs(self) -> dict[str, pa.Table]:
        """Each changelog's rows in their order, by its folder's name."""
        found = self.shown(CHANGES, "*/*")
        return {name: rows.sort_by("_sequence") for name, rows in found.items()}

    def shown(self, top: str, below: str) -> dict[str, pa.Table]:
        """Tables of the lake, by their path below `top`."""
        if self.disk is None or self.disk.folder is None:
            paths = (path for path in self.lake.tables if path.startswith(top))
            known = {path.removeprefix(top): self.lake.tables[path][-1].rows for path in paths}
            return {path: rows for path, rows in known.items() if fnmatch(path, below)}
        folder = self.disk.folder / top
        logs = folder.glob(f"{below}/_delta_log")
        tables = {str(log.parent.relative_to(folder)): DeltaTable(log.parent) for log in logs}
        return {name: table.to_pyarrow_table() for name, table in tables.items()}

    def of_the_source(self) -> dict[str, list[dict[str, Any]]]:
        """Rows of `_ddl` and `_transactions`, without what became of a table in a run."""
        found = {}
        for name, table in self.shown(f"{SOURCE}/", "_[dt]*").items():
            own = [column for column in table.column_names if column not in _OF_A_CAPTURE]
            rows = table.sort_by([("_file", "ascending"), ("_offset", "ascending")]).select(own)
            found[name] = [_named_only(row) for row in rows.to_pylist()]
        assert found.keys() == {"_ddl", "_transactions"}
        return found

    def rows(self, folder: str, changelog: pa.Table | None) -> Rows:
        """By place and kind, in the changelog's order; without what stands for no row. The
        version is told by its structure: a table that was read anew has one more."""
        if changelog is None:
            return {}
        database, _, name = folder.partition("@")[0].partition("/")
        table = TableName(database, _name(name))
        found: Rows = {}
        for row in changelog.drop_columns(list(_OF_THE_RUN)).to_pylist():
            if row["_change_type"] != "resnapshot":
                place = row["_file"], row["_offset"], row["_row"], row["_change_type"]
                assert place not in found, f"twice in {folder}: {place}"
                number = row["_schema_version"]
                row["_schema_version"] = self._structure(table, number)
                found[place] = row
        return found

    def _structure(self, table: TableName, number: int) -> TableStructure:
        return self.ledger.schema_version(SOURCE, table, number).structure

    def _stopped(self) -> tuple[StoppedTable, ...]:
        ports = self.ports()
        states = ports.ledger.table_states(ports.source.name)
        return stopped_tables(states, ports.source.patterns.matches)

    def quarantined(self) -> dict[TableName, str]:
        return {table.table: table.reason for table in self._stopped()}

    def read_anew(self) -> set[TableName]:
        """Tables that some batch read from the source, or would have: one that was dropped before
        the read has none of the rows in between, either."""
        return {
            event.table
            for batch in self.ledger.batches(SOURCE, limit=ALL)
            for event in batch_content(self.ledger, SOURCE, batch.id).events
            if event.kind is TableEventKind.REREAD or event.reason == DROPPED_BEFORE_READ
        }

    def wrong(self) -> list[str]:
        """How its mirrors and its history are not what the server has."""
        mirrors = verify(self.ports())
        found = [f"{table.table}: {table.examples}" for table in mirrors.tables if not table.equal]
        history = verify_schema(self.ports())
        wrong = (*history.history_disagreements, *history.server_disagreements)
        return found + [
            f"{one.table} at {one.position}: {'; '.join(one.differences)}" for one in wrong
        ]


def _named_only(row: dict[str, Any]) -> dict[str, Any]:
    """A statement with the names of its tables and what it did to them."""
    if "tables" not in row:
        return row
    tables = [
        (one["database"], one["name"], without_values(one["effect"])) for one in row["tables"]
    ]
    return {**row, "tables": tables}


def without_values(effect: str | None) -> str:
    """What a statement did, without values of defaults and expressions: who read the table anew
    knows them, and has them as the server prints them."""
    return _VALUE.sub(r"\1", effect or "")


def _name(part: str) -> str:
    """A table's name from its folder's (`layout.path_part`)."""
    return unquote(part.replace("=", "%"))
