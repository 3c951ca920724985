"""The logs of a source's tables in the lake, kept short.

Belongs here: which tables those are. Does not: what goes from a log
(`pipeline.upkeep.checkpoints`).
"""

from __future__ import annotations

from collections.abc import Iterator

from pipeline.changes.layout import changelog_path
from pipeline.changes.source_tables import source_table_path
from pipeline.ports.upkeep import MirrorUpkeep
from pipeline.runs.context import Workplace
from pipeline.segment import SourceTable
from pipeline.upkeep.facts import Pile


def thin_logs(work: Workplace, lake: MirrorUpkeep, *, delete: bool) -> Pile:
    """Checkpoints that others replace: those that were deleted, or would be."""
    now = work.clock()
    piles = [lake.thin_log(folder, now, delete=delete) for folder in _folders(work)]
    return Pile(sum(one.files for one in piles), sum(one.bytes for one in piles))


def _folders(work: Workplace) -> Iterator[str]:
    source = work.source.name
    for table, state in work.ledger.table_states(source).items():
        if state.mirror_version is not None:
            yield state.mirror
        for generation in range(1, state.changelog_generation + 1):
            yield changelog_path(source, table, generation)
    for part in SourceTable:
        yield source_table_path(source, part)
