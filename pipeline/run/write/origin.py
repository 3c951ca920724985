"""Chooses what a mirror (the Delta table with a table's current rows) is rewritten from
without asking MySQL: an earlier version of it, and the changelog since.

The earliest readable version is chosen, so that an error of a later version is not
copied: the rows after it are made from the changes again. A table of the past begins
with the newest version before its place instead, because then the fewest changes are
read (`pipeline.run.rebuild`). The ledger lists the versions, without those that
follow another program's commit to the mirror.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import groupby

from lockstep.pipeline.mirror.merging import ChangelogOrigin, ReloadOrigin, plan_merge, whole_since
from lockstep.pipeline.model.batch import TableContent
from lockstep.pipeline.ports.ledger import LAST_BATCH
from lockstep.pipeline.run.context import Workplace
from lockstep.pipeline.run.stop_errors import read_after_resume_error, reread_error
from lockstep.pipeline.values.decisions import Continuity
from lockstep.pipeline.values.errors import TableError
from lockstep.pipeline.values.intent import Intent, MirrorVersion
from lockstep.pipeline.values.table import TableName


def from_earlier_version(
    work: Workplace, table: TableName, parts: Sequence[TableContent], *, before: int = LAST_BATCH
) -> ReloadOrigin:
    """Return the earliest version of a table's mirror after which its changelog is
    complete, with the changes since; or a sentence that says why there is none.
    `parts`: the table's content of all batches, oldest first; `before`: the first batch
    that the mirror lacks."""
    since = max(whole_since(parts, before), _kept_since(work, table))
    versions = work.ledger.mirror_versions(work.source.name, table, before - 1)
    bases = [base for base in versions if base.last_batch >= since and base.write_id is not None]
    base = earliest_readable(work, bases)
    if base is None:
        return f"no version of its mirror can be read that shows batch {since} or a later one"
    later = tuple(part for part in parts if part.batch > base.last_batch)
    if not later and work.mirrors.version(base.mirror) == base.delta_version:
        return f"{base}, its newest, is the earliest that can be read"
    try:
        return ChangelogOrigin(later, shown_by(base, parts), base)
    except TableError as error:
        return error.reason


def origin_of_write(
    work: Workplace, intent: Intent, parts: Sequence[TableContent], before: int
) -> ChangelogOrigin:
    """Return the earlier version with which a write begins. If the intent (the ledger's
    record of a begun write) names one, it is that version, so that a second try writes
    the same rows; otherwise it is chosen now. Raise `TableError` if there is none.
    `parts`, `before`: as in `from_earlier_version`."""
    if not intent.id:
        origin = from_earlier_version(work, intent.table, parts, before=before)
        if isinstance(origin, str):
            raise read_after_resume_error(intent.table, origin)
        return origin
    pinned = intent.copied_write_id and work.ledger.mirror_version(
        work.source.name, write=intent.copied_write_id
    )
    if not pinned:
        reason = "the version of its mirror that its write was begun with is not known"
        raise read_after_resume_error(intent.table, reason)
    later = tuple(part for part in parts if part.batch > pinned.last_batch)
    return ChangelogOrigin(later, shown_by(pinned, parts), pinned)


def _kept_since(work: Workplace, table: TableName) -> int:
    """Return the last batch after which the lake has all changes of a table: none was
    deleted or must be cleared, no part of the log was skipped or read twice."""
    ledger, source = work.ledger, work.source.name
    overlaps = ledger.live_batches(source, continuity=Continuity.OVERLAP)
    return max(
        ledger.deletion_notes(source, table).through,
        *(
            note.tightening.through
            for note in ledger.uncleared_values(source)
            if note.table == table
        ),
        *(gap.batch for gap in ledger.gaps(source)),
        *(batch.id for batch in overlaps),
        0,
    )


def earliest_readable(work: Workplace, versions: Sequence[MirrorVersion]) -> MirrorVersion | None:
    """Return the earliest of these versions whose commit and files all exist; None if
    there is none. `versions`: newest first."""
    for _, group in groupby(reversed(versions), lambda version: version.mirror):
        folder = [*group]
        # Delta deletes the oldest versions first, so the readable ones can be found by
        # bisection.
        first = bisect_left(folder, True, key=lambda version: is_readable(work, version))
        if first < len(folder):
            return folder[first]
    return None


def is_readable(work: Workplace, version: MirrorVersion) -> bool:
    return why_unreadable(work, version) is None


def why_unreadable(work: Workplace, version: MirrorVersion) -> str | None:
    """Return why a version cannot be read, or is not the version that was written; None
    if it can be read."""
    return work.mirrors.reason_unreadable(
        version.mirror,
        version.delta_version,
        table_id=version.table_id,
        batch=version.last_batch,
    )


def shown_by(version: MirrorVersion, parts: Sequence[TableContent]) -> int:
    """Return the schema version that a version of a mirror shows: the last one under
    which batches up to there recorded anything. Raise `TableError` if it is unknown."""
    earlier = [part for part in parts if part.batch <= version.last_batch]
    shown = plan_merge(earlier).final if earlier else 0
    if not shown:
        raise reread_error(f"it is not known which structure {version} has")
    return shown
