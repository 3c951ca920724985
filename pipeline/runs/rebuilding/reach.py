"""How far back a table can be made again: what of its past is there.

Belongs here: whether the source had it, and which versions of its mirror can still be read. Does
not: what it is made from (`origin`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from pipeline.changes.merging import BatchPart
from pipeline.errors import NothingMatches, PastRefused
from pipeline.intent import Missing, ShownVersion
from pipeline.replay.as_of import end_of
from pipeline.runs.context import Workplace
from pipeline.runs.inspecting.version_sets import explained
from pipeline.runs.rebuilding.cut import Cut
from pipeline.schema.history import Knowledge
from pipeline.table import TableName

_STOPPED: Final = frozenset(
    {Missing.QUARANTINED, Missing.PAUSED, Missing.LOADING, Missing.BEHIND, Missing.LATER}
)


def require_there(work: Workplace, table: TableName, cut: Cut, parts: Sequence[BatchPart]) -> None:
    """Whether the source had it there, and the lake follows it."""
    ledger, source = work.ledger, work.source.name
    if table not in ledger.table_states(source):
        raise NothingMatches(
            f"the lake has no table {table}", hint="`lockstep tables` lists those it has"
        )
    asked = {cut.before, cut.batch.id} - {0}
    for missing in (
        lack for batch in sorted(asked) for lack in ledger.missing_versions(source, batch)
    ):
        if missing.table == table and missing.why in _STOPPED:
            gap = explained(ledger, source, missing)
            raise PastRefused(
                f"{table} cannot be made as of {cut}: {gap.reason}", hint=earliest(work, table)
            )
    held = ledger.schema_at(source, table, batch=cut.batch.id, place=cut.at)
    if held is not None and held.knowledge is Knowledge.DROPPED:
        raise PastRefused(
            f"{table} had been dropped, or had got another name, at {held.since}, before {cut}",
            hint=f"name an earlier place: `lockstep schema {table}` tells when it was there",
        )
    if not parts and not ledger.mirror_versions(source, table, cut.before):
        raise PastRefused(
            f"nothing of {table} was captured up to {cut}", hint=earliest(work, table)
        )


def readable(work: Workplace, versions: Sequence[ShownVersion]) -> Iterator[ShownVersion]:
    """Those whose log and files are there, newest first: where one is gone, so are those of its
    folder before it."""
    gone: set[str] = set()
    for version in versions:
        if version.entry.mirror in gone:
            continue
        if _is_gone(work, version):
            gone.add(version.entry.mirror)
        else:
            yield version


def _is_gone(work: Workplace, version: ShownVersion) -> bool:
    """Whether a version cannot be read any more, or is not the one that was written."""
    entry = version.entry
    why = work.mirrors.lacking(
        entry.mirror, entry.delta_version, table_id=entry.table_id, batch=version.batch
    )
    return why is not None


def earliest(work: Workplace, table: TableName) -> str:
    """The earliest place that works, in words."""
    ledger, source = work.ledger, work.source.name
    cursor = ledger.acknowledged_cursor(source)
    versions = [] if cursor is None else ledger.mirror_versions(source, table, cursor.batch)
    there = tuple(readable(work, versions))
    if not there:
        return f"`lockstep versions` tells of {table}"
    [batch] = ledger.live_batches(source, there[-1].batch, there[-1].batch)
    return f"the earliest version of it that is there is as of {end_of(batch)}"
