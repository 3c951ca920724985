"""A lake brought to one batch: its mirrors show it, its changelogs list nothing behind it.

Belongs here: those commits, none of which moves a row. Does not: which batch (`pipeline.recovery`),
the ledger's side (`recover`).
"""

from __future__ import annotations

from collections.abc import Iterable

from pipeline.changes.layout import application_id
from pipeline.changes.source_tables import source_table_id
from pipeline.errors import TableError
from pipeline.lake_commit import FORMAT, WriteKind, restamped, stamp
from pipeline.ports.held import Held
from pipeline.recovery.facts import Adopted, Told
from pipeline.runs.agreement.changelog_files import batches_of
from pipeline.runs.context import Workplace
from pipeline.runs.recovering.lake_facts import GatheredLake, Listed
from pipeline.segment import SegmentFile, SourceTable, batch_of
from pipeline.table import TableName
from pipeline.table_state import TableCondition, TableState


def restore_mirrors(
    work: Workplace, adopted: Iterable[Adopted], held: Held
) -> tuple[list[tuple[Adopted, int]], list[tuple[TableName, str]]]:
    """Each table that is taken over, with the Delta version of its mirror; and those of which
    that was refused, and why."""
    done, refused = [], []
    for adoption in adopted:
        version, folder = adoption.mirror.newest, adoption.mirror.folder
        if adoption.restored:
            words = restamped(adoption.shown.words, WriteKind.RESTORE, restored=adoption.version)
            work.progress.note(f"{folder} shows version {adoption.version} once more")
            try:
                version = work.mirrors.restore(folder, adoption.version, words, held)
            except TableError as error:
                refused.append((adoption.mirror.table, error.reason))
                continue
        done.append((adoption, version))
    return done, refused


def cut_changelogs(
    work: Workplace, gathered: GatheredLake, told: Told, held: Held
) -> dict[str, int]:
    """What is behind the batch is listed no more; the versions of what was changed."""
    found = {}
    for changelog in gathered.listed:
        if not changelog.changes(told.batch):
            continue
        files = files_up_to(work, changelog, told.batch)
        work.progress.note(f"{changelog.folder} lists what there was at {told.at}")
        done = work.changelog.restate(
            changelog.folder,
            app_id=_app_id(work, gathered, changelog),
            batch=told.batch,
            files=files,
            words=_restated(work, changelog, told),
            held=held,
        )
        if done.delta_version is not None:
            found[changelog.folder] = done.delta_version
    return found


def files_up_to(work: Workplace, changelog: Listed, batch: int) -> list[SegmentFile]:
    """The files that it is to list. Where some of these are gone, and somebody else put their rows
    into files with no later batch's, those stay in the place of all that they were made of."""
    wanted = [
        SegmentFile(path, file.rows or 0, file.size or 0, "")
        for path, file in changelog.own.items()
        if (batch_of(path) or 0) <= batch
    ]
    lacking = [file for file in wanted if file.path not in changelog.files]
    if not work.segments.damaged(changelog.folder, lacking) or _later(work, changelog, batch):
        return wanted
    kept = [file for file in wanted if file.path in changelog.files]
    return [*kept, *(SegmentFile(one, 0, changelog.files[one], "") for one in changelog.foreign)]


def lost_with(work: Workplace, changelog: Listed, batch: int) -> list[str]:
    """What is wrong with the files that it cannot list, in sentences."""
    files = files_up_to(work, changelog, batch)
    lacking = [file for file in files if file.path not in changelog.files]
    return work.segments.damaged(changelog.folder, lacking)


def _later(work: Workplace, changelog: Listed, batch: int) -> bool:
    """Whether files of somebody else's have rows of later batches, or nobody can tell."""
    found = (batches_of(work, changelog.folder, path) for path in changelog.foreign)
    return any(0 in batches or max(batches, default=0) > batch for batches in found)


def _app_id(work: Workplace, gathered: GatheredLake, listed: Listed) -> str:
    source = work.source.name
    if isinstance(listed.table, SourceTable):
        return source_table_id(source, listed.table)
    mirrors = {one.table: one for one in gathered.facts.mirrors}
    mirror = mirrors.get(listed.table)
    generation = 1 if mirror is None else mirror.generation + 1
    state = TableState(listed.table, TableCondition.ACTIVE, generation, "", listed.folder)
    return application_id(source, state, "changelog", listed.generation)


def _restated(work: Workplace, listed: Listed, told: Told) -> str:
    said = {
        "kind": WriteKind.RESTATE.value,
        "format": FORMAT,
        "ledger": told.ledger,
        "source": work.source.name,
        "table": str(listed.table),
        "batches": [told.batch, told.batch],
        "position": str(told.at),
        "restated": True,
    }
    if isinstance(listed.table, TableName):
        said["name"] = [listed.table.database, listed.table.name]
    return stamp(said)
