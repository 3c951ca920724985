"""One table's write, prepared: all a merge needs to know, asked of the ledger beforehand.

Belongs here: which batches, versions and columns an intent comes down to. Does not: what a
plan is (`pipeline.changes.merging`), carrying it out (`merge`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from pipeline.batch import Batch, BatchState
from pipeline.changes.evolution import steps
from pipeline.changes.fills import StatementMoment
from pipeline.changes.layout import changelog_path, snapshot_path
from pipeline.changes.lineage import Lineage, MirrorPolicies, lineage
from pipeline.changes.merging import BatchPart, MergePlan, plan_merge
from pipeline.decisions import Continuity
from pipeline.errors import TableError
from pipeline.intent import Intent
from pipeline.ports.mirror_writes import MirrorStep
from pipeline.runs.context import Workplace
from pipeline.runs.publish import commit_metadata
from pipeline.runs.rereading import HINT
from pipeline.schema.history import Knowledge, SchemaVersion
from pipeline.schema.zones import zone_of
from pipeline.segment import RowCounts
from pipeline.table import TableName
from pipeline.table_state import SnapshotPart, TableState


@dataclass(frozen=True, slots=True)
class Job:
    """One table's write, ready to be tried: all it needs without asking the ledger.

    `lineage` and `steps` are None and () for a table that is dropped and had nothing to
    merge; `after`: the Delta version that the last settled write of the table made.
    `all_new`: whether a row that the log inserts cannot be in the mirror yet.
    """

    intent: Intent
    state: TableState
    plan: MergePlan
    lineage: Lineage
    steps: tuple[MirrorStep, ...]
    folders: Mapping[int, str]
    metadata: str
    after: int
    moment: datetime | None
    all_new: bool

    @property
    def counts(self) -> RowCounts:
        return sum((segment.counts for segment in self.plan.segments), RowCounts())


def prepare_job(
    work: Workplace, intent: Intent, state: TableState, batches: Mapping[int, Batch]
) -> Job:
    """What the intent comes down to. TableError where the mirror cannot follow."""
    table = intent.table
    covered = [
        batch
        for number, batch in sorted(batches.items())
        if intent.first_batch <= number <= intent.last_batch and batch.state is BatchState.CAPTURED
    ] or _read_since(work, intent, batches)
    if not covered:
        raise TableError(
            "a write of it was begun, failed, and its batches were acknowledged without it",
            hint="report this to us: the table cannot be written any more",
        )
    plan = plan_merge([_part(work, batch, table) for batch in covered])
    if not plan.final and state.mirror_version is not None:
        plan = replace(plan, final=state.mirror_version)
    settled = work.ledger.last_settled(work.source.name, intent.app_id)
    after = -1 if settled is None else settled.delta_version
    versions = _versions(work, plan, state, after)
    known = {one.version: one for one in versions}
    mirror = None
    if after >= 0 and not plan.replaces:
        mirror = work.mirrors.schema(state.mirror, after)
    policies = work.source.lake
    line = lineage(
        versions,
        MirrorPolicies(policies.dropped_columns, policies.readers, policies.deletes),
        mirror=mirror,
        moments=_moments(work, versions),
    )
    if line.reread:
        raise TableError(line.reread[0], hint=HINT)
    # Behind a gap a row may be inserted whose deletion nobody read; in an overlap, again.
    overlaps = any(batch.continuity is Continuity.OVERLAP for batch in covered)
    ends = [batch.end for batch in covered if batch.end is not None]
    return Job(
        intent=intent,
        state=state,
        plan=plan,
        lineage=line,
        steps=() if plan.replaces else steps(line),
        folders=_folders(work, plan, known),
        metadata=commit_metadata(table, covered),
        after=after,
        moment=ends[-1].committed_at if ends else None,
        all_new=not overlaps and not work.ledger.gaps(work.source.name),
    )


def _read_since(work: Workplace, intent: Intent, batches: Mapping[int, Batch]) -> list[Batch]:
    """The batch that an old intent comes down to, which could not be carried out when its
    own were merged: the first in which the table was read from the source since, or none."""
    for number, batch in sorted(batches.items()):
        if number > intent.last_batch and batch.state is BatchState.CAPTURED:
            found = work.ledger.snapshots(work.source.name, batch.id)
            if any(one.table == intent.table for one in found):
                return [batch]
    return []


def _part(work: Workplace, batch: Batch, table: TableName) -> BatchPart:
    source = work.source.name
    segments = tuple(one for one in work.ledger.segments(batch.id) if one.table == table)
    events = tuple(one for one in work.ledger.table_events(source, batch.id) if one.table == table)
    found = [one for one in work.ledger.snapshots(source, batch.id) if one.table == table]
    return BatchPart(batch.id, segments, events, found[0] if found else None)


def _versions(
    work: Workplace, plan: MergePlan, state: TableState, after: int
) -> Sequence[SchemaVersion]:
    """From the version that the mirror shows, or the first that matters, to the last."""
    table = state.table
    history = work.ledger.schema_versions(work.source.name, table)
    numbers = [one.version for one in history]
    first = plan.first
    if first is None and after >= 0:
        # Ledgers of before kept no such number: their tables never changed.
        first = state.mirror_version or numbers[0]
    elif first is None:
        first = min(plan.versions, default=plan.final)
    between = history[numbers.index(first) : numbers.index(plan.final) + 1]
    known = [one for one in between if one.knowledge is Knowledge.KNOWN]
    if not known or len(known) < len(between):
        raise TableError(
            f"its structure was not known between version {first} and {plan.final}",
            hint=f"`lockstep release {table}` reads it anew",
        )
    return known


def _folders(
    work: Workplace, plan: MergePlan, known: Mapping[int, SchemaVersion]
) -> dict[int, str]:
    """Where the files of each version are."""
    return {
        number: changelog_path(work.source.name, known[number].table, known[number].generation)
        for number in plan.versions
    }


def _moments(work: Workplace, versions: Sequence[SchemaVersion]) -> dict[int, StatementMoment]:
    """When the statements ran that made the versions behind the first one."""
    found = {}
    for version in versions[1:]:
        if version.statement is None:
            continue
        context = work.ledger.statement(work.source.name, version.statement).context
        told = context.get("executed_at")
        if told is not None:
            zone = zone_of(str(context.get("time_zone") or ""))
            found[version.version] = StatementMoment(datetime.fromisoformat(told), zone)
    return found


def snapshot_paths(work: Workplace, part: SnapshotPart) -> tuple[str, ...]:
    """Absolute paths of a snapshot's files."""
    folder = snapshot_path(work.source.name, part.table)
    return tuple(work.mirrors.path(f"{folder}/{file.path}") for file in part.files)
