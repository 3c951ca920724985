"""A source that is followed through shapes, by a `Follower`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from lockstep.pipeline.run.context import RunPorts
from lockstep.pipeline.run.recovery.recover import recover
from lockstep.pipeline.schema.context import StatementContext
from lockstep.pipeline.schema.statements.changes import NotUnderstood
from lockstep.pipeline.schema.statements.read import read_change
from lockstep.pipeline.shape.hashes import PrivacyKey
from lockstep.pipeline.shape.shape import ShapeRules
from lockstep.pipeline.source_plan import TableSettings
from lockstep.pipeline.values.table import TableName, TablePatterns
from lockstep.resources.mysql.server import MySqlServer
from tests.fix_mysql import MySqlStand
from tests.mysql.reading import settings
from tests.positions.follower import Follower

KEY = b"a key that nobody guesses"


def followed_by_nobody(table: TableName, text: str, context: StatementContext) -> object:
    """`read_change` to which RENAME COLUMN is a statement that may concern the table."""
    if "rename column" in text:
        return NotUnderstood("not this one", possible_tables=(table,))
    return read_change(text, context)


class ShapedFollower(Follower):
    """`shapes`: rules by the pattern of the tables that they are of; changed between two runs as
    settings are. `replaces`: the fingerprint of the key that `key` replaces."""

    def __init__(
        self,
        stand: MySqlStand,
        tables: Sequence[str],
        shapes: dict[str, ShapeRules],
        *,
        key: bytes | None = KEY,
        **options: Any,
    ) -> None:
        super().__init__(None, tables, **options)  # type: ignore[arg-type]
        self.stand, self.shapes, self.key = stand, shapes, key
        self.replaces: str | None = None

    def ports(self, until: str | None = None) -> RunPorts:
        ports = super().ports(until)
        blocks = tuple(
            TableSettings(TablePatterns((pattern,)), {}, rules)
            for pattern, rules in self.shapes.items()
        )
        source = replace(ports.source, table_settings=blocks)
        key = None if self.key is None else PrivacyKey(self.key, replaces=self.replaces)
        shaping = source.shaping(key)
        server = MySqlServer(settings(self.stand), shaping=shaping)
        return replace(ports, source=source, server=server, shaping=shaping)

    def recover(self, **options: Any) -> None:
        """Make the ledger follow the lake."""
        with self.leased() as lease:
            recover(self.ports(), lease, author="somebody", **options)
