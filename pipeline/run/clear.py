"""Clearing: delete old values in plaintext that the settings now hide, once nobody
needs them.

If settings are tightened (they show less of a table than before), the table is read
again, but older files and versions in the lake still have the values. Everything up to
the batch of the tightening is cleared, in five steps:

1. The ledger records that clearing begins. From then on, nobody can read the table's
   old changes.
2. The old changes are removed from the table's changelogs, and their files are deleted.
   So are files of other programs, into which changes may have been put, and rows that a
   killed run left.
3. All earlier versions of the mirror (the Delta table with the current rows) are
   removed: its log begins again with an empty commit after the newest version, whose
   rows were read again. Folders that the mirror had before are deleted.
4. Texts of old statements are removed from the system table `_transactions`, and values
   in these texts from the system table `_ddl`. New files replace the old ones, first in
   the ledger and then in the lake, and the old files are deleted. So are files that a
   killed replay left.
5. Values in recorded structures, such as DEFAULTs, are removed from the lake and then
   from the ledger. The ledger also removes them from statements, and records that the
   table is cleared.

A repeated step does nothing, so an interrupted clearing begins again with the first
step. Files are deleted at once, without waiting for the retention of versions: hiding
the values takes precedence.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import pyarrow as pa

from lockstep.pipeline.mirror.layout import application_id, scratch_path, snapshot_path
from lockstep.pipeline.mirror.system_tables import (
    SYSTEM_TABLE_SCHEMAS,
    system_table_app_id,
    system_table_path,
)
from lockstep.pipeline.model.foreign_commits import AllExpected
from lockstep.pipeline.model.lake_commit import WriteKind
from lockstep.pipeline.model.table_state import TableState
from lockstep.pipeline.ports.ledger import captured_batches
from lockstep.pipeline.run.agreement.changelog_files import (
    changelogs_of,
    correct_changelogs,
    system_table,
)
from lockstep.pipeline.run.agreement.lake_logs import mirror_judgement
from lockstep.pipeline.run.commit_metadata import removal_metadata, upkeep_metadata
from lockstep.pipeline.run.context import RunPorts
from lockstep.pipeline.run.mirror_folders import (
    former_folders,
    remove_former_folders,
    table_of_folder,
)
from lockstep.pipeline.run.reshaping import reason_kept, record_keep_clear
from lockstep.pipeline.schema.effects import EMPTIED
from lockstep.pipeline.schema.history import REDACTED_KEY, SchemaStatement
from lockstep.pipeline.schema.history_check import read_stored_context
from lockstep.pipeline.schema.model import TableSchema
from lockstep.pipeline.shape.redaction import REDACTED, redact_statement
from lockstep.pipeline.shape.shaping import redact_schema
from lockstep.pipeline.upkeep.clearing import ClearedFile, ClearedLedgerRows, UnclearedValues
from lockstep.pipeline.values.decisions import Lease
from lockstep.pipeline.values.errors import LeaseLost, LockstepError, TableError
from lockstep.pipeline.values.segment import SegmentFile, SystemTable, batch_of, with_revised_names
from lockstep.pipeline.values.table import TableName

_TEXT_COLUMNS: Final = {SystemTable.TRANSACTIONS: "statements", SystemTable.DDL: "statement"}
"""The column with texts of statements, in each system table (`_transactions`,
`_ddl`)."""
_NO_COLUMNS: Final = pa.schema([])
_PAGE_SIZE: Final = 1000
"""Number of statements, or of batches, that are read from the ledger at once."""
_NEXT_RUN: Final = "the next run tries again"
_QUOTES: Final = re.compile("['\"]")


def clear(ports: RunPorts, lease: Lease) -> tuple[UnclearedValues, ...]:
    """Clear the values that nobody needs any more. Return the tightenings that are now
    completely cleared."""
    # `keep_clear` may have changed since the last run, because upkeep clears without a
    # run.
    record_keep_clear(ports, lease)
    cleared = []
    for note in clearable(ports):
        try:
            _clear_values(ports, lease, note)
        except LeaseLost:
            raise
        except (LockstepError, TableError) as error:
            # The run itself has succeeded: the next run tries to clear the table again.
            reason = error.reason if isinstance(error, TableError) else error.message
            ports.progress.note(f"{note.table}: {note.sentence}, and are not cleared yet: {reason}")
            continue
        ports.progress.note(
            f"{note.table}: no values of {note.tightening.hidden_in_words} are left in the lake or "
            f"the ledger, nor versions of its mirror from before batch {note.tightening.last_batch}"
        )
        cleared.append(note)
    return tuple(cleared)


def clearable(ports: RunPorts) -> Iterator[UnclearedValues]:
    """Yield the tightenings whose values nobody needs any more by the present settings.
    Nothing is written."""
    for note in ports.ledger.uncleared_values(ports.source.name):
        if not note.has_begun:
            tightening = replace(note.tightening, kept_because=reason_kept(ports, note))
            note = replace(note, tightening=tightening)
        folder = note.dropped_mirror
        if note.is_needed or (folder is not None and ports.mirrors.version(folder) is not None):
            continue
        yield note


def _clear_values(ports: RunPorts, lease: Lease, note: UnclearedValues) -> None:
    """Carry out the five steps for one tightening."""
    if not note.has_begun:
        ports.ledger.begin_clearing(lease, note.id)
    statements = _redacted_statements(ports, note)
    _unlist_foreign_files(ports, lease, note)
    _clear_changes(ports, lease, note)
    _clear_mirror(ports, lease, note)
    _clear_former_folders(ports, lease, note)
    if ports.ledger.revisions(ports.source.name).open is None:
        # A replay that was killed may have left files with the values there.
        ports.segments.delete_folder(scratch_path(ports.source.name))
    for table in SystemTable:
        _clear_texts(ports, lease, note, table, statements)
    _clear_structures(ports, note)
    ports.ledger.require_held(lease)
    ports.ledger.clear_ledger_rows(
        lease, note.id, _redacted_ledger_rows(ports, note, statements.values())
    )


def _unlist_foreign_files(ports: RunPorts, lease: Lease, note: UnclearedValues) -> None:
    """Have changelogs list the captured files again if another program put changes into
    files of its own: these may have the values, and are deleted with the others. Raise
    `TableError` if captured files are lost."""
    source = ports.source.name
    changelogs = changelogs_of(source, [ports.ledger.table_states(source)[note.table]])
    system_tables = (system_table(source, table) for table in SystemTable)
    for check in correct_changelogs(ports, lease, [*changelogs, *system_tables]):
        if check.reason_not_corrected is not None:
            raise TableError(check.reason_not_corrected, hint=_NEXT_RUN)


def _clear_changes(ports: RunPorts, lease: Lease, note: UnclearedValues) -> None:
    """Carry out step 2."""
    source, last = ports.source.name, note.tightening.last_batch
    require_held = partial(ports.ledger.require_held, lease)
    if ports.ledger.pending_batches(source).get(note.table):
        raise TableError("its changes wait to be merged", hint=_NEXT_RUN)
    require_held()
    for load, _ in ports.ledger.ended_loads(source, note.table):
        # A process that died may have left files of a load that it voided.
        ports.segments.delete_load(snapshot_path(source, note.table), load)
    state = ports.ledger.table_states(source)[note.table]
    for changelog in changelogs_of(source, [state]):
        listed = ports.changelog.listed_files(changelog.folder) or {}
        old_paths = [
            path for path in listed if (batch := batch_of(path)) is not None and batch <= last
        ]
        if old_paths:
            ports.changelog.revise(
                changelog.folder,
                app_id=f"{changelog.app_id}/cleared",
                revision=note.id,
                schema=_NO_COLUMNS,
                removed_paths=old_paths,
                files=(),
                user_metadata=removal_metadata(ports, WriteKind.FORGET, note.table, (1, last)),
                require_held=require_held,
            )
        kept_names = listed.keys() - {*old_paths}
        ports.segments.delete_batches(changelog.folder, last, kept_names, require_held)


def _clear_mirror(ports: RunPorts, lease: Lease, note: UnclearedValues) -> None:
    """Carry out step 3. Do nothing if the table has no mirror, or if the mirror with
    the values is already gone."""
    source = ports.source.name
    state = ports.ledger.table_states(source)[note.table]
    if state.mirror_schema_version is None or note.dropped_mirror is not None:
        return
    examined_version = ports.ledger.examined_versions(source).get(state.mirror)
    try:
        target = upkeep_target(ports, state, examined_version)
    except TableError as error:
        raise TableError(f"its mirror's log stays: {error.reason}", hint=error.hint) from error

    def record(version: int) -> None:
        # The ledger records this commit as checked before the log is cut: without the
        # earlier commits, the next examination of the log could not tell that this one
        # is Lockstep's.
        ports.ledger.note_examined_versions(lease, {state.mirror: version})
        ports.ledger.note_upkeep_version(
            lease, state.mirror, shows=target.written_version, delta_version=version
        )

    require_held = partial(ports.ledger.require_held, lease)
    ports.mirrors.delete_history(
        state.mirror, target.version, target.metadata, record, require_held
    )


def _clear_former_folders(ports: RunPorts, lease: Lease, note: UnclearedValues) -> None:
    # `table_of_folder` reads the folder's Delta log: a ledger that was recovered from
    # the lake does not know which table's mirror the folder had.
    folders = former_folders(ports)
    remove_former_folders(
        ports, lease, [folder for folder in folders if table_of_folder(ports, folder) == note.table]
    )


# -- texts of statements ---------------------------------------------------------------


def _redacted_statements(ports: RunPorts, note: UnclearedValues) -> Mapping[int, SchemaStatement]:
    """Return the old statements that name the table or made a version of its structure,
    by their id in the ledger, and without the values in them."""
    source = ports.source.name
    versions = ports.ledger.schema_versions(source, note.table)
    statements_of_versions = {version.statement_number for version in versions}
    redactions = dict[int, SchemaStatement]()
    after = 0
    while page := ports.ledger.schema_statements(source, limit=_PAGE_SIZE, after=after):
        after = page[-1].id
        for statement in page:
            is_old = statement.batch <= note.tightening.last_batch
            makes_version = statement.id in statements_of_versions
            if is_old and (makes_version or _mentions(statement.text, note.table)):
                redactions[statement.id] = _redacted_statement(statement)
    return redactions


def _mentions(text: str, table: TableName) -> bool:
    """Return whether a text has a table's name as a word, or as a part of another name
    between underscores, such as the helper table of an online schema change
    (`_orders_new`)."""
    name = re.escape(table.name)
    return re.search(rf"(?<![^\W_]){name}(?![^\W_])", text, re.IGNORECASE) is not None


def _redacted_statement(statement: SchemaStatement) -> SchemaStatement:
    """Return a statement without values. The words of its effects are removed as a
    whole, because it is not known which of them are values. Those of a TRUNCATE have
    none, and show that it caused the table's event."""
    if statement.context.get(REDACTED_KEY):
        return statement
    text = redact_statement(statement.text, read_stored_context(statement.context))
    effects = tuple(
        effect if effect.words == EMPTIED else replace(effect, words=REDACTED)
        for effect in statement.effects
    )
    context = {**statement.context, REDACTED_KEY: True}
    return replace(statement, text=text, effects=effects, context=context)


def _clear_texts(
    ports: RunPorts,
    lease: Lease,
    note: UnclearedValues,
    table: SystemTable,
    statements: Mapping[int, SchemaStatement],
) -> None:
    """Carry out step 4 for one system table. The ledger records the new files first:
    whenever a run corrects what the lake lists, it follows the ledger."""
    source, last = ports.source.name, note.tightening.last_batch
    folder = system_table_path(source, table)
    require_held = partial(ports.ledger.require_held, lease)
    pruned = ports.ledger.deletion_notes(source).last_batch
    listed = ports.changelog.listed_files(folder) or {}
    files, cleared = dict[str, SegmentFile](), list[ClearedFile]()
    for batch, file in _system_files(ports, table, pruned, last, listed):
        new_file = _redacted_file(ports, note, table, batch, file, statements)
        if new_file is not None:
            cleared.append(ClearedFile(batch, table, file.path, new_file))
        kept_file = new_file or file
        files[kept_file.path] = kept_file
    if cleared:
        ports.ledger.clear_files(lease, cleared)
        ports.segments.delete_folder(scratch_path(source, folder))
    surplus = [
        path for path in listed if pruned < (batch_of(path) or 0) <= last and path not in files
    ]
    waiting_batches = {batch.id for batch in captured_batches(ports.ledger, source)}
    unlisted = [
        file
        for path, file in files.items()
        if path not in listed
        and batch_of(path) not in waiting_batches
        and not ports.segments.damage_sentences(folder, [file])
    ]
    if surplus or unlisted:
        ports.changelog.revise(
            folder,
            app_id=f"{system_table_app_id(source, table)}/cleared",
            revision=note.id,
            schema=SYSTEM_TABLE_SCHEMAS[table],
            removed_paths=surplus,
            files=unlisted,
            user_metadata=removal_metadata(ports, WriteKind.REVISE, table, (1, last)),
            require_held=require_held,
        )
    kept_paths = {*listed, *files} - {*surplus}
    ports.segments.delete_batches(folder, last, kept_paths, require_held)


def _system_files(
    ports: RunPorts, table: SystemTable, pruned: int, last: int, listed: Mapping[str, int]
) -> Iterator[tuple[int, SegmentFile]]:
    """Yield the files of the batches after `pruned`, the last batch whose changes
    are deleted, and up to `last`, each with its batch. They include files that only the
    lake lists (`listed`: the size of each file by its path), because the ledger that
    recorded them was lost. A missing file is not yielded, since it has no values left:
    an earlier clearing deleted it, and this ledger was restored from a copy without
    that clearing."""
    folder = system_table_path(ports.source.name, table)
    recorded_batches = set[int]()
    for first in range(pruned + 1, last + 1, _PAGE_SIZE):
        page_end = min(first + _PAGE_SIZE - 1, last)
        for content in ports.ledger.contents(ports.source.name, first, page_end):
            for segment in content.system_segments:
                for file in segment.files if segment.table is table else ():
                    if not _is_missing(ports, folder, file.path):
                        recorded_batches.add(content.batch)
                        yield content.batch, file
    for path, size in listed.items():
        batch = batch_of(path) or 0
        is_old = pruned < batch <= last and batch not in recorded_batches
        if is_old and not _is_missing(ports, folder, path):
            yield batch, SegmentFile(path, size=size)


def _is_missing(ports: RunPorts, folder: str, path: str) -> bool:
    # No size and checksum are given, so the only possible damage is that the file is missing.
    return bool(ports.segments.damage_sentences(folder, [SegmentFile(path)]))


def _redacted_file(
    ports: RunPorts,
    note: UnclearedValues,
    table: SystemTable,
    batch: int,
    file: SegmentFile,
    statements: Mapping[int, SchemaStatement],
) -> SegmentFile | None:
    """Write a file without the values that replaces this file, and return it. Return
    None if this file has no values to clear."""
    folder = system_table_path(ports.source.name, table)
    pieces = ports.segments.pieces(folder, [file], [_TEXT_COLUMNS[table]])
    texts = pa.concat_tables([*pieces]).column(0)
    if texts.null_count == len(texts):
        return None
    rows = pa.concat_tables([*ports.segments.pieces(folder, [file])])
    if table is SystemTable.TRANSACTIONS:
        redacted_rows = _rows_without_texts(rows)
    else:
        redacted_rows = _rows_without_literals(rows, note.table, statements.values())
    if redacted_rows.equals(rows):
        return None
    scratch = scratch_path(ports.source.name, folder)
    writer = ports.segments.open(
        scratch, batch=batch, schema_version=1, schema=redacted_rows.schema
    )
    writer.write(redacted_rows)
    files = with_revised_names(writer.close())
    ports.segments.move_files(scratch, folder, files)
    [new_file] = files
    return new_file


def _rows_without_texts(rows: pa.Table) -> pa.Table:
    for name in ("statements", "statements_cut"):
        field = rows.schema.field(name)
        at = rows.schema.get_field_index(name)
        rows = rows.set_column(at, field, pa.nulls(len(rows), field.type))
    return rows


def _rows_without_literals(
    rows: pa.Table, table: TableName, statements: Iterable[SchemaStatement]
) -> pa.Table:
    texts = {
        (str(statement.begin.file), statement.begin.offset): statement.text
        for statement in statements
    }
    cleared = []
    for row in rows.to_pylist():
        touched_names = {(touched["database"], touched["name"]) for touched in row["tables"] or ()}
        if (table.database, table.name) in touched_names or _mentions(row["statement"], table):
            row["statement"] = texts.get((row["_file"], row["_offset"]), REDACTED)
            for touched in row["tables"] or ():
                touched["effect"] = touched["effect"] and REDACTED
                if _QUOTES.search(touched["reason"] or ""):
                    touched["reason"] = REDACTED
        cleared.append(row)
    return pa.Table.from_pylist(cleared, schema=rows.schema)


# -- structures ------------------------------------------------------------------------


def _columns_to_redact(note: UnclearedValues, schema: TableSchema) -> frozenset[str]:
    """Return the columns of an old structure whose values are cleared: all of them if
    the tightening hides any column, because that column may have had another name then;
    otherwise none."""
    return frozenset(map(str.lower, schema.names if note.tightening.columns else ()))


def _clear_structures(ports: RunPorts, note: UnclearedValues) -> None:
    newest = ports.ledger.schema_at(ports.source.name, note.table)

    def cleared(schema: TableSchema) -> TableSchema:
        if schema.name != note.table or (newest is not None and schema == newest.schema):
            return schema
        return redact_schema(schema, _columns_to_redact(note, schema))

    ports.claims.clear_structures(ports.source.name, cleared)


def _redacted_ledger_rows(
    ports: RunPorts, note: UnclearedValues, statements: Iterable[SchemaStatement]
) -> ClearedLedgerRows:
    source = ports.source.name
    versions = [
        version
        if version.schema is None
        else ports.shaping.cleared_version(version, _columns_to_redact(note, version.schema))
        for version in ports.ledger.schema_versions(source, note.table)
        if version.batch <= note.tightening.last_batch
    ]
    loads = [
        (
            load,
            redact_schema(
                schema, ports.shaping.hidden_columns(schema) | _columns_to_redact(note, schema)
            ),
        )
        for load, schema in ports.ledger.ended_loads(source, note.table)
    ]
    return ClearedLedgerRows(versions, tuple(statements), loads)


# -- mirrors that may get a commit which changes no row --------------------------------


@dataclass(frozen=True, slots=True)
class UpkeepTarget:
    """A mirror that may get a commit which changes no row, such as a compaction.

    - `version`: its newest version.
    - `written_version`: the version of the last write that changed rows.
    - `metadata`: the user metadata for the commit.
    - `is_unrecorded`: upkeep made `version`, and the ledger has not recorded that yet.
    """

    table: TableName
    mirror: str
    version: int
    written_version: int
    metadata: str
    is_unrecorded: bool


def upkeep_target(
    ports: RunPorts, state: TableState, examined_version: int | None, upkeep_version: int = -1
) -> UpkeepTarget:
    """Return the table's mirror. Raise `TableError` if upkeep must not commit to it.
    `examined_version`: the version up to which its Delta log was checked for
    commits of other programs. `upkeep_version`: the newest version by upkeep that the
    ledger recorded."""
    mirror, app_id = state.mirror, application_id(ports.source.name, state, "mirror")
    newest = ports.ledger.newest_writes(ports.source.name, [app_id])[app_id]
    write = newest.settled_write
    if write is None or write.delta_version < (state.adopted_version or 0):
        raise TableError("nothing was written to it since it was adopted", hint=_NEXT_RUN)
    judgement = mirror_judgement(ports, state, examined_version, newest_writes=newest)
    if not isinstance(judgement, AllExpected) or judgement.newest is None:
        raise TableError(
            "its log has a commit that is not Lockstep's; the next run reports it", hint=_NEXT_RUN
        )
    version, written_version = judgement.newest, write.delta_version
    for commit in ports.mirrors.history(mirror):
        shown_versions = (commit.delta_version, commit.copied_version)
        if written_version in shown_versions and commit.user_metadata is not None:
            return UpkeepTarget(
                state.table,
                mirror,
                version,
                written_version,
                upkeep_metadata(write, commit.user_metadata),
                is_unrecorded=shown_versions == (version, written_version)
                and upkeep_version < version,
            )
        if commit.delta_version < written_version:
            break
    raise TableError(
        f"its log no longer has the commit of version {written_version}, whose metadata would be "
        "repeated: that is possible again after the next write",
        hint=_NEXT_RUN,
    )
