"""What stands in clear of a table of which less is shown now, cleared once nobody needs it.

1. The ledger notes that it begins: from then on nobody is given the table's changes of before.
2. The table's changelogs list none of them, and their files are deleted.
3. The mirror's log begins at an empty commit after its newest version, which shows rows that were
   read again; folders that the mirror had before are deleted.
4. Texts of statements of before go from `_transactions`, and values from those in `_ddl`: other
   files take the place of theirs, in the lake and then in the ledger, and those are deleted.
5. Structures in the lake lose the values, then those and statements in the ledger, which notes that
   nothing is left.

Each step does nothing where it was done, so that what was cut off begins once more from the first.
Files that a changelog or a mirror does not list any more are deleted at once, and not after the
time for which versions are promised: that less is to be seen is the reason to break it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Final

import pyarrow as pa

from pipeline.changes.layout import application_id, scratch_path
from pipeline.changes.source_tables import SCHEMAS, source_table_id, source_table_path
from pipeline.decisions import Lease
from pipeline.errors import LeaseLost, LockstepError, TableError
from pipeline.foreign_commits import Passed
from pipeline.intent import SettledWrite
from pipeline.runs.agreement.changelog_files import changelogs_of
from pipeline.runs.agreement.lake_logs import judged
from pipeline.runs.commit_records import (
    cleared_metadata,
    forgotten_metadata,
    upkept_metadata,
)
from pipeline.runs.context import Workplace
from pipeline.runs.mirror_places import delete_former, former_places, owner_of
from pipeline.runs.reshaping import note_keep_clear
from pipeline.schema.history import REDACTED_TEXT, SchemaStatement
from pipeline.schema.model import TableSchema
from pipeline.schema.refold import read_stored_context
from pipeline.segment import SegmentFile, SourceTable, batch_of, revised
from pipeline.shape.redaction import REDACTED, redacted
from pipeline.shape.shaping import redacted as redacted_schema
from pipeline.table import TableName
from pipeline.upkeep.clearing import ClearedBooks, ClearedFile, InClear

_TEXT: Final = {SourceTable.TRANSACTIONS: "statements", SourceTable.DDL: "statement"}
_NOTHING: Final = pa.schema([])
_AT_ONCE: Final = 1000
_QUOTED: Final = re.compile(r"'(?:[^'\\]|''|\\.)*'")


def clear(work: Workplace, lease: Lease) -> tuple[InClear, ...]:
    """Clear what nobody needs; the tightenings after which nothing is left in clear."""
    # Also what was said since the run began with that, and before an upkeep, which does not.
    note_keep_clear(work, lease)
    done = []
    for note in work.ledger.in_clear(work.source.name):
        if note.held or (note.gone is not None and work.mirrors.version(note.gone) is not None):
            continue
        try:
            _cleared(work, lease, note)
        except LeaseLost:
            raise
        except (LockstepError, TableError) as error:
            # Nothing of the run is wrong: the next one begins with it once more.
            why = error.reason if isinstance(error, TableError) else error.message
            work.progress.note(f"{note.table}: {note.sentence}, and are not cleared yet: {why}")
            continue
        work.progress.note(
            f"{note.table}: no values of {note.tightening.told} are left in the lake or the "
            f"ledger, nor versions of its mirror from before batch {note.tightening.through}"
        )
        done.append(note)
    return tuple(done)


def _cleared(work: Workplace, lease: Lease, note: InClear) -> None:
    if not note.begun:
        work.ledger.begin_clearing(lease, note.id)
    statements = _statements(work, note)
    _clear_changes(work, lease, note)
    _clear_mirror(work, lease, note)
    _clear_former(work, lease, note)
    for part in SourceTable:
        _clear_texts(work, lease, note, part, statements)
    _clear_structures(work, note)
    work.ledger.require_held(lease)
    work.ledger.clear_books(lease, note.id, _books(work, note, statements.values()))


def _clear_changes(work: Workplace, lease: Lease, note: InClear) -> None:
    source, through = work.source.name, note.tightening.through
    held = partial(work.ledger.require_held, lease)
    state = work.ledger.table_states(source)[note.table]
    for changelog in changelogs_of(source, [state]):
        listed = work.changelog.listed(changelog.folder) or {}
        gone = [path for path in listed if (batch_of(path) or through + 1) <= through]
        if gone:
            work.changelog.revise(
                changelog.folder,
                app_id=f"{changelog.app_id}/cleared",
                revision=note.id,
                schema=_NOTHING,
                gone=gone,
                files=(),
                words=forgotten_metadata(work, note.table, 0, through),
                held=held,
            )
        work.segments.purge(changelog.folder, through, held=held)


def _clear_mirror(work: Workplace, lease: Lease, note: InClear) -> None:
    source = work.source.name
    state = work.ledger.table_states(source)[note.table]
    if state.mirror_version is None or note.gone is not None:
        return
    app_id = application_id(source, state, "mirror")
    relation = judged(work, state, work.ledger.looked(source).get(state.mirror))
    if not isinstance(relation, Passed) or relation.newest is None:
        raise TableError(
            "the log of its mirror has a commit that is not Lockstep's",
            hint="the next run reports it",
        )
    write = work.ledger.newest_writes(source, [app_id])[app_id].settled
    said = None if write is None else _said(work, state.mirror, write)
    if write is None or said is None or write.delta_version < (state.adopted or 0):
        raise TableError(
            "the log of its mirror no longer tells which write made the rows that it shows",
            hint="it is cleared after the table's next write",
        )
    shows = write.delta_version

    def noted(version: int) -> None:
        # Before the log loses the commits behind which that one is the next.
        work.ledger.note_looked(lease, {state.mirror: version})
        work.ledger.note_upkept(lease, state.mirror, shows=shows, delta_version=version)

    said = upkept_metadata(write, said)
    held = partial(work.ledger.require_held, lease)
    work.mirrors.cut(state.mirror, relation.newest, said, noted, held)


def _said(work: Workplace, mirror: str, write: SettledWrite) -> str | None:
    """What a write said, by its commit or one that repeats it."""
    shows = write.delta_version
    for commit in work.mirrors.history(mirror):
        if shows in (commit.delta_version, commit.repeats):
            return commit.user_metadata
        if commit.delta_version < shows:
            break
    return None


def _clear_former(work: Workplace, lease: Lease, note: InClear) -> None:
    """The folders' logs say whose mirrors were there, also to a ledger made from the lake."""
    former = former_places(work.ledger, work.source.name)
    delete_former(work, lease, [one for one in former if owner_of(work, one) == note.table])


# -- texts of statements -----------------------------------------------------------------------


def _statements(work: Workplace, note: InClear) -> Mapping[int, SchemaStatement]:
    """Those of before that name the table or made a version of it, by their numbers, without
    values."""
    source, found, after = work.source.name, dict[int, SchemaStatement](), 0
    made = {version.statement for version in work.ledger.schema_versions(source, note.table)}
    while some := work.ledger.schema_statements(source, limit=_AT_ONCE, after=after):
        after = some[-1].id
        for one in some:
            about = one.id in made or _names(one.text, note.table)
            if about and one.batch <= note.tightening.through:
                found[one.id] = _without_values(one)
    return found


def _names(text: str, table: TableName) -> bool:
    """Whether a text has a table's name, also as a part of another, as helpers of online schema
    changes have it."""
    name = re.escape(table.name)
    return re.search(rf"(?<![^\W_]){name}(?![^\W_])", text, re.IGNORECASE) is not None


def _without_values(statement: SchemaStatement) -> SchemaStatement:
    if statement.context.get(REDACTED_TEXT):
        return statement
    text = redacted(statement.text, read_stored_context(statement.context))
    effects = tuple(_QUOTED.sub(REDACTED, effect) for effect in statement.effects)
    context = {**statement.context, REDACTED_TEXT: True}
    return replace(statement, text=text, effects=effects, context=context)


def _clear_texts(
    work: Workplace,
    lease: Lease,
    note: InClear,
    part: SourceTable,
    statements: Mapping[int, SchemaStatement],
) -> None:
    source, through = work.source.name, note.tightening.through
    folder = source_table_path(source, part)
    held = partial(work.ledger.require_held, lease)
    above = work.ledger.forgotten(source).through
    cleared, kept = list[ClearedFile](), set[str]()
    for batch, file in _files(work, part, above, through):
        after = _file_without(work, note, part, batch, file, statements)
        kept.add(file.path if after is None else after.path)
        if after is not None:
            cleared.append(ClearedFile(batch, part, file.path, after))
    if cleared:
        work.changelog.revise(
            folder,
            app_id=f"{source_table_id(source, part)}/cleared",
            revision=note.id,
            schema=SCHEMAS[part],
            gone=[file.before for file in cleared],
            files=[file.after for file in cleared],
            words=cleared_metadata(work, part, through),
            held=held,
        )
        work.ledger.clear_files(lease, cleared)
        work.segments.clear(scratch_path(source, folder))
    listed = work.changelog.listed(folder) or {}
    work.segments.purge(folder, through, {*kept, *listed}, held)


def _files(
    work: Workplace, part: SourceTable, above: int, through: int
) -> Iterator[tuple[int, SegmentFile]]:
    """The files of the batches behind `above` up to `through`, each with its batch; among them
    those that the lake lists of a ledger that is lost."""
    folder = source_table_path(work.source.name, part)
    listed = {**(work.changelog.listed(folder) or {})}
    for first in range(above + 1, through + 1, _AT_ONCE):
        last = min(first + _AT_ONCE - 1, through)
        for content in work.ledger.contents(work.source.name, first, last):
            for one in content.source_parts:
                for file in one.files if one.table is part else ():
                    listed.pop(file.path, None)
                    yield content.batch, file
    for path, size in listed.items():
        if above < (batch := batch_of(path) or 0) <= through:
            yield batch, SegmentFile(path, 0, size, "")


def _file_without(
    work: Workplace,
    note: InClear,
    part: SourceTable,
    batch: int,
    file: SegmentFile,
    statements: Mapping[int, SchemaStatement],
) -> SegmentFile | None:
    """The file that takes the place of one, durable there; None if that one has no values."""
    folder = source_table_path(work.source.name, part)
    texts = pa.concat_tables([*work.segments.pieces(folder, [file], [_TEXT[part]])]).column(0)
    if texts.null_count == len(texts):
        return None
    rows = pa.concat_tables([*work.segments.pieces(folder, [file])])
    if part is SourceTable.TRANSACTIONS:
        bare = _without_texts(rows)
    else:
        bare = _without_literals(rows, note.table, statements.values())
    if bare.equals(rows):
        return None
    scratch = scratch_path(work.source.name, folder)
    writer = work.segments.open(scratch, batch=batch, schema_version=1, schema=bare.schema)
    writer.write(bare)
    files = revised(writer.close())
    work.segments.bring(scratch, folder, files)
    [after] = files
    return after


def _without_texts(rows: pa.Table) -> pa.Table:
    for name in ("statements", "statements_cut"):
        field = rows.schema.field(name)
        at = rows.schema.get_field_index(name)
        rows = rows.set_column(at, field, pa.nulls(len(rows), field.type))
    return rows


def _without_literals(
    rows: pa.Table, table: TableName, statements: Iterable[SchemaStatement]
) -> pa.Table:
    texts = {(str(one.begin.file), one.begin.offset): one.text for one in statements}
    found = []
    for row in rows.to_pylist():
        touched_names = {(one["database"], one["name"]) for one in row["tables"] or ()}
        if (table.database, table.name) in touched_names or _names(row["statement"], table):
            row["statement"] = texts.get((row["_file"], row["_offset"]), REDACTED)
            for touched in row["tables"] or ():
                for name in ("effect", "reason"):
                    touched[name] = touched[name] and _QUOTED.sub(REDACTED, touched[name])
        found.append(row)
    return pa.Table.from_pylist(found, schema=rows.schema)


# -- structures --------------------------------------------------------------------------------


def _hidden(note: InClear, schema: TableSchema) -> frozenset[str]:
    """The columns of a structure of before whose values go: all, since one of which less is shown
    may have had another name then; none where columns are shown as before."""
    names = [column.name.lower() for column in schema.columns]
    return frozenset(names if note.tightening.columns else ())


def _clear_structures(work: Workplace, note: InClear) -> None:
    now = work.ledger.schema_at(work.source.name, note.table)

    def cleared(schema: TableSchema) -> TableSchema:
        if schema.name != note.table or (now is not None and schema == now.schema):
            return schema
        return redacted_schema(schema, _hidden(note, schema))

    work.claims.clear_structures(work.source.name, cleared)


def _books(work: Workplace, note: InClear, statements: Iterable[SchemaStatement]) -> ClearedBooks:
    source = work.source.name
    versions = [
        version
        if version.schema is None
        else work.shaping.cleared(version, _hidden(note, version.schema))
        for version in work.ledger.schema_versions(source, note.table)
        if version.batch <= note.tightening.through
    ]
    loads = [
        (load, redacted_schema(schema, work.shaping.hidden(schema) | _hidden(note, schema)))
        for load, schema in work.ledger.ended_loads(source, note.table)
    ]
    return ClearedBooks(versions, tuple(statements), loads)
