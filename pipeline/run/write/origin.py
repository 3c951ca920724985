"""Chooses the earlier version from which a mirror (the Delta table with a table's
current rows) is rewritten without MySQL. The new rows are those of this version, with
all later changes of the changelog applied.

The earliest readable version is chosen, so that an error of a later version is not
copied. If a table is made as of an earlier place (`pipeline.run.rebuild`), the newest
version before that place is chosen instead, because then the fewest changes are read.
The ledger lists the versions, without those that follow another program's commit to the
mirror.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import groupby

from lockstep.pipeline.mirror.merging import (
    ChangelogOrigin,
    OriginOrReason,
    last_batch_to_show,
    plan_merge,
)
from lockstep.pipeline.model.batch import TableContent
from lockstep.pipeline.ports.ledger import LAST_BATCH
from lockstep.pipeline.run.context import RunPorts
from lockstep.pipeline.run.stop_errors import read_after_resume_error, reread_error
from lockstep.pipeline.values.decisions import Continuity
from lockstep.pipeline.values.errors import TableError
from lockstep.pipeline.values.intent import Intent, MirrorVersion
from lockstep.pipeline.values.table import TableName


def origin_from_earlier_version(
    ports: RunPorts,
    table: TableName,
    contents: Sequence[TableContent],
    *,
    first_missing_batch: int = LAST_BATCH,
) -> OriginOrReason:
    """Return the earliest version of a table's mirror after which its changelog is
    complete, with the changes since; or a sentence that says why there is none.
    `contents`: the table's content of all batches, oldest first; `first_missing_batch`:
    the first batch that the mirror lacks."""
    first_batch = max(
        last_batch_to_show(contents, first_missing_batch), _last_incomplete_batch(ports, table)
    )
    versions = ports.ledger.mirror_versions(ports.source.name, table, first_missing_batch - 1)
    bases = [
        base for base in versions if base.last_batch >= first_batch and base.write_id is not None
    ]
    base = earliest_readable_version(ports, bases)
    if base is None:
        return f"no version of its mirror can be read that shows batch {first_batch} or a later one"
    has_later_changes = any(content.batch > base.last_batch for content in contents)
    if not has_later_changes and ports.mirrors.version(base.mirror) == base.delta_version:
        # The mirror would be written again as it is.
        return f"{base}, its newest, is the earliest that can be read"
    try:
        return _origin_since(base, contents)
    except TableError as error:
        return error.reason


def origin_of_write(
    ports: RunPorts, intent: Intent, contents: Sequence[TableContent], first_missing_batch: int
) -> ChangelogOrigin:
    """Return the earlier version with which a write begins. A recorded intent (the
    ledger's record of a begun write) names the version, so that a second try writes the
    same rows. Otherwise the version is chosen now. Raise `TableError` if there is none.
    `contents`: the table's content of all batches, oldest first; `first_missing_batch`:
    the first batch that the mirror lacks."""
    if not intent.is_recorded:
        origin = origin_from_earlier_version(
            ports, intent.table, contents, first_missing_batch=first_missing_batch
        )
        if isinstance(origin, str):
            raise read_after_resume_error(intent.table, origin)
        return origin
    copied_version = None
    if intent.copied_write_id is not None:
        copied_version = ports.ledger.mirror_version(ports.source.name, intent.copied_write_id)
    if copied_version is None:
        reason = "the version of its mirror with which its write began is not known"
        raise read_after_resume_error(intent.table, reason)
    return _origin_since(copied_version, contents)


def _origin_since(base: MirrorVersion, contents: Sequence[TableContent]) -> ChangelogOrigin:
    """Return this version and the contents after it. Raise `TableError` if its schema
    version is unknown."""
    later_contents = tuple(content for content in contents if content.batch > base.last_batch)
    return ChangelogOrigin(later_contents, schema_version_shown_by(base, contents), base)


def _last_incomplete_batch(ports: RunPorts, table: TableName) -> int:
    """Return the last batch up to which the lake may lack or repeat changes of the
    table; 0 if there is none. Either changes up to the batch were deleted or must be
    cleared, or the log before it was skipped, or it read a part of the log again."""
    ledger, source = ports.ledger, ports.source.name
    overlaps = ledger.live_batches(source, continuity=Continuity.OVERLAP)
    return max(
        ledger.deletion_notes(source, table).last_batch,
        *(
            note.tightening.last_batch
            for note in ledger.uncleared_values(source)
            if note.table == table
        ),
        *(gap.batch for gap in ledger.gaps(source)),
        *(batch.id for batch in overlaps),
        0,
    )


def earliest_readable_version(
    ports: RunPorts, versions: Sequence[MirrorVersion]
) -> MirrorVersion | None:
    """Return the earliest of these versions whose commit and files all exist; None if
    there is none. `versions`: newest first."""
    for _, group in groupby(reversed(versions), lambda version: version.mirror):
        versions_in_folder = [*group]
        if _is_readable(ports, versions_in_folder[0]):
            return versions_in_folder[0]
        # Delta deletes the oldest versions first, so the readable ones can be found by
        # bisection.
        first_index = bisect_left(
            versions_in_folder, True, key=lambda version: _is_readable(ports, version)
        )
        if first_index < len(versions_in_folder):
            return versions_in_folder[first_index]
    # If a file of the newer versions was lost, some versions in the middle may be
    # readable.
    readable_versions = (version for version in reversed(versions) if _is_readable(ports, version))
    return next(readable_versions, None)


def newest_readable_version(
    ports: RunPorts, versions: Sequence[MirrorVersion]
) -> MirrorVersion | None:
    """Return the newest of these versions whose commit and files all exist; None if
    there is none. `versions`: newest first."""
    return next((version for version in versions if _is_readable(ports, version)), None)


def _is_readable(ports: RunPorts, version: MirrorVersion) -> bool:
    return reason_unreadable(ports, version) is None


def reason_unreadable(ports: RunPorts, version: MirrorVersion) -> str | None:
    """Return why a version cannot be read, or is not the version that was written; None
    if it can be read."""
    return ports.mirrors.reason_unreadable(
        version.mirror,
        version.delta_version,
        table_id=version.table_id,
        batch=version.last_batch,
    )


def schema_version_shown_by(version: MirrorVersion, contents: Sequence[TableContent]) -> int:
    """Return the schema version that a version of a mirror shows: the last one under
    which batches up to the mirror's last recorded anything. Raise `TableError` if the
    schema version is unknown."""
    earlier_contents = [content for content in contents if content.batch <= version.last_batch]
    schema_version = plan_merge(earlier_contents).final_version if earlier_contents else 0
    if not schema_version:
        raise reread_error(f"it is not known which structure {version} has")
    return schema_version
