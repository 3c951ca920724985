"""Finds from what a mirror (the Delta table with a table's current rows) can be
rewritten without MySQL: from its changelog alone, or from an earlier version and the
changelog after it. An origin is usable if its rows can be converted to the table's
present columns and its files are not damaged.

Not here: choosing the earlier version (`run.write.origin`), and choosing between these
origins and MySQL (`pipeline.supply`).
"""

from __future__ import annotations

from collections.abc import Sequence

from lockstep.pipeline.mirror.layout import changelog_path
from lockstep.pipeline.mirror.merging import ChangelogOrigin, OriginOrReason, reload_origin
from lockstep.pipeline.model.batch import TableContent
from lockstep.pipeline.model.table_state import TableState
from lockstep.pipeline.ports.ledger import table_contents
from lockstep.pipeline.run.context import RunPorts
from lockstep.pipeline.run.write.job import (
    lineage_of_copy,
    lineage_over,
    require_copyable,
    versions_between,
)
from lockstep.pipeline.run.write.origin import origin_from_earlier_version
from lockstep.pipeline.schema.history import Knowledge
from lockstep.pipeline.values.decisions import Continuity
from lockstep.pipeline.values.errors import TableError
from lockstep.pipeline.values.table import TableName


def changelog_origin_of(
    ports: RunPorts,
    state: TableState,
    *,
    check_files: bool = True,
    contents: Sequence[TableContent] | None = None,
) -> OriginOrReason:
    """Return the part of the changelog from which a mirror can be rewritten, or a
    sentence that says why there is none. The part begins where the table was empty.
    `check_files`: also read the files, to find damage. `contents`: the table's content
    in all batches, if it was read already."""
    source, table = ports.source.name, state.table
    deletion_notes = ports.ledger.deletion_notes(source, table)
    origin = reload_origin(
        _contents(ports, table) if contents is None else contents,
        is_adopted=state.adopted_version is not None,
        batches_after_gaps=[gap.batch for gap in ports.ledger.gaps(source)],
        overlapping_batches=[
            batch.id for batch in ports.ledger.live_batches(source, continuity=Continuity.OVERLAP)
        ],
        first_unshown_batch=state.missing_since,
        deleted_through=deletion_notes.last_batch,
        reason_deleted="" if deletion_notes.newest is None else deletion_notes.newest.reason,
    )
    return _usable_origin(ports, table, origin, check_files=check_files)


def earlier_version_origin_of(
    ports: RunPorts,
    state: TableState,
    *,
    check_files: bool = True,
    contents: Sequence[TableContent] | None = None,
) -> OriginOrReason:
    """Return an earlier version of the mirror and the changelog after it, from which
    the mirror can be rewritten, or a sentence that says why there is none.
    `check_files`: also read the files, to find damage. `contents`: the table's content
    in all batches, if it was read already."""
    table = state.table
    contents = _contents(ports, table) if contents is None else contents
    return _usable_origin(
        ports, table, origin_from_earlier_version(ports, table, contents), check_files=check_files
    )


def _contents(ports: RunPorts, table: TableName) -> Sequence[TableContent]:
    source = ports.source.name
    newest = ports.ledger.cursors(source).captured
    return [] if newest is None else table_contents(ports.ledger, source, table, 1, newest.batch)


def _usable_origin(
    ports: RunPorts, table: TableName, origin: OriginOrReason, *, check_files: bool
) -> OriginOrReason:
    """Return the origin, or a sentence that says why the mirror cannot be rewritten
    from it."""
    if isinstance(origin, str):
        return origin
    reason = _reason_unfit(ports, table, origin) or (
        _damage_sentence(ports, table, origin) if check_files else None
    )
    return origin if reason is None else reason


def _reason_unfit(ports: RunPorts, table: TableName, origin: ChangelogOrigin) -> str | None:
    """Return why the origin's rows cannot be converted to the table's present columns;
    None if they can."""
    history = ports.ledger.schema_versions(ports.source.name, table)
    if not history or history[-1].knowledge is not Knowledge.KNOWN:
        return "its present structure is not known"
    segments = [segment for content in origin.contents for segment in content.segments]
    try:
        versions = versions_between(ports, table, origin.version, history[-1].version)
        if origin.base is None:
            lineage = lineage_over(ports, versions)
        else:
            batch_ids = [content.batch for content in origin.contents]
            require_copyable(
                ports, table, f"it would begin with {origin.base}", batch_ids, segments
            )
            lineage = lineage_of_copy(ports, origin.base, versions)
    except TableError as error:
        return error.reason
    schema_versions = {segment.schema_version for segment in segments}
    if lineage.reasons_to_reread:
        return lineage.reasons_to_reread[0]
    if lineage.columns_by_key:
        return f"values of {', '.join(lineage.columns_by_key)} are not in it"
    merged_versions = schema_versions & lineage.versions.keys()
    if lineage.key_of(merged_versions | {history[-1].version}) is None:
        return "no key tells its rows apart in every version it had"
    return None


def _damage_sentence(ports: RunPorts, table: TableName, origin: ChangelogOrigin) -> str | None:
    sentences: list[str] = []
    for content in origin.contents:
        for segment in content.segments:
            version = ports.ledger.schema_version(ports.source.name, table, segment.schema_version)
            folder = changelog_path(ports.source.name, table, version.generation)
            sentences += ports.segments.damage_sentences(folder, segment.files)
    if not sentences:
        return None
    more_clause = f" (and {len(sentences) - 1} more)" if len(sentences) > 1 else ""
    return f"its changelog is damaged: {sentences[0]}{more_clause}"
