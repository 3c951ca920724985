"""Writes a table as it was after a transaction of the past to a path of its own.

Neither the lake nor the ledger is changed, so runs need not wait for a rebuild.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from time import perf_counter
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from lockstep.pipeline.mirror.clustering import clustered_by
from lockstep.pipeline.mirror.evolution import steps
from lockstep.pipeline.mirror.layout import DELETED_AT, changelog_names, table_id
from lockstep.pipeline.model.lake_commit import WriteKind, stamp
from lockstep.pipeline.ports.held import no_check
from lockstep.pipeline.ports.mirror_writes import (
    CountedReplace,
    FoldedChanges,
    MirrorTarget,
    PartColumn,
    Replace,
    StagedFiles,
)
from lockstep.pipeline.ports.mirrors import Copies, Mirrors
from lockstep.pipeline.run.context import Workplace
from lockstep.pipeline.run.rebuild.origin import Cut, RebuildOrigin
from lockstep.pipeline.run.stop_errors import for_one_table
from lockstep.pipeline.run.write.job import (
    Job,
    Task,
    emptied_stamps,
    folders_of,
    read_stamp,
    reads_again,
)
from lockstep.pipeline.run.write.mirror_write import write_once
from lockstep.pipeline.schema.rows import merge_key
from lockstep.pipeline.values.errors import PastRefused, TableError
from lockstep.pipeline.values.intent import Intent, MirrorVersion
from lockstep.pipeline.values.policies import Deletes, Readers
from lockstep.pipeline.values.row_groups import row_groups
from lockstep.pipeline.values.table import TableName


@dataclass(frozen=True, slots=True)
class RebuildReport:
    """A table of the past that was written, or would be. `origin`: what it is made
    from; `into`: its absolute path; `rows`: number of its rows, None for a plan or if
    the store does not know it.
    """

    origin: RebuildOrigin
    into: str
    rows: int | None = None
    seconds: float = 0.0

    @property
    def table(self) -> TableName:
        return self.origin.table

    @property
    def cut(self) -> Cut:
        return self.origin.cut


def rebuild_as_of(
    work: Workplace, copies: Copies, origin: RebuildOrigin, into: str
) -> RebuildReport:
    """Write the table as it was to the path `into`; no lease is needed. Raise
    `PastRefused` if a file of its origin is damaged."""
    clock = perf_counter()
    with copies.begun(NAME, into) as aside:
        version = build(work, aside, origin)
        size = aside.size(NAME, version)
    rows = None if size is None else size.rows
    return RebuildReport(origin, into, rows, perf_counter() - clock)


NAME: Final = "table"
_COPIED, _MERGED = 1, 2
"""The numbers of two Delta transactions: the rows that are copied, the changes that are
merged."""


def build(work: Workplace, mirrors: Mirrors, origin: RebuildOrigin) -> int:
    """Write the table as `NAME` among the given mirrors, and return its Delta version.
    Raise `PastRefused` if a file of its origin is damaged."""
    aside = replace(work, mirrors=mirrors, source=work.source.for_readers(Readers.ANY))
    _require_whole(work, origin)
    try:
        with for_one_table("make it again"):
            if origin.changes.base is not None:
                _copy_base(work, aside, origin.changes.base, origin)
            if origin.changes.parts:
                write_once(aside, _job(aside, origin), no_check)
    except TableError as error:
        raise PastRefused(
            f"{origin.table} cannot be made as of {origin.cut}: {error.reason}",
            hint=error.hint or "`lockstep versions --list` shows the versions that the lake has",
        ) from error
    version = mirrors.version(NAME)
    assert version is not None, "it was written"
    return version


def _require_whole(work: Workplace, origin: RebuildOrigin) -> None:
    """Raise `PastRefused` if a file of the changelog is missing or damaged."""
    folders = _folders(work, origin)
    for segment in origin.plan.segments:
        damages = work.segments.damaged(folders[segment.schema_version], segment.files)
        if damages:
            raise PastRefused(
                f"the changelog of {origin.table} is damaged: {damages[0]}",
                hint="`lockstep replay --from earliest --to latest` may bring it back",
            )


def _folders(work: Workplace, origin: RebuildOrigin) -> dict[int, str]:
    versions = {version.version: version for version in origin.versions}
    return folders_of(work, origin.plan.versions, versions)


def _copy_base(
    work: Workplace, aside: Workplace, base: MirrorVersion, origin: RebuildOrigin
) -> None:
    """Write the rows of the version with which the table begins. Rows that are marked
    as deleted there are staged as deletions, which mark them again."""
    own = work.mirrors.schema(base.mirror, base.delta_version)
    soft = work.source.policies_of(origin.table).deletes == Deletes.SOFT
    marks = soft and DELETED_AT.name in own.names
    schema = pa.schema([field for field in own if not (marks and field.name == DELETED_AT.name)])
    version = work.ledger.schema_version(work.source.name, origin.table, origin.changes.version)
    key = () if version.shown is None else merge_key(version.shown)
    present, deleted = list[str](), list[str]()
    try:
        for group in row_groups(work.mirrors.rows(base.mirror, own.names, base.delta_version)):
            rows = group.select(own.names).cast(own)
            marked = rows.column(DELETED_AT.name) if marks else pa.nulls(rows.num_rows)
            unmarked = rows.filter(pc.is_null(marked)).select(schema.names)
            if unmarked.num_rows:
                present.append(aside.mirrors.stage(NAME, unmarked))
            if unmarked.num_rows < rows.num_rows:
                changes = _deletions(rows.filter(pc.is_valid(marked)), schema)
                deleted.append(aside.mirrors.stage(NAME, changes))
        columns = tuple(PartColumn(field.name, field.type) for field in schema)
        snapshot = (StagedFiles(tuple(present), columns),) if present else ()
        target = _target(aside, origin, schema)
        aside.mirrors.write(
            Replace(target, key, snapshot, FoldedChanges(tuple(deleted)))
            if key
            else CountedReplace(target, (), snapshot)
        )
    finally:
        for path in (*present, *deleted):
            aside.mirrors.unstage(path)


def _deletions(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return rows that are marked as deleted as the changes that mark them."""
    columns = [pa.array(["delete"] * rows.num_rows, pa.string()), rows.column(DELETED_AT.name)]
    names = ["_change_type", "_committed_at", *changelog_names(schema.names)]
    return pa.table([*columns, *(rows.column(name) for name in schema.names)], names=names)


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
    """Return the user metadata of a commit. It names the place of the log that the
    table shows after its last commit."""
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
    """Return the job that merges the changes up to the cut as a run would."""
    source = aside.source.name
    first, last = origin.changes.parts[0].batch, origin.changes.parts[-1].batch
    numbers = {part.batch for part in origin.changes.parts}
    live = aside.ledger.live_batches(source, first, last)
    batches = tuple(batch for batch in live if batch.id in numbers)
    again = reads_again(aside, batches)
    intent = Intent(0, origin.table, _application(aside, origin), _MERGED, first, last, "copy")
    state = replace(aside.ledger.table_states(source)[origin.table], mirror=NAME)
    based = origin.changes.base is not None
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
        emptied=emptied_stamps(aside, origin.table, origin.plan, batches),
        read_stamp=read_stamp(aside, origin.table, origin.plan, batches, stamped=bool(line.stamps)),
        may_repeat=again,
        all_new=not again and not aside.ledger.gaps(source),
    )
