"""A mirror that follows a `Server`, run by run."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from pipeline.changes.evolution import steps
from pipeline.changes.lineage import Lineage, MirrorPolicies, lineage
from pipeline.changes.mapping import folded, kept_columns
from pipeline.ports.mirror_writes import MirrorStep, MirrorWrite
from pipeline.ports.mirrors import Mirrors
from tests.changes.server import Row, Server

MIRROR = "shop/shop/people"
APP = "app/mirror"


@dataclass
class Follower:
    """`staged`: changes are folded in memory and merged, instead of folded by the lake."""

    mirrors: Mirrors
    policies: MirrorPolicies
    staged: bool = False
    shown: int = 0
    number: int = 0

    def run(self, server: Server) -> tuple[Lineage, tuple[MirrorStep, ...]]:
        """Bring the mirror to what the server shows."""
        self.number += 1
        version = self.mirrors.version(MIRROR)
        columns = None if version is None else self.mirrors.schema(MIRROR, version)
        line = lineage(server.versions[self.shown :], self.policies, mirror=columns)
        todo = steps(line)
        if version is not None:
            self.mirrors.evolve(MIRROR, todo, app_id=APP, txn_version=self.number, after=version)
        self.mirrors.write(self.write(server, line))
        self.shown = len(server.versions) - 1
        return line, todo

    def write(self, server: Server, line: Lineage) -> MirrorWrite:
        changes = server.changes()
        files: tuple[str, ...] = ()
        kept: tuple[str, ...] = ()
        parts = tuple(
            line.part(number, (self.mirrors.stage(f"v{number}", table),))
            for number, table in changes
        )
        if self.staged and changes:
            mapped = [
                (table, part.columns) for (_, table), part in zip(changes, parts, strict=True)
            ]
            whole = folded(mapped, line.schema, line.key, self._marks())
            files = (self.mirrors.stage("folded", whole),)
            kept = kept_columns((part.columns for part in parts), line.schema)
        return MirrorWrite(
            mirror=MIRROR,
            mode="merge" if files else "fold",
            files=files,
            parts=() if files else parts,
            schema=line.schema,
            key=line.key,
            app_id=APP,
            txn_version=self.number,
            user_metadata=f"run {self.number}",
            kept=kept,
            deletes=self.policies.deletes,
            readers=self.policies.readers,
        )

    def _marks(self) -> list[str]:
        return ["_committed_at"] if self.policies.deletes == "soft" else []

    def rows(self, line: Lineage) -> list[Row]:
        version = self.mirrors.version(MIRROR)
        assert version is not None
        batches = self.mirrors.rows(MIRROR, line.schema.names, version)
        table = pa.Table.from_batches(batches, schema=line.schema)
        found: list[Row] = table.sort_by("id").to_pylist()
        return found
