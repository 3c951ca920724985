"""Reshaping: the settings of a table now give it another shape in the lake than it has
there. A shape is the choice of columns and rows, and the values that are hidden or
hashed.

Such a table is stopped and read from the source (MySQL) again, so a change of settings
costs as much as a reload. If the settings show less than before, the ledger records a
tightening: the batch up to which the lake has more of the table than the settings now
show. `clear` deletes the surplus.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import replace

from lockstep.pipeline.model.table_state import TableCondition
from lockstep.pipeline.ports.ledger import Ledger
from lockstep.pipeline.run.consent import consent_errors
from lockstep.pipeline.run.context import RunPorts
from lockstep.pipeline.run.stop_errors import reread_error, stop_at_cursor
from lockstep.pipeline.schema.history import Knowledge, SchemaVersion
from lockstep.pipeline.schema.history_check import read_stored_context
from lockstep.pipeline.schema.statements.changes import renamed_pairs
from lockstep.pipeline.schema.statements.read import read_change
from lockstep.pipeline.schema.treatments import Visibility
from lockstep.pipeline.shape.shape import shows_no_more
from lockstep.pipeline.upkeep.clearing import Tightening, UnclearedValues
from lockstep.pipeline.values.decisions import Lease
from lockstep.pipeline.values.errors import TableError
from lockstep.pipeline.values.table import TableName, TablePatterns


def stop_reshaped_tables(ports: RunPorts, lease: Lease) -> None:
    """Stop the tables that have another shape in the settings than in the lake, so that
    they are read again. Raise `ConfigurationError` if values in the lake were hashed
    with another key than the present one, unless the settings say that the key was
    replaced."""
    ledger, source = ports.ledger, ports.source.name
    # Only the holder of the lease changes these notes.
    notes = ledger.uncleared_values(source)
    errors = list(reshaped_tables(ports, notes))
    tightenings = new_tightenings(ports, notes)
    # The tightening is recorded before the quarantine. In the other order, a crash in
    # between would leave a table that is read again, and whose old values are never
    # cleared.
    for tightening in tightenings:
        ledger.note_tightened(lease, tightening)
        ports.progress.note(
            f"{tightening.table}: less is shown of it: {tightening.hidden_in_words}"
        )
    stop_at_cursor(ports, lease, errors)
    # These reasons are removed last. As long as the ledger has one, the next run stops
    # the table if this one dies.
    if tightenings:
        notes = ledger.uncleared_values(source)
    for note in _tightenings_to_reread(ports, notes):
        ledger.note_kept_because(lease, note.id, None)
    if notes:
        record_keep_clear(ports, lease)


def record_keep_clear(ports: RunPorts, lease: Lease) -> None:
    """Record, for each tightening whose clearing has not begun, the present reason to
    keep old values in plaintext."""
    for note in ports.ledger.uncleared_values(ports.source.name):
        reason = reason_kept(ports, note)
        if reason != note.kept_because and not note.has_begun:
            ports.ledger.note_kept_because(lease, note.id, reason)


def reason_kept(ports: RunPorts, note: UnclearedValues) -> str | None:
    """Return the reason that a person gives in the settings, as `keep_clear`, to keep
    the values of a tightening. After its removal from the settings, the ledger's reason
    counts until a run has stopped a table that must be read again."""
    return (
        note.kept_because if _requires_reread(ports, note) else keep_clear_reason(ports, note.table)
    )


def _requires_reread(ports: RunPorts, note: UnclearedValues) -> bool:
    """Return whether a table must be read again, because `keep_clear` was removed from
    the settings, and the mirror (the Delta table with the current rows) keeps rows that
    the source deleted. Such rows may still show the values."""
    is_removed = note.kept_because is not None and keep_clear_reason(ports, note.table) is None
    keeps_rows = ports.source.policies_of(note.table).keeps_rows
    return is_removed and keeps_rows and not note.has_stale_mirror


def _tightenings_to_reread(
    ports: RunPorts, notes: Iterable[UnclearedValues]
) -> list[UnclearedValues]:
    return [note for note in notes if _requires_reread(ports, note)]


def versions_under_present_key(
    ledger: Ledger, source: str, patterns: TablePatterns, notes: Iterable[UnclearedValues]
) -> Iterator[SchemaVersion]:
    """Yield the newest versions of captured tables whose values must have been hashed
    with the present key. A table is left out after its key was replaced on purpose,
    until it is read again, which may take long (for instance if the table is paused).
    `notes`: the ledger's `uncleared_values`."""
    states = ledger.table_states(source)
    rehashed_after = dict[TableName, int]()
    for note in notes:
        if note.tightening.is_rehashed:
            through = rehashed_after.get(note.table, 0)
            rehashed_after[note.table] = max(note.tightening.last_batch, through)
    for version in ledger.schemas_at(source, shaped=True):
        table = version.table
        if table not in states or not patterns.matches(table):
            continue
        if states[table].condition is TableCondition.DROPPED:
            continue
        if version.batch > rehashed_after.get(table, 0):
            yield version


def reshaped_tables(
    ports: RunPorts, notes: Sequence[UnclearedValues]
) -> Iterator[tuple[TableName, TableError]]:
    """Yield the tables that have another shape in the settings than in the lake, and
    the tables to which the settings cannot be applied, each with the error that stops
    it. Raise the same `ConfigurationError` as `stop_reshaped_tables`. `notes`: the
    ledger's `uncleared_values`."""
    source, shaping, patterns = ports.source.name, ports.shaping, ports.source.patterns
    shaped_versions = {
        version.table: version for version in ports.ledger.schemas_at(source, shaped=True)
    }
    for version in versions_under_present_key(ports.ledger, source, patterns, notes):
        shaping.require_key(version)
    tables_to_reread = {note.table for note in _tightenings_to_reread(ports, notes)}
    errors = consent_errors(ports)
    for table, state in sorted(ports.ledger.table_states(source).items()):
        if table in errors:
            yield table, errors[table]
            continue
        if state.condition is not TableCondition.FOLLOWING or not patterns.matches(table):
            continue
        if table in tables_to_reread:
            yield table, reread_error("rows that it kept show more than its settings do")
            continue
        if table not in shaped_versions and shaping.rules_of(table) is None:
            continue
        newest = shaped_versions.get(table) or ports.ledger.schema_at(source, table)
        if newest is None:
            continue
        try:
            reason = shaping.difference_from(newest)
        except TableError as error:
            yield table, error
            continue
        if reason is not None:
            yield table, reread_error(f"{reason}, so it is read again")


def plaintext_sentence(ports: RunPorts, table: TableName) -> str | None:
    """Return a sentence that says which values of a table are still in plaintext
    although its settings now hide them, and until when. Return None if there are none.
    Raise `TableError` if the settings cannot be applied to the table."""
    notes = ports.ledger.uncleared_values(ports.source.name)
    for note in _tightenings_to_reread(ports, notes):
        if note.table == table:
            return f"{note.sentence}, also in rows that its mirror kept: those go with the others"
    newest = ports.ledger.schema_at(ports.source.name, table)
    tightening = None if newest is None else ports.shaping.tightening(newest)
    if tightening is None or not tightening.shows_less:
        return None
    reason = keep_clear_reason(ports, table)
    until = "the run that reads it again clears them, once nobody needs them"
    if reason is not None:
        until = f"they stay, as `keep_clear` says: {reason}"
    elif ports.source.policies_of(table).keeps_rows:
        until += ", and rows that its mirror kept although they are gone at the source go with them"
    return f"{tightening.plaintext_clause} in what was captured before: {until}"


def new_tightenings(ports: RunPorts, notes: Sequence[UnclearedValues]) -> list[Tightening]:
    """Return the tightenings that are not recorded yet: one for each table whose
    settings show less than the lake has of it. These may be stopped or dropped tables,
    and tables that the setting `tables` no longer matches. `notes`: the ledger's
    `uncleared_values`."""
    source = ports.source.name
    cursor = ports.ledger.cursors(source).captured
    if cursor is None or not ports.shaping.has_rules:
        return []
    # After a table was read again, the same settings may be relaxed and tightened once
    # more. So a recorded tightening counts only until the table was read again.
    recorded_keys = {_comparison_key(note.tightening) for note in notes if note.has_stale_mirror}
    states, shaping = ports.ledger.table_states(source), ports.shaping
    dropped = {
        table for table, state in states.items() if state.condition is TableCondition.DROPPED
    }
    tables = [table for table in states if table in dropped or shaping.rules_of(table) is not None]
    history = ports.ledger.schema_versions(source, *tables) if tables else []
    tightenings = [
        *(
            replace(note.tightening, kept_because=None)
            for note in _tightenings_to_reread(ports, notes)
        ),
        *_tightenings_by_settings(ports, history, dropped),
    ]
    return [
        *_tightenings_by_renames(ports, history, notes),
        *(
            replace(tightening, last_batch=cursor.batch)
            for tightening in tightenings
            if _comparison_key(tightening) not in recorded_keys
        ),
    ]


def _tightenings_by_settings(
    ports: RunPorts, history: Sequence[SchemaVersion], dropped: Set[TableName]
) -> Iterator[Tightening]:
    """Yield a tightening for each table whose settings show less than its newest
    structure in the ledger does. `history`: the versions of the tables with settings
    and of the dropped ones."""
    for version, name in _versions_with_settings(ports, history, dropped):
        try:
            tightening = ports.shaping.tightening(_with_name(version, name))
        except TableError:  # the table stops, since it cannot be shown as the settings say
            continue
        if tightening.shows_less:
            reason = keep_clear_reason(ports, name)
            yield replace(tightening, table=version.table, kept_because=reason)


def _tightenings_by_renames(
    ports: RunPorts, history: Sequence[SchemaVersion], notes: Iterable[UnclearedValues]
) -> Iterator[Tightening]:
    """Yield a tightening for each captured column that was shown until it got a name
    that the settings hide. Its last batch is the one with the statement, because this
    batch may have values from before the statement. The next batch read the table
    again. `history`: as for `_tightenings_by_settings`; `notes`: as for
    `new_tightenings`."""
    ledger, source = ports.ledger, ports.source.name
    recorded_batches = {
        (note.table, column): note.tightening.last_batch
        for note in notes
        for column in note.tightening.columns
    }
    newest_known = dict[TableName, SchemaVersion]()
    newest_knowledge = dict[TableName, Knowledge]()
    for version in history:
        table = version.table
        knowledge_before = newest_knowledge.get(table)
        newest_knowledge[table] = version.knowledge
        # A version without a structure says nothing of what was shown.
        if version.schema is None or ports.shaping.rules_of(table) is None:
            continue
        before = newest_known.get(table)
        newest_known[table] = version
        # A batch that read the table again has no values from before that.
        is_read_again = version.columns_from is None
        last_batch = version.batch - 1 if is_read_again else version.batch
        columns = tuple(
            column
            for column in _columns_hidden_by(
                before, version, may_rename=knowledge_before is Knowledge.UNKNOWN
            )
            if recorded_batches.get((table, column), 0) < last_batch
        )
        if columns and last_batch > ledger.deletion_notes(source, table).last_batch:
            reason = keep_clear_reason(ports, table)
            yield Tightening(table, last_batch, columns, kept_because=reason)


def _columns_hidden_by(
    before: SchemaVersion | None, after: SchemaVersion, *, may_rename: bool
) -> Iterator[str]:
    """Yield the columns of `after` that show less than the columns of `before` from
    which they have their values. `may_rename`: a statement in between was not followed.
    Each new column of unknown origin may then have the values of any column that is
    gone."""
    if before is None or before.schema is None or after.schema is None:
        return
    treatments_before, treatments = before.treatments, after.treatments
    names, names_before = (
        [name.lower() for name in schema.names] for schema in (after.schema, before.schema)
    )
    gone_names = [name for name in names_before if name not in names] if may_rename else []
    for column, origin in zip(after.schema.names, after.columns_from or names, strict=True):
        name = column.lower()
        is_new = after.columns_from is None and name not in names_before
        origins = gone_names if is_new else [(origin or column).lower()]
        treatment = treatments.get(name, Visibility.SHOWN)
        shown_before = [treatments_before.get(former, Visibility.SHOWN) for former in origins]
        shows_less = not all(shows_no_more(earlier, treatment) for earlier in shown_before)
        if name not in origins and shows_less:
            yield column


def _versions_with_settings(
    ports: RunPorts, history: Sequence[SchemaVersion], dropped: Set[TableName]
) -> Iterator[tuple[SchemaVersion, TableName]]:
    """Yield the newest known version of each table, with the name by which the settings
    choose its shape. For a dropped table this may be a name that a RENAME gave it: the
    first of its names with settings."""
    source, shaping = ports.source.name, ports.shaping
    newest_known = {
        version.table: version for version in history if version.knowledge is Knowledge.KNOWN
    }
    end_versions = {
        version.table: version for version in history if version.knowledge is Knowledge.DROPPED
    }
    for table, version in sorted(newest_known.items()):
        names = [table]
        if table in dropped:
            while shaping.rules_of(names[-1]) is None and names[-1] in end_versions:
                name = _new_name(ports, end_versions[names[-1]], newest_known)
                if name is None or name in names:
                    break
                names.append(name)
            if table not in end_versions or shaping.rules_of(names[-1]) is None:
                continue
            if ports.ledger.deletion_notes(source, table).last_batch >= end_versions[table].batch:
                continue  # all of it is cleared
        yield version, names[-1]


def _new_name(ports: RunPorts, end: SchemaVersion, tables: Iterable[TableName]) -> TableName | None:
    """Return which of these tables has the rows of a table since a RENAME ended its old
    name; None if it was dropped. `end`: the record of its end."""
    if end.statement_number is None:
        return None
    [statement] = ports.ledger.statements(ports.source.name, [end.statement_number]).values()
    changes = read_change(statement.text, read_stored_context(statement.context))
    name = end.table
    for change in changes if isinstance(changes, tuple) else ():
        pairs = renamed_pairs([change])
        for old_name, new_name in pairs:
            if old_name == _spelling(name, dict(pairs)):
                name = new_name
    return _spelling(name, tables)


def _spelling(name: TableName, names: Iterable[TableName]) -> TableName | None:
    """Return which of the names is this one. A statement may spell a name in another
    case than the server's tables have it."""
    spellings = [other for other in names if str(other).lower() == str(name).lower()]
    return name if name in spellings else next(iter(spellings), None)


def _with_name(version: SchemaVersion, name: TableName) -> SchemaVersion:
    """Return a copy of the version whose table has this name."""
    schema = None if version.schema is None else replace(version.schema, name=name)
    return replace(version, table=name, schema=schema)


def _comparison_key(tightening: Tightening) -> Tightening:
    """Return the part of a tightening by which two of them are compared."""
    return replace(tightening, last_batch=0, kept_because=None)


def keep_clear_reason(ports: RunPorts, table: TableName) -> str | None:
    """Return the reason that the settings give to keep earlier values of a table in
    plaintext."""
    rules = ports.shaping.rules_of(table)
    return None if rules is None else rules.keep_clear
