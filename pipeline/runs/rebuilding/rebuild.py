"""Rebuild: a mirror as of a transaction of the past, or the live one made again.

The live mirror is made aside first and brought over in one commit, so a reader sees the old rows or
the new ones. Nothing moves the source's position.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from pipeline.arrow_errors import for_one_table
from pipeline.batch import Batch
from pipeline.changes.clustering import clustered_by
from pipeline.changes.evolution import steps
from pipeline.changes.layout import DELETED_AT, changelog_names, table_id
from pipeline.decisions import Decision, Lease
from pipeline.errors import NothingMatches, PastRefused, TableError
from pipeline.intent import Intent
from pipeline.lake_commit import WriteKind, stamp
from pipeline.places import Place
from pipeline.policies import Deletes, Readers
from pipeline.ports.copies import Copies
from pipeline.ports.held import unasked
from pipeline.ports.mirror_writes import (
    FoldedChanges,
    MirrorTarget,
    MirrorWrite,
    PartColumn,
    Recount,
    Replace,
    StagedFiles,
)
from pipeline.ports.mirrors import Mirrors
from pipeline.row_groups import row_groups
from pipeline.runs.agreement.claim import require_agreement, require_claim
from pipeline.runs.context import Workplace
from pipeline.runs.merging.job import Job, Task, emptied_at, folders_of, read_at, reads_again
from pipeline.runs.merging.mirror_write import write_once
from pipeline.runs.rebuilding.origin import (
    Cut,
    RebuildOrigin,
    cut_at,
    end_of_batch,
    live_origin,
    origin_at,
)
from pipeline.runs.replaying.heal import mirror_shown
from pipeline.runs.replaying.recapture import require_merged
from pipeline.runs.replaying.settle import commit_mirror, settle_replays
from pipeline.schema.rows import merge_key
from pipeline.table import TableName
from pipeline.table_state import TableState


@dataclass(frozen=True, slots=True)
class RebuildReport:
    """`origin`: what it is made from, and as of where. `into`: where the table is, an absolute
    path; None for the live mirror, which has `delta_version` then. `rows`: what a reader sees; None
    where nobody counted. Neither is there for a plan."""

    origin: RebuildOrigin
    into: str | None = None
    delta_version: int | None = None
    rows: int | None = None
    seconds: float = 0.0

    @property
    def table(self) -> TableName:
        return self.origin.table

    @property
    def cut(self) -> Cut:
        return self.origin.cut


def plan_rebuild(work: Workplace, table: TableName, place: Place | None) -> RebuildReport:
    """What it would be made from; reads no rows, and needs no lease."""
    if place is None:
        return RebuildReport(_live(work, table).origin(work))
    return RebuildReport(origin_at(work, table, cut_at(work, place)))


def rebuild_as_of(
    work: Workplace, copies: Copies, table: TableName, place: Place, into: str
) -> RebuildReport:
    """The table as it was, in a place of its own; needs no lease. `PastRefused` where the lake
    does not have it any more, or not yet."""
    clock = perf_counter()
    origin = origin_at(work, table, cut_at(work, place))
    with copies.begun(NAME, into) as aside:
        version = build(work, aside, origin)
        size = aside.size(NAME, version)
    rows = None if size is None else size.rows
    return RebuildReport(origin, into, None, rows, perf_counter() - clock)


def rebuild_live(work: Workplace, lease: Lease, copies: Copies, table: TableName) -> RebuildReport:
    """The live mirror once more, as of what is acknowledged, in one commit. `BatchesWait` while
    captured batches are not merged. Cut off, the next run finds the commit or gives it up."""
    clock = perf_counter()
    require_agreement(work)
    require_claim(work)
    for note in settle_replays(work, lease):
        work.progress.note(note)
    require_merged(work)
    live = _live(work, table)
    origin = live.origin(work)
    with copies.begun(NAME, None) as aside:
        made = build(work, aside, origin)
        version = live.brought(work, lease, origin, aside, made)
        size = aside.size(NAME, made)
    rows = None if size is None else size.rows
    report = RebuildReport(origin, None, version, rows, perf_counter() - clock)
    work.ledger.decide(lease, _decision(report))
    return report


@dataclass(frozen=True, slots=True)
class _Live:
    """A mirror as it stands: `own` are its columns, without the one that marks rows."""

    state: TableState
    own: pa.Schema
    soft: bool
    last: Batch

    def origin(self, work: Workplace) -> RebuildOrigin:
        return live_origin(work, self.state.table, end_of_batch(self.last), self.own)

    def brought(
        self, work: Workplace, lease: Lease, origin: RebuildOrigin, aside: Mirrors, made: int
    ) -> int:
        """Its rows are those of a table made aside from here on; its Delta version."""
        files = [file for segment in origin.plan.segments for file in segment.files]
        with staged_rows(aside, NAME, made, work.mirrors, soft=self.soft) as rows:
            return commit_mirror(
                work,
                lease,
                self.state,
                self.last,
                _in_order(rows.schema, self.own),
                files,
                lambda target: rows.write(target, origin.key),
                kind=WriteKind.REWRITE,
                reason=f"a rebuild: made again {_made_from(origin)}",
            )


def _in_order(columns: pa.Schema, own: pa.Schema) -> pa.Schema:
    """The columns in the order that the mirror has them in; those that it has not come last."""
    names = [*(name for name in own.names if name in columns.names), *columns.names]
    return pa.schema([columns.field(name) for name in dict.fromkeys(names)])


def _live(work: Workplace, table: TableName) -> _Live:
    """`PastRefused` unless the mirror is there, and shows all that was captured of its table."""
    source = work.source.name
    state = work.ledger.table_states(source).get(table)
    cursor = work.ledger.cursors(source).acknowledged
    if state is None or cursor is None:
        raise NothingMatches(
            f"the lake has no table {table}", hint="`lockstep tables` lists those it has"
        )
    try:
        _, own, soft = mirror_shown(work, state)
    except TableError as error:
        raise PastRefused(
            f"{table} cannot be made again: {error.reason}", hint=error.hint
        ) from error
    [last] = work.ledger.live_batches(source, cursor.batch, cursor.batch)
    return _Live(state, own, soft, last)


def _made_from(origin: RebuildOrigin) -> str:
    if origin.base is None:
        return f"from its changelog, since batch {origin.first}"
    entry = origin.base.entry
    return f"from version {entry.delta_version} of {entry.mirror} and what was captured since"


def _decision(report: RebuildReport) -> Decision:
    origin = report.origin
    return Decision(
        "rebuild",
        "mirror-rebuilt",
        f"the mirror of {report.table} was made again {_made_from(origin)}",
        {
            "table": str(report.table),
            "base": None if origin.base is None else origin.base.entry.delta_version,
            "first_batch": origin.first,
            "delta_version": report.delta_version,
        },
    )


NAME: Final = "table"
_COPIED, _MERGED = 1, 2


@dataclass(frozen=True, slots=True)
class StagedRows:
    """Rows of a mirror, staged so that a write can bring them to another: those that are there,
    and those that are marked as deleted."""

    schema: pa.Schema
    there: tuple[str, ...]
    marked: tuple[str, ...]

    def write(self, target: MirrorTarget, key: tuple[str, ...]) -> MirrorWrite:
        """The write after which these are all rows. `key`: what tells them apart; with none,
        copies are counted."""
        columns = tuple(PartColumn(field.name, field.type) for field in target.schema)
        snapshot = (StagedFiles(self.there, columns),) if self.there else ()
        if not key:
            return Recount(target, (), snapshot)
        return Replace(target, key, snapshot, FoldedChanges(self.marked))


def build(work: Workplace, mirrors: Mirrors, origin: RebuildOrigin) -> int:
    """Make it, as `NAME` among these mirrors; its Delta version. `PastRefused` where a file
    that it is made of is damaged."""
    aside = replace(work, mirrors=mirrors, source=work.source.read_by(Readers.ANY))
    _require_whole(work, origin)
    try:
        with for_one_table("make it again"):
            if origin.base is not None:
                _copied(work, aside, origin)
            if origin.parts:
                write_once(aside, _job(aside, origin), unasked)
    except TableError as error:
        raise PastRefused(
            f"{origin.table} cannot be made as of {origin.cut}: {error.reason}",
            hint=error.hint or f"`lockstep versions` tells of {origin.table}",
        ) from error
    version = mirrors.version(NAME)
    assert version is not None, "it was written"
    return version


@contextmanager
def staged_rows(
    mirrors: Mirrors, mirror: str, version: int, aside: Mirrors, *, soft: bool
) -> Iterator[StagedRows]:
    """The rows of a mirror, which `mirrors` has, in files of `aside` that last as long as the
    context. `soft`: rows of it may be marked as deleted."""
    own = mirrors.schema(mirror, version)
    marks = soft and DELETED_AT.name in own.names
    schema = pa.schema([field for field in own if not (marks and field.name == DELETED_AT.name)])
    there: list[str] = []
    gone: list[str] = []
    try:
        for group in row_groups(mirrors.rows(mirror, own.names, version)):
            rows = group.select(own.names).cast(own)
            marked = rows.column(DELETED_AT.name) if marks else pa.nulls(rows.num_rows)
            stays = rows.filter(pc.is_null(marked)).select(schema.names)
            if stays.num_rows:
                there.append(aside.stage(NAME, stays))
            if stays.num_rows < rows.num_rows:
                gone.append(aside.stage(NAME, _gone(rows.filter(pc.is_valid(marked)), schema)))
        yield StagedRows(schema, tuple(there), tuple(gone))
    finally:
        for path in (*there, *gone):
            aside.unstage(path)


def _gone(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """As changes that mark them once more."""
    columns = [pa.array(["delete"] * rows.num_rows, pa.string()), rows.column(DELETED_AT.name)]
    names = ["_change_type", "_committed_at", *changelog_names(schema.names)]
    return pa.table([*columns, *(rows.column(name) for name in schema.names)], names=names)


def _require_whole(work: Workplace, origin: RebuildOrigin) -> None:
    folders = _folders(work, origin)
    for segment in origin.plan.segments:
        wrong = work.segments.damaged(folders[segment.schema_version], segment.files)
        if wrong:
            raise PastRefused(
                f"the changelog of {origin.table} is damaged: {wrong[0]}",
                hint="`lockstep replay --from earliest --to latest` may bring it back",
            )


def _folders(work: Workplace, origin: RebuildOrigin) -> dict[int, str]:
    known = {version.version: version for version in origin.versions}
    return folders_of(work, origin.plan.versions, known)


def _copied(work: Workplace, aside: Workplace, origin: RebuildOrigin) -> None:
    assert origin.base is not None, "there is one"
    entry = origin.base.entry
    soft = work.source.policies_of(origin.table).deletes == Deletes.SOFT
    shown = work.ledger.schema_version(work.source.name, origin.table, origin.shown)
    key = () if shown.shown is None else merge_key(shown.shown)
    with staged_rows(
        work.mirrors, entry.mirror, entry.delta_version, aside.mirrors, soft=soft
    ) as rows:
        aside.mirrors.write(rows.write(_target(aside, origin, rows.schema), key))


def _target(aside: Workplace, origin: RebuildOrigin, schema: pa.Schema) -> MirrorTarget:
    policies = aside.source.policies_of(origin.table)
    return MirrorTarget(
        mirror=NAME,
        schema=schema,
        app_id=_application(aside, origin),
        txn_version=_COPIED,
        user_metadata=_words(aside, origin, _COPIED),
        deletes=policies.deletes,
        readers=policies.readers,
        truncates=policies.truncates,
        cluster=clustered_by(policies.cluster_by, schema),
    )


def _application(work: Workplace, origin: RebuildOrigin) -> str:
    return f"lockstep/{work.source.name}/{table_id(origin.table)}/copy"


def _words(work: Workplace, origin: RebuildOrigin, number: int) -> str:
    """What a commit of the copy says: what it shows once the last one is made."""
    return stamp(
        {
            "kind": WriteKind.REWRITE.value,
            "ledger": work.ledger.identity(),
            "source": work.source.name,
            "table": str(origin.table),
            "position": str(origin.cut.at),
            "gtid": origin.cut.gtid,
            "step": number,
        }
    )


def _job(aside: Workplace, origin: RebuildOrigin) -> Job:
    source = aside.source.name
    first, last = origin.parts[0].batch, origin.parts[-1].batch
    numbers = {part.batch for part in origin.parts}
    live = aside.ledger.live_batches(source, first, last)
    batches = tuple(batch for batch in live if batch.id in numbers)
    again = reads_again(aside, batches)
    intent = Intent(
        0,
        origin.table,
        _application(aside, origin),
        _MERGED,
        first,
        last,
        "copy",
    )
    state = replace(aside.ledger.table_states(source)[origin.table], mirror=NAME)
    based = origin.base is not None
    policies = replace(origin.line.policies, readers=Readers.ANY)
    line = replace(origin.line, policies=policies)
    words = _words(aside, origin, _MERGED)
    task = Task(intent, state, batches, origin.plan, words, None)
    return Job(
        task=task,
        lineage=line,
        key=origin.key,
        steps=() if origin.plan.replaces or not based else steps(line),
        segments=origin.plan.segments,
        folders=_folders(aside, origin),
        after=0 if based else -1,
        emptied=emptied_at(aside, origin.table, origin.plan, batches),
        read=read_at(aside, origin.table, origin.plan, batches, stamped=bool(line.stamps)),
        again=again,
        all_new=not again and not aside.ledger.gaps(source),
    )
