"""Tables whose mirrors are written anew: from their changelogs, or from the source."""

from __future__ import annotations

from pipeline.changes.layout import changelog_path
from pipeline.changes.reload import FromChangelog, FromSource, Origin, reload_origin
from pipeline.errors import TableError
from pipeline.runs.context import Workplace
from pipeline.runs.merging.job import lineage_over, versions_between
from pipeline.schema.history import Knowledge
from pipeline.table import TableName
from pipeline.table_state import TableState


def origin_of(work: Workplace, state: TableState, *, files: bool = True) -> Origin:
    """Where the rows of a mirror come from that is written anew; `files`: whether the
    changelog's are looked at, byte by byte."""
    source, table = work.source.name, state.table
    gone, newest = work.ledger.forgotten(source), work.ledger.captured_cursor(source)
    origin = reload_origin(
        [] if newest is None else work.ledger.contents(source, table, 1, newest.batch),
        adopted=state.adopted is not None,
        gaps=[gap.batch for gap in work.ledger.gaps(source)],
        overlaps=[batch.id for batch in work.ledger.overlaps(source)],
        tried=state.behind,
        forgotten=0 if gone is None else gone.through,
    )
    if isinstance(origin, FromSource):
        return origin
    why = _not_followed(work, table, origin) or (_damage(work, table, origin) if files else None)
    return origin if why is None else FromSource(why)


def _not_followed(work: Workplace, table: TableName, origin: FromChangelog) -> str | None:
    """Why its rows of then cannot be told in the columns of today."""
    history = work.ledger.schema_versions(work.source.name, table)
    if not history or history[-1].knowledge is not Knowledge.KNOWN:
        return "its present structure is not known"
    try:
        last = history[-1].version
        line = lineage_over(work, versions_between(work, table, origin.version, last))
    except TableError as error:
        return error.reason
    written = {segment.schema_version for part in origin.parts for segment in part.segments}
    if line.reread or line.asked:
        return (*line.reread, f"values of {', '.join(line.asked)} are not in it")[0]
    if line.key_of((written & line.versions.keys()) | {history[-1].version}) is None:
        return "no key tells its rows apart in every version it had"
    return None


def _damage(work: Workplace, table: TableName, origin: FromChangelog) -> str | None:
    """What of the changelog is missing, or is not what was written."""
    wrong: list[str] = []
    for part in origin.parts:
        for segment in part.segments:
            version = work.ledger.schema_version(work.source.name, table, segment.schema_version)
            folder = changelog_path(work.source.name, table, version.generation)
            wrong += work.segments.damaged(folder, segment.files)
    if not wrong:
        return None
    more = f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""
    return f"its changelog is damaged: {wrong[0]}{more}"
