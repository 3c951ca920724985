"""A mirror that follows a `Server`, run by run."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from lockstep.pipeline.mirror.evolution import evolution_steps
from lockstep.pipeline.mirror.fold import Fold
from lockstep.pipeline.mirror.lineage import ColumnLineage, lineage
from lockstep.pipeline.ports.mirror_writes import Merge, MirrorStep, MirrorTarget
from lockstep.pipeline.ports.mirrors import Mirrors
from lockstep.pipeline.values.policies import LakePolicies
from lockstep.pipeline.values.stamps import STAMPS
from tests.changes.folding_made import staged_images
from tests.changes.server import Row, Server

MIRROR = "shop/shop/people"
APP = "app/mirror"


def kept_columns(line: ColumnLineage) -> tuple[str, ...]:
    """The columns that the last version does not have, without stamps."""
    others = {*line.table_names[max(line.table_names)], *STAMPS.names}
    return tuple(name for name in line.schema.names if name not in others)


@dataclass
class Follower:
    """`buckets`: in how many its changes are folded."""

    mirrors: Mirrors
    policies: LakePolicies
    buckets: int = 1
    shown: int = 0
    number: int = 0

    def run(self, server: Server) -> tuple[ColumnLineage, tuple[MirrorStep, ...]]:
        """Bring the mirror to what the server shows."""
        self.number += 1
        version = self.mirrors.version(MIRROR)
        columns = None if version is None else self.mirrors.schema(MIRROR, version)
        line = lineage(server.versions[self.shown :], self.policies, mirror=columns)
        todo = evolution_steps(line)
        if version is not None:
            self.mirrors.evolve(
                MIRROR, todo, app_id=APP, txn_version=self.number, after_version=version
            )
        self._write(server, line)
        self.shown = len(server.versions) - 1
        return line, todo

    def _write(self, server: Server, line: ColumnLineage) -> None:
        changes = server.changes()
        target = MirrorTarget(
            MIRROR, line.schema, APP, self.number, f"run {self.number}", self.policies
        )
        parts = tuple(line.part(number) for number, _ in changes)
        fold = Fold(
            line.schema,
            line.key,
            parts,
            ("_committed_at",) if target.policies.marks_deleted else (),
        )
        images = [[table.slice(0, 5), table.slice(5)] for _, table in changes]
        buckets = self.buckets if changes else 0
        with staged_images(self.mirrors, fold, images, buckets) as staged:
            self.mirrors.write(Merge(target, line.key, staged.changes, staged.bounds))

    def rows(self, line: ColumnLineage) -> list[Row]:
        version = self.mirrors.version(MIRROR)
        assert version is not None
        batches = self.mirrors.rows(MIRROR, line.schema.names, version)
        table = pa.Table.from_batches(batches, schema=line.schema)
        found: list[Row] = table.sort_by("id").to_pylist()
        return found
